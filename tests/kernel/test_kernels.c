/* Every family but attention (see test_attention.c) on every device: golden data, edge sizes, sizes
 * given at run time, inputs of every kind. A new family in kernel/families.def is tested without a
 * line here: its keys tell what can vary, its formats which golden data applies. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "golden/golden.h"
#include "kernel/suite.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { OTHER_SM_COUNT = 2 };
static const size_t ANY_ROW = SIZE_MAX; /* a row that runs in every tier */

static bool has_key(const family *f, const char *name)
{
    return family_key(f, name) != NULL;
}

/* Runs the kernel of an instance on random data. Does nothing if the family lacks a key, if another
 * format makes this run, or if the tier normal skips this row. */
static void check_row(arena *a, const subject *s, size_t row, const char *text, fill_kind kind)
{
    instance in;
    if (!suite_instance(a, s->family, text, &in) || !suite_takes_run(s) ||
        !(s->shared || row == ANY_ROW || test_takes_row(row, THIRD)))
        return;
    expect_filled_right(a, s->device, &in, kind);
}

static void check_text(arena *a, const subject *s, const char *text, fill_kind kind)
{
    check_row(a, s, ANY_ROW, text, kind);
}

/* Returns a key's smallest value times a factor, such as "k=512 ", or "" if the family has no such
 * key. */
static const char *scaled(arena *a, const subject *s, const char *name, int64_t factor)
{
    const key *k = family_key(s->family, name);
    int64_t unit = k ? suite_multiple(a, s->family, s->weights, k) : 1;
    return k ? arena_format(a, "%s=%lld ", name, (long long)(unit * factor)) : "";
}

/* Sets n experts and uses somewhat more than half of them. Families with tiles of rows have at most
 * 9, each with its own tile. */
static const char *experts(arena *a, const subject *s, int64_t n)
{
    n = s->family->halves && n > 9 ? 9 : n;
    return arena_format(a, "%s%s", scaled(a, s, "experts", n),
                        scaled(a, s, "experts_used", n < 60 ? n / 2 + 1 : 30));
}

/* Keeps tiles small; test_gemm.c has larger ones. */
static const char *rows_of_tile(const subject *s)
{
    const family *f = s->family;
    return !f->halves || !has_key(f, "m") ? "" : has_key(f, "experts") ? "m=5 " : "m=20 ";
}

/* Returns a text such as "weights=… k=… n=… ", with k and n in units of the family's multiples. */
static const char *sizes(arena *a, const subject *s, int64_t k, int64_t n)
{
    return arena_format(a, "%s%s%s%s%s%s", s->weights, rows_of_tile(s), scaled(a, s, "k", k),
                        scaled(a, s, "n", n), scaled(a, s, "n_kv", n / 2 + 1), experts(a, s, n));
}

/* Returns the largest num_warps that the family accepts with these keys. */
static long long most_warps(arena *a, const family *f, const char *keys)
{
    const char *blamed;
    instance in = suite_made(a, f, "%s", keys);
    in.num_warps = family_key(f, "num_warps")->max;
    while (f->check && f->check(&in, a, &blamed))
        in.num_warps--;
    return in.num_warps;
}

/* Checks option i with size j. The tier normal runs each option with some sizes. */
static void check_pair(arena *a, const subject *s, size_t i, size_t j, const char *text)
{
    check_row(a, s, i + j, text, FILL_NORMAL);
}

static void is_right_at_the_edges(arena *a, const subject *s)
{
    const family *f = s->family;
    static const struct {
        int64_t k, n; /* k in units of its multiple */
    } edges[] = { { 1, 1 }, { 1, 2 }, { 2, 1 }, { 3, 33 }, { 5, 7 }, { 11, 3 }, { 16, 64 } };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check_text(a, s, sizes(a, s, edges[i].k, edges[i].n), FILL_NORMAL);
    for (int warps = 1; warps <= 8; warps++)
        for (int64_t k = 1; k <= 9; k += 4)
            check_pair(a, s, (size_t)warps, (size_t)k / 4,
                       arena_format(a, "%snum_warps=%d", sizes(a, s, k, 3), warps));
    if (has_key(f, "num_warps")) {
        const char *wide = sizes(a, s, 33, 2);
        check_text(a, s, arena_format(a, "%snum_warps=%lld", wide, most_warps(a, f, wide)),
                   FILL_NORMAL);
    }
    static const char *const added[] = {
        "bias=add",
        "residual=add",
        "scale=59.866518188 m=2",
        "bias=add residual=add",
        "rows_per_warp=1",
        "rows_per_warp=1 bias=add",
        "norm=rms",
        "norm=rms epsilon=0.125 m=3",
        "norm=rms num_warps=1 m=2",
        "activation=gelu",
        "activation=swiglu_oai",
        "activation=swiglu_oai norm=rms m=2",
        "activation=gelu norm=rms bias=add m=3",
        "activation=gelu_erf m=2",
        "activation=relu bias=add",
        "activation=relu2 norm=rms m=3",
        "limit=0.25 scaled=tensor m=2",
        "epilogue=gelu bias=add scaled=tensor m=2",
        "epilogue=xielu times=rows norm=rms m=3",
        "norm=rms bias=add m=8",
        "scale=0.22",
        "scale=0.22 bias=add residual=add norm=rms m=3",
        "scaled=tensor scale=0.22 bias=add residual=add norm=rms m=3",
        "scaled=tensor",
        "softcap=30",
        "softcap=0.25 bias=add scale=2 residual=add",
    };
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        for (int64_t k = 1; k <= 40; k += 13)
            check_pair(a, s, i, (size_t)k / 13,
                       arena_format(a, "%s%s", sizes(a, s, k, 5), added[i]));
    for (int64_t m = has_key(f, "m") ? family_key(f, "m")->min : 9; m <= 8; m++)
        check_text(a, s, arena_format(a, "%sm=%lld", sizes(a, s, 3, 5), (long long)m), FILL_NORMAL);
    for (int outputs = 1; outputs <= 8; outputs++)
        for (int64_t n = 1; n <= 9; n += 4)
            check_pair(a, s, (size_t)outputs, (size_t)n / 4,
                       arena_format(a, "%soutputs_per_block=%d", sizes(a, s, 33, n), outputs));
    static const char *const epsilons[] = { "1e-6", "0.125", "1e-30" };
    for (size_t i = 0; i < sizeof epsilons / sizeof *epsilons; i++)
        check_text(a, s, arena_format(a, "%sepsilon=%s", sizes(a, s, 5, 3), epsilons[i]),
                   FILL_TINY);
}

/* Q, K and V, or gate and up, may have different formats. Each format is combined with others. */
static void is_right_with_formats_side_by_side(arena *a, const subject *s)
{
    enum { STRIDES = 3 };
    static const int64_t strides[STRIDES] = { 1, 5, 9 };
    bool third = has_key(s->family, "weights_v");
    if (!third && !has_key(s->family, "weights_u"))
        return;
    instance in = suite_made(a, s->family, "%sk=768 n=1", s->weights);
    int64_t own = instance_weights_index(instance_weights(&in)), all = 0;
    while (weights_choices[all].word)
        all++;
    for (int i = 0; i < STRIDES; i++) {
        const char *second = weights_choices[(own + strides[i]) % all].word;
        const char *last = weights_choices[(own + 2 * strides[i]) % all].word;
        const char *formats_of =
            arena_format(a, "%sweights_%s=%s %s", s->weights, third ? "k" : "u", second,
                         third ? arena_format(a, "weights_v=%s ", last) : "");
        check_text(a, s, arena_format(a, "%sk=768 n=5", formats_of), FILL_NORMAL);
        check_text(a, s, arena_format(a, "%sk=1280 n=33 norm=rms bias=add m=3", formats_of),
                   FILL_OUTLIERS);
        /* Some blocks have rows of all matrices. */
        check_text(a, s, arena_format(a, "%sk=768 n=50 norm=rms num_warps=2", formats_of),
                   FILL_NORMAL);
        if (third) {
            check_text(a, s,
                       arena_format(a, "%sk=768 n=50 n_v=9 scaled=tensor bias=add m=2", formats_of),
                       FILL_NORMAL);
            check_text(a, s,
                       arena_format(a, "%sk=768 n=50 n_v=0 scaled=tensor bias=add m=2", formats_of),
                       FILL_NORMAL);
        }
    }
}

static int one_to(random_source *r, uint64_t most)
{
    return 1 + (int)random_below(r, most);
}

static const char *random_text(arena *a, const subject *s, random_source *r)
{
    const family *f = s->family;
    strbuf text = strbuf_new(a);
    int k = one_to(r, has_key(f, "experts") ? 7 : 20), n = one_to(r, 40);
    strbuf_put(&text, sizes(a, s, k, n));
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

/* PTXGEN_TEST_SEED=NUMBER selects other sizes. */
static void is_right_at_random_sizes(arena *a, const subject *s)
{
    enum { RUNS = 20 };
    const char *seed = getenv("PTXGEN_TEST_SEED");
    random_source r = { seed ? strtoull(seed, NULL, 10) : 1 };
    for (size_t i = 0; i < RUNS; i++)
        check_row(a, s, i, random_text(a, s, &r), (fill_kind)random_below(&r, FILL_KINDS));
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check_text(a, s, sizes(a, s, 3, 5), (fill_kind)kind);
}

/* Runs a kernel built for some sizes, with dims = dynamic, on other sizes. */
static void run_dynamic(arena *a, const subject *s, const char *built, const char *run)
{
    instance in;
    if (!suite_instance(a, s->family, arena_format(a, "%sdims=dynamic", built), &in))
        return;
    instance sizes_of_run = suite_made(a, s->family, "%s", run);
    for (int64_t sm_count = 1; sm_count <= OTHER_SM_COUNT; sm_count++) {
        trial_setup setup = { .shape = sizes_of_run.shape, .sm_count = sm_count, .seed = 2 };
        trial t = trial_prepare(a, &in, &setup);
        expect_trial_right(a, s->device, &in, &t);
    }
}

static void is_right_for_sizes_given_at_run_time(arena *a, const subject *s)
{
    static const struct {
        int64_t k, n;
    } runs[] = { { 1, 1 }, { 2, 3 }, { 7, 33 }, { 4, 50 } };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *run = sizes(a, s, runs[i].k, runs[i].n);
        run_dynamic(a, s, "", run);
        run_dynamic(a, s, sizes(a, s, 4, 8), run);
    }
}

/* Runs a kernel built for groups of m vectors on a number of rows. */
static void run_rows(arena *a, const subject *s, const char *built, int64_t rows)
{
    instance in;
    if (!suite_instance(a, s->family, built, &in) || !suite_takes_run(s))
        return;
    trial t = suite_rows(a, &in, rows);
    expect_trial_right(a, s->device, &in, &t);
}

/* Numbers of rows: one, and some close to multiples of m. The last group may be partial. */
static void is_right_for_any_number_of_rows(arena *a, const subject *s)
{
    static const char *const around[] = {
        "", "dims=dynamic ", "norm=rms ", "bias=add residual=add ", "norm=rms residual=add ",
    };
    const key *m_key = family_key(s->family, "m");
    int64_t fewest = m_key->min;
    for (int64_t m = fewest; m <= 8; m += m == fewest ? 4 - m : 4)
        for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
            if (m_key->at_run_time && strstr(around[i], "dynamic"))
                continue; /* m is one of the dims */
            const char *built =
                arena_format(a, "%sm=%d rows=run_time %s", sizes(a, s, 3, 5), (int)m, around[i]);
            const int64_t rows[] = { 1, m - 1, m, m + 1, 2 * m + 3 };
            for (size_t r = m == 1; r < sizeof rows / sizeof *rows; r++)
                if (rows[r])
                    run_rows(a, s, built, rows[r]);
        }
}

static void check_rows_alone(arena *a, const subject *s, const char *size)
{
    enum { GROUP = 3, ROWS = 7 };
    if (!suite_takes_run(s))
        return;
    instance in = suite_made(a, s->family, "%sm=%d rows=run_time", size, GROUP);
    kernel k = suite_kernel(a, &in);
    trial all = suite_rows(a, &in, ROWS), one = suite_rows(a, &in, 1);
    const void *y_all, *y_one;
    size_t inputs = trial_input_count(a, &in);
    expect_right(suite_run(a, s->device, &k, &all, NULL, &y_all));
    for (uint64_t row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < inputs; i++) {
            bool of_rows = all.params[i + 1].size > one.params[i + 1].size;
            put_input(&one, i,
                      (const char *)all.params[i + 1].content.bytes +
                          (of_rows ? row * one.params[i + 1].size : 0));
        }
        expect_right(suite_run(a, s->device, &k, &one, NULL, &y_one));
        expect_same_bits(in.name, arena_format(a, "row %llu alone", (unsigned long long)row),
                         (const char *)y_all + row * one.params[0].size, y_one, one.params[0].size);
    }
}

/* A row must have the same bits whichever other rows there are. */
static void rows_do_not_depend_on_their_number(arena *a, const subject *s)
{
    static const int64_t rows_of_weights[] = { 5, 33, 1, 8 };
    for (int64_t i = 0; i < 4; i++)
        check_rows_alone(a, s, sizes(a, s, 3 - i % 2, rows_of_weights[i]));
}

/* Compares results of quantized activations with those of f32 activations, within a wide bound. The
 * tight comparison uses the quantized activations. */
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

/* Golden inputs with their result: matrices first, then x, then gamma if with_gamma. */
typedef struct golden_gemv {
    unsigned rows;
    const char *keys; /* keys besides k, n and m, or NULL */
    const void *matrices[MAX_MATRICES];
    bool with_gamma;
    const double *y, *y_q8; /* first output for x.f32 and for x.q8_1.bin */
} golden_gemv;

static void check_golden_gemv(arena *a, const subject *s, const golden_gemv *data)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    const family *f = s->family;
    int32_t at_once = has_key(f, "m") ? d->m : 1;
    const char *m = has_key(f, "m") ? arena_format(a, "m=%d", d->m) : "";
    instance in = suite_made(a, f, "%sk=%d n=%u %s %s", s->weights, d->k, data->rows, m,
                             data->keys ? data->keys : "");
    kernel k = suite_kernel(a, &in);

    bool quantized = f->activations == FORMAT_Q8_1;
    const char *x = golden(a, quantized ? "x.q8_1.bin" : "x.f32", 0);
    const double *expected = quantized ? data->y_q8 : data->y;
    if (instance_precision(&in) != f->activations) /* golden data has d only in f16 */
        expected = NULL;

    trial t = suite_trial(a, &in, s->device);
    size_t inputs = 0;
    for (; inputs < MAX_MATRICES && data->matrices[inputs]; inputs++)
        put_input(&t, inputs, data->matrices[inputs]);
    if (data->with_gamma)
        put_input(&t, inputs + 1, golden(a, "rmsnorm.gamma.f32", 0));
    for (int32_t i = 0; i < d->m; i += at_once) {
        put_input(&t, inputs, x + format_bytes(f->activations, (uint64_t)(i * d->k)));
        const void *output;
        int64_t first = (int64_t)i * data->rows;
        expect_right(suite_run(a, s->device, &k, &t, expected ? expected + first : NULL, &output));
        check_loosely(a, &t, output, data->y + first);
    }
}

/* Returns the number of ggml's matrices in a format: one quantized, one of random bytes. */
static int golden_matrices(format weights)
{
    return formats[weights].gguf_type == NO_GGUF_TYPE ? 0 : weights == FORMAT_F32 ? 1 : 2;
}

/* Runs weights quantized by ggml, then blocks of random bytes. */
static void gemv_of_golden_data(arena *a, const subject *s)
{
    instance in = suite_made(a, s->family, "%sk=256 n=1", s->weights);
    format weights = instance_weights(&in);
    for (int random = 0; random < golden_matrices(weights); random++) {
        golden_matrix g = golden_matrix_of(a, weights, random);
        check_golden_gemv(
            a, s,
            &(golden_gemv){ .rows = g.rows, .matrices = { g.weights }, .y = g.y, .y_q8 = g.y_q8 });
    }
}

/* Q and V have weights quantized by ggml, K blocks of random bytes. */
static void qkv_of_golden_data(arena *a, const subject *s)
{
    enum { MATRICES = 3 };
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    instance in = suite_made(a, s->family, "%sk=256 n=1", s->weights);
    format weights = instance_weights(&in);
    if (!golden_matrices(weights))
        return;
    golden_matrix g[MATRICES];
    unsigned rows = UINT_MAX;
    golden_gemv data = { 0 };
    for (int i = 0; i < MATRICES; i++) {
        g[i] = golden_matrix_of(a, weights, i == 1 && weights != FORMAT_F32);
        data.matrices[i] = g[i].weights;
        rows = g[i].rows < rows ? g[i].rows : rows;
    }
    double *y = arena_alloc(a, (size_t)d->m * MATRICES * rows * sizeof *y);
    for (size_t v = 0, at = 0; v < (size_t)d->m; v++)
        for (int i = 0; i < MATRICES; i++)
            for (unsigned row = 0; row < rows; row++)
                y[at++] = g[i].y[v * g[i].rows + row];
    data.rows = rows;
    data.keys = arena_format(a, "n_kv=%u", rows);
    data.y = y;
    check_golden_gemv(a, s, &data);
}

/* Checks decoded weights by products with vectors that have a single 1. weights has `blocks` blocks
 * of 256 weights; NULL means random ones of a kind. */
static void check_decoded(arena *a, const subject *s, unsigned blocks, const void *weights,
                          fill_kind kind)
{
    enum { K = 256, M = 8 };
    instance in = suite_made(a, s->family, "%sk=%d n=%u m=%d", s->weights, K, blocks, M);
    kernel k = suite_kernel(a, &in);
    trial_setup setup = suite_setup(&in, s->device);
    setup.kind = kind;
    trial t = trial_prepare(a, &in, &setup);
    if (weights)
        put_input(&t, 0, weights);
    float *decoded = arena_alloc(a, (size_t)blocks * K * sizeof *decoded);
    problem_read(&t.problem, 0, 0, (uint64_t)blocks * K, decoded);
    for (unsigned first = 0; first < K; first += M) {
        float x[M][K] = { { 0 } };
        for (unsigned v = 0; v < M; v++)
            x[v][first + v] = 1;
        put_input(&t, 1, x);
        const void *output;
        const uint8_t *written;
        expect_right(suite_launch(a, s->device, &k, &t, &output, &written));
        const float *y = output;
        for (unsigned i = 0; i < M * blocks; i++) {
            float w = decoded[i % blocks * K + first + i / blocks];
            if (!(y[i] == w))
                fail_msg("%s: weight %u of block %u is %a, not %a", in.name, first + i / blocks,
                         i % blocks, (double)y[i], (double)w);
        }
    }
}

/* A GEMV without rounding must decode each weight to ggml's bits. */
static void decodes_every_weight(arena *a, const subject *s)
{
    const family *f = s->family;
    if (f->quantizes || family_takes_rows(f) || f->halves || f->op != OP_GEMV)
        return;
    instance in = suite_made(a, s->family, "%sk=256 n=1", s->weights);
    format weights = instance_weights(&in);
    for (int random = 0; random < golden_matrices(weights); random++) {
        golden_matrix g = golden_matrix_of(a, weights, random);
        check_decoded(a, s, 4 * g.rows, g.weights, FILL_NORMAL); /* rows of 1024 weights */
    }
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check_decoded(a, s, 4, NULL, (fill_kind)kind);
}

/* Checks one output; `result` names its files without .y.f64 and .y_q8.f64. */
static void check_golden_result(arena *a, const subject *s, const char *first, const char *second,
                                bool with_gamma, const char *result)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    golden_gemv data = { .rows = (unsigned)d->n, .with_gamma = with_gamma };
    data.matrices[0] = golden(a, arena_format(a, "%s.weights.bin", first), 0);
    if (second)
        data.matrices[1] = golden(a, arena_format(a, "%s.weights.bin", second), 0);
    data.y = golden(a, arena_format(a, "%s.y.f64", result), 0);
    if (s->family->activations == FORMAT_Q8_1)
        data.y_q8 = golden(a, arena_format(a, "%s.y_q8.f64", result), 0);
    check_golden_gemv(a, s, &data);
}

/* Golden results are those of the first output, so that each matrix is the first once. */
static void gemv_pair_of_golden_data(arena *a, const subject *s)
{
    check_golden_result(a, s, "q4_K", "q4_K.up", false, "q4_K");
    check_golden_result(a, s, "q4_K.up", "q4_K", false, "q4_K.up");
}

/* Golden pairs of matrices exist only for Q4_K. */
static void swiglu_of_golden_data(arena *a, const subject *s)
{
    if (!family_key(s->family, "weights") || strcmp(s->weights, "weights=q4_k ") == 0)
        check_golden_result(a, s, "q4_K", "q4_K.up", false, "swiglu.q4_K");
}

static void rmsnorm_of_golden_data(arena *a, const subject *s)
{
    check_golden_result(a, s, "q4_K", NULL, true, "rmsnorm.q4_K");
}

/* Checks that a quantizer's output has ggml's bits, also for ties. */
static void expect_blocks(arena *a, const subject *s, const kernel *k, trial *t, const float *x,
                          const void *blocks)
{
    const void *output;
    put_input(t, 0, x);
    expect_right(suite_run(a, s->device, k, t, NULL, &output));
    expect_same_bits(k->instance->name, "blocks of ggml", output, blocks, t->params[0].size);
}

static void quantize_golden_data(arena *a, const subject *s)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    float *x = golden(a, "x.f32", 0);
    const char *blocks = golden(a, "x.q8_1.bin", 0);
    instance in = suite_made(a, s->family, "k=%d", d->k);
    kernel k = suite_kernel(a, &in);
    trial t = suite_trial(a, &in, s->device);
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
        [OP_QKV] = qkv_of_golden_data,
    };
    if (checks[s->family->op] && !family_takes_rows(s->family)) /* golden x is only f32 or q8_1 */
        checks[s->family->op](a, s);
}

static bool is_no_attention(const family *f)
{
    return !has_key(f, "head_dim") && !has_key(f, "latent");
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(equals_golden_data),
        CHECK_WITH(decodes_every_weight, .key = "weights"),
        CHECK(is_right_at_the_edges),
        CHECK(is_right_with_formats_side_by_side),
        CHECK(is_right_at_random_sizes),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK_WITH(is_right_for_any_number_of_rows, .key = "rows"),
        CHECK_WITH(rows_do_not_depend_on_their_number, .key = "rows"),
        CHECK_WITH(is_right_for_sizes_given_at_run_time, .key = "dims"),
    };
    suite_list(__FILE__, suite_weights, EACH, is_no_attention, checks,
               sizeof checks / sizeof *checks);
}
