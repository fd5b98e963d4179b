/* Products of bytes with AVX2 and AVX-512, and what the processor has. */

#include <cpuid.h>
#include <immintrin.h>

#define FOR_AVX2 __attribute__((target("avx2,fma")))
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")))

typedef int32_t Ints_8 __attribute__((vector_size(32)));
typedef int32_t Ints_16 __attribute__((vector_size(64)));

INLINE FOR_AVX2 Ints_8 dot_avx2(Ints_8 sum, int32_t four, const int8_t *weights) {
    /* |x| times w with the sign of x: the sum of two products of at most 127 * 127 fits into 16 bits. */
    __m256i x = _mm256_set1_epi32(four);
    __m256i w = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i *)weights), x);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), w);
    return sum + (Ints_8)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

INLINE FOR_AVX512 Ints_16 dot_avx512(Ints_16 sum, int32_t four, const int8_t *weights) {
    return (Ints_16)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(four), _mm512_loadu_si512(weights));
}

/* __builtin_cpu_supports is not used: on Windows it needs a library of the compiler that clang-cl does not link. */
static int supported(int isa) {
    const unsigned avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d, saved, high;
    if (isa == BASE) return 1;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0)); /* registers that the operating system saves */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) || (saved & 0x06) != 0x06) return 0;
    if (isa == AVX512) return (b & avx512) == avx512 && c & bit_AVX512VNNI && (saved & 0xe6) == 0xe6;
    return isa == AVX2;
}
