/* The router of a mixture of experts: ties, NaN and infinity, groups, the list of used experts, and
 * rows that must not depend on other rows. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "check/verify.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "ref/reference.h"

enum { IDS, WEIGHTS, LIST, W, X }; /* parameters */
enum { OF_W, OF_X };               /* inputs */
enum { K = 32, MOST = 512 };

typedef struct router {
    arena *arena;
    device device;
    launched *on;
    const uint32_t *ids, *list;
    const float *weights;
} router;

static router *router_new(arena *a, const char *text)
{
    router *r = arena_zalloc(a, sizeof *r);
    r->arena = a;
    r->on = suite_launched(a, "moe_route", text);
    r->device = device_emulator(a);
    return r;
}

/* Runs the router without judging it. */
static void choose(router *r)
{
    const void *outputs[MAX_PARAMS];
    expect_right(suite_launch_all(r->arena, &r->device, &r->on->kernel, &r->on->trial, outputs));
    r->ids = outputs[IDS];
    r->weights = outputs[WEIGHTS];
    r->list = outputs[LIST];
}

/* Runs the router and fails the test if a result is wrong. */
static void run(router *r)
{
    expect_runs_right(r->arena, &r->device, r->on);
    choose(r);
}

static void expect_ids(const router *r, const uint32_t *ids)
{
    size_t count = (size_t)(r->on->in.shape.m * r->on->in.shape.experts_used);
    for (size_t i = 0; i < count; i++)
        if (r->ids[i] != ids[i])
            fail_msg("%s: slot %zu has expert %u, not %u", r->on->in.name, i, r->ids[i], ids[i]);
}

/* Makes a router with given logits. Row v of x selects column v of W, which holds its logits. */
static router *with_logits(arena *a, const char *options, size_t experts, size_t m,
                           const float *logits)
{
    router *r = router_new(
        a, arena_format(a, "weights=f32 k=%d experts=%zu m=%zu %s", K, experts, m, options));
    float *w = arena_zalloc(a, experts * K * sizeof *w), *x = arena_zalloc(a, m * K * sizeof *x);
    for (size_t v = 0; v < m; v++) {
        x[v * K + v] = 1;
        for (size_t e = 0; e < experts; e++)
            w[e * K + v] = logits[v * experts + e];
    }
    put_input(&r->on->trial, OF_W, w);
    put_input(&r->on->trial, OF_X, x);
    return r;
}

static const char *const gatings[] = { "gating=softmax", "gating=sigmoid",
                                       "gating=softmax_of_chosen" };
enum { GATINGS = 3 };

static const char *used(arena *a, const char *options, size_t count)
{
    return arena_format(a, "experts_used=%zu %s", count, options);
}

ARENA_TEST(the_first_of_equal_experts_win)
{
    static const size_t sizes[][2] = { { 7, 3 }, { 40, 32 }, { 128, 8 }, { 512, 10 }, { 33, 1 } };
    float *logits = arena_zalloc(a, MOST * sizeof *logits);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t g = 0; g < GATINGS; g++) {
            router *r =
                with_logits(a, used(a, arena_format(a, "normed=1 %s", gatings[g]), sizes[i][1]),
                            sizes[i][0], 1, logits);
            run(r);
            for (uint32_t slot = 0; slot < sizes[i][1]; slot++) {
                assert_int_equal(r->ids[slot], slot);
                assert_float_equal(r->weights[slot], 1.0f / (float)sizes[i][1], 1e-6f);
            }
        }
}

/* Two rows with ties between a few logits; the best logits are at both ends. */
ARENA_TEST(ties_are_in_the_order_of_experts)
{
    float logits[2 * 66] = { 0 };
    static const uint32_t ids[] = { 3, 35, 65, 0, 1, 0, 33, 64, 32, 2 };
    logits[3] = logits[35] = logits[65] = 2;
    logits[66] = logits[66 + 33] = logits[66 + 64] = 1e-30f;
    logits[66 + 32] = 1e-31f;
    for (int i = 0; i < 66; i++)
        logits[66 + i] -= i == 1 ? 1 : 0;
    for (size_t g = 0; g < GATINGS; g++) {
        router *r = with_logits(a, used(a, gatings[g], 5), 66, 2, logits);
        run(r);
        expect_ids(r, ids);
    }
}

ARENA_TEST(minus_infinity_is_chosen_last)
{
    float logits[40];
    for (int e = 0; e < 40; e++)
        logits[e] = e % 10 == 7 ? (float)e : -INFINITY;
    static const uint32_t ids[] = { 37, 27, 17, 7, 0, 1 };
    for (size_t g = 0; g < GATINGS; g++) {
        router *r = with_logits(a, used(a, gatings[g], 6), 40, 1, logits);
        run(r);
        expect_ids(r, ids);
        for (int slot = 0; slot < 6; slot++)
            assert_true(slot < 4 ? r->weights[slot] > 0 : r->weights[slot] <= 0);
    }
    for (int e = 0; e < 40; e++)
        logits[e] = -INFINITY;
    for (size_t g = 0; g < GATINGS; g++) {
        router *r = with_logits(a, used(a, gatings[g], 6), 40, 1, logits);
        run(r);
        for (uint32_t slot = 0; slot < 6; slot++) {
            assert_int_equal(r->ids[slot], slot);
            assert_true(g == 1 ? r->weights[slot] <= 0 : isnan(r->weights[slot]));
        }
    }
}

/* The largest logits are infinite or NaN. Sigmoid gating affects only their own weights. */
ARENA_TEST(nan_and_infinity_are_chosen_and_reach_the_weights)
{
    static const float values[] = { INFINITY, NAN, -NAN };
    float logits[40];
    for (size_t i = 0; i < 3; i++)
        for (size_t g = 0; g < GATINGS; g++) {
            for (int e = 0; e < 40; e++)
                logits[e] = (float)(e % 7) + 0.01f * (float)e;
            logits[29] = values[i];
            logits[33] = INFINITY;
            router *r = with_logits(a, used(a, gatings[g], 3), 40, 1, logits);
            run(r);
            static const uint32_t ids[] = { 29, 33, 34 };
            expect_ids(r, ids);
            for (int slot = 0; slot < 3; slot++)
                assert_int_equal(isnan(r->weights[slot]) != 0,
                                 g != 1 || (slot == 0 && isnan(values[i])));
        }
}

/* Checks that a row's ids are distinct experts and that the list contains all of them, whatever x
 * is. */
static void expect_sound(const router *r)
{
    const problem_shape *s = &r->on->in.shape;
    uint32_t u = (uint32_t)s->experts_used, m = (uint32_t)s->m, entry = 4, entries = 0;
    uint32_t most = s->experts < m * u ? (uint32_t)s->experts : m * u;
    for (uint32_t e = 0; e < s->experts; e++) {
        uint32_t count = 0;
        for (uint32_t v = 0; v < m; v++) {
            uint32_t of_row = 0;
            for (uint32_t slot = 0; slot < u; slot++)
                if (r->ids[v * u + slot] == e) {
                    assert_int_equal(r->list[entry + 2 + count], v * u + slot);
                    count++;
                    of_row++;
                }
            assert_true(of_row <= 1);
        }
        if (!count)
            continue;
        assert_int_equal(r->list[entry], e);
        assert_int_equal(r->list[entry + 1], count);
        for (; count < m; count++)
            assert_int_equal(r->list[entry + 2 + count], UINT32_MAX);
        entry += 2 + m;
        entries++;
    }
    assert_int_equal(r->list[0], entries);
    for (int i = 1; i < 4; i++)
        assert_int_equal(r->list[i], 0);
    for (; entries < most; entries++)
        for (uint32_t i = 0; i < 2 + m; i++)
            assert_int_equal(r->list[entry++], i == 1 ? 0 : UINT32_MAX);
    for (uint32_t i = 0; i < m * u; i++)
        assert_true(r->ids[i] < s->experts);
}

/* A NaN in a row of x must make all weights of that row NaN, and of no other row. */
ARENA_TEST(a_nan_in_x_makes_weights_of_its_row_nan)
{
    static const char *const options[] = {
        "experts=128 experts_used=8 normed=1",
        "experts=64 experts_used=6 gating=sigmoid shared=gated norm=rms",
        "experts=32 experts_used=4 gating=softmax_of_chosen bias=add",
        "experts=64 experts_used=6 gating=sigmoid choice_bias=add groups=8 groups_used=3",
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        router *r = router_new(a, arena_format(a, "weights=f32 k=96 m=3 %s", options[i]));
        int64_t of_row = r->on->in.shape.experts_used + (i == 1);
        ((float *)r->on->trial.params[X].content.bytes)[96 + 95] = NAN;
        run(r);
        expect_sound(r);
        for (int64_t j = 0; j < 3 * of_row; j++)
            assert_int_equal(isnan(r->weights[j]) != 0, j / of_row == 1);
    }
}

ARENA_TEST(a_nan_in_the_weights_of_an_expert_is_chosen_by_all_rows)
{
    for (size_t g = 0; g < GATINGS; g++) {
        router *r = router_new(
            a, arena_format(a, "weights=f16 k=64 m=4 experts=100 experts_used=5 %s", gatings[g]));
        ((uint16_t *)r->on->trial.params[W].content.bytes)[77 * 64 + 63] = 0x7e00;
        run(r);
        expect_sound(r);
        for (size_t v = 0; v < 4; v++) {
            assert_int_equal(isnan(r->weights[5 * v]) != 0, 1);
            assert_int_equal(isnan(r->weights[5 * v + 4]) != 0, g != 1);
            if (g) /* softmax scores are all NaN; the order is that of the logits */
                assert_int_equal(r->ids[5 * v], 77);
        }
    }
}

/* Extreme sizes: all experts or one, few threads or many, and rows of several iterations with a
 * remainder. */
ARENA_TEST(routers_of_all_sizes_are_right)
{
    static const char *const texts[] = {
        "weights=f32 k=4 experts=1 experts_used=1",
        "weights=f32 k=4 experts=2 experts_used=2 m=8 shared=plain",
        "weights=f32 k=252 experts=7 experts_used=3 m=2 norm=rms",
        "weights=f32 k=1028 experts=7 experts_used=7 m=8 gating=sigmoid shared=gated norm=rms",
        "weights=f16 k=2056 experts=32 experts_used=32 m=3 gating=softmax_of_chosen bias=add",
        "weights=bf16 k=4104 experts=33 experts_used=32 m=8",
        "weights=f32 k=9220 experts=16 experts_used=4 m=2 norm=rms shared=gated",
        "weights=f32 k=128 experts=512 experts_used=10 m=8 shared=gated",
        "weights=f32 k=64 experts=512 experts_used=32 m=8 gating=sigmoid normed=1 scale=2.5",
        "weights=q8_0 k=2080 experts=24 experts_used=6 m=2 shared=gated norm=rms",
        "weights=q4_k k=2304 experts=9 experts_used=2",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        router *r = router_new(a, texts[i]);
        run(r);
        expect_sound(r);
    }
}

/* The sum of a group's two best scores decides. Group 2 has the best score but is not chosen. */
ARENA_TEST(groups_are_chosen_by_their_two_best_scores)
{
    enum { GROUPS = 8, SIZE = 32 };
    float logits[GROUPS * SIZE];
    for (int e = 0; e < GROUPS * SIZE; e++)
        logits[e] = -8 - 0.01f * (float)e;
    static const uint32_t ids[] = { 7 * 32 + 31, 3 * 32 + 1, 7 * 32,     3 * 32,
                                    5 * 32 + 5,  4,          5 * 32 + 4, 9 };
    logits[2 * 32 + 3] = 6; /* close to 1 after sigmoid */
    logits[7 * 32 + 31] = 4;
    logits[7 * 32] = 2;
    logits[3 * 32 + 1] = 3;
    logits[3 * 32] = 1.5f;
    logits[5 * 32 + 5] = 1;
    logits[5 * 32 + 4] = 0.5f;
    logits[4] = 0.75f;
    logits[9] = 0.25f;
    router *r =
        with_logits(a, "experts_used=8 gating=sigmoid groups=8 groups_used=4", 256, 1, logits);
    run(r);
    expect_ids(r, ids);
}

/* Among equal groups the first must be chosen, whatever their size. */
ARENA_TEST(the_first_of_equal_groups_win)
{
    static const struct {
        size_t experts;
        int groups, groups_used, used;
    } cases[] = {
        { 256, 8, 4, 8 }, { 160, 8, 3, 6 }, { 64, 32, 5, 10 }, { 6, 3, 2, 3 }, { 9, 1, 1, 9 }
    };
    float *logits = arena_zalloc(a, MOST * sizeof *logits);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = cases[i].experts / (size_t)cases[i].groups;
        router *r =
            with_logits(a,
                        arena_format(a, "experts_used=%d gating=sigmoid groups=%d groups_used=%d",
                                     cases[i].used, cases[i].groups, cases[i].groups_used),
                        cases[i].experts, 1, logits);
        run(r);
        for (uint32_t slot = 0; slot < (uint32_t)cases[i].used; slot++)
            assert_int_equal(r->ids[slot], slot);
        assert_true((size_t)cases[i].used <= size * (size_t)cases[i].groups_used);
    }
}

/* choice_bias must change the choice, but no weight. */
ARENA_TEST(the_choice_bias_affects_only_the_choice)
{
    enum { EXPERTS = 10 };
    float logits[EXPERTS] = { 0 }, bias[EXPERTS] = { 0 };
    static const uint32_t ids[] = { 4, 8, 0 };
    bias[4] = 2;
    bias[8] = 1;
    bias[1] = -1e-6f;
    for (size_t g = 0; g < GATINGS; g++) {
        router *r = with_logits(a, used(a, arena_format(a, "choice_bias=add %s", gatings[g]), 3),
                                EXPERTS, 1, logits);
        put_input(&r->on->trial, 2, bias);
        choose(r);
        expect_ids(r, ids);
        for (int slot = 0; slot < 3; slot++)
            assert_float_equal(r->weights[slot], g == 0 ? 0.1f : g == 1 ? 0.5f : 1 / 3.0f, 1e-6f);
    }
}

/* The logits are scaled before the softmax and the bias, weights after the division by their sum.
 * The choice by scaled logits and bias differs from that by logits. */
ARENA_TEST(scales_apply_to_logits_weights_and_the_shared_expert)
{
    enum { EXPERTS = 6, USED = 3 };
    static const float logits[EXPERTS] = { 0, 8, 4, 6, -8, 2 }, bias[EXPERTS] = { 0, 0, 0, 0, 4 };
    static const float scales[EXPERTS] = { 9, 2, -1, 0.5f, 3, 9 };
    static const uint32_t ids[] = { 1, 4, 3 }; /* logits 2, 2, 1.5 */
    const char *options = used(a,
                               "normed=1 scale=10 bias=add logit_scale=0.25 expert_scale=input "
                               "shared=plain shared_scale=0.5",
                               USED);
    router *r = with_logits(a, options, EXPERTS, 1, logits);
    put_input(&r->on->trial, 2, bias);
    put_input(&r->on->trial, 3, scales);
    run(r);
    expect_ids(r, ids);
    const double least = exp(-0.5), sum = 2 + least;
    const double parts[USED] = { 1, 1, least };
    for (int i = 0; i < USED; i++)
        assert_float_equal(r->weights[i], (float)(10 * parts[i] / sum) * scales[ids[i]], 1e-5f);
    assert_float_equal(r->weights[USED], 0.5f, 0);
}

/* A row's outputs must have the same bits alone and beside others. The list of a single row is its
 * ids in ascending order. */
ARENA_TEST(a_row_does_not_depend_on_the_others)
{
    enum { ROWS = 8 };
    static const char *const options[] = {
        "k=1540 experts=64 experts_used=6 norm=rms shared=gated normed=1",
        "k=300 experts=40 experts_used=9 gating=sigmoid choice_bias=add groups=4 groups_used=2",
        ("k=96 experts=300 experts_used=10 gating=softmax_of_chosen bias=add scale=3 "
         "expert_scale=input logit_scale=0.1"),
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        router *all = router_new(a, arena_format(a, "weights=f32 m=8 %s", options[i]));
        router *one = router_new(a, arena_format(a, "weights=f32 %s", options[i]));
        size_t u = (size_t)all->on->in.shape.experts_used, of_row = u + (i == 0);
        size_t x_bytes = all->on->trial.params[X].size / ROWS;
        choose(all);
        expect_sound(all);
        for (size_t p = W, input = 0; p < one->on->trial.param_count; p++)
            if (one->on->trial.params[p].param.kind == PARAM_IN)
                put_input(&one->on->trial, input++, all->on->trial.params[p].content.bytes);
        for (size_t v = 0; v < ROWS; v++) {
            put_input(&one->on->trial, OF_X,
                      (const char *)all->on->trial.params[X].content.bytes + v * x_bytes);
            choose(one);
            expect_sound(one);
            assert_memory_equal(one->ids, all->ids + v * u, u * sizeof *one->ids);
            assert_memory_equal(one->weights, all->weights + v * of_row,
                                of_row * sizeof *one->weights);
        }
    }
}

/* The reference must be certain of nearly all ids of ordinary inputs; otherwise wrong ids would
 * pass. */
ARENA_TEST(the_reference_is_certain_of_most_ids)
{
    static const char *const texts[] = {
        "weights=f32 k=2048 experts=128 experts_used=8 m=8 norm=rms",
        "weights=f32 k=256 experts=512 experts_used=10 m=8",
        "weights=q8_0 k=512 experts=64 experts_used=6 m=8 gating=sigmoid",
        ("weights=f32 k=512 experts=256 experts_used=8 m=8 gating=sigmoid choice_bias=add groups=8 "
         "groups_used=4"),
        "weights=f16 k=512 experts=160 experts_used=6 m=8 groups=8 groups_used=3",
        "weights=f32 k=720 experts=32 experts_used=4 m=8 gating=softmax_of_chosen bias=add",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        router *r = router_new(a, texts[i]);
        uint64_t count = r->on->trial.params[IDS].values;
        ref_value *values = arena_alloc(a, count * sizeof *values);
        unsigned in_doubt = 0;
        ref_moe_route(&r->on->trial.problem, IDS, 0, count, values);
        for (uint64_t j = 0; j < count; j++)
            in_doubt += isinf(values[j].magnitude) ? 1 : 0;
        assert_true(in_doubt * 20 <= count);
    }
}

ARENA_TEST(faults_in_routing_are_found)
{
    static const struct {
        const char *text;
        line_edit edit;
    } faults[] = {
        /* the order, and the removal of chosen experts */
        { "weights=f32 k=96 experts=40 experts_used=5",
          { "setp.gt.u32", "", 3, "setp.lt.u32 $1, $2, $3;" } },
        { "weights=f32 k=96 experts=40 experts_used=5", { "selp.u32", "", 5, "mov.u32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 gating=sigmoid",
          { "setp.lt.u32", "8;", 0, "setp.le.u32 $1, $2, 8;" } },
        /* sums, their addends and their factors */
        { "weights=f32 k=96 experts=40 experts_used=5",
          { "rcp.rn.f32", "", 1, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 normed=1",
          { "div.rn.f32", "", 1, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 m=2 norm=rms",
          { "mul.rn.f32", "", 1, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 shared=gated",
          { "neg.f32", "", 1, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 logit_scale=0.3",
          { "mul.rn.f32", "", 1, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 expert_scale=input normed=1",
          { "mul.rn.f32", "", 0, "mov.f32 $1, $2;" } },
        { "weights=f32 k=96 experts=40 experts_used=5 shared=gated shared_scale=0.5",
          { "mul.rn.f32", "", 0, "mov.f32 $1, $2;" } },
        /* blocks that are not synchronized, or do not reset the counter */
        { "weights=f32 k=96 experts=40 experts_used=5 m=2", { "bar.sync", "", 1, "" } },
        { "weights=f32 k=2048 experts=12 experts_used=5 m=2", { "bar.sync", "", 1, "" } },
        { "weights=f32 k=2048 experts=12 experts_used=5 m=2", { "bar.sync", "", 2, "" } },
        { "weights=f32 k=2048 experts=12 experts_used=5 m=2", { "bar.sync", "", 3, "" } },
        { "weights=f32 k=96 experts=40 experts_used=5",
          { "atom.acq_rel.gpu.global.inc.u32", "", 1,
            "atom.acq_rel.gpu.global.inc.u32 $1, $2, 40;" } },
        { "weights=f32 k=96 experts=40 experts_used=5",
          { "atom.acq_rel.gpu.global.inc.u32", "", 1,
            "atom.relaxed.gpu.global.inc.u32 $1, $2, $3;" } },
        /* the list */
        { "weights=f32 k=96 experts=12 experts_used=5 m=3", { "bar.sync", "", 3, "" } },
        { "weights=f32 k=96 experts=12 experts_used=5 m=3", { "bar.sync", "", 4, "" } },
        { "weights=f32 k=96 experts=12 experts_used=5 m=3", { "st.global.v4.u32", "", 1, "" } },
        { "weights=f32 k=96 experts=12 experts_used=5 m=3",
          { "setp.le.u32", "", 1, "setp.lt.u32 $1, $2, $3;" } },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_fault_found(a, &router_new(a, faults[i].text)->on->kernel, &faults[i].edit);
}
