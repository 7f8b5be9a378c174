"""The search for the best decision stump of every class. See fastmc.reference.stumps."""
import numpy as np
from libc.math cimport fabs


cdef inline void take1(const double* u0, Py_ssize_t m, double* rest) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(m):
        rest[c] -= u0[c]


# Four rows at a time: the number of a class stays in a register for four subtractions,
# in the order of the plain loop, so the bits are those of one by one.
cdef inline void take4(const double* u0, const double* u1, const double* u2, const double* u3,
                       Py_ssize_t m, double* rest) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(m):
        rest[c] = (((rest[c] - u0[c]) - u1[c]) - u2[c]) - u3[c]


cdef inline void take_last(const double* u0, Py_ssize_t m, double* rest, double* top) noexcept nogil:
    cdef Py_ssize_t c
    cdef double value
    for c in range(m):
        value = rest[c] - u0[c]
        rest[c] = value
        value = fabs(value)
        top[c] = value if value > top[c] else top[c]


cdef inline void take_bin(const double* U, const int* rows, Py_ssize_t count, Py_ssize_t m,
                          double* rest, double* top) noexcept nogil:
    cdef Py_ssize_t t = 0
    while t + 4 < count:
        take4(U + rows[t] * m, U + rows[t + 1] * m, U + rows[t + 2] * m, U + rows[t + 3] * m, m, rest)
        t += 4
    while t + 1 < count:
        take1(U + rows[t] * m, m, rest)
        t += 1
    take_last(U + rows[t] * m, m, rest, top)


cdef inline double take_column(const double* U, const int* rows, Py_ssize_t count, Py_ssize_t m,
                               double rest) noexcept nogil:
    cdef Py_ssize_t t
    for t in range(count):
        rest -= U[rows[t] * m]
    return rest


cdef class Bins:
    """See fastmc.reference.stumps.Bins."""

    cdef readonly Py_ssize_t n_samples
    cdef const int[::1] rows
    cdef const long long[::1] row_start
    cdef const long long[::1] bin_start
    cdef const long long[::1] usual

    def __init__(self, n_samples, rows, row_start, bin_start, usual):
        self.n_samples = n_samples
        self.rows = rows
        self.row_start = row_start
        self.bin_start = bin_start
        self.usual = usual

    def sweep(self, const double[:, ::1] U, const double[::1] half, double[::1] top,
              long long[::1] feature, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t m = U.shape[1], f, g, c
        cdef double[::1] scratch = np.empty(2 * m)
        cdef double* rest = &scratch[0]
        cdef double* reached = &scratch[m]
        with nogil:
            for c in range(m):
                reached[c] = top[c]
            for f in range(start, stop):
                for c in range(m):
                    rest[c] = half[c]
                for g in range(self.bin_start[f], self.usual[f]):
                    take_bin(&U[0, 0], &self.rows[self.row_start[g]],
                             self.row_start[g + 1] - self.row_start[g], m, rest, reached)
                for c in range(m):
                    rest[c] = half[c]
                for g in range(self.bin_start[f + 1] - 1, self.usual[f], -1):
                    take_bin(&U[0, 0], &self.rows[self.row_start[g]],
                             self.row_start[g + 1] - self.row_start[g], m, rest, reached)
                for c in range(m):
                    if reached[c] > top[c]:
                        top[c] = reached[c]
                        feature[c] = f

    def split(self, const double[:, ::1] U, const double[::1] half, const double[::1] top,
              const long long[::1] feature, long long[::1] last, signed char[::1] polarity):
        cdef Py_ssize_t m = U.shape[1], c, g, f
        cdef double rest
        with nogil:
            for c in range(m):
                f = feature[c]
                last[c] = -1
                rest = half[c]
                for g in range(self.bin_start[f], self.usual[f]):
                    rest = take_column(&U[0, c], &self.rows[self.row_start[g]],
                                       self.row_start[g + 1] - self.row_start[g], m, rest)
                    if fabs(rest) == top[c]:
                        last[c] = g
                        polarity[c] = 1 if rest >= 0.0 else -1
                        break
                if last[c] >= 0:
                    continue
                rest = half[c]
                for g in range(self.bin_start[f + 1] - 1, self.usual[f], -1):
                    rest = take_column(&U[0, c], &self.rows[self.row_start[g]],
                                       self.row_start[g + 1] - self.row_start[g], m, rest)
                    if fabs(rest) == top[c]:
                        last[c] = g - 1
                        polarity[c] = 1 if rest <= 0.0 else -1

    def outputs(self, const long long[::1] feature, const long long[::1] last,
                const signed char[::1] polarity, signed char[:, ::1] out):
        cdef Py_ssize_t j, i, t, f, g
        cdef signed char low, usual
        with nogil:
            for j in range(out.shape[1]):
                f = feature[j]
                low = -polarity[j]
                usual = low if self.usual[f] <= last[j] else -low
                for i in range(self.n_samples):
                    out[i, j] = usual
                for g in range(self.bin_start[f], self.bin_start[f + 1]):
                    for t in range(self.row_start[g], self.row_start[g + 1]):
                        out[self.rows[t], j] = low if g <= last[j] else -low


def edges(const double[:, ::1] U, const signed char[:, ::1] out, double[::1] edge):
    cdef Py_ssize_t i, c
    with nogil:
        for c in range(U.shape[1]):
            edge[c] = 0.0
        for i in range(U.shape[0]):
            for c in range(U.shape[1]):
                edge[c] += U[i, c] * out[i, c]
