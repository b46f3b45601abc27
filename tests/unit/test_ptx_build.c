/* The builder: inferred types, numbers, folding, variables, control flow, printing. */
#include <string.h>

#include "test.h"
#include "expect_ptxas.h"
#include "ptx/ptx.h"

typedef struct fixture {
    arena *arena;
    ptx *p;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.arena = arena_new();
    f.p = ptx_new(f.arena, "kernel", target_find("sm_80"), 64);
    ptx_param(f.p, U64, "out");
    ptx_param(f.p, U32, "n");
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    arena_free(((fixture *)*state)->arena);
    return 0;
}

/* Returns the text of the kernel. Fails the test if the verifier rejects it. */
static const char *text_of(fixture *f)
{
    ptx_output out;
    const char *error = NULL;
    if (!ptx_finish(f->p, f->arena, &out, &error))
        fail_msg("the kernel was refused: %s", error);
    return out.text;
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("'%s' is missing in\n%s", line, text);
}

static void assert_lacks(const char *text, const char *line)
{
    if (strstr(text, line))
        fail_msg("'%s' is unexpected in\n%s", line, text);
}

static void keep(ptx *p, type t, val v)
{
    st_global(p, t, parameter(p, "out"), 0, v);
}

#define BUILD_TEST(name) TEST_OF(name, set_up, tear_down, fixture *f)

BUILD_TEST(instructions_take_the_types_of_their_operands)
{
    val n = parameter(f->p, "n");
    val wide = mad_wide(f->p, n, 36, parameter(f->p, "out"));
    st_global(f->p, U32, wide, 0, add(f->p, n, 1));
    st_global(f->p, S32, wide, 4, max(f->p, as(f->p, S32, n), -1));
    st_global(f->p, F32, wide, 8, fma(f->p, convert(f->p, F32, n), 2.0f, 1.0f));
    const char *text = text_of(f);
    assert_has(text, "mad.wide.u32        %rd2, %r1, 36, %rd1;");
    assert_has(text, "add.u32             %r2, %r1, 1;");
    assert_has(text, "max.s32             %r3, %r1, -1;");
    assert_has(text, "cvt.rn.f32.u32      %f1, %r1;");
    assert_has(text, "fma.rn.f32          %f2, %f1, 0f40000000, 0f3F800000;");
    assert_has(text, "st.global.f32       [%rd2+8], %f2;");
}

BUILD_TEST(constants_fold_while_building)
{
    val folded = mul(f->p, add(f->p, imm(U32, 6), 1), 6);
    assert_int_equal(folded.kind, VAL_IMM);
    assert_int_equal(folded.bits, 42);
    val n = parameter(f->p, "n");
    assert_int_equal(add(f->p, n, 0).id, n.id);
    assert_int_equal(mul(f->p, n, 1).id, n.id);
    assert_int_equal(mul(f->p, n, 0).kind, VAL_IMM);
    assert_int_equal(lt(f->p, imm(S32, -1), 0).bits, 1);
    assert_int_equal(lt(f->p, imm(U32, 0xffffffff), 0).bits, 0);
    assert_int_equal(mul_wide(f->p, imm(S32, -3), 5).bits, (uint64_t)-15);
    assert_int_equal(shl(f->p, imm(U32, 1), 32).bits, 0);
    assert_int_equal(select(f->p, imm(PRED, 0), imm(U32, 1), imm(U32, 2)).bits, 2);
}

BUILD_TEST(division_by_a_power_of_two_is_a_shift)
{
    val n = parameter(f->p, "n");
    keep(f->p, U32, add(f->p, div(f->p, n, 8), rem(f->p, n, 8)));
    st_global(f->p, U32, parameter(f->p, "out"), 4, div(f->p, n, 12));
    const char *text = text_of(f);
    assert_has(text, "shr.u32             %r2, %r1, 3;");
    assert_has(text, "and.b32             %r3, %r1, 7;");
    assert_has(text, "div.u32             %r5, %r1, 12;");
}

BUILD_TEST(a_copy_of_a_variable_keeps_its_value)
{
    var sum = var_f32(f->p, 1.0f);
    PTX_FOR (f->p, i, 0, parameter(f->p, "n"), 1) {
        val before = get(f->p, sum);
        assign(f->p, sum, mul(f->p, sum, 3.0f));
        keep(f->p, F32, sub(f->p, sum, before));
    }
    /* The copy must not be folded into the variable, which changes in between. */
    const char *text = text_of(f);
    assert_has(text, "mov.f32             %f2, %f1;");
    assert_has(text, "sub.rn.f32          %f3, %f1, %f2;");
}

BUILD_TEST(identities_of_a_variable_are_copies)
{
    var v = var_u32(f->p, 7);
    val same = add(f->p, v, 0);
    assert_int_equal(same.kind, VAL_REG);
    assign(f->p, v, add(f->p, v, 1));
    keep(f->p, U32, sub(f->p, v, same));
    assert_has(text_of(f), "mov.u32             %r2, %r1;");
}

BUILD_TEST(an_assignment_leaves_no_copy_behind)
{
    var acc = var_f32(f->p, 0.0f);
    PTX_FOR (f->p, i, 0, 10, 1)
        assign(f->p, acc, fma(f->p, 2.0f, acc, acc));
    st_global(f->p, F32, parameter(f->p, "out"), 0, get(f->p, acc));
    const char *text = text_of(f);
    assert_has(text, "fma.rn.f32          %f1, 0f40000000, %f1, %f1;");
    assert_has(text, "st.global.f32       [%rd1], %f1;");
}

BUILD_TEST(unused_results_are_not_printed)
{
    val n = parameter(f->p, "n");
    mul(f->p, add(f->p, n, 3), 5);
    var unread = var_u32(f->p, 1);
    assign(f->p, unread, add(f->p, unread, n));
    keep(f->p, F32, val_of_f32(1.0f));
    const char *text = text_of(f);
    assert_lacks(text, "%r1");
    assert_lacks(text, "[n]");
}

BUILD_TEST(a_variable_read_for_its_own_next_value_alone_goes)
{
    val n = parameter(f->p, "n");
    var once = var_u32(f->p, 1), twice = var_u32(f->p, 2), pair = var_u32(f->p, 3);
    PTX_FOR (f->p, i, 0, 10, 1) {
        keep(f->p, U32, i);
        assign(f->p, once, add(f->p, once, n));
        assign(f->p, twice, add(f->p, twice, pair));
        assign(f->p, twice, mul(f->p, twice, 5));
        assign(f->p, pair, add(f->p, get(f->p, twice), n));
    }
    const char *text = text_of(f);
    assert_lacks(text, "%r2");
    assert_lacks(text, "[n]");
}

BUILD_TEST(a_variable_read_before_the_loop_changes_it_stays)
{
    var step = var_u32(f->p, 1), sum = var_u32(f->p, 0);
    PTX_FOR (f->p, i, 0, 10, 1) {
        keep(f->p, U32, get(f->p, sum));
        assign(f->p, sum, add(f->p, sum, step));
        assign(f->p, step, mul(f->p, step, 5));
    }
    const char *text = text_of(f);
    assert_has(text, "add.u32             %r2, %r2, %r1;");
    assert_has(text, "mul.lo.u32          %r1, %r1, 5;");
}

BUILD_TEST(loops_that_run_once_or_never_are_no_loops)
{
    PTX_FOR (f->p, once, 0, 4, 4)
        keep(f->p, U32, add(f->p, once, 9));
    PTX_FOR (f->p, never, 4, 4, 1)
        st_global(f->p, U32, parameter(f->p, "out"), 4, never);
    const char *text = text_of(f);
    assert_has(text, "st.global.u32       [%rd1], 9;");
    assert_lacks(text, "loop");
    assert_lacks(text, "+4");
}

BUILD_TEST(code_behind_a_constant_condition_goes)
{
    PTX_IF (f->p, imm(PRED, 0)) {
        PTX_FOR (f->p, i, 0, parameter(f->p, "n"), 1)
            st_global(f->p, U32, parameter(f->p, "out"), 4, i);
    }
    keep(f->p, U32, imm(U32, 1));
    const char *text = text_of(f);
    assert_lacks(text, "bra");
    assert_lacks(text, "+4");
}

BUILD_TEST(an_else_of_a_constant_condition_stays_or_goes)
{
    PTX_IF (f->p, imm(PRED, 1))
        st_global(f->p, U32, parameter(f->p, "out"), 4, 1);
    PTX_ELSE (f->p)
        st_global(f->p, U32, parameter(f->p, "out"), 8, 1);
    PTX_IF (f->p, imm(PRED, 0))
        st_global(f->p, U32, parameter(f->p, "out"), 12, 1);
    PTX_ELSE (f->p)
        st_global(f->p, U32, parameter(f->p, "out"), 16, 1);
    const char *text = text_of(f);
    assert_has(text, "[%rd1+4], 1;\n    st.global.u32       [%rd1+16], 1;\n    ret;");
    assert_lacks(text, "$");
}

BUILD_TEST(a_condition_over_nothing_goes)
{
    val few = lt(f->p, parameter(f->p, "n"), 5);
    PTX_IF (f->p, few)
        add(f->p, parameter(f->p, "n"), 1);
    PTX_IF (f->p, few) {
    }
    keep(f->p, U32, add(f->p, parameter(f->p, "n"), 2));
    const char *text = text_of(f);
    assert_lacks(text, "$skip_2");
    assert_has(text, "add.u32             %r2, %r1, 2;");
}

BUILD_TEST(an_else_is_the_other_way)
{
    val big = gt(f->p, parameter(f->p, "n"), 5);
    PTX_IF (f->p, big)
        keep(f->p, U32, imm(U32, 1));
    PTX_ELSE (f->p)
        keep(f->p, U32, imm(U32, 2));
    const char *text = text_of(f);
    assert_has(text, "@!%p1 bra           $else;");
    assert_has(text, "bra                 $joined;\n\n$else:\n");
    assert_has(text, "[%rd1], 2;\n\n$joined:\n    ret;");
}

BUILD_TEST(labels_of_one_name_are_told_apart)
{
    for (int i = 0; i < 2; i++)
        PTX_FOR (f->p, row, 0, parameter(f->p, "n"), 1)
            keep(f->p, U32, row);
    const char *text = text_of(f);
    assert_has(text, "$row_loop:\n");
    assert_has(text, "$row_loop_2:\n");
    assert_has(text, "bra            $row_loop_2;");
}

BUILD_TEST(parameters_and_thread_numbers_are_read_once)
{
    PTX_IF (f->p, eq(f->p, lane_id(f->p), 0))
        keep(f->p, U32, parameter(f->p, "n"));
    st_global(f->p, U32, parameter(f->p, "out"), 4, add(f->p, lane_id(f->p), parameter(f->p, "n")));
    const char *text = text_of(f);
    const char *first = strstr(text, "%tid.x");
    assert_non_null(first);
    assert_null(strstr(first + 1, "%tid.x"));
    first = strstr(text, "[n]");
    assert_null(strstr(first + 1, "[n]"));
}

BUILD_TEST(the_version_is_the_lowest_that_has_everything)
{
    ptx *p = ptx_new(f->arena, "old", target_find("sm_75"), 32);
    ptx_param(p, U64, "out");
    st_global(p, U32, parameter(p, "out"), 0, imm(U32, 1));
    ptx_output out;
    const char *error;
    assert_true(ptx_finish(p, f->arena, &out, &error));
    assert_int_equal(out.isa, 63);
    assert_has(out.text, ".version 6.3\n.target sm_75\n");

    p = ptx_new(f->arena, "new", target_find("sm_120"), 32);
    ptx_param(p, U64, "out");
    st_global(p, U32, parameter(p, "out"), 0, imm(U32, 1));
    assert_true(ptx_finish(p, f->arena, &out, &error));
    assert_has(out.text, ".version 8.7\n.target sm_120\n");
}

BUILD_TEST(f16_moves_and_loads_are_printed_as_b16)
{
    val h = ld_const(f->p, F16, parameter(f->p, "out"), 2);
    var v = var_like(f->p, h);
    st_global(f->p, F16, parameter(f->p, "out"), 0, v);
    st_global(f->p, F32, parameter(f->p, "out"), 4, convert(f->p, F32, h));
    const char *text = text_of(f);
    assert_has(text, "ld.global.nc.b16    %h1, [%rd1+2];");
    assert_has(text, "st.global.b16       [%rd1], %h");
    assert_has(text, "cvt.f32.f16         %f1, %h1;");
}

BUILD_TEST(shared_arrays_are_addressed_by_their_name)
{
    val array = shared_array(f->p, "tile", F32, 64);
    st_shared(f->p, F32, array, 4, 1.0f);
    st_shared(f->p, F32, mad(f->p, tid_x(f->p), 4, array), 0, 1.0f);
    const char *text = text_of(f);
    assert_has(text, ".shared .align 16 .b32 tile[64];");
    assert_has(text, "st.shared.f32       [tile+4], 0f3F800000;");
    assert_has(text, "mov.u32             %r2, tile;");
}

BUILD_TEST(a_shared_array_of_the_launch_s_size_stands_ahead_of_the_kernel)
{
    val array = shared_dynamic(f->p, "tile", F32);
    st_shared(f->p, F32, array, 4000, 1.0f);
    ptx_output out;
    const char *error = "";
    if (!ptx_finish(f->p, f->arena, &out, &error))
        fail_msg("the kernel was refused: %s", error);
    assert_has(out.text, ".address_size 64\n\n.extern .shared .align 16 .b32 tile[];\n\n.visible");
    assert_has(out.text, "st.shared.f32       [tile+4000], 0f3F800000;");
    assert_lacks(out.text, "    .shared");
    assert_int_equal(out.shared_bytes, 0);
}

BUILD_TEST(arrays_of_the_module_have_their_words)
{
    static const uint64_t words[] = { 1, 0xfedcba9876543210, 3, 4, 5, 6 };
    static const char *const comment[] = { "Six words", "and a notice", NULL };
    val array = global_array(f->p, "table", comment, words, 6);
    keep(f->p, U32, ld_const(f->p, U32, array, 8));
    keep(f->p, U32, ld_const(f->p, U32, global_array(f->p, "table", comment, words, 6), 12));
    const char *text = text_of(f);
    assert_has(text, ".address_size 64\n\n// Six words\n// and a notice\n"
                     ".global .align 16 .b64 table[6] = {\n    0x0000000000000001, "
                     "0xfedcba9876543210, 0x0000000000000003, 0x0000000000000004, "
                     "0x0000000000000005,\n    0x0000000000000006\n};\n\n.visible");
    assert_has(text, "mov.u64             %rd2, table;");
    assert_has(text, "[%rd2+8]");
    assert_has(text, "[%rd2+12]");
}

BUILD_TEST(launch_bounds_are_printed)
{
    ptx_max_registers(f->p, 64);
    keep(f->p, U32, imm(U32, 1));
    const char *text = text_of(f);
    assert_has(text, ".reqntid 64, 1, 1\n.maxnreg 64\n{");
}

static val4 accumulators(ptx *p, const var *acc)
{
    return (val4){ { get(p, acc[0]), get(p, acc[1]), get(p, acc[2]), get(p, acc[3]) } };
}

/* Builds a product of eight tiles of A and B on tensor cores. The sums stay in their registers. */
static void build_matrix_product(ptx *p)
{
    var acc[4];
    for (int i = 0; i < 4; i++)
        acc[i] = var_f32(p, 0.0f);
    val tile = shared_array(p, "tile", U32, 256);
    st_shared(p, U32, mad(p, tid_x(p), 16, tile), 0, parameter(p, "n"));
    barrier(p);
    PTX_FOR (p, step, 0, 8, 1) {
        val4 a = ldmatrix_x4(p, mad(p, lane_id(p), 16, tile), 512);
        val2 b = { { ld_shared(p, U32, tile, 4), as(p, S32, step) } };
        val4 d = mma_m16n8k16_f16(p, a, b, accumulators(p, acc));
        for (int i = 0; i < 4; i++)
            assign(p, acc[i], d.v[i]);
    }
    st_global_v4(p, F32, parameter(p, "out"), 0, accumulators(p, acc));
}

BUILD_TEST(groups_of_operands_are_printed_in_braces)
{
    build_matrix_product(f->p);
    const char *text = text_of(f);
    assert_has(text, ".version 7.0\n.target sm_80\n");
    assert_has(text, "    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, "
                     "[%r8+512];\n");
    assert_has(text, "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
                     "{%r9, %r10, %r11, %r12}, {%r13, %r6}, {%f1, %f2, %f3, %f4};\n");
    assert_lacks(text, "mov.f32             %f1, %f");
    assert_has(text, "st.global.v4.f32    [%rd1], {%f1, %f2, %f3, %f4};\n");
}

static void add_all(ptx *p, val *sum, const val *values, unsigned count)
{
    for (unsigned n = 0; n < count; n++)
        *sum = add(p, *sum, bits_as(p, U32, values[n]));
}

BUILD_TEST(pairs_of_halves_are_computed_with_numbers_in_registers)
{
    ptx *p = f->p;
    val n = parameter(p, "n"), one = imm(U32, 0x3c003c00);
    val pair = fma_pair(p, add_pair(p, n, one), n, mul_pair(p, n, n));
    val x = convert(p, F32, n);
    st_global(p, U32, parameter(p, "out"), 0, pair);
    st_global(p, U32, parameter(p, "out"), 4, pack_halves(p, x, mul(p, x, 2.0f)));
    const char *text = text_of(f);
    static const char *const lines[] = {
        "    mov.u32             %r2, 1006648320;\n"
        "    add.rn.f16x2        %r3, %r1, %r2;\n"
        "    mul.rn.f16x2        %r4, %r1, %r1;\n"
        "    fma.rn.f16x2        %r5, %r3, %r1, %r4;\n",
        "    cvt.rn.f16x2.f32    %r6, %f2, %f1;\n", /* the high half comes first */
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_has(text, lines[i]);
}

/* Builds every tensor-core instruction and every way to load its operands. */
static void build_tensor_instructions(ptx *p)
{
    val n = parameter(p, "n"), from = parameter(p, "out"), zero = val_of_f32(0.0f);
    val tile = shared_array(p, "tile", U32, 256), row = mad(p, lane_id(p), 16, tile);
    cp_async_cg(p, tile, 16, from, -16);
    cp_async_cg(p, row, 512, from, 32);
    cp_async_commit(p);
    cp_async_cg_fill(p, row, 0, from, 0, n);
    cp_async_cg_fill(p, tile, 16, from, 16, 12);
    cp_async_commit(p);
    cp_async_wait(p, 1);
    cp_async_wait_all(p);
    barrier(p);
    val4 a = ldmatrix_x4(p, row, 0), wide = ldmatrix_x4_trans(p, row, 512);
    val2 b = ldmatrix_x2(p, row, 16), narrow = ldmatrix_x2_trans(p, row, 32);
    val word = ldmatrix_x1(p, row, 48), other = ldmatrix_x1_trans(p, row, 64);
    val4 c = { { zero, zero, zero, zero } };
    val4 d = mma_m16n8k16_f16(p, a, b, c);
    val4 counts = { { imm(S32, 0), imm(S32, 0), imm(S32, 0), imm(S32, 0) } };
    val has_sign[4];
    for (int i = 0; i < 4; i++)
        has_sign[i] = as(p, S32, wide.v[i]);
    for (unsigned depth = 16; depth <= 32; depth += 16) {
        counts = ptx_mma_bytes(p, wide.v, b.v, depth, counts);
        counts = ptx_mma_bytes(p, has_sign, b.v, depth, counts);
    }
    d = mma_m16n8k8_tf32(p, a, b, d);
    st_shared_v2(p, F32, row, 8, ((val2){ { d.v[0], d.v[1] } }));
    val sum = add(p, n, add(p, word, other));
    add_all(p, &sum, d.v, 4);
    add_all(p, &sum, counts.v, 4);
    add_all(p, &sum, narrow.v, 2);
    st_global(p, U32, from, 0, sum);
}

BUILD_TEST(tensor_instructions_are_printed)
{
    build_tensor_instructions(f->p);
    const char *text = text_of(f);
    static const char *const lines[] = {
        "    cp.async.cg.shared.global [tile+16], [%rd1+-16], 16;\n",
        "    cp.async.cg.shared.global [%r5+512], [%rd1+32], 16;\n    cp.async.commit_group;\n",
        "    cp.async.cg.shared.global [%r5], [%rd1], 16, %r1;\n",
        "    cp.async.cg.shared.global [tile+16], [%rd1+16], 16, 12;\n",
        "    cp.async.wait_group 1;\n    cp.async.wait_all;\n",
        "    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {",
        "    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {",
        "    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {",
        "    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {",
        "    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {",
        "}, [%r5+48];\n",
        "    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {",
        "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {",
        "}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};\n",
        "    mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {",
        "    mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {",
        "    mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {",
        "    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {",
        "    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {",
        "    st.shared.v2.f32    [%r5+8], {%f",
    };
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++)
        assert_has(text, lines[n]);
}

static void expect_ptxas_to_take_it(fixture *f)
{
    ptx_output out;
    const char *error = NULL;
    assert_true(ptx_finish(f->p, f->arena, &out, &error));
    if (!expect_ptxas_to_take(out.text, "sm_80"))
        skip();
}

BUILD_TEST(ptxas_takes_instructions_with_groups)
{
    build_matrix_product(f->p);
    expect_ptxas_to_take_it(f);
}

BUILD_TEST(ptxas_takes_tensor_instructions)
{
    build_tensor_instructions(f->p);
    expect_ptxas_to_take_it(f);
}

BUILD_TEST(a_group_stays_where_one_of_its_results_is_used)
{
    val n = parameter(f->p, "n"), zero = val_of_f32(0.0f);
    val4 a = { { n, n, n, n } }, c = { { zero, zero, zero, zero } };
    val2 b = { { n, n } };
    mma_m16n8k16_f16(f->p, a, b, c);
    keep(f->p, F32, mma_m16n8k16_f16(f->p, a, b, c).v[2]);
    const char *text = text_of(f), *first = strstr(text, "mma.sync");
    assert_non_null(first);
    assert_null(strstr(first + 1, "mma.sync"));
    assert_has(text, "{%r1, %r1}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};");
    assert_has(text, "st.global.f32       [%rd1], %f3;");
}

BUILD_TEST(a_phase_is_a_line_ahead_of_what_follows)
{
    val n = parameter(f->p, "n");
    phase(f->p, "double");
    keep(f->p, U32, add(f->p, n, n));
    phase(f->p, "treble");
    keep(f->p, U32, mul(f->p, n, 3));
    const char *text = text_of(f);
    const char *doubled = strstr(text, "\n\n    // double\n    add.u32");
    assert_non_null(doubled);
    const char *stored = strstr(doubled, "st.global");
    assert_non_null(stored);
    assert_ptr_equal(strstr(stored, "\n\n"), strstr(text, "\n\n    // treble\n    mul.lo.u32"));
}
