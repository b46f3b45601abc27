/* f16 and bf16 arithmetic.
 *
 * Values are exact in double. A sum of doubles that is not exact is rounded to odd, so that the
 * rounding to 11 or 8 bits that follows is right.
 */
#ifndef PTXGEN_EMU_RUN_HALVES_H
#define PTXGEN_EMU_RUN_HALVES_H

#include "emu/run/arith.h"

/* The f16 and bf16 nearest to a double or, by mods, in the direction asked for; .sat and .relu
 * apply. */
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

static inline f16 add_half(f16 a, f16 b, unsigned mods)
{
    return half_out(half_in(a, mods) + half_in(b, mods), mods);
}

static inline f16 sub_half(f16 a, f16 b, unsigned mods)
{
    return half_out(half_in(a, mods) - half_in(b, mods), mods);
}

static inline f16 mul_half(f16 a, f16 b, unsigned mods)
{
    return half_out(half_in(a, mods) * half_in(b, mods), mods);
}

static inline f16 fma_half(f16 a, f16 b, f16 c, unsigned mods)
{
    return half_out(sum_to_odd(half_in(a, mods) * half_in(b, mods), half_in(c, mods)), mods);
}

static inline f16 min_half(f16 a, f16 b, unsigned mods)
{
    return half_of(
        (double)min_single((float)half_in(a, mods), (float)half_in(b, mods), mods & MOD_NAN), 0);
}

static inline f16 max_half(f16 a, f16 b, unsigned mods)
{
    return half_of(
        (double)max_single((float)half_in(a, mods), (float)half_in(b, mods), mods & MOD_NAN), 0);
}

static inline bf16 add_bfloat(bf16 a, bf16 b, unsigned mods)
{
    return bfloat_of(sum_to_odd((double)value_of_bfloat(a), (double)value_of_bfloat(b)), mods);
}

static inline bf16 mul_bfloat(bf16 a, bf16 b, unsigned mods)
{
    return bfloat_of((double)value_of_bfloat(a) * (double)value_of_bfloat(b), mods);
}

static inline bf16 fma_bfloat(bf16 a, bf16 b, bf16 c, unsigned mods)
{
    double product = (double)value_of_bfloat(a) * (double)value_of_bfloat(b);
    return bfloat_of(sum_to_odd(product, (double)value_of_bfloat(c)), mods);
}

static inline bf16 min_bfloat(bf16 a, bf16 b, unsigned mods)
{
    return bfloat_of((double)min_single(value_of_bfloat(a), value_of_bfloat(b), mods), 0);
}

static inline bf16 max_bfloat(bf16 a, bf16 b, unsigned mods)
{
    return bfloat_of((double)max_single(value_of_bfloat(a), value_of_bfloat(b), mods), 0);
}

static inline f16 exp2_half(f16 a, unsigned mods)
{
    return half_out(exp2(half_in(a, mods)), mods);
}

static inline f16 tanh_half(f16 a, unsigned mods)
{
    return half_out(tanh(half_in(a, mods)), mods);
}

static inline bf16 exp2_bfloat(bf16 a, unsigned mods)
{
    return bfloat_of(exp2((double)flush(value_of_bfloat(a), mods)), mods);
}

static inline bf16 tanh_bfloat(bf16 a, unsigned mods)
{
    return bfloat_of(tanh((double)value_of_bfloat(a)), mods);
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

#endif
