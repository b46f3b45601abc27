/* Constant folding during building.
 *
 * Integers fold if all operands are constant, and by identities: x + 0, x * 1, x * 0, x << 0, ...
 * Floats fold only if the result is exact for every x, including signed zeros and NaN. So x * 1
 * folds, but x + 0 and x * 0 do not. */
#include "ptx/ir.h"

static bool known(val v)
{
    return v.kind == VAL_IMM;
}

static bool is(val v, uint64_t number)
{
    return known(v) && v.bits == number;
}

static bool fold_integer(type t, uint64_t number, val *result)
{
    *result = imm(t, (long long)number);
    return true;
}

static bool fold_predicate(bool holds, val *result)
{
    *result = (val){ .kind = VAL_IMM, .type = PRED, .bits = holds };
    return true;
}

static bool fold_operand(val v, val *result)
{
    *result = v;
    return true;
}

static bool fold_two_known(ptx_op o, type t, val a, val b, val *result)
{
    int64_t x = a.type == S32 ? (int32_t)a.bits : (int64_t)a.bits;
    int64_t y = b.type == S32 ? (int32_t)b.bits : (int64_t)b.bits;
    bool sign = BIT(t) & SINTS;
    uint64_t width = type_table[t].bytes * 8;
    switch (o) {
    case INST_ADD:
        return fold_integer(t, a.bits + b.bits, result);
    case INST_SUB:
        return fold_integer(t, a.bits - b.bits, result);
    case INST_MUL_LO:
        return fold_integer(t, a.bits * b.bits, result);
    case INST_MUL_WIDE:
        return fold_integer(sign ? S64 : U64, sign ? (uint64_t)(x * y) : a.bits * b.bits, result);
    case INST_DIV:
    case INST_REM:
        if (sign || b.bits == 0)
            return false;
        return fold_integer(t, o == INST_DIV ? a.bits / b.bits : a.bits % b.bits, result);
    case INST_MIN:
        return fold_operand((sign ? x < y : a.bits < b.bits) ? a : b, result);
    case INST_MAX:
        return fold_operand((sign ? x > y : a.bits > b.bits) ? a : b, result);
    case INST_AND:
        return fold_integer(t, a.bits & b.bits, result);
    case INST_OR:
        return fold_integer(t, a.bits | b.bits, result);
    case INST_XOR:
        return fold_integer(t, a.bits ^ b.bits, result);
    case INST_SHL:
        return fold_integer(t, b.bits < width ? a.bits << b.bits : 0, result);
    case INST_SHR:
        if (sign)
            return false;
        return fold_integer(t, b.bits < width ? a.bits >> b.bits : 0, result);
    case INST_SETP_EQ:
        return fold_predicate(a.bits == b.bits, result);
    case INST_SETP_NE:
        return fold_predicate(a.bits != b.bits, result);
    case INST_SETP_LT:
        return fold_predicate(sign ? x < y : a.bits < b.bits, result);
    case INST_SETP_LE:
        return fold_predicate(sign ? x <= y : a.bits <= b.bits, result);
    case INST_SETP_GT:
        return fold_predicate(sign ? x > y : a.bits > b.bits, result);
    case INST_SETP_GE:
        return fold_predicate(sign ? x >= y : a.bits >= b.bits, result);
    default:
        return false;
    }
}

static bool fold_identity(ptx_op o, type t, val a, val b, val *result)
{
    switch (o) {
    case INST_ADD:
    case INST_SUB:
    case INST_OR:
    case INST_XOR:
    case INST_SHL:
    case INST_SHR:
        return is(b, 0) && fold_operand(a, result);
    case INST_MUL_LO:
        if (is(b, 0))
            return fold_integer(t, 0, result);
        return is(b, 1) && fold_operand(a, result);
    case INST_DIV:
        return is(b, 1) && fold_operand(a, result);
    case INST_REM:
        return is(b, 1) && fold_integer(t, 0, result);
    case INST_MAX:
        return !(BIT(t) & SINTS) && is(b, 0) && fold_operand(a, result);
    case INST_MUL_WIDE:
        return is(b, 0) && fold_integer(BIT(t) & SINTS ? S64 : U64, 0, result);
    case INST_AND:
        if (is(b, 0))
            return fold_integer(t, 0, result);
        return is(b, imm(t, -1).bits) && fold_operand(a, result);
    default:
        return false;
    }
}

bool ptx_fold(ptx_op o, type t, const val *operands, unsigned count, val *result)
{
    enum { ONE_F32 = 0x3f800000 };
    const val none = { 0 };
    val a = operands[0], b = count > 1 ? operands[1] : none, c = count > 2 ? operands[2] : none;
    if (o == INST_SELP && known(a) && known(b) && a.bits == b.bits)
        return fold_operand(a, result);
    if (o == INST_SELP)
        return known(c) && fold_operand(c.bits ? a : b, result);
    if (t == PRED && o == INST_NOT)
        return known(a) && fold_predicate(!a.bits, result);
    if (t == PRED)
        return known(b) && (o == INST_AND || o == INST_OR) &&
               fold_operand((o == INST_AND ? !b.bits : b.bits) ? b : a, result);
    if (o == INST_MUL)
        return t == F32 && is(b, ONE_F32) && fold_operand(a, result);
    if (!(BIT(t) & INTS))
        return false;
    if (o == INST_MAD_LO || o == INST_MAD_WIDE) {
        val product;
        ptx_op multiply = o == INST_MAD_LO ? INST_MUL_LO : INST_MUL_WIDE;
        bool folded = known(a) && known(b) ? fold_two_known(multiply, t, a, b, &product)
                                           : fold_identity(multiply, t, a, b, &product);
        if (!folded || !known(product))
            return false;
        return product.bits == 0 ? fold_operand(c, result)
               : known(c)        ? fold_integer(c.type, product.bits + c.bits, result)
                                 : false;
    }
    if (count != 2)
        return false;
    return known(a) && known(b) ? fold_two_known(o, t, a, b, result)
                                : fold_identity(o, t, a, b, result);
}
