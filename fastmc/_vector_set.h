/* All loops for one instruction set, named ISA. _vector.h includes this once for each, with TARGET and BYTES (of a
   vector) set, and where the processor has instructions for them MAX_F, MAX_D (of two vectors), AT_LEAST_F, AT_LEAST_D
   (bits for a vector in memory) and WIDEN_D (half a vector of floats as doubles). */

#define REAL float
#define LARGEST FLT_MAX
#define NAME(x) GLUE(ISA, _f_##x)
#if defined(MAX_F)
#define MAX MAX_F
#define AT_LEAST AT_LEAST_F
#endif
#include "_vector_loops.h"

#define REAL double
#define LARGEST DBL_MAX
#define NAME(x) GLUE(ISA, _d_##x)
#define DENSE
#if defined(MAX_D)
#define MAX MAX_D
#define AT_LEAST AT_LEAST_D
#endif
#include "_vector_loops.h"

/* Values in double, W in float */
#define REAL float
#define VALUE double
#define WEIGHT float
#define NAME(x) GLUE(ISA, _df_##x)
#define UPDATE
#include "_vector_rows.h"
#undef REAL
#undef NAME

/* W in float, values and sums in double */
#define REAL double
#define VALUE double
#define WEIGHT float
#define NAME(x) GLUE(ISA, _fd_##x)
#define DENSE
#if defined(WIDEN_D)
#define WIDEN WIDEN_D
#endif
#include "_vector_rows.h"
#undef REAL
#undef NAME
#undef WIDEN

#undef ISA
#undef TARGET
#undef BYTES
#undef MAX_F
#undef MAX_D
#undef AT_LEAST_F
#undef AT_LEAST_D
#undef WIDEN_D
