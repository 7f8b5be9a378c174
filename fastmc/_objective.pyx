"""W(A), and the objective sample by sample, compiled. See fastmc.reference.objective."""
import numpy as np

from fastmc._dual_rows cimport DualRows, Row
from fastmc._losses cimport Loss
from fastmc._samples cimport Samples


def add_rows(Samples samples, DualRows rows, double[:, ::1] weights, double lam_n, Py_ssize_t first):
    cdef Py_ssize_t m = samples.n_classes, i, k, count
    cdef double own
    cdef double[::1] scratch = np.zeros(weights.shape[1])
    cdef double* coef = &scratch[0]
    cdef Py_ssize_t last = first + weights.shape[0]
    cdef Py_ssize_t[::1] scratch_classes = np.zeros(m, dtype=np.intp)
    cdef Py_ssize_t* classes = &scratch_classes[0]
    # Where row 0 of W would be
    cdef double* origin = &weights[0, 0] - first * weights.shape[1]
    cdef Row* row
    with nogil:
        for i in range(samples.n_samples):
            row = &rows.rows[i]
            count, own = row.n_now, 0.0
            if count == 0:
                continue
            samples.load_columns(i, first, last)
            if samples.nnz == 0:
                continue
            for k in range(count):
                classes[k] = row.entries[k].j
                coef[classes[k]] = -row.entries[k].beta / lam_n
                own += row.entries[k].beta
            classes[count] = samples.label[i]
            coef[classes[count]] = own / lam_n
            samples.update_classes(coef, classes, count + 1, samples.stride, origin)
            for k in range(count + 1):
                coef[classes[k]] = 0.0


def objective(Samples samples, Loss loss, DualRows rows, double[:, ::1] block, double smoothing,
              Py_ssize_t start, double[::1] losses, double[::1] gains, double[::1] inner, double[::1] margins):
    cdef Py_ssize_t m = samples.n_classes, i, j, k, y
    cdef double weight, beta, own, squares, value
    cdef double[::1] scratch = np.zeros(2 * m)
    cdef double* target = &scratch[0]
    cdef double* alpha = &scratch[m]
    cdef double* scores
    cdef Row* row
    with nogil:
        for i in range(start, start + block.shape[0]):
            y, weight, scores = samples.label[i], samples.weight[i], &block[i - start, 0]
            row = &rows.rows[i]
            own = squares = 0.0
            losses[i] = gains[i] = inner[i] = 0.0
            for k in range(row.n_now):
                j, beta = row.entries[k].j, row.entries[k].beta
                own += beta
                squares += beta * beta
                gains[i] += beta * samples.class_cost(i, j)
                inner[i] += beta * (scores[y] - scores[j])
            if weight > 0.0:
                gains[i] -= 0.5 * (smoothing / weight) * (squares + own * own)
            samples.add_cost(i, scores)
            margins[i] = samples.margin(scores, y)
            if smoothing == 0.0 and loss.n_ranks == 1:
                losses[i] = weight * (loss.rho[0] * max(margins[i], 0.0))
            elif smoothing == 0.0:
                losses[i] = weight * loss.c_oracle(scores, y, NULL)
            else:
                for j in range(m):
                    target[j] = -scores[j] / smoothing
                loss.c_project(target, y, 1.0, alpha)
                squares = 0.0
                for j in range(m):
                    squares += alpha[j] * alpha[j]
                    target[j] = scores[j] + smoothing * alpha[j]
                value = loss.c_oracle(target, y, NULL) + 0.5 * smoothing * squares
                losses[i] = weight * value
