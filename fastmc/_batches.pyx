"""Exact block maximisation by several threads. See fastmc.reference.batches.

Rows of W belong to parts of the features, and each part to one thread, so that no two write to the same
memory and W need not move from core to core. A batch goes: changes of the last one and scores of this one,
each thread for its features; meet; the block steps, each thread for some of the samples; meet.
"""
from concurrent.futures import wait

import numpy as np

from fastmc._dual_rows cimport DualRows
from fastmc._order cimport Order
from fastmc._samples cimport Samples, real
from fastmc._sdca cimport Step, add_row_squares, extrapolate_rows
from fastmc._team cimport Team


cdef class Batches(Team):
    """What the threads of a pass share besides W and A; one for each call of batch_pass."""
    cdef Py_ssize_t batch, first, last
    cdef bint out_of_memory
    cdef Order order
    # For each sample of a batch: the classes that change, and how many.
    cdef Py_ssize_t[:, ::1] classes
    cdef Py_ssize_t[::1] counts
    # The rows of W at which the parts begin, and the end
    cdef Py_ssize_t[::1] bounds
    cdef double momentum

    def __init__(self, size, Order order, start, stop, batch, n_classes, bounds, momentum):
        super().__init__(size)
        self.bounds, self.momentum = bounds, momentum
        self.order, self.first, self.last, self.batch = order, start, stop, batch
        self.classes = np.zeros((batch, 2 * n_classes + 1), dtype=np.intp)
        self.counts = np.zeros(batch, dtype=np.intp)


cdef void change_weights(Batches shared, Samples samples, Py_ssize_t part, real[:, ::1] weights, Py_ssize_t at,
                         Py_ssize_t count, real[:, ::1] coefs) noexcept nogil:
    """Add what the samples from position `at` on change in this part of W."""
    cdef Py_ssize_t b
    for b in range(count):
        if shared.counts[b] > 0:
            samples.load_part(shared.order.next(at + b), part)
            samples.update_classes(&coefs[b, 0], &shared.classes[b, 0], shared.counts[b], samples.stride,
                                   &weights[0, 0])


cdef void score(Batches shared, Samples samples, Py_ssize_t part, real[:, ::1] weights, Py_ssize_t at,
                Py_ssize_t count, real[:, ::1] scores) noexcept nogil:
    """What this part of the features adds to the scores of the samples from position `at` on."""
    cdef Py_ssize_t b, i
    for b in range(count):
        i = shared.order.soon(at + b + 8)
        if i >= 0:
            samples.expect_part(i, part)
        i = shared.order.soon(at + b + 3)
        if i >= 0:
            samples.expect_part_row(i, part)
        samples.load_part(shared.order.next(at + b), part)
        samples.scores(&weights[0, 0], &scores[b, 0])


cdef inline void add(const real* more, Py_ssize_t count, real* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(count):
        out[j] += more[j]


cdef void take_steps(Batches shared, Step step, Py_ssize_t at, Py_ssize_t first, Py_ssize_t last,
                     real[:, :, ::1] parts, real[:, ::1] coefs) noexcept nogil:
    """The steps of the samples from the first to the last of the batch."""
    cdef Py_ssize_t b, i, k
    cdef real* scores
    cdef real* coef
    for b in range(first, last):
        i = shared.order.soon(at + b + 8)
        if i >= 0:
            step.samples.expect(i)
            step.rows.expect(i)
        i = shared.order.soon(at + b + 3)
        if i >= 0:
            step.rows.expect_row(i)
        scores, coef = &parts[0, b, 0], &coefs[b, 0]
        for k in range(1, parts.shape[0]):
            add(&parts[k, b, 0], parts.shape[2], scores)
        for k in range(shared.counts[b]):
            coef[shared.classes[b, k]] = 0
        shared.counts[b] = step.take(shared.order.next(at + b), scores, coef, &shared.classes[b, 0])
        if shared.counts[b] < 0:
            shared.out_of_memory = True
            shared.stop()


cdef void over_parts(Batches shared, Samples samples, Py_ssize_t number, real[:, ::1] weights, real[:, ::1] last,
                     double[:, ::1] squares) noexcept nogil:
    """Extrapolate the parts of thread `number`, or add up their squares: for whichever there is an array."""
    cdef Py_ssize_t part = number, first, count
    while part < samples.n_parts:
        first, count = shared.bounds[part], shared.bounds[part + 1] - shared.bounds[part]
        if count > 0 and last is not None:
            extrapolate_rows(samples, &weights[first, 0], &last[first, 0], count * weights.shape[1], shared.momentum)
        if count > 0 and squares is not None:
            add_row_squares(samples, &weights[first, 0], count, &squares[part, 0])
        part += shared.state.size


def work(Batches shared, Step step, Py_ssize_t number, real[:, ::1] weights, real[:, ::1] last,
         double[:, ::1] squares, real[:, :, ::1] scores, real[:, ::1] coefs):
    """What thread `number` does in a pass: every so many-th part of the features, and steps."""
    cdef Py_ssize_t at = shared.first, size = shared.state.size, count, last_count = 0, part
    cdef real[:, ::1] no_last = None
    cdef double[:, ::1] no_squares = None
    with nogil:
        shared.leave_core()
        over_parts(shared, step.samples, number, weights, last, no_squares)
        # Once more after the last batch, for its changes.
        while True:
            count = max(min(shared.batch, shared.last - at), 0)
            part = number
            while part < scores.shape[0]:
                change_weights(shared, step.samples, part, weights, at - shared.batch, last_count, coefs)
                score(shared, step.samples, part, weights, at, count, scores[part])
                part += size
            if count == 0 or shared.meet():
                break
            take_steps(shared, step, at, number * count // size, (number + 1) * count // size, scores, coefs)
            if shared.meet():
                break
            at += shared.batch
            last_count = count
        over_parts(shared, step.samples, number, weights, no_last, squares)


def batch_pass(workers, weights, DualRows rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum,
               batch, pool, bounds, last=None, squares=None):
    cdef Batches shared = Batches(len(workers), order, start, stop, batch, rows.n_classes, bounds, momentum)
    scores = np.zeros((workers[0][0].n_parts, batch, weights.shape[1]), weights.dtype)
    coefs = np.zeros((batch, weights.shape[1]), weights.dtype)
    steps = [Step(samples, loss, rows.view(), gaps, gains, lam_n, smoothing, momentum) for samples, loss in workers]
    calls = []
    try:
        for number in range(1, len(steps)):
            calls.append(pool.submit(work, shared, steps[number], number, weights, last, squares, scores, coefs))
        work(shared, steps[0], 0, weights, last, squares, scores, coefs)
        for call in calls:
            call.result()
    finally:
        # If it ends early, nobody shall wait for those who do not come, or go on behind our back.
        shared.halt()
        wait(calls)
    if shared.out_of_memory:
        raise MemoryError("no memory for the dual")
