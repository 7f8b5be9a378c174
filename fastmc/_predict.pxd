from fastmc._samples cimport Samples, real

# Scores of rows from i on, in double, `pitch` apart: of one row, or of ROWS dense ones, which `x` has room for
cdef void score_rows(Samples samples, const real* weights, Py_ssize_t i, Py_ssize_t count, double* x, double* out,
                     Py_ssize_t pitch) noexcept nogil
