/* Comparisons and operations on predicates. */
#include "emu/machine.h"
#include "emu/run/arith.h"

/* Comparisons of integers, as C over a and b. */
#define INTEGER_TESTS(X, ...)       \
    X(EQ, a == b, __VA_ARGS__)      \
    X(NE, a<b || a> b, __VA_ARGS__) \
    X(LT, a < b, __VA_ARGS__)       \
    X(LE, a <= b, __VA_ARGS__)      \
    X(GT, a > b, __VA_ARGS__)       \
    X(GE, a >= b, __VA_ARGS__)

/* Comparisons of floats. With a NaN, ordered comparisons are false and unordered ones (…U) true. */
#define FLOAT_TESTS(X, ...)                \
    INTEGER_TESTS(X, __VA_ARGS__)          \
    X(EQU, !(a < b || a > b), __VA_ARGS__) \
    X(NEU, a != b, __VA_ARGS__)            \
    X(LTU, !(a >= b), __VA_ARGS__)         \
    X(LEU, !(a > b), __VA_ARGS__)          \
    X(GTU, !(a <= b), __VA_ARGS__)         \
    X(GEU, !(a < b), __VA_ARGS__)          \
    X(NUM, a == a && b == b, __VA_ARGS__)  \
    X(NAN, a != a || b != b, __VA_ARGS__)

#define COMPARE_LANES(name, test, T, V, in)                 \
    case COMPARE_##name:                                    \
        for (int i = 0; i < WARP_LANES; i++) {              \
            V a = in(get_##T(x, i)), b = in(get_##T(y, i)); \
            bits |= (test) ? lane_bits[i] : 0;              \
        }                                                   \
        break;
#define COMPARE(TESTS, T, V, in)       \
    switch (o->compare) {              \
        TESTS(COMPARE_LANES, T, V, in) \
    }                                  \
    break

#define AS_IS(x)   (x)
#define FLUSHED(x) flush(x, o->mods)
#define HALF(x)    value_of_half(flush_half(x, o->mods))

static lane_mask compare_registers(const op *o, ptx_type type, const void *x, const void *y)
{
    lane_mask bits = 0;
    switch (type) {
    case TYPE_b16:
    case TYPE_u16:
        COMPARE(INTEGER_TESTS, u16, u16, AS_IS);
    case TYPE_s16:
        COMPARE(INTEGER_TESTS, s16, s16, AS_IS);
    case TYPE_b32:
    case TYPE_u32:
        COMPARE(INTEGER_TESTS, u32, u32, AS_IS);
    case TYPE_s32:
        COMPARE(INTEGER_TESTS, s32, s32, AS_IS);
    case TYPE_b64:
    case TYPE_u64:
        COMPARE(INTEGER_TESTS, u64, u64, AS_IS);
    case TYPE_s64:
        COMPARE(INTEGER_TESTS, s64, s64, AS_IS);
    case TYPE_f16:
        COMPARE(FLOAT_TESTS, f16, float, HALF);
    case TYPE_bf16:
        COMPARE(FLOAT_TESTS, bf16, float, value_of_bfloat);
    case TYPE_f32:
        COMPARE(FLOAT_TESTS, f32, float, FLUSHED);
    default:
        COMPARE(FLOAT_TESTS, f64, double, AS_IS);
    }
    return bits;
}

static lane_mask compare_sources(const warp *w, const op *o)
{
    return compare_registers(o, (ptx_type)o->type2, source(w, o, 0), source(w, o, 1));
}

/* Combines a result with the op's predicate source, if it has one. */
static lane_mask combine_predicates(const op *o, lane_mask a, lane_mask b)
{
    return (lane_mask)combine_integers((ptx_combine)o->combine, TYPE_b32, a, b);
}

void exec_setp(warp *w, const op *o, lane_mask mask)
{
    lane_mask bits = compare_sources(w, o), other = predicate(w, o->src[2], o->pred_not);
    write_predicate(w, o->dst[0], combine_predicates(o, bits, other), mask);
    write_predicate(w, o->dst[1], combine_predicates(o, ~bits, other), mask);
}

/* Returns the result of set for a true comparison. */
static u32 true_value(ptx_type type)
{
    return type == TYPE_f32                           ? 0x3f800000
           : type == TYPE_f16 || type == TYPE_f16x2   ? 0x3c00
           : type == TYPE_bf16 || type == TYPE_bf16x2 ? 0x3f80
           : type == TYPE_u16 || type == TYPE_s16     ? UINT16_MAX
                                                      : UINT32_MAX;
}

/* Compares the 16-bit floats from bit shift on. */
static lane_mask compare_part(const warp *w, const op *o, unsigned shift)
{
    lanes32 a, b;
    for (int i = 0; i < WARP_LANES; i++) {
        a.u32[i] = get_u32(source(w, o, 0), i) >> shift & 0xffff;
        b.u32[i] = get_u32(source(w, o, 1), i) >> shift & 0xffff;
    }
    ptx_type type = o->type2 == TYPE_f16x2 ? TYPE_f16 : TYPE_bf16;
    lane_mask bits = compare_registers(o, type, &a, &b);
    return combine_predicates(o, bits, predicate(w, o->src[2], o->pred_not));
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
    lane_mask bits = combine_predicates(o, compare_sources(w, o), other);
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

void exec_testp(warp *w, const op *o, lane_mask mask)
{
    enum { FINITE, INFINITE, NUMBER, NOT_A_NUMBER, NORMAL };
    lane_mask bits = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        int class = o->type == TYPE_f32 ? fpclassify(get_f32(source(w, o, 0), i))
                                        : fpclassify(get_f64(source(w, o, 0), i));
        bool is = o->variant == FINITE         ? class != FP_INFINITE && class != FP_NAN
                  : o->variant == INFINITE     ? class == FP_INFINITE
                  : o->variant == NUMBER       ? class != FP_NAN
                  : o->variant == NOT_A_NUMBER ? class == FP_NAN
                  : o->variant == NORMAL       ? class == FP_NORMAL || class == FP_ZERO
                                               : class == FP_SUBNORMAL;
        bits |= (lane_mask)is << i;
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
    write_predicate(w, o->dst[0], combine_predicates(o, a, b), mask);
}
