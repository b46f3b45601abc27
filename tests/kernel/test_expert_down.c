/* Down-projections of experts. These must hold:
 * - A row's result does not depend on other rows, on the grid or on the distribution of the work.
 * - A NaN or infinity reaches only the rows that use it.
 * - Experts that no row uses, or that do not exist, are not read.
 */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/formula.h"
#include "golden/golden.h"
#include "kernel/suite.h"

enum { ROWS = 8, USED = 3, EXPERTS = 7, SHARED = 768, N = 29 };

/* Some experts are used by all rows, by some, or by one; expert 5 is unused. */
static const uint32_t chosen[ROWS][USED] = {
    { 4, 0, 2 }, { 0, 4, 1 }, { 2, 4, 0 }, { 6, 0, 4 },
    { 4, 3, 0 }, { 2, 1, 4 }, { 1, 4, 2 }, { 4, 2, 1 },
};

static size_t input_named(const trial *t, const char *name, size_t *at)
{
    size_t i = 0, input = 0;
    for (; strcmp(t->params[i].param.name, name) != 0; i++)
        input += t->params[i].param.kind == PARAM_IN;
    *at = i;
    return input;
}

static void *content(const trial *t, const char *name)
{
    size_t at;
    input_named(t, name, &at);
    return t->params[at].content.bytes;
}

/* Writes the list of the rows from `first` on. Expert `renamed` is listed as `id`. */
static void put_list(trial *t, size_t first, uint32_t renamed, uint32_t id)
{
    uint32_t rows = (uint32_t)t->problem.shape.m;
    uint32_t *list = content(t, "list"), *entry = list + EXPERT_LIST_HEAD;
    size_t at;
    input_named(t, "list", &at);
    memset(list, 0xff, t->params[at].size);
    memset(list, 0, EXPERT_LIST_HEAD * sizeof *list);
    for (uint32_t e = 0; e < EXPERTS; e++) {
        uint32_t count = 0;
        for (uint32_t word = 0; word < rows * USED; word++)
            if (chosen[first + word / USED][word % USED] == e)
                entry[EXPERT_FIRST_ROW + count++] = word;
        if (!count)
            continue;
        entry[EXPERT_ID] = e == renamed ? id : e;
        entry[EXPERT_ROWS] = count;
        entry += EXPERT_FIRST_ROW + rows;
        list[0]++;
    }
}

typedef struct run {
    arena *arena;
    instance in;
    kernel kernel;
    device device;
    trial trial;
    const float *y;
} run;

static run *run_new(arena *a, const family *f, const char *keys, int64_t sm_count)
{
    run *r = arena_zalloc(a, sizeof *r);
    r->arena = a;
    const char *all = arena_format(a, "n=%d experts=%d experts_used=%d %s", N, EXPERTS, USED, keys);
    if (!suite_instance(a, f, all, &r->in))
        return NULL;
    r->kernel = suite_kernel(a, &r->in);
    trial_setup setup = { .shape = r->in.shape, .sm_count = sm_count, .seed = 5 };
    r->trial = trial_prepare(a, &r->in, &setup);
    r->device = device_emulator(a);
    put_list(&r->trial, 0, EXPERTS, 0);
    return r;
}

static void run_it(run *r)
{
    const void *y;
    expect_right(suite_run(r->arena, &r->device, &r->kernel, &r->trial, NULL, &y));
    r->y = y;
}

/* Copies the inputs of the rows from `first` on. */
static void take_rows(run *r, const run *all, size_t first)
{
    static const char *const of_rows[] = { "x", "residual", "weights" };
    for (size_t i = 0; i < r->trial.param_count; i++) {
        const trial_param *p = &r->trial.params[i], *from = &all->trial.params[i];
        bool by_row = false;
        for (size_t j = 0; j < sizeof of_rows / sizeof *of_rows; j++)
            by_row = by_row || strcmp(p->param.name, of_rows[j]) == 0;
        if (p->param.kind == PARAM_IN)
            memcpy(p->content.bytes,
                   (const char *)from->content.bytes + (by_row ? first * from->size / ROWS : 0),
                   p->size);
    }
    put_list(&r->trial, first, EXPERTS, 0);
}

static void compare(arena *a, const run *all, const char *keys, size_t first, int64_t rows,
                    int64_t sm_count)
{
    run *r = run_new(a, all->in.family, arena_format(a, "%s m=%d", keys, (int)rows), sm_count);
    if (!r)
        return;
    take_rows(r, all, first);
    run_it(r);
    if (memcmp(r->y, all->y + first * N, (size_t)rows * N * sizeof *r->y) != 0)
        fail_msg("%s, rows from %zu on, %d SMs: bits differ from those of all rows", r->in.name,
                 first, (int)sm_count);
}

static void compare_all(arena *a, const family *f, const char *keys)
{
    run *all = run_new(a, f, arena_format(a, "%s m=%d", keys, ROWS), 1);
    run_it(all);
    for (int64_t m = 1; m < ROWS; m += m == 3 ? 2 : 1)
        for (size_t first = 0; first + (size_t)m <= ROWS; first += 3)
            compare(a, all, keys, first, m, 1 + (int64_t)first);
    static const char *const ways[] = { "num_warps=1", "num_warps=5 rows_per_warp=2", "passes=2",
                                        "passes=3 rows_per_warp=2" };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        compare(a, all, arena_format(a, "%s %s", keys, ways[i]), 2, 1, 1);
        compare(a, all, arena_format(a, "%s %s", keys, ways[i]), 1, 7, 2);
    }
}

static bool is_down(const family *f)
{
    return f->op == OP_EXPERT_DOWN;
}

static int64_t rows_of_warp(arena *a, const char *keys)
{
    const family *f = family_find(families, "stream_expert_down");
    instance in = suite_made(a, f, "%s n=64 num_warps=1", keys);
    return formula_value(f->launch.rows, &in, NULL);
}

/* Covers formats whose lanes hold two and four segments of 16 weights. The shared expert uses the
 * experts' lanes. */
ARENA_TEST(narrow_rows_share_a_warp)
{
    static const struct {
        const char *keys;
        int64_t rows;
    } cases[] = {
        { "weights=q6_k k=256", 4 },
        { "weights=q6_k k=512", 4 },
        { "weights=q6_k k=768", 2 },
        { "weights=q6_k k=1024 rows_per_warp=2", 4 },
        { "weights=q6_k k=1280", 1 },
        { "weights=q5_0 k=256", 2 },
        { "weights=q5_0 k=512", 2 },
        { "weights=q5_0 k=768", 1 },
        { "weights=q8_0 k=544", 1 },
        { "weights=f16 k=64", 1 },
        { "weights=q6_k weights_s=q5_0 k=512 n_shared=512", 2 },
        { "weights=q5_0 weights_s=q6_k k=512 n_shared=256", 2 },
        { "weights=q6_k weights_s=q6_k k=512 n_shared=1024", 2 },
        { "weights=q6_k weights_s=q8_0 k=512 n_shared=1024", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows = rows_of_warp(a, cases[i].keys);
        if (rows != cases[i].rows)
            fail_msg("%s: %d rows per warp, not %d", cases[i].keys, (int)rows, (int)cases[i].rows);
    }
}

/* Returns the warp instructions of a launch of 4 experts with 2^19 weights each. */
static double instructions_of(arena *a, const char *weights, int k, int rows)
{
    instance in = suite_made(a, family_find(families, "stream_expert_down"),
                             "weights=%s k=%d n=%d experts=4 experts_used=4 m=%d", weights, k,
                             (1 << 19) / k, rows);
    kernel made = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = 1, .seed = 5 };
    trial t = trial_prepare(a, &in, &setup);
    return (double)suite_count(a, &made, &t, NULL).warp_instructions;
}

/* Overhead per row makes rows of 512 weights cost up to 1.5 times as much as rows of 2048. With one
 * warp per narrow row they would cost more than twice as much. */
ARENA_TEST(narrow_rows_leave_few_lanes_idle)
{
    static const char *const weights[] = { "q4_k", "q6_k", "q8_0", "tq1_0" };
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        for (int m = 1; m <= ROWS; m += ROWS - 1) {
            double narrow = instructions_of(a, weights[i], 512, m);
            double wide = instructions_of(a, weights[i], 2048, m);
            if (narrow > 1.5 * wide)
                fail_msg("%s, m=%d: %.0f instructions, wide rows %.0f", weights[i], m, narrow,
                         wide);
        }
}

/* These are covered:
 * - lanes with two and four segments, unaligned rows, grids of values, floats
 * - rows of less than one iteration, and of several
 * - rows of half and of a quarter of a warp's lanes, with more sums than lanes
 */
ARENA_TEST(rows_have_the_same_bits_alone_and_among_others)
{
    static const char *const keys[] = {
        "weights=mxfp4 k=96 bias=add",
        "weights=q6_k k=768 bias=add residual=add",
        "weights=f16 k=520 scale=0.5",
        "weights=iq3_s weights_s=q8_0 k=256 n_shared=768",
        "weights=q4_0 weights_s=q6_k k=3104 n_shared=2304 bias=add",
        "weights=q5_0 weights_s=q6_k k=512 n_shared=256 bias=add",
        "weights=tq1_0 weights_s=q5_k k=512 n_shared=256 residual=add",
    };
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; is_down(*f) && i < sizeof keys / sizeof *keys; i++)
            compare_all(a, *f, keys[i]);
}

/* Fails the test unless exactly the rows in `nonfinite` have a NaN or infinity in each value. */
static void expect_nonfinite(const run *r, const bool nonfinite[ROWS], const char *what)
{
    for (size_t i = 0; i < (size_t)r->in.shape.m * N; i++)
        if (!isfinite(r->y[i]) != nonfinite[i / N])
            fail_msg("%s, %s: y[%zu] is %g", r->in.name, what, i, (double)r->y[i]);
}

/* Sets one value of an input to NaN and infinity. Only its row of X may be affected. */
static void check_nonfinite(run *r, const char *name, size_t element, size_t row)
{
    static const float values[] = { NAN, -NAN, INFINITY, -INFINITY };
    float *at = (float *)content(&r->trial, name) + element, usual = *at;
    bool nonfinite[ROWS] = { false };
    nonfinite[row] = true;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        *at = values[i];
        run_it(r);
        expect_nonfinite(r, nonfinite, arena_format(r->arena, "%g in %s", (double)values[i], name));
    }
    *at = usual;
}

ARENA_TEST(nan_and_infinity_stay_in_their_row)
{
    static const char *const keys[] = {
        "weights=q6_k weights_s=q8_0 k=256 n_shared=768 m=1",
        "weights=q6_k weights_s=q8_0 k=256 n_shared=768 m=8",
        "weights=f32 weights_s=q4_k k=260 n_shared=768 m=3",
        "weights=q6_k weights_s=q5_k k=256 n_shared=768 m=8",
    };
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; is_down(*f) && i < sizeof keys / sizeof *keys; i++) {
            run *r = run_new(a, *f, arena_format(a, "%s residual=add bias=add", keys[i]), 2);
            size_t row = (size_t)r->in.shape.m / 2, k = (size_t)r->in.shape.k;
            size_t of_row = USED * k + SHARED;
            check_nonfinite(r, "x", row * of_row + 7, row);
            check_nonfinite(r, "x", row * of_row + USED * k - 1, row);
            check_nonfinite(r, "x", row * of_row + USED * k + 300, row);
            check_nonfinite(r, "weights", row * (USED + 1) + 1, row);
            check_nonfinite(r, "weights", row * (USED + 1) + USED, row);
            float *residual = content(&r->trial, "residual"), usual = residual[row * N + 3];
            residual[row * N + 3] = NAN;
            run_it(r);
            for (size_t y = 0; y < (size_t)r->in.shape.m * N; y++)
                assert_int_equal(isnan(r->y[y]), y == row * N + 3);
            residual[row * N + 3] = usual;
        }
}

/* All-one bits are NaN in these formats. They fill the weights and the bias of an unused expert. */
ARENA_TEST(unused_experts_are_not_read)
{
    static const char *const keys[] = { "weights=q8_0 k=256 m=1", "weights=f16 k=256 m=8",
                                        "weights=q8_0 k=2304 m=8 " };
    static const bool none[ROWS] = { false };
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; is_down(*f) && i < sizeof keys / sizeof *keys; i++) {
            run *r = run_new(a, *f, arena_format(a, "%s bias=add", keys[i]), 2);
            size_t plane = format_bytes(instance_weights(&r->in), N * (uint64_t)r->in.shape.k);
            memset((char *)content(&r->trial, "w") + 5 * plane, 0xff, plane);
            memset((float *)content(&r->trial, "bd") + 5 * N, 0xff, N * sizeof(float));
            run_it(r);
            expect_nonfinite(r, none, "unused expert");
        }
}

/* An id out of range must make its rows NaN. Reading its weights would be an emulator fault. */
ARENA_TEST(an_expert_that_does_not_exist_makes_its_rows_nan)
{
    static const char *const keys[] = { "weights=q8_0 k=256 m=1", "weights=f32 k=256 m=3",
                                        "weights=q6_k k=2304 m=8", "weights=q6_k k=4096 m=8" };
    static const uint32_t ids[] = { EXPERTS, 1 << 30, UINT32_MAX };
    for (const family *const *f = families; *f; f++)
        for (size_t i = 0; is_down(*f) && i < sizeof keys / sizeof *keys; i++)
            for (size_t j = 0; j < sizeof ids / sizeof *ids; j++) {
                const char *passes = i == 3 ? "passes=2" : "";
                run *r = run_new(a, *f, arena_format(a, "%s bias=add %s", keys[i], passes), 2);
                bool nonfinite[ROWS] = { false };
                if (!r)
                    continue;
                put_list(&r->trial, 0, 2, ids[j]);
                for (size_t row = 0; row < ROWS; row++)
                    for (size_t slot = 0; slot < USED; slot++)
                        nonfinite[row] = nonfinite[row] || chosen[row][slot] == 2;
                run_it(r);
                expect_nonfinite(r, nonfinite, "no such expert");
            }
}
