cdef struct Entry:
    double beta, before
    int j


cdef struct Row:
    # The current list, then the classes that only the list before has, with beta = 0
    Entry* entries
    int n_now, count, capacity


cdef class DualRows:
    cdef readonly Py_ssize_t n_samples, n_classes
    cdef Row* rows
    # The first FEW entries of each row, in one piece; longer lists have memory of their own.
    cdef Entry* block
    # A view has the lists of its owner.
    cdef DualRows owner
    cdef bint owned
    # The row that is open: classes of either list, beta now, and beta as the momentum has it.
    cdef Py_ssize_t count
    cdef int* classes
    cdef double* beta
    cdef double* ahead
    cdef int* slot
    cdef list _keep_alive

    cdef void expect(self, Py_ssize_t i) noexcept nogil
    cdef void expect_row(self, Py_ssize_t i) noexcept nogil
    cdef void open(self, Py_ssize_t i, double momentum) noexcept nogil
    # Of the open row
    cdef int replace(self, Py_ssize_t i, const Py_ssize_t* classes, const double* beta,
                     Py_ssize_t count) noexcept nogil
    cdef int grow(self, Row* row, Py_ssize_t needed) noexcept nogil
