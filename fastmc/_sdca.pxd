from fastmc._dual_rows cimport DualRows
from fastmc._losses cimport Loss
from fastmc._order cimport Order
from fastmc._samples cimport Samples, real

cdef struct Block:
    Py_ssize_t y
    double weight, q, gamma
    double own
    # The least of the list's scores, now and before the step, and a bound of those that are in no list
    double least, bound


cdef class Step:
    cdef Samples samples
    cdef Loss loss
    cdef DualRows rows
    cdef double lam_n, smoothing, momentum
    cdef double* gaps
    cdef double* gains
    cdef double* support
    cdef double* change
    cdef double* dense
    cdef list _keep_alive

    cdef Py_ssize_t take(self, Py_ssize_t i, real* scores, real* coef, Py_ssize_t* classes) noexcept nogil

cdef void extrapolate_rows(Samples samples, real* weights, real* last, Py_ssize_t size, double momentum) noexcept nogil
cdef void add_row_squares(Samples samples, const real* weights, Py_ssize_t n_rows, double* sums) noexcept nogil
cdef void expect(Samples samples, DualRows rows, Order order, Py_ssize_t position) noexcept nogil
