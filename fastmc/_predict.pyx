"""The scores of rows, and the classes that they rank best. See fastmc.reference.predict."""
import numpy as np
from libc.math cimport INFINITY
from libc.string cimport memcpy

from fastmc._samples cimport Samples, real
from fastmc._vector cimport ROWS, table, vector_table


cdef void score_rows(Samples samples, const real* weights, Py_ssize_t i, Py_ssize_t count, double* x, double* out,
                     Py_ssize_t pitch) noexcept nogil:
    cdef Py_ssize_t d = samples.n_features, r
    if count < ROWS:
        for r in range(count):
            samples.load(i + r)
            samples.exact_scores(weights, out + r * pitch)
        return
    for r in range(ROWS):
        samples.load(i + r)
        memcpy(x + r * d, samples.x(), d * sizeof(double))
    if real is float:
        samples.vector.dense_scores_fd(x, d, weights, samples.stride, out, pitch)
    else:
        samples.vector.dense_scores_d(x, d, weights, samples.stride, out, pitch)


def scores(Samples samples, const real[:, ::1] weights, Py_ssize_t start, double[:, :] out):
    cdef Py_ssize_t pitch = out.strides[0] // sizeof(double), i = 0, count
    cdef bint dense = samples.indptr == NULL
    cdef double[::1] x = np.empty(ROWS * samples.n_features if dense else 1)
    if out.strides[1] != sizeof(double) or out.shape[1] < samples.stride:
        raise ValueError("out must have room for whole rows, each in one piece")
    with nogil:
        while i < out.shape[0]:
            count = ROWS if dense and i + ROWS <= out.shape[0] else 1
            score_rows(samples, &weights[0, 0], start + i, count, &x[0], &out[i, 0], pitch)
            i += count


def rank(const double[:, ::1] scores, long long[:, ::1] out):
    cdef Py_ssize_t m = scores.shape[1], i
    cdef const vector_table* vector = table()
    cdef Py_ssize_t[::1] found = np.empty(m, dtype=np.intp)
    with nogil:
        for i in range(scores.shape[0]):
            rank_row(vector, &scores[i, 0], m, out.shape[1], &found[0], &out[i, 0])


cdef void rank_row(const vector_table* vector, const double* s, Py_ssize_t m, Py_ssize_t k,
                   Py_ssize_t* found, long long* out) noexcept nogil:
    """The k best of m classes, best first: the heap of those that can be among them gives them up."""
    cdef double floor = vector.largest_d(s, m) if k == 1 else vector.lane_bound_d(s, m, k)
    cdef Py_ssize_t count = vector.at_least_d(s, m, floor, found), at
    if count < k or floor == -INFINITY:
        # Scores that overflowed: -inf lies below any bound but itself, and NaN is not at least anything.
        count = m
        for at in range(m):
            found[at] = at
    for at in range(count // 2 - 1, -1, -1):
        sift(s, found, at, count)
    for at in range(k):
        out[at] = found[0]
        count -= 1
        found[0] = found[count]
        sift(s, found, 0, count)


cdef void sift(const double* s, Py_ssize_t* heap, Py_ssize_t root, Py_ssize_t count) noexcept nogil:
    """Restore the heap of classes below `root`."""
    cdef Py_ssize_t j = heap[root], child = 2 * root + 1
    while child < count:
        if child + 1 < count and is_before(s, heap[child + 1], heap[child]):
            child += 1
        if is_before(s, j, heap[child]):
            break
        heap[root] = heap[child]
        root, child = child, 2 * child + 1
    heap[root] = j


cdef inline bint is_before(const double* s, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef double x = s[a] if s[a] == s[a] else -INFINITY
    cdef double y = s[b] if s[b] == s[b] else -INFINITY
    return x > y or (x == y and a < b)
