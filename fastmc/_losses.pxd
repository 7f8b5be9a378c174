cdef class Loss:
    cdef readonly Py_ssize_t n_classes, n_ranks
    cdef const double* rho
    # All rank weights are equal: closed forms serve instead of the general routine.
    cdef public bint uniform
    # Scratch of n_classes entries each; one Loss serves one thread at a time.
    cdef Py_ssize_t* order
    cdef Py_ssize_t* spare_order
    cdef Py_ssize_t* start
    cdef double* target
    cdef double* margin
    cdef double* z
    cdef double* spare_z
    cdef double* sum_z
    cdef double* sum_rho
    cdef double* block
    cdef double* low
    cdef double* low_cap
    cdef double* low_rho
    cdef double* high
    cdef double* high_cap
    cdef double* high_rho
    # The best classes besides those of a sample's list, and how many; see _sdca.pyx.
    cdef double* rest_z
    cdef Py_ssize_t* rest_order
    cdef Py_ssize_t n_rest
    # The solution, in the order of `order` and z, and its scale t.
    cdef double* beta
    cdef double scale
    cdef list _keep_alive

    cdef double c_oracle(self, const double* scores, Py_ssize_t label, double* vertex) noexcept nogil
    cdef void c_project(self, const double* target, Py_ssize_t label, double weight,
                        double* dual) noexcept nogil
    cdef void c_block_max(self, const double* scores, Py_ssize_t label, double weight, double q,
                          double gamma, double* dual) noexcept nogil
    cdef double sorted_value(self, Py_ssize_t count, double own) noexcept nogil
    cdef double least(self, double weight, double own) noexcept nogil
    cdef double solve(self, Py_ssize_t count, double weight, double own) noexcept nogil
    cdef void rank(self, const double* values, Py_ssize_t skip, Py_ssize_t count) noexcept nogil
    cdef Py_ssize_t select(self, Py_ssize_t held, Py_ssize_t count) noexcept nogil
    cdef void insert(self, Py_ssize_t first, Py_ssize_t last, double value, Py_ssize_t j) noexcept nogil
    cdef void sift(self, Py_ssize_t root, Py_ssize_t count) noexcept nogil
    cdef void make_heap(self, Py_ssize_t count) noexcept nogil
    cdef void pop(self, Py_ssize_t count, Py_ssize_t to) noexcept nogil
    cdef void use_spare(self) noexcept nogil
    cdef Py_ssize_t trim(self, Py_ssize_t count, double weight, double* floor) noexcept nogil
    cdef Py_ssize_t push(self, const double* z, Py_ssize_t j, double sum_rho, double t,
                         Py_ssize_t b) noexcept nogil
    cdef double margins(self, const double* target, Py_ssize_t label) noexcept nogil
    cdef Py_ssize_t gather(self, Py_ssize_t label, double weight, double least) noexcept nogil
    cdef void pool(self, Py_ssize_t count, Py_ssize_t first_rank, double weight, double t,
                   double* value, double* cap, double* mean_rho) noexcept nogil
    cdef double threshold(self, Py_ssize_t count, double own, Py_ssize_t* n_low,
                          Py_ssize_t* n_high) noexcept nogil
    cdef double solve_box(self, Py_ssize_t count, double cap, double own) noexcept nogil
    cdef double walk(self, Py_ssize_t count, double cap, double own, Py_ssize_t n_caps, Py_ssize_t* n_low,
                     Py_ssize_t* n_high) noexcept nogil
    cdef void fill_box(self, Py_ssize_t count, double cap, double u, Py_ssize_t n_caps, Py_ssize_t n_low,
                       Py_ssize_t n_high) noexcept nogil
    cdef double behind(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    cdef void fill(self, Py_ssize_t kept, Py_ssize_t count, double u, Py_ssize_t n_low,
                   Py_ssize_t n_high) noexcept nogil


cdef class UsunierLoss(Loss):
    pass


cdef class TopKLoss(Loss):
    cdef readonly bint own_class

    cdef double solve_capped(self, Py_ssize_t count, double weight, double own) noexcept nogil
    cdef double value_at_zero(self, Py_ssize_t count, double own, double weight) noexcept nogil
    cdef double excess(self, Py_ssize_t count, double own, double weight, double t, double* u,
                       double* slope, Py_ssize_t* n_low, Py_ssize_t* n_high) noexcept nogil
