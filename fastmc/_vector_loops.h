/* The loops over classes for one instruction set and one type of weights. _vector_set.h includes this
   once for each type, with REAL, LARGEST (of REAL), BYTES (of a vector), TARGET and NAME() set, and where the
   processor has instructions for them MAX of two vectors and AT_LEAST, bits for a vector in memory. Element j of a
   result depends on elements j alone, in the order of t, so that vectors of all widths give the same bits. */

#define VALUE REAL
#define WEIGHT REAL
#define UPDATE
#include "_vector_rows.h"

/* The largest s[j] of those j that leave the same rest by CHUNK, for whole chunks; returns how many s that are */
TARGET static inline Py_ssize_t NAME(whole_chunks)(const REAL *s, Py_ssize_t m, REAL *best) {
    Py_ssize_t j = CHUNK;
#if defined(MAX)
    enum { N = CHUNK * sizeof(REAL) / BYTES };
    NAME(full) top[N];
    for (int k = 0; k < N; k++) top[k] = ((const NAME(full) *)s)[k];
    for (; j + CHUNK <= m; j += CHUNK)
        for (int k = 0; k < N; k++) top[k] = (NAME(full))MAX(((const NAME(full) *)(s + j))[k], top[k]);
    for (int k = 0; k < N; k++) ((NAME(full) *)best)[k] = top[k];
#else
    for (int l = 0; l < CHUNK; l++) best[l] = s[l];
    for (; j + CHUNK <= m; j += CHUNK)
        for (int l = 0; l < CHUNK; l++) best[l] = s[j + l] > best[l] ? s[j + l] : best[l];
#endif
    return j;
}

/* A bit for each of CHUNK numbers, set where s[l] >= floor */
TARGET static inline unsigned NAME(hits)(const REAL *s, REAL floor) {
    unsigned bits = 0;
#if defined(AT_LEAST)
    for (int l = 0; l < CHUNK; l += BYTES / sizeof(REAL)) bits |= (unsigned)AT_LEAST(s + l, floor) << l;
#else
    for (int l = 0; l < CHUNK; l++) bits |= s[l] >= floor ? 1u << l : 0u;
#endif
    return bits;
}

/* The largest of s[0..m-1] */
TARGET static REAL NAME(largest)(const REAL *s, Py_ssize_t m) {
    REAL lanes[CHUNK], top = s[0];
    Py_ssize_t j = m >= CHUNK ? NAME(whole_chunks)(s, m, lanes) : 0;
#if X86
    enum { COUNT = 16 / sizeof(REAL) };
    if (m >= COUNT) {
        /* The last few twice, rather than one after the other. */
        __typeof__(FEW(s)) best = FEW(s + m - COUNT);
        for (int l = 0; l < CHUNK && m >= CHUNK; l += COUNT) best = MAX_FEW(best, FEW((const REAL *)lanes + l));
        for (; j + COUNT < m; j += COUNT) best = MAX_FEW(best, FEW(s + j));
        return BEST_OF(best);
    }
#else
    for (int l = 0; l < CHUNK && m >= CHUNK; l++) top = lanes[l] > top ? lanes[l] : top;
#endif
    for (; j < m; j++) top = s[j] > top ? s[j] : top;
    return top;
}

/* The largest s[j] of those j < m that leave the same rest by CHUNK, m >= CHUNK */
TARGET static void NAME(lane_maxima)(const REAL *s, Py_ssize_t m, REAL *best) {
    Py_ssize_t j = NAME(whole_chunks)(s, m, best);
    for (int l = 0; j < m; j++, l++) best[l] = s[j] > best[l] ? s[j] : best[l];
}

/* A lower bound of the count-th largest of s[0..m-1]: that of the best of each of CHUNK lanes */
TARGET static REAL NAME(lane_bound)(const REAL *s, Py_ssize_t m, Py_ssize_t count) {
    REAL best[CHUNK], bound = -LARGEST;
    if (count > CHUNK || m < CHUNK) return bound;
    NAME(lane_maxima)(s, m, best);
    for (int l = 0; l < CHUNK; l++) {
        /* All of them: which is the largest so far cannot be guessed. */
        const REAL rank = BIT_COUNT(NAME(hits)(best, best[l])) >= count ? best[l] : -LARGEST;
        bound = rank > bound ? rank : bound;
    }
    return bound;
}

/* Numbers of all j with s[j] >= floor into found; returns how many */
TARGET static Py_ssize_t NAME(at_least)(const REAL *s, Py_ssize_t m, REAL floor, Py_ssize_t *found) {
    Py_ssize_t j = 0, count = 0;
#if VECTORS
    for (; j + CHUNK <= m; j += CHUNK)
        for (unsigned bits = NAME(hits)(s + j, floor); bits; bits &= bits - 1)
            found[count++] = j + __builtin_ctz(bits);
#endif
    for (; j < m; j++)
        if (s[j] >= floor) found[count++] = j;
    return count;
}

/* w, last = w + b (w - last), w */
TARGET static void NAME(extrapolate)(REAL *w, REAL *last, Py_ssize_t count, REAL b) {
    for (Py_ssize_t j = 0; j < count; j++) {
        const REAL now = w[j];
        w[j] = now + b * (now - last[j]);
        last[j] = now;
    }
}

/* sums[j] += sum over the rows of w[row m + j] squared */
TARGET static void NAME(add_squares)(const REAL *w, Py_ssize_t rows, Py_ssize_t m, double *sums) {
    /* Short rows four at a time: a sum waits for its last store a quarter as often. */
    for (; rows >= 4 && m <= 64; rows -= 4, w += 4 * m)
        for (Py_ssize_t j = 0; j < m; j++) {
            double sum = sums[j];
            for (int r = 0; r < 4; r++) sum += (double)w[r * m + j] * (double)w[r * m + j];
            sums[j] = sum;
        }
    for (Py_ssize_t t = 0; t < rows; t++, w += m)
        for (Py_ssize_t j = 0; j < m; j++) sums[j] += (double)w[j] * (double)w[j];
}

/* sums[4 t + j % 4] += signs[j] w[t m + j] for all rows t, m a multiple of 4 */
TARGET static void NAME(add_signed)(const REAL *w, Py_ssize_t rows, Py_ssize_t m, const double *signs, double *sums) {
    for (Py_ssize_t t = 0; t < rows; t++, w += m, sums += 4) {
        double sum[4] = {sums[0], sums[1], sums[2], sums[3]};
        for (Py_ssize_t j = 0; j < m; j += 4)
            for (int l = 0; l < 4; l++) sum[l] += signs[j + l] * (double)w[j + l];
        for (int l = 0; l < 4; l++) sums[l] = sum[l];
    }
}

#undef REAL
#undef LARGEST
#undef NAME
#undef MAX
#undef AT_LEAST
