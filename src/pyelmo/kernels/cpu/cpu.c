/* The computation of the biLM on a CPU, without gradients. The references are kernels/cpu/plain.py and pyelmo/model.
 *
 * Functions. elmo_linear is a matrix product with a bias, elmo_highway the gate of a highway layer, elmo_char_features the
 * convolutions of the character CNN with their maximum, and elmo_lstm one direction of one LSTM layer over all steps.
 * elmo_supported says whether the processor has an instruction set, elmo_lanes how many floats its registers have. All
 * take the number of the instruction set to run on (0 AVX-512 with VNNI, 1 AVX2, 2 base). The others return 0, NO_MEMORY or, if
 * sizes, symbols or rows do not fit together and memory beyond an array would be read, INVALID. Each is written once, in cpu_isa.h, which is compiled once for each instruction set.
 * Python calls them through ctypes, so that only the C standard library is needed.
 *
 * Layout of weights. A matrix is packed in panels of 4 * LANES output columns. The inputs ("depth") are the outer
 * dimension of a panel, so that a product reads a panel from its start to its end:
 *   float   [panel][depth][4 * LANES]
 *   int8    [panel][depth / 4][4 * LANES][4], with a scale and a start value for each column. Inputs are stored as
 *           unsigned bytes, 128 more than their value, because the AVX-512 instruction multiplies unsigned by signed
 *           bytes. The start value is -128 times the sum of the column and undoes this.
 * In the matrices of an LSTM, a panel has the four gates (input, forget, candidate, output) of LANES cells. Missing
 * columns of the last panel and missing cells have zero weights.
 *
 * Order of sums. The sum over the depth always has the same order, whatever the number of rows. Therefore the embedding
 * of a sentence has the same bits alone and in any batch.
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
    const float *scales; /* NULL if the weights are floats */
    const int32_t *starts;
    int64_t depth;
    int64_t columns; /* a multiple of 4 * LANES */
} Matrix;

typedef struct {
    Matrix input, recurrent, projection;
    const float *bias; /* in the order of the columns of `input` */
    int64_t cells;     /* a multiple of LANES */
    int64_t size;      /* floats of an output row */
    int32_t projects;  /* whether `projection` is used */
    float cell_clip, projection_clip;
} Layer;

enum { NO_MEMORY = 1, INVALID = 2 };
/* Rows of smaller values become zero in int8: 127 divided by them is infinite. */
#define TINY 1e-36f
/* Depth of the part of a float panel that stays in the L2 cache while all rows are multiplied by it. */
enum { DEPTH_AT_ONCE = 512 };
/* With up to FEW_ROWS rows, reading the weights takes longer than multiplying by them. The products with the input, which
 * have no recurrence, are then computed for several steps together, up to TOKENS_AT_ONCE tokens. */
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
                              const int64_t *counts, int tanh_activation, float *features, int64_t table_rows) {
    CHOOSE(char_features, chars, words, length, table, size, banks, filters, biases, counts, tanh_activation, features,
           table_rows);
}

EXPORT int elmo_lstm(int isa, const Layer *layer, const float *inputs, const int64_t *live, int64_t steps,
                     float *outputs, int64_t input_count) {
    CHOOSE(lstm, layer, inputs, live, steps, outputs, input_count);
}

/* The file is loaded by ctypes, not imported, but the linker on Windows requires this symbol of an extension. */
EXPORT void *PyInit__cpu(void) { return NULL; }
