/* The character CNN: the gate of a highway layer, and the convolutions. cpu_isa.h includes this file last. */

/* features = g * relu(transform) + (1 - g) * features, with g = sigmoid(gate). */
TARGET static int NAME(highway)(const float *transform, const float *gate, float *features, int64_t count) {
    int64_t k = 0;
    for (; k + LANES <= count; k += LANES) {
        F g = NAME(sigmoid)(NAME(load)(gate + k)), x = NAME(load)(features + k);
        F t = NAME(maximum)((F){0}, NAME(load)(transform + k));
        NAME(store)(features + k, g * t + (1.0f - g) * x);
    }
    if (k < count) { /* the same operations on the last values, which do not fill a register */
        float part[3][LANES] = {{0}};
        int64_t bytes = (count - k) * sizeof(float);
        memcpy(part[0], gate + k, bytes), memcpy(part[1], features + k, bytes), memcpy(part[2], transform + k, bytes);
        F g = NAME(sigmoid)(NAME(load)(part[0])), x = NAME(load)(part[1]);
        F t = NAME(maximum)((F){0}, NAME(load)(part[2]));
        NAME(store)(part[0], g * t + (1.0f - g) * x);
        memcpy(features + k, part[0], bytes);
    }
    return 0;
}

/* Symbols (words, length) -> the maximum of each filter after its activation (words, features).
 *
 * All windows inside the padding at the end of a word are equal, so that only one of them is computed. */
TARGET static int NAME(char_features)(const int32_t *chars, int64_t words, int64_t length, const float *table,
                                      int64_t size, int64_t banks, const Matrix *filters, const float *const *biases,
                                      const int64_t *counts, int tanh_activation, float *features,
                                      int64_t table_rows) {
    int64_t total = 0;
    if (words < 0 || length < 1 || size < 1) return INVALID;
    for (int64_t k = 0; k < words * length; k++)
        if (chars[k] < 0 || chars[k] >= table_rows) return INVALID;
    for (int64_t bank = 0; bank < banks; bank++) {
        int64_t depth = filters[bank].depth;
        if (depth < size || depth % size || depth / size > length || counts[bank] < 0 ||
            counts[bank] > filters[bank].columns || filters[bank].scales)
            return INVALID;
        total += counts[bank];
    }
    float *embedded = allocate(length * size * sizeof(float));
    if (!embedded) return NO_MEMORY;
    for (int64_t word = 0; word < words; word++) {
        const int32_t *symbols = chars + word * length;
        int64_t end = length - 1;
        while (end > 0 && symbols[end - 1] == symbols[length - 1]) end--;
        for (int64_t position = 0; position < length; position++)
            memcpy(embedded + position * size, table + symbols[position] * size, size * sizeof(float));
        float *to = features + word * total;
        for (int64_t bank = 0; bank < banks; bank++) {
            int64_t depth = filters[bank].depth, positions = length - depth / size + 1;
            int64_t windows = end + 1 < positions ? end + 1 : positions;
            for (int64_t panel = 0; panel * PANEL < counts[bank]; panel++) {
                const float *weights = (const float *)filters[bank].weights + panel * depth * PANEL;
                F best[4];
                for (int q = 0; q < 4; q++) best[q] = NAME(broadcast)(-INFINITY);
                EACH_TILE(windows, NAME(max_tile), embedded + r * size, size, weights, depth, best);
                float values[PANEL];
                int64_t wide = counts[bank] - panel * PANEL < PANEL ? counts[bank] - panel * PANEL : PANEL;
                for (int q = 0; q < 4; q++) {
                    F value = best[q] + NAME(load)(biases[bank] + panel * PANEL + q * LANES);
                    value = tanh_activation ? NAME(hyperbolic)(value) : NAME(maximum)((F){0}, value);
                    NAME(store)(values + q * LANES, value);
                }
                memcpy(to + panel * PANEL, values, wide * sizeof(float));
            }
            to += counts[bank];
        }
    }
    release(embedded);
    return 0;
}
