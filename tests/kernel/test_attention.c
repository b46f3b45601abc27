/* Decode attention of every family on every device.
 *
 * Errors are bounded by 2e-6 of sum p|v| where logits are of order 1. That is about 33 ulp for 16
 * chained fused multiply-adds, five shuffled additions, ex2 (2 ulp) and the sum over the positions.
 * For larger logits the bounds include the rounding error of the dot product, as
 * src/ref/attention.c derives it. The reference reads f16, bf16 and q8_0 caches as stored, so that
 * the bounds also hold for them. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "golden/golden.h"
#include "ref/half.h"
#include "kernel/suite.h"
#include "check/verify.h"

enum { LONGEST = 80, BATCH = 5 };

static bool has_key(const family *f, const char *name)
{
    return family_key(f, name) != NULL;
}

static bool is_q8_0(const char *options)
{
    return strstr(options, "kv_type=q8_0");
}

/* Makes an instance from a shape and from the options that the family has; options may be "".
 * head_dim is rounded up to the family's multiple, and to a multiple of 32 with q8_0. */
static instance make(arena *a, const family *f, int64_t head_dim, int64_t kv_heads, int64_t ratio,
                     int64_t max_seq_len, const char *options)
{
    strbuf text = strbuf_new(a);
    int64_t multiple = family_key(f, "head_dim")->multiple_of;
    multiple = is_q8_0(options) && multiple < 32 ? 32 : multiple;
    head_dim = (head_dim + multiple - 1) / multiple * multiple;
    strbuf_format(&text, "head_dim=%lld num_heads=%lld num_kv_heads=%lld max_seq_len=%lld ",
                  (long long)head_dim, (long long)(kv_heads * ratio), (long long)kv_heads,
                  (long long)max_seq_len);
    if (has_key(f, "m") && !strstr(options, "m="))
        strbuf_format(&text, "m=%d ", BATCH);
    const key *chunk_size = family_key(f, "chunk_size");
    bool chunks = chunk_size && (!chunk_size->zero_is_none || ratio > 3);
    if (chunks && !strstr(options, "chunk_size="))
        strbuf_put(&text, suite_known_keys(a, f, "chunk_size=32"));
    strbuf_put(&text, suite_known_keys(a, f, options));
    return suite_made(a, f, "%s", text.text);
}

static const int head_dims[] = { 64, 80, 96, 112, 128, 192, 256, 384, 512 };
static const int ratios[] = { 1, 3, 4, 7, 8 };
static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };
enum { HEAD_DIMS = 9, RATIOS = 5, KV_TYPES = 4, SINGLE_VALUE_TYPES = 3 };

/* Returns true if items i and j of two lists are run together. The tier full runs all pairs, the
 * tier normal enough of them to cover each item. */
static bool takes_pair(int i, int j)
{
    return test_takes_row((size_t)(i + j), THIRD);
}

static void is_right_for_sequence_lengths(arena *a, const subject *s)
{
    static const int64_t lengths[] = { LONGEST + 1, UINT32_MAX, 1LL << 31, LONGEST, 77, 33,
                                       32,          31,         2,         1,       0 };
    static const char *const options[] = { "", "softcap=2.5 window=37 seq_len=indirect sinks=add "
                                               "gate=sigmoid ring=45" };
    for (int i = 0; i < HEAD_DIMS * KV_TYPES * 2; i++) {
        if (!takes_pair(i / (KV_TYPES * 2), i % (KV_TYPES * 2)))
            continue;
        arena *run = arena_new();
        const char *text =
            arena_format(run, "kv_type=%s %s", kv_types[i / 2 % KV_TYPES], options[i % 2]);
        instance in = make(run, s->family, head_dims[i / 2 / KV_TYPES], 1 + i % 2,
                           ratios[i % RATIOS], LONGEST, text);
        trial t = suite_trial(run, &in, s->device);
        /* Every third length, so that each type, option and head dim is run. */
        for (size_t j = (size_t)i % 3; j < sizeof lengths / sizeof *lengths; j += 3) {
            trial_shorten(&t, lengths[j]);
            expect_trial_right(run, s->device, &in, &t);
        }
        arena_free(run);
    }
    (void)a;
}

static void check_head_dim(arena *a, const subject *s, int head_dim, const char *text)
{
    instance in = make(a, s->family, head_dim, 1, 2, 37, text);
    expect_filled_right(a, s->device, &in, FILL_NORMAL);
    if (!has_key(s->family, "num_warps"))
        return;
    in = make(a, s->family, head_dim, 1, 2, 37, arena_format(a, "%s num_warps=17", text));
    expect_filled_right(a, s->device, &in, FILL_NORMAL);
}

static void is_right_for_head_dims_and_groups(arena *a, const subject *s)
{
    enum { SMALL = 4, NEAR = 3 * SMALL }; /* small step: larger sizes are sampled */
    int step = (int)family_key(s->family, "head_dim")->multiple_of, number = 0;
    for (int head_dim = step; head_dim <= 256;
         head_dim += step == SMALL && head_dim > NEAR ? NEAR : step) {
        const char *kv_type = kv_types[number++ % SINGLE_VALUE_TYPES];
        check_head_dim(a, s, head_dim, arena_format(a, "kv_type=%s", kv_type));
        if (head_dim % 32 == 0)
            check_head_dim(a, s, head_dim, "kv_type=q8_0");
    }
    static const struct {
        int kv_heads, ratio;
    } groups[] = { { 1, 1 }, { 4, 1 }, { 2, 3 }, { 2, 4 },  { 1, 7 },
                   { 1, 8 }, { 3, 5 }, { 2, 6 }, { 2, 11 }, { 1, 16 } };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        instance in = make(a, s->family, 64, groups[i].kv_heads, groups[i].ratio, 19, "");
        expect_filled_right(a, s->device, &in, FILL_NORMAL);
        in = make(a, s->family, 64, groups[i].kv_heads, groups[i].ratio, 19, "kv_type=q8_0");
        expect_filled_right(a, s->device, &in, FILL_OUTLIERS);
    }
}

/* Checks every second length from index first on. The lengths are close to multiples of 64, the
 * chunk size and window. */
static void check_lengths(arena *a, const subject *s, const instance *in, size_t first)
{
    static const uint32_t batches[][BATCH] = { { 129, 0, 65, 63, 128 }, { 64, 0, 1, 2, 65 } };
    static const int64_t lengths[] = { 129, 128, 65, 64, 63, 1, 0 };
    trial t = suite_trial(a, in, s->device);
    bool batch = t.row_count == BATCH;
    size_t count = batch ? sizeof batches / sizeof *batches : sizeof lengths / sizeof *lengths;
    for (size_t i = first; i < count; i += 2) {
        if (batch)
            trial_shorten_each(&t, batches[i]);
        else
            trial_shorten(&t, lengths[i]);
        expect_trial_right(a, s->device, in, &t);
    }
}

static void is_right_for_heads_of_models(arena *a, const subject *s)
{
    static const struct {
        int head_dim, kv_heads, ratio;
    } models[] = { { 8, 4, 2 },   { 32, 1, 7 },  { 64, 1, 3 },  { 128, 4, 7 }, { 128, 8, 4 },
                   { 256, 8, 2 }, { 128, 8, 3 }, { 128, 1, 5 }, { 64, 1, 9 },  { 64, 8, 8 },
                   { 96, 2, 1 },  { 160, 1, 4 }, { 224, 1, 5 } };
    enum { MODELS = sizeof models / sizeof *models, POSITIONS = 129 };
    for (int i = 0; i < MODELS * KV_TYPES; i++) {
        arena *run = arena_new();
        const char *options = arena_format(run, "chunk_size=64 kv_type=%s %s",
                                           kv_types[i % KV_TYPES], i % 3 ? "" : "window=64");
        int model = i / KV_TYPES;
        for (int fixed = 0; fixed <= has_key(s->family, "chunking"); fixed++) {
            if (!takes_pair(model, i % KV_TYPES * 2 + fixed))
                continue;
            instance in = make(run, s->family, models[model].head_dim, models[model].kv_heads,
                               models[model].ratio, POSITIONS,
                               arena_format(run, "%s %s", options, fixed ? "chunking=fixed" : ""));
            check_lengths(run, s, &in, (size_t)(model + i + fixed) % 2);
        }
        arena_free(run);
    }
    (void)a;
}

static void is_right_for_options(arena *a, const subject *s)
{
    static const char *const options[] = { "softcap=50",
                                           "softcap=0.5",
                                           "window=1",
                                           "window=40",
                                           "window=300",
                                           "window=301",
                                           "scale=0.01",
                                           "scale=1.5",
                                           "num_warps=1",
                                           "num_warps=2",
                                           "num_warps=3",
                                           "num_warps=7",
                                           "num_warps=32",
                                           "m=1",
                                           "m=2",
                                           "chunk_size=33",
                                           "chunk_size=128",
                                           "chunk_size=300",
                                           "chunk_size=1024",
                                           "chunks=1",
                                           "chunks=2",
                                           "kv_type=q8_0 num_warps=32",
                                           "kv_type=q8_0 window=40 chunk_size=33",
                                           "kv_type=q8_0 softcap=0.5 m=1",
                                           "sinks=add",
                                           "sinks=add num_warps=3 kv_type=f16",
                                           "sinks=add window=40 chunk_size=33 softcap=2",
                                           "sinks=add chunking=fixed chunks=2",
                                           "sinks=add chunks=1 gate=sigmoid",
                                           "gate=sigmoid chunking=fixed chunk_size=64",
                                           "window=40 ring=40 kv_type=bf16",
                                           "window=40 ring=64 chunking=fixed chunk_size=32",
                                           "window=77 ring=129 sinks=add kv_type=q8_0",
                                           "chunking=fixed",
                                           "chunking=fixed chunks=2 window=200",
                                           "chunking=fixed chunk_size=64 softcap=0.5",
                                           "chunking=fixed chunk_size=50 chunks=1 kv_type=bf16",
                                           "chunking=fixed chunk_size=50 chunk_limit=1",
                                           "chunking=fixed chunk_size=32 chunk_limit=4 window=290",
                                           "chunking=fixed chunk_size=77 window=77 kv_type=q8_0" };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        instance in = make(a, s->family, 64, 1, 2, 300, options[i]);
        expect_filled_right(a, s->device, &in, FILL_NORMAL);
    }
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int i = 0; i < KV_TYPES * FILL_KINDS; i++) {
        const char *text = arena_format(a, "kv_type=%s", kv_types[i % KV_TYPES]);
        instance in = make(a, s->family, 128, 2, 2, 100, text);
        expect_filled_right(a, s->device, &in, (fill_kind)(i / KV_TYPES));
    }
}

/* Returns a named f32 input and its number of values, or NULL if the family has none. */
static float *floats_of(const trial *t, const char *name, uint64_t *count)
{
    *count = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        *count = p->values;
        if (p->param.kind == PARAM_IN && p->param.format == FORMAT_F32 &&
            strcmp(p->param.name, name) == 0)
            return p->content.bytes;
    }
    return NULL;
}

static void is_right_for_logits_of_a_hundred(arena *a, const subject *s)
{
    for (int i = 0; i < HEAD_DIMS * KV_TYPES * 2; i++) {
        if (!takes_pair(i / (KV_TYPES * 2), i % (KV_TYPES * 2)))
            continue;
        const char *text = arena_format(a, "kv_type=%s softcap=%s", kv_types[i / 2 % KV_TYPES],
                                        i % 2 ? "50" : "0");
        instance in = make(a, s->family, head_dims[i / 2 / KV_TYPES], 1, 3, LONGEST, text);
        trial t = suite_trial(a, &in, s->device);
        uint64_t count;
        float *q = floats_of(&t, "q", &count);
        for (uint64_t j = 0; q && j < count; j++)
            q[j] *= is_q8_0(text) ? 400 : 40; /* its random values are smaller */
        expect_trial_right(a, s->device, &in, &t);
    }
}

/* Runs attention with scores of minus infinity. One element of q is 1 in each head, and every
 * `every`-th K row has minus infinity there. */
static void check_infinite_scores(arena *a, const subject *s, int64_t head_dim, uint64_t element,
                                  const char *text, uint64_t every)
{
    instance in = make(a, s->family, head_dim, 2, 2, LONGEST, text);
    trial t = suite_trial(a, &in, s->device);
    uint64_t count, dim = (uint64_t)in.shape.head_dim;
    float *q = floats_of(&t, "q", &count);
    if (!q)
        return;
    for (uint64_t i = element; i < count; i += dim)
        q[i] = 1;
    for (size_t i = 0; i < t.param_count; i++)
        if (strcmp(t.params[i].param.name, "k") == 0) {
            float *keys = t.params[i].content.bytes;
            for (uint64_t at = element; at < t.params[i].values; at += every * dim)
                if (!isnan(keys[at]))
                    keys[at] = -INFINITY;
        }
    expect_trial_right(a, s->device, &in, &t);
}

static void is_right_for_scores_of_minus_infinity(arena *a, const subject *s)
{
    for (uint64_t every = 1; every <= 3; every++) {
        check_infinite_scores(a, s, 64, 0, "", every);
        check_infinite_scores(a, s, 64, 0, "window=5", every);
    }
}

/* With these head dims, some lanes hold fewer values than others, or none. Their padding must not
 * turn the infinity into NaN. */
static void an_infinite_score_stays_in_its_lane(arena *a, const subject *s)
{
    static const int64_t ragged[] = { 8, 72, 80, 96, 160 };
    for (size_t i = 0; i < sizeof ragged / sizeof *ragged; i++)
        for (int64_t element = 0; element < ragged[i]; element += 8)
            check_infinite_scores(a, s, ragged[i], (uint64_t)element, "", 2);
}

/* An infinity in q makes scores infinite, and softcap makes them finite again. Lanes without that
 * element must not multiply it by their padding, which would give NaN. */
static void an_infinite_query_stays_in_its_lane(arena *a, const subject *s)
{
    static const int64_t ragged[] = { 8, 72, 80, 96, 160 };
    for (size_t i = 0; i < sizeof ragged / sizeof *ragged; i++)
        for (int64_t element = 0; element < ragged[i]; element += 24) {
            instance in = make(a, s->family, ragged[i], 2, 2, LONGEST, "softcap=30");
            trial t = suite_trial(a, &in, s->device);
            uint64_t count;
            float *q = floats_of(&t, "q", &count);
            for (uint64_t at = (uint64_t)element; q && at < count; at += (uint64_t)ragged[i])
                q[at] = INFINITY;
            expect_trial_right(a, s->device, &in, &t);
        }
}

/* Sink h belongs to head h: a sink of NaN or +infinity must make the rows of its head NaN, and only
 * those. */
static void a_sink_affects_only_its_head(arena *a, const subject *s)
{
    static const float sinks[] = { NAN, 0, INFINITY, -INFINITY, 30, -30, 1e4f, -1e4f, 2.5f, -NAN };
    enum { HEADS = sizeof sinks / sizeof *sinks };
    for (int i = 0; i < KV_TYPES; i++) {
        instance in = make(a, s->family, 64, 2, HEADS / 2, LONGEST,
                           arena_format(a, "sinks=add kv_type=%s", kv_types[i]));
        kernel k = suite_kernel(a, &in);
        trial t = suite_trial(a, &in, s->device);
        uint64_t count;
        memcpy(floats_of(&t, "sinks", &count), sinks, sizeof sinks);
        const float *o;
        expect_right(suite_run(a, s->device, &k, &t, NULL, (const void **)&o));
        for (uint64_t j = 0; j < t.params[0].values; j++)
            assert_true(!isnan(o[j]) ==
                        (isfinite(sinks[j / 64 % HEADS]) || sinks[j / 64 % HEADS] < 0));
        trial_shorten(&t, 0);
        expect_right(suite_run(a, s->device, &k, &t, NULL, NULL));
    }
}

/* With all scores 0, a sink of ln(length) must weigh as much as all positions together. A sink of
 * minus infinity must not change a bit of the result without sinks. */
static void a_sink_has_the_weight_of_its_exponential(arena *a, const subject *s)
{
    static const float sinks[] = { -INFINITY, 4.38202663f /* ln(80) */ };
    for (int i = 0; i < KV_TYPES; i++) {
        const float *o[3];
        for (int with = 0; with < 3; with++) {
            instance in = make(
                a, s->family, 64, 1, 3, LONGEST,
                arena_format(a, "m=1 kv_type=%s sinks=%s", kv_types[i], with ? "add" : "none"));
            kernel k = suite_kernel(a, &in);
            trial t = suite_trial(a, &in, s->device);
            uint64_t count;
            float *q = floats_of(&t, "q", &count);
            if (!q)
                return; /* the family merges partial rows */
            memset(q, 0, count * sizeof *q);
            float *given = floats_of(&t, "sinks", &count);
            for (uint64_t j = 0; given && j < count; j++)
                given[j] = sinks[with - 1];
            expect_right(suite_run(a, s->device, &k, &t, NULL, (const void **)&o[with]));
        }
        expect_same_bits(s->family->name, "sinks of minus infinity", o[0], o[1],
                         3 * 64 * sizeof *o[0]);
        for (int j = 0; j < 3 * 64; j++)
            if (!(fabsf(o[2][j] - o[0][j] / 2) <= 1e-6f))
                fail_msg("%s: %g with a sink is not half of %g without", kv_types[i],
                         (double)o[2][j], (double)o[0][j]);
    }
}

/* Gates saturate at large values; NaN and infinite gates must give the reference's results. */
static void is_right_for_gates_of_any_size(arena *a, const subject *s)
{
    static const float gates[] = { 0,     1,      -1,  88,       -88,       100,   -100,
                                   1e30f, -1e30f, NAN, INFINITY, -INFINITY, 1e-40f };
    static const char *const texts[] = { "gate=sigmoid", "gate=sigmoid sinks=add chunking=fixed",
                                         "gate=sigmoid_head", "gate=softplus sinks=add",
                                         "gate=softplus_head chunking=fixed" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        instance in = make(a, s->family, 80, 1, 3, LONGEST, texts[i]);
        trial t = suite_trial(a, &in, s->device);
        uint64_t count;
        float *gate = floats_of(&t, "gate", &count);
        for (uint64_t j = 0; j < count; j++)
            gate[j] = gates[j % (sizeof gates / sizeof *gates)];
        expect_trial_right(a, s->device, &in, &t);
    }
}

static void is_right_at_random(arena *a, const subject *s)
{
    enum { RUNS = 30 };
    random_source r = { 1 };
    for (int i = 0; i < RUNS; i++) {
        int64_t head_dim = 4 + 4 * (int64_t)random_below(&r, 64);
        int64_t kv_heads = 1 + (int64_t)random_below(&r, 4);
        int64_t ratio = 1 + (int64_t)random_below(&r, 7);
        int64_t longest = 1 + (int64_t)random_below(&r, 200);
        strbuf text = strbuf_new(a);
        strbuf_format(&text, "kv_type=%s ", kv_types[random_below(&r, KV_TYPES)]);
        strbuf_format(&text, "seq_len=%s ", random_below(&r, 2) ? "direct" : "indirect");
        strbuf_format(&text, "m=%d ", 1 + (int)random_below(&r, 4));
        strbuf_format(&text, "num_warps=%d ", 1 + (int)random_below(&r, 8));
        strbuf_format(&text, "chunk_size=%d ", 32 + (int)random_below(&r, 160));
        strbuf_format(&text, "chunks=%d ", 1 + (int)random_below(&r, 4));
        if (random_below(&r, 2)) {
            int window = 1 + (int)random_below(&r, 250);
            strbuf_format(&text, "window=%d ", window);
            if (random_below(&r, 2))
                strbuf_format(&text, "ring=%d ", window + (int)random_below(&r, 20));
        }
        strbuf_format(&text, "sinks=%s ", random_below(&r, 2) ? "add" : "none");
        strbuf_format(&text, "gate=%s ", random_below(&r, 2) ? "sigmoid" : "none");
        if (random_below(&r, 2))
            strbuf_format(&text, "softcap=%d ", 1 + (int)random_below(&r, 60));
        strbuf_format(&text, "chunking=%s ", random_below(&r, 2) ? "fixed" : "free");
        instance in = make(a, s->family, head_dim, kv_heads, ratio, longest, text.text);
        fill_kind kind = random_below(&r, 2) ? FILL_NORMAL : FILL_OUTLIERS;
        if (test_takes_row((size_t)i, THIRD))
            expect_filled_right(a, s->device, &in, kind);
    }
}

static void is_right_for_batches_given_at_run_time(arena *a, const subject *s)
{
    instance in = make(a, s->family, 64, 2, 2, 50, "dims=dynamic m=3");
    for (int64_t m = 1; m <= 9; m += 4) {
        trial_setup setup = suite_setup(&in, s->device);
        setup.shape.m = m;
        trial t = trial_prepare(a, &in, &setup);
        expect_trial_right(a, s->device, &in, &t);
    }
}

/* Checks lengths close to multiples of chunk_size, in grids of 1 to 9 chunks. */
static void check_chunks(arena *a, const subject *s, const char *chunking)
{
    static const int64_t lengths[] = { 1100, 1025, 1024, 900, 300, 257, 256, 255, 129, 128, 1, 0 };
    for (int64_t chunks = 1; chunks <= 9; chunks += chunks < 5 ? 1 : 4) {
        int64_t ratio = 1 + chunks % 5 * 2;
        const char *text = arena_format(a, "kv_type=f16 m=2 chunks=%d chunk_size=128 chunking=%s",
                                        (int)chunks, chunking);
        instance in = make(a, s->family, 16, 2, ratio, 1100, text);
        trial_setup setup = suite_setup(&in, s->device);
        setup.sm_count = 132;
        trial t = trial_prepare(a, &in, &setup);
        assert_int_equal(t.grid[2], chunks);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            if (!takes_pair((int)chunks, (int)i))
                continue;
            trial_shorten(&t, lengths[i]);
            expect_trial_right(a, s->device, &in, &t);
        }
    }
}

/* chunk_size doubles while a sequence needs more than chunk_limit chunks. Results at the lengths of
 * a doubling must be right and must not depend on the grid. */
static void check_doubled_chunks(arena *a, const subject *s, int64_t dim, size_t step)
{
    static const int64_t lengths[] = { 800, 769, 768, 385, 384, 200, 193, 192, 97, 96, 32, 1, 0 };
    enum { GRIDS = 3, LENGTHS = sizeof lengths / sizeof *lengths, HEADS = 2 * 3 };
    const float *first[LENGTHS] = { NULL };
    for (int chunks = 1; chunks <= GRIDS; chunks++) {
        const char *text = arena_format(a,
                                        "kv_type=f16 m=2 chunks=%d chunk_size=32 chunking=fixed "
                                        "chunk_limit=3",
                                        chunks);
        instance in = make(a, s->family, dim, 2, HEADS / 2, 800, text);
        kernel k = suite_kernel(a, &in);
        trial_setup setup = suite_setup(&in, s->device);
        setup.sm_count = 132;
        trial t = trial_prepare(a, &in, &setup);
        assert_int_equal(t.grid[2], chunks);
        for (size_t i = 0; i < LENGTHS; i += step) {
            const void *output;
            trial_shorten(&t, lengths[i]);
            expect_right(suite_run(a, s->device, &k, &t, NULL, &output));
            if (first[i])
                expect_same_bits(in.name, arena_format(a, "with length %d", (int)lengths[i]),
                                 output, first[i],
                                 2 * HEADS * (size_t)in.shape.head_dim * sizeof(float));
            first[i] = output;
        }
    }
}

static void is_right_when_chunks_are_doubled(arena *a, const subject *s)
{
    check_doubled_chunks(a, s, 16, 1);
    check_doubled_chunks(a, s, 512, 3);
}

static void is_right_for_any_number_of_chunks(arena *a, const subject *s)
{
    check_chunks(a, s, "free");
    check_chunks(a, s, "fixed");
}

typedef struct golden_set {
    const golden_attention_dims *d;
    const int32_t *seq_lens;
    const char *q, *k, *v;
    const double *out;
    int64_t outputs, cache; /* values per sequence */
} golden_set;

static golden_set load_set(arena *a, const char *set)
{
    golden_set g = { .d = golden(a, arena_format(a, "%s.dims.i32", set), sizeof *g.d) };
    g.seq_lens = golden(a, arena_format(a, "%s.seq_lens.i32", set), 0);
    g.q = golden(a, arena_format(a, "%s.q.f32", set), 0);
    g.k = golden(a, arena_format(a, "%s.k.f32", set), 0);
    g.v = golden(a, arena_format(a, "%s.v.f32", set), 0);
    g.out = golden(a, arena_format(a, "%s.out.f64", set), 0);
    g.outputs = (int64_t)g.d->num_heads * g.d->head_dim;
    g.cache = (int64_t)g.d->num_kv_heads * g.d->max_seq_len * g.d->head_dim;
    return g;
}

/* Returns the number of sequences that a family reads per launch. */
static int64_t at_once(const family *f, const golden_set *g)
{
    return has_key(f, "m") && !f->by_runs ? g->d->batch : 1;
}

static instance golden_instance(arena *a, const family *f, const golden_set *g)
{
    return make(a, f, g->d->head_dim, g->d->num_kv_heads, g->d->num_heads / g->d->num_kv_heads,
                g->d->max_seq_len, arena_format(a, "m=%d", (int)at_once(f, g)));
}

/* Writes golden rows to a cache as f32, or as f16 where the family accepts only that. */
static void put_rows(const instance *in, void *to, const char *from, int64_t count)
{
    float value;
    if (in->kv_type == KV_F32)
        memcpy(to, from, (size_t)count * sizeof value);
    for (int64_t i = 0; in->kv_type == KV_F16 && i < count; i++) {
        memcpy(&value, from + i * (int64_t)sizeof value, sizeof value);
        ((uint16_t *)to)[i] = half_from_float(value);
    }
}

/* Returns a trial with golden q, k and v of one launch's sequences, from `sequence` on. */
static trial golden_trial(arena *a, const subject *s, const instance *in, const golden_set *g,
                          int64_t sequence)
{
    trial t = suite_trial(a, in, s->device);
    uint32_t seq_lens[BATCH];
    for (size_t i = 0; i < t.row_count; i++)
        seq_lens[i] = (uint32_t)g->seq_lens[sequence + (int64_t)i];
    if (t.row_count == 1)
        trial_shorten(&t, seq_lens[0]);
    trial_shorten_each(&t, seq_lens);
    const char *caches[] = { g->k, g->v };
    size_t filled = 0;
    for (size_t i = 0; i < t.param_count; i++)
        if (trial_is_read_cache(&t.params[i])) {
            for (size_t j = 0; j < t.row_count; j++)
                put_rows(in,
                         (char *)t.params[i].content.bytes +
                             suite_cache_offset(&t, &t.params[i], t.sequences[j], 0, 0),
                         caches[filled] + (sequence + (int64_t)j) * g->cache * 4, g->cache);
            filled++;
        }
    if (filled)
        put_input(&t, 0, g->q + sequence * g->outputs * 4);
    return t;
}

/* Returns the partial results of a family's kernel on golden data. Unwritten values are NaN. */
static const void *golden_partials(arena *a, const subject *s, const family *f, const golden_set *g)
{
    instance in = golden_instance(a, f, g);
    kernel k = suite_kernel(a, &in);
    trial t = golden_trial(a, s, &in, g, 0);
    const void *partials;
    expect_right(suite_run(a, s->device, &k, &t, NULL, &partials));
    return partials;
}

static void check_golden_set(arena *a, const subject *s, const golden_set *g)
{
    bool chunks = s->family->op == OP_ATTENTION_CHUNKS;
    const family *f = chunks ? family_find(families, "flash_decoding_reduce") : s->family;
    const family *before = chunks ? s->family : family_find(families, "flash_decoding_chunk");
    instance in = golden_instance(a, f, g);
    kernel k = suite_kernel(a, &in);
    for (int64_t i = 0; i < g->d->batch; i += at_once(f, g)) {
        trial t = golden_trial(a, s, &in, g, i);
        if (f->op == OP_MERGE_CHUNKS)
            put_input(&t, 0, golden_partials(a, s, before, g));
        expect_right(suite_run(a, s->device, &k, &t, g->out + i * g->outputs, NULL));
    }
}

static void equals_golden_data(arena *a, const subject *s)
{
    static const char *const sets[] = { "attn.d64", "attn.d128" };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        golden_set g = load_set(a, sets[i]);
        check_golden_set(a, s, &g);
    }
}

/* Launches only the blocks of the first of 8 sequences, which is empty. They must write zeros to
 * its rows and nothing to others. */
static void touches_only_the_rows_of_an_empty_sequence(arena *a, const subject *s)
{
    instance in = make(a, s->family, 80, 2, 2, 100, "m=8");
    if (s->family->by_runs)
        return;
    kernel k = suite_kernel(a, &in);
    trial t = suite_trial(a, &in, s->device);
    const uint32_t seq_lens[8] = { 0, 100, 50, 1, 7, 0, 99, 64 };
    trial_shorten_each(&t, seq_lens);
    t.grid[1] = 1;
    const void *output;
    const uint8_t *written;
    expect_right(suite_launch(a, s->device, &k, &t, &output, &written));
    uint64_t own = s->family->op == OP_ATTENTION_CHUNKS
                       ? 0
                       : (uint64_t)(in.shape.num_heads * in.shape.head_dim);
    const float *o = output;
    for (uint64_t i = 0; i < t.params[0].values; i++)
        if (!written[i] != (i >= own) || (i < own && o[i] != 0))
            fail_msg("%s: o[%llu] is %g and %s written", in.name, (unsigned long long)i,
                     (double)o[i], written[i] ? "was" : "was not");
}

/* A KV head's cache has 2^33 elements or more, which only the emulator can represent (sparsely).
 * The window limits the number of positions read. */
static void reaches_positions_beyond_2_to_the_32_elements(arena *a, const subject *s)
{
    const char *text = "window=70 m=2 chunk_size=1024";
    for (int i = 0; i < KV_TYPES; i++) {
        if (!test_takes_row((size_t)i, EACH))
            continue;
        instance in = make(a, s->family, 128, 2, 1, (1 << 26) - 1024,
                           arena_format(a, "%s kv_type=%s", text, kv_types[i]));
        kernel k = suite_kernel(a, &in);
        trial_setup setup = suite_setup(&in, s->device);
        verify_result r = verify_kernel(a, &k, setup.seed, NULL, false, &setup);
        if (!r.right)
            fail_msg("%s", r.message);
    }
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(equals_golden_data),
        CHECK(is_right_for_sequence_lengths),
        CHECK(is_right_for_head_dims_and_groups),
        CHECK(is_right_for_heads_of_models),
        CHECK(is_right_for_options),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(is_right_for_logits_of_a_hundred),
        CHECK(is_right_for_scores_of_minus_infinity),
        CHECK(an_infinite_score_stays_in_its_lane),
        CHECK(an_infinite_query_stays_in_its_lane),
        CHECK_WITH(a_sink_affects_only_its_head, .key = "sinks"),
        CHECK_WITH(a_sink_has_the_weight_of_its_exponential, .key = "sinks"),
        CHECK_WITH(is_right_for_gates_of_any_size, .key = "gate"),
        CHECK(is_right_at_random),
        CHECK_WITH(is_right_for_any_number_of_chunks, .key = "chunks"),
        CHECK_WITH(is_right_when_chunks_are_doubled, .key = "chunk_limit"),
        CHECK_WITH(is_right_for_batches_given_at_run_time, .key = "dims"),
        CHECK_WITH(touches_only_the_rows_of_an_empty_sequence, .key = "m"),
        CHECK_WITH(reaches_positions_beyond_2_to_the_32_elements, .emulator_only = true),
    };
    suite_list(__FILE__, suite_weights, EACH, suite_is_attention, checks,
               sizeof checks / sizeof *checks);
}
