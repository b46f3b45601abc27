/* Every family on every device: golden data, sizes at the edges, sizes given at run time, inputs of
 * every kind, sequence lengths of every kind. A new family in gen/registry.c is tested without a
 * line here: its keys say what can vary, its formats which golden data is its own.
 *
 * PTXGEN_TEST_FAMILY=NAME tests one family; PTXGEN_TEST_DEVICE=GPU only the GPU, which then has to
 * be there.
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

/* One cmocka test: a check of a family on a device. */
typedef struct subject {
    const family *family;
    device *device; /* state NULL: there is none, skip */
} subject;

enum { OTHER_SM_COUNT = 2 };

static void expect_right(const char *wrong)
{
    if (wrong)
        fail_msg("%s", wrong);
}

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

static const char *heads(arena *a, int head_dim, int num_heads, int num_kv_heads, int max_seq_len)
{
    return arena_format(a, "head_dim=%d num_heads=%d num_kv_heads=%d max_seq_len=%d ", head_dim,
                        num_heads, num_kv_heads, max_seq_len);
}

static const char *usual_text(arena *a, const family *f)
{
    return f->op == OP_ATTENTION ? heads(a, 64, 4, 2, 40) : sizes(a, f, 3, 5);
}

static void gemv_at_edges(arena *a, const subject *s)
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
    check_text(a, s, arena_format(a, "%snum_warps=32", sizes(a, f, 33, 2)), FILL_NORMAL);
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

static void attention_at_edges(arena *a, const subject *s)
{
    static const int head_dims[] = { 8, 40, 64, 72, 80, 96, 128, 200, 256 };
    for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
        check_text(a, s, heads(a, head_dims[i], 2, 1, 37), FILL_NORMAL);
    static const struct {
        int heads, kv_heads;
    } groups[] = { { 1, 1 }, { 4, 4 }, { 8, 2 }, { 7, 1 }, { 14, 2 }, { 3, 3 } };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        check_text(a, s, heads(a, 64, groups[i].heads, groups[i].kv_heads, 19), FILL_NORMAL);
    check_text(a, s, heads(a, 128, 2, 1, 1), FILL_NORMAL);
    check_text(a, s, heads(a, 64, 2, 2, 300), FILL_NORMAL);
}

static void is_right_at_the_edges(arena *a, const subject *s)
{
    (s->family->op == OP_ATTENTION ? attention_at_edges : gemv_at_edges)(a, s);
}

static int one_to(random_source *r, uint64_t most)
{
    return 1 + (int)random_below(r, most);
}

static const char *random_text(arena *a, const family *f, random_source *r)
{
    int kv_heads = one_to(r, 4), group = one_to(r, 7), head_dim = 8 * one_to(r, 32);
    if (f->op == OP_ATTENTION)
        return arena_format(a, "%sseq_len=%s",
                            heads(a, head_dim, kv_heads * group, kv_heads, one_to(r, 60)),
                            random_below(r, 2) ? "direct" : "indirect");
    strbuf text = strbuf_new(a);
    strbuf_put(&text, sizes(a, f, one_to(r, 20), one_to(r, 40)));
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

static void is_right_for_sequence_lengths(arena *a, const subject *s)
{
    static const char *const modes[] = { "direct", "indirect" };
    int64_t longest = 40;
    const int64_t lengths[] = { longest + 1, UINT32_MAX, 1LL << 31, longest, 33, 32, 31, 2, 1, 0 };
    for (size_t mode = 0; mode < 2; mode++) {
        instance in;
        const char *text = arena_format(a, "%sseq_len=%s", heads(a, 80, 4, 2, 40), modes[mode]);
        if (!suite_instance(a, s->family, text, &in))
            return;
        kernel k = suite_kernel(a, &in);
        trial_setup setup = suite_setup(&in, s->device);
        trial t = trial_prepare(a, &in, &setup);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            trial_shorten(&t, lengths[i]);
            expect_right(suite_run(a, s->device, &k, &t, NULL, NULL));
        }
    }
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check_text(a, s, usual_text(a, s->family), (fill_kind)kind);
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

static void put_golden(trial *t, size_t input, const void *bytes)
{
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.kind == PARAM_IN && input-- == 0)
            memcpy(t->params[i].bytes, bytes, t->params[i].size);
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
    if (f->reference == ref_gemv_quantizing) /* d in f32: golden data has it in f16 only */
        expected = NULL;

    trial_setup setup = suite_setup(&in, s->device);
    trial t = trial_prepare(a, &in, &setup);
    size_t inputs = 0;
    for (; inputs < 2 && data->matrices[inputs]; inputs++)
        put_golden(&t, inputs,
                   golden(a, arena_format(a, "%s.weights.bin", data->matrices[inputs]), 0));
    if (data->with_gamma)
        put_golden(&t, inputs + 1, golden(a, "rmsnorm.gamma.f32", 0));
    for (int32_t i = 0; i < d->m; i += at_once) {
        put_golden(&t, inputs, x + format_bytes(f->activations, (uint64_t)(i * d->k)));
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
    put_golden(t, 0, x);
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

static void attention_over_golden_data(arena *a, const subject *s)
{
    static const char *const sets[] = { "attn.d64", "attn.d128" };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const char *set = sets[i];
        const golden_attention_dims *d = golden(a, arena_format(a, "%s.dims.i32", set), sizeof *d);
        const int32_t *lengths = golden(a, arena_format(a, "%s.seq_lens.i32", set), 0);
        const float *q = golden(a, arena_format(a, "%s.q.f32", set), 0);
        const float *keys = golden(a, arena_format(a, "%s.k.f32", set), 0);
        const float *values = golden(a, arena_format(a, "%s.v.f32", set), 0);
        const double *expected = golden(a, arena_format(a, "%s.out.f64", set), 0);
        instance in;
        suite_instance(a, s->family,
                       heads(a, d->head_dim, d->num_heads, d->num_kv_heads, d->max_seq_len), &in);
        kernel k = suite_kernel(a, &in);
        int32_t outputs = d->num_heads * d->head_dim;
        int32_t cache = d->num_kv_heads * d->max_seq_len * d->head_dim;
        for (int32_t b = 0; b < d->batch; b++) {
            trial_setup setup = suite_setup(&in, s->device);
            setup.shape.seq_len = lengths[b];
            trial t = trial_prepare(a, &in, &setup);
            put_golden(&t, 0, q + b * outputs);
            put_golden(&t, 1, keys + b * cache);
            put_golden(&t, 2, values + b * cache);
            expect_right(suite_run(a, s->device, &k, &t, expected + b * outputs, NULL));
        }
    }
}

static void equals_golden_data(arena *a, const subject *s)
{
    static void (*const checks[OP_COUNT])(arena *, const subject *) = {
        [OP_GEMV] = gemv_of_golden_data,
        [OP_QUANTIZE] = quantize_golden_data,
        [OP_ATTENTION] = attention_over_golden_data,
        [OP_GATE_UP] = gemv_pair_of_golden_data,
        [OP_GATE_UP_SWIGLU] = swiglu_of_golden_data,
        [OP_KV] = gemv_pair_of_golden_data,
        [OP_RMSNORM_GEMV] = rmsnorm_of_golden_data,
    };
    checks[s->family->op](a, s);
}

static void with_arena(void **state, void (*check)(arena *, const subject *))
{
    const subject *s = *state;
    if (!s->device->state)
        skip();
    arena *a = arena_new();
    check(a, s);
    arena_free(a);
}

/* The checks, and the key without which one makes no sense for a family. */
#define CHECKS                                      \
    CHECK(equals_golden_data, NULL)                 \
    CHECK(is_right_at_the_edges, NULL)              \
    CHECK(is_right_at_random_sizes, NULL)           \
    CHECK(is_right_for_sequence_lengths, "seq_len") \
    CHECK(is_right_for_inputs_of_every_kind, NULL)  \
    CHECK(is_right_for_sizes_given_at_run_time, "dims")

#define CHECK(name, key)                 \
    static void run_##name(void **state) \
    {                                    \
        with_arena(state, name);         \
    }
CHECKS
#undef CHECK

static const struct {
    const char *name, *key;
    CMUnitTestFunction function;
} checks[] = {
#define CHECK(name, key) { #name, key, run_##name },
    CHECKS
#undef CHECK
};

int main(void)
{
    enum { CHECK_COUNT = sizeof checks / sizeof *checks, DEVICES = 2 };
    arena *a = arena_new();
    device devices[DEVICES] = { { 0 }, { 0 } };
    const char *why = "", *only = getenv("PTXGEN_TEST_FAMILY");
    const char *only_device = getenv("PTXGEN_TEST_DEVICE");
    device_open_emulator(a, &devices[0], &why);
    if (!device_open_cuda(a, &devices[1], &why)) {
        devices[1] = (device){ .name = "GPU" };
        print_message("# no tests on a GPU: %s\n", why);
        if (only_device)
            return 1;
    }

    VEC(struct CMUnitTest) tests = { 0 };
    for (size_t d = 0; d < DEVICES; d++)
        for (const family *const *f = families; *f; f++)
            for (size_t i = 0; i < CHECK_COUNT; i++) {
                if ((only && strcmp(only, (*f)->name) != 0) ||
                    (only_device && strcmp(only_device, devices[d].name) != 0) ||
                    (checks[i].key && !has_key(*f, checks[i].key)))
                    continue;
                subject *s = arena_alloc(a, sizeof *s);
                *s = (subject){ *f, &devices[d] };
                *VEC_PUSH(a, &tests) = (struct CMUnitTest){
                    .name = arena_format(a, "%s_%s_on_the_%s", (*f)->name, checks[i].name,
                                         devices[d].name),
                    .test_func = checks[i].function,
                    .initial_state = s,
                };
            }
    int failures = _cmocka_run_group_tests("kernels", tests.items, tests.count, NULL, NULL);
    for (size_t d = 0; d < DEVICES; d++)
        if (devices[d].state)
            devices[d].close(devices[d].state);
    arena_free(a);
    return failures;
}
