/* Instructions that compute a value from values: arithmetic, bit operations, conversions,
 * comparisons, matrix products, shuffles. */
#include "ptx/ir.h"

/* Returns the type of the first operand that has one, or U32. */
static type common_type(const val *operands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (operands[i].kind != VAL_NUMBER && operands[i].kind != VAL_NONE)
            return operands[i].type;
    return U32;
}

val ptx_unary(ptx *p, ptx_op o, val a)
{
    return ptx_emit(p, o, common_type(&a, 1), NO_TYPE, &a);
}

val ptx_binary(ptx *p, ptx_op o, val a, val b)
{
    val operands[] = { a, b };
    return ptx_emit(p, o, common_type(operands, 2), NO_TYPE, operands);
}

val ptx_ternary(ptx *p, ptx_op o, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return ptx_emit(p, o, common_type(operands, 3), NO_TYPE, operands);
}

static bool is_float(val a, val b)
{
    return BIT(a.kind == VAL_NUMBER ? b.type : a.type) & (FLOATS | BIT(F16));
}

val ptx_mul(ptx *p, val a, val b)
{
    return ptx_binary(p, is_float(a, b) ? INST_MUL : INST_MUL_LO, a, b);
}

/* Returns log2 of b if a is unsigned and b is a constant power of two above 1, otherwise 0. */
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
        return shr(p, a, imm(U32, power(a, b)));
    return ptx_binary(p, is_float(a, b) ? INST_DIV_RN : INST_DIV, a, b);
}

val ptx_rem(ptx *p, val a, val b)
{
    if (power(a, b))
        return bit_and(p, a, imm(a.type, (long long)b.bits - 1));
    return ptx_binary(p, INST_REM, a, b);
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
        return ptx_binary(p, INST_MUL_LO, a, b);
    return ptx_ternary(p, real ? INST_FMA : INST_MAD_LO, a, b, c);
}

val ptx_mad_wide(ptx *p, val a, val b, val c)
{
    return is_zero(c) ? ptx_binary(p, INST_MUL_WIDE, a, b) : ptx_ternary(p, INST_MAD_WIDE, a, b, c);
}

val ptx_dp4a(ptx *p, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return ptx_emit(p, INST_DP4A, common_type(&a, 1), common_type(&b, 1), operands);
}

val ptx_lop3(ptx *p, val a, val b, val c, unsigned table)
{
    val operands[] = { a, b, c, imm(U32, table) };
    return ptx_emit(p, INST_LOP3, common_type(operands, 3), NO_TYPE, operands);
}

val ptx_convert(ptx *p, type t, val a)
{
    type from = common_type(&a, 1);
    if (from == t)
        return a.kind == VAL_VAR ? ptx_copy(p, a) : a;
    bool to_real = BIT(t) & (FLOATS | BIT(F16)), from_real = BIT(from) & (FLOATS | BIT(F16));
    bool exact = to_real && from_real && type_table[t].bytes > type_table[from].bytes;
    ptx_op o = to_real && !exact ? INST_CVT_RN : from_real && !to_real ? INST_CVT_RZI : INST_CVT;
    return ptx_emit(p, o, t, from, &a);
}

val ptx_as(ptx *p, type t, val a)
{
    if (a.kind == VAL_VAR)
        a = ptx_copy(p, a);
    if (register_classes[t] != register_classes[a.type]) {
        ptx_fail(p, "as: %s and %s need different registers; use bits_as or convert",
                 type_table[t].name, type_table[a.type].name);
        return imm(t, 0);
    }
    a.type = (uint8_t)t;
    return a;
}

val ptx_bits_as(ptx *p, type t, val a)
{
    if (type_table[t].bytes != type_table[a.type].bytes)
        ptx_fail(p, "bits_as: %s and %s differ in size", type_table[t].name,
                 type_table[a.type].name);
    if (register_classes[t] == register_classes[a.type])
        return ptx_as(p, t, a);
    return ptx_emit(p, INST_MOV_BITS, t, a.type, &a);
}

val2 ptx_halves(ptx *p, val a)
{
    val2 half;
    ptx_emit_group(p, INST_HALVES, common_type(&a, 1), F16, &a, half.v);
    return half;
}

/* Moves an immediate to a register, since PTX has no immediates of packed types. */
val ptx_pair(ptx *p, val v)
{
    return v.kind == VAL_IMM ? ptx_copy(p, v) : v;
}

val ptx_pack_halves(ptx *p, val low, val high)
{
    val operands[] = { high, low };
    return ptx_emit(p, INST_CVT_PAIR, U32, F32, operands);
}

val4 ptx_mma(ptx *p, ptx_op o, type t, val4 a, val2 b, val4 c)
{
    val operands[] = { a.v[0], a.v[1], a.v[2], a.v[3], b.v[0],
                       b.v[1], c.v[0], c.v[1], c.v[2], c.v[3] };
    val4 d;
    ptx_emit_group(p, o, t, NO_TYPE, operands, d.v);
    return d;
}

val4 ptx_mma_bytes(ptx *p, const val *a, const val *b, unsigned depth, val4 c)
{
    bool has_sign = a[0].type == S32;
    if (depth == 32)
        return ptx_mma(p, has_sign ? INST_MMA_S8 : INST_MMA_U8, S32,
                       (val4){ { a[0], a[1], a[2], a[3] } }, (val2){ { b[0], b[1] } }, c);
    val operands[] = { a[0], a[1], b[0], c.v[0], c.v[1], c.v[2], c.v[3] };
    val4 d;
    ptx_emit_group(p, has_sign ? INST_MMA_S8_K16 : INST_MMA_U8_K16, S32, NO_TYPE, operands, d.v);
    return d;
}

val ptx_select(ptx *p, val condition, val yes, val no)
{
    val operands[] = { yes, no, condition };
    return ptx_emit(p, INST_SELP, common_type(operands, 2), NO_TYPE, operands);
}

val ptx_shuffle(ptx *p, ptx_op o, val v, val which, unsigned clamp)
{
    if (v.kind == VAL_NUMBER)
        ptx_fail(p, "%s: a constant cannot be shuffled", op_name(o));
    val operands[] = { v, which, imm(U32, clamp), imm(U32, UINT32_MAX) };
    return ptx_emit(p, o, v.type, NO_TYPE, operands);
}
