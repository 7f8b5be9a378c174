from fastmc._vector cimport vector_table

ctypedef fused real:
    float
    double


cdef class Samples:
    cdef readonly Py_ssize_t n_samples, n_features, n_classes, stride
    cdef readonly double bias
    cdef const long long* label
    cdef const double* weight
    cdef const double* sqnorm
    # Whether values are float32, and column numbers 64 bits wide
    cdef bint single, wide
    cdef const void* values
    cdef const void* indices
    cdef const long long* indptr
    # Where the parts of the rows of a CSR matrix begin and end, n_parts + 1 places a row
    cdef const long long* places
    cdef readonly Py_ssize_t n_parts
    cdef Py_ssize_t width
    cdef const double* cost
    cdef bint cost_per_sample
    cdef const vector_table* vector
    # The loaded row; one Samples serves one thread at a time.
    cdef Py_ssize_t nnz
    # Its values, NULL in the precision that X has not until they are asked for
    cdef const double* doubles
    cdef const float* floats
    cdef const int* column
    # Where a row is put together that is not of that form
    cdef double* own_doubles
    cdef float* own_floats
    cdef int* own_column
    cdef Py_ssize_t* changed
    cdef list _keep_alive

    cdef void expect(self, Py_ssize_t i) noexcept nogil
    cdef void expect_row(self, Py_ssize_t i) noexcept nogil
    # The same for a part of a row
    cdef void expect_part(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil
    cdef void expect_part_row(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil
    cdef void _expect_entries(self, Py_ssize_t start, Py_ssize_t count) noexcept nogil
    cdef void load(self, Py_ssize_t i) noexcept nogil
    # Of CSR rows, the columns from `first` up to `last` alone, with their numbers in X; the bias is the last.
    cdef void load_columns(self, Py_ssize_t i, Py_ssize_t first, Py_ssize_t last) noexcept nogil
    # Of CSR rows, what lies between two of the columns that were given to `cut`, with the numbers in X.
    cdef void load_part(self, Py_ssize_t i, Py_ssize_t part) noexcept nogil
    cdef void _take(self, Py_ssize_t start, Py_ssize_t count) noexcept nogil
    cdef Py_ssize_t _place(self, Py_ssize_t low, Py_ssize_t high, Py_ssize_t column) noexcept nogil
    cdef void _append_bias(self) noexcept nogil
    # The values of the loaded row in double precision
    cdef const double* x(self) noexcept nogil
    cdef void scores(self, const real* weights, real* out) noexcept nogil
    # The sums in double whatever the precision of W
    cdef void exact_scores(self, const real* weights, double* out) noexcept nogil
    cdef void class_scores(self, const double* weights, const Py_ssize_t* classes, Py_ssize_t count,
                           double* out) noexcept nogil
    cdef double class_cost(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    # Up to a number that is the same for all classes: 1 less for the own class is 1 more for all others.
    cdef void add_cost(self, Py_ssize_t i, real* scores) noexcept nogil
    cdef double margin(self, double* scores, Py_ssize_t y) noexcept nogil
    cdef void update(self, const double* coef, double* weights) noexcept nogil
    # `width` classes from `weights` and `coef` on; those beside `classes` have coef = 0.
    cdef void update_classes(self, const real* coef, const Py_ssize_t* classes, Py_ssize_t count,
                             Py_ssize_t width, real* weights) noexcept nogil
