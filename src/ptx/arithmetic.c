/* Arithmetic, bits, conversions, comparisons, shuffles: calls that compute a value from values. */
#include "ptx/ir.h"

/* The functions below have the kernel-facing macros' names. */
#undef abs
#undef div
#undef min
#undef max

/* The type of the first operand that has one. */
static type common_type(const val *operands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (operands[i].kind != VAL_NUMBER && operands[i].kind != VAL_NONE)
            return operands[i].type;
    return U32;
}

static val emit1(ptx *p, op o, val a)
{
    return ptx_emit(p, o, common_type(&a, 1), NO_TYPE, &a);
}

static val emit2(ptx *p, op o, val a, val b)
{
    val operands[] = { a, b };
    return ptx_emit(p, o, common_type(operands, 2), NO_TYPE, operands);
}

static val emit3(ptx *p, op o, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return ptx_emit(p, o, common_type(operands, 3), NO_TYPE, operands);
}

static bool is_float(val a, val b)
{
    return BIT(a.kind == VAL_NUMBER ? b.type : a.type) & (FLOATS | BIT(F16));
}

val ptx_add(ptx *p, val a, val b)
{
    return emit2(p, OP_ADD, a, b);
}

val ptx_sub(ptx *p, val a, val b)
{
    return emit2(p, OP_SUB, a, b);
}

val ptx_mul(ptx *p, val a, val b)
{
    return emit2(p, is_float(a, b) ? OP_MUL : OP_MUL_LO, a, b);
}

/* log2 of an unsigned constant that is a power of two above 1, else 0. */
static unsigned power(val a, val b)
{
    bool constant = b.kind == VAL_IMM || b.kind == VAL_NUMBER;
    if (!constant || b.bits < 2 || b.bits & (b.bits - 1) ||
        (BIT(a.type) & ~(BIT(U32) | BIT(U64))) || a.kind == VAL_NUMBER)
        return 0;
    unsigned n = 0;
    while (b.bits >> (n + 1))
        n++;
    return n;
}

val ptx_div(ptx *p, val a, val b)
{
    if (power(a, b))
        return ptx_shr(p, a, imm(U32, power(a, b)));
    return emit2(p, is_float(a, b) ? OP_DIV_RN : OP_DIV, a, b);
}

val ptx_rem(ptx *p, val a, val b)
{
    if (power(a, b))
        return ptx_and(p, a, imm(a.type, (long long)b.bits - 1));
    return emit2(p, OP_REM, a, b);
}

val ptx_min(ptx *p, val a, val b)
{
    return emit2(p, OP_MIN, a, b);
}

val ptx_max(ptx *p, val a, val b)
{
    return emit2(p, OP_MAX, a, b);
}

val ptx_neg(ptx *p, val a)
{
    return emit1(p, OP_NEG, a);
}

val ptx_abs(ptx *p, val a)
{
    return emit1(p, OP_ABS, a);
}

static bool is_zero(val v)
{
    return (v.kind == VAL_IMM || v.kind == VAL_NUMBER) && v.bits == 0;
}

val ptx_mad(ptx *p, val a, val b, val c)
{
    val operands[] = { a, b, c };
    bool real = BIT(common_type(operands, 3)) & FLOATS;
    if (!real && is_zero(c))
        return emit2(p, OP_MUL_LO, a, b);
    return emit3(p, real ? OP_FMA : OP_MAD_LO, a, b, c);
}

val ptx_mul_wide(ptx *p, val a, val b)
{
    return emit2(p, OP_MUL_WIDE, a, b);
}

val ptx_mad_wide(ptx *p, val a, val b, val c)
{
    return is_zero(c) ? emit2(p, OP_MUL_WIDE, a, b) : emit3(p, OP_MAD_WIDE, a, b, c);
}

val ptx_dp4a(ptx *p, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return ptx_emit(p, OP_DP4A, common_type(&a, 1), common_type(&b, 1), operands);
}

val ptx_and(ptx *p, val a, val b)
{
    return emit2(p, OP_AND, a, b);
}

val ptx_or(ptx *p, val a, val b)
{
    return emit2(p, OP_OR, a, b);
}

val ptx_xor(ptx *p, val a, val b)
{
    return emit2(p, OP_XOR, a, b);
}

val ptx_not(ptx *p, val a)
{
    return emit1(p, OP_NOT, a);
}

val ptx_shl(ptx *p, val a, val b)
{
    return emit2(p, OP_SHL, a, b);
}

val ptx_shr(ptx *p, val a, val b)
{
    return emit2(p, OP_SHR, a, b);
}

val ptx_bfe(ptx *p, val a, val first, val count)
{
    return emit3(p, OP_BFE, a, first, count);
}

val ptx_prmt(ptx *p, val a, val b, val selector)
{
    return emit3(p, OP_PRMT, a, b, selector);
}

val ptx_lop3(ptx *p, val a, val b, val c, unsigned table)
{
    val operands[] = { a, b, c, imm(U32, table) };
    return ptx_emit(p, OP_LOP3, common_type(operands, 3), NO_TYPE, operands);
}

val ptx_rcp(ptx *p, val a)
{
    return emit1(p, OP_RCP_RN, a);
}

val ptx_rcp_approx(ptx *p, val a)
{
    return emit1(p, OP_RCP_APPROX, a);
}

val ptx_rsqrt(ptx *p, val a)
{
    return emit1(p, OP_RSQRT, a);
}

val ptx_ex2(ptx *p, val a)
{
    return emit1(p, OP_EX2, a);
}

val ptx_convert(ptx *p, type t, val a)
{
    type from = common_type(&a, 1);
    if (from == t)
        return a.kind == VAL_VAR ? ptx_copy(p, a) : a;
    bool to_real = BIT(t) & (FLOATS | BIT(F16)), from_real = BIT(from) & (FLOATS | BIT(F16));
    bool exact = to_real && from_real && type_table[t].bytes > type_table[from].bytes;
    op o = to_real && !exact ? OP_CVT_RN : from_real && !to_real ? OP_CVT_RZI : OP_CVT;
    return ptx_emit(p, o, t, from, &a);
}

val ptx_as(ptx *p, type t, val a)
{
    if (a.kind == VAL_VAR)
        a = ptx_copy(p, a);
    if (type_table[t].reg_class != type_table[a.type].reg_class) {
        ptx_fail(p, "as: %s is not another view of %s", type_table[t].name,
                 type_table[a.type].name);
        return ptx_nothing(t);
    }
    a.type = (uint8_t)t;
    return a;
}

val ptx_bits_as(ptx *p, type t, val a)
{
    if (type_table[t].bytes != type_table[a.type].bytes)
        ptx_fail(p, "bits_as: %s has not the size of %s", type_table[t].name,
                 type_table[a.type].name);
    if (type_table[t].reg_class == type_table[a.type].reg_class)
        return ptx_as(p, t, a);
    return ptx_emit(p, OP_MOV_BITS, t, a.type, &a);
}

val2 ptx_halves(ptx *p, val a)
{
    a = ptx_fit(p, OP_HALVES, common_type(&a, 1), a);
    inst *i = ptx_append(p, OP_HALVES, a.type);
    i->second = F16;
    ptx_set_operands(i, &a, 1);
    val low = ptx_add_result(p, i, F16), high = ptx_add_result(p, i, F16);
    return (val2){ { low, high } };
}

val ptx_eq(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_EQ, a, b);
}

val ptx_ne(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_NE, a, b);
}

val ptx_lt(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_LT, a, b);
}

val ptx_le(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_LE, a, b);
}

val ptx_gt(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_GT, a, b);
}

val ptx_ge(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_GE, a, b);
}

val ptx_select(ptx *p, val condition, val yes, val no)
{
    val operands[] = { yes, no, condition };
    return ptx_emit(p, OP_SELP, common_type(operands, 2), NO_TYPE, operands);
}

/* PTX ISA 9.7.9.6: c is the clamp in bits 0-4 and the mask of the group's lane bits in 8-12. */
static val shuffle(ptx *p, op o, val v, val which, unsigned width)
{
    enum { FULL_WARP = 32, LAST_LANE = 31 };
    if (v.kind == VAL_NUMBER)
        ptx_fail(p, "%s: a shuffle of a constant", op_name(o));
    unsigned groups = (FULL_WARP - width) << 8;
    val operands[] = { v, which, imm(U32, groups | LAST_LANE), imm(U32, UINT32_MAX) };
    return ptx_emit(p, o, v.type, NO_TYPE, operands);
}

val ptx_shuffle_xor(ptx *p, val v, unsigned mask, unsigned width)
{
    return shuffle(p, OP_SHFL_BFLY, v, imm(U32, mask), width);
}

val ptx_shuffle_from(ptx *p, val v, val lane, unsigned width)
{
    return shuffle(p, OP_SHFL_IDX, v, lane, width);
}
