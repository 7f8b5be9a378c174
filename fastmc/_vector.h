/* Vector code without -march: every loop of _vector_set.h compiled for each instruction set, and a
   table of function pointers for the one in use. Compilers that cannot do that, and other processors,
   have the plain loops, which their own vectorisation may widen. */

#ifndef VECTOR_H
#define VECTOR_H
#include <Python.h>

#define TABLE(real, suffix) \
    void (*scores_##suffix)(const real *, const int *, Py_ssize_t, const real *, Py_ssize_t, real *); \
    void (*update_##suffix)(const real *, const int *, Py_ssize_t, const real *, Py_ssize_t, real *); \
    real (*largest_##suffix)(const real *, Py_ssize_t); \
    void (*lane_maxima_##suffix)(const real *, Py_ssize_t, real *); \
    real (*lane_bound_##suffix)(const real *, Py_ssize_t, Py_ssize_t); \
    Py_ssize_t (*at_least_##suffix)(const real *, Py_ssize_t, real, Py_ssize_t *); \
    void (*extrapolate_##suffix)(real *, real *, Py_ssize_t, real); \
    void (*add_squares_##suffix)(const real *, Py_ssize_t, Py_ssize_t, double *); \
    void (*add_signed_##suffix)(const real *, Py_ssize_t, Py_ssize_t, const double *, double *);

/* Rows that dense_scores takes at once, and classes looked at together when searching */
#define ROWS 4
#define CHUNK 16

/* Beside those of one type for all: double values with float weights, and float weights with double scores */
typedef struct {
    const char *name;
    TABLE(float, f)
    TABLE(double, d)
    void (*scores_df)(const double *, const int *, Py_ssize_t, const float *, Py_ssize_t, float *);
    void (*update_df)(const double *, const int *, Py_ssize_t, const float *, Py_ssize_t, float *);
    void (*dense_scores_d)(const double *, Py_ssize_t, const double *, Py_ssize_t, double *, Py_ssize_t);
    void (*scores_fd)(const double *, const int *, Py_ssize_t, const float *, Py_ssize_t, double *);
    void (*dense_scores_fd)(const double *, Py_ssize_t, const float *, Py_ssize_t, double *, Py_ssize_t);
} vector_table;

#undef TABLE

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif
#endif

/* The module that owns the tables sets VECTOR_TABLES; the others see the type alone. */
#ifdef VECTOR_TABLES
#include <float.h>

/* Vectors as types of the language, and conversions between them */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9)
#define VECTORS 1
#else
#define VECTORS 0
#endif

#if VECTORS && defined(__x86_64__)
#define X86 1
#include <immintrin.h>
#else
#define X86 0
#endif

#if defined(__GNUC__)
#define BIT_COUNT(bits) __builtin_popcount(bits)
#else
static int BIT_COUNT(unsigned bits) {
    int count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}
#endif

#if X86
/* Vectors of 16 bytes, which all of these processors have */
#define FEW(s) _Generic((s), const float *: _mm_loadu_ps, const double *: _mm_loadu_pd)(s)
#define MAX_FEW(a, b) _Generic((a), __m128: _mm_max_ps, __m128d: _mm_max_pd)(a, b)
#define BEST_OF(a) _Generic((a), __m128: best_of_ps, __m128d: best_of_pd)(a)

static inline float best_of_ps(__m128 a) {
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}

static inline double best_of_pd(__m128d a) { return _mm_cvtsd_f64(_mm_max_sd(a, _mm_unpackhi_pd(a, a))); }
#endif

/* All of m classes from j on, with TILE(size, n) for n vectors of one of the sizes that there are for REAL */
#define TILES(TILE) do { \
    const Py_ssize_t lanes = BYTES / sizeof(REAL); \
    while (m - j >= lanes / 2) \
        /* Whole vectors, or as many half ones where that takes a single loop. */ \
        switch ((m - j) / (lanes / 2)) { \
            case 1: TILE(half, 1); break; \
            case 2: TILE(full, 1); break; \
            case 3: TILE(half, 3); break; \
            case 4: TILE(full, 2); break; \
            case 5: TILE(half, 5); break; \
            case 6: case 7: TILE(full, 3); break; \
            case 8: case 9: TILE(full, 4); break; \
            case 10: case 11: TILE(full, 5); break; \
            case 12: case 13: TILE(full, 6); break; \
            case 14: case 15: TILE(full, 7); break; \
            default: TILE(full, 8); \
        } \
    switch (m - j) { \
        case 0: break; \
        case 1: TILE(one, 1); break; \
        case 2: TILE(one, 2); break; \
        case 3: TILE(one, 3); break; \
        default: TILE(one, 4); \
    } \
} while (0)

#define FUNCTIONS(isa) { #isa, \
    isa##_f_scores, isa##_f_update, isa##_f_largest, isa##_f_lane_maxima, \
    isa##_f_lane_bound, isa##_f_at_least, isa##_f_extrapolate, isa##_f_add_squares, isa##_f_add_signed, \
    isa##_d_scores, isa##_d_update, isa##_d_largest, isa##_d_lane_maxima, \
    isa##_d_lane_bound, isa##_d_at_least, isa##_d_extrapolate, isa##_d_add_squares, isa##_d_add_signed, \
    isa##_df_scores, isa##_df_update, isa##_d_dense_scores, isa##_fd_scores, isa##_fd_dense_scores }

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#define ISA baseline
#define TARGET
#define BYTES 16
#if X86
#define MAX_F(a, b) _mm_max_ps((__m128)(a), (__m128)(b))
#define MAX_D(a, b) _mm_max_pd((__m128d)(a), (__m128d)(b))
#define AT_LEAST_F(s, floor) _mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(s), _mm_set1_ps(floor)))
#define AT_LEAST_D(s, floor) _mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(s), _mm_set1_pd(floor)))
#endif
#include "_vector_set.h"

#if X86
#define ISA avx2
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define MAX_F(a, b) _mm256_max_ps((__m256)(a), (__m256)(b))
#define MAX_D(a, b) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#define AT_LEAST_F(s, floor) \
    _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(s), _mm256_set1_ps(floor), _CMP_GE_OQ))
#define AT_LEAST_D(s, floor) \
    _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(s), _mm256_set1_pd(floor), _CMP_GE_OQ))
#define WIDEN_D(v) _mm256_cvtps_pd((__m128)(v))
#include "_vector_set.h"

#define ISA avx512
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw")))
#define BYTES 64
#define MAX_F(a, b) _mm512_max_ps((__m512)(a), (__m512)(b))
#define MAX_D(a, b) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#define AT_LEAST_F(s, floor) _mm512_cmp_ps_mask(_mm512_loadu_ps(s), _mm512_set1_ps(floor), _CMP_GE_OQ)
#define AT_LEAST_D(s, floor) _mm512_cmp_pd_mask(_mm512_loadu_pd(s), _mm512_set1_pd(floor), _CMP_GE_OQ)
#define WIDEN_D(v) _mm512_cvtps_pd((__m256)(v))
#include "_vector_set.h"

static const vector_table vector_tables[] = {FUNCTIONS(baseline), FUNCTIONS(avx2), FUNCTIONS(avx512)};

static int vector_supported(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") ? 3 : 2;
}
#else
static const vector_table vector_tables[] = {FUNCTIONS(baseline)};

static int vector_supported(void) { return 1; }
#endif
#endif
