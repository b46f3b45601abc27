/* Arithmetic of PTX instructions for which C has no operator: integers, bits and floats.
 *
 * Floating-point results are the same on every host. NaNs are canonical. Approximate instructions
 * are computed in double and rounded once, more accurate than the PTX ISA requires. The project is
 * compiled with -ffp-contract=off. */
#pragma once

#include <fenv.h>
#include <float.h>
#include <math.h>

#include "emu/module.h"

static inline s32 saturate_s32(s64 value)
{
    return (s32)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

static inline u64 high_u64(u64 a, u64 b)
{
    u64 low = (a & UINT32_MAX) * (b & UINT32_MAX);
    u64 middle = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    u64 other = (a & UINT32_MAX) * (b >> 32) + (middle & UINT32_MAX);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

static inline s64 high_s64(s64 a, s64 b)
{
    u64 high = high_u64((u64)a, (u64)b);
    return (s64)(high - (a < 0 ? (u64)b : 0) - (b < 0 ? (u64)a : 0));
}

static inline s64 divide_s64(s64 a, s64 b)
{
    if (b == 0)
        return -1;
    return b == -1 ? (s64)(UINT64_C(0) - (u64)a) : a / b;
}

static inline u32 low24(u32 a)
{
    return (a & 0x7fffff) - (a & 0x800000);
}

/* Returns a byte of a or, if bits is 16, a half. */
static inline u32 part_of(u32 a, int bits, bool is_signed, int which)
{
    a >>= bits * which;
    if (bits == 16)
        return is_signed ? (u32)(s16)a : (u16)a;
    return is_signed ? (u32)(int8_t)a : (uint8_t)a;
}

/* Returns the dot product of the parts of a and as many low bytes of b. */
static inline u32 dot(u32 a, int bits, bool a_signed, u32 b, bool b_signed)
{
    u32 sum = 0;
    for (int i = 0; i < 32 / bits; i++)
        sum += part_of(a, bits, a_signed, i) * part_of(b, 8, b_signed, i);
    return sum;
}

static inline u64 funnel(u32 high, u32 low)
{
    return (u64)high << 32 | low;
}

static inline u64 low_bits(u32 count)
{
    return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

static inline u64 extract_u64(u64 a, u32 position, u32 length, u32 width)
{
    position &= 0xff;
    length &= 0xff;
    if (position >= width)
        return 0;
    return a >> position & low_bits(length);
}

static inline s64 extract_s64(s64 a, u32 position, u32 length, u32 width)
{
    position &= 0xff;
    length &= 0xff;
    if (length == 0)
        return 0;
    s64 shifted = a >> (position < width ? position : width - 1);
    if (position + length >= width || length >= 64)
        return shifted;
    return (s64)((u64)shifted << (64 - length)) >> (64 - length);
}

static inline u64 insert_bits(u64 a, u64 b, u32 position, u32 length, u32 width)
{
    position &= 0xff;
    length &= 0xff;
    if (position >= width)
        return b;
    u64 mask = low_bits(length) << position;
    return (b & ~mask) | (a << position & mask);
}

static inline u64 reverse_bits(u64 a)
{
    u64 reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (a >> i & 1) << (63 - i);
    return reversed;
}

/* Returns the index of the highest set bit, or all ones for 0. */
static inline u32 highest_bit(u64 a)
{
    u32 bit = 0;
    if (a == 0)
        return UINT32_MAX;
    for (u32 step = 32; step; step /= 2)
        if (a >> (bit + step))
            bit += step;
    return bit;
}

static inline u32 shift_amount(u64 a, u32 top)
{
    return a ? top - highest_bit(a) : UINT32_MAX;
}

/* prmt: byte i of the result is byte selector[4i+2:4i] of b:a. Bit 4i+3 replicates its sign. */
static inline u32 permute(u32 a, u32 b, u32 selector)
{
    u64 bytes = funnel(b, a);
    u32 result = 0;
    for (int i = 0; i < 4; i++) {
        u32 nibble = selector >> 4 * i & 15;
        u32 byte = (u32)(bytes >> 8 * (nibble & 7)) & 0xff;
        if (nibble & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}

static const u32 permute_b4e[] = { 0x5670, 0x6701, 0x7012, 0x0123 };
static const u32 permute_ecl[] = { 0x3210, 0x3211, 0x3222, 0x3333 };
static const u32 permute_ecr[] = { 0x0000, 0x1110, 0x2210, 0x3210 };

/* Returns min or max of the halves of a and b; .relu clamps to 0. */
static inline u32 choose_halves(u32 a, u32 b, bool is_signed, bool most, unsigned mods)
{
    u32 result = 0;
    for (int i = 0; i < 2; i++) {
        s32 x = (s32)part_of(a, 16, is_signed, i), y = (s32)part_of(b, 16, is_signed, i);
        s32 chosen = (x > y) == most ? x : y;
        result |= (u32)(mods & MOD_RELU && chosen < 0 ? 0 : chosen & 0xffff) << 16 * i;
    }
    return result;
}

/* Returns absolute differences of the parts of a and b, packed or, if adds, accumulated to c. */
static inline u32 differences(u32 a, u32 b, u32 c, int bits, bool adds)
{
    u32 result = adds ? c : 0;
    for (int i = 0; i < 32 / bits; i++) {
        u32 x = part_of(a, bits, false, i), y = part_of(b, bits, false, i);
        result += (x > y ? x - y : y - x) << (adds ? 0 : bits * i);
    }
    return result;
}

/* Implements fns: returns the position of the n-th set bit, counted from 1, upwards from base or,
 * if n is negative, downwards. n = 0 tests base itself. Returns all ones if there is none. */
static inline u32 find_nth_set(u32 mask, u32 base, s32 n)
{
    s64 step = n < 0 ? -1 : 1, left = n < 0 ? -(s64)n : n;
    if (!n)
        return base < 32 && mask >> base & 1 ? base : UINT32_MAX;
    for (s64 at = base; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && --left == 0)
            return (u32)at;
    return UINT32_MAX;
}

/* Extends the low count bits of a with zeros or the sign. */
static inline u32 extend_bits(u32 a, u32 count, bool is_signed)
{
    if (!count || count >= 32)
        return count ? a : 0;
    u32 low = a & ((UINT32_C(1) << count) - 1);
    return is_signed && low >> (count - 1) ? low | ~((UINT32_C(1) << count) - 1) : low;
}

static inline u32 lookup3(u32 a, u32 b, u32 c, u32 table)
{
    u32 result = 0;
    for (u32 i = 0; i < 8; i++) {
        u32 wanted = 0u - (table >> i & 1);
        result |= wanted & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}

/* Combines two integers or lane masks as an atomic operation or reduction does. */
static inline u64 combine_integers(ptx_combine how, ptx_type type, u64 a, u64 b)
{
    bool less = type == TYPE_s32 ? (s32)a < (s32)b : type == TYPE_s64 ? (s64)a < (s64)b : a < b;
    return how == COMBINE_NONE  ? a
           : how == COMBINE_AND ? a & b
           : how == COMBINE_OR  ? a | b
           : how == COMBINE_XOR ? a ^ b
           : how == COMBINE_ADD ? a + b
           : how == COMBINE_MIN ? (less ? a : b)
           : how == COMBINE_MAX ? (less ? b : a)
           : how == COMBINE_INC ? (a >= b ? 0 : a + 1)
           : how == COMBINE_DEC ? (a == 0 || a > b ? b : a - 1)
                                : b; /* exch */
}

static inline float canonical(float value)
{
    return value == value ? value : float_of_bits(0x7fffffff);
}

static inline double canonical_double(double value)
{
    return value == value ? value : double_of_bits(UINT64_C(0x7ff8000000000000));
}

/* Rounds to the 10 mantissa bits of tf32. Ties go away from zero. */
static inline b32 round_tf32(float value)
{
    u32 bits = bits_of_float(value), rounded = ((bits & 0x7fffffff) + (1u << 12)) >> 13 << 13;
    return value == value ? (bits & 0x80000000) | rounded : 0x7fffffff;
}

static inline float flush(float value, unsigned mods)
{
    return mods & MOD_FTZ && fabsf(value) < FLT_MIN ? copysignf(0, value) : value;
}

static inline double flush_double(double value, unsigned mods)
{
    return mods & MOD_FTZ && fabs(value) < DBL_MIN ? copysign(0, value) : value;
}

static inline float finish(float value, unsigned mods)
{
    value = flush(canonical(value), mods);
    return mods & MOD_SAT ? (value > 0 ? (value < 1 ? value : 1) : 0) : value;
}

static inline double finish_double(double value, unsigned mods)
{
    return flush_double(canonical_double(value), mods);
}

/* Set and reset the rounding mode of an operation with volatile operands, to keep it inside. */
static inline void round_begin(unsigned mods)
{
    if (mods & MOD_DIRECTED)
        fesetround(mods & MOD_RZ ? FE_TOWARDZERO : mods & MOD_RM ? FE_DOWNWARD : FE_UPWARD);
}

static inline void round_end(unsigned mods)
{
    if (mods & MOD_DIRECTED)
        fesetround(FE_TONEAREST);
}

#define ROUNDED(name, T, in, out, value)             \
    static inline T name(T a, T b, unsigned mods)    \
    {                                                \
        volatile T x = in(a, mods), y = in(b, mods); \
        round_begin(mods);                           \
        volatile T result = value;                   \
        round_end(mods);                             \
        return out(result, mods);                    \
    }
ROUNDED(add_single, float, flush, finish, x + y)
ROUNDED(mul_single, float, flush, finish, x *y)
ROUNDED(div_single, float, flush, finish, x / y)
ROUNDED(add_double, double, flush_double, finish_double, x + y)
ROUNDED(mul_double, double, flush_double, finish_double, x *y)
ROUNDED(div_double, double, flush_double, finish_double, x / y)

#define ROUNDED3(name, T, in, out, value)                             \
    static inline T name(T a, T b, T c, unsigned mods)                \
    {                                                                 \
        volatile T x = in(a, mods), y = in(b, mods), z = in(c, mods); \
        round_begin(mods);                                            \
        volatile T result = value;                                    \
        round_end(mods);                                              \
        return out(result, mods);                                     \
    }
#define ROUNDED1(name, T, in, out, value)    \
    static inline T name(T a, unsigned mods) \
    {                                        \
        volatile T x = in(a, mods);          \
        round_begin(mods);                   \
        volatile T result = value;           \
        round_end(mods);                     \
        return out(result, mods);            \
    }
ROUNDED3(fma_single, float, flush, finish, fmaf(x, y, z))
ROUNDED3(fma_double, double, flush_double, finish_double, fma(x, y, z))
ROUNDED1(sqrt_single, float, flush, finish, sqrtf(x))
ROUNDED1(sqrt_double, double, flush_double, finish_double, sqrt(x))

static inline double reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

static inline float approximate(float a, unsigned mods, double (*function)(double))
{
    return finish((float)function((double)flush(a, mods)), mods);
}

/* Defines min and max: -0 is less than +0, and a NaN loses unless .NaN is set. */
#define EXTREME(name, T, in, out, if_less, if_not)                \
    static inline T name(T a, T b, unsigned mods)                 \
    {                                                             \
        T x = in(a, mods), y = in(b, mods);                       \
        if (x != x || y != y)                                     \
            return out(mods & MOD_NAN ? (T)NAN : x != x ? y : x); \
        bool less = x == y ? signbit(x) : x < y;                  \
        return less ? if_less : if_not;                           \
    }
EXTREME(min_single, float, flush, canonical, x, y)
EXTREME(max_single, float, flush, canonical, y, x)
EXTREME(min_double, double, flush_double, canonical_double, x, y)
EXTREME(max_double, double, flush_double, canonical_double, y, x)

/* f16 and bf16: exact in double. Sums are rounded to odd, so that later rounding is correct. */

/* Round to f16 and bf16, to nearest even or as mods say; .sat and .relu apply. */
f16 half_of(double value, unsigned mods);
bf16 bfloat_of(double value, unsigned mods);

/* Returns a + b rounded to odd: an inexact sum has its last bit set. */
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

/* Decode 8 bits of sign, exponent and mantissa. e4m3 has no infinity, and one NaN per sign. */
float value_of_e4m3(uint8_t bits);
float value_of_e5m2(uint8_t bits);

/* Round to nearest even and saturate to the largest finite value; .relu applies. */
uint8_t e4m3_of(double value, unsigned mods);
uint8_t e5m2_of(double value, unsigned mods);

static inline u16 flush_half(u16 value, unsigned mods)
{
    return mods & MOD_FTZ && (value & 0x7c00) == 0 ? value & 0x8000 : value;
}

/* Convert operands and results; .ftz flushes subnormals. */
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

/* Define functions of one and two numbers: value is C over a, b and mods. */
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

/* Apply a function to both halves of a packed pair. */
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

/* Defines NAME(a, b, mods), which packs a into the high and b into the low half. */
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
