"""Coordinate descent for the boosting master problem. See fastmc.reference.fcd.

Outputs are bit-packed, eight rows a byte, and looked up four rows at a time in tables of factors:
the sums and the rescaling become vector code without branches, and a coordinate reads an eighth of
what int8 outputs take. Sums run in eight lanes, so that vectors of any width add in one order.
"""
import numpy as np
from libc.math cimport INFINITY, exp, log, sqrt

# ONE[4 b + l] is bit l of the nibble b.
cdef double[64] ONE

cdef Py_ssize_t _b, _l
for _b in range(16):
    for _l in range(4):
        ONE[4 * _b + _l] = (_b >> _l) & 1


cdef extern from *:
    """
    /* Compiled for wide vectors besides; the processor picks when the module is loaded. Nothing is
       contracted and the sums always have eight lanes, so both give the same bits. */
    #if defined(__GNUC__)
    typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias));
    #define LANES(x) (*(const lanes *)(x))
    #else
    typedef struct { double x[4]; } lanes;
    #endif
    #if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    #define WIDE __attribute__((target_clones("avx2", "default")))
    #else
    #define WIDE
    #endif

    WIDE static void signed_sums(const unsigned char *bits, const double *u, Py_ssize_t n_bytes,
                                 const double *one, double *plus, double *minus) {
        lanes p[2] = {{0.0}}, n[2] = {{0.0}};
        const double *q = (const double *)p, *m = (const double *)n;
        for (Py_ssize_t b = 0; b < n_bytes; b++) {
            int low = bits[b] & 15, high = bits[b] >> 4;
    #if defined(__GNUC__)
            p[0] += LANES(u + 8 * b) * LANES(one + 4 * low);
            p[1] += LANES(u + 8 * b + 4) * LANES(one + 4 * high);
            n[0] += LANES(u + 8 * b) * LANES(one + 4 * (15 - low));
            n[1] += LANES(u + 8 * b + 4) * LANES(one + 4 * (15 - high));
    #else
            for (int l = 0; l < 4; l++) {
                p[0].x[l] += u[8 * b + l] * one[4 * low + l];
                p[1].x[l] += u[8 * b + 4 + l] * one[4 * high + l];
                n[0].x[l] += u[8 * b + l] * one[4 * (15 - low) + l];
                n[1].x[l] += u[8 * b + 4 + l] * one[4 * (15 - high) + l];
            }
    #endif
        }
        *plus = ((q[0] + q[1]) + (q[2] + q[3])) + ((q[4] + q[5]) + (q[6] + q[7]));
        *minus = ((m[0] + m[1]) + (m[2] + m[3])) + ((m[4] + m[5]) + (m[6] + m[7]));
    }

    WIDE static void rescale(const unsigned char *bits, double *u, Py_ssize_t n_bytes,
                             const double *factor) {
        for (Py_ssize_t b = 0; b < n_bytes; b++) {
            const double *low = factor + 4 * (bits[b] & 15), *high = factor + 4 * (bits[b] >> 4);
    #if defined(__GNUC__)
            *(lanes *)(u + 8 * b) *= LANES(low);
            *(lanes *)(u + 8 * b + 4) *= LANES(high);
    #else
            for (int l = 0; l < 4; l++) u[8 * b + l] *= low[l];
            for (int l = 0; l < 4; l++) u[8 * b + 4 + l] *= high[l];
    #endif
        }
    }
    """
    void signed_sums(const unsigned char* bits, const double* u, Py_ssize_t n_bytes, const double* one,
                     double* plus, double* minus) noexcept nogil
    void rescale(const unsigned char* bits, double* u, Py_ssize_t n_bytes,
                 const double* factor) noexcept nogil


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
    cdef Py_ssize_t b
    cdef double plus, minus, old, new, up, down, half = 0.5 / scale
    cdef double[64] factor
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
            signed_sums(&bits[c, j, 0], &u[0], n_bytes, ONE, &plus, &minus)
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
                    up, down = exp(new - old), exp(old - new)
                    for b in range(64):
                        factor[b] = down if ONE[b] == 1.0 else up
                    rescale(&bits[c, j, 0], &u[0], n_bytes, factor)
                    w[c, j] = new
                    changed = True
        if changed:
            scatter(label, r, e, current, u, before)
