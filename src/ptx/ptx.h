/* The PTX builder: a kernel generator written with it reads like the kernel.
 *
 *   val lane = lane_id(p);
 *   var acc = var_f32(p, 0.0f);
 *   PTX_FOR (p, i, lane, columns, 32)
 *       assign(p, acc, fma(p, ld_global(p, F32, row, 0), x, acc));
 *
 * A val never changes. A var is changed by assign alone, and is read where it stands as an operand;
 * whoever wants to keep what it holds now takes a copy with get. Operand types are inferred from
 * the values, C numbers become immediates, constants fold while building, loops and conditions
 * close themselves.
 *
 * Mistakes (types that don't fit, an unknown parameter) are remembered, the first one is reported
 * by ptx_finish, and building goes on, so that no call needs a check. One ptx is one kernel.
 *
 * Some macros have the names of functions in math.h and stdlib.h with other numbers of arguments:
 * include this header last.
 */
#ifndef PTXGEN_PTX_PTX_H
#define PTXGEN_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "target.h"

/* 8 and 16-bit integers exist in memory only: loads widen them to 32 bits, stores take the low
 * bits. */
typedef enum type { NO_TYPE, PRED, U8, S8, U16, S16, F16, U32, S32, F32, U64, S64, F64 } type;

typedef enum val_kind { VAL_NONE, VAL_REG, VAL_VAR, VAL_IMM, VAL_NUMBER, VAL_SHARED } val_kind;

/* A register, an immediate, or the address of a shared array. VAL_VAR and VAL_NUMBER (a C integer
 * that takes the type of the operand beside it) are made by V and never come out of the builder. */
typedef struct val {
    uint8_t kind;
    uint8_t type;
    uint32_t id; /* register, or index of the shared array */
    uint64_t bits;
} val;

typedef struct var {
    val storage;
} var;

typedef struct ptx ptx;

/* A kernel called name (a C identifier) for an architecture, for blocks of this many threads. */
ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block);

/* The architecture, for kernels that differ by it: see ptx_output.asked_target. */
const target *ptx_target(ptx *p);
unsigned ptx_block(const ptx *p);

/* A comment line at the head of the file. */
void ptx_heading(ptx *p, const char *line);

/* Declares a parameter, U32 or U64, in the order of the calls. This and all other names have at
 * most 127 characters. */
void ptx_param(ptx *p, type t, const char *name);

/* Tells ptxas how many blocks at least are to fit on an SM (it limits registers accordingly), or
 * how many registers a thread may have at most (fewer where the block would have too many). */
void ptx_min_blocks(ptx *p, unsigned blocks);
void ptx_max_registers(ptx *p, unsigned registers);

/* The stages after which --dump shows a kernel: as the family built it (constants fold on the way),
 * simplified and ordered, verified and printed. */
typedef enum ptx_stage { PTX_STAGE_BUILD = 1, PTX_STAGE_FOLD = 2, PTX_STAGE_PRINT = 4 } ptx_stage;

/* Has ptx_finish append the kernel's text to out after each stage of a set (of bits), also where it
 * is wrong: a register that nothing defines is shown as %undefined. */
void ptx_set_dump(ptx *p, unsigned stages, strbuf *out);

typedef struct ptx_output {
    const char *text;
    size_t length;
    unsigned isa; /* of .version, times ten */
    size_t shared_bytes;
    bool asked_target;  /* whether the kernel was told its target: if not, newer ones get the same
                           body */
    size_t body_offset; /* in text: what follows is the same for targets that take the same
                           instructions */
} ptx_output;

/* Removes dead code, verifies, prints. False and a sentence in error when the kernel is wrong. */
bool ptx_finish(ptx *p, ptx_output *out, const char **error);

/* Gives the instruction that made a value a comment, and returns the value. */
val named(ptx *p, const char *name, val v);

/* C values as operands. */
val val_of_var(var v);
val val_of_int(long long number);
val val_of_f32(float number);
static inline val val_itself(val v)
{
    return v;
}
static inline val val_of_unsigned(unsigned long long number)
{
    return val_of_int((long long)number);
}
static inline val val_of_double(double number)
{
    return val_of_f32((float)number);
}
#define V(x)                                       \
    _Generic((x), val                              \
             : val_itself, var                     \
             : val_of_var, int                     \
             : val_of_int, long                    \
             : val_of_int, long long               \
             : val_of_int, unsigned                \
             : val_of_unsigned, unsigned long      \
             : val_of_unsigned, unsigned long long \
             : val_of_unsigned, float              \
             : val_of_f32, double                  \
             : val_of_double)(x)

/* An immediate of a given type, where no other operand says it. */
val imm(type t, long long number);

/* Variables. */
var ptx_var(ptx *p, type t, val initial);
var var_like(ptx *p, val initial); /* of the type of a value that has one */
void ptx_assign(ptx *p, var v, val value);
val get(ptx *p, var v);
#define var_f32(p, initial) ptx_var(p, F32, V(initial))
#define var_u32(p, initial) ptx_var(p, U32, V(initial))
#define var_u64(p, initial) ptx_var(p, U64, V(initial))
#define assign(p, v, value) ptx_assign(p, v, V(value))

/* Arithmetic on two values of one type. Integers: mul gives the low half; for floats it is mul.f32.
 */
val ptx_add(ptx *p, val a, val b);
val ptx_sub(ptx *p, val a, val b);
val ptx_mul(ptx *p, val a, val b);
val ptx_div(ptx *p, val a, val b); /* integers: truncates; floats: rounded to nearest */
val ptx_rem(ptx *p, val a, val b);
val ptx_min(ptx *p, val a, val b);
val ptx_max(ptx *p, val a, val b);
val ptx_neg(ptx *p, val a);
val ptx_abs(ptx *p, val a);
val ptx_mad(ptx *p, val a, val b, val c); /* integers, low half; floats: fma */
#define add(p, a, b)    ptx_add(p, V(a), V(b))
#define sub(p, a, b)    ptx_sub(p, V(a), V(b))
#define mul(p, a, b)    ptx_mul(p, V(a), V(b))
#define div(p, a, b)    ptx_div(p, V(a), V(b))
#define rem(p, a, b)    ptx_rem(p, V(a), V(b))
#define min(p, a, b)    ptx_min(p, V(a), V(b))
#define max(p, a, b)    ptx_max(p, V(a), V(b))
#define neg(p, a)       ptx_neg(p, V(a))
#define abs(p, a)       ptx_abs(p, V(a))
#define mad(p, a, b, c) ptx_mad(p, V(a), V(b), V(c))
#define fma(p, a, b, c) ptx_mad(p, V(a), V(b), V(c))

/* 32 x 32 -> 64 bits, with a 64-bit addend. */
val ptx_mul_wide(ptx *p, val a, val b);
val ptx_mad_wide(ptx *p, val a, val b, val c);
#define mul_wide(p, a, b)    ptx_mul_wide(p, V(a), V(b))
#define mad_wide(p, a, b, c) ptx_mad_wide(p, V(a), V(b), V(c))

/* c + the four products of the bytes of a and b; s32 values have signed bytes, u32 values unsigned
 * ones. */
val ptx_dp4a(ptx *p, val a, val b, val c);
#define dp4a(p, a, b, c) ptx_dp4a(p, V(a), V(b), V(c))

/* Bits. shr of a signed value copies the sign. */
val ptx_and(ptx *p, val a, val b);
val ptx_or(ptx *p, val a, val b);
val ptx_xor(ptx *p, val a, val b);
val ptx_not(ptx *p, val a);
val ptx_shl(ptx *p, val a, val b);
val ptx_shr(ptx *p, val a, val b);
val ptx_bfe(ptx *p, val a, val first, val count);
val ptx_prmt(ptx *p, val a, val b, val selector);
val ptx_lop3(ptx *p, val a, val b, val c, unsigned table);
#define bit_and(p, a, b)        ptx_and(p, V(a), V(b))
#define bit_or(p, a, b)         ptx_or(p, V(a), V(b))
#define bit_xor(p, a, b)        ptx_xor(p, V(a), V(b))
#define bit_not(p, a)           ptx_not(p, V(a))
#define shl(p, a, b)            ptx_shl(p, V(a), V(b))
#define shr(p, a, b)            ptx_shr(p, V(a), V(b))
#define bfe(p, a, first, count) ptx_bfe(p, V(a), V(first), V(count))
#define prmt(p, a, b, selector) ptx_prmt(p, V(a), V(b), V(selector))
#define lop3(p, a, b, c, table) ptx_lop3(p, V(a), V(b), V(c), table)

/* Functions of f32. rcp_approx, rsqrt and ex2 are the hardware's approximations; rcp_approx and ex2
 * flush subnormals. */
val ptx_rcp(ptx *p, val a);
val ptx_rcp_approx(ptx *p, val a);
val ptx_rsqrt(ptx *p, val a);
val ptx_ex2(ptx *p, val a);
#define rcp(p, a)        ptx_rcp(p, V(a))
#define rcp_approx(p, a) ptx_rcp_approx(p, V(a))
#define rsqrt(p, a)      ptx_rsqrt(p, V(a))
#define ex2(p, a)        ptx_ex2(p, V(a))

/* A number as another type: integers are cut or extended, integers to floats and f32 to f16 round
 * to nearest even, floats to integers truncate. */
val ptx_convert(ptx *p, type t, val a);
#define convert(p, t, a) ptx_convert(p, t, V(a))

/* The same register seen as the other signedness (as), the same bits as another type (bits_as). */
val ptx_as(ptx *p, type t, val a);
val ptx_bits_as(ptx *p, type t, val a);
#define as(p, t, a)      ptx_as(p, t, V(a))
#define bits_as(p, t, a) ptx_bits_as(p, t, V(a))

/* The low and the high f16 of a 32-bit word. */
typedef struct val2 {
    val v[2];
} val2;
val2 ptx_halves(ptx *p, val a);
#define halves(p, a) ptx_halves(p, V(a))

/* Comparisons give a predicate; select takes one. */
val ptx_eq(ptx *p, val a, val b);
val ptx_ne(ptx *p, val a, val b);
val ptx_lt(ptx *p, val a, val b);
val ptx_le(ptx *p, val a, val b);
val ptx_gt(ptx *p, val a, val b);
val ptx_ge(ptx *p, val a, val b);
val ptx_select(ptx *p, val condition, val yes, val no);
#define eq(p, a, b)                   ptx_eq(p, V(a), V(b))
#define ne(p, a, b)                   ptx_ne(p, V(a), V(b))
#define lt(p, a, b)                   ptx_lt(p, V(a), V(b))
#define le(p, a, b)                   ptx_le(p, V(a), V(b))
#define gt(p, a, b)                   ptx_gt(p, V(a), V(b))
#define ge(p, a, b)                   ptx_ge(p, V(a), V(b))
#define select(p, condition, yes, no) ptx_select(p, condition, V(yes), V(no))

/* Where a thread is. Blocks have one dimension. */
val tid_x(ptx *p);
val ctaid_x(ptx *p);
val ctaid_y(ptx *p);
val ctaid_z(ptx *p);
val nctaid_x(ptx *p);
val nctaid_z(ptx *p);
val lane_id(ptx *p); /* tid & 31; the thread's number itself in a block of one warp */
val warp_id(ptx *p); /* tid / 32; 0 in a block of one warp */

/* Memory. base is a 64-bit address (global) or a 32-bit one or a shared array (shared), offset in
 * bytes. A load of 8 or 16-bit integers gives a 32-bit value. ld_const reads memory that no thread
 * of the grid writes. */
val parameter(ptx *p, const char *name);
val ptx_load_global(ptx *p, type t, val base, int64_t offset);
val ptx_load_const(ptx *p, type t, val base, int64_t offset);
val ptx_load_shared(ptx *p, type t, val base, int64_t offset);
void ptx_store_global(ptx *p, type t, val base, int64_t offset, val value);
void ptx_store_shared(ptx *p, type t, val base, int64_t offset, val value);
#define ld_global(p, t, base, offset)        ptx_load_global(p, t, V(base), offset)
#define ld_const(p, t, base, offset)         ptx_load_const(p, t, V(base), offset)
#define ld_shared(p, t, base, offset)        ptx_load_shared(p, t, V(base), offset)
#define st_global(p, t, base, offset, value) ptx_store_global(p, t, V(base), offset, V(value))
#define st_shared(p, t, base, offset, value) ptx_store_shared(p, t, V(base), offset, V(value))

/* Two or four neighbours at once; the address is a multiple of the whole size. */
typedef struct val4 {
    val v[4];
} val4;
val2 ptx_load_global_v2(ptx *p, type t, val base, int64_t offset);
val4 ptx_load_global_v4(ptx *p, type t, val base, int64_t offset);
val2 ptx_load_const_v2(ptx *p, type t, val base, int64_t offset);
val4 ptx_load_const_v4(ptx *p, type t, val base, int64_t offset);
val2 ptx_load_shared_v2(ptx *p, type t, val base, int64_t offset);
val4 ptx_load_shared_v4(ptx *p, type t, val base, int64_t offset);
void ptx_store_global_v4(ptx *p, type t, val base, int64_t offset, val4 values);
void ptx_store_shared_v4(ptx *p, type t, val base, int64_t offset, val4 values);
#define ld_global_v2(p, t, base, offset)         ptx_load_global_v2(p, t, V(base), offset)
#define ld_global_v4(p, t, base, offset)         ptx_load_global_v4(p, t, V(base), offset)
#define ld_const_v2(p, t, base, offset)          ptx_load_const_v2(p, t, V(base), offset)
#define ld_const_v4(p, t, base, offset)          ptx_load_const_v4(p, t, V(base), offset)
#define ld_shared_v2(p, t, base, offset)         ptx_load_shared_v2(p, t, V(base), offset)
#define ld_shared_v4(p, t, base, offset)         ptx_load_shared_v4(p, t, V(base), offset)
#define st_global_v4(p, t, base, offset, values) ptx_store_global_v4(p, t, V(base), offset, values)
#define st_shared_v4(p, t, base, offset, values) ptx_store_shared_v4(p, t, V(base), offset, values)

/* Adds 1 to a u32 of global memory, or makes it 0 where it is most already, and gives what was
 * there before: a statement of its own. What the block's threads stored ahead of a barrier ahead of
 * it is seen by the threads of a block that gets a later number, behind its next barrier. */
val atomic_inc(ptx *p, val base, val most);

/* Declares a shared array of count values and gives its address. */
val shared_array(ptx *p, const char *name, type t, unsigned count);

/* Declares the shared array whose size the launch says. One a kernel: all such arrays lie at the
 * same address. */
val shared_dynamic(ptx *p, const char *name, type t);

/* Values of other lanes of the full warp: lane ^ mask; one lane's. width, a power of two, splits
 * the warp into groups that exchange among themselves. */
val ptx_shuffle_xor(ptx *p, val v, unsigned mask, unsigned width);
val ptx_shuffle_from(ptx *p, val v, val lane, unsigned width);
#define shuffle_xor(p, v, mask)  ptx_shuffle_xor(p, V(v), mask, 32)
#define shuffle_from(p, v, lane) ptx_shuffle_from(p, V(v), V(lane), 32)

/* All threads of the block, or all lanes of the warp, wait for each other; what they stored before
 * is seen after. */
void barrier(ptx *p);
void warp_barrier(ptx *p);

/* Ends the thread, or does so where the condition holds. A kernel's end needs none. */
void ret(ptx *p);
void ret_if(ptx *p, val condition);

/* Notes at the label of the next loop how much one turn does: "32 weights a lane". For readers, and
 * for the table of costs, which divides the loop's instructions by it. */
void ptx_loop_work(ptx *p, unsigned amount, const char *unit);

/* Conditions and loops. PTX_ELSE follows its PTX_IF at once. The body of
 *
 *     PTX_FOR (p, row, first, end, step)
 *
 * runs with the val row = first, first + step, … while row < end; row and the labels carry the
 * loop's name. The numbers are unsigned, and end + step must fit their type. ptxas is told not to
 * unroll: generators unroll. */
typedef struct ptx_scope {
    bool open;
    val condition, counter, end, step;
    uint32_t begin_label, end_label;
} ptx_scope;
ptx_scope ptx_if_begin(ptx *p, val condition);
ptx_scope ptx_else_begin(ptx *p);
void ptx_if_end(ptx *p, ptx_scope *s);
ptx_scope ptx_for_begin(ptx *p, const char *name, val first, val end, val step);
void ptx_for_end(ptx *p, ptx_scope *s);
#define PTX_SCOPE_NAME_(line)   ptx_scope_##line
#define PTX_SCOPE_NAME(line)    PTX_SCOPE_NAME_(line)
#define PTX_BLOCK_(p, s, begin) for (ptx_scope s = begin; s.open; ptx_if_end(p, &s))
#define PTX_BLOCK(p, s, begin)  PTX_BLOCK_(p, s, begin)
#define PTX_IF(p, condition)    PTX_BLOCK(p, PTX_SCOPE_NAME(__LINE__), ptx_if_begin(p, condition))
#define PTX_ELSE(p)             PTX_BLOCK(p, PTX_SCOPE_NAME(__LINE__), ptx_else_begin(p))
#define PTX_FOR(p, name, first, end, step)                                            \
    for (ptx_scope name##_scope = ptx_for_begin(p, #name, V(first), V(end), V(step)); \
         name##_scope.open; ptx_for_end(p, &name##_scope))                            \
        for (val name = name##_scope.counter; name.kind; name.kind = VAL_NONE)

#endif
