/* cvt, in three steps for a whole warp: loads the source as 64-bit integers or as doubles, which
 * represent every source type exactly, converts, and rounds to the result type. */
#include "emu/machine.h"
#include "emu/run/arith.h"

typedef struct values {
    s64 integers[WARP_LANES]; /* u64: reinterpreted bits */
    double floats[WARP_LANES];
} values;

static bool is_float(ptx_type type)
{
    return emu_type_kind(type) == KIND_FLOAT;
}

/* PTX integer types below 64 bits, and their C types. */
#define NARROW_INTEGERS(X) \
    X(u8, uint8_t)         \
    X(s8, int8_t)          \
    X(u16, uint16_t)       \
    X(s16, int16_t)        \
    X(u32, uint32_t)       \
    X(s32, int32_t)

/* Returns an integer of a type from the bits of a register, which may be wider. */
static s64 integer_of(u64 bits, ptx_type type)
{
    switch (type) {
#define X(name, T)    \
    case TYPE_##name: \
        return (T)bits;
        NARROW_INTEGERS(X)
#undef X
    default:
        return (s64)bits;
    }
}

static void load_integers(values *v, const void *from, ptx_type type, unsigned register_bits)
{
    switch (register_bits == 64 ? TYPE_NONE : type) {
#define X(name, T)                                \
    case TYPE_##name:                             \
        for (int i = 0; i < WARP_LANES; i++)      \
            v->integers[i] = (T)get_u32(from, i); \
        break;
        NARROW_INTEGERS(X)
#undef X
    default:
        for (int i = 0; i < WARP_LANES; i++)
            v->integers[i] = integer_of(get_bits(from, i, register_bits == 64), type);
    }
}

static s64 lowest_of(ptx_type type)
{
    return emu_type_kind(type) == KIND_SIGNED ? -(s64)(UINT64_C(1) << (emu_type_bits(type) - 2)) * 2
                                              : 0;
}

static u64 highest_of(ptx_type type)
{
    return low_bits(emu_type_bits(type) - (emu_type_kind(type) == KIND_SIGNED));
}

/* Converts with saturation. NaN gives 0, or the top bit if source or result have 64 bits. */
static s64 integer_near(double value, ptx_type type, bool nan_is_high)
{
    if (value != value)
        return nan_is_high ? (s64)(UINT64_C(1) << (emu_type_bits(type) - 1)) : 0;
    if (value <= (double)lowest_of(type))
        return lowest_of(type);
    if (value >= (double)highest_of(type))
        return (s64)highest_of(type);
    return value >= 0x1p63 ? (s64)(u64)value : (s64)value;
}

static s64 clamp_integer(s64 value, ptx_type to, ptx_type from)
{
    bool huge = from == TYPE_u64 && value < 0;
    if (huge || (value > 0 && (u64)value > highest_of(to)))
        return (s64)highest_of(to);
    return value < lowest_of(to) ? lowest_of(to) : value;
}

/* Defines NAME(value, mods), which converts to type R in the rounding mode of mods. */
#define ROUNDING(name, R, A)              \
    static R name(A value, unsigned mods) \
    {                                     \
        volatile A x = value;             \
        round_begin(mods);                \
        volatile R rounded = (R)x;        \
        round_end(mods);                  \
        return rounded;                   \
    }
ROUNDING(single_of_double, float, double)
ROUNDING(single_of_s64, float, s64)
ROUNDING(single_of_u64, float, u64)
ROUNDING(double_of_s64, double, s64)
ROUNDING(double_of_u64, double, u64)

/* Returns a 64-bit integer as a double, rounded to odd, so that a later rounding is correct. */
static double odd_double_of_integer(s64 value, bool is_unsigned)
{
    bool negative = value < 0 && !is_unsigned;
    u64 magnitude = negative ? UINT64_C(0) - (u64)value : (u64)value;
    if (magnitude >> 53)
        magnitude = (magnitude & ~UINT64_C(0xfff)) | (UINT64_C(0x800) * ((magnitude & 0xfff) != 0));
    return negative ? -(double)magnitude : (double)magnitude;
}

/* Returns the bits of a lane's floating-point result. */
static u64 float_result(const op *o, const values *v, int lane, bool from_integer)
{
    bool is_unsigned = o->type2 == TYPE_u64;
    unsigned mods = o->mods & MOD_INTEGRAL ? o->mods & ~(unsigned)MOD_DIRECTED : o->mods;
    if (o->type == TYPE_f32) {
        float single = !from_integer ? single_of_double(v->floats[lane], mods)
                       : is_unsigned ? single_of_u64((u64)v->integers[lane], mods)
                                     : single_of_s64(v->integers[lane], mods);
        return bits_of_float(finish(single, mods));
    }
    double value =
        !from_integer ? v->floats[lane] : odd_double_of_integer(v->integers[lane], is_unsigned);
    if (o->type != TYPE_f64)
        return o->type == TYPE_f16 ? half_of(value, mods) : bfloat_of(value, mods);
    if (from_integer)
        value = is_unsigned ? double_of_u64((u64)v->integers[lane], mods)
                            : double_of_s64(v->integers[lane], mods);
    return bits_of_double(!(mods & MOD_SAT) ? canonical_double(value)
                          : value > 0       ? fmin(value, 1)
                                            : 0);
}

void exec_cvt(warp *w, const op *o, lane_mask mask)
{
    ptx_type to = (ptx_type)o->type, from = (ptx_type)o->type2;
    bool from_integer = !is_float(from);
    u64 results[WARP_LANES];
    values v;
    if (from_integer) {
        load_integers(&v, source(w, o, 0), from, o->src_bits);
        for (int i = 0; !is_float(to) && o->mods & MOD_SAT && i < WARP_LANES; i++)
            v.integers[i] = clamp_integer(v.integers[i], to, from);
    } else {
        const void *real = source(w, o, 0);
        for (int i = 0; i < WARP_LANES; i++)
            v.floats[i] = from == TYPE_f16    ? (double)value_of_half(get_f16(real, i))
                          : from == TYPE_bf16 ? (double)value_of_bfloat(get_bf16(real, i))
                          : from == TYPE_f32  ? (double)flush(get_f32(real, i), o->mods)
                                              : get_f64(real, i);
        for (int i = 0; o->mods & MOD_INTEGRAL && i < WARP_LANES; i++)
            v.floats[i] = o->mods & MOD_RZ   ? trunc(v.floats[i])
                          : o->mods & MOD_RM ? floor(v.floats[i])
                          : o->mods & MOD_RP ? ceil(v.floats[i])
                                             : nearbyint(v.floats[i]);
        bool nan_is_high = from == TYPE_f64 || emu_type_bits(to) == 64;
        for (int i = 0; !is_float(to) && i < WARP_LANES; i++)
            v.integers[i] = integer_near(v.floats[i], to, nan_is_high);
    }
    for (int i = 0; i < WARP_LANES; i++)
        results[i] = is_float(to) ? float_result(o, &v, i, from_integer)
                                  : (u64)integer_of((u64)v.integers[i], to) & low_bits(o->dst_bits);
    write_lanes(w->file + o->dst[0], results, o->dst_bits == 64, mask);
}

#define PLAIN(name, R, A, value)                           \
    static void name(warp *w, const op *o, lane_mask mask) \
    {                                                      \
        const void *from = source(w, o, 0);                \
        lanes32 result;                                    \
        for (int i = 0; i < WARP_LANES; i++) {             \
            A a = get_##A(from, i);                        \
            put_##R(&result, i, value);                    \
        }                                                  \
        write_lanes32(w->file + o->dst[0], &result, mask); \
    }
PLAIN(single_of_u32, f32, u32, (f32)a)
PLAIN(single_of_s32, f32, s32, (f32)a)
PLAIN(single_of_half, f32, f16, canonical(value_of_half(a)))

/* Selects a fast path for the most frequent conversions, which have no modifiers. */
op_exec *exec_cvt_for(const op *o)
{
    if (o->mods || o->type != TYPE_f32)
        return exec_cvt;
    if (o->type2 == TYPE_u32 && o->src_bits == 32)
        return single_of_u32;
    if (o->type2 == TYPE_s32 && o->src_bits == 32)
        return single_of_s32;
    return o->type2 == TYPE_f16 ? single_of_half : exec_cvt;
}

/* Packs saturated a above saturated b; 8-bit results also take the low half of c above them. */
void exec_cvt_pack(warp *w, const op *o, lane_mask mask)
{
    ptx_type type = (ptx_type)o->type;
    unsigned bits = emu_type_bits(type);
    u32 all = (u32)low_bits(bits);
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++) {
        u32 a = (u32)clamp_integer(get_s32(source(w, o, 0), i), type, TYPE_s32) & all;
        u32 b = (u32)clamp_integer(get_s32(source(w, o, 1), i), type, TYPE_s32) & all;
        u32 c = bits == 8 ? get_u32(source(w, o, 2), i) << 16 : 0;
        result.u32[i] = c | a << bits | b;
    }
    write_lanes32(w->file + o->dst[0], &result, mask);
}
