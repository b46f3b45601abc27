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
#include "kernel/target.h"

/* 8 and 16-bit integers exist in memory only: loads widen them to 32 bits, stores take the low
 * bits. */
typedef enum type { NO_TYPE, PRED, U8, S8, U16, S16, F16, U32, S32, F32, U64, S64 } type;

/* The instructions, each a row of ops.def. */
typedef enum ptx_op {
#define OP(id, text, results, operands, types, isa, sm, flags) INST_##id,
#include "ptx/ops.def"
#undef OP
    INST_KINDS
} ptx_op;

typedef enum val_kind { VAL_NONE, VAL_NUMBER, VAL_REG, VAL_VAR, VAL_IMM, VAL_SHARED } val_kind;

/* A register, an immediate, or the address of a shared array. VAL_VAR and VAL_NUMBER (a C integer
 * that takes the type of the operand beside it) are made by V and never come out of the builder. */
typedef struct val {
    uint8_t kind;
    uint8_t type;
    uint32_t id;   /* register; 0: none */
    uint64_t bits; /* the number, or the index of the shared array */
} val;

typedef struct var {
    val storage;
} var;

typedef struct ptx ptx;

/* A kernel called name (a C identifier) for an architecture, for blocks of this many threads. */
ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block);

unsigned ptx_block(const ptx *p);

/* A comment line at the head of the file. */
void ptx_heading(ptx *p, const char *line);

/* Remembers a mistake of whoever builds the kernel, if it is the first: ptx_finish refuses it. */
void ptx_fail(ptx *p, const char *format, ...) PRINTF_LIKE(2, 3);

/* Declares a parameter, U32 or U64, in the order of the calls. This and all other names have at
 * most 127 characters. */
void ptx_param(ptx *p, type t, const char *name);

/* The same of an address, with which launches may write, while a kernel overlaps with them, to what
 * it leads to: none (weights, and the module's arrays); none that need not have finished when the
 * kernel begins (see ld_settled); or any. */
typedef enum ptx_changes { CHANGES_NEVER, CHANGES_SETTLED, CHANGES_ANY } ptx_changes;
void ptx_steady_param(ptx *p, type t, const char *name, ptx_changes changes);

/* Tells ptxas how many registers a thread may have at most (fewer where the block would have too
 * many). */
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
    unsigned isa;  /* of .version, times ten */
    bool specific; /* it runs on its target alone */
    size_t shared_bytes;
} ptx_output;

/* Removes dead code, verifies, prints; the text goes into a. False and a sentence in error when the
 * kernel is wrong. */
bool ptx_finish(ptx *p, arena *a, ptx_output *out, const char **error);

/* Gives the instruction that made a value a comment, and returns the value. */
val named(ptx *p, const char *name, val v);

/* A line of comment: what the instructions behind it do, up to the next one. A statement of its
 * own; right behind another one (a store, a barrier, a loop) it changes the order of no
 * instruction. */
void phase(ptx *p, const char *what);

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

/* An instruction of one to three operands, of the type of the first that has one. The macros below
 * are how kernels call it. */
val ptx_unary(ptx *p, ptx_op o, val a);
val ptx_binary(ptx *p, ptx_op o, val a, val b);
val ptx_ternary(ptx *p, ptx_op o, val a, val b, val c);

/* Arithmetic on values of one type. Integers: mul and mad give the low half, div truncates. Floats:
 * mul is mul.f32, mad is fma, div rounds to nearest. */
val ptx_mul(ptx *p, val a, val b);
val ptx_div(ptx *p, val a, val b);
val ptx_rem(ptx *p, val a, val b);
val ptx_mad(ptx *p, val a, val b, val c);
#define add(p, a, b)    ptx_binary(p, INST_ADD, V(a), V(b))
#define sub(p, a, b)    ptx_binary(p, INST_SUB, V(a), V(b))
#define mul(p, a, b)    ptx_mul(p, V(a), V(b))
#define div(p, a, b)    ptx_div(p, V(a), V(b))
#define rem(p, a, b)    ptx_rem(p, V(a), V(b))
#define min(p, a, b)    ptx_binary(p, INST_MIN, V(a), V(b))
#define max(p, a, b)    ptx_binary(p, INST_MAX, V(a), V(b))
#define neg(p, a)       ptx_unary(p, INST_NEG, V(a))
#define abs(p, a)       ptx_unary(p, INST_ABS, V(a))
#define mad(p, a, b, c) ptx_mad(p, V(a), V(b), V(c))
#define fma(p, a, b, c) ptx_mad(p, V(a), V(b), V(c))

/* 32 x 32 -> 64 bits, with a 64-bit addend. */
val ptx_mad_wide(ptx *p, val a, val b, val c);
#define mul_wide(p, a, b)    ptx_binary(p, INST_MUL_WIDE, V(a), V(b))
#define mad_wide(p, a, b, c) ptx_mad_wide(p, V(a), V(b), V(c))

/* c + the four products of the bytes of a and b; s32 values have signed bytes, u32 values unsigned
 * ones. */
val ptx_dp4a(ptx *p, val a, val b, val c);
#define dp4a(p, a, b, c) ptx_dp4a(p, V(a), V(b), V(c))

/* Bits. shr of a signed value copies the sign. */
val ptx_lop3(ptx *p, val a, val b, val c, unsigned table);
#define bit_and(p, a, b) ptx_binary(p, INST_AND, V(a), V(b))
#define bit_or(p, a, b)  ptx_binary(p, INST_OR, V(a), V(b))
#define bit_xor(p, a, b) ptx_binary(p, INST_XOR, V(a), V(b))
#define bit_not(p, a)    ptx_unary(p, INST_NOT, V(a))
#define count_bits(p, a) ptx_unary(p, INST_POPC, V(a))
#define shl(p, a, b)     ptx_binary(p, INST_SHL, V(a), V(b))
#define shr(p, a, b)     ptx_binary(p, INST_SHR, V(a), V(b))
#define rotate(p, a, count) \
    ptx_ternary(p, INST_ROTATE, V(a), V(a), V(count)) /* 32 bits to the left */
#define bfe(p, a, first, count) ptx_ternary(p, INST_BFE, V(a), V(first), V(count))
#define prmt(p, a, b, selector) ptx_ternary(p, INST_PRMT, V(a), V(b), V(selector))
#define lop3(p, a, b, c, table) ptx_lop3(p, V(a), V(b), V(c), table)

/* Functions of f32. rcp_approx, rsqrt and ex2 are the hardware's approximations; rcp_approx and ex2
 * flush subnormals. */
#define rcp(p, a)        ptx_unary(p, INST_RCP_RN, V(a))
#define rcp_approx(p, a) ptx_unary(p, INST_RCP_APPROX, V(a))
#define rsqrt(p, a)      ptx_unary(p, INST_RSQRT, V(a))
#define ex2(p, a)        ptx_unary(p, INST_EX2, V(a))

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

/* Two f16 in a u32, each half on its own: sums, products, fused, rounded once; and of two f32, the
 * first one in the low half (sm_80). */
val ptx_pair(ptx *p, val v);
#define add_pair(p, a, b) ptx_binary(p, INST_ADD_PAIR, ptx_pair(p, a), ptx_pair(p, b))
#define mul_pair(p, a, b) ptx_binary(p, INST_MUL_PAIR, ptx_pair(p, a), ptx_pair(p, b))
#define fma_pair(p, a, b, c) \
    ptx_ternary(p, INST_FMA_PAIR, ptx_pair(p, a), ptx_pair(p, b), ptx_pair(p, c))
val ptx_pack_halves(ptx *p, val low, val high);
#define pack_halves(p, low, high) ptx_pack_halves(p, V(low), V(high))

/* Comparisons give a predicate; select takes one. */
val ptx_select(ptx *p, val condition, val yes, val no);
#define eq(p, a, b)                   ptx_binary(p, INST_SETP_EQ, V(a), V(b))
#define ne(p, a, b)                   ptx_binary(p, INST_SETP_NE, V(a), V(b))
#define lt(p, a, b)                   ptx_binary(p, INST_SETP_LT, V(a), V(b))
#define le(p, a, b)                   ptx_binary(p, INST_SETP_LE, V(a), V(b))
#define gt(p, a, b)                   ptx_binary(p, INST_SETP_GT, V(a), V(b))
#define ge(p, a, b)                   ptx_binary(p, INST_SETP_GE, V(a), V(b))
#define select(p, condition, yes, no) ptx_select(p, condition, V(yes), V(no))

/* Where a thread is. Blocks have one dimension. */
typedef enum ptx_special {
    SPECIAL_TID_X,
    SPECIAL_CTAID_X,
    SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X,
    SPECIAL_NCTAID_Y,
    SPECIAL_NCTAID_Z,
    SPECIAL_LANEID,
    SPECIAL_COUNT
} ptx_special;
val ptx_special_register(ptx *p, ptx_special which);
#define tid_x(p)    ptx_special_register(p, SPECIAL_TID_X)
#define ctaid_x(p)  ptx_special_register(p, SPECIAL_CTAID_X)
#define ctaid_y(p)  ptx_special_register(p, SPECIAL_CTAID_Y)
#define ctaid_z(p)  ptx_special_register(p, SPECIAL_CTAID_Z)
#define nctaid_x(p) ptx_special_register(p, SPECIAL_NCTAID_X)
#define nctaid_y(p) ptx_special_register(p, SPECIAL_NCTAID_Y)
#define nctaid_z(p) ptx_special_register(p, SPECIAL_NCTAID_Z)
val lane_id(ptx *p); /* tid & 31; the thread's number itself in a block of one warp */
val warp_id(ptx *p); /* tid / 32; 0 in a block of one warp */

/* A number, plus 0 in a way that ptxas does not see through: it stays in a register. What ptxas
 * knows to be constant it moves into one anew ahead of each use that takes no immediate. */
val kept_in_register(ptx *p, uint32_t number);

/* Memory. base is a 64-bit address (global) or a 32-bit one or a shared array (shared), offset in
 * bytes. A load of 8 or 16-bit integers gives a 32-bit value. ld_const reads memory that no thread
 * of the grid writes; where the kernel overlaps with launches that may, it is ld_global. v2 and v4:
 * two or four neighbours at once; the address is a multiple of the whole size. ld_settled is the
 * same of settled parameters, and may stand ahead of wait_for_launches. */
typedef struct val4 {
    val v[4];
} val4;
val parameter(ptx *p, const char *name);
val ptx_load(ptx *p, ptx_op o, type t, val base, int64_t offset);
val ptx_load_settled(ptx *p, type t, val base, int64_t offset);
val2 ptx_load_v2(ptx *p, ptx_op o, type t, val base, int64_t offset);
val4 ptx_load_v4(ptx *p, ptx_op o, type t, val base, int64_t offset);

/* Load or store 1, 2 or 4 neighbours. */
void ptx_load_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                     val *values);
void ptx_store_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                      const val *values);

/* Load or store count f32, rounded up to a multiple of four, 16 bytes at a time: ld_const_v4,
 * ld_shared_v4, st_global_v4 or st_shared_v4, by the type of the address. */
void load_floats(ptx *p, val base, int64_t offset, unsigned count, val *values);
void store_floats(ptx *p, val base, int64_t offset, unsigned count, const val *values);

/* Whether ld_const is ld_global from here on: ptxas keeps ordinary loads in front of a barrier of
 * the warp, and puts those of constant memory off behind it, to save registers. */
void ptx_keep_loads(ptx *p, bool keep);

#define ld_global(p, t, base, offset)    ptx_load(p, INST_LD_GLOBAL, t, V(base), offset)
#define ld_global_v2(p, t, base, offset) ptx_load_v2(p, INST_LD_GLOBAL, t, V(base), offset)
#define ld_global_v4(p, t, base, offset) ptx_load_v4(p, INST_LD_GLOBAL, t, V(base), offset)
#define ld_const(p, t, base, offset)     ptx_load(p, INST_LD_CONST, t, V(base), offset)
#define ld_const_v2(p, t, base, offset)  ptx_load_v2(p, INST_LD_CONST, t, V(base), offset)
#define ld_const_v4(p, t, base, offset)  ptx_load_v4(p, INST_LD_CONST, t, V(base), offset)
#define ld_settled(p, t, base, offset)   ptx_load_settled(p, t, V(base), offset)
#define ld_shared(p, t, base, offset)    ptx_load(p, INST_LD_SHARED, t, V(base), offset)
#define ld_shared_v2(p, t, base, offset) ptx_load_v2(p, INST_LD_SHARED, t, V(base), offset)
#define ld_shared_v4(p, t, base, offset) ptx_load_v4(p, INST_LD_SHARED, t, V(base), offset)
#define st_global(p, t, base, offset, value) \
    ptx_store_values(p, INST_ST_GLOBAL, t, 1, V(base), offset, (val[]){ V(value) })
#define st_global_v2(p, t, base, offset, values) \
    ptx_store_values(p, INST_ST_GLOBAL, t, 2, V(base), offset, (values).v)
#define st_global_v4(p, t, base, offset, values) \
    ptx_store_values(p, INST_ST_GLOBAL, t, 4, V(base), offset, (values).v)
#define st_shared(p, t, base, offset, value) \
    ptx_store_values(p, INST_ST_SHARED, t, 1, V(base), offset, (val[]){ V(value) })
#define st_shared_v4(p, t, base, offset, values) \
    ptx_store_values(p, INST_ST_SHARED, t, 4, V(base), offset, (values).v)

/* Both give what was there before, and are statements of their own. atomic_inc adds 1 to a u32 of
 * global memory, or makes it 0 where it is most already: what the block's threads stored ahead of a
 * barrier ahead of it is seen by the threads of a block that gets a later number, behind its next
 * barrier. atomic_add_shared adds a number to a u32 of shared memory. */
val ptx_atomic(ptx *p, ptx_op o, val base, val number);
#define atomic_inc(p, base, most)          ptx_atomic(p, INST_ATOM_INC, V(base), V(most))
#define atomic_add_shared(p, base, number) ptx_atomic(p, INST_ATOM_ADD_SHARED, V(base), V(number))

/* Declares a shared array of count values and gives its address. */
val shared_array(ptx *p, const char *name, type t, unsigned count);

/* Declares the shared array whose size the launch says. One a kernel: all such arrays lie at the
 * same address. */
val shared_dynamic(ptx *p, const char *name, type t);

/* Has a shared array begin at a multiple of so many bytes, 16 or more. */
void shared_align(ptx *p, val array, unsigned bytes);

/* Declares an array of words in global memory that is part of the module, which nothing may write,
 * and gives its address, aligned to 16 bytes. In memory the first word is the lowest. The lines of
 * a comment, up to NULL, stand ahead of it. The words are copied; the same again are the same
 * array. */
val global_array(ptx *p, const char *name, const char *const *comment, const uint64_t *words,
                 unsigned count);

/* Values of other lanes of the full warp: lane ^ mask; one lane's. */
val ptx_shuffle(ptx *p, ptx_op o, val v, val which);
#define shuffle_xor(p, v, mask)  ptx_shuffle(p, INST_SHFL_BFLY, V(v), imm(U32, mask))
#define shuffle_from(p, v, lane) ptx_shuffle(p, INST_SHFL_IDX, V(v), V(lane))

/* D = A B + C on the tensor cores, by all lanes of the warp together (sm_80): A is 16 x 16 f16, B
 * is 16 x 8 f16, C and D are 16 x 8 f32. A word holds two f16, the one of the lower column of A or
 * row of B in its low half. With g = lane / 4 and t = lane % 4, a lane has
 *
 *   a0  A[g][2t], A[g][2t + 1]              a2  A[g][2t + 8], A[g][2t + 9]
 *   a1  A[g + 8][2t], A[g + 8][2t + 1]      a3  A[g + 8][2t + 8], A[g + 8][2t + 9]
 *   b0  B[2t][g], B[2t + 1][g]              b1  B[2t + 8][g], B[2t + 9][g]
 *   c0  C[g][2t]    c1  C[g][2t + 1]        c2  C[g + 8][2t]    c3  C[g + 8][2t + 1]; d as c
 */
val4 ptx_mma(ptx *p, ptx_op o, type t, val4 a, val2 b, val4 c);
#define mma_m16n8k16_f16(p, ...) ptx_mma(p, INST_MMA_F16, F32, __VA_ARGS__)

/* The same of bf16 (sm_80), and of f16 half as deep (sm_75): A has the columns of a0 and a1 alone,
 * B the rows of b0. */
#define mma_m16n8k16_bf16(p, ...) ptx_mma(p, INST_MMA_BF16, F32, __VA_ARGS__)
val4 mma_m16n8k8_f16(ptx *p, val2 a, val b, val4 c);

/* The same of signed bytes with sums of s32, which wrap (sm_80): A is 16 x 32, B is 32 x 8. A word
 * holds four, the first in its low byte:
 *
 *   a0  A[g][4t .. 4t + 3]                  a2  A[g][4t + 16 .. 4t + 19]
 *   a1  A[g + 8][4t .. 4t + 3]              a3  A[g + 8][4t + 16 .. 4t + 19]
 *   b0  B[4t .. 4t + 3][g]                  b1  B[4t + 16 .. 4t + 19][g]
 *
 * mma_m8n8k16_s8 (sm_75): A is 8 x 16 (a0), B 16 x 8 (b0), C and D 8 x 8 (c0, c1).
 */
#define mma_m16n8k32_s8(p, ...) ptx_mma(p, INST_MMA_S8, S32, __VA_ARGS__)
val2 mma_m8n8k16_s8(ptx *p, val a, val b, val2 c);

/* The transpose of an 8 x 8 matrix of f16, by all lanes of the warp together (sm_75): a lane has
 * the elements 2t and 2t + 1 of row g, before and afterwards.
 */
#define transpose_halves(p, pair) ptx_unary(p, INST_MOVMATRIX, V(pair))

/* One, two or four 8 x 8 matrices of f16 from shared memory, by all lanes of the warp together
 * (sm_75). Lane i's address is that of row i % 8 of matrix i / 8, 16 bytes that are aligned to 16;
 * those of further lanes count for nothing, but have to be of shared memory too. Word j of a lane
 * holds the elements 2t and 2t + 1 of row g of matrix j: the fragments that mma_m16n8k16_f16 takes,
 * of A where the matrices are its quarters (upper left, lower left, upper right, lower right), of B
 * where the rows are its columns. trans: the elements of rows 2t and 2t + 1 of column g, so of B
 * where the rows are its rows. The fragments of bytes are those of f16 with two bytes an element;
 * trans, which keeps these two together, is of no use for them.
 */
#define ldmatrix_x1(p, base, offset)       ptx_load(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x2(p, base, offset)       ptx_load_v2(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x4(p, base, offset)       ptx_load_v4(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x1_trans(p, base, offset) ptx_load(p, INST_LDMATRIX_TRANS, U32, V(base), offset)
#define ldmatrix_x2_trans(p, base, offset) ptx_load_v2(p, INST_LDMATRIX_TRANS, U32, V(base), offset)
#define ldmatrix_x4_trans(p, base, offset) ptx_load_v4(p, INST_LDMATRIX_TRANS, U32, V(base), offset)

/* An instruction that makes nothing, without operands or with a number: a statement of its own. The
 * macros below are how kernels call it. */
void ptx_control(ptx *p, ptx_op o);
void ptx_control_number(ptx *p, ptx_op o, unsigned number);

/* Copies from global to shared memory that go on while the thread does (sm_80): 4, 8 or 16 bytes
 * through all caches (ca), 16 past the L1 cache (cg); both addresses are multiples of that. fill:
 * present, a u32, says how many of the bytes are read, the others become 0; where none is, the
 * source may be any aligned address.
 *
 * What a thread has begun since its last commit is a group. wait goes on when at most so many of
 * its groups, the newest ones, are unfinished. Other threads see what was copied behind a barrier
 * that follows the wait; nobody may touch it ahead of that. Where the kernel overlaps
 * with launches, what they may write is copied behind wait_for_launches, weights ahead of it as
 * well.
 */
void ptx_copy_async(ptx *p, ptx_op o, unsigned bytes, val to, int64_t to_offset, val from,
                    int64_t from_offset, val present);
#define cp_async_ca(p, bytes, to, to_offset, from, from_offset) \
    ptx_copy_async(p, INST_CP_ASYNC_CA, bytes, V(to), to_offset, V(from), from_offset, (val){ 0 })
#define cp_async_cg(p, to, to_offset, from, from_offset) \
    ptx_copy_async(p, INST_CP_ASYNC_CG, 16, V(to), to_offset, V(from), from_offset, (val){ 0 })
#define cp_async_ca_fill(p, bytes, to, to_offset, from, from_offset, present)               \
    ptx_copy_async(p, INST_CP_ASYNC_CA_FILL, bytes, V(to), to_offset, V(from), from_offset, \
                   V(present))
#define cp_async_cg_fill(p, to, to_offset, from, from_offset, present) \
    ptx_copy_async(p, INST_CP_ASYNC_CG_FILL, 16, V(to), to_offset, V(from), from_offset, V(present))
#define cp_async_commit(p)     ptx_control(p, INST_CP_ASYNC_COMMIT)
#define cp_async_wait(p, open) ptx_control_number(p, INST_CP_ASYNC_WAIT, open)
#define cp_async_wait_all(p)   ptx_control(p, INST_CP_ASYNC_WAIT_ALL)

/* Products of four neighbouring warps, the first of which has a number that is a multiple of four,
 * on tensor cores that work while the warps go on (sm_90a): D += A B, where A is 64 x 16 f16, B is
 * 16 x columns f16 (8 to 256, a multiple of 8), D is f32. Both are in shared memory, rows of A and
 * columns of B one after the other: 32 values of k each in 64 bytes, of which the product takes 16,
 * and of a row's four units of 16 bytes unit u is at place u ^ (row / 2 % 4); eight rows are
 * aligned to 512 bytes. wgmma_matrix gives what names such a matrix by the address of its first
 * row, plus 32 where the later 16 values are meant. With g = lane / 4 and t = lane % 4 a lane of
 * the group's warp w has as sums[4 j + c] element c of the fragment (see mma_m16n8k16_f16) at row
 * 16 w and column 8 j.
 *
 * All warps of the group do each of these. What a product reads, others stored ahead of a
 * proxy_fence of theirs and a barrier; it may be changed, and the sums be read or changed, behind a
 * wait, which goes on when at most so many of the groups committed, the newest ones, are
 * unfinished. A fence comes ahead of the first product, and where something else has changed sums.
 */
val wgmma_matrix(ptx *p, val address);
void wgmma_m64k16_f16(ptx *p, const var *sums, unsigned columns, val a, val b);
#define wgmma_fence(p)      ptx_control(p, INST_WGMMA_FENCE)
#define wgmma_commit(p)     ptx_control(p, INST_WGMMA_COMMIT)
#define wgmma_wait(p, open) ptx_control_number(p, INST_WGMMA_WAIT, open)
#define proxy_fence(p)      ptx_control(p, INST_PROXY_FENCE)

/* Whether a target has them. */
bool ptx_has_wgmma(const target *t);

/* All threads of the block, or all lanes of the warp, wait for each other; what they stored before
 * is seen after. */
#define barrier(p)      ptx_control_number(p, INST_BAR_SYNC, 0)
#define warp_barrier(p) ptx_control_number(p, INST_BAR_WARP, UINT32_MAX)

/* Programmatic dependent launches: the launch behind this one in its stream may start before this
 * one has finished. ptx_overlap: this one knows that the launch ahead may be running; ptx_overlaps
 * returns true if it does. */
void ptx_overlap(ptx *p);
bool ptx_overlaps(const ptx *p);

/* Says that the next launch may start, of a kernel that overlaps. Of one that never says so it
 * starts when all blocks have ended. Said behind the wait, whatever starts behind this launch,
 * however many launches behind, finds all done that is ahead of it. */
void let_next_start(ptx *p);

/* Where a kernel overlaps: waits until the launches ahead are done and what they wrote is seen. All
 * threads do, once, ahead of any access to what other launches write or read. Nothing elsewhere. */
void wait_for_launches(ptx *p);

/* Has the line of global memory that holds an address fetched into the L2 cache. Loads nothing, so
 * that it may stand ahead of the wait whoever writes there. */
void ptx_prefetch(ptx *p, val base, int64_t offset);
#define prefetch(p, base, offset) ptx_prefetch(p, V(base), offset)

/* So many bytes from an address on, both multiples of 16, by one thread; where the target can. */
bool ptx_can_prefetch_bulk(const ptx *p);
void ptx_prefetch_bulk(ptx *p, val base, int64_t offset, val bytes);
#define prefetch_bulk(p, base, offset, bytes) ptx_prefetch_bulk(p, V(base), offset, V(bytes))

/* The target that the kernel is built for. */
const target *ptx_target(const ptx *p);

/* A barrier that tells all threads for how many of the block a condition holds. */
val barrier_count(ptx *p, val condition);

/* Ends the thread, or does so where the condition holds. A kernel's end needs none. */
void ret(ptx *p);
void ret_if(ptx *p, val condition);

/* Notes at the label of the next loop how much one turn does: "32 weights a lane". For readers, and
 * for the table of costs, which divides the loop's instructions by it. */
void ptx_loop_work(ptx *p, unsigned amount, const char *unit);

/* Notes there that few launches come to the loop, one of a kernel and one that holds others: "//
 * seldom". The table of costs leaves it out. */
void ptx_loop_seldom(ptx *p);

/* Conditions and loops. PTX_ELSE follows its PTX_IF at once. The body of
 *
 *     PTX_FOR (p, row, first, end, step)
 *
 * runs with the val row = first, first + step, … while row < end; row and the labels carry the
 * loop's name. The numbers are unsigned, and end + step must fit their type. ptxas is told not to
 * unroll: generators unroll. */
typedef struct ptx_scope {
    bool open;
    val counter, end, step;
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
