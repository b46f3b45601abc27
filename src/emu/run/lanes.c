/* Instructions without exchange between lanes: moves, address conversions, extended-precision
 * arithmetic, and the LANE rows of emu_ops.def. The latter are loops over a warp that compilers
 * vectorise. Inactive lanes are computed, too, and their results discarded. */
#include "emu/memory/allocation.h"
#include "emu/machine.h"
#include "emu/run/arith.h"

void exec_nothing(warp *w, const op *o, lane_mask mask)
{
    (void)w;
    (void)o;
    (void)mask;
}

void exec_move32(warp *w, const op *o, lane_mask mask)
{
    write_lanes32(w->file + o->dst[0], source(w, o, 0), mask);
}

void exec_move64(warp *w, const op *o, lane_mask mask)
{
    write_lanes64(w->file + o->dst[0], source(w, o, 0), mask);
}

void exec_pack(warp *w, const op *o, lane_mask mask)
{
    u64 values[WARP_LANES] = { 0 };
    for (unsigned e = 0; e < o->vector; e++)
        for (int i = 0; i < WARP_LANES; i++)
            values[i] |= get_bits(source(w, o, (int)e), i, o->src_bits == 64) << e * o->src_bits;
    write_lanes(w->file + o->dst[0], values, o->dst_bits == 64, mask);
}

void exec_unpack(warp *w, const op *o, lane_mask mask)
{
    u64 from[WARP_LANES], values[WARP_LANES];
    for (int i = 0; i < WARP_LANES; i++)
        from[i] = get_bits(source(w, o, 0), i, o->dst_bits == 64);
    for (unsigned e = 0; e < o->vector; e++) {
        for (int i = 0; i < WARP_LANES; i++)
            values[i] = from[i] >> e * o->src_bits & low_bits(o->src_bits);
        write_lanes(w->file + o->dst[e], values, o->src_bits == 64, mask);
    }
}

/* Clocks count the block's warp instructions, so that every run reads the same values. */
void exec_clock(warp *w, const op *o, lane_mask mask)
{
    u64 values[WARP_LANES], now = w->machine->warp_instructions;
    bool wide = o->variant == SPECIAL_CLOCK64 || o->variant == SPECIAL_GLOBALTIMER;
    for (int i = 0; i < WARP_LANES; i++)
        values[i] = o->variant == SPECIAL_CLOCK_HI ? now >> 32 : now;
    write_lanes(w->file + o->dst[0], values, wide, mask);
}

void exec_cvta(warp *w, const op *o, lane_mask mask)
{
    u64 window = space_window((ptx_space)o->space);
    lanes64 result;
    for (int i = 0; i < WARP_LANES; i++) {
        u64 address = get_u64(source(w, o, 0), i);
        result.u64[i] = o->variant ? address - window : address + window;
    }
    write_lanes64(w->file + o->dst[0], &result, mask);
}

void exec_isspacep(warp *w, const op *o, lane_mask mask)
{
    lane_mask bits = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        u64 address = get_u64(source(w, o, 0), i);
        const allocation *a = memory_find(w->machine->memory, address);
        bool in = o->space == SPACE_CONST || o->space == SPACE_PARAM
                      ? a && a->read_only
                      : space_at(address) == (ptx_space)o->space;
        bits |= (lane_mask)in << i;
    }
    write_predicate(w, o->dst[0], bits, mask);
}

/* Adds with carry. CC.CF is the carry out, also of subtractions, where 1 means no borrow. So addc
 * after sub.cc adds 1 if nothing was borrowed, as code for 128-bit division expects. */
static void add_chained(warp *w, const op *o, lane_mask mask, const u64 *a, const u64 *b,
                        bool first)
{
    bool wide = emu_type_bits(o->type) == 64;
    u64 values[WARP_LANES];
    lane_mask out = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        bool carry = o->variant & CARRY_IN ? w->carry >> i & 1 : first;
        values[i] = a[i] + b[i] + carry;
        bool over = wide ? values[i] < a[i] || (values[i] == a[i] && carry) : values[i] >> 32;
        out |= (lane_mask)over << i;
    }
    write_lanes(w->file + o->dst[0], values, wide, mask);
    if (o->variant & CARRY_OUT)
        w->carry = (w->carry & ~mask) | (out & mask);
}

static void load_elements(const warp *w, const op *o, int which, u64 *values)
{
    bool wide = emu_type_bits(o->type) == 64;
    for (int i = 0; i < WARP_LANES; i++)
        values[i] = get_bits(source(w, o, which), i, wide);
}

void exec_add_carry(warp *w, const op *o, lane_mask mask)
{
    u64 a[WARP_LANES], b[WARP_LANES];
    load_elements(w, o, 0, a);
    load_elements(w, o, 1, b);
    add_chained(w, o, mask, a, b, false);
}

/* Computes a - b as a + ~b + 1, or without the 1 after a borrow. */
void exec_sub_carry(warp *w, const op *o, lane_mask mask)
{
    u64 a[WARP_LANES], b[WARP_LANES], all = low_bits(emu_type_bits(o->type));
    load_elements(w, o, 0, a);
    load_elements(w, o, 1, b);
    for (int i = 0; i < WARP_LANES; i++)
        b[i] = ~b[i] & all;
    add_chained(w, o, mask, a, b, true);
}

void exec_mad_carry(warp *w, const op *o, lane_mask mask)
{
    ptx_type type = (ptx_type)o->type;
    bool is_signed = emu_type_kind(type) == KIND_SIGNED;
    u64 a[WARP_LANES], b[WARP_LANES], c[WARP_LANES];
    load_elements(w, o, 0, a);
    load_elements(w, o, 1, b);
    load_elements(w, o, 2, c);
    for (int i = 0; i < WARP_LANES; i++) {
        if (emu_type_bits(type) == 64) {
            u64 high = is_signed ? (u64)high_s64((s64)a[i], (s64)b[i]) : high_u64(a[i], b[i]);
            a[i] = o->variant & MUL_HIGH ? high : a[i] * b[i];
        } else {
            u64 product = is_signed ? (u64)((s64)(s32)a[i] * (s32)b[i]) : a[i] * b[i];
            a[i] = (u32)(o->variant & MUL_HIGH ? product >> 32 : product);
        }
    }
    add_chained(w, o, mask, a, c, false);
}

#define WRITE(to, from, mask) \
    _Generic((from), lanes32 * : write_lanes32, lanes64 * : write_lanes64)(to, from, mask)

#define RUN(name) name(warp *w, const op *o, lane_mask mask)
#define BEGIN(R)                 \
    {                            \
        unsigned mods = o->mods; \
        lanes_of_##R result;     \
        (void)mods;              \
        for (int i = 0; i < WARP_LANES; i++) {
#define GET(n, T, x) T x = get_##T(source(w, o, n), i);
/* Repeats the fast path of WRITE, since baseline functions are not inlined into wider code. */
#define END(R, value)                                        \
    put_##R(&result, i, (R)(value));                         \
    }                                                        \
    if (mask == ALL_LANES)                                   \
        memcpy(w->file + o->dst[0], &result, sizeof result); \
    else                                                     \
        WRITE(w->file + o->dst[0], &result, mask);           \
    }
#define BODY2(R, A, B, value)    BEGIN(R) GET(0, A, a) GET(1, B, b) END(R, value)
#define BODY3(R, A, B, C, value) BEGIN(R) GET(0, A, a) GET(1, B, b) GET(2, C, c) END(R, value)
#define BODY4(R, A, B, C, D, value) \
    BEGIN(R) GET(0, A, a) GET(1, B, b) GET(2, C, c) GET(3, D, d) END(R, value)

#define LANE1(name, pattern, R, A, value) void RUN(exec_##name) BEGIN(R) GET(0, A, a) END(R, value)
#define LANE2(name, pattern, ...)         void RUN(exec_##name) BODY2(__VA_ARGS__)
#define LANE3(name, pattern, ...)         void RUN(exec_##name) BODY3(__VA_ARGS__)
#define LANE4(name, pattern, ...)         void RUN(exec_##name) BODY4(__VA_ARGS__)

#if defined(__x86_64__) && defined(__GNUC__)
/* Baseline vectors lack shifts, 32-bit products and fma: frequent instructions are built twice. */
#define WIDER __attribute__((target("avx2,fma"))) static void
#define OFTEN2(name, pattern, ...) \
    LANE2(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY2(__VA_ARGS__)
#define OFTEN3(name, pattern, ...) \
    LANE3(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY3(__VA_ARGS__)
#define OFTEN4(name, pattern, ...) \
    LANE4(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY4(__VA_ARGS__)
#include "emu/emu_ops.def"

static const struct {
    op_exec *exec, *wider;
} twice[] = {
#define OFTEN2(name, ...) { exec_##name, wider_##name },
#define OFTEN3            OFTEN2
#define OFTEN4            OFTEN2
#include "emu/emu_ops.def"
};

op_exec *exec_lanes_here(op_exec *exec)
{
    bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    for (size_t i = 0; wide && i < sizeof twice / sizeof *twice; i++)
        if (twice[i].exec == exec)
            return twice[i].wider;
    return exec;
}
#else
#include "emu/emu_ops.def"

op_exec *exec_lanes_here(op_exec *exec)
{
    return exec;
}
#endif
