/* What is done with a row of X, for one instruction set, one type VALUE of its values, REAL of sums and WEIGHT of
   weights: scores, those of DENSE rows, and the UPDATE of weights of type REAL, where these are defined. */

#if VECTORS
typedef REAL NAME(full) __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));
typedef REAL NAME(half) __attribute__((vector_size(BYTES / 2), aligned(sizeof(REAL)), may_alias));
#define SIZE (BYTES / sizeof(REAL) * sizeof(WEIGHT))
typedef WEIGHT NAME(full_w) __attribute__((vector_size(SIZE), aligned(sizeof(WEIGHT)), may_alias));
typedef WEIGHT NAME(half_w) __attribute__((vector_size(SIZE / 2), aligned(sizeof(WEIGHT)), may_alias));
typedef REAL NAME(one);
typedef WEIGHT NAME(one_w);
/* The compiler may convert half a vector at a time. */
#if defined(WIDEN)
#define AS_full(value, type) ((type)WIDEN(value))
#else
#define AS_full __builtin_convertvector
#endif
#define AS_half __builtin_convertvector
#define AS_one(value, type) ((type)(value))

/* n vectors of scores, held in registers while all non-zeros of the row are added. */
#define TILE(size, n) do { \
    NAME(size) sum[n] = {0}; \
    for (Py_ssize_t t = 0; t < nnz; t++) { \
        const NAME(size##_w) *row = (const NAME(size##_w) *)(w + at[t] * m + j); \
        const REAL value = (REAL)x[t]; \
        _Pragma("GCC unroll 8") \
        for (int k = 0; k < n; k++) sum[k] += value * AS_##size(row[k], NAME(size)); \
    } \
    _Pragma("GCC unroll 8") \
    for (int k = 0; k < n; k++) ((NAME(size) *)(out + j))[k] = sum[k]; \
    j += n * (Py_ssize_t)(sizeof(NAME(size)) / sizeof(REAL)); \
} while (0)

#endif

/* out[j] = sum over t of x[t] w[at[t] m + j], j < m */
TARGET static void NAME(scores)(const VALUE *x, const int *at, Py_ssize_t nnz, const WEIGHT *w,
                                Py_ssize_t m, REAL *out) {
    Py_ssize_t j = 0;
#if VECTORS
    TILES(TILE);
#endif
    for (; j < m; j++) {
        REAL sum = 0;
        for (Py_ssize_t t = 0; t < nnz; t++) sum += (REAL)x[t] * (REAL)w[at[t] * m + j];
        out[j] = sum;
    }
}

#ifdef DENSE
#if VECTORS
/* n vectors of scores of each of ROWS dense rows. */
#define DENSE_TILE(size, n) do { \
    NAME(size) sum[ROWS * n] = {0}; \
    for (Py_ssize_t t = 0; t < d; t++) { \
        const NAME(size##_w) *row = (const NAME(size##_w) *)(w + t * m + j); \
        _Pragma("GCC unroll 8") \
        for (int k = 0; k < ROWS * n; k++) \
            sum[k] += x[k / n * d + t] * AS_##size(row[k % n], NAME(size)); \
    } \
    _Pragma("GCC unroll 8") \
    for (int k = 0; k < ROWS * n; k++) ((NAME(size) *)(out + k / n * pitch + j))[k % n] = sum[k]; \
    j += n * (Py_ssize_t)(sizeof(NAME(size)) / sizeof(REAL)); \
} while (0)
#endif

/* The same for ROWS dense rows of d numbers, one after the other, with all of W, to rows of `out` that lie
   `pitch` apart: w[t m + j] is fetched once for all of them, and their sums need not wait for each other. */
TARGET static void NAME(dense_scores)(const VALUE *x, Py_ssize_t d, const WEIGHT *w, Py_ssize_t m, REAL *out,
                                      Py_ssize_t pitch) {
    Py_ssize_t j = 0;
#if VECTORS
    const Py_ssize_t lanes = BYTES / sizeof(REAL);
    while (m - j >= 2 * lanes) DENSE_TILE(full, 2);
    if (m - j >= lanes) DENSE_TILE(full, 1);
    if (m - j >= lanes / 2) DENSE_TILE(half, 1);
    while (m - j >= 2) DENSE_TILE(one, 2);
#endif
    for (; j < m; j++)
        for (int r = 0; r < ROWS; r++) {
            REAL sum = 0;
            for (Py_ssize_t t = 0; t < d; t++) sum += x[r * d + t] * (REAL)w[t * m + j];
            out[r * pitch + j] = sum;
        }
}
#endif

#ifdef UPDATE
#if VECTORS
/* n vectors of coefficients, held in registers while they are added to the classes of all non-zeros. */
#define UPDATE_TILE(size, n) do { \
    NAME(size) change[n]; \
    _Pragma("GCC unroll 8") \
    for (int k = 0; k < n; k++) change[k] = ((const NAME(size) *)(coef + j))[k]; \
    for (Py_ssize_t t = 0; t < nnz; t++) { \
        NAME(size) *row = (NAME(size) *)(w + at[t] * m + j); \
        const REAL value = (REAL)x[t]; \
        _Pragma("GCC unroll 8") \
        for (int k = 0; k < n; k++) row[k] += value * change[k]; \
    } \
    j += n * (Py_ssize_t)(sizeof(NAME(size)) / sizeof(REAL)); \
} while (0)
#endif

/* w[at[t] m + j] += x[t] coef[j], j < m */
TARGET static void NAME(update)(const VALUE *x, const int *at, Py_ssize_t nnz,
                                const REAL *coef, Py_ssize_t m, REAL *w) {
    Py_ssize_t j = 0;
#if VECTORS
    if (m <= 8 * (Py_ssize_t)(BYTES / sizeof(REAL))) TILES(UPDATE_TILE);
#endif
    /* Coefficients that registers cannot hold: one row of W after the other. */
    for (Py_ssize_t t = 0; t < nnz && j < m; t++) {
        REAL *row = w + at[t] * m;
        const REAL value = (REAL)x[t];
        Py_ssize_t i = j;
#if VECTORS
        const Py_ssize_t lanes = BYTES / sizeof(REAL);
        for (; i + lanes <= m; i += lanes) *(NAME(full) *)(row + i) += value * *(const NAME(full) *)(coef + i);
        for (; i + lanes / 2 <= m; i += lanes / 2)
            *(NAME(half) *)(row + i) += value * *(const NAME(half) *)(coef + i);
#endif
        for (; i < m; i++) row[i] += value * coef[i];
    }
}
#endif

#undef TILE
#undef DENSE_TILE
#undef UPDATE_TILE
#undef DENSE
#undef UPDATE
#undef VALUE
#undef AS_full
#undef AS_half
#undef AS_one
#undef SIZE
#undef WEIGHT
