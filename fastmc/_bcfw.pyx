"""Block-coordinate Frank-Wolfe, one pass over a slice of the order. See fastmc.reference.bcfw."""
import numpy as np

from fastmc._losses cimport Loss
from fastmc._samples cimport Samples


def bcfw_pass(Samples samples, Loss loss, double[:, ::1] weights, double[:, ::1] dual,
              const Py_ssize_t[::1] order, double lam_n, double smoothing,
              double[:, ::1] weights_sum=None, double[:, ::1] dual_sum=None, long long steps=0):
    cdef Py_ssize_t m = samples.n_classes, position, i, j
    cdef double gap = 0.0, risk = 0.0, gamma, value, block_gap, norm, curvature, step, factor
    cdef double[::1] scratch = np.zeros(3 * m)
    cdef double* shifted = &scratch[0]
    cdef double* delta = &scratch[m]
    cdef double* coef = &scratch[2 * m]
    cdef double* alpha
    cdef bint averaging = weights_sum is not None
    with nogil:
        for position in range(order.shape[0]):
            i = order[position]
            steps += 1
            gamma = smoothing / samples.weight[i]
            alpha = &dual[i, 0]
            samples.load(i)
            samples.scores(&weights[0, 0], shifted)
            samples.add_cost(i, shifted)
            for j in range(m):
                shifted[j] += gamma * alpha[j]
            value = samples.weight[i] * loss.c_oracle(shifted, samples.label[i], delta)
            risk += value
            block_gap = value
            norm = 0.0
            for j in range(m):
                block_gap += shifted[j] * alpha[j]
                delta[j] = samples.weight[i] * delta[j] - alpha[j]
                norm += delta[j] * delta[j]
            gap += block_gap
            if norm == 0.0 or block_gap <= 0.0:
                continue
            # Without curvature (an all-zero row, no smoothing) the objective is linear.
            curvature = (samples.sqnorm[i] / lam_n + gamma) * norm
            step = block_gap / curvature if block_gap < curvature else 1.0
            for j in range(m):
                alpha[j] += step * delta[j]
                coef[j] = step * delta[j] / lam_n
            samples.update(coef, &weights[0, 0])
            if averaging:
                factor = <double> steps * <double> (steps - 1)
                for j in range(m):
                    coef[j] *= factor
                    dual_sum[i, j] += factor * (step * delta[j])
                samples.update(coef, &weights_sum[0, 0])
    return gap, risk
