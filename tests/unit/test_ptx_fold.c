/* Constant folding must agree with the GPU's arithmetic: every operation on edge values, against C.
 */
#include "test.h"
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

/* Folds op on two immediates. Returns false if it is left to the GPU. */
static bool folds(ptx_op o, type t, uint64_t a, uint64_t b, val *result)
{
    val operands[2] = { imm(t, (long long)a), imm(t, (long long)b) };
    if (o == INST_SHL || o == INST_SHR)
        operands[1] = imm(U32, (long long)(uint32_t)b);
    return ptx_fold(o, t, operands, 2, result);
}

static void expect(ptx_op o, type t, uint64_t a, uint64_t b, uint64_t expected)
{
    val result;
    if (!folds(o, t, a, b, &result))
        return;
    uint64_t wanted = result.type == PRED ? expected : imm(result.type, (long long)expected).bits;
    if (result.bits != wanted)
        fail_msg("%s.%s of 0x%llx and 0x%llx: 0x%llx, expected 0x%llx", op_name(o),
                 type_table[t].name, (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)result.bits, (unsigned long long)wanted);
}

TEST(unsigned_arithmetic_wraps)
{
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            uint32_t a = (uint32_t)edges[i], b = (uint32_t)edges[j];
            expect(INST_ADD, U32, a, b, a + b);
            expect(INST_SUB, U32, a, b, a - b);
            expect(INST_MUL_LO, U32, a, b, (uint64_t)a * b);
            expect(INST_MUL_WIDE, U32, a, b, (uint64_t)a * b);
            expect(INST_DIV, U32, a, b, b ? a / b : 0);
            expect(INST_REM, U32, a, b, b ? a % b : 0);
            expect(INST_MIN, U32, a, b, a < b ? a : b);
            expect(INST_MAX, U32, a, b, a > b ? a : b);
            expect(INST_AND, U32, a, b, a & b);
            expect(INST_OR, U32, a, b, a | b);
            expect(INST_XOR, U32, a, b, a ^ b);
            expect(INST_SHL, U32, a, b, b < 32 ? a << b : 0);
            expect(INST_SHR, U32, a, b, b < 32 ? a >> b : 0);
            expect(INST_ADD, U64, edges[i], edges[j], edges[i] + edges[j]);
            expect(INST_MUL_LO, U64, edges[i], edges[j], edges[i] * edges[j]);
            expect(INST_SHL, U64, edges[i], b, b < 64 ? edges[i] << b : 0);
            expect(INST_SHR, U64, edges[i], b, b < 64 ? edges[i] >> b : 0);
        }
}

TEST(signed_arithmetic_keeps_its_sign)
{
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            int32_t a = (int32_t)(uint32_t)edges[i], b = (int32_t)(uint32_t)edges[j];
            uint32_t x = (uint32_t)a, y = (uint32_t)b;
            expect(INST_ADD, S32, x, y, x + y);
            expect(INST_SUB, S32, x, y, x - y);
            expect(INST_MUL_LO, S32, x, y, x * y);
            expect(INST_MUL_WIDE, S32, x, y, (uint64_t)((int64_t)a * b));
            expect(INST_MIN, S32, x, y, (uint32_t)(a < b ? a : b));
            expect(INST_MAX, S32, x, y, (uint32_t)(a > b ? a : b));
        }
}

TEST(comparisons_follow_the_sign)
{
    for (int i = 0; i < EDGES; i++)
        for (int j = 0; j < EDGES; j++) {
            uint32_t a = (uint32_t)edges[i], b = (uint32_t)edges[j];
            int32_t x = (int32_t)a, y = (int32_t)b;
            expect(INST_SETP_EQ, U32, a, b, a == b);
            expect(INST_SETP_NE, U32, a, b, a != b);
            expect(INST_SETP_LT, U32, a, b, a < b);
            expect(INST_SETP_LE, U32, a, b, a <= b);
            expect(INST_SETP_GT, U32, a, b, a > b);
            expect(INST_SETP_GE, U32, a, b, a >= b);
            expect(INST_SETP_LT, S32, a, b, x < y);
            expect(INST_SETP_LE, S32, a, b, x <= y);
            expect(INST_SETP_GT, S32, a, b, x > y);
            expect(INST_SETP_GE, S32, a, b, x >= y);
        }
}

TEST(known_operands_fold)
{
    val result;
    static const ptx_op always[] = { INST_ADD,     INST_SUB,     INST_MUL_LO,  INST_MUL_WIDE,
                                     INST_MIN,     INST_MAX,     INST_AND,     INST_OR,
                                     INST_XOR,     INST_SHL,     INST_SHR,     INST_SETP_EQ,
                                     INST_SETP_NE, INST_SETP_LT, INST_SETP_LE, INST_SETP_GT,
                                     INST_SETP_GE };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_true(folds(always[i], U32, 12, 5, &result));
    assert_true(folds(INST_DIV, U32, 12, 5, &result));
    assert_true(folds(INST_REM, U32, 12, 5, &result));
}

TEST(division_by_zero_is_left_to_the_gpu)
{
    val result;
    assert_false(folds(INST_DIV, U32, 12, 0, &result));
    assert_false(folds(INST_REM, U32, 12, 0, &result));
}

TEST(identities_give_the_operand_back)
{
    const val x = { .kind = VAL_REG, .type = U32, .id = 9 };
    static const struct {
        ptx_op op;
        long long with;
    } same[] = { { INST_ADD, 0 },    { INST_SUB, 0 }, { INST_OR, 0 },
                 { INST_XOR, 0 },    { INST_SHL, 0 }, { INST_SHR, 0 },
                 { INST_MUL_LO, 1 }, { INST_DIV, 1 }, { INST_AND, -1 } };
    val result;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        val operands[2] = { x, imm(U32, same[i].with) };
        assert_true(ptx_fold(same[i].op, U32, operands, 2, &result));
        assert_int_equal(result.kind, VAL_REG);
        assert_int_equal(result.id, 9);
        operands[1] = imm(U32, 77);
        assert_false(ptx_fold(same[i].op, U32, operands, 2, &result));
    }
    static const ptx_op zero[] = { INST_MUL_LO, INST_AND, INST_MUL_WIDE };
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++) {
        val operands[2] = { x, imm(U32, 0) };
        assert_true(ptx_fold(zero[i], U32, operands, 2, &result));
        assert_int_equal(result.kind, VAL_IMM);
        assert_int_equal(result.bits, 0);
        assert_int_equal(result.type, zero[i] == INST_MUL_WIDE ? U64 : U32);
    }
}

TEST(multiply_add_folds_its_known_part)
{
    const val x = { .kind = VAL_REG, .type = U32, .id = 9 };
    const val sum = { .kind = VAL_REG, .type = U64, .id = 10 };
    val result;
    val zero[] = { x, imm(U32, 0), sum };
    assert_true(ptx_fold(INST_MAD_WIDE, U32, zero, 3, &result));
    assert_int_equal(result.id, 10);
    val all[] = { imm(U32, 0xffffffff), imm(U32, 2), imm(U64, 3) };
    assert_true(ptx_fold(INST_MAD_WIDE, U32, all, 3, &result));
    assert_true(result.bits == 0x200000001);
    val open[] = { imm(U32, 6), imm(U32, 2), sum };
    assert_false(ptx_fold(INST_MAD_WIDE, U32, open, 3, &result));
}

TEST(predicates_and_selection_fold)
{
    const val p = { .kind = VAL_REG, .type = PRED, .id = 3 };
    const val yes = { .kind = VAL_IMM, .type = PRED, .bits = 1 },
              no = { .kind = VAL_IMM, .type = PRED };
    val result;
    val operands[2] = { p, yes };
    assert_true(ptx_fold(INST_AND, PRED, operands, 2, &result) && result.id == 3);
    assert_true(ptx_fold(INST_OR, PRED, operands, 2, &result) && result.bits == 1);
    operands[1] = no;
    assert_true(ptx_fold(INST_AND, PRED, operands, 2, &result) && result.kind == VAL_IMM &&
                !result.bits);
    assert_true(ptx_fold(INST_OR, PRED, operands, 2, &result) && result.id == 3);
    operands[0] = no;
    assert_true(ptx_fold(INST_NOT, PRED, operands, 2, &result) && result.bits == 1);
    val choice[] = { imm(U32, 5), imm(U32, 6), yes };
    assert_true(ptx_fold(INST_SELP, U32, choice, 3, &result) && result.bits == 5);
    choice[2] = p;
    assert_false(ptx_fold(INST_SELP, U32, choice, 3, &result));
    choice[1] = choice[0];
    assert_true(ptx_fold(INST_SELP, U32, choice, 3, &result) && result.bits == 5);
}

TEST(floats_fold_only_exactly)
{
    const val x = { .kind = VAL_REG, .type = F32, .id = 4 };
    val result;
    val operands[2] = { x, val_of_f32(1.0f) };
    assert_true(ptx_fold(INST_MUL, F32, operands, 2, &result) && result.id == 4);
    operands[1] = val_of_f32(0.0f); /* x may be NaN, infinite or negative */
    assert_false(ptx_fold(INST_MUL, F32, operands, 2, &result));
    assert_false(ptx_fold(INST_ADD, F32, operands, 2, &result));
}
