"""W(A), and the objective sample by sample, compiled. See fastmc.reference.objective."""
import numpy as np

from fastmc._dual_rows cimport DualRows, Row
from fastmc._losses cimport Loss
from fastmc._predict cimport score_rows
from fastmc._samples cimport Samples, real
from fastmc._vector cimport ROWS


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


def take_signed(Samples samples, DualRows rows, const double[::1] signs, double[::1] out, double lam_n,
                Py_ssize_t first):
    cdef Py_ssize_t i, j, k, t, last = first + out.shape[0]
    cdef double value
    cdef const double* x
    cdef Row* row
    with nogil:
        for i in range(samples.n_samples):
            row, value = &rows.rows[i], 0.0
            for k in range(row.n_now):
                j = row.entries[k].j
                value += row.entries[k].beta * (signs[samples.label[i]] - signs[j])
            if value != 0.0:
                value /= lam_n
                samples.load_columns(i, first, last)
                x = samples.x()
                for t in range(samples.nnz):
                    out[samples.column[t] - first] -= value * x[t]


def objective(Samples samples, Loss loss, DualRows rows, const real[:, ::1] weights, double smoothing, Py_ssize_t start,
              Py_ssize_t stop, double[::1] losses, double[::1] gains, double[::1] inner, double[::1] margins):
    cdef Py_ssize_t i = start, count, r
    cdef bint dense = samples.indptr == NULL
    cdef double[::1] x = np.empty(ROWS * samples.n_features if dense else 1)
    cdef double[:, ::1] scores = np.empty((ROWS, samples.stride))
    cdef double[::1] scratch = np.zeros(2 * samples.n_classes)
    with nogil:
        while i < stop:
            count = ROWS if dense and i + ROWS <= stop else 1
            score_rows(samples, &weights[0, 0], i, count, &x[0], &scores[0, 0], samples.stride)
            for r in range(count):
                dual_terms(samples, &rows.rows[i], i, smoothing, &scores[r, 0], &gains[i], &inner[i])
                samples.add_cost(i, &scores[r, 0])
                margins[i] = samples.margin(&scores[r, 0], samples.label[i])
                losses[i] = samples.weight[i] * envelope(samples, loss, i, smoothing, &scores[r, 0], margins[i],
                                                         &scratch[0])
                i += 1


cdef void dual_terms(Samples samples, Row* row, Py_ssize_t i, double smoothing, const double* scores, double* gain,
                     double* inner) noexcept nogil:
    cdef Py_ssize_t j, k, y = samples.label[i]
    cdef double beta, own = 0.0, squares = 0.0
    gain[0] = inner[0] = 0.0
    for k in range(row.n_now):
        j, beta = row.entries[k].j, row.entries[k].beta
        own += beta
        squares += beta * beta
        gain[0] += beta * samples.class_cost(i, j)
        inner[0] += beta * (scores[y] - scores[j])
    if samples.weight[i] > 0.0:
        gain[0] -= 0.5 * (smoothing / samples.weight[i]) * (squares + own * own)


cdef double envelope(Samples samples, Loss loss, Py_ssize_t i, double smoothing, const double* scores, double margin,
                     double* scratch) noexcept nogil:
    """Phi_m at scores plus costs."""
    cdef Py_ssize_t j, m = samples.n_classes, y = samples.label[i]
    cdef double* target = scratch
    cdef double* alpha = scratch + m
    cdef double squares = 0.0
    if smoothing == 0.0 and loss.n_ranks == 1:
        return loss.rho[0] * max(margin, 0.0)
    if smoothing == 0.0:
        return loss.c_oracle(scores, y, NULL)
    for j in range(m):
        target[j] = -scores[j] / smoothing
    loss.c_project(target, y, 1.0, alpha)
    for j in range(m):
        squares += alpha[j] * alpha[j]
        target[j] = scores[j] + smoothing * alpha[j]
    return loss.c_oracle(target, y, NULL) + 0.5 * smoothing * squares
