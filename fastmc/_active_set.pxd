cdef class ActiveSet:
    cdef readonly Py_ssize_t n_samples, slot, cache_size
    cdef Py_ssize_t free, n_free, clock
    # Per sample: first atom, number of atoms, weight of the zero corner.
    cdef Py_ssize_t[::1] head
    cdef Py_ssize_t[::1] count
    cdef double[::1] zero_weight
    # Per atom: next atom, size, stamp and classes; weight and values.
    cdef Py_ssize_t[:, ::1] numbers
    cdef double[:, ::1] reals

    cdef Py_ssize_t put(self, Py_ssize_t i, const double* corner, Py_ssize_t m, Py_ssize_t label) noexcept nogil
    cdef bint same(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil
    cdef double height(self, Py_ssize_t atom, const double* shifted, Py_ssize_t label) noexcept nogil
    cdef void add(self, Py_ssize_t atom, double factor, double* delta, Py_ssize_t label) noexcept nogil
    cdef Py_ssize_t lowest(self, Py_ssize_t i, const double* shifted, Py_ssize_t label) noexcept nogil
    cdef Py_ssize_t highest(self, Py_ssize_t i, const double* shifted, Py_ssize_t label) noexcept nogil
    cdef double get_weight(self, Py_ssize_t i, Py_ssize_t atom) noexcept nogil
    cdef void set_weight(self, Py_ssize_t i, Py_ssize_t atom, double weight) noexcept nogil
    cdef void scale(self, Py_ssize_t i, double factor) noexcept nogil
    cdef void tidy(self, Py_ssize_t i, bint normalise) noexcept nogil
    cdef void remove(self, Py_ssize_t i, Py_ssize_t atom) noexcept nogil
    cdef void point(self, Py_ssize_t i, double weight, double* alpha, Py_ssize_t m,
                    Py_ssize_t label) noexcept nogil
    cdef void mark(self, Py_ssize_t i, char* marked) noexcept nogil
