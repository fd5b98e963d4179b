/* Vectors of LANES floats or integers and the functions of one vector. cpu_isa.h includes this file first. */

typedef float NAME(Floats) __attribute__((vector_size(LANES * 4)));
typedef float NAME(Loaded) __attribute__((vector_size(LANES * 4), aligned(4)));
typedef int32_t NAME(Ints) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(LoadedInts) __attribute__((vector_size(LANES * 4), aligned(4)));
#define F NAME(Floats)
#define I NAME(Ints)
#define PANEL (4 * LANES)

INLINE TARGET F NAME(load)(const float *from) { return *(const NAME(Loaded) *)from; }
INLINE TARGET void NAME(store)(float *to, F value) { *(NAME(Loaded) *)to = value; }
INLINE TARGET F NAME(select)(I mask, F yes, F no) { return (F)((mask & (I)yes) | (~mask & (I)no)); }
/* NaN is kept, as in the plain functions: these two return b if b is NaN, so the limit is always a; `larger` returns NaN
 * if a or b is NaN. */
INLINE TARGET F NAME(minimum)(F a, F b) { return NAME(select)(a < b, a, b); }
INLINE TARGET F NAME(maximum)(F a, F b) { return NAME(select)(a > b, a, b); }
INLINE TARGET F NAME(larger)(F a, F b) { return NAME(select)((a > b) | (a != a), a, b); }
INLINE TARGET F NAME(broadcast)(float value) { return value - (F){0}; } /* the same bits, and no operation */

/* e^x as 2^n times a polynomial of the remainder. With it, sigmoid and tanh have errors of at most 2e-7. */
INLINE TARGET F NAME(exponential)(F x) {
    x = NAME(minimum)(NAME(broadcast)(88.0f), NAME(maximum)(NAME(broadcast)(-87.0f), x));
    const F magic = NAME(broadcast)(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    F shifted = x * 1.44269504f + magic;
    F whole = shifted - magic;
    F rest = x - whole * 0.693359375f;
    rest = rest - whole * -2.12194440e-4f;
    F sum = rest * (1.0f / 5040) + (1.0f / 720);
    sum = sum * rest + (1.0f / 120);
    sum = sum * rest + (1.0f / 24);
    sum = sum * rest + (1.0f / 6);
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    I power = ((I)shifted - (I)magic + 127) << 23;
    return sum * (F)power;
}
INLINE TARGET F NAME(sigmoid)(F x) { return 1.0f / (1.0f + NAME(exponential)(-x)); }
INLINE TARGET F NAME(hyperbolic)(F x) { return 1.0f - 2.0f / (1.0f + NAME(exponential)(x + x)); }
