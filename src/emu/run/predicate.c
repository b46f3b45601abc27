/* Comparisons and what is done with predicates. */
#include "emu/exec.h"
#include "emu/machine.h"
#include "emu/run/halves.h"

#define COMPARE_LANES(T, V, in, test)                                               \
    for (int i = 0; i < WARP_LANES; i++) {                                          \
        V a = in(get_##T(source(w, o, 0), i)), b = in(get_##T(source(w, o, 1), i)); \
        bits |= (test) ? lane_bits[i] : 0;                                          \
    }                                                                               \
    break

#define AS_IS(x) (x)

#define COMPARE_INTEGERS(T)                 \
    switch (o->compare) {                   \
    case COMPARE_EQ:                        \
        COMPARE_LANES(T, T, AS_IS, a == b); \
    case COMPARE_NE:                        \
        COMPARE_LANES(T, T, AS_IS, a != b); \
    case COMPARE_LT:                        \
        COMPARE_LANES(T, T, AS_IS, a < b);  \
    case COMPARE_LE:                        \
        COMPARE_LANES(T, T, AS_IS, a <= b); \
    case COMPARE_GT:                        \
        COMPARE_LANES(T, T, AS_IS, a > b);  \
    default:                                \
        COMPARE_LANES(T, T, AS_IS, a >= b); \
    }                                       \
    break

/* The ordered comparisons are false for NaN, those with a u are true. */
#define COMPARE_FLOATS(T, V, in)                    \
    switch (o->compare) {                           \
    case COMPARE_EQ:                                \
        COMPARE_LANES(T, V, in, a == b);            \
    case COMPARE_NE:                                \
        COMPARE_LANES(T, V, in, a<b || a> b);       \
    case COMPARE_LT:                                \
        COMPARE_LANES(T, V, in, a < b);             \
    case COMPARE_LE:                                \
        COMPARE_LANES(T, V, in, a <= b);            \
    case COMPARE_GT:                                \
        COMPARE_LANES(T, V, in, a > b);             \
    case COMPARE_GE:                                \
        COMPARE_LANES(T, V, in, a >= b);            \
    case COMPARE_EQU:                               \
        COMPARE_LANES(T, V, in, !(a < b || a > b)); \
    case COMPARE_NEU:                               \
        COMPARE_LANES(T, V, in, a != b);            \
    case COMPARE_LTU:                               \
        COMPARE_LANES(T, V, in, !(a >= b));         \
    case COMPARE_LEU:                               \
        COMPARE_LANES(T, V, in, !(a > b));          \
    case COMPARE_GTU:                               \
        COMPARE_LANES(T, V, in, !(a <= b));         \
    case COMPARE_GEU:                               \
        COMPARE_LANES(T, V, in, !(a < b));          \
    case COMPARE_NUM:                               \
        COMPARE_LANES(T, V, in, a == a && b == b);  \
    default:                                        \
        COMPARE_LANES(T, V, in, a != a || b != b);  \
    }                                               \
    break

#define FLUSHED(x) flush(x, o->mods)
#define HALF(x)    value_of_half(flush_half(x, o->mods))

static lane_mask compare(const warp *w, const op *o)
{
    lane_mask bits = 0;
    switch ((ptx_type)o->type2) {
    case TYPE_b16:
    case TYPE_u16:
        COMPARE_INTEGERS(u16);
    case TYPE_s16:
        COMPARE_INTEGERS(s16);
    case TYPE_b32:
    case TYPE_u32:
        COMPARE_INTEGERS(u32);
    case TYPE_s32:
        COMPARE_INTEGERS(s32);
    case TYPE_b64:
    case TYPE_u64:
        COMPARE_INTEGERS(u64);
    case TYPE_s64:
        COMPARE_INTEGERS(s64);
    case TYPE_f16:
        COMPARE_FLOATS(f16, float, HALF);
    case TYPE_bf16:
        COMPARE_FLOATS(bf16, float, value_of_bfloat);
    case TYPE_f32:
        COMPARE_FLOATS(f32, float, FLUSHED);
    default:
        COMPARE_FLOATS(f64, double, AS_IS);
    }
    return bits;
}

static lane_mask combine(ptx_combine how, lane_mask a, lane_mask b)
{
    switch (how) {
    case COMBINE_AND:
        return a & b;
    case COMBINE_OR:
        return a | b;
    case COMBINE_XOR:
        return a ^ b;
    default:
        return a;
    }
}

void exec_setp(warp *w, const op *o, lane_mask mask)
{
    lane_mask bits = compare(w, o), other = predicate(w, o->src[2], o->pred_not);
    write_predicate(w, o->dst[0], combine((ptx_combine)o->combine, bits, other), mask);
    write_predicate(w, o->dst[1], combine((ptx_combine)o->combine, ~bits, other), mask);
}

/* What set gives where a comparison of this type of result holds. */
static u32 true_value(ptx_type type)
{
    switch (type) {
    case TYPE_f32:
        return 0x3f800000;
    case TYPE_f16:
    case TYPE_f16x2:
        return 0x3c00;
    case TYPE_bf16:
    case TYPE_bf16x2:
        return 0x3f80;
    case TYPE_u16:
    case TYPE_s16:
        return UINT16_MAX;
    default:
        return UINT32_MAX;
    }
}

static bool compare_floats(ptx_compare how, float a, float b)
{
    bool unordered = a != a || b != b;
    switch (how) {
    case COMPARE_EQ:
        return a == b;
    case COMPARE_NE:
        return a < b || a > b;
    case COMPARE_LT:
        return a < b;
    case COMPARE_LE:
        return a <= b;
    case COMPARE_GT:
        return a > b;
    case COMPARE_GE:
        return a >= b;
    case COMPARE_EQU:
        return unordered || a == b;
    case COMPARE_NEU:
        return unordered || a != b;
    case COMPARE_LTU:
        return unordered || a < b;
    case COMPARE_LEU:
        return unordered || a <= b;
    case COMPARE_GTU:
        return unordered || a > b;
    case COMPARE_GEU:
        return unordered || a >= b;
    case COMPARE_NUM:
        return !unordered;
    default:
        return unordered;
    }
}

/* Of two numbers in 32 bits each: those from bit shift on. */
static lane_mask compare_part(const warp *w, const op *o, unsigned shift)
{
    lane_mask bits = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        u16 a = (u16)(get_u32(source(w, o, 0), i) >> shift);
        u16 b = (u16)(get_u32(source(w, o, 1), i) >> shift);
        bool half = o->type2 == TYPE_f16x2;
        float x = half ? HALF(a) : value_of_bfloat(a), y = half ? HALF(b) : value_of_bfloat(b);
        bits |= (lane_mask)compare_floats((ptx_compare)o->compare, x, y) << i;
    }
    return combine((ptx_combine)o->combine, bits, predicate(w, o->src[2], o->pred_not));
}

void exec_setp_x2(warp *w, const op *o, lane_mask mask)
{
    lane_mask low = compare_part(w, o, 0), high = compare_part(w, o, 16);
    write_predicate(w, o->dst[0], low, mask);
    write_predicate(w, o->dst[1], high, mask);
}

void exec_set_x2(warp *w, const op *o, lane_mask mask)
{
    lane_mask low = compare_part(w, o, 0), high = compare_part(w, o, 16);
    const u32 one = true_value((ptx_type)o->type) & UINT16_MAX;
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u32[i] = (low >> i & 1 ? one : 0) | (high >> i & 1 ? one << 16 : 0);
    write_lanes32(w->file + o->dst[0], &result, mask);
}

void exec_set(warp *w, const op *o, lane_mask mask)
{
    lane_mask other = predicate(w, o->src[2], o->pred_not);
    lane_mask bits = combine((ptx_combine)o->combine, compare(w, o), other);
    const u32 one = true_value((ptx_type)o->type);
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u32[i] = bits >> i & 1 ? one : 0;
    write_lanes32(w->file + o->dst[0], &result, mask);
}

void exec_selp32(warp *w, const op *o, lane_mask mask)
{
    const lanes32 *a = source(w, o, 0), *b = source(w, o, 1);
    lane_mask chosen = predicate(w, o->src[2], o->pred_not);
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u32[i] = chosen & lane_bits[i] ? a->u32[i] : b->u32[i];
    write_lanes32(w->file + o->dst[0], &result, mask);
}

void exec_selp64(warp *w, const op *o, lane_mask mask)
{
    const lanes64 *a = source(w, o, 0), *b = source(w, o, 1);
    lane_mask chosen = predicate(w, o->src[2], o->pred_not);
    lanes64 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.u64[i] = chosen >> i & 1 ? a->u64[i] : b->u64[i];
    write_lanes64(w->file + o->dst[0], &result, mask);
}

static bool test_class(int class, unsigned test)
{
    switch (test) {
    case 0:
        return class != FP_INFINITE && class != FP_NAN;
    case 1:
        return class == FP_INFINITE;
    case 2:
        return class != FP_NAN;
    case 3:
        return class == FP_NAN;
    case 4:
        return class == FP_NORMAL || class == FP_ZERO;
    default:
        return class == FP_SUBNORMAL;
    }
}

void exec_testp(warp *w, const op *o, lane_mask mask)
{
    lane_mask bits = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        int class = o->type == TYPE_f32 ? fpclassify(get_f32(source(w, o, 0), i))
                                        : fpclassify(get_f64(source(w, o, 0), i));
        bits |= (lane_mask)test_class(class, o->variant) << i;
    }
    write_predicate(w, o->dst[0], bits, mask);
}

void exec_predicate_move(warp *w, const op *o, lane_mask mask)
{
    write_predicate(w, o->dst[0], predicate(w, o->src[0], o->pred_not), mask);
}

void exec_predicate_not(warp *w, const op *o, lane_mask mask)
{
    write_predicate(w, o->dst[0], ~predicate(w, o->src[0], o->pred_not), mask);
}

void exec_predicate_logic(warp *w, const op *o, lane_mask mask)
{
    lane_mask a = predicate(w, o->src[0], false), b = predicate(w, o->src[1], o->pred_not);
    write_predicate(w, o->dst[0], combine((ptx_combine)o->combine, a, b), mask);
}
