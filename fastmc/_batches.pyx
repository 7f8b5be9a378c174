"""Exact block maximisation by several threads. See fastmc.reference.batches.

Each thread has the weights of a share of the classes for itself, so that no two write to the same
memory. A batch goes: changes of the last one and scores of this one, each thread for its classes;
meet; the block steps, each sample by whoever is free; meet.
"""
from concurrent.futures import wait

import numpy as np

from fastmc._dual_rows cimport DualRows
from fastmc._order cimport Order
from fastmc._samples cimport Samples, real
from fastmc._sdca cimport Step, expect

cdef extern from "_team.h":
    ctypedef struct team:
        long long size
    long long team_ticket(team*) noexcept nogil
    void team_stop(team*) noexcept nogil
    int team_meet(team*) noexcept nogil


cdef class Team:
    """What the threads of a pass share besides W and A; one for each call of batch_pass."""
    cdef team meeting
    cdef Py_ssize_t batch, start, stop
    cdef bint out_of_memory
    cdef Order order
    # For each sample of a batch: the classes that change, and how many.
    cdef Py_ssize_t[:, ::1] classes
    cdef Py_ssize_t[::1] counts

    def __init__(self, size, Order order, start, stop, batch, n_classes):
        self.meeting.size = size
        self.order, self.start, self.stop, self.batch = order, start, stop, batch
        self.classes = np.zeros((batch, 2 * n_classes + 1), dtype=np.intp)
        self.counts = np.zeros(batch, dtype=np.intp)

    def halt(self):
        team_stop(&self.meeting)


cdef void change_weights(Team shared, Samples samples, real* weights, Py_ssize_t first, Py_ssize_t at,
                         Py_ssize_t count, real[:, ::1] coefs) noexcept nogil:
    """Add what the samples from position `at` on change in the classes of this share."""
    cdef Py_ssize_t b, k, j, n_own
    cdef real* coef
    for b in range(count):
        n_own = 0
        for k in range(shared.counts[b]):
            j = shared.classes[b, k] - first
            if 0 <= j < samples.stride:
                samples.changed[n_own] = j
                n_own += 1
        if n_own > 0:
            coef = &coefs[b, first]
            samples.load(shared.order.next(at + b))
            samples.update_classes(coef, samples.changed, n_own, samples.stride, weights)
            for k in range(n_own):
                coef[samples.changed[k]] = 0


cdef void take_steps(Team shared, Step step, Py_ssize_t at, Py_ssize_t count, long long first_ticket,
                     real[:, ::1] scores, real[:, ::1] coefs) noexcept nogil:
    cdef Py_ssize_t b = team_ticket(&shared.meeting) - first_ticket
    while b < count:
        shared.counts[b] = step.take(shared.order.next(at + b), &scores[b, 0], &coefs[b, 0],
                                     &shared.classes[b, 0])
        if shared.counts[b] < 0:
            shared.out_of_memory = True
            team_stop(&shared.meeting)
        b = team_ticket(&shared.meeting) - first_ticket


def work(Team shared, Samples samples, Step step, real[:, ::1] weights, Py_ssize_t first,
         real[:, ::1] scores, real[:, ::1] coefs):
    """The part of one thread: the classes from `first` on, and steps."""
    cdef Py_ssize_t at, b, number, count, last_count = 0
    cdef Py_ssize_t n_batches = (shared.stop - shared.start + shared.batch - 1) // shared.batch
    cdef long long tickets = 0
    with nogil:
        # Once more after the last batch, for its changes.
        for number in range(n_batches + 1):
            at = shared.start + number * shared.batch
            change_weights(shared, samples, &weights[0, 0], first, at - shared.batch, last_count, coefs)
            if number == n_batches:
                break
            count = min(shared.batch, shared.stop - at)
            for b in range(count):
                expect(samples, step.rows, shared.order, at + b)
                samples.load(shared.order.next(at + b))
                samples.scores(&weights[0, 0], &scores[b, first])
            if team_meet(&shared.meeting):
                break
            take_steps(shared, step, at, count, tickets, scores, coefs)
            # Whoever came too late has drawn one as well.
            tickets += count + shared.meeting.size
            last_count = count
            if team_meet(&shared.meeting):
                break


def batch_pass(shares, DualRows rows, gaps, gains, order, start, stop, lam_n, smoothing, momentum, batch, pool):
    n_classes, dtype = rows.n_classes, shares[0].weights.dtype
    shared = Team(len(shares), order, start, stop, batch, n_classes)
    scores, coefs = np.zeros((2, batch, sum(share.weights.shape[1] for share in shares)), dtype)
    calls = []
    try:
        for share in shares:
            step = Step(share.samples, share.loss, rows.view(), gaps, gains, lam_n, smoothing, momentum)
            calls.append(pool.submit(work, shared, share.samples, step, share.weights, share.first, scores,
                                     coefs))
        for call in calls:
            call.result()
    finally:
        # If it ends early, nobody shall wait for those who do not come, or go on behind our back.
        (<Team> shared).halt()
        wait(calls)
    if (<Team> shared).out_of_memory:
        raise MemoryError("no memory for the dual")

