/* Products of bytes on AArch64: with NEON, which all processors have, with the extension dotprod, and with i8mm. */

#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

#ifdef __clang__
#define FOR_DOTPROD __attribute__((target("dotprod")))
#define FOR_I8MM __attribute__((target("i8mm")))
#else
#define FOR_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#define FOR_I8MM __attribute__((target("arch=armv8.2-a+i8mm")))
#endif

INLINE Ints_4 dot_neon(Ints_4 sum, int32_t four, const int8_t *weights) {
    /* The sum of two products of at most 127 * 127 fits into 16 bits. */
    int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(four)), w = vld1q_s8(weights);
    int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(w)), high = vmull_high_s8(x, w);
    return (Ints_4)vpadalq_s16((int32x4_t)sum, vpaddq_s16(low, high));
}

INLINE FOR_DOTPROD Ints_4 dot_dotprod(Ints_4 sum, int32_t four, const int8_t *weights) {
    return (Ints_4)vdotq_lane_s32((int32x4_t)sum, vld1q_s8(weights), vcreate_s8((uint32_t)four), 0);
}

/* The product of up to four rows of input bytes and one int8 panel. An instruction multiplies two rows by two
 * columns, eight bytes deep; of an odd number of rows, the last one is multiplied twice. */
INLINE FOR_I8MM void byte_sums_i8mm(const int rows, Ints_4 sum[][4], const uint8_t *inputs, int64_t stride,
                                    const int8_t *weights, int64_t depth) {
    const int pairs = (rows + 1) / 2;
    int32x4_t block[2][8]; /* (2 rows, 2 columns) each */
#pragma GCC unroll 2
    for (int p = 0; p < pairs; p++)
#pragma GCC unroll 8
        for (int c = 0; c < 8; c++) block[p][c] = vdupq_n_s32(0);
    for (int64_t k = 0; k < depth; k += 8, weights += 128) {
        int8x16_t x[2];
#pragma GCC unroll 2
        for (int p = 0; p < pairs; p++) {
            const int8_t *row = (const int8_t *)inputs + 2 * p * stride + k;
            x[p] = vcombine_s8(vld1_s8(row), vld1_s8(2 * p + 1 < rows ? row + stride : row));
        }
#pragma GCC unroll 8
        for (int c = 0; c < 8; c++) {
            int8x16_t w = vld1q_s8(weights + 16 * c);
#pragma GCC unroll 2
            for (int p = 0; p < pairs; p++) block[p][c] = vmmlaq_s32(block[p][c], x[p], w);
        }
    }
#pragma GCC unroll 2
    for (int p = 0; p < pairs; p++)
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++) {
            int64x2_t left = vreinterpretq_s64_s32(block[p][2 * q]), right = vreinterpretq_s64_s32(block[p][2 * q + 1]);
            sum[2 * p][q] += (Ints_4)vzip1q_s64(left, right);
            if (2 * p + 1 < rows) sum[2 * p + 1][q] += (Ints_4)vzip2q_s64(left, right);
        }
}

/* Whether the processor has an extension, by the names of Linux, macOS and Windows. */
#if defined(__linux__)
#ifndef HWCAP2_I8MM
#define HWCAP2_I8MM (1 << 13)
#endif
static int has_dotprod(void) { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
static int has_i8mm(void) { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
#elif defined(__APPLE__)
static int has(const char *name) {
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}
static int has_dotprod(void) { return has("hw.optional.arm.FEAT_DotProd"); }
static int has_i8mm(void) { return has("hw.optional.arm.FEAT_I8MM"); }
#elif defined(_WIN32)
static int has_dotprod(void) { return IsProcessorFeaturePresent(43) != 0; } /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
static int has_i8mm(void) { return IsProcessorFeaturePresent(66) != 0; }    /* PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE */
#else
static int has_dotprod(void) { return 0; }
static int has_i8mm(void) { return 0; }
#endif

static int supported(int isa) {
    if (isa == I8MM) return has_i8mm();
    if (isa == DOTPROD) return has_dotprod();
    return isa == NEON || isa == BASE;
}
