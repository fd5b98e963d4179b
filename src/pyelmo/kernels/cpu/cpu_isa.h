/* The functions of cpu.c, which includes this file once for each instruction set. It defines NAME (adds the suffix
 * of the instruction set), TARGET, LANES (floats in a register), ROWS (input rows of a tile), GROUP (bytes of a
 * column of int8 weights that lie together) and OFFSET (what is added to input bytes; see the layout of weights).
 * With groups of four, NAME(dot) adds the product of four input bytes and four weights to each lane; with larger
 * ones, NAME(byte_sums) is given, too. */

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

/* Add the product of `rows` rows of bytes, from row `first` on, to the sums of their input rows: with two passes, two rows
 * of bytes follow each other that belong to the same input row. */
INLINE TARGET void NAME(byte_tile)(const int rows, Inputs all, int64_t first, int64_t passes, const int8_t *weights,
                                   const float *scales, const int32_t *starts, int64_t depth, float *sums) {
    const uint8_t *inputs = all.bytes + first * all.stride;
    const int64_t stride = all.stride;
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
            float *to = sums + ((first + r) >> (passes - 1)) * PANEL + q * LANES;
            F scale = NAME(load)(scales + q * LANES) * all.scales[first + r];
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

INLINE int64_t NAME(padded)(int64_t depth) { return (depth + GROUP - 1) / GROUP * GROUP; }

/* Make room for the bytes of up to `rows` input rows of a product; float weights need none. Return 0 if it fails. */
static int NAME(make_room)(Inputs *inputs, const Matrix *matrix, int64_t rows) {
    if (!matrix->scales) return 1;
    inputs->bytes = allocate(matrix->passes * rows * NAME(padded)(matrix->depth));
    inputs->scales = allocate(matrix->passes * rows * sizeof(float));
    return inputs->bytes && inputs->scales;
}

/* Add one panel of the product of `rows` input rows to sums (rows, PANEL). */
TARGET static void NAME(add_panel)(const Matrix *matrix, int64_t panel, Inputs inputs, int64_t first, int64_t rows,
                                   float *sums) {
    int64_t depth = matrix->depth, stride = inputs.stride;
    if (matrix->scales) {
        depth = NAME(padded)(depth);
        const int8_t *weights = (const int8_t *)matrix->weights + panel * depth * PANEL;
        const float *scales = matrix->scales + panel * PANEL;
        const int32_t *starts = matrix->starts + panel * PANEL;
        const int64_t passes = matrix->passes;
        inputs.bytes += passes * first * stride, inputs.scales += passes * first;
        EACH_TILE(passes * rows, NAME(byte_tile), inputs, r, passes, weights, scales, starts, depth, sums);
        return;
    }
    const float *weights = (const float *)matrix->weights + panel * depth * PANEL;
    const float *floats = inputs.floats + first * stride;
    for (int64_t k = 0; k < depth; k += DEPTH_AT_ONCE) {
        int64_t part = depth - k < DEPTH_AT_ONCE ? depth - k : DEPTH_AT_ONCE;
        EACH_TILE(rows, NAME(float_tile), floats + r * stride + k, stride, weights + k * PANEL, part, sums + r * PANEL);
    }
}

/* Write OFFSET + round(x / scale) of each x to `bytes`, and OFFSET + round(254 * (x / scale - round(x / scale))) to `rest`
 * unless it is NULL. */
INLINE TARGET void NAME(round_row)(const float *row, int64_t depth, float inverse, uint8_t *bytes, uint8_t *rest) {
    const float magic = 12582912.0f; /* the low byte of a float plus this is the float, rounded */
    for (int64_t k = 0; k < depth; k++) {
        float shifted = row[k] * inverse;
        shifted += magic;
        int32_t bits;
        memcpy(&bits, &shifted, 4);
        bytes[k] = (uint8_t)(bits + OFFSET);
        if (rest) {
            shifted = (row[k] * inverse - (shifted - magic)) * 254.0f + magic;
            memcpy(&bits, &shifted, 4);
            rest[k] = (uint8_t)(bits + OFFSET);
        }
    }
}

/* Set the input rows of a product, which are `stride` floats apart. For int8 weights, each row is quantised with the scale
 * max |x| / 127; for a second pass, the scale of the rest is 1 / 254 of this one. Bytes beyond the depth are OFFSET, which
 * is zero. A row with NaN or infinity gets the scale NaN, so that its products are NaN; one of values below TINY becomes
 * zero. */
TARGET static void NAME(set_rows)(Inputs *inputs, const Matrix *matrix, const float *floats, int64_t stride,
                                  int64_t rows) {
    inputs->floats = floats, inputs->stride = stride;
    if (!matrix->scales) return;
    const int64_t depth = matrix->depth, passes = matrix->passes, wide = inputs->stride = NAME(padded)(depth);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = floats + r * stride;
        uint8_t *bytes = inputs->bytes + passes * r * wide, *rest = passes == 2 ? bytes + wide : NULL;
        float *scales = inputs->scales + passes * r;
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
        const int finite = largest < INFINITY;
        const float inverse = largest >= TINY ? 127.0f / largest : 0.0f;
        scales[0] = finite ? largest / 127.0f : NAN;
        if (rest) scales[1] = scales[0] / 254.0f;
        const int64_t rounded = finite ? depth : 0;
        memset(bytes + rounded, OFFSET, wide - rounded);
        if (rest) {
            memset(rest + rounded, OFFSET, wide - rounded);
            NAME(round_row)(row, rounded, inverse, bytes, rest);
        } else {
            NAME(round_row)(row, rounded, inverse, bytes, NULL);
        }
    }
}

TARGET static int NAME(lanes)(void) { return LANES; }
TARGET static int NAME(group)(void) { return GROUP; }

/* (rows, depth) -> (rows, columns). The last panel may have more columns; they are not written. */
TARGET static int NAME(linear)(const Matrix *matrix, const float *bias, const float *inputs, int64_t rows,
                               int64_t columns, float *outputs) {
    const int64_t depth = matrix->depth;
    if (rows < 0 || depth < 0 || columns < 0 || columns > matrix->columns || matrix->columns % PANEL ||
        !valid_passes(matrix))
        return INVALID;
    enum { AT_ONCE = 96 }; /* rows whose sums of one panel stay in the L1 cache */
    float *sums = allocate(AT_ONCE * PANEL * sizeof(float));
    Inputs input_rows = {0};
    int failed = !NAME(make_room)(&input_rows, matrix, rows) || !sums;
    if (!failed) {
        NAME(set_rows)(&input_rows, matrix, inputs, depth, rows);
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
    release(sums), release(input_rows.bytes), release(input_rows.scales);
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
TARGET static void NAME(input_gates)(const Layer *layer, int64_t panel, Inputs inputs, int64_t rows, float *gates) {
    for (int64_t r = 0; r < rows; r++)
        memcpy(gates + r * PANEL, layer->bias + panel * PANEL, PANEL * sizeof(float));
    NAME(add_panel)(&layer->input, panel, inputs, 0, rows, gates);
}

/* The clipped projection of `rows` hidden states. `sums` has room for (rows, PANEL). */
TARGET static void NAME(project)(const Layer *layer, Inputs hidden, int64_t rows, float *sums, float *outputs) {
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
    if (layer->recurrent.depth != layer->size || !valid_passes(&layer->input) || !valid_passes(&layer->recurrent)) return 0;
    if (layer->projects ? layer->projection.depth > layer->cells || layer->projection.columns < layer->size ||
                              !valid_passes(&layer->projection)
                        : layer->size > layer->cells)
        return 0;
    for (int64_t step = 0; step < steps; rows -= live[step++])
        if (live[step] < 0 || live[step] > rows || (step && live[step] > live[step - 1])) return 0;
    return rows == 0;
}

/* One direction of one layer over all steps. Sentences are sorted by falling length: step t has the first live[t] rows of
 * step t - 1. Inputs and outputs have the rows of all steps one after another.
 *
 * `first_state` (live[0], size) and `last_cell` (live[0], cells) are NULL for a zero state. The cells are replaced by
 * those after the last step; the state after it is in the outputs. */
TARGET static int NAME(lstm)(const Layer *layer, const float *inputs, const int64_t *live, int64_t steps, float *outputs,
                             int64_t input_count, const float *first_state, float *last_cell) {
    if (!NAME(fits)(layer, live, steps, input_count)) return INVALID;
    if (steps == 0) return 0;
    const int64_t cells = layer->cells, size = layer->size, depth = layer->input.depth, panels = cells / LANES;
    const int64_t most_rows = live[0], at_once = most_rows > TOKENS_AT_ONCE ? most_rows : TOKENS_AT_ONCE;
    const int64_t ahead_size = live[steps - 1] > FEW_ROWS ? 0 : TOKENS_AT_ONCE * panels * PANEL;

    float *cell = last_cell ? last_cell : allocate(most_rows * cells * sizeof(float));
    float *hidden = allocate(most_rows * cells * sizeof(float));
    float *sums = allocate(most_rows * PANEL * sizeof(float)), *ahead = allocate(ahead_size * sizeof(float));
    Inputs input_rows = {0}, state = {0}, hidden_rows = {0};
    int failed = !cell || !hidden || !sums || !ahead || !NAME(make_room)(&input_rows, &layer->input, at_once) ||
                 !NAME(make_room)(&state, &layer->recurrent, most_rows) ||
                 (layer->projects && !NAME(make_room)(&hidden_rows, &layer->projection, most_rows));
    if (!failed && !last_cell) memset(cell, 0, most_rows * cells * sizeof(float));
    if (!failed && first_state) NAME(set_rows)(&state, &layer->recurrent, first_state, size, most_rows);

    /* With few rows, `ahead` has the input's part of the gates of `chunk` tokens, of which `used` are done. */
    int64_t ready = 0, used = 0, chunk = 0;
    for (int64_t step = 0; step < steps && !failed; step++) {
        const int64_t rows = live[step];
        const int few = rows <= FEW_ROWS;
        if (!few || used == ready) {
            chunk = rows;
            if (few)
                for (int64_t next = step + 1; next < steps && chunk + live[next] <= TOKENS_AT_ONCE; next++)
                    chunk += live[next];
            NAME(set_rows)(&input_rows, &layer->input, inputs, depth, chunk);
            for (int64_t panel = 0; panel < panels && few; panel++)
                NAME(input_gates)(layer, panel, input_rows, chunk, ahead + panel * chunk * PANEL);
            ready = few ? chunk : 0, used = 0;
        }
        for (int64_t panel = 0; panel < panels; panel++) {
            float *gates = few ? ahead + (panel * chunk + used) * PANEL : sums;
            if (!few) NAME(input_gates)(layer, panel, input_rows, rows, gates);
            if (step > 0 || first_state) NAME(add_panel)(&layer->recurrent, panel, state, 0, rows, gates);
            NAME(gates)(gates, rows, cell + panel * LANES, hidden + panel * LANES, cells, layer->cell_clip);
        }
        if (layer->projects) {
            NAME(set_rows)(&hidden_rows, &layer->projection, hidden, cells, rows);
            NAME(project)(layer, hidden_rows, rows, sums, outputs);
        } else {
            for (int64_t r = 0; r < rows; r++) memcpy(outputs + r * size, hidden + r * cells, size * sizeof(float));
        }
        NAME(set_rows)(&state, &layer->recurrent, outputs, size, rows);
        if (few) used += rows;
        inputs += rows * depth, outputs += rows * size;
    }
    if (!last_cell) release(cell);
    release(hidden), release(sums), release(ahead);
    release(input_rows.bytes), release(input_rows.scales), release(state.bytes), release(state.scales);
    release(hidden_rows.bytes), release(hidden_rows.scales);
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
