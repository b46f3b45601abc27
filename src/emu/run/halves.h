/* f16 and bf16 arithmetic.
 *
 * Values are exact in double. A sum of doubles that is not exact is rounded to odd, so that the
 * rounding to 11 or 8 bits that follows is right.
 */
#ifndef PTXGEN_EMU_RUN_HALVES_H
#define PTXGEN_EMU_RUN_HALVES_H

#include "emu/run/arith.h"

/* The nearest f16 and bf16, or rounded as mods say; .sat and .relu apply. */
f16 half_of(double value, unsigned mods);
bf16 bfloat_of(double value, unsigned mods);

/* a + b, its last bit set where it is not exact. */
double sum_to_odd(double a, double b);

static inline float value_of_half(f16 bits)
{
    u32 sign = (u32)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    exponent = exponent == 31 ? 255 : exponent + 112;
    return float_of_bits(sign | exponent << 23 | mantissa << 13);
}

static inline float value_of_bfloat(bf16 bits)
{
    return float_of_bits((u32)bits << 16);
}

/* Eight bits of sign, exponent and mantissa. e4m3 has no infinity, and one NaN. */
float value_of_e4m3(uint8_t bits);
float value_of_e5m2(uint8_t bits);

/* The nearest of them, the largest for what is beyond; .relu applies. */
uint8_t e4m3_of(double value, unsigned mods);
uint8_t e5m2_of(double value, unsigned mods);

static inline u16 flush_half(u16 value, unsigned mods)
{
    return mods & MOD_FTZ && (value & 0x7c00) == 0 ? value & 0x8000 : value;
}

/* The values of operands, subnormals flushed where .ftz asks for it. */
static inline double half_in(f16 a, unsigned mods)
{
    return (double)value_of_half(flush_half(a, mods));
}

static inline f16 half_out(double value, unsigned mods)
{
    return flush_half(half_of(value, mods), mods);
}

static inline double bfloat_in(bf16 a, unsigned mods)
{
    return (double)flush(value_of_bfloat(a), mods);
}

/* Functions of one and two numbers: value of a, b and mods. */
#define FUNCTION1(name, in, out, value)          \
    static inline u16 name(u16 x, unsigned mods) \
    {                                            \
        double a = in(x, mods);                  \
        return out(value, mods);                 \
    }
#define FUNCTION2(name, in, out, value)                 \
    static inline u16 name(u16 x, u16 y, unsigned mods) \
    {                                                   \
        double a = in(x, mods), b = in(y, mods);        \
        return out(value, mods);                        \
    }
FUNCTION1(exp2_half, half_in, half_out, exp2(a))
FUNCTION1(tanh_half, half_in, half_out, tanh(a))
FUNCTION2(add_half, half_in, half_out, a + b)
FUNCTION2(sub_half, half_in, half_out, a - b)
FUNCTION2(mul_half, half_in, half_out, a *b)
FUNCTION2(min_half, half_in, half_out, (double)min_single((float)a, (float)b, mods))
FUNCTION2(max_half, half_in, half_out, (double)max_single((float)a, (float)b, mods))
FUNCTION1(exp2_bfloat, bfloat_in, bfloat_of, exp2(a))
FUNCTION1(tanh_bfloat, bfloat_in, bfloat_of, tanh(a))
FUNCTION2(add_bfloat, bfloat_in, bfloat_of, sum_to_odd(a, b))
FUNCTION2(sub_bfloat, bfloat_in, bfloat_of, sum_to_odd(a, -b))
FUNCTION2(mul_bfloat, bfloat_in, bfloat_of, a *b)
FUNCTION2(min_bfloat, bfloat_in, bfloat_of, (double)min_single((float)a, (float)b, mods))
FUNCTION2(max_bfloat, bfloat_in, bfloat_of, (double)max_single((float)a, (float)b, mods))

static inline f16 fma_half(f16 a, f16 b, f16 c, unsigned mods)
{
    return half_out(sum_to_odd(half_in(a, mods) * half_in(b, mods), half_in(c, mods)), mods);
}

static inline bf16 fma_bfloat(bf16 a, bf16 b, bf16 c, unsigned mods)
{
    double product = (double)value_of_bfloat(a) * (double)value_of_bfloat(b);
    return bfloat_of(sum_to_odd(product, (double)value_of_bfloat(c)), mods);
}

/* The same on both halves of a packed pair. */
static inline u32 both1(u16 (*each)(u16, unsigned), u32 a, unsigned mods)
{
    return (u32)each((u16)(a >> 16), mods) << 16 | each((u16)a, mods);
}

static inline u32 both2(u16 (*each)(u16, u16, unsigned), u32 a, u32 b, unsigned mods)
{
    return (u32)each((u16)(a >> 16), (u16)(b >> 16), mods) << 16 | each((u16)a, (u16)b, mods);
}

static inline u32 both3(u16 (*each)(u16, u16, u16, unsigned), u32 a, u32 b, u32 c, unsigned mods)
{
    return (u32)each((u16)(a >> 16), (u16)(b >> 16), (u16)(c >> 16), mods) << 16 |
           each((u16)a, (u16)b, (u16)c, mods);
}

static inline double high_half(f16x2 pair)
{
    return (double)value_of_half((f16)(pair >> 16));
}

static inline double low_half(f16x2 pair)
{
    return (double)value_of_half((f16)pair);
}

/* { high half: a, low half: b } of values, in f16, bf16, e4m3 or e5m2. */
#define PAIR(name, T, each, bits)                                 \
    static inline T name(double a, double b, unsigned mods)       \
    {                                                             \
        return (T)((u32)each(a, mods) << (bits) | each(b, mods)); \
    }
PAIR(half_pair, u32, half_of, 16)
PAIR(bfloat_pair, u32, bfloat_of, 16)
PAIR(e4m3_pair, b16, e4m3_of, 8)
PAIR(e5m2_pair, b16, e5m2_of, 8)
#undef PAIR

#endif
