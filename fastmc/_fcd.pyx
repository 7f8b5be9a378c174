"""Coordinate descent for the boosting master problem. See fastmc.reference.fcd.

Outputs are bit-packed, eight rows a byte, and looked up four rows at a time in tables of factors:
the sums and the rescaling become plain vector code without branches, and a coordinate reads an
eighth of what int8 outputs take. Sums run in eight lanes, so that vectors add in a fixed order.
"""
import numpy as np
from libc.math cimport INFINITY, exp, log, sqrt

# ONE[4 b + l] is bit l of the nibble b.
cdef double[64] ONE

cdef Py_ssize_t _b, _l
for _b in range(16):
    for _l in range(4):
        ONE[4 * _b + _l] = (_b >> _l) & 1


cdef void signed_sums(const unsigned char* bits, const double* u, Py_ssize_t n_bytes, double* plus,
                      double* minus) noexcept nogil:
    cdef double[8] p
    cdef double[8] n
    cdef Py_ssize_t b, l
    cdef const double* low
    cdef const double* high
    cdef const double* not_low
    cdef const double* not_high
    for l in range(8):
        p[l] = 0.0
        n[l] = 0.0
    for b in range(n_bytes):
        low, high = ONE + 4 * (bits[b] & 15), ONE + 4 * (bits[b] >> 4)
        not_low, not_high = ONE + 4 * (15 - (bits[b] & 15)), ONE + 4 * (15 - (bits[b] >> 4))
        for l in range(4):
            p[l] += u[8 * b + l] * low[l]
            n[l] += u[8 * b + l] * not_low[l]
            p[4 + l] += u[8 * b + 4 + l] * high[l]
            n[4 + l] += u[8 * b + 4 + l] * not_high[l]
    plus[0] = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
    minus[0] = ((n[0] + n[1]) + (n[2] + n[3])) + ((n[4] + n[5]) + (n[6] + n[7]))


cdef void rescale(const unsigned char* bits, double* u, Py_ssize_t n_bytes, double if_plus,
                  double if_minus) noexcept nogil:
    cdef double[64] factor
    cdef Py_ssize_t b, l
    cdef const double* low
    cdef const double* high
    for b in range(64):
        factor[b] = if_plus if ONE[b] == 1.0 else if_minus
    for b in range(n_bytes):
        low, high = factor + 4 * (bits[b] & 15), factor + 4 * (bits[b] >> 4)
        for l in range(4):
            u[8 * b + l] *= low[l]
            u[8 * b + 4 + l] *= high[l]


cdef void gather(const long long[::1] label, double[::1] r, double[:, ::1] e, Py_ssize_t c,
                 double[::1] u, double[::1] before) noexcept nogil:
    cdef Py_ssize_t i, y
    cdef double total
    for i in range(label.shape[0]):
        if label[i] == c:
            total = 0.0
            for y in range(e.shape[0]):
                total += e[y, i]
            # Keep r and e within range, whatever their product has become.
            if not 1e-100 < total < 1e100 and 0.0 < total < INFINITY:
                for y in range(e.shape[0]):
                    e[y, i] /= total
                r[i] *= total
                total = 1.0
            u[i] = r[i] * total
        else:
            u[i] = r[i] * e[c, i]
        before[i] = u[i]


cdef void scatter(const long long[::1] label, double[::1] r, double[:, ::1] e, Py_ssize_t c,
                  const double[::1] u, const double[::1] before) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(label.shape[0]):
        if before[i] > 0.0:
            if label[i] == c:
                r[i] *= u[i] / before[i]
            else:
                e[c, i] *= u[i] / before[i]


def fcd_sweep(const unsigned char[:, :, ::1] bits, double[:, ::1] w, double[::1] r,
              double[:, ::1] e, const long long[::1] label, const Py_ssize_t[::1] classes,
              const Py_ssize_t[::1] learners, double scale, double tol, double[::1] violation):
    cdef Py_ssize_t t, c, j, n_bytes = bits.shape[2], current = -1
    cdef double plus, minus, old, new, half = 0.5 / scale
    cdef bint changed = False
    cdef double[::1] u = np.zeros(8 * n_bytes)
    cdef double[::1] before = np.zeros(8 * n_bytes)
    with nogil:
        for t in range(classes.shape[0]):
            c, j = classes[t], learners[t]
            if c != current:
                if changed:
                    scatter(label, r, e, current, u, before)
                gather(label, r, e, c, u, before)
                current, changed = c, False
            signed_sums(&bits[c, j, 0], &u[0], n_bytes, &plus, &minus)
            old = w[c, j]
            violation[t] = scale * (plus - minus) - 1.0
            if old > 0.0 and violation[t] < 0.0:
                violation[t] = -violation[t]
            elif violation[t] < 0.0:
                violation[t] = 0.0
            if violation[t] > tol:
                new = 0.0
                if plus > 0.0:
                    new = max(0.0, old + log(plus / (sqrt(plus * minus + half * half) + half)))
                if new != old:
                    rescale(&bits[c, j, 0], &u[0], n_bytes, exp(old - new), exp(new - old))
                    w[c, j] = new
                    changed = True
        if changed:
            scatter(label, r, e, current, u, before)
