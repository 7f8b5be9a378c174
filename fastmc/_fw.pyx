"""The two sweeps over the rows of a batch Frank-Wolfe iteration. See fastmc.reference.fw."""
import numpy as np

from fastmc._losses cimport Loss
from fastmc._samples cimport Samples


def fw_vertices(Samples samples, Loss loss, const double[:, ::1] scores, const double[:, ::1] dual,
                double[::1] gaps, double[:, ::1] vertices, double[:, ::1] weights, Py_ssize_t start, Py_ssize_t stop,
                double lam_n, double smoothing, bint subgradient):
    cdef Py_ssize_t m = samples.n_classes, i, j
    cdef double total = 0.0, gamma, gap
    cdef double[::1] scratch = np.zeros(2 * m)
    cdef double* shifted = &scratch[0]
    cdef double* coef = &scratch[m]
    with nogil:
        for i in range(start, stop):
            if samples.weight[i] == 0.0:
                continue
            gamma = smoothing / samples.weight[i]
            for j in range(m):
                shifted[j] = scores[i, j]
            samples.add_cost(i, shifted)
            if subgradient and gamma > 0.0:
                for j in range(m):
                    coef[j] = -shifted[j] / gamma
                loss.c_project(coef, samples.label[i], samples.weight[i], &vertices[i, 0])
            for j in range(m):
                shifted[j] += gamma * dual[i, j]
            gap = samples.weight[i] * loss.c_oracle(shifted, samples.label[i], coef)
            for j in range(m):
                gap += shifted[j] * dual[i, j]
            gaps[i] = gap
            total += gap
            if not (subgradient and gamma > 0.0):
                for j in range(m):
                    vertices[i, j] = samples.weight[i] * coef[j]
            for j in range(m):
                coef[j] = vertices[i, j] / lam_n
            samples.load(i)
            samples.update(coef, &weights[0, 0])
    return total


def fw_scores(Samples samples, const double[:, ::1] scores, const double[:, ::1] dual,
              const double[:, ::1] vertices, const double[:, ::1] weights,
              double[:, ::1] vertex_scores, Py_ssize_t start, Py_ssize_t stop, double smoothing):
    cdef Py_ssize_t m = samples.n_classes, i, j
    cdef double curvature = 0.0, gamma, delta
    with nogil:
        for i in range(start, stop):
            samples.load(i)
            samples.scores(&weights[0, 0], &vertex_scores[i, 0])
            if samples.weight[i] == 0.0:
                continue
            gamma = smoothing / samples.weight[i]
            for j in range(m):
                delta = vertices[i, j] - dual[i, j]
                curvature += delta * ((vertex_scores[i, j] - scores[i, j]) + gamma * delta)
    return curvature
