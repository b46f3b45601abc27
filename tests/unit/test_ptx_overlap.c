/* Kernels that overlap with preceding launches: their instructions before the wait, and the kind of
 * loads after it. */
#include <string.h>

#include "test_arena.h"
#include "expect_ptxas.h"
#include "ptx/ptx.h"

/* Builds a kernel with weights w, an input x, an array of addresses and an output y. Returns NULL
 * if the verifier rejects it. */
static const char *built(arena *a, const char *architecture, void (*build)(ptx *p),
                         const char **error)
{
    ptx *p = ptx_new(a, "kernel", target_find(architecture), 64);
    ptx_output out;
    ptx_steady_param(p, U64, "w", CHANGES_NEVER);
    ptx_param(p, U64, "x");
    ptx_param(p, U64, "addresses");
    ptx_param(p, U64, "y");
    ptx_param(p, U32, "n");
    ptx_steady_param(p, U64, "lengths", CHANGES_SETTLED);
    ptx_steady_param(p, U64, "caches", CHANGES_SETTLED);
    if (target_overlaps(target_find(architecture))) {
        ptx_overlap(p);
        let_next_start(p);
    }
    build(p);
    return ptx_finish(p, a, &out, error) ? out.text : NULL;
}

static const char *text_of(arena *a, const char *architecture, void (*build)(ptx *p))
{
    const char *error, *text = built(a, architecture, build, &error);
    if (!text)
        fail_msg("refused: %s", error);
    return text;
}

static void refuses(arena *a, void (*build)(ptx *p), const char *why)
{
    const char *error = NULL;
    if (built(a, "sm_90", build, &error))
        fail_msg("accepted; expected the error: %s", why);
    if (!strstr(error, why))
        fail_msg("refused with '%s', expected '%s'", error, why);
}

static val loaded(ptx *p, const char *name)
{
    return ld_const(p, F32, mad_wide(p, tid_x(p), 4, parameter(p, name)), 0);
}

static void store(ptx *p, val v)
{
    st_global(p, F32, mad_wide(p, tid_x(p), 4, parameter(p, "y")), 0, v);
}

static void wait_and_add(ptx *p)
{
    wait_for_launches(p);
    store(p, add(p, loaded(p, "w"), loaded(p, "x")));
}

static void prefetch_before_wait(ptx *p)
{
    prefetch(p, mad_wide(p, tid_x(p), 128, parameter(p, "w")), 256);
    wait_and_add(p);
}

static void weights_before_wait(ptx *p)
{
    static const uint64_t words[2] = { 1, 2 };
    val table = ld_const(p, U32, global_array(p, "table", NULL, words, 2), 4);
    val w = mul(p, convert(p, F32, table), loaded(p, "w"));
    var sum = var_f32(p, w);
    wait_for_launches(p);
    store(p, add(p, sum, loaded(p, "x")));
}

static void both_ways_wait(ptx *p)
{
    PTX_IF (p, gt(p, parameter(p, "n"), 4)) {
        wait_for_launches(p);
        store(p, loaded(p, "x"));
    }
    PTX_ELSE (p)
        wait_for_launches(p);
}

ARENA_TEST(a_wait_before_all_accesses_is_accepted)
{
    const char *error;
    assert_non_null(built(a, "sm_90", wait_and_add, &error));
    assert_non_null(built(a, "sm_90", prefetch_before_wait, &error));
    assert_non_null(built(a, "sm_90", weights_before_wait, &error));
    assert_non_null(built(a, "sm_90", both_ways_wait, &error));
}

static void load_before_wait(ptx *p)
{
    var x = var_f32(p, loaded(p, "x"));
    wait_for_launches(p);
    store(p, get(p, x));
}

static void store_before_wait(ptx *p)
{
    store(p, loaded(p, "w"));
    wait_for_launches(p);
}

static void count_before_wait(ptx *p)
{
    val number = atomic_inc(p, parameter(p, "y"), imm(U32, 3));
    wait_for_launches(p);
    store(p, convert(p, F32, number));
}

static void load_before_wait_in_a_loop(ptx *p)
{
    PTX_FOR (p, turn, 0, parameter(p, "n"), 1)
        store(p, loaded(p, "x"));
    wait_for_launches(p);
}

static void no_wait(ptx *p)
{
    (void)p;
}

static void wait_of_some(ptx *p)
{
    PTX_IF (p, gt(p, tid_x(p), 4))
        wait_for_launches(p);
}

static void early_end(ptx *p)
{
    ret_if(p, gt(p, tid_x(p), 4));
    wait_and_add(p);
}

static void two_waits(ptx *p)
{
    wait_for_launches(p);
    PTX_IF (p, gt(p, tid_x(p), 4))
        wait_for_launches(p);
}

static void wait_in_a_loop(ptx *p)
{
    PTX_FOR (p, turn, 0, 4, 1)
        wait_for_launches(p);
}

/* Loads settled values before the wait, and values that they address. */
static void settled_before_wait(ptx *p)
{
    val length = ld_settled(p, U32, parameter(p, "lengths"), 4);
    val cache = ld_settled(p, U64, mad_wide(p, ctaid_x(p), 8, parameter(p, "caches")), 0);
    prefetch(p, mad_wide(p, length, 128, cache), 0);
    wait_for_launches(p);
    store(p, ld_const(p, F32, mad_wide(p, length, 128, cache), 0));
}

static void load_settled_plainly(ptx *p)
{
    var length = var_f32(p, loaded(p, "lengths"));
    wait_for_launches(p);
    store(p, get(p, length));
}

static void load_changing_value_as_settled(ptx *p)
{
    var x = var_f32(p, ld_settled(p, F32, parameter(p, "x"), 0));
    wait_for_launches(p);
    store(p, get(p, x));
}

/* Loads a cache row before the wait: its address is settled, its contents are not. */
static void load_row_before_wait(ptx *p)
{
    val cache = ld_settled(p, U64, parameter(p, "caches"), 0);
    var row = var_f32(p, ld_settled(p, F32, cache, 128));
    wait_for_launches(p);
    store(p, get(p, row));
}

static void load_from_either(ptx *p)
{
    var at = var_u64(p, parameter(p, "lengths"));
    PTX_IF (p, gt(p, parameter(p, "n"), 4))
        assign(p, at, parameter(p, "x"));
    var x = var_f32(p, ld_settled(p, F32, at, 0));
    wait_for_launches(p);
    store(p, get(p, x));
}

/* Copies to shared memory before the wait. */
static void copy_before_wait(ptx *p, const char *from)
{
    val tile = shared_array(p, "tile", F32, 256);
    cp_async_cg(p, mad(p, tid_x(p), 16, tile), 0, mad_wide(p, tid_x(p), 16, parameter(p, from)), 0);
    wait_for_launches(p);
    cp_async_wait_all(p);
    store(p, ld_shared(p, F32, mad(p, tid_x(p), 4, tile), 0));
}

static void copy_weights_before_wait(ptx *p)
{
    copy_before_wait(p, "w");
}

static void copy_input_before_wait(ptx *p)
{
    copy_before_wait(p, "x");
}

ARENA_TEST(weights_may_be_copied_before_the_wait)
{
    text_of(a, "sm_90", copy_weights_before_wait);
    refuses(a, copy_input_before_wait, "precedes the wait");
}

ARENA_TEST(settled_values_may_be_loaded_before_the_wait)
{
    const char *text = text_of(a, "sm_90", settled_before_wait);
    const char *wait = strstr(text, "    griddepcontrol.wait;");
    const char *length = strstr(text, "ld.relaxed.gpu.global.u32 ");
    const char *cache = strstr(text, "ld.relaxed.gpu.global.u64 ");
    const char *row = strstr(text, "ld.global.f32 ");
    assert_true(length && cache && row && length < wait && cache < wait && row > wait);
    text = text_of(a, "sm_89", settled_before_wait);
    assert_null(strstr(text, "relaxed"));
    assert_non_null(strstr(text, "ld.global.nc.u32"));
}

ARENA_TEST(unsettled_or_stale_loads_before_the_wait_are_refused)
{
    refuses(a, load_settled_plainly, "precedes the wait");
    refuses(a, load_changing_value_as_settled, "precedes the wait");
    refuses(a, load_row_before_wait, "precedes the wait");
    refuses(a, load_from_either, "precedes the wait");
}

ARENA_TEST(accesses_without_a_wait_are_refused)
{
    static const char touches[] = "precedes the wait";
    static const char ends[] = "may end without waiting", waits[] = "may wait twice";
    refuses(a, load_before_wait, touches);
    refuses(a, store_before_wait, touches);
    refuses(a, count_before_wait, touches);
    refuses(a, load_before_wait_in_a_loop, touches);
    refuses(a, no_wait, ends);
    refuses(a, wait_of_some, ends);
    refuses(a, early_end, ends);
    refuses(a, two_waits, waits);
    refuses(a, wait_in_a_loop, waits);
}

static const char *line_of(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    if (!found)
        fail_msg("'%s' is missing in\n%s", part, text);
    return found;
}

ARENA_TEST(a_trigger_may_be_first)
{
    const char *text = text_of(a, "sm_90", prefetch_before_wait);
    assert_non_null(strstr(text, ".version 7.8\n"));
    assert_true(line_of(text, "    griddepcontrol.launch_dependents; ") <
                line_of(text, "    prefetch.global.L2  [%rd4+256];\n"));
    assert_true(line_of(text, "prefetch") < line_of(text, "    griddepcontrol.wait; "));
}

ARENA_TEST(a_trigger_may_follow_the_wait)
{
    ptx *p = ptx_new(a, "kernel", target_find("sm_90"), 64);
    ptx_output out;
    const char *error;
    ptx_param(p, U64, "x");
    ptx_param(p, U64, "y");
    ptx_overlap(p);
    wait_for_launches(p);
    let_next_start(p);
    store(p, loaded(p, "x"));
    assert_true(ptx_finish(p, a, &out, &error));
    const char *wait = line_of(out.text, "    griddepcontrol.wait; ");
    const char *trigger = line_of(out.text, "    griddepcontrol.launch_dependents; ");
    assert_true(wait < trigger && trigger < line_of(out.text, "ld.global.f32 "));
}

ARENA_TEST(older_targets_prefetch_without_a_wait)
{
    const char *text = text_of(a, "sm_89", prefetch_before_wait);
    assert_null(strstr(text, "griddepcontrol"));
    line_of(text, "prefetch");
    assert_non_null(strstr(text, "ld.global.nc"));
    assert_null(strstr(text, "ld.global.f32"));
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *found = text; (found = strstr(found, part)); found++)
        n++;
    return n;
}

/* Loads through loaded addresses, and through an address that a loop advances, first of weights and
 * then of x. */
static void through_addresses(ptx *p)
{
    wait_for_launches(p);
    store(p, ld_const(p, F32, ld_const(p, U64, parameter(p, "addresses"), 8), 0));
    var at = var_u64(p, parameter(p, "w")), next = var_u64(p, parameter(p, "w"));
    PTX_FOR (p, turn, 0, parameter(p, "n"), 1) {
        store(p, ld_const(p, F32, at, 4));
        assign(p, at, get(p, next));
        assign(p, next, add(p, parameter(p, "x"), 16));
    }
}

/* Loads through loaded addresses. The contents are unknown, wherever the address came from. */
static void through_loaded_addresses(ptx *p)
{
    val kept = shared_array(p, "kept", U64, 64);
    wait_for_launches(p);
    st_shared(p, U64, kept, 0, parameter(p, "x"));
    barrier(p);
    store(p, ld_const(p, F32, ld_shared(p, U64, kept, 0), 0));
    store(p, ld_const(p, F32, ld_const(p, U64, parameter(p, "w"), 0), 0));
}

static void far_in_the_weights(ptx *p)
{
    wait_for_launches(p);
    val number = ld_const(p, U32, parameter(p, "x"), 0);
    store(p, ld_const(p, F32, mad_wide(p, number, 512, parameter(p, "w")), 0));
}

/* ptxas may move ld.global.nc before the wait. */
ARENA_TEST(buffers_of_other_launches_are_loaded_without_nc)
{
    const char *text = text_of(a, "sm_90", wait_and_add);
    assert_int_equal(count(text, "ld.global.nc.f32"), 1);
    assert_int_equal(count(text, "ld.global.f32"), 1);
    assert_true(line_of(text, "ld.global.nc.f32    %f1, [%rd4]") <
                line_of(text, "ld.global.f32       %f2, [%rd5]"));
    text = text_of(a, "sm_90", weights_before_wait);
    assert_int_equal(count(text, "ld.global.nc"), 2);
    text = text_of(a, "sm_90", far_in_the_weights);
    assert_int_equal(count(text, "ld.global.u32"), 1);
    assert_int_equal(count(text, "ld.global.nc.f32"), 1);
    text = text_of(a, "sm_90", through_loaded_addresses);
    assert_int_equal(count(text, "ld.global.nc.u64"), 1);
    assert_int_equal(count(text, "ld.global.nc"), 1);
    assert_int_equal(count(text, "ld.global.f32"), 2);
    text = text_of(a, "sm_90", through_addresses);
    assert_int_equal(count(text, "ld.global.nc"), 0);
    assert_int_equal(count(text, "ld.global."), 3);
}

ARENA_TEST(ptxas_accepts_an_overlapping_kernel)
{
    if (!expect_ptxas_to_take(text_of(a, "sm_90", prefetch_before_wait), "sm_90"))
        skip();
}
