cdef extern from "_vector.h":
    const Py_ssize_t ROWS
    enum: CHUNK
    ctypedef struct vector_table:
        const char* name
        void (*scores_f)(const float*, const int*, Py_ssize_t, const float*, Py_ssize_t, float*) noexcept nogil
        void (*update_f)(const float*, const int*, Py_ssize_t, const float*, Py_ssize_t, float*) noexcept nogil
        float (*largest_f)(const float*, Py_ssize_t) noexcept nogil
        void (*lane_maxima_f)(const float*, Py_ssize_t, float*) noexcept nogil
        float (*lane_bound_f)(const float*, Py_ssize_t, Py_ssize_t) noexcept nogil
        Py_ssize_t (*at_least_f)(const float*, Py_ssize_t, float, Py_ssize_t*) noexcept nogil
        void (*extrapolate_f)(float*, float*, Py_ssize_t, float) noexcept nogil
        void (*add_squares_f)(const float*, Py_ssize_t, Py_ssize_t, double*) noexcept nogil
        void (*add_signed_f)(const float*, Py_ssize_t, Py_ssize_t, const double*, double*) noexcept nogil
        void (*scores_d)(const double*, const int*, Py_ssize_t, const double*, Py_ssize_t, double*) noexcept nogil
        void (*dense_scores_d)(const double*, Py_ssize_t, const double*, Py_ssize_t, double*, Py_ssize_t) noexcept nogil
        void (*update_d)(const double*, const int*, Py_ssize_t, const double*, Py_ssize_t, double*) noexcept nogil
        double (*largest_d)(const double*, Py_ssize_t) noexcept nogil
        void (*lane_maxima_d)(const double*, Py_ssize_t, double*) noexcept nogil
        double (*lane_bound_d)(const double*, Py_ssize_t, Py_ssize_t) noexcept nogil
        Py_ssize_t (*at_least_d)(const double*, Py_ssize_t, double, Py_ssize_t*) noexcept nogil
        void (*extrapolate_d)(double*, double*, Py_ssize_t, double) noexcept nogil
        void (*add_squares_d)(const double*, Py_ssize_t, Py_ssize_t, double*) noexcept nogil
        void (*add_signed_d)(const double*, Py_ssize_t, Py_ssize_t, const double*, double*) noexcept nogil
        void (*scores_df)(const double*, const int*, Py_ssize_t, const float*, Py_ssize_t, float*) noexcept nogil
        void (*update_df)(const double*, const int*, Py_ssize_t, const float*, Py_ssize_t, float*) noexcept nogil
        void (*scores_fd)(const double*, const int*, Py_ssize_t, const float*, Py_ssize_t, double*) noexcept nogil
        void (*dense_scores_fd)(const double*, Py_ssize_t, const float*, Py_ssize_t, double*, Py_ssize_t) noexcept nogil

    void PREFETCH(const void* address) noexcept nogil

# A module includes the header only here: the others share its table.
cdef const vector_table* table() noexcept nogil
