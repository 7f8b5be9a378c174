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


cdef Py_ssize_t named_classes(ActiveSet atoms, Py_ssize_t i, const double* alpha, Py_ssize_t label,
                              Py_ssize_t m, char* marked, Py_ssize_t* classes) noexcept nogil:
    """The classes that alpha and the corners at hand are made of; `marked` is left cleared."""
    cdef Py_ssize_t j, count = 0
    marked[label] = 1
    atoms.mark(i, marked)
    for j in range(m):
        if marked[j] or alpha[j] != 0.0:
            classes[count] = j
            count += 1
        marked[j] = 0
    return count


cdef void move_weights(ActiveSet atoms, Py_ssize_t i, Py_ssize_t corner, Py_ssize_t away, bint leaves,
                       bint pairwise, double t, double limit) noexcept nogil:
    """The step of size t in terms of the weights; an away corner at its limit is dropped."""
    if pairwise:
        atoms.set_weight(i, away, 0.0 if t == limit else atoms.get_weight(i, away) - t)
        atoms.set_weight(i, corner, atoms.get_weight(i, corner) + t)
    elif leaves:
        atoms.scale(i, 1.0 + t)
        atoms.set_weight(i, away, 0.0 if t == limit else max(atoms.get_weight(i, away) - t, 0.0))
    else:
        atoms.scale(i, 1.0 - t)
        atoms.set_weight(i, corner, atoms.get_weight(i, corner) + t)
    atoms.tidy(i, True)


def bcfw_pass(Samples samples, Loss loss, double[:, ::1] weights, double[:, ::1] dual,
              double[::1] gaps, Order order, Py_ssize_t start, Py_ssize_t stop, double lam_n,
              double smoothing, kind="bcfw", ActiveSet atoms=None, Average average=None,
              double cache_f=0.0, double cache_floor=0.0):
    cdef Py_ssize_t m = samples.n_classes, position, i, j, k, y, count, corner = -1, away = -1
    cdef Py_ssize_t calls = 0, hits = 0
    cdef int step = STEPS[kind]
    cdef double weight, gamma, inner, gap, gain, limit, norm, curvature, t, away_gain
    cdef bint caching = atoms is not None and atoms.cache_size > 0, hit, leaves
    cdef double[::1] scratch = np.zeros(4 * m)
    cdef Py_ssize_t[::1] integers = np.arange(2 * m, dtype=np.intp)
    cdef char[::1] marks = np.zeros(m, dtype=np.int8)
    cdef double* shifted = &scratch[0]
    cdef double* delta = &scratch[m]
    cdef double* change = &scratch[2 * m]
    cdef double* coef = &scratch[3 * m]
    cdef double* alpha
    cdef const Py_ssize_t* classes
    if atoms is not None:
        atoms.reserve(stop - start)
    with nogil:
        for position in range(start, stop):
            i = order.next(position)
            y, weight = samples.label[i], samples.weight[i]
            gamma = smoothing / weight
            alpha = &dual[i, 0]
            samples.load(i)
            hit, leaves = False, False
            if caching:
                count = named_classes(atoms, i, alpha, y, m, &marks[0], &integers[m])
                classes = &integers[m]
                samples.class_scores(&weights[0, 0], classes, count, shifted)
                inner = 0.0
                for k in range(count):
                    j = classes[k]
                    shifted[j] = (shifted[j] + samples.class_cost(i, j)) + gamma * alpha[j]
                    inner += shifted[j] * alpha[j]
                corner = atoms.lowest(i, shifted, y)
                gap = inner - weight * atoms.height(corner, shifted, y)
                hit = gap >= max(cache_f * gaps[i], cache_floor)
            if hit:
                hits += 1
            else:
                calls += 1
                count, classes = m, &integers[0]
                samples.scores(&weights[0, 0], shifted)
                samples.add_cost(i, shifted)
                for j in range(m):
                    shifted[j] += gamma * alpha[j]
                gap = weight * loss.c_oracle(shifted, y, delta)
                inner = 0.0
                for j in range(m):
                    inner += shifted[j] * alpha[j]
                gap += inner
                gaps[i] = gap
                order.saw(i, gap)
                if atoms is not None:
                    corner = atoms.put(i, delta, m, y)
            # The direction, its gain <-delta, c + st> and the longest step.
            gain, limit = gap, 1.0
            if step != BCFW:
                away = atoms.highest(i, shifted, y)
            if step == PAIRWISE:
                gain = weight * (atoms.height(away, shifted, y) - atoms.height(corner, shifted, y))
                limit = atoms.get_weight(i, away)
                for k in range(count):
                    delta[classes[k]] = 0.0
                atoms.add(corner, weight, delta, y)
                atoms.add(away, -weight, delta, y)
            else:
                if step == AWAY:
                    away_gain = weight * atoms.height(away, shifted, y) - inner
                    t = atoms.get_weight(i, away)
                    if away_gain > gap and t < 1.0:
                        leaves, gain, limit = True, away_gain, t / (1.0 - t)
                if leaves:
                    for k in range(count):
                        delta[classes[k]] = alpha[classes[k]]
                    atoms.add(away, -weight, delta, y)
                elif atoms is None:
                    for j in range(m):
                        delta[j] = weight * delta[j] - alpha[j]
                else:
                    for k in range(count):
                        delta[classes[k]] = -alpha[classes[k]]
                    atoms.add(corner, weight, delta, y)
            if average is not None:
                average.steps = average.steps + 1
            norm = 0.0
            for k in range(count):
                norm += delta[classes[k]] * delta[classes[k]]
            if norm == 0.0 or gain <= 0.0:
                continue
            # Without curvature (an all-zero row, no smoothing) the objective is linear.
            curvature = (samples.sqnorm[i] / lam_n + gamma) * norm
            t = gain / curvature if gain < limit * curvature else limit
            if step == BCFW:
                if caching:
                    atoms.tidy(i, False)
                for j in range(m):
                    change[j] = 0.0
                for k in range(count):
                    change[classes[k]] = t * delta[classes[k]]
                    alpha[classes[k]] += change[classes[k]]
            else:
                move_weights(atoms, i, corner, away, leaves, step == PAIRWISE, t, limit)
                atoms.point(i, weight, coef, m, y)
                for j in range(m):
                    change[j] = coef[j] - alpha[j]
                    alpha[j] = coef[j]
            for j in range(m):
                coef[j] = change[j] / lam_n
            samples.update(coef, &weights[0, 0])
            if average is not None:
                average.add(samples, i, change, coef, lam_n)
    return calls, hits
