/* The computation of the biLM on a CPU, without gradients. The references are kernels/cpu/plain.py and pyelmo/model.
 *
 * Functions. elmo_linear is a matrix product with a bias, elmo_highway the gate of a highway layer,
 * elmo_char_features the convolutions of the character CNN with their maximum, and elmo_lstm one direction of one
 * LSTM layer over all steps. elmo_supported says whether the processor has an instruction set, elmo_lanes how many
 * floats its registers have, and elmo_group how many bytes of a column of int8 weights lie together. All take the
 * number of the instruction set to run on. The others return 0, NO_MEMORY or, if sizes, symbols or rows do not fit
 * together and memory beyond an array would be read, INVALID. Python calls them through ctypes, so that only the C
 * standard library is needed.
 *
 * Files. Each function is written once, in cpu_isa.h and the files that it includes, with vectors as GCC and clang
 * (clang-cl on Windows) have them, and compiled once for each instruction set. cpu_x86.h and cpu_arm.h have the
 * products of bytes and say what the processor can do.
 *
 * Layout of weights. A matrix is packed in panels of 4 * LANES output columns. The inputs ("depth") are the outer
 * dimension of a panel, so that a product reads a panel from its start to its end:
 *   float   [panel][depth][4 * LANES]
 *   int8    [panel][depth / GROUP][4 * LANES][GROUP], with a scale and a start value for each column. Inputs are signed
 *           bytes, but on AVX-512, which multiplies unsigned by signed bytes, unsigned ones, 128 (OFFSET) more than their
 *           value. The start value is -128 times the sum of the column and undoes this.
 * Inputs of an int8 matrix are rounded to 8 bits, with a scale for each row. If the matrix has two passes, what this
 * rounding leaves is rounded to 8 bits again and multiplied, too: 16 bits in all. This is for the projections, whose
 * inputs are many values near zero and a few large ones.
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
    int64_t passes;  /* 1, or 2 if the inputs of int8 weights have a second byte */
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

#ifdef _WIN32
#include <malloc.h>
static void *allocate(size_t bytes) { return _aligned_malloc(bytes ? bytes : 64, 64); }
static void release(void *memory) { _aligned_free(memory); }
#else
static void *allocate(size_t bytes) {
    void *memory = NULL;
    return posix_memalign(&memory, 64, bytes ? bytes : 64) ? NULL : memory;
}
static void release(void *memory) { free(memory); }
#endif

/* The input rows of a product with a matrix: floats, or bytes with a scale for each row if the weights are int8. With
 * two passes, each row has its bytes and scale, then those of the rest. */
typedef struct {
    const float *floats;
    uint8_t *bytes;
    float *scales;
    int64_t stride;
} Inputs;

static int valid_passes(const Matrix *matrix) { return matrix->passes == 1 || matrix->passes == 2; }

#define INLINE static inline __attribute__((always_inline))

/* In the order of INSTRUCTION_SETS in compiled.py, the best first. */
enum { AVX512, AVX2, I8MM, DOTPROD, NEON, BASE };

typedef int32_t Ints_4 __attribute__((vector_size(16)));
INLINE Ints_4 dot_base(Ints_4 sum, int32_t four, const int8_t *weights) {
    int8_t x[4];
    memcpy(x, &four, 4);
    for (int lane = 0; lane < 4; lane++)
        for (int k = 0; k < 4; k++) sum[lane] += x[k] * weights[4 * lane + k];
    return sum;
}
#define NAME(x) x##_base
#define TARGET
#define LANES 4
#define ROWS 6
#define GROUP 4
#define OFFSET 0
#include "cpu_isa.h"

#if defined(__x86_64__)
#include "cpu_x86.h"

#define NAME(x) x##_avx2
#define TARGET FOR_AVX2
#define LANES 8
#define ROWS 3
#define GROUP 4
#define OFFSET 0
#include "cpu_isa.h"

#define NAME(x) x##_avx512
#define TARGET FOR_AVX512
#define LANES 16
#define ROWS 6
#define GROUP 4
#define OFFSET 128
#include "cpu_isa.h"

#define CHOOSE(name, ...)                           \
    switch (isa) {                                  \
        case AVX512: return name##_avx512(__VA_ARGS__); \
        case AVX2: return name##_avx2(__VA_ARGS__); \
        default: return name##_base(__VA_ARGS__);   \
    }

#elif defined(__aarch64__)
#include "cpu_arm.h"

#define NAME(x) x##_neon
#define TARGET
#define LANES 4
#define ROWS 4
#define GROUP 4
#define OFFSET 0
#include "cpu_isa.h"

#define NAME(x) x##_dotprod
#define TARGET FOR_DOTPROD
#define LANES 4
#define ROWS 4
#define GROUP 4
#define OFFSET 0
#include "cpu_isa.h"

#define NAME(x) x##_i8mm
#define TARGET FOR_I8MM
#define LANES 4
#define ROWS 4
#define GROUP 8
#define OFFSET 0
#include "cpu_isa.h"

#define CHOOSE(name, ...)                                 \
    switch (isa) {                                        \
        case I8MM: return name##_i8mm(__VA_ARGS__);       \
        case DOTPROD: return name##_dotprod(__VA_ARGS__); \
        case NEON: return name##_neon(__VA_ARGS__);       \
        default: return name##_base(__VA_ARGS__);         \
    }

#else

static int supported(int isa) { return isa == BASE; }
#define CHOOSE(name, ...) return (void)isa, name##_base(__VA_ARGS__)

#endif

EXPORT int elmo_supported(int isa) { return supported(isa); }

EXPORT int elmo_layer_size(void) { return (int)sizeof(Layer); }

EXPORT int elmo_lanes(int isa) { CHOOSE(lanes); }

EXPORT int elmo_group(int isa) { CHOOSE(group); }

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
                     float *outputs, int64_t input_count, const float *first_state, float *last_cell) {
    CHOOSE(lstm, layer, inputs, live, steps, outputs, input_count, first_state, last_cell);
}

/* The file is loaded by ctypes, not imported, but the linker on Windows requires this symbol of an extension. */
EXPORT void *PyInit__cpu(void) { return NULL; }
