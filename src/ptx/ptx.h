/* The PTX builder. A kernel generator reads like the kernel:
 *
 *   val lane = lane_id(p);
 *   var acc = var_f32(p, 0.0f);
 *   PTX_FOR (p, i, lane, columns, 32)
 *       assign(p, acc, fma(p, ld_global(p, F32, row, 0), x, acc));
 *
 * A val never changes (an SSA value). A var changes only by assign and is read when it is used as
 * an operand; get copies its current value. Operand types are inferred, C numbers become
 * immediates, constants fold during building, and loops and conditions close themselves.
 *
 * Errors, e.g. wrong types or unknown parameters, need no checks: ptx_finish reports the first. One
 * ptx is one kernel.
 *
 * Some macros share names with functions of math.h and stdlib.h: include this header last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "kernel/target.h"

/* Value types. 8 and 16-bit integers exist only in memory: loads widen, stores narrow. */
typedef enum type { NO_TYPE, PRED, U8, S8, U16, S16, F16, U32, S32, F32, U64, S64 } type;

/* The instructions, one per row of ops.def. */
typedef enum ptx_op {
#define OP(id, text, results, operands, types, isa, sm, flags) INST_##id,
#include "ptx/ops.def"
#undef OP
    INST_KINDS
} ptx_op;

typedef enum val_kind { VAL_NONE, VAL_NUMBER, VAL_REG, VAL_VAR, VAL_IMM, VAL_SHARED } val_kind;

/* A register, an immediate, or the address of a shared array. Only V makes VAL_VAR and VAL_NUMBER,
 * a C integer that takes the type of another operand. The builder never returns them. */
typedef struct val {
    uint8_t kind;
    uint8_t type;
    uint32_t id;   /* register; 0 = none */
    uint64_t bits; /* the immediate, or the index of the shared array */
} val;

typedef struct var {
    val storage;
} var;

typedef struct ptx ptx;

/* Creates a kernel for a target. name is a C identifier, block the number of threads per block. */
ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block);

unsigned ptx_block(const ptx *p);

/* Adds a comment line to the head of the file. */
void ptx_heading(ptx *p, const char *line);

/* Records an error, if it is the first. ptx_finish returns it. */
void ptx_fail(ptx *p, const char *format, ...) PRINTF_LIKE(2, 3);

/* Declares the next parameter, U32 or U64. All names have at most 127 characters. */
void ptx_param(ptx *p, type t, const char *name);

/* Declares a pointer parameter, and which preceding launches may write its data:
 *   CHANGES_NEVER    no launch writes it (weights and module arrays)
 *   CHANGES_SETTLED  only launches that are complete when the kernel starts (see ld_settled)
 *   CHANGES_ANY      any overlapping launch */
typedef enum ptx_changes { CHANGES_NEVER, CHANGES_SETTLED, CHANGES_ANY } ptx_changes;
void ptx_steady_param(ptx *p, type t, const char *name, ptx_changes changes);

/* Limits the registers per thread (.maxnreg), further if the block needs it. */
void ptx_max_registers(ptx *p, unsigned registers);

/* Stages that --dump prints: as built, after simplification and ordering, after verification. */
typedef enum ptx_stage { PTX_STAGE_BUILD = 1, PTX_STAGE_FOLD = 2, PTX_STAGE_PRINT = 4 } ptx_stage;

/* Makes ptx_finish append the kernel's text to out after each stage in a bit set, also for invalid
 * kernels. A register without a definition prints as %undefined. */
void ptx_set_dump(ptx *p, unsigned stages, strbuf *out);

typedef struct ptx_output {
    const char *text;
    size_t length;
    unsigned isa;  /* of .version, times 10 */
    bool specific; /* runs only on its target */
    size_t shared_bytes;
} ptx_output;

/* Removes dead code, verifies and prints the kernel. Returns false and *error if invalid. */
bool ptx_finish(ptx *p, arena *a, ptx_output *out, const char **error);

/* Adds a comment to the instruction that defines v, and returns v. */
val named(ptx *p, const char *name, val v);

/* Emits a comment line that describes the instructions up to the next phase. Write it as a separate
 * statement. Directly after a store, a barrier or a loop it does not affect instruction order. */
void phase(ptx *p, const char *what);

/* Convert C values to operands. */
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

/* Returns an immediate of type t, for use where no other operand determines the type. */
val imm(type t, long long number);

/* Variables. var_like needs an initial value with a type. */
var ptx_var(ptx *p, type t, val initial);
var var_like(ptx *p, val initial);
void ptx_assign(ptx *p, var v, val value);
val get(ptx *p, var v);
#define var_f32(p, initial) ptx_var(p, F32, V(initial))
#define var_u32(p, initial) ptx_var(p, U32, V(initial))
#define var_u64(p, initial) ptx_var(p, U64, V(initial))
#define assign(p, v, value) ptx_assign(p, v, V(value))

/* Emit an instruction of the first typed operand's type. Kernels use the macros below. */
val ptx_unary(ptx *p, ptx_op o, val a);
val ptx_binary(ptx *p, ptx_op o, val a, val b);
val ptx_ternary(ptx *p, ptx_op o, val a, val b, val c);

/* Arithmetic on values of the same type. Integer mul and mad return the low half; integer div
 * truncates. Float mul is mul.f32, mad is fma, div rounds to nearest even. */
val ptx_mul(ptx *p, val a, val b);
val ptx_div(ptx *p, val a, val b);
val ptx_rem(ptx *p, val a, val b);
val ptx_mad(ptx *p, val a, val b, val c);
#define add(p, a, b)     ptx_binary(p, INST_ADD, V(a), V(b))
#define sub(p, a, b)     ptx_binary(p, INST_SUB, V(a), V(b))
#define mul(p, a, b)     ptx_mul(p, V(a), V(b))
#define div(p, a, b)     ptx_div(p, V(a), V(b))
#define rem(p, a, b)     ptx_rem(p, V(a), V(b))
#define min(p, a, b)     ptx_binary(p, INST_MIN, V(a), V(b))
#define max(p, a, b)     ptx_binary(p, INST_MAX, V(a), V(b))
#define neg(p, a)        ptx_unary(p, INST_NEG, V(a))
#define max_nan(p, a, b) ptx_binary(p, INST_MAX_NAN, V(a), V(b)) /* NaN if either is */
#define abs(p, a)        ptx_unary(p, INST_ABS, V(a))
#define mad(p, a, b, c)  ptx_mad(p, V(a), V(b), V(c))
#define fma(p, a, b, c)  ptx_mad(p, V(a), V(b), V(c))

/* Multiply 32 x 32 -> 64 bits, with a 64-bit addend. */
val ptx_mad_wide(ptx *p, val a, val b, val c);
#define mul_wide(p, a, b)    ptx_binary(p, INST_MUL_WIDE, V(a), V(b))
#define mad_wide(p, a, b, c) ptx_mad_wide(p, V(a), V(b), V(c))

/* Returns c + the dot product of four bytes of a and b, signed by the types of a and b. */
val ptx_dp4a(ptx *p, val a, val b, val c);
#define dp4a(p, a, b, c) ptx_dp4a(p, V(a), V(b), V(c))

/* Bit operations. shr of a signed value is arithmetic. */
val ptx_lop3(ptx *p, val a, val b, val c, unsigned table);
#define bit_and(p, a, b) ptx_binary(p, INST_AND, V(a), V(b))
#define bit_or(p, a, b)  ptx_binary(p, INST_OR, V(a), V(b))
#define bit_xor(p, a, b) ptx_binary(p, INST_XOR, V(a), V(b))
#define bit_not(p, a)    ptx_unary(p, INST_NOT, V(a))
#define count_bits(p, a) ptx_unary(p, INST_POPC, V(a))
#define shl(p, a, b)     ptx_binary(p, INST_SHL, V(a), V(b))
#define shr(p, a, b)     ptx_binary(p, INST_SHR, V(a), V(b))
#define rotate(p, a, count) \
    ptx_ternary(p, INST_ROTATE, V(a), V(a), V(count)) /* rotates 32 bits left */
#define bfe(p, a, first, count) ptx_ternary(p, INST_BFE, V(a), V(first), V(count))
#define prmt(p, a, b, selector) ptx_ternary(p, INST_PRMT, V(a), V(b), V(selector))
#define lop3(p, a, b, c, table) ptx_lop3(p, V(a), V(b), V(c), table)

/* Functions of f32. rcp_approx, rsqrt, ex2 are approximate; rcp_approx and ex2 flush to zero. */
#define rcp(p, a)        ptx_unary(p, INST_RCP_RN, V(a))
#define rcp_approx(p, a) ptx_unary(p, INST_RCP_APPROX, V(a))
#define rsqrt(p, a)      ptx_unary(p, INST_RSQRT, V(a))
#define ex2(p, a)        ptx_unary(p, INST_EX2, V(a))

/* Converts a value to type t. Integers are truncated or extended. Integer to float and f32 to f16
 * round to nearest even. Float to integer truncates. */
val ptx_convert(ptx *p, type t, val a);
#define convert(p, t, a) ptx_convert(p, t, V(a))

/* Reinterpret a register with the other signedness (as), or its bits as another type (bits_as). */
val ptx_as(ptx *p, type t, val a);
val ptx_bits_as(ptx *p, type t, val a);
#define as(p, t, a)      ptx_as(p, t, V(a))
#define bits_as(p, t, a) ptx_bits_as(p, t, V(a))

/* Splits a 32-bit word into its low and high f16. */
typedef struct val2 {
    val v[2];
} val2;
val2 ptx_halves(ptx *p, val a);
#define halves(p, a) ptx_halves(p, V(a))

/* Arithmetic on pairs of f16 in a u32. Each result is rounded once. pack_halves converts two f32 to
 * a pair, the first in the low half (sm_80). */
val ptx_pair(ptx *p, val v);
#define add_pair(p, a, b) ptx_binary(p, INST_ADD_PAIR, ptx_pair(p, a), ptx_pair(p, b))
#define mul_pair(p, a, b) ptx_binary(p, INST_MUL_PAIR, ptx_pair(p, a), ptx_pair(p, b))
#define fma_pair(p, a, b, c) \
    ptx_ternary(p, INST_FMA_PAIR, ptx_pair(p, a), ptx_pair(p, b), ptx_pair(p, c))
val ptx_pack_halves(ptx *p, val low, val high);
#define pack_halves(p, low, high) ptx_pack_halves(p, V(low), V(high))

/* Comparisons return a predicate, which select takes as its condition. */
val ptx_select(ptx *p, val condition, val yes, val no);
#define eq(p, a, b)                   ptx_binary(p, INST_SETP_EQ, V(a), V(b))
#define ne(p, a, b)                   ptx_binary(p, INST_SETP_NE, V(a), V(b))
#define lt(p, a, b)                   ptx_binary(p, INST_SETP_LT, V(a), V(b))
#define le(p, a, b)                   ptx_binary(p, INST_SETP_LE, V(a), V(b))
#define gt(p, a, b)                   ptx_binary(p, INST_SETP_GT, V(a), V(b))
#define ge(p, a, b)                   ptx_binary(p, INST_SETP_GE, V(a), V(b))
#define select(p, condition, yes, no) ptx_select(p, condition, V(yes), V(no))

/* Thread and block indices. Blocks are one-dimensional. */
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
val lane_id(ptx *p); /* tid % 32; tid in a block of one warp */
val warp_id(ptx *p); /* tid / 32; 0 in a block of one warp */

/* Returns a register with a constant that ptxas cannot recognize. A recognized constant would be
 * moved to a register again before each use that accepts no immediate. */
val kept_in_register(ptx *p, uint32_t number);

/* Memory accesses.
 *
 * base is a 64-bit global address, a 32-bit shared address or a shared array. offset is in bytes.
 * Loads of 8 and 16-bit integers return 32-bit values. v2 and v4 access two or four adjacent
 * values; the address is a multiple of their total size.
 *
 * ld_const reads memory that no thread of the grid writes. If an overlapping launch may write it,
 * ld_const becomes ld_global. ld_settled does the same for CHANGES_SETTLED parameters and may
 * precede wait_for_launches. */
typedef struct val4 {
    val v[4];
} val4;
val parameter(ptx *p, const char *name);
val ptx_load(ptx *p, ptx_op o, type t, val base, int64_t offset);
val ptx_load_settled(ptx *p, type t, val base, int64_t offset);
val2 ptx_load_v2(ptx *p, ptx_op o, type t, val base, int64_t offset);
val4 ptx_load_v4(ptx *p, ptx_op o, type t, val base, int64_t offset);

/* Load or store 1, 2 or 4 adjacent values. */
void ptx_load_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                     val *values);
void ptx_store_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                      const val *values);

/* Load or store count f32, rounded up to a multiple of 4, in units of 16 bytes. The type of base
 * selects ld_const_v4 and st_global_v4, or ld_shared_v4 and st_shared_v4. */
void load_floats(ptx *p, val base, int64_t offset, unsigned count, val *values);
void store_floats(ptx *p, val base, int64_t offset, unsigned count, const val *values);

/* Sets whether ld_const emits ld_global from here on. ptxas keeps ordinary loads before a warp
 * barrier, but sinks ld.global.nc below it to save registers. */
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
#define st_shared_v2(p, t, base, offset, values) \
    ptx_store_values(p, INST_ST_SHARED, t, 2, V(base), offset, (values).v)
#define st_shared_v4(p, t, base, offset, values) \
    ptx_store_values(p, INST_ST_SHARED, t, 4, V(base), offset, (values).v)

/* Atomic operations; both return the old value. Write them as separate statements. atomic_inc
 * increments a u32 in global memory, and wraps from `most` to 0. It is acq_rel: if a block's
 * barrier precedes its atomic_inc, blocks that get a later number see the block's earlier stores
 * after their next barrier. atomic_add_shared adds to a u32 in shared memory. */
val ptx_atomic(ptx *p, ptx_op o, val base, val number);
#define atomic_inc(p, base, most)          ptx_atomic(p, INST_ATOM_INC, V(base), V(most))
#define atomic_add_shared(p, base, number) ptx_atomic(p, INST_ATOM_ADD_SHARED, V(base), V(number))

/* Declares a shared array of count values and returns its address. */
val shared_array(ptx *p, const char *name, type t, unsigned count);

/* Declares the dynamic shared array, at most one per kernel; the launch sets its size. */
val shared_dynamic(ptx *p, const char *name, type t);

/* Sets the alignment of a shared array in bytes, at least 16. */
void shared_align(ptx *p, val array, unsigned bytes);

/* Declares a constant array of 64-bit words in global memory and returns its address, aligned to 16
 * bytes. words are copied; a second call with the same words returns the same array. comment holds
 * lines printed above it, NULL-terminated. */
val global_array(ptx *p, const char *name, const char *const *comment, const uint64_t *words,
                 unsigned count);

/* Return the value of lane ^ mask, of a given lane, or of lane 0 .. 3 of the four neighbours. All
 * 32 lanes take part. PTX ISA 9.7.9.6: c has the clamp in bits 0-4, the segment mask in 8-12. */
val ptx_shuffle(ptx *p, ptx_op o, val v, val which, unsigned clamp);
#define shuffle_xor(p, v, mask)  ptx_shuffle(p, INST_SHFL_BFLY, V(v), imm(U32, mask), 31)
#define shuffle_from(p, v, lane) ptx_shuffle(p, INST_SHFL_IDX, V(v), V(lane), 31)
#define shuffle_from_neighbour(p, v, which) \
    ptx_shuffle(p, INST_SHFL_IDX, V(v), imm(U32, which), 0x1c1f)

/* D = A B + C on tensor cores, by all lanes of the warp (sm_80). A is 16 x 16 f16, B is 16 x 8 f16,
 * C and D are 16 x 8 f32. A word holds two f16; the low half has the lower column of A or row of B.
 * With g = lane / 4 and t = lane % 4, the fragments of a lane are
 *
 *   a0  A[g][2t], A[g][2t + 1]              a2  A[g][2t + 8], A[g][2t + 9]
 *   a1  A[g + 8][2t], A[g + 8][2t + 1]      a3  A[g + 8][2t + 8], A[g + 8][2t + 9]
 *   b0  B[2t][g], B[2t + 1][g]              b1  B[2t + 8][g], B[2t + 9][g]
 *   c0  C[g][2t]    c1  C[g][2t + 1]        c2  C[g + 8][2t]    c3  C[g + 8][2t + 1]; d as c */
val4 ptx_mma(ptx *p, ptx_op o, type t, val4 a, val2 b, val4 c);
#define mma_m16n8k16_f16(p, ...) ptx_mma(p, INST_MMA_F16, F32, __VA_ARGS__)

/* Variant for tf32, f32 whose lowest 13 bits are ignored (sm_80). A is 16 x 8, B is 8 x 8:
 *
 *   a0  A[g][t]      a1  A[g + 8][t]        a2  A[g][t + 4]      a3  A[g + 8][t + 4]
 *   b0  B[t][g]      b1  B[t + 4][g] */
#define mma_m16n8k8_tf32(p, ...) ptx_mma(p, INST_MMA_TF32, F32, __VA_ARGS__)

/* Variants for bytes with s32 sums that wrap (sm_80). A is 16 x 32, B is 32 x 8; with depth 16 A has
 * only a0 and a1, B only b0. Bytes of A are signed in an s32, unsigned in a u32; those of B are
 * signed. A word holds four bytes, the first in the low byte:
 *
 *   a0  A[g][4t .. 4t + 3]                  a2  A[g][4t + 16 .. 4t + 19]
 *   a1  A[g + 8][4t .. 4t + 3]              a3  A[g + 8][4t + 16 .. 4t + 19]
 *   b0  B[4t .. 4t + 3][g]                  b1  B[4t + 16 .. 4t + 19][g] */
val4 ptx_mma_bytes(ptx *p, const val *a, const val *b, unsigned depth, val4 c);

/* Transposes 8 x 8 f16 across the warp (sm_75). A lane has elements 2t and 2t + 1 of row g. */
#define transpose_halves(p, pair) ptx_unary(p, INST_MOVMATRIX, V(pair))

/* Load one, two or four 8 x 8 matrices of f16 from shared memory, by all lanes of the warp (sm_75).
 * Lane i addresses row i % 8 of matrix i / 8, 16 bytes aligned to 16. Addresses of further lanes
 * are ignored but must be in shared memory.
 *
 * Word j of a lane holds elements 2t and 2t + 1 of row g of matrix j. These are fragments of
 * mma_m16n8k16_f16: of A if the matrices are its quarters (upper left, lower left, upper right,
 * lower right), of B if the rows are its columns. trans returns the elements of rows 2t and 2t + 1
 * of column g: fragments of B if the rows are its rows.
 *
 * Byte fragments are loaded as f16 with two bytes per element, which trans does not separate. */
#define ldmatrix_x1(p, base, offset)       ptx_load(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x2(p, base, offset)       ptx_load_v2(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x4(p, base, offset)       ptx_load_v4(p, INST_LDMATRIX, U32, V(base), offset)
#define ldmatrix_x1_trans(p, base, offset) ptx_load(p, INST_LDMATRIX_TRANS, U32, V(base), offset)
#define ldmatrix_x2_trans(p, base, offset) ptx_load_v2(p, INST_LDMATRIX_TRANS, U32, V(base), offset)
#define ldmatrix_x4_trans(p, base, offset) ptx_load_v4(p, INST_LDMATRIX_TRANS, U32, V(base), offset)

/* Emit an instruction without results, with a number or none. Kernels use the macros below. */
void ptx_control(ptx *p, ptx_op o);
void ptx_control_number(ptx *p, ptx_op o, unsigned number);

/* Asynchronous copies of 16 bytes from global to shared memory, past the L1 cache (sm_80). Both
 * addresses are multiples of 16. fill: only `present` bytes (a u32) are read, the rest become 0. If
 * present is 0, the source may be any aligned address.
 *
 * A group is all copies of a thread since its last commit. wait blocks until at most `open` of the
 * thread's newest groups are unfinished. Other threads see the data after a barrier that follows
 * the wait, and nothing may touch it before. In an overlapping kernel, only copies of weights may
 * precede wait_for_launches. */
void ptx_copy_async(ptx *p, ptx_op o, val to, int64_t to_offset, val from, int64_t from_offset,
                    val present);
#define cp_async_cg(p, to, to_offset, from, from_offset) \
    ptx_copy_async(p, INST_CP_ASYNC_CG, V(to), to_offset, V(from), from_offset, (val){ 0 })
#define cp_async_cg_fill(p, to, to_offset, from, from_offset, present) \
    ptx_copy_async(p, INST_CP_ASYNC_CG_FILL, V(to), to_offset, V(from), from_offset, V(present))
#define cp_async_commit(p)     ptx_control(p, INST_CP_ASYNC_COMMIT)
#define cp_async_wait(p, open) ptx_control_number(p, INST_CP_ASYNC_WAIT, open)
#define cp_async_wait_all(p)   ptx_control(p, INST_CP_ASYNC_WAIT_ALL)

/* Asynchronous tensor-core products of a warpgroup (sm_90a): four adjacent warps, the first with a
 * number that is a multiple of 4. D += A B with A 64 x 16 f16, B 16 x columns f16, D f32; columns
 * is a multiple of 8 up to 256.
 *
 * A and B are in shared memory, as contiguous rows of A and columns of B. A row has 32 values of k
 * in 64 bytes, of which a product reads 16. Unit u of a row's four 16-byte units is stored at u ^
 * (row / 2 % 4). Groups of eight rows are aligned to 512 bytes. wgmma_matrix returns the descriptor
 * of a matrix from the address of its first row, plus 32 for the second 16 values.
 *
 * Let g = lane / 4 and t = lane % 4. In warp w of the group, a lane's sums[4 j + c] is element c of
 * a fragment of mma_m16n8k16_f16. The fragment starts at row 16 w and column 8 j.
 *
 * All warps of the group execute each of these. Operands must be stored before a proxy_fence and a
 * barrier. Operands may be changed, and sums accessed, only after a wait. It blocks until at most
 * `open` of the newest committed groups are unfinished. A fence precedes the first product, and any
 * product after another change of the sums. */
val wgmma_matrix(ptx *p, val address);
void wgmma_m64k16_f16(ptx *p, const var *sums, unsigned columns, val a, val b);
#define wgmma_fence(p)      ptx_control(p, INST_WGMMA_FENCE)
#define wgmma_commit(p)     ptx_control(p, INST_WGMMA_COMMIT)
#define wgmma_wait(p, open) ptx_control_number(p, INST_WGMMA_WAIT, open)
#define proxy_fence(p)      ptx_control(p, INST_PROXY_FENCE)

/* Returns true if a target has wgmma. */
bool ptx_has_wgmma(const target *t);

/* Barrier of the block's threads, or of the warp's lanes. It orders stores before it. */
#define barrier(p)      ptx_control_number(p, INST_BAR_SYNC, 0)
#define warp_barrier(p) ptx_control_number(p, INST_BAR_WARP, UINT32_MAX)

/* Barrier of some warps of the block, `threads` in all, by an id (u32) from 1 to 15. */
void ptx_part_barrier(ptx *p, val id, unsigned threads);
#define part_barrier(p, id, threads) ptx_part_barrier(p, V(id), threads)

/* Programmatic dependent launches start before their predecessor in the stream has finished.
 * ptx_overlap declares that this kernel is one; ptx_overlaps returns true if so. */
void ptx_overlap(ptx *p);
bool ptx_overlaps(const ptx *p);

/* Lets the successor start, if its kernel overlaps, before all blocks have ended. After
 * wait_for_launches, later launches find the work before this launch complete. */
void let_next_start(ptx *p);

/* Waits until the preceding launches are complete. Each thread of an overlapping kernel calls it
 * once, before any access to memory that other launches touch. No-op in other kernels. */
void wait_for_launches(ptx *p);

/* Prefetches an address's line into L2, also before wait_for_launches: it returns no data. */
void ptx_prefetch(ptx *p, val base, int64_t offset);
#define prefetch(p, base, offset) ptx_prefetch(p, V(base), offset)

/* Prefetches a range into L2, by one thread, in multiples of 16 bytes, if the target can. */
bool ptx_can_prefetch_bulk(const ptx *p);
void ptx_prefetch_bulk(ptx *p, val base, int64_t offset, val bytes);
#define prefetch_bulk(p, base, offset, bytes) ptx_prefetch_bulk(p, V(base), offset, V(bytes))

/* Returns the target that the kernel is built for. */
const target *ptx_target(const ptx *p);

/* Barrier that returns the number of threads in the block for which condition is true. */
val barrier_count(ptx *p, val condition);

/* End the thread, always or if condition is true. The end of a kernel needs neither. */
void ret(ptx *p);
void ret_if(ptx *p, val condition);

/* Adds an iteration's work to the next loop's label, "32 weights a lane", for the cost table. */
void ptx_loop_work(ptx *p, unsigned amount, const char *unit);

/* Marks the next loop as rarely executed, with the comment "// seldom" at its label. The cost table
 * excludes it. A kernel may have one such loop, which may contain others. */
void ptx_loop_seldom(ptx *p);

/* Conditions and loops. PTX_ELSE directly follows its PTX_IF. The body of
 *
 *     PTX_FOR (p, row, first, end, step)
 *
 * runs with the val row = first, first + step, … while row < end. The loop's name is used for row
 * and the labels. The numbers are unsigned, and end + step must fit their type. ptxas is told not
 * to unroll the loop; generators unroll. */
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
