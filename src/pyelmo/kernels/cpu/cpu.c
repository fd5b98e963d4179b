/* The biLM's arithmetic on a CPU, without gradients: the reference is the Python in pyelmo/model.
 *
 * Every function is written once, in cpu_isa.h, and compiled for each instruction set below; the caller says which one
 * to run. A row of a product is always summed in the same order, whatever rows stand beside it, so that a result never
 * depends on the batch. Only the standard library is needed: Python loads this file's functions through ctypes.
 *
 * A matrix is kept in panels of 4 * LANES columns, each panel with its depth outermost:
 *   float   [panel][depth][4 * LANES]
 *   int8    [panel][depth / 4][4 * LANES][4], with a scale for each column, and -128 times the column's sum: what a
 *           product starts from, because activations are stored as 128 more than their value.
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef struct {
    const void *weights;
    const float *scales;  /* NULL: the weights are floats */
    const int32_t *starts;
    int64_t depth;
    int64_t columns;  /* a multiple of 4 * LANES */
} Matrix;

typedef struct {
    Matrix input, recurrent, projection;  /* the first two: panels of LANES cells with their four gates */
    const float *bias;                    /* in the order of those columns */
    int64_t cells;                        /* a multiple of LANES; those beyond the model's have zero weights */
    int64_t size;                         /* of an output row */
    int32_t projects;
    float cell_clip, projection_clip;
} Layer;

/* Depth of a float panel that stays in the second-level cache while the rows pass by. */
enum { DEPTH_AT_ONCE = 512 };
/* With fewer live rows than this a step reads its weights for too little work: the input's share of the gates is then
 * computed for several steps at once. */
enum { FEW_ROWS = 32, TOKENS_AT_ONCE = 128 };

static void *allocate(size_t bytes) {
    void *memory = NULL;
    return posix_memalign(&memory, 64, bytes ? bytes : 64) ? NULL : memory;
}

#define INLINE static inline __attribute__((always_inline))

#define NAME(x) x##_base
#define TARGET
#define LANES 4
#define ROWS 6
#define DOT 0
#include "cpu_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 3
#define DOT 1
#include "cpu_isa.h"

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")))
#define LANES 16
#define ROWS 6
#define DOT 2
#include "cpu_isa.h"

static int supported(int isa) {
    if (isa == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
    if (isa == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return isa == 2;
}
#define CHOOSE(name, ...) \
    return isa == 0 ? name##_avx512(__VA_ARGS__) : isa == 1 ? name##_avx2(__VA_ARGS__) : name##_base(__VA_ARGS__)

#else

static int supported(int isa) { return isa == 2; }
#define CHOOSE(name, ...) return (void)isa, name##_base(__VA_ARGS__)

#endif

/* Instruction sets: 0 AVX-512 with VNNI, 1 AVX2, 2 what every processor of its kind has. */
EXPORT int elmo_supported(int isa) { return supported(isa); }

EXPORT int elmo_lanes(int isa) { CHOOSE(lanes); }

EXPORT int elmo_linear(int isa, const Matrix *matrix, const float *bias, const float *inputs, int64_t rows,
                       int64_t columns, float *outputs) {
    CHOOSE(linear, matrix, bias, inputs, rows, columns, outputs);
}

EXPORT int elmo_highway(int isa, const float *transform, const float *gate, float *features, int64_t count) {
    CHOOSE(highway, transform, gate, features, count);
}

EXPORT int elmo_char_features(int isa, const int32_t *chars, int64_t words, int64_t length, const float *table,
                              int64_t size, int64_t banks, const Matrix *filters, const float *const *biases,
                              const int64_t *counts, int tanh_activation, float *features) {
    CHOOSE(char_features, chars, words, length, table, size, banks, filters, biases, counts, tanh_activation, features);
}

EXPORT int elmo_lstm(int isa, const Layer *layer, const float *inputs, const int64_t *live, int64_t steps,
                     float *outputs) {
    CHOOSE(lstm, layer, inputs, live, steps, outputs);
}

/* Loaded by ctypes, not imported; Windows wants the name of a Python module's entry all the same. */
EXPORT void *PyInit__cpu(void) { return NULL; }
