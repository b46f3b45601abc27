/* What PTX instructions compute where C has no operator for it: integers, bits, f32 and f64.
 *
 * Floating-point results are the same on every host: NaNs are made canonical, approximate
 * instructions are computed in double and rounded once (more accurate than the PTX ISA promises),
 * and the project is compiled with -ffp-contract=off.
 */
#ifndef PTXGEN_EMU_ARITH_H
#define PTXGEN_EMU_ARITH_H

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

static inline u32 byte_of(u32 a, int which)
{
    return a >> 8 * which & 0xff;
}

static inline s32 signed_byte(u32 a, int which)
{
    return (int8_t)byte_of(a, which);
}

static inline u32 dot4_uu(u32 a, u32 b)
{
    u32 sum = 0;
    for (int i = 0; i < 4; i++)
        sum += byte_of(a, i) * byte_of(b, i);
    return sum;
}

static inline u32 dot4_us(u32 a, u32 b)
{
    s32 sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (s32)byte_of(a, i) * signed_byte(b, i);
    return (u32)sum;
}

static inline u32 dot4_ss(u32 a, u32 b)
{
    s32 sum = 0;
    for (int i = 0; i < 4; i++)
        sum += signed_byte(a, i) * signed_byte(b, i);
    return (u32)sum;
}

/* Two 16-bit values of a times two bytes of b, those from bit shift on. */
static inline u32 dot2(u32 a, u32 b, bool a_signed, bool b_signed, int shift)
{
    u32 sum = 0;
    for (int i = 0; i < 2; i++) {
        u32 half = a >> 16 * i & 0xffff, byte = b >> (shift + 8 * i) & 0xff;
        if (a_signed)
            half = (u32)(s32)(s16)half;
        if (b_signed)
            byte = (u32)(s32)(int8_t)byte;
        sum += half * byte;
    }
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

/* The number of the highest bit set, all ones for 0. */
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

/* Byte i of the result is byte selector[4i+2:4i] of b:a; bit 4i+3 replicates that byte's sign. */
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

static inline u32 lookup3(u32 a, u32 b, u32 c, u32 table)
{
    u32 result = 0;
    for (u32 i = 0; i < 8; i++) {
        u32 wanted = 0u - (table >> i & 1);
        result |= wanted & (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    }
    return result;
}

static inline float canonical(float value)
{
    const u32 bits = 0x7fffffff;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    return value == value ? value : nan;
}

static inline double canonical_double(double value)
{
    const u64 bits = UINT64_C(0x7ff8000000000000);
    double nan;
    memcpy(&nan, &bits, sizeof nan);
    return value == value ? value : nan;
}

static inline float flush(float value, unsigned mods)
{
    return mods & MOD_FTZ && fabsf(value) < FLT_MIN ? copysignf(0, value) : value;
}

static inline double flush_double(double value, unsigned mods)
{
    return mods & MOD_FTZ && fabs(value) < DBL_MIN ? copysign(0, value) : value;
}

static inline float saturate(float value)
{
    return value > 0 ? (value < 1 ? value : 1) : 0;
}

static inline float finish(float value, unsigned mods)
{
    value = flush(canonical(value), mods);
    return mods & MOD_SAT ? saturate(value) : value;
}

/* Operations in a direction of rounding set the host's; the operands are volatile so that the
 * compiler leaves the operation between the two. */
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

static inline float add_single(float a, float b, unsigned mods)
{
    volatile float x = flush(a, mods), y = flush(b, mods);
    round_begin(mods);
    volatile float sum = x + y;
    round_end(mods);
    return finish(sum, mods);
}

static inline float mul_single(float a, float b, unsigned mods)
{
    volatile float x = flush(a, mods), y = flush(b, mods);
    round_begin(mods);
    volatile float product = x * y;
    round_end(mods);
    return finish(product, mods);
}

static inline float fma_single(float a, float b, float c, unsigned mods)
{
    volatile float x = flush(a, mods), y = flush(b, mods), z = flush(c, mods);
    round_begin(mods);
    volatile float result = fmaf(x, y, z);
    round_end(mods);
    return finish(result, mods);
}

static inline float div_single(float a, float b, unsigned mods)
{
    volatile float x = flush(a, mods), y = flush(b, mods);
    round_begin(mods);
    volatile float quotient = x / y;
    round_end(mods);
    return finish(quotient, mods);
}

static inline float sqrt_single(float a, unsigned mods)
{
    volatile float x = flush(a, mods);
    round_begin(mods);
    volatile float root = sqrtf(x);
    round_end(mods);
    return finish(root, mods);
}

static inline double reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

static inline float approximate(float a, unsigned mods, double (*function)(double))
{
    return finish((float)function((double)flush(a, mods)), mods);
}

static inline float min_single(float a, float b, unsigned mods)
{
    float x = flush(a, mods), y = flush(b, mods);
    if (x != x || y != y)
        return canonical(mods & MOD_NAN ? NAN : x != x ? y : x);
    if (x == y)
        return signbit(x) ? x : y;
    return x < y ? x : y;
}

static inline float max_single(float a, float b, unsigned mods)
{
    float x = flush(a, mods), y = flush(b, mods);
    if (x != x || y != y)
        return canonical(mods & MOD_NAN ? NAN : x != x ? y : x);
    if (x == y)
        return signbit(x) ? y : x;
    return x > y ? x : y;
}

static inline double add_double(double a, double b, unsigned mods)
{
    volatile double x = a, y = b;
    round_begin(mods);
    volatile double sum = x + y;
    round_end(mods);
    return canonical_double(sum);
}

static inline double mul_double(double a, double b, unsigned mods)
{
    volatile double x = a, y = b;
    round_begin(mods);
    volatile double product = x * y;
    round_end(mods);
    return canonical_double(product);
}

static inline double fma_double(double a, double b, double c, unsigned mods)
{
    volatile double x = a, y = b, z = c;
    round_begin(mods);
    volatile double result = fma(x, y, z);
    round_end(mods);
    return canonical_double(result);
}

static inline double div_double(double a, double b, unsigned mods)
{
    volatile double x = a, y = b;
    round_begin(mods);
    volatile double quotient = x / y;
    round_end(mods);
    return canonical_double(quotient);
}

static inline double sqrt_double(double a, unsigned mods)
{
    volatile double x = a;
    round_begin(mods);
    volatile double root = sqrt(x);
    round_end(mods);
    return canonical_double(root);
}

static inline double min_double(double a, double b)
{
    if (a != a || b != b)
        return canonical_double(a != a ? b : a);
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

static inline double max_double(double a, double b)
{
    if (a != a || b != b)
        return canonical_double(a != a ? b : a);
    if (a == b)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

#endif
