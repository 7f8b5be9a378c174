"""Exact block maximisation, one pass over a slice of the order. See fastmc.reference.sdca."""
import numpy as np

from fastmc._losses cimport Loss
from fastmc._order cimport Order
from fastmc._samples cimport Samples


def sdca_pass(Samples samples, Loss loss, double[:, ::1] weights, double[:, ::1] dual,
              double[::1] gaps, Order order, Py_ssize_t start, Py_ssize_t stop, double lam_n,
              double smoothing):
    cdef Py_ssize_t m = samples.n_classes, position, i, j
    cdef double gamma, gap
    cdef double[::1] scratch = np.zeros(2 * m)
    cdef double* scores = &scratch[0]
    cdef double* coef = &scratch[m]
    cdef double* alpha
    cdef bint changed
    with nogil:
        for position in range(start, stop):
            i = order.next(position)
            gamma = smoothing / samples.weight[i]
            alpha = &dual[i, 0]
            samples.load(i)
            samples.scores(&weights[0, 0], scores)
            samples.add_cost(i, scores)
            for j in range(m):
                coef[j] = scores[j] + gamma * alpha[j]
            gap = samples.weight[i] * loss.c_oracle(coef, samples.label[i], NULL)
            for j in range(m):
                gap += coef[j] * alpha[j]
                coef[j] = alpha[j]
            gaps[i] = gap
            order.saw(i, gap)
            loss.c_block_max(scores, samples.label[i], samples.weight[i],
                             samples.sqnorm[i] / lam_n, gamma, alpha)
            changed = False
            for j in range(m):
                coef[j] = (alpha[j] - coef[j]) / lam_n
                changed = changed or coef[j] != 0.0
            if changed:
                samples.update(coef, &weights[0, 0])
