/* Every family but attention (see test_attention.c) on every device: golden data, sizes at the
 * edges, sizes given at run time, inputs of every kind. A new family in gen/registry.c is tested
 * without a line here: its keys say what can vary, its formats which golden data is its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/golden.h"
#include "kernel/suite.h"
#include "ref/quant.h"

enum { OTHER_SM_COUNT = 2 };

static bool has_key(const family *f, const char *name)
{
    return family_key(f, name) != NULL;
}

/* Instance, kernel and a run on random data, with the words of text. Does nothing where the family
 * has no such keys. */
static void check_text(arena *a, const subject *s, const char *text, fill_kind kind)
{
    instance in;
    if (!suite_instance(a, s->family, text, &in))
        return;
    kernel k = suite_kernel(a, &in);
    trial_setup setup = suite_setup(&in, s->device);
    setup.kind = kind;
    trial t = trial_prepare(a, &in, &setup);
    expect_right(suite_run(a, s->device, &k, &t, NULL, NULL));
}

/* A key's smallest value times a factor, as "k=512"; empty where the family has no such key. */
static const char *scaled(arena *a, const family *f, const char *name, int64_t factor)
{
    const key *k = family_key(f, name);
    int64_t unit = k && k->multiple_of > 1 ? k->multiple_of : 1;
    return k ? arena_format(a, "%s=%lld ", name, (long long)(unit * factor)) : "";
}

/* "k=… n=… " in multiples of what the family takes: a text for GEMVs and quantizers. */
static const char *sizes(arena *a, const family *f, int64_t k, int64_t n)
{
    return arena_format(a, "%s%s", scaled(a, f, "k", k), scaled(a, f, "n", n));
}

static void is_right_at_the_edges(arena *a, const subject *s)
{
    const family *f = s->family;
    static const struct {
        int64_t k, n; /* k in blocks */
    } edges[] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 3, 33 }, { 5, 7 }, { 11, 3 }, { 16, 64 } };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check_text(a, s, sizes(a, f, edges[i].k, edges[i].n), FILL_NORMAL);
    for (int warps = 1; warps <= 8; warps++)
        for (int64_t k = 1; k <= 9; k += 4)
            check_text(a, s, arena_format(a, "%snum_warps=%d", sizes(a, f, k, 3), warps),
                       FILL_NORMAL);
    if (has_key(f, "num_warps")) {
        int64_t most = family_key(f, "num_warps")->max;
        check_text(a, s, arena_format(a, "%snum_warps=%lld", sizes(a, f, 33, 2), (long long)most),
                   FILL_NORMAL);
    }
    static const char *const added[] = { "bias=add", "residual=add", "bias=add residual=add",
                                         "rows_per_warp=1", "rows_per_warp=1 bias=add" };
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        for (int64_t k = 1; k <= 40; k += 13)
            check_text(a, s, arena_format(a, "%s%s", sizes(a, f, k, 5), added[i]), FILL_NORMAL);
    for (int64_t m = has_key(f, "m") ? family_key(f, "m")->min : 9; m <= 8; m++)
        check_text(a, s, arena_format(a, "%sm=%lld", sizes(a, f, 3, 5), (long long)m), FILL_NORMAL);
    for (int outputs = 1; outputs <= 8; outputs++)
        for (int64_t n = 1; n <= 9; n += 4)
            check_text(a, s, arena_format(a, "%soutputs_per_block=%d", sizes(a, f, 33, n), outputs),
                       FILL_NORMAL);
    static const char *const epsilons[] = { "1e-6", "0.125", "1e-30" };
    for (size_t i = 0; i < sizeof epsilons / sizeof *epsilons; i++)
        check_text(a, s, arena_format(a, "%sepsilon=%s", sizes(a, f, 5, 3), epsilons[i]),
                   FILL_TINY);
}

static int one_to(random_source *r, uint64_t most)
{
    return 1 + (int)random_below(r, most);
}

static const char *random_text(arena *a, const family *f, random_source *r)
{
    strbuf text = strbuf_new(a);
    int k = one_to(r, 20), n = one_to(r, 40);
    strbuf_put(&text, sizes(a, f, k, n));
    if (has_key(f, "num_warps"))
        strbuf_format(&text, "num_warps=%d ", one_to(r, 8));
    if (has_key(f, "m")) {
        int fewest = (int)family_key(f, "m")->min;
        strbuf_format(&text, "m=%d ", fewest - 1 + one_to(r, (uint64_t)(9 - fewest)));
    }
    if (has_key(f, "dims") && random_below(r, 2))
        strbuf_put(&text, "dims=dynamic");
    return text.text;
}

/* PTXGEN_TEST_SEED=NUMBER tries others. */
static void is_right_at_random_sizes(arena *a, const subject *s)
{
    enum { RUNS = 20 };
    const char *seed = getenv("PTXGEN_TEST_SEED");
    random_source r = { seed ? strtoull(seed, NULL, 10) : 1 };
    for (int i = 0; i < RUNS; i++)
        check_text(a, s, random_text(a, s->family, &r), (fill_kind)random_below(&r, FILL_KINDS));
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check_text(a, s, sizes(a, s->family, 3, 5), (fill_kind)kind);
}

/* The sizes of the run as keys of another instance with static dims would have them. */
static void run_dynamic(arena *a, const subject *s, const char *built, const char *run)
{
    instance in, sizes_of_run;
    if (!suite_instance(a, s->family, arena_format(a, "%sdims=dynamic", built), &in))
        return;
    suite_instance(a, s->family, run, &sizes_of_run);
    kernel k = suite_kernel(a, &in);
    for (int64_t sm_count = 1; sm_count <= OTHER_SM_COUNT; sm_count++) {
        trial_setup setup = { .shape = sizes_of_run.shape, .sm_count = sm_count, .seed = 2 };
        trial t = trial_prepare(a, &in, &setup);
        expect_right(suite_run(a, s->device, &k, &t, NULL, NULL));
    }
}

static void is_right_for_sizes_given_at_run_time(arena *a, const subject *s)
{
    const family *f = s->family;
    static const struct {
        int64_t k, n;
    } runs[] = { { 1, 1 }, { 2, 3 }, { 7, 33 }, { 4, 50 } };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *run = sizes(a, f, runs[i].k, runs[i].n);
        run_dynamic(a, s, "", run);
        run_dynamic(a, s, sizes(a, f, 4, 8), run);
    }
}

static const char *golden_name(format f)
{
    return f == FORMAT_Q4_K ? "q4_K" : f == FORMAT_Q6_K ? "q6_K" : formats[f].name;
}

/* Quantized activations are held tightly to the result over the same activations; that it is the
 * right one of the f32 activations can only be asked loosely. */
static void check_loosely(arena *a, const trial *t, const void *output, const double *expected)
{
    enum { PARTS = 50 };
    const float *y = output;
    uint64_t count = t->params[0].values;
    ref_value *values = arena_alloc(a, count * sizeof *values);
    t->instance->family->reference(&t->problem, 0, 0, count, values);
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)y[i] - expected[i]) <= values[i].magnitude / PARTS))
            fail_msg("%s: y[%llu] is %g, far from %g, the result of f32 activations",
                     t->instance->name, (unsigned long long)i, (double)y[i], expected[i]);
}

/* Golden inputs and the result that belongs to them: matrices first, then x, then with_gamma. */
typedef struct golden_gemv {
    const char *matrices[2];
    bool with_gamma;
    const char *result; /* of the first output, without the endings .y.f64 and .y_q8.f64 */
} golden_gemv;

static void check_golden_gemv(arena *a, const subject *s, const golden_gemv *data)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    const family *f = s->family;
    int32_t at_once = has_key(f, "m") ? d->m : 1;
    const char *m = has_key(f, "m") ? arena_format(a, "m=%d", d->m) : "";
    instance in;
    suite_instance(a, f, arena_format(a, "k=%d n=%d %s", d->k, d->n, m), &in);
    kernel k = suite_kernel(a, &in);

    bool quantized = f->activations == FORMAT_Q8_1;
    const char *x = golden(a, quantized ? "x.q8_1.bin" : "x.f32", 0);
    const double *y = golden(a, arena_format(a, "%s.y.f64", data->result), 0);
    const double *expected =
        quantized ? golden(a, arena_format(a, "%s.y_q8.f64", data->result), 0) : y;
    if (f->reference == ref_gemv_quantizing ||
        f->reference ==
            ref_gate_up_swiglu_quantizing) /* d in f32: golden data has it in f16 only */
        expected = NULL;

    trial_setup setup = suite_setup(&in, s->device);
    trial t = trial_prepare(a, &in, &setup);
    size_t inputs = 0;
    for (; inputs < 2 && data->matrices[inputs]; inputs++)
        put_input(&t, inputs,
                  golden(a, arena_format(a, "%s.weights.bin", data->matrices[inputs]), 0));
    if (data->with_gamma)
        put_input(&t, inputs + 1, golden(a, "rmsnorm.gamma.f32", 0));
    for (int32_t i = 0; i < d->m; i += at_once) {
        put_input(&t, inputs, x + format_bytes(f->activations, (uint64_t)(i * d->k)));
        const void *output;
        expect_right(
            suite_run(a, s->device, &k, &t, expected ? expected + i * d->n : NULL, &output));
        check_loosely(a, &t, output, y + i * d->n);
    }
}

static void gemv_of_golden_data(arena *a, const subject *s)
{
    const char *name = golden_name(s->family->weights);
    check_golden_gemv(a, s, &(golden_gemv){ .matrices = { name }, .result = name });
}

/* Each matrix comes first once, since golden results are those of the first output. */
static void gemv_pair_of_golden_data(arena *a, const subject *s)
{
    static const golden_gemv sets[] = {
        { .matrices = { "q4_K", "q4_K.up" }, .result = "q4_K" },
        { .matrices = { "q4_K.up", "q4_K" }, .result = "q4_K.up" },
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        check_golden_gemv(a, s, &sets[i]);
}

static void swiglu_of_golden_data(arena *a, const subject *s)
{
    check_golden_gemv(a, s,
                      &(golden_gemv){ .matrices = { "q4_K", "q4_K.up" }, .result = "swiglu.q4_K" });
}

static void rmsnorm_of_golden_data(arena *a, const subject *s)
{
    check_golden_gemv(
        a, s,
        &(golden_gemv){ .matrices = { "q4_K" }, .with_gamma = true, .result = "rmsnorm.q4_K" });
}

/* A quantizer's output is ggml's to the bit, whichever way it rounds. */
static void expect_blocks(arena *a, const subject *s, const kernel *k, trial *t, const float *x,
                          const void *blocks)
{
    const void *output;
    put_input(t, 0, x);
    expect_right(suite_run(a, s->device, k, t, NULL, &output));
    assert_memory_equal(output, blocks, t->params[0].size);
}

static void quantize_golden_data(arena *a, const subject *s)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    float *x = golden(a, "x.f32", 0);
    const char *blocks = golden(a, "x.q8_1.bin", 0);
    instance in;
    suite_instance(a, s->family, arena_format(a, "k=%d", d->k), &in);
    kernel k = suite_kernel(a, &in);
    trial_setup setup = suite_setup(&in, s->device);
    trial t = trial_prepare(a, &in, &setup);
    size_t bytes = t.params[0].size;
    for (int32_t i = 0; i < d->m; i++)
        expect_blocks(a, s, &k, &t, x + i * d->k, blocks + (size_t)i * bytes);

    char *ties = arena_alloc(a, bytes);
    for (int32_t i = 0; i < d->k; i++)
        x[i] = i % Q8_1_VALUES ? (i % 2 ? 0.5f : -0.5f) + (float)(i / 2 % 253 - 126) : 127;
    ref_encode_q8_1(x, (uint64_t)d->k, ties);
    expect_blocks(a, s, &k, &t, x, ties);
}

static void equals_golden_data(arena *a, const subject *s)
{
    static void (*const checks[OP_COUNT])(arena *, const subject *) = {
        [OP_GEMV] = gemv_of_golden_data,         [OP_QUANTIZE] = quantize_golden_data,
        [OP_GATE_UP] = gemv_pair_of_golden_data, [OP_GATE_UP_SWIGLU] = swiglu_of_golden_data,
        [OP_KV] = gemv_pair_of_golden_data,      [OP_RMSNORM_GEMV] = rmsnorm_of_golden_data,
    };
    checks[s->family->op](a, s);
}

static bool is_no_attention(const family *f)
{
    return !has_key(f, "head_dim");
}

int main(void)
{
    static const suite_check checks[] = {
        { "equals_golden_data", equals_golden_data, NULL, false },
        { "is_right_at_the_edges", is_right_at_the_edges, NULL, false },
        { "is_right_at_random_sizes", is_right_at_random_sizes, NULL, false },
        { "is_right_for_inputs_of_every_kind", is_right_for_inputs_of_every_kind, NULL, false },
        { "is_right_for_sizes_given_at_run_time", is_right_for_sizes_given_at_run_time, "dims",
          false },
    };
    return suite_main("kernels", is_no_attention, checks, sizeof checks / sizeof *checks);
}
