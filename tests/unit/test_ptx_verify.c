/* The verifier of kernels under construction: it rejects each kind of mistake and accepts correct
 * kernels. */
#include <string.h>

#include "test_arena.h"
#include "gen/common/walk.h"
#include "input/spec.h"
#include "ptx/ir.h"
#include "templates/templates.h"

/* Builds a kernel with a parameter `out` for an architecture and block size. Returns the verifier's
 * message, NULL if the kernel passes. */
static const char *verdict_for(arena *a, const char *architecture, unsigned block,
                               void (*build)(ptx *p))
{
    ptx *p = ptx_new(a, "kernel", target_find(architecture), block);
    ptx_param(p, U64, "out");
    ptx_param(p, U32, "n");
    build(p);
    ptx_output out;
    const char *error = NULL;
    return ptx_finish(p, a, &out, &error) ? NULL : error;
}

static const char *verdict(arena *a, unsigned block, void (*build)(ptx *p))
{
    return verdict_for(a, "sm_80", block, build);
}

static void refuses(unsigned block, void (*build)(ptx *p), const char *why)
{
    arena *a = arena_new();
    const char *error = verdict(a, block, build);
    if (!error)
        fail_msg("accepted; expected the error: %s", why);
    if (!strstr(error, why))
        fail_msg("refused with '%s', expected '%s'", error, why);
    arena_free(a);
}

static void accepts(unsigned block, void (*build)(ptx *p))
{
    arena *a = arena_new();
    const char *error = verdict(a, block, build);
    if (error)
        fail_msg("refused: %s", error);
    arena_free(a);
}

static void store(ptx *p, val v)
{
    st_global(p, v.type, parameter(p, "out"), 0, v);
}

/* Defines a function that adds one statement to a kernel. */
#define KERNEL_OF(name, statement) \
    static void name(ptx *p)       \
    {                              \
        statement;                 \
    }

static void walks_along_too_much(ptx *p)
{
    walk w = { .cursor_count = MAX_CURSORS };
    store(p, get(p, walk_along(p, &w, tid_x(p), 4)));
}

KERNEL_OF(mixed_types, store(p, add(p, parameter(p, "n"), convert(p, F32, tid_x(p)))))
KERNEL_OF(number_too_large, store(p, add(p, tid_x(p), 0x100000000)))
KERNEL_OF(unknown_parameter, store(p, parameter(p, "m")))
KERNEL_OF(narrow_address, st_global(p, U32, tid_x(p), 0, 1))
KERNEL_OF(odd_offset, store(p, ld_const_v4(p, F32, parameter(p, "out"), 8).v[0]))

TEST(type_mistakes_are_refused)
{
    refuses(32, walks_along_too_much, "a walk has more than 6 cursors");
    refuses(32, mixed_types, "an operand is f32, expected u32");
    refuses(32, number_too_large, "is out of range for u32");
    refuses(32, unknown_parameter, "unknown parameter 'm'");
    refuses(32, narrow_address, "the address has type u32");
    refuses(32, odd_offset, "the offset 8 is not a multiple of the 16 bytes accessed");
}

/* Trap 14: a register that one path defines and another path uses. */
static void defined_on_one_path(ptx *p)
{
    val v = { 0 };
    PTX_IF (p, gt(p, parameter(p, "n"), 4))
        v = mul(p, tid_x(p), 3);
    store(p, v);
}

static void defined_before_a_loop(ptx *p)
{
    var v = var_u32(p, 0);
    PTX_FOR (p, i, 0, parameter(p, "n"), 1)
        assign(p, v, add(p, v, i));
    store(p, get(p, v));
}

static void defined_on_both_paths(ptx *p)
{
    var v = { .storage = var_u32(p, 1).storage };
    PTX_IF (p, gt(p, parameter(p, "n"), 4))
        assign(p, v, imm(U32, 2));
    PTX_ELSE (p)
        assign(p, v, imm(U32, 3));
    store(p, get(p, v));
}

static void defined_in_a_loop_that_may_not_run(ptx *p)
{
    val v = { 0 };
    PTX_FOR (p, i, 0, parameter(p, "n"), 1)
        v = add(p, i, 7);
    store(p, v);
}

static void defined_after_a_return(ptx *p)
{
    val v = { 0 };
    PTX_IF (p, gt(p, parameter(p, "n"), 4)) {
        store(p, tid_x(p));
        ret(p);
        v = mul(p, tid_x(p), 3);
        store(p, v);
    }
    store(p, add(p, tid_x(p), v));
}

TEST(registers_are_defined_on_every_path)
{
    refuses(32, defined_on_one_path, "not defined on every path");
    refuses(32, defined_in_a_loop_that_may_not_run, "not defined on every path");
    refuses(32, defined_after_a_return, "not defined on every path");
    accepts(32, defined_before_a_loop);
    accepts(32, defined_on_both_paths);
}

static void past_a_shared_array(ptx *p)
{
    val array = shared_array(p, "tile", F32, 4);
    st_shared(p, F32, add(p, array, 8), 8, 1.0f);
}

KERNEL_OF(ahead_of_a_shared_array, st_shared(p, F32, shared_array(p, "tile", F32, 4), -4, 1.0f))
KERNEL_OF(inside_a_shared_array,
          st_shared(p, F32, add(p, shared_array(p, "tile", F32, 4), 8), 4, 1.0f))

static void misaligned_in_a_shared_array(ptx *p)
{
    val array = shared_array(p, "tile", F32, 16);
    store(p, ld_shared_v4(p, F32, add(p, array, 4), 16).v[0]);
}

TEST(constant_shared_addresses_stay_inside_their_array)
{
    refuses(32, past_a_shared_array, "accesses bytes 16 to 19 of shared array tile, which has 16");
    refuses(32, ahead_of_a_shared_array, "accesses bytes -4 to -1");
    refuses(32, misaligned_in_a_shared_array, "not aligned to 16");
    accepts(32, inside_a_shared_array);
}

static void barrier_for_one_warp(ptx *p)
{
    PTX_IF (p, eq(p, warp_id(p), 0))
        barrier(p);
}

static void barrier_for_some_lanes(ptx *p)
{
    PTX_IF (p, lt(p, tid_x(p), 5))
        barrier(p);
}

/* Trap 3: warps without results return before a barrier. */
static void return_before_a_barrier(ptx *p)
{
    ret_if(p, ge(p, warp_id(p), parameter(p, "n")));
    barrier(p);
}

static void barrier_in_an_uneven_loop(ptx *p)
{
    PTX_FOR (p, i, warp_id(p), parameter(p, "n"), 2)
        barrier(p);
}

static void barrier_by_a_value_changed_unevenly(ptx *p)
{
    var turns = var_u32(p, 0);
    PTX_IF (p, lt(p, tid_x(p), 7))
        assign(p, turns, imm(U32, 1));
    PTX_IF (p, eq(p, turns, 0))
        barrier(p);
}

/* The value is uniform in the first iteration and differs between threads in the second. */
static void barrier_by_a_value_of_the_preceding_iteration(ptx *p)
{
    var before = var_u32(p, 0);
    PTX_FOR (p, i, 0, parameter(p, "n"), 1) {
        PTX_IF (p, eq(p, add(p, before, 1), 7))
            barrier(p);
        assign(p, before, tid_x(p));
    }
}

static void barrier_by_a_condition_of_the_preceding_iteration(ptx *p)
{
    var before = ptx_var(p, PRED, eq(p, parameter(p, "n"), 1));
    PTX_FOR (p, i, 0, parameter(p, "n"), 1) {
        PTX_IF (p, V(before))
            barrier(p);
        assign(p, before, eq(p, tid_x(p), 7));
    }
}

static void barrier_by_a_load_of_each_thread(ptx *p)
{
    val mine = ld_global(p, U32, mad_wide(p, tid_x(p), 4, parameter(p, "out")), 0);
    PTX_IF (p, eq(p, mine, 0))
        barrier(p);
}

static void barrier_for_all(ptx *p)
{
    PTX_IF (p, gt(p, parameter(p, "n"), 5))
        barrier(p);
    PTX_FOR (p, i, ctaid_x(p), parameter(p, "n"), 2)
        barrier(p);
    val common = ld_global(p, U32, parameter(p, "out"), 0);
    PTX_IF (p, eq(p, common, 0))
        barrier(p);
    PTX_IF (p, lt(p, tid_x(p), 7))
        store(p, common);
    barrier(p);
}

TEST(barriers_are_reached_by_all_threads)
{
    refuses(64, barrier_for_one_warp, "is a barrier that not all threads of the block reach");
    refuses(64, barrier_for_some_lanes, "is a barrier that not all threads of the block reach");
    refuses(64, return_before_a_barrier, "is a barrier");
    refuses(64, barrier_in_an_uneven_loop, "is a barrier");
    refuses(64, barrier_by_a_value_changed_unevenly, "is a barrier");
    refuses(64, barrier_by_a_value_of_the_preceding_iteration, "is a barrier");
    refuses(64, barrier_by_a_condition_of_the_preceding_iteration, "is a barrier");
    refuses(64, barrier_by_a_load_of_each_thread, "is a barrier");
    accepts(64, barrier_for_all);
    accepts(32, barrier_for_one_warp);
}

static void shuffle_for_some_lanes(ptx *p)
{
    PTX_IF (p, lt(p, lane_id(p), 5))
        store(p, shuffle_xor(p, lane_id(p), 1));
}

static void shuffle_by_the_lane_register(ptx *p)
{
    PTX_IF (p, eq(p, ptx_special_register(p, SPECIAL_LANEID), 0))
        store(p, shuffle_xor(p, lane_id(p), 1));
}

static void shuffle_in_an_uneven_loop(ptx *p)
{
    PTX_FOR (p, i, lane_id(p), parameter(p, "n"), 32)
        store(p, shuffle_xor(p, i, 1));
}

static void shuffle_for_one_warp(ptx *p)
{
    PTX_IF (p, eq(p, warp_id(p), 1))
        store(p, shuffle_xor(p, lane_id(p), 1));
}

static void shuffle_by_another_lanes_word(ptx *p)
{
    val first = shuffle_from(p, lane_id(p), 0);
    PTX_IF (p, eq(p, first, 0))
        store(p, shuffle_xor(p, lane_id(p), 1));
}

TEST(shuffles_are_reached_by_all_lanes)
{
    refuses(64, shuffle_for_some_lanes, "needs all lanes of the warp, but not all reach it");
    refuses(64, shuffle_by_the_lane_register, "needs all lanes of the warp");
    refuses(64, shuffle_in_an_uneven_loop, "needs all lanes of the warp");
    accepts(64, shuffle_for_one_warp);
    accepts(64, shuffle_by_another_lanes_word);
}

/* Adds a matrix product whose operand words are the lane's index. */
static val4 product(ptx *p, val sum)
{
    val w = lane_id(p), zero = val_of_f32(0.0f);
    return mma_m16n8k16_f16(p, (val4){ { w, w, w, w } }, (val2){ { w, w } },
                            (val4){ { zero, zero, zero, sum } });
}

static void product_for_all(ptx *p)
{
    PTX_IF (p, eq(p, warp_id(p), 1))
        store(p, product(p, val_of_f32(1.0f)).v[0]);
}

static void product_for_some_lanes(ptx *p)
{
    PTX_IF (p, lt(p, lane_id(p), 5))
        store(p, product(p, val_of_f32(1.0f)).v[0]);
}

/* All lanes have the same operands. */
static void barrier_by_a_product(ptx *p)
{
    val n = parameter(p, "n"), one = val_of_f32(1.0f);
    val4 d = mma_m16n8k16_f16(p, (val4){ { n, n, n, n } }, (val2){ { n, n } },
                              (val4){ { one, one, one, one } });
    PTX_IF (p, gt(p, d.v[3], 0.0f))
        barrier(p);
}

static void product_of_floats(ptx *p)
{
    val w = lane_id(p), x = convert(p, F32, w);
    store(p, mma_m16n8k16_f16(p, (val4){ { w, w, w, w } }, (val2){ { w, x } },
                              (val4){ { x, x, x, x } })
                 .v[0]);
}

KERNEL_OF(product_added_to_words, store(p, product(p, lane_id(p)).v[0]))

static void product_added_to_a_sum_of_one_path(ptx *p)
{
    val sum = { 0 };
    PTX_IF (p, gt(p, parameter(p, "n"), 4))
        sum = convert(p, F32, tid_x(p));
    store(p, product(p, sum).v[1]);
}

KERNEL_OF(matrices_past_a_shared_array,
          store(p, ldmatrix_x4(p, shared_array(p, "tile", U32, 64), 256).v[0]))
KERNEL_OF(misaligned_matrices,
          store(p, ldmatrix_x4(p, add(p, shared_array(p, "tile", U32, 64), 8), 16).v[0]))
KERNEL_OF(matrices_in_global_memory, store(p, ldmatrix_x4(p, parameter(p, "out"), 0).v[0]))
KERNEL_OF(row_past_a_shared_array, store(p, ldmatrix_x1(p, shared_array(p, "tile", U32, 64), 256)))
KERNEL_OF(misaligned_row, store(p, ldmatrix_x2_trans(p, shared_array(p, "tile", U32, 64), 8).v[0]))

static void row_for_some_lanes(ptx *p)
{
    val tile = shared_array(p, "tile", U32, 64);
    PTX_IF (p, lt(p, lane_id(p), 5))
        store(p, ldmatrix_x1(p, tile, 0));
}

KERNEL_OF(copy_past_a_shared_array,
          cp_async_cg(p, shared_array(p, "tile", U32, 64), 256, parameter(p, "out"), 0))

static void copy_inside_a_shared_array(ptx *p)
{
    cp_async_cg(p, shared_array(p, "tile", U32, 64), 240, parameter(p, "out"), 0);
    cp_async_commit(p);
    cp_async_wait(p, 0);
}

KERNEL_OF(copy_to_a_misaligned_place,
          cp_async_cg(p, add(p, shared_array(p, "tile", U32, 64), 4), 0, parameter(p, "out"), 0))
KERNEL_OF(copy_from_a_misaligned_place,
          cp_async_cg(p, shared_array(p, "tile", U32, 64), 0, parameter(p, "out"), 4))

static void copy_from_shared_memory(ptx *p)
{
    val tile = shared_array(p, "tile", U32, 64);
    cp_async_cg(p, tile, 0, tile, 0);
}

KERNEL_OF(copy_to_global_memory, cp_async_cg(p, parameter(p, "out"), 0, parameter(p, "out"), 0))
KERNEL_OF(copy_of_a_half_present, cp_async_cg_fill(p, shared_array(p, "tile", U32, 64), 0,
                                                   parameter(p, "out"), 0, val_of_f32(2.0f)))

TEST(copies_are_checked)
{
    accepts(32, copy_inside_a_shared_array);
    refuses(32, copy_past_a_shared_array, "accesses bytes 256 to 271 of shared array tile");
    refuses(32, copy_to_a_misaligned_place, "byte 4 of shared array tile is not aligned to 16");
    refuses(32, copy_from_a_misaligned_place, "the offset 4 is not a multiple of the 16 bytes");
    refuses(32, copy_from_shared_memory, "an operand is u32, expected u64");
    refuses(32, copy_to_global_memory, "the address has type u64");
    refuses(32, copy_of_a_half_present, "an operand is f32, expected u32");
}

static void product_of_bytes(ptx *p)
{
    val w = lane_id(p), zero = imm(S32, 0);
    store(p, ptx_mma_bytes(p, (val[]){ w, w, w, w }, (val[]){ w, w }, 32,
                           (val4){ { zero, zero, zero, zero } })
                 .v[0]);
}

static void short_product_of_bytes(ptx *p)
{
    val w = as(p, S32, lane_id(p)), zero = imm(S32, 0);
    store(p, ptx_mma_bytes(p, (val[]){ w, w }, &w, 16, (val4){ { zero, zero, zero, zero } }).v[0]);
}

static void product_of_bytes_with_float_sums(ptx *p)
{
    val w = lane_id(p), zero = val_of_f32(0.0f);
    store(p, ptx_mma_bytes(p, (val[]){ w, w }, &w, 16, (val4){ { zero, zero, zero, zero } }).v[0]);
}

static void product_of_short_floats(ptx *p)
{
    val w = lane_id(p), zero = val_of_f32(0.0f);
    store(p, mma_m16n8k8_tf32(p, (val4){ { w, w, w, w } }, (val2){ { w, w } },
                              (val4){ { zero, zero, zero, zero } })
                 .v[0]);
}

static void product_of_bytes_in_half_a_warp(ptx *p)
{
    PTX_IF (p, lt(p, lane_id(p), 16))
        product_of_bytes(p);
}

ARENA_TEST(instructions_need_their_architecture)
{
    assert_non_null(strstr(verdict_for(a, "sm_75", 32, product_of_bytes), "needs sm_80"));
    assert_non_null(strstr(verdict_for(a, "sm_75", 32, copy_inside_a_shared_array), "needs sm_80"));
    accepts(32, product_of_bytes);
    assert_non_null(strstr(verdict_for(a, "sm_75", 32, short_product_of_bytes), "needs sm_80"));
    assert_non_null(strstr(verdict_for(a, "sm_75", 32, product_of_short_floats), "needs sm_80"));
    accepts(32, short_product_of_bytes);
    accepts(32, product_of_short_floats);
    refuses(32, product_of_bytes_with_float_sums, "an operand is f32, expected s32");
    refuses(32, product_of_bytes_in_half_a_warp, "");
}

TEST(instructions_with_groups_are_checked)
{
    accepts(64, product_for_all);
    refuses(64, product_for_some_lanes, "needs all lanes of the warp");
    refuses(64, barrier_by_a_product, "depends on the lane");
    refuses(32, product_of_floats, "an operand is f32, expected a 32-bit integer");
    refuses(32, product_added_to_words, "an operand is u32, expected f32");
    refuses(32, product_added_to_a_sum_of_one_path, "not defined on every path");
    refuses(32, matrices_past_a_shared_array, "accesses bytes 256 to 271 of shared array tile");
    refuses(32, misaligned_matrices, "not aligned to 16");
    refuses(32, matrices_in_global_memory, "the address has type u64");
    refuses(32, row_past_a_shared_array, "accesses bytes 256 to 271 of shared array tile");
    refuses(32, misaligned_row, "the offset 8 is not a multiple of the 16 bytes");
    refuses(32, row_for_some_lanes, "needs all lanes of the warp");
}

/* Plants a mistake that the builder's interface prevents into its instruction list. Returns the
 * verifier's message. */
static const char *verdict_on_planted(arena *a, void (*plant)(ptx *p))
{
    ptx *p = ptx_new(a, "kernel", target_find("sm_80"), 32);
    ptx_param(p, U64, "out");
    store(p, add(p, shuffle_xor(p, tid_x(p), 1), 3));
    ret_if(p, eq(p, ctaid_x(p), 3));
    st_global_v4(p, F32, parameter(p, "out"), 16, product(p, val_of_f32(0.0f)));
    ret(p);
    ptx_list_instructions(p);
    ptx_order(p);
    ptx_remove_unused(p);
    plant(p);
    return ptx_verify(p) ? NULL : p->error;
}

static inst *find(ptx *p, ptx_op o)
{
    for (size_t n = 0; n < p->count; n++)
        if (p->list[n]->op == o)
            return p->list[n];
    fail_msg("the kernel lacks %s", op_name(o));
    return NULL;
}

static void jump_to_nowhere(ptx *p)
{
    *VEC_PUSH(p->arena, &p->labels) = (ptx_label){ "lost", "" };
    find(p, INST_RET)->op = INST_BRA;
}

KERNEL_OF(no_end, p->count--)
KERNEL_OF(wrong_class, find(p, INST_ADD)->operand[0] = parameter(p, "out"))
KERNEL_OF(wrong_operand_count, find(p, INST_ADD)->operands = 1)
KERNEL_OF(wrong_group, find(p, INST_MMA_F16)->operands = 9)
KERNEL_OF(wrong_result_count, find(p, INST_MMA_F16)->results = 2)

static void wrong_vector(ptx *p)
{
    inst *i = find(p, INST_MMA_F16);
    inst *store = p->list[p->count - 2];
    assert_int_equal(store->op, INST_ST_GLOBAL);
    assert_int_equal(store->operand[0].id, i->result[0]);
    store->operand[3] = store->operand[4];
    store->operands = 4;
}

KERNEL_OF(wrong_class_at_the_end, find(p, INST_MMA_F16)->operand[9] = tid_x(p))

static void wrong_class_of_a_result(ptx *p)
{
    inst *i = find(p, INST_MMA_F16);
    p->registers.items[i->result[3]].type = U32;
}

KERNEL_OF(register_of_another_kernel, find(p, INST_ADD)->operand[0].id = 1000)
KERNEL_OF(mask_in_a_register, find(p, INST_SHFL_BFLY)->operand[3] = tid_x(p))
KERNEL_OF(parameter_that_is_not_declared, find(p, INST_LD_PARAM)->target = 1)
KERNEL_OF(guard_that_is_no_predicate, find(p, INST_RET)->operand[0] = tid_x(p))
KERNEL_OF(wrong_type, find(p, INST_ADD)->type = PRED)
KERNEL_OF(nothing_planted, (void)p)

ARENA_TEST(malformed_instructions_are_refused)
{
    const struct {
        void (*plant)(ptx *p);
        const char *why;
    } cases[] = {
        { jump_to_nowhere, "the label $lost is not defined" },
        { no_end, "has no ret after" },
        { wrong_class, "operand 1 has the wrong type u64" },
        { wrong_operand_count, "wrong number of operands" },
        { wrong_group, "wrong number of operands" },
        { wrong_result_count, "wrong number of operands" },
        { wrong_vector, "wrong number of operands" },
        { wrong_class_at_the_end, "operand 10 has the wrong type u32" },
        { wrong_class_of_a_result, "its result has the wrong type u32" },
        { register_of_another_kernel, "reads a register that does not exist" },
        { mask_in_a_register, "operand 4 must be an immediate" },
        { parameter_that_is_not_declared, "reads a parameter that does not exist" },
        { guard_that_is_no_predicate, "operand 1 has the wrong type u32" },
        { wrong_type, "does not support its type" },
    };
    assert_null(verdict_on_planted(a, nothing_planted));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *error = verdict_on_planted(a, cases[i].plant);
        assert_non_null(error);
        if (!strstr(error, cases[i].why))
            fail_msg("refused with '%s', expected '%s'", error, cases[i].why);
    }
}

TEST(rows_of_ops_def_keep_to_its_rules)
{
    for (int o = 0; o < INST_KINDS; o++) {
        const op_info *info = &op_table[o];
        bool memory = info->flags & (GLOBAL | SHARED), braces = strchr(info->operands, '{');
        unsigned operands = 0;
        for (const char *letter = info->operands; *letter; letter++)
            operands += is_value_letter(*letter);
        if (operands > MAX_OPERANDS || strlen(info->results) > MAX_RESULTS)
            fail_msg("%s has too many operands or results", info->text);
        enum { INDENTATION = 4, LONGER_BY = 2 }; /* length of "pred" less length of "%t" */
        size_t length = strlen(info->text) + INDENTATION;
        for (const char *at = info->text; (at = strchr(at, '%')); at++)
            length += LONGER_BY;
        if (length > LONGEST_MNEMONIC)
            fail_msg("%s: longer than the printer allows", info->text);
        if (braces != (info->flags & GROUPS && *info->results != 'v'))
            fail_msg("%s: braces need the flag GROUPS, and GROUPS braces", info->text);
        const char *address = strchr(info->operands, 'a');
        if (memory != (address && !address[1]))
            fail_msg("%s: an address is the last operand of an access to memory", info->text);
        if (strchr(info->operands, 'g') && strspn(info->operands, "gi") != 2)
            fail_msg("%s: a copy's source and size come first", info->text);
        if (strspn(info->operands, "gtwspuixvacl{}") != strlen(info->operands) ||
            strspn(info->results, "twspuxvd") != strlen(info->results))
            fail_msg("%s has an unknown operand letter", info->text);
    }
}

KERNEL_OF(uses_dp4a, store(p, dp4a(p, tid_x(p), as(p, S32, tid_x(p)), imm(S32, 0))))

ARENA_TEST(instructions_that_the_target_lacks_are_refused)
{
    static const target old = { .name = "sm_60", .sm = 60, .isa = 50 };
    ptx *p = ptx_new(a, "kernel", &old, 32);
    ptx_param(p, U64, "out");
    uses_dp4a(p);
    ptx_output out;
    const char *error = NULL;
    assert_false(ptx_finish(p, a, &out, &error));
    assert_non_null(strstr(error, "needs sm_61; the target is sm_60"));
    p = ptx_new(a, "kernel", target_find("sm_75"), 32);
    ptx_param(p, U64, "out");
    store(p, product(p, val_of_f32(0.0f)).v[0]);
    assert_false(ptx_finish(p, a, &out, &error));
    assert_non_null(strstr(error, "needs sm_80; the target is sm_75"));
    accepts(32, uses_dp4a);
}

/* Returns the verifier's message for a kernel that adds to sums set on one path or on both. */
static const char *error_of_sums(arena *a, const char *target_name, bool on_both)
{
    enum { COLUMNS = 16 };
    ptx *p = ptx_new(a, "kernel", target_find(target_name), 128);
    ptx_output out;
    const char *error = NULL;
    var sums[COLUMNS / 2];
    ptx_param(p, U64, "out");
    val tile = shared_array(p, "tile", U32, 1024), matrix = wgmma_matrix(p, add(p, tile, 0));
    if (on_both)
        for (int i = 0; i < COLUMNS / 2; i++)
            sums[i] = var_f32(p, 0.0f);
    PTX_IF (p, eq(p, ctaid_x(p), 0))
        for (int i = 0; !on_both && i < COLUMNS / 2; i++)
            sums[i] = var_f32(p, 0.0f);
    wgmma_fence(p);
    wgmma_m64k16_f16(p, sums, COLUMNS, matrix, matrix);
    wgmma_commit(p);
    wgmma_wait(p, 0);
    store(p, get(p, sums[0]));
    return ptx_finish(p, a, &out, &error) ? NULL : error;
}

/* Every sum counts, including sums that are never read. */
ARENA_TEST(sums_are_set_before_four_warps_add_to_them)
{
    assert_null(error_of_sums(a, "sm_90a", true));
    assert_non_null(strstr(error_of_sums(a, "sm_90a", false), "not defined on every path"));
    assert_non_null(strstr(error_of_sums(a, "sm_90", true), "needs sm_90a; the target is sm_90"));
    assert_non_null(strstr(error_of_sums(a, "sm_100", true), "needs sm_90a"));
}

static void build_with_barrier_for_some_lanes(ptx *p, const instance *in)
{
    (void)in;
    barrier_for_some_lanes(p);
}

/* --explain shows this message, although no user can cause it.
 */
ARENA_TEST(a_family_that_builds_a_wrong_kernel_is_reported_as_explained)
{
    static const char text[] = "[f32_gemv]\nshape = 256x1\n";
    family wrong = *family_find(families, "f32_gemv");
    wrong.build = build_with_barrier_for_some_lanes;
    spec s;
    kernel_set set;
    diags d = diags_new(a);
    assert_true(spec_parse(a, "kernels.ini", text, strlen(text), (const family *[]){ &wrong, NULL },
                           NULL, NULL, &s, &d));
    assert_false(generate_kernels(a, &s, &set, &d));
    strbuf shown = strbuf_new(a);
    diags_render(&d, &shown, false);
    const char *message = arena_copy(a, shown.text, strcspn(shown.text, "\n"));
    if (!strstr(template_explanations_txt, arena_format(a, "\n    %s\n", message)))
        fail_msg("not in the explanation: %s", message);
}
