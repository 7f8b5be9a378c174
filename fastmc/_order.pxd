cdef class Order:
    cdef Py_ssize_t next(self, Py_ssize_t position) noexcept nogil
    cdef Py_ssize_t soon(self, Py_ssize_t position) noexcept nogil
    cdef void saw(self, Py_ssize_t i, double gap) noexcept nogil


cdef class ListOrder(Order):
    cdef const Py_ssize_t[::1] samples


cdef class GapOrder(Order):
    cdef readonly Py_ssize_t n_leaves
    cdef Py_ssize_t base
    cdef const Py_ssize_t[::1] samples
    cdef Py_ssize_t[::1] leaf
    cdef double[::1] tree
    cdef const double[::1] uniforms
