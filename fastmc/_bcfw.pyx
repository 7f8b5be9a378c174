"""Block-coordinate Frank-Wolfe with its variants. See fastmc.reference.bcfw for the formulas."""
import numpy as np

from fastmc._active_set cimport ActiveSet
from fastmc._losses cimport Loss
from fastmc._order cimport Order
from fastmc._samples cimport Samples

cdef enum Step:
    BCFW, PAIRWISE, AWAY

STEPS = {"bcfw": BCFW, "pairwise": PAIRWISE, "away": AWAY}


cdef class Average:
    """See fastmc.reference.bcfw.Average."""

    cdef readonly long long steps
    cdef double[:, ::1] weights_sum
    cdef double[:, ::1] dual_sum

    def __init__(self, weights_shape, dual_shape):
        self.weights_sum = np.zeros(weights_shape)
        self.dual_sum = np.zeros(dual_shape)

    def of(self, weights, dual):
        cdef double scale = 1.0 / (max(self.steps, 1) * (self.steps + 1.0))
        return weights - scale * np.asarray(self.weights_sum), dual - scale * np.asarray(self.dual_sum)

    cdef void add(self, Samples samples, Py_ssize_t i, const double* change, double* coef,
                  double lam_n) noexcept nogil:
        cdef Py_ssize_t j
        cdef double factor = <double> self.steps * <double> (self.steps - 1)
        for j in range(samples.n_classes):
            self.dual_sum[i, j] += factor * change[j]
            coef[j] = factor * change[j] / lam_n
        samples.update(coef, &self.weights_sum[0, 0])


cdef struct Block:
    # The sample: number, own class, weight omega_i, gamma_i and alpha_i.
    Py_ssize_t i, y
    double weight, gamma
    double* alpha
    # The classes looked at; c + st on them, its product with alpha, the gap, and the corner
    # (as `delta` and, with an active set, as an atom).
    const Py_ssize_t* classes
    Py_ssize_t count, corner
    double* shifted
    double inner, gap
    # The direction, what it gains, the longest step; the away corner, and whether the step only
    # leaves that.
    double* delta
    double gain, limit
    Py_ssize_t away
    bint leaves


cdef Py_ssize_t named_classes(ActiveSet atoms, const Block* b, Py_ssize_t m, char* marked,
                              Py_ssize_t* classes) noexcept nogil:
    """The classes that alpha and the corners at hand are made of; `marked` is left cleared."""
    cdef Py_ssize_t j, count = 0
    marked[b.y] = 1
    atoms.mark(b.i, marked)
    for j in range(m):
        if marked[j] or b.alpha[j] != 0.0:
            classes[count] = j
            count += 1
        marked[j] = 0
    return count


cdef void look_at_cache(Samples samples, ActiveSet atoms, const double* weights, Block* b) noexcept nogil:
    """The best corner at hand, scored on the classes in b.classes alone."""
    cdef Py_ssize_t k, j
    samples.class_scores(weights, b.classes, b.count, b.shifted)
    b.inner = 0.0
    for k in range(b.count):
        j = b.classes[k]
        b.shifted[j] = (b.shifted[j] + samples.class_cost(b.i, j)) + b.gamma * b.alpha[j]
        b.inner += b.shifted[j] * b.alpha[j]
    b.corner = atoms.lowest(b.i, b.shifted, b.y)
    b.gap = b.inner - b.weight * atoms.height(b.corner, b.shifted, b.y)


cdef void call_oracle(Samples samples, Loss loss, ActiveSet atoms, const double* weights, Block* b) noexcept nogil:
    """The best corner of all, and the block gap."""
    cdef Py_ssize_t j, m = samples.n_classes
    samples.scores(weights, b.shifted)
    samples.add_cost(b.i, b.shifted)
    b.inner = 0.0
    for j in range(m):
        b.shifted[j] += b.gamma * b.alpha[j]
        b.inner += b.shifted[j] * b.alpha[j]
    b.gap = b.weight * loss.c_oracle(b.shifted, b.y, b.delta) + b.inner
    if atoms is not None:
        b.corner = atoms.put(b.i, b.delta, m, b.y)


cdef void choose_direction(ActiveSet atoms, int step, Block* b) noexcept nogil:
    cdef Py_ssize_t k, j
    cdef double share, away_gain, sign = -1.0
    b.gain, b.limit, b.leaves = b.gap, 1.0, False
    if atoms is None:
        for j in range(b.count):
            b.delta[j] = b.weight * b.delta[j] - b.alpha[j]
        return
    if step != BCFW:
        b.away = atoms.highest(b.i, b.shifted, b.y)
        share = atoms.get_weight(b.i, b.away)
    if step == PAIRWISE:
        b.gain = b.weight * (atoms.height(b.away, b.shifted, b.y) - atoms.height(b.corner, b.shifted, b.y))
        b.limit, sign = share, 0.0
    elif step == AWAY:
        away_gain = b.weight * atoms.height(b.away, b.shifted, b.y) - b.inner
        if away_gain > b.gap and share < 1.0:
            b.leaves, b.gain, b.limit, sign = True, away_gain, share / (1.0 - share), 1.0
    for k in range(b.count):
        b.delta[b.classes[k]] = sign * b.alpha[b.classes[k]]
    if not b.leaves:
        atoms.add(b.corner, b.weight, b.delta, b.y)
    if step == PAIRWISE or b.leaves:
        atoms.add(b.away, -b.weight, b.delta, b.y)


cdef double step_size(const Block* b, double q) noexcept nogil:
    """Exact line search, clipped; 0 where nothing is to be gained."""
    cdef Py_ssize_t k
    cdef double norm = 0.0, curvature
    for k in range(b.count):
        norm += b.delta[b.classes[k]] * b.delta[b.classes[k]]
    if norm == 0.0 or b.gain <= 0.0:
        return 0.0
    # Without curvature (an all-zero row, no smoothing) the objective is linear.
    curvature = (q + b.gamma) * norm
    return b.gain / curvature if b.gain < b.limit * curvature else b.limit


cdef void move_weights(ActiveSet atoms, const Block* b, int step, double t) noexcept nogil:
    """The step in terms of the weights; an away corner at its limit is dropped."""
    cdef double left
    if step == PAIRWISE or b.leaves:
        if b.leaves:
            atoms.scale(b.i, 1.0 + t)
        left = max(atoms.get_weight(b.i, b.away) - t, 0.0)
        atoms.set_weight(b.i, b.away, 0.0 if t == b.limit else left)
    else:
        atoms.scale(b.i, 1.0 - t)
    if not b.leaves:
        atoms.set_weight(b.i, b.corner, atoms.get_weight(b.i, b.corner) + t)
    atoms.tidy(b.i, True)


cdef void move_dual(ActiveSet atoms, const Block* b, int step, double t, Py_ssize_t m, double* change,
                    double* new) noexcept nogil:
    """alpha after the step, and how it changed; from the weights where they are kept."""
    cdef Py_ssize_t k, j
    for j in range(m):
        change[j] = 0.0
    if step == BCFW:
        for k in range(b.count):
            j = b.classes[k]
            change[j] = t * b.delta[j]
            b.alpha[j] += change[j]
    else:
        move_weights(atoms, b, step, t)
        atoms.point(b.i, b.weight, new, m, b.y)
        for j in range(m):
            change[j] = new[j] - b.alpha[j]
            b.alpha[j] = new[j]


def bcfw_pass(Samples samples, Loss loss, double[:, ::1] weights, double[:, ::1] dual,
              double[::1] gaps, Order order, Py_ssize_t start, Py_ssize_t stop, double lam_n,
              double smoothing, kind="bcfw", ActiveSet atoms=None, Average average=None,
              double cache_f=0.0, double cache_floor=0.0):
    cdef Py_ssize_t m = samples.n_classes, position, j, calls = 0, hits = 0
    cdef int step = STEPS[kind]
    cdef double t
    cdef bint caching = atoms is not None and atoms.cache_size > 0
    cdef double[::1] scratch = np.zeros(4 * m)
    cdef Py_ssize_t[::1] every = np.arange(m, dtype=np.intp)
    cdef Py_ssize_t[::1] named = np.zeros(m, dtype=np.intp)
    cdef char[::1] marked = np.zeros(m, dtype=np.int8)
    cdef double* change = &scratch[2 * m]
    cdef double* coef = &scratch[3 * m]
    cdef Block b
    b.shifted, b.delta = &scratch[0], &scratch[m]
    b.corner = b.away = -1
    if atoms is not None:
        atoms.reserve(stop - start)
    with nogil:
        for position in range(start, stop):
            b.i = order.next(position)
            b.y, b.weight, b.alpha = samples.label[b.i], samples.weight[b.i], &dual[b.i, 0]
            b.gamma = smoothing / b.weight
            samples.load(b.i)
            if caching:
                b.count = named_classes(atoms, &b, m, &marked[0], &named[0])
                b.classes = &named[0]
                look_at_cache(samples, atoms, &weights[0, 0], &b)
            # A hit must gain something: thresholds of zero would never call the oracle again.
            if caching and b.gap > 0.0 and b.gap >= max(cache_f * gaps[b.i], cache_floor):
                hits += 1
            else:
                calls += 1
                b.count, b.classes = m, &every[0]
                call_oracle(samples, loss, atoms, &weights[0, 0], &b)
                gaps[b.i] = b.gap
                order.saw(b.i, b.gap)
            choose_direction(atoms, step, &b)
            if average is not None:
                average.steps = average.steps + 1
            t = step_size(&b, samples.sqnorm[b.i] / lam_n)
            if t > 0.0:
                move_dual(atoms, &b, step, t, m, change, coef)
                for j in range(m):
                    coef[j] = change[j] / lam_n
                samples.update(coef, &weights[0, 0])
                if average is not None:
                    average.add(samples, b.i, change, coef, lam_n)
            if atoms is not None and (step == BCFW or t == 0.0):
                atoms.tidy(b.i, False)
    return calls, hits
