/* Folding agrees with the arithmetic of the GPU: every operation on edge values, as C computes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ptx/ir.h"

static const uint64_t edges[] = { 0,
                                  1,
                                  2,
                                  7,
                                  31,
                                  32,
                                  63,
                                  64,
                                  0x7fffffff,
                                  0x80000000,
                                  0xfffffffe,
                                  0xffffffff,
                                  0x100000000,
                                  0x7fffffffffffffff,
                                  0x8000000000000000,
                                  0xffffffffffffffff };
enum { EDGES = sizeof edges / sizeof *edges };

/* Folds op on two immediates; false where it is left to the GPU. */
static bool folds(op o, type t, uint64_t a, uint64_t b, val *result)
{
    val operands[MAX_VECTOR] = { imm(t, (long long)a), imm(t, (long long)b) };
    if (o == OP_SHL || o == OP_SHR)
        operands[1] = imm(U32, (long long)(uint32_t)b);
    return ptx_fold(o, t, operands, result);
}

static void expect(op o, type t, uint64_t a, uint64_t b, uint64_t expected)
{
    val result;
    if (!folds(o, t, a, b, &result))
        return;
    uint64_t wanted = result.type == PRED ? expected : imm(result.type, (long long)expected).bits;
    if (result.bits != wanted)
        fail_msg("%s.%s of 0x%llx and 0x%llx: 0x%llx instead of 0x%llx", op_name(o),
                 type_table[t].name, (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)result.bits, (unsigned long long)wanted);
}

static uint64_t as_u64(int64_t v)
{
    return (uint64_t)v;
}

static void unsigned_arithmetic_wraps(void **state)
{
    (void)state;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            uint32_t a = (uint32_t)edges[i], b = (uint32_t)edges[j];
            expect(OP_ADD, U32, a, b, a + b);
            expect(OP_SUB, U32, a, b, a - b);
            expect(OP_MUL_LO, U32, a, b, (uint64_t)a * b);
            expect(OP_MUL_WIDE, U32, a, b, (uint64_t)a * b);
            expect(OP_DIV, U32, a, b, b ? a / b : 0);
            expect(OP_REM, U32, a, b, b ? a % b : 0);
            expect(OP_MIN, U32, a, b, a < b ? a : b);
            expect(OP_MAX, U32, a, b, a > b ? a : b);
            expect(OP_AND, U32, a, b, a & b);
            expect(OP_OR, U32, a, b, a | b);
            expect(OP_XOR, U32, a, b, a ^ b);
            expect(OP_SHL, U32, a, b, b < 32 ? a << b : 0);
            expect(OP_SHR, U32, a, b, b < 32 ? a >> b : 0);
            expect(OP_ADD, U64, edges[i], edges[j], edges[i] + edges[j]);
            expect(OP_MUL_LO, U64, edges[i], edges[j], edges[i] * edges[j]);
            expect(OP_SHL, U64, edges[i], b, b < 64 ? edges[i] << b : 0);
            expect(OP_SHR, U64, edges[i], b, b < 64 ? edges[i] >> b : 0);
        }
}

static void signed_arithmetic_keeps_its_sign(void **state)
{
    (void)state;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            int32_t a = (int32_t)(uint32_t)edges[i], b = (int32_t)(uint32_t)edges[j];
            uint32_t x = (uint32_t)a, y = (uint32_t)b;
            expect(OP_ADD, S32, x, y, x + y);
            expect(OP_SUB, S32, x, y, x - y);
            expect(OP_MUL_LO, S32, x, y, x * y);
            expect(OP_MUL_WIDE, S32, x, y, as_u64((int64_t)a * b));
            expect(OP_MIN, S32, x, y, (uint32_t)(a < b ? a : b));
            expect(OP_MAX, S32, x, y, (uint32_t)(a > b ? a : b));
        }
}

static void comparisons_follow_the_sign(void **state)
{
    (void)state;
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            uint32_t a = (uint32_t)edges[i], b = (uint32_t)edges[j];
            int32_t x = (int32_t)a, y = (int32_t)b;
            expect(OP_SETP_EQ, U32, a, b, a == b);
            expect(OP_SETP_NE, U32, a, b, a != b);
            expect(OP_SETP_LT, U32, a, b, a < b);
            expect(OP_SETP_LE, U32, a, b, a <= b);
            expect(OP_SETP_GT, U32, a, b, a > b);
            expect(OP_SETP_GE, U32, a, b, a >= b);
            expect(OP_SETP_LT, S32, a, b, x < y);
            expect(OP_SETP_LE, S32, a, b, x <= y);
            expect(OP_SETP_GT, S32, a, b, x > y);
            expect(OP_SETP_GE, S32, a, b, x >= y);
        }
}

static void known_operands_fold(void **state)
{
    (void)state;
    val result;
    static const op always[] = { OP_ADD,     OP_SUB,     OP_MUL_LO,  OP_MUL_WIDE, OP_MIN,
                                 OP_MAX,     OP_AND,     OP_OR,      OP_XOR,      OP_SHL,
                                 OP_SHR,     OP_SETP_EQ, OP_SETP_NE, OP_SETP_LT,  OP_SETP_LE,
                                 OP_SETP_GT, OP_SETP_GE };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_true(folds(always[i], U32, 12, 5, &result));
    assert_true(folds(OP_DIV, U32, 12, 5, &result));
    assert_true(folds(OP_REM, U32, 12, 5, &result));
}

static void division_by_zero_is_left_to_the_gpu(void **state)
{
    (void)state;
    val result;
    assert_false(folds(OP_DIV, U32, 12, 0, &result));
    assert_false(folds(OP_REM, U32, 12, 0, &result));
}

static void identities_give_the_operand_back(void **state)
{
    (void)state;
    const val x = { .kind = VAL_REG, .type = U32, .id = 9 };
    static const struct {
        op op;
        long long with;
    } same[] = { { OP_ADD, 0 }, { OP_SUB, 0 },    { OP_OR, 0 },  { OP_XOR, 0 }, { OP_SHL, 0 },
                 { OP_SHR, 0 }, { OP_MUL_LO, 1 }, { OP_DIV, 1 }, { OP_AND, -1 } };
    val result;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        val operands[MAX_VECTOR] = { x, imm(U32, same[i].with) };
        assert_true(ptx_fold(same[i].op, U32, operands, &result));
        assert_int_equal(result.kind, VAL_REG);
        assert_int_equal(result.id, 9);
        operands[1] = imm(U32, 77);
        assert_false(ptx_fold(same[i].op, U32, operands, &result));
    }
    static const op zero[] = { OP_MUL_LO, OP_AND, OP_MUL_WIDE };
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) {
        val operands[MAX_VECTOR] = { x, imm(U32, 0) };
        assert_true(ptx_fold(zero[i], U32, operands, &result));
        assert_int_equal(result.kind, VAL_IMM);
        assert_int_equal(result.bits, 0);
        assert_int_equal(result.type, zero[i] == OP_MUL_WIDE ? U64 : U32);
    }
}

static void multiply_add_folds_its_known_part(void **state)
{
    (void)state;
    const val x = { .kind = VAL_REG, .type = U32, .id = 9 };
    const val sum = { .kind = VAL_REG, .type = U64, .id = 10 };
    val result;
    val zero[MAX_VECTOR] = { x, imm(U32, 0), sum };
    assert_true(ptx_fold(OP_MAD_WIDE, U32, zero, &result));
    assert_int_equal(result.id, 10);
    val all[MAX_VECTOR] = { imm(U32, 0xffffffff), imm(U32, 2), imm(U64, 3) };
    assert_true(ptx_fold(OP_MAD_WIDE, U32, all, &result));
    assert_true(result.bits == 0x200000001);
    val open[MAX_VECTOR] = { imm(U32, 6), imm(U32, 2), sum };
    assert_false(ptx_fold(OP_MAD_WIDE, U32, open, &result));
}

static void predicates_and_selection_fold(void **state)
{
    (void)state;
    const val p = { .kind = VAL_REG, .type = PRED, .id = 3 };
    const val yes = { .kind = VAL_IMM, .type = PRED, .bits = 1 },
              no = { .kind = VAL_IMM, .type = PRED };
    val result;
    val operands[MAX_VECTOR] = { p, yes };
    assert_true(ptx_fold(OP_AND, PRED, operands, &result) && result.id == 3);
    assert_true(ptx_fold(OP_OR, PRED, operands, &result) && result.bits == 1);
    operands[1] = no;
    assert_true(ptx_fold(OP_AND, PRED, operands, &result) && result.kind == VAL_IMM &&
                !result.bits);
    assert_true(ptx_fold(OP_OR, PRED, operands, &result) && result.id == 3);
    operands[0] = no;
    assert_true(ptx_fold(OP_NOT, PRED, operands, &result) && result.bits == 1);
    val choice[MAX_VECTOR] = { imm(U32, 5), imm(U32, 6), yes };
    assert_true(ptx_fold(OP_SELP, U32, choice, &result) && result.bits == 5);
    choice[2] = p;
    assert_false(ptx_fold(OP_SELP, U32, choice, &result));
    choice[1] = choice[0];
    assert_true(ptx_fold(OP_SELP, U32, choice, &result) && result.bits == 5);
}

static void floats_fold_only_where_that_is_exact(void **state)
{
    (void)state;
    const val x = { .kind = VAL_REG, .type = F32, .id = 4 };
    val result;
    val operands[MAX_VECTOR] = { x, val_of_f32(1.0f) };
    assert_true(ptx_fold(OP_MUL, F32, operands, &result) && result.id == 4);
    operands[1] = val_of_f32(0.0f); /* x may be NaN, infinite or negative */
    assert_false(ptx_fold(OP_MUL, F32, operands, &result));
    assert_false(ptx_fold(OP_ADD, F32, operands, &result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsigned_arithmetic_wraps),
        cmocka_unit_test(signed_arithmetic_keeps_its_sign),
        cmocka_unit_test(comparisons_follow_the_sign),
        cmocka_unit_test(known_operands_fold),
        cmocka_unit_test(division_by_zero_is_left_to_the_gpu),
        cmocka_unit_test(identities_give_the_operand_back),
        cmocka_unit_test(multiply_add_folds_its_known_part),
        cmocka_unit_test(predicates_and_selection_fold),
        cmocka_unit_test(floats_fold_only_where_that_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
