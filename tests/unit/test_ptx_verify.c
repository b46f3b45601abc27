/* The verifier of kernels under construction: each kind of mistake is refused, and what is right is
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/ir.h"

/* Builds a kernel with a parameter out for a block of this many threads and gives the verifier's
 * message, or NULL where the kernel passes. */
static const char *verdict(arena *a, unsigned block, void (*build)(ptx *p))
{
    ptx *p = ptx_new(a, "kernel", target_find("sm_80"), block);
    ptx_param(p, U64, "out");
    ptx_param(p, U32, "n");
    build(p);
    ptx_output out;
    const char *error = NULL;
    return ptx_finish(p, &out, &error) ? NULL : error;
}

static void refuses(unsigned block, void (*build)(ptx *p), const char *why)
{
    arena *a = arena_new();
    const char *error = verdict(a, block, build);
    if (!error)
        fail_msg("accepted, though: %s", why);
    if (!strstr(error, why))
        fail_msg("refused as '%s' instead of '%s'", error, why);
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
    ptx_store_global(p, v.type, parameter(p, "out"), 0, v);
}

static void mixed_types(ptx *p)
{
    store(p, add(p, parameter(p, "n"), convert(p, F32, tid_x(p))));
}

static void number_too_large(ptx *p)
{
    store(p, add(p, tid_x(p), 0x100000000));
}

static void unknown_parameter(ptx *p)
{
    store(p, parameter(p, "m"));
}

static void narrow_address(ptx *p)
{
    st_global(p, U32, tid_x(p), 0, 1);
}

static void odd_offset(ptx *p)
{
    store(p, ld_const_v4(p, F32, parameter(p, "out"), 8).v[0]);
}

static void type_mistakes_are_refused(void **state)
{
    (void)state;
    refuses(32, mixed_types, "an operand is f32 where u32 is needed");
    refuses(32, number_too_large, "is no u32");
    refuses(32, unknown_parameter, "there is no parameter 'm'");
    refuses(32, narrow_address, "the address is u32");
    refuses(32, odd_offset, "the offset 8 is not a multiple of the 16 bytes accessed");
}

/* Trap 14: a register that one path defines and another uses. */
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

static void registers_are_defined_on_every_path(void **state)
{
    (void)state;
    refuses(32, defined_on_one_path, "not defined on every path");
    refuses(32, defined_in_a_loop_that_may_not_run, "not defined on every path");
    accepts(32, defined_before_a_loop);
    accepts(32, defined_on_both_paths);
}

static void past_a_shared_array(ptx *p)
{
    val array = shared_array(p, "tile", F32, 4);
    st_shared(p, F32, add(p, array, 8), 8, 1.0f);
}

static void ahead_of_a_shared_array(ptx *p)
{
    st_shared(p, F32, shared_array(p, "tile", F32, 4), -4, 1.0f);
}

static void inside_a_shared_array(ptx *p)
{
    st_shared(p, F32, add(p, shared_array(p, "tile", F32, 4), 8), 4, 1.0f);
}

static void misaligned_in_a_shared_array(ptx *p)
{
    val array = shared_array(p, "tile", F32, 16);
    store(p, ld_shared_v4(p, F32, add(p, array, 4), 16).v[0]);
}

static void constant_shared_addresses_stay_inside_their_array(void **state)
{
    (void)state;
    refuses(32, past_a_shared_array, "touches bytes 16 to 19 of shared array tile, which has 16");
    refuses(32, ahead_of_a_shared_array, "touches bytes -4 to -1");
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

/* Trap 3: warps that have nothing to store leave ahead of a barrier. */
static void return_ahead_of_a_barrier(ptx *p)
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

static void barriers_are_reached_by_all_threads(void **state)
{
    (void)state;
    refuses(64, barrier_for_one_warp, "is a barrier that not every thread of the block reaches");
    refuses(64, barrier_for_some_lanes, "is a barrier that not every thread of the block reaches");
    refuses(64, return_ahead_of_a_barrier, "is a barrier");
    refuses(64, barrier_in_an_uneven_loop, "is a barrier");
    refuses(64, barrier_by_a_value_changed_unevenly, "is a barrier");
    refuses(64, barrier_by_a_load_of_each_thread, "is a barrier");
    accepts(64, barrier_for_all);
    accepts(32, barrier_for_one_warp);
}

static void shuffle_for_some_lanes(ptx *p)
{
    PTX_IF (p, lt(p, lane_id(p), 5))
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

static void shuffles_are_reached_by_all_lanes(void **state)
{
    (void)state;
    refuses(64, shuffle_for_some_lanes, "is a shuffle that not every lane of the warp reaches");
    refuses(64, shuffle_in_an_uneven_loop, "is a shuffle");
    accepts(64, shuffle_for_one_warp);
    accepts(64, shuffle_by_another_lanes_word);
}

/* Mistakes that the builder's interface does not let through, planted in its list of instructions.
 */
static const char *verdict_on_planted(arena *a, void (*plant)(ptx *p))
{
    ptx *p = ptx_new(a, "kernel", target_find("sm_80"), 32);
    ptx_param(p, U64, "out");
    store(p, add(p, tid_x(p), 3));
    ret(p);
    ptx_list_instructions(p);
    plant(p);
    ptx_flow flow;
    bool right = ptx_check_instructions(p) && ptx_flow_build(p, &flow) &&
                 ptx_check_definitions(p, &flow) && ptx_check_uniform(p, &flow);
    return right ? NULL : p->error;
}

static inst *find(ptx *p, op o)
{
    for (size_t n = 0; n < p->count; n++)
        if (p->list[n]->op == o)
            return p->list[n];
    fail_msg("the kernel has no %s", op_name(o));
    return NULL;
}

static void jump_to_nowhere(ptx *p)
{
    *VEC_PUSH(p->arena, &p->labels) = (ptx_label){ "lost", "" };
    find(p, OP_RET)->op = OP_BRA;
}

static void no_end(ptx *p)
{
    p->count--;
}

static void wrong_class(ptx *p)
{
    find(p, OP_ADD)->operand[0] = parameter(p, "out");
}

static void wrong_operand_count(ptx *p)
{
    find(p, OP_ADD)->operands = 1;
}

static void wrong_type(ptx *p)
{
    find(p, OP_ADD)->type = PRED;
}

static void nothing_planted(ptx *p)
{
    (void)p;
}

static void malformed_instructions_are_refused(void **state)
{
    (void)state;
    const struct {
        void (*plant)(ptx *p);
        const char *why;
    } cases[] = {
        { jump_to_nowhere, "the label $lost does not exist" },
        { no_end, "runs off its end" },
        { wrong_class, "operand 1 is u64" },
        { wrong_operand_count, "wrong number of operands" },
        { wrong_type, "the type does not exist" },
    };
    arena *a = arena_new();
    assert_null(verdict_on_planted(a, nothing_planted));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *error = verdict_on_planted(a, cases[i].plant);
        assert_non_null(error);
        if (!strstr(error, cases[i].why))
            fail_msg("refused as '%s' instead of '%s'", error, cases[i].why);
    }
    arena_free(a);
}

static void uses_dp4a(ptx *p)
{
    store(p, dp4a(p, tid_x(p), as(p, S32, tid_x(p)), imm(S32, 0)));
}

static void instructions_that_the_target_lacks_are_refused(void **state)
{
    (void)state;
    static const target old = { .name = "sm_60", .sm = 60, .isa = 50 };
    arena *a = arena_new();
    ptx *p = ptx_new(a, "kernel", &old, 32);
    ptx_param(p, U64, "out");
    uses_dp4a(p);
    ptx_output out;
    const char *error = NULL;
    assert_false(ptx_finish(p, &out, &error));
    assert_non_null(strstr(error, "needs sm_61, the target is sm_60"));
    arena_free(a);
    accepts(32, uses_dp4a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_mistakes_are_refused),
        cmocka_unit_test(registers_are_defined_on_every_path),
        cmocka_unit_test(constant_shared_addresses_stay_inside_their_array),
        cmocka_unit_test(barriers_are_reached_by_all_threads),
        cmocka_unit_test(shuffles_are_reached_by_all_lanes),
        cmocka_unit_test(malformed_instructions_are_refused),
        cmocka_unit_test(instructions_that_the_target_lacks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
