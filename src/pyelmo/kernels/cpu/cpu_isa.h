/* The functions of cpu.c, which includes this file once for each instruction set. It defines NAME (adds the suffix of the
 * instruction set), TARGET, LANES (floats in a register), ROWS (input rows of a tile), GROUP (bytes of a column of int8
 * weights that lie together) and OFFSET (what is added to input bytes; see the layout of weights). With groups of four,
 * NAME(dot) adds the product of four input bytes and four weights to each lane; with larger ones, NAME(byte_sums) is given,
 * too. */

#include "cpu_vectors.h"

/* Add the product of `rows` input rows and one float panel to `sum`. */
INLINE TARGET void NAME(add_tile)(const int rows, F sum[][4], const float *inputs, int64_t stride,
                                  const float *weights, int64_t depth) {
    for (int64_t k = 0; k < depth; k++, weights += PANEL) {
        F x[ROWS]; /* with these, the sums and one vector of weights, all registers of AVX2 are in use */
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) x[r] = NAME(broadcast)(inputs[r * stride + k]);
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) {
            F w = NAME(load)(weights + q * LANES);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) sum[r][q] += x[r] * w;
        }
    }
}

INLINE TARGET void NAME(float_tile)(const int rows, const float *inputs, int64_t stride, const float *weights,
                                    int64_t depth, float *sums) {
    F sum[ROWS][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) sum[r][q] = NAME(load)(sums + r * PANEL + q * LANES);
    NAME(add_tile)(rows, sum, inputs, stride, weights, depth);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) NAME(store)(sums + r * PANEL + q * LANES, sum[r][q]);
}

INLINE TARGET void NAME(max_tile)(const int rows, const float *inputs, int64_t stride, const float *weights,
                                  int64_t depth, F best[4]) {
    F sum[ROWS][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) sum[r][q] = (F){0};
    NAME(add_tile)(rows, sum, inputs, stride, weights, depth);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) best[q] = NAME(larger)(best[q], sum[r][q]);
}

#if GROUP == 4
/* The product of `rows` rows of input bytes and one int8 panel. */
INLINE TARGET void NAME(byte_sums)(const int rows, I sum[][4], const uint8_t *inputs, int64_t stride,
                                   const int8_t *weights, int64_t depth) {
    for (int64_t k = 0; k < depth; k += 4, weights += 4 * PANEL) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, inputs + r * stride + k, 4);
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) sum[r][q] = NAME(dot)(sum[r][q], four, weights + q * 4 * LANES);
        }
    }
}
#endif

INLINE TARGET void NAME(byte_tile)(const int rows, const uint8_t *inputs, int64_t stride, const float *row_scales,
                                   const int8_t *weights, const float *scales, const int32_t *starts, int64_t depth,
                                   float *sums) {
    I sum[ROWS][4];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) sum[r][q] = OFFSET ? *(const NAME(LoadedInts) *)(starts + q * LANES) : (I){0};
    NAME(byte_sums)(rows, sum, inputs, stride, weights, depth);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) {
            float *to = sums + r * PANEL + q * LANES;
            F scale = NAME(load)(scales + q * LANES) * row_scales[r];
            NAME(store)(to, NAME(load)(to) + __builtin_convertvector(sum[r][q], F) * scale);
        }
}

/* Run `tile` over all rows, ROWS at a time, then over the remaining rows; `r` is the first row of a tile. */
#if ROWS == 6
#define MORE_ROWS(tile, ...)                     \
    case 5: tile(5, __VA_ARGS__); break;         \
    case 4: tile(4, __VA_ARGS__); break;         \
    case 3: tile(3, __VA_ARGS__); break;
#elif ROWS == 4
#define MORE_ROWS(tile, ...) \
    case 3: tile(3, __VA_ARGS__); break;
#else
#define MORE_ROWS(tile, ...)
#endif
#define EACH_TILE(rows, tile, ...)                                    \
    do {                                                              \
        int64_t r = 0;                                                \
        for (; r + ROWS <= (rows); r += ROWS) tile(ROWS, __VA_ARGS__); \
        switch ((rows) - r) {                                         \
            MORE_ROWS(tile, __VA_ARGS__)                              \
            case 2: tile(2, __VA_ARGS__); break;                      \
            case 1: tile(1, __VA_ARGS__); break;                      \
            default: break;                                           \
        }                                                             \
    } while (0)

/* The input rows of a product: floats, or bytes with a scale for each row. */
typedef struct {
    const float *floats;
    const uint8_t *bytes;
    const float *scales;
    int64_t stride;
} NAME(Inputs);

INLINE int64_t NAME(padded)(int64_t depth) { return (depth + GROUP - 1) / GROUP * GROUP; }

/* Add one panel of the product of `rows` input rows to sums (rows, PANEL). */
TARGET static void NAME(add_panel)(const Matrix *matrix, int64_t panel, NAME(Inputs) inputs, int64_t first, int64_t rows,
                                   float *sums) {
    int64_t depth = matrix->depth, stride = inputs.stride;
    if (matrix->scales) {
        depth = NAME(padded)(depth);
        const int8_t *weights = (const int8_t *)matrix->weights + panel * depth * PANEL;
        const float *scales = matrix->scales + panel * PANEL;
        const int32_t *starts = matrix->starts + panel * PANEL;
        const uint8_t *bytes = inputs.bytes + first * stride;
        const float *row_scales = inputs.scales + first;
        EACH_TILE(rows, NAME(byte_tile), bytes + r * stride, stride, row_scales + r, weights, scales, starts, depth,
                  sums + r * PANEL);
        return;
    }
    const float *weights = (const float *)matrix->weights + panel * depth * PANEL;
    const float *floats = inputs.floats + first * stride;
    for (int64_t k = 0; k < depth; k += DEPTH_AT_ONCE) {
        int64_t part = depth - k < DEPTH_AT_ONCE ? depth - k : DEPTH_AT_ONCE;
        EACH_TILE(rows, NAME(float_tile), floats + r * stride + k, stride, weights + k * PANEL, part, sums + r * PANEL);
    }
}

/* Quantise each row: x -> OFFSET + round(x * 127 / max |x|). Rows have `stride` bytes; those beyond `depth` are OFFSET.
 * A row with NaN or infinity gets the scale NaN, so that its products are NaN; one of values below TINY becomes zero. */
TARGET static void NAME(quantise)(const float *inputs, int64_t input_stride, int64_t rows, int64_t depth, uint8_t *bytes,
                                  int64_t stride, float *scales) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = inputs + r * input_stride;
        uint8_t *to = bytes + r * stride;
        F best = (F){0};
        int64_t k = 0;
        for (; k + LANES <= depth; k += LANES) {
            F x = NAME(load)(row + k);
            best = NAME(larger)(best, NAME(maximum)(x, -x));
        }
        float largest = 0.0f;
        for (int lane = 0; lane < LANES; lane++)
            largest = best[lane] > largest || best[lane] != best[lane] ? best[lane] : largest;
        for (; k < depth; k++) largest = fabsf(row[k]) > largest || row[k] != row[k] ? fabsf(row[k]) : largest;
        if (!(largest < INFINITY)) {
            scales[r] = NAN;
            memset(to, OFFSET, stride);
            continue;
        }
        float inverse = largest >= TINY ? 127.0f / largest : 0.0f;
        scales[r] = largest / 127.0f;
        const float magic = 12582912.0f;
        for (k = 0; k < depth; k++) {
            float shifted = row[k] * inverse;
            shifted += magic;
            int32_t bits;
            memcpy(&bits, &shifted, 4);
            to[k] = (uint8_t)(bits + OFFSET); /* the low byte of the shifted float is the rounded value */
        }
        for (; k < stride; k++) to[k] = OFFSET;
    }
}

TARGET static int NAME(lanes)(void) { return LANES; }
TARGET static int NAME(group)(void) { return GROUP; }

/* (rows, depth) -> (rows, columns). The last panel may have more columns; they are not written. */
TARGET static int NAME(linear)(const Matrix *matrix, const float *bias, const float *inputs, int64_t rows,
                               int64_t columns, float *outputs) {
    int64_t depth = matrix->depth, stride = matrix->scales ? NAME(padded)(depth) : depth;
    if (rows < 0 || depth < 0 || columns < 0 || columns > matrix->columns || matrix->columns % PANEL) return INVALID;
    enum { AT_ONCE = 96 }; /* rows whose sums of one panel stay in the L1 cache */
    float *sums = allocate(AT_ONCE * PANEL * sizeof(float));
    uint8_t *bytes = matrix->scales ? allocate(rows * stride) : NULL;
    float *scales = matrix->scales ? allocate(rows * sizeof(float)) : NULL;
    int failed = !sums || (matrix->scales && (!bytes || !scales));
    if (!failed) {
        if (matrix->scales) NAME(quantise)(inputs, depth, rows, depth, bytes, stride, scales);
        NAME(Inputs) input_rows = {inputs, bytes, scales, stride};
        for (int64_t panel = 0; panel * PANEL < columns; panel++) {
            int64_t wide = columns - panel * PANEL < PANEL ? columns - panel * PANEL : PANEL;
            for (int64_t first = 0; first < rows; first += AT_ONCE) {
                int64_t some = rows - first < AT_ONCE ? rows - first : AT_ONCE;
                for (int64_t r = 0; r < some; r++) {
                    memset(sums + r * PANEL, 0, PANEL * sizeof(float));
                    if (bias) memcpy(sums + r * PANEL, bias + panel * PANEL, wide * sizeof(float));
                }
                NAME(add_panel)(matrix, panel, input_rows, first, some, sums);
                for (int64_t r = 0; r < some; r++)
                    memcpy(outputs + (first + r) * columns + panel * PANEL, sums + r * PANEL, wide * sizeof(float));
            }
        }
    }
    release(sums), release(bytes), release(scales);
    return failed;
}

/* From the gates of one panel: the new cell states, and the hidden states before the projection, of `rows` rows. */
TARGET static void NAME(gates)(const float *sums, int64_t rows, float *cell, float *hidden, int64_t stride, float limit) {
    const F high = NAME(broadcast)(limit), low = NAME(broadcast)(-limit);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = sums + r * PANEL;
        F in_gate = NAME(sigmoid)(NAME(load)(row)), forget_gate = NAME(sigmoid)(NAME(load)(row + LANES));
        F candidate = NAME(hyperbolic)(NAME(load)(row + 2 * LANES)), out_gate = NAME(sigmoid)(NAME(load)(row + 3 * LANES));
        F new_cell = forget_gate * NAME(load)(cell + r * stride) + in_gate * candidate;
        new_cell = NAME(minimum)(high, NAME(maximum)(low, new_cell));
        NAME(store)(cell + r * stride, new_cell);
        NAME(store)(hidden + r * stride, out_gate * NAME(hyperbolic)(new_cell));
    }
}

/* The part of the gates without recurrence, for one panel: the bias plus the product with the input. */
TARGET static void NAME(input_gates)(const Layer *layer, int64_t panel, NAME(Inputs) inputs, int64_t rows, float *gates) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(gates + r * PANEL, layer->bias + panel * PANEL, PANEL * sizeof(float));
    NAME(add_panel)(&layer->input, panel, inputs, 0, rows, gates);
}

/* The clipped projection of `rows` hidden states. `sums` has room for (rows, PANEL). */
TARGET static void NAME(project)(const Layer *layer, NAME(Inputs) hidden, int64_t rows, float *sums, float *outputs) {
    const int64_t size = layer->size;
    const float clip = layer->projection_clip;
    for (int64_t panel = 0; panel * PANEL < layer->projection.columns; panel++) {
        int64_t wide = size - panel * PANEL < PANEL ? size - panel * PANEL : PANEL;
        memset(sums, 0, rows * PANEL * sizeof(float));
        NAME(add_panel)(&layer->projection, panel, hidden, 0, rows, sums);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < wide; k++) {
                float value = sums[r * PANEL + k];
                value = value > clip ? clip : value;
                outputs[r * size + panel * PANEL + k] = value < -clip ? -clip : value;
            }
    }
}

/* Whether the matrices of a layer fit together, and `live` falls from step to step and has `rows` rows in all. */
TARGET static int NAME(fits)(const Layer *layer, const int64_t *live, int64_t steps, int64_t rows) {
    const int64_t columns = 4 * layer->cells;
    if (layer->cells < 1 || layer->cells % LANES || layer->size < 1 || layer->input.depth < 0 || steps < 0) return 0;
    if (layer->input.columns != columns || layer->recurrent.columns != columns) return 0;
    if (layer->recurrent.depth != layer->size || !layer->input.scales != !layer->recurrent.scales) return 0;
    if (layer->projects ? layer->projection.depth > layer->cells || layer->projection.columns < layer->size ||
                              !layer->input.scales != !layer->projection.scales
                        : layer->size > layer->cells)
        return 0;
    for (int64_t step = 0; step < steps; rows -= live[step++])
        if (live[step] < 0 || live[step] > rows || (step && live[step] > live[step - 1])) return 0;
    return rows == 0;
}

/* One direction of one layer over all steps, from a zero state. Sentences are sorted by falling length: step t has the
 * first live[t] rows of step t - 1. Inputs and outputs have the rows of all steps one after another. */
/* `first_state` (live[0], size) and `last_cell` (live[0], cells) are NULL for a zero state. The cells are replaced by
 * those after the last step; the state after it is in the outputs. */
TARGET static int NAME(lstm)(const Layer *layer, const float *inputs, const int64_t *live, int64_t steps, float *outputs,
                             int64_t input_count, const float *first_state, float *last_cell) {
    if (!NAME(fits)(layer, live, steps, input_count)) return INVALID;
    if (steps == 0) return 0;
    const int64_t cells = layer->cells, size = layer->size, depth = layer->input.depth, panels = cells / LANES;
    const int bytes = layer->input.scales != NULL;
    const int64_t input_stride = bytes ? NAME(padded)(depth) : depth, state_stride = bytes ? NAME(padded)(size) : size;
    const int64_t cell_depth = layer->projects ? layer->projection.depth : 0, cell_stride = NAME(padded)(cell_depth);
    const int64_t most_rows = live[0], at_once = most_rows > TOKENS_AT_ONCE ? most_rows : TOKENS_AT_ONCE;
    const int64_t ahead_size = live[steps - 1] > FEW_ROWS ? 0 : TOKENS_AT_ONCE * panels * PANEL;

    float *cell = last_cell ? last_cell : allocate(most_rows * cells * sizeof(float)), *hidden = allocate(most_rows * cells * sizeof(float));
    float *sums = allocate(most_rows * PANEL * sizeof(float)), *ahead = allocate(ahead_size * sizeof(float));
    uint8_t *input_bytes = NULL, *state_bytes = NULL, *hidden_bytes = NULL;
    float *input_scales = NULL, *state_scales = NULL, *hidden_scales = NULL;
    int failed = !cell || !hidden || !sums || !ahead;
    if (bytes) {
        input_bytes = allocate(at_once * input_stride), input_scales = allocate(at_once * sizeof(float));
        state_bytes = allocate(most_rows * state_stride), state_scales = allocate(most_rows * sizeof(float));
        hidden_bytes = allocate(most_rows * cell_stride), hidden_scales = allocate(most_rows * sizeof(float));
        failed |= !input_bytes || !input_scales || !state_bytes || !state_scales || !hidden_bytes || !hidden_scales;
    }
    if (!failed && !last_cell) memset(cell, 0, most_rows * cells * sizeof(float));
    if (!failed && bytes && first_state)
        NAME(quantise)(first_state, size, most_rows, size, state_bytes, state_stride, state_scales);

    /* With few rows, `ahead` has the input's part of the gates of `chunk` tokens, of which `used` are done. */
    int64_t ready = 0, used = 0, chunk = 0;
    const float *last_outputs = first_state;
    for (int64_t step = 0; step < steps && !failed; step++) {
        const int64_t rows = live[step];
        const int few = rows <= FEW_ROWS;
        NAME(Inputs) input_rows = {inputs, input_bytes, input_scales, input_stride};
        if (!few || used == ready) {
            chunk = rows;
            if (few)
                for (int64_t next = step + 1; next < steps && chunk + live[next] <= TOKENS_AT_ONCE; next++)
                    chunk += live[next];
            if (bytes) NAME(quantise)(inputs, depth, chunk, depth, input_bytes, input_stride, input_scales);
            for (int64_t panel = 0; panel < panels && few; panel++)
                NAME(input_gates)(layer, panel, input_rows, chunk, ahead + panel * chunk * PANEL);
            ready = few ? chunk : 0, used = 0;
        }
        NAME(Inputs) state = {last_outputs, state_bytes, state_scales, state_stride};
        for (int64_t panel = 0; panel < panels; panel++) {
            float *gates = few ? ahead + (panel * chunk + used) * PANEL : sums;
            if (!few) NAME(input_gates)(layer, panel, input_rows, rows, gates);
            if (last_outputs) NAME(add_panel)(&layer->recurrent, panel, state, 0, rows, gates);
            NAME(gates)(gates, rows, cell + panel * LANES, hidden + panel * LANES, cells, layer->cell_clip);
        }
        if (layer->projects) {
            if (bytes) NAME(quantise)(hidden, cells, rows, cell_depth, hidden_bytes, cell_stride, hidden_scales);
            NAME(Inputs) hidden_rows = {hidden, hidden_bytes, hidden_scales, bytes ? cell_stride : cells};
            NAME(project)(layer, hidden_rows, rows, sums, outputs);
        } else {
            for (int64_t r = 0; r < rows; r++) memcpy(outputs + r * size, hidden + r * cells, size * sizeof(float));
        }
        if (bytes) NAME(quantise)(outputs, size, rows, size, state_bytes, state_stride, state_scales);
        last_outputs = outputs;
        if (few) used += rows;
        inputs += rows * depth, outputs += rows * size;
    }
    if (!last_cell) release(cell);
    release(hidden), release(sums), release(ahead);
    release(input_bytes), release(input_scales), release(state_bytes), release(state_scales);
    release(hidden_bytes), release(hidden_scales);
    return failed;
}

#include "cpu_cnn.h"

#undef F
#undef I
#undef PANEL
#undef EACH_TILE
#undef MORE_ROWS
#undef NAME
#undef TARGET
#undef LANES
#undef ROWS
#undef GROUP
#undef OFFSET
