/* variant = auto, from the spec to the files: the instances and kernels it makes, their rows in
 * header and manifest, and the kernels that a program finds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "diags_text.h"
#include "base/os.h"
#include "base/os_process.h"
#include "cost/cost.h"
#include "kernel/limits.h"
#include "emit/emit.h"
#include "kernel/generate.h"
#include "input/spec.h"

/* Candidates for auto. The kernels differ between targets, except that sm_80 and sm_89 get equal
 * kernels. The cost model makes the choice; these tests mark the instances by hand. */
#define TARGETS      "[ptxgen]\ntargets = sm_75, sm_80, sm_86, sm_89\n"
#define TWO_AND_FOUR "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 2, 4\n"
#define MIXED        TARGETS TWO_AND_FOUR
#define STREAM_SECTION(warps) \
    "[stream_gemv]\nweights = q4_k\nshape = 4096x4096\nnum_warps = " warps "\n"

/* MIXED with permission to round x: sm_80 gets a kernel that rounds. */
#define ROUNDED MIXED STREAM_SECTION("12")

typedef struct outcome {
    arena *arena;
    diags diags;
    spec spec;
    kernel_set set;
    const char *messages;
} outcome;

static const char *instance_names(const outcome *o)
{
    strbuf names = strbuf_new(o->arena);
    for (size_t i = 0; i < o->spec.instance_count; i++)
        strbuf_format(&names, "%s ", o->spec.instances[i].name);
    return names.text;
}

/* Returns "NAME sm_75..sm_80 chosen f32 q8\n" for each kernel. */
static const char *kernel_names(const outcome *o)
{
    strbuf names = strbuf_new(o->arena);
    for (size_t i = 0; i < o->set.kernel_count; i++) {
        const kernel *k = &o->set.kernels[i];
        unsigned chosen = instance_chosen(k->instance, k->target);
        strbuf_format(&names, "%s %s..%s%s%s%s\n", k->instance->name, k->target->name,
                      k->newest->name, chosen ? " chosen" : "",
                      chosen >> PRECISION_F32 & 1 ? " f32" : "",
                      chosen >> PRECISION_Q8 & 1 ? " q8" : "");
    }
    return names.text;
}

/* An instance chosen by auto: the start of its name, and its targets by precision. */
typedef struct mark {
    const char *name;
    const char *targets[PRECISION_COUNT]; /* "75 80"; NULL = no target */
    bool named;                           /* the spec also names the instance */
} mark;

enum { MOST_MARKS = 4 };

static target_set targets_in(const char *list)
{
    target_set set = 0;
    for (size_t t = 0; list && t < target_count; t++)
        if (strstr(list, targets[t].name + strlen("sm_")))
            set |= target_bit(&targets[t]);
    return set;
}

static void mark_instance(instance *in, const mark *m)
{
    target_set all = 0;
    for (int p = 0; p < PRECISION_COUNT; p++) {
        in->chosen_for[p] = targets_in(m->targets[p]);
        all |= in->chosen_for[p];
    }
    in->chosen_by = family_find(families, "q4k_gemv");
    in->excluded = m->named ? 0 : ~all;
}

/* Generates the kernels of a spec as if auto had chosen the marked instances. */
static outcome generate_marked(arena *a, const char *text, const mark marks[MOST_MARKS])
{
    outcome o = { .arena = a, .diags = diags_new(a) };
    bool right = spec_parse(a, "t.ini", text, strlen(text), families_and_pipelines(a), NULL, NULL,
                            &o.spec, &o.diags);
    for (size_t m = 0; right && m < MOST_MARKS && marks[m].name; m++) {
        size_t i = 0;
        while (strncmp(o.spec.instances[i].name, marks[m].name, strlen(marks[m].name)) != 0)
            assert_true(++i < o.spec.instance_count);
        mark_instance(&o.spec.instances[i], &marks[m]);
    }
    right = right && generate_kernels(a, &o.spec, &o.set, &o.diags);
    o.messages = diags_text(a, &o.diags);
    if (!right)
        fail_msg("%s", o.messages);
    return o;
}

static outcome generate(arena *a, const char *text)
{
    return generate_marked(a, text, (const mark[MOST_MARKS]){ { 0 } });
}

#define TWO_WARPS  "mwv_q4k_gemv_k4096_n4096_w2"
#define FOUR_WARPS "mwv_q4k_gemv_k4096_n4096_w4"
#define TWELVE     "stream_gemv_q4k_k4096_n4096_m1_w12"
#define FOR_F32(...)                  \
    {                                 \
        [PRECISION_F32] = __VA_ARGS__ \
    }
#define FOR_Q8(...)                  \
    {                                \
        [PRECISION_Q8] = __VA_ARGS__ \
    }

static const mark exact_marks[MOST_MARKS] = { { TWO_WARPS, FOR_F32("75 80 89"), false },
                                              { FOUR_WARPS, FOR_F32("86"), false } };
static const mark rounded_marks[MOST_MARKS] = { { TWO_WARPS, FOR_Q8("75 89"), false },
                                                { FOUR_WARPS, FOR_Q8("86"), false },
                                                { TWELVE, FOR_Q8("80"), false } };
static const mark both_marks[MOST_MARKS] = { { TWO_WARPS, { "75 80 89", "75 89" }, false },
                                             { FOUR_WARPS, { "86", "86" }, false },
                                             { TWELVE, FOR_Q8("80"), false } };

/* A section with variant = auto: a family and values for its keys. */
typedef struct question {
    const char *family, *values; /* "k=4096 n=4096 precision=f32" */
} question;

static int64_t value_in(const key *k, const char *text)
{
    for (int64_t i = 0; k->choices && k->choices[i].word; i++)
        if (strcmp(k->choices[i].word, text) == 0)
            return i;
    return strtoll(text, NULL, 10);
}

/* Returns the instance of a question. Unnamed keys have their defaults; run-time sizes are 0. */
static instance asked_by(arena *a, const question *q)
{
    instance in = instance_of_defaults(family_find(families, q->family));
    in.variant = VARIANT_AUTO;
    for (const char *at = q->values; *at; at += strspn(at, " ")) {
        size_t name = strcspn(at, "="), value = strcspn(at, " ");
        const key *k = family_key(in.family, arena_copy(a, at, name));
        assert_non_null(k);
        instance_set(&in, k, value_in(k, arena_copy(a, at + name + 1, value - name - 1)));
        at += value;
    }
    return in;
}

/* Writes the instances chosen for all questions and targets, each instance once. Returns their
 * number. */
static size_t answers(arena *a, const question *questions, const spec *s, instance *out)
{
    size_t count = 0;
    for (const question *q = questions; q->family; q++)
        for (size_t t = 0; t < s->target_count; t++) {
            instance asked = asked_by(a, q), made = asked;
            if (asked.variant == VARIANT_AUTO)
                made = cost_choose(&asked, s->targets[t],
                                   launch_gpus(s->targets, s->target_count, t), NULL);
            made.name = instance_make_name(a, &made);
            size_t at = 0;
            while (at < count && strcmp(out[at].name, made.name) != 0)
                at++;
            if (at == count)
                out[count++] = made;
            else
                instance_merge(&out[at], &made);
        }
    return count;
}

enum { MOST_QUESTIONS = 6, MOST_ANSWERS = 64 };
typedef struct example {
    const char *what, *text;
    question questions[MOST_QUESTIONS];
} example;

#define ALL_TARGETS "[ptxgen]\ntargets = sm_120, sm_75, sm_80, sm_100, sm_86, sm_89, sm_90\n"

static const example examples[] = {
    { "a choice per shape",
      "[q4k_gemv]\nshape = 4096x4096, 4096x1024, 512x64, 4096x2048\nvariant = auto\n",
      { { "q4k_gemv", "k=4096 n=4096" },
        { "q4k_gemv", "k=4096 n=1024" },
        { "q4k_gemv", "k=512 n=64" },
        { "q4k_gemv", "k=4096 n=2048" } } },
    { "a choice per target",
      ALL_TARGETS "[q4k_gemv]\nk = 4096\nn = 1024, 4096\nvariant = auto\n",
      { { "q4k_gemv", "k=4096 n=1024" }, { "q4k_gemv", "k=4096 n=4096" } } },
    { "x is not rounded",
      ALL_TARGETS "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n",
      { { "q4k_gemv", "k=4096 n=4096 precision=f32" } } },
    { "run-time sizes with some sizes given",
      "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nshape = 4096x4096\nvariant = auto\n",
      { { "q4k_gemv", "k=4096 n=4096 dims=dynamic" } } },
    { "run-time sizes",
      "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nvariant = auto\n",
      { { "q4k_gemv", "dims=dynamic" } } },
    { "one run-time size",
      "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nvariant = auto\nk = 512, 4096\n",
      { { "q4k_gemv", "k=512 dims=dynamic" }, { "q4k_gemv", "k=4096 dims=dynamic" } } },
    { "both precisions",
      ALL_TARGETS "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = q8, f32\n",
      { { "q4k_gemv", "k=4096 n=4096 precision=q8" },
        { "q4k_gemv", "k=4096 n=4096 precision=f32" } } },
    { "precision does not affect the plain variant",
      "[q4k_gemv]\nshape = 4096x4096\nprecision = q8, f32\n",
      { { "q4k_gemv", "k=4096 n=4096 variant=plain precision=f32" } } },
    { "both variants",
      "[q4k_gemv]\nshape = 4096x4096\nvariant = plain, auto\n",
      { { "q4k_gemv", "k=4096 n=4096 variant=plain precision=f32" },
        { "q4k_gemv", "k=4096 n=4096" } } },
    { "plain is the default",
      "[q4k_gemv]\nshape = 4096x4096\n",
      { { "q4k_gemv", "k=4096 n=4096 variant=plain precision=f32" } } },
    { "other formats in their plain families",
      ALL_TARGETS "[q6k_gemv]\nshape = 4096x4096, 256x64\nvariant = auto\n"
                  "[q8_0_gemv]\nshape = 4096x1024\nvariant = auto\n",
      { { "q6k_gemv", "k=4096 n=4096" },
        { "q6k_gemv", "k=256 n=64" },
        { "q8_0_gemv", "k=4096 n=1024" } } },
    { "other formats by key",
      ALL_TARGETS "[gemv]\nweights = q4_k, bf16, q5_0\nshape = 4096x1024\nvariant = auto\n",
      { { "gemv", "weights=q4_k k=4096 n=1024 m=1" },
        { "gemv", "weights=bf16 k=4096 n=1024 m=1" },
        { "gemv", "weights=q5_0 k=4096 n=1024 m=1" } } },
    { "fused operations around the product",
      ALL_TARGETS "[gemv]\nweights = q6_k\nshape = 4096x1024\nm = 1, 3, 8\nnorm = rms\n"
                  "bias = add\nresidual = add\nvariant = auto\n",
      { { "gemv", "weights=q6_k k=4096 n=1024 m=1 norm=rms bias=add residual=add" },
        { "gemv", "weights=q6_k k=4096 n=1024 m=3 norm=rms bias=add residual=add" },
        { "gemv", "weights=q6_k k=4096 n=1024 m=8 norm=rms bias=add residual=add" } } },
    { "the largest shape",
      ALL_TARGETS "[q4k_gemv]\nshape = 2147483392x2147483647\nvariant = auto\n",
      { { "q4k_gemv", "k=2147483392 n=2147483647" } } },
};

static bool same_choice(const instance *one, const instance *other)
{
    if (strcmp(one->name, other->name) != 0 || one->excluded != other->excluded ||
        one->chosen_by != other->chosen_by)
        return false;
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (one->chosen_for[p] != other->chosen_for[p])
            return false;
    return true;
}

ARENA_TEST(every_section_makes_the_instances_chosen_for_its_shapes_and_targets)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        outcome o = generate(a, examples[i].text);
        instance expected[MOST_ANSWERS];
        size_t count = answers(a, examples[i].questions, &o.spec, expected);
        bool right = !*o.messages && o.spec.instance_count == count;
        for (size_t at = 0; right && at < count; at++)
            right = same_choice(&o.spec.instances[at], &expected[at]);
        if (!right)
            fail_msg("%s: %s%s", examples[i].what, o.messages, instance_names(&o));
    }
}

ARENA_TEST(a_kernel_serves_the_consecutive_targets_it_was_chosen_for)
{
    outcome o = generate_marked(a, MIXED, exact_marks);
    assert_string_equal(kernel_names(&o), TWO_WARPS " sm_75..sm_80 chosen f32\n" TWO_WARPS
                                                    " sm_89..sm_89 chosen f32\n" FOUR_WARPS
                                                    " sm_86..sm_86 chosen f32\n");
}

ARENA_TEST(a_kernel_has_both_precisions_only_where_both_chose_it)
{
    outcome o = generate_marked(a, ROUNDED, both_marks);
    assert_string_equal(kernel_names(&o), TWO_WARPS " sm_75..sm_75 chosen f32 q8\n" TWO_WARPS
                                                    " sm_80..sm_80 chosen f32\n" TWO_WARPS
                                                    " sm_89..sm_89 chosen f32 q8\n" FOUR_WARPS
                                                    " sm_86..sm_86 chosen f32 q8\n" TWELVE
                                                    "_r2 sm_80..sm_80 chosen q8\n");
}

ARENA_TEST(a_chosen_kernel_that_the_spec_names_is_made_for_all_targets)
{
    mark marks[MOST_MARKS];
    memcpy(marks, exact_marks, sizeof marks);
    marks[1].named = true;
    outcome o = generate_marked(a, MIXED, marks);
    assert_string_equal(kernel_names(&o), TWO_WARPS
                        " sm_75..sm_80 chosen f32\n" TWO_WARPS
                        " sm_89..sm_89 chosen f32\n" FOUR_WARPS " sm_75..sm_80\n" FOUR_WARPS
                        " sm_86..sm_86 chosen f32\n" FOUR_WARPS " sm_89..sm_89\n");
}

/* Returns a section that names the chosen instance explicitly. */
static const char *section_of(arena *a, const instance *in)
{
    strbuf text = strbuf_new(a);
    strbuf_format(&text, "[%s:named]\n", in->family->name);
    for (const key *k = in->family->keys; k->name; k++)
        if (!k->real && strcmp(k->name, "precision") != 0)
            strbuf_format(&text, "%s = %s\n", k->name, instance_value_text(a, in, k));
    return text.text;
}

/* With rows = run_time the choice must equal the choice for one group of rows. Only families that
 * accept any number of rows count. */
ARENA_TEST(a_kernel_for_any_number_of_rows_is_chosen)
{
    for (size_t t = 0; t < target_count; t++) {
        const question asked = { "gemv", "weights=q4_k k=4096 n=14336 m=4 rows=run_time" };
        instance of_any = asked_by(a, &asked);
        instance of_group = of_any;
        of_group.rows_mode = ROWS_FIXED;
        cost_prediction predicted, of_four;
        instance any = cost_choose(&of_any, &targets[t], 0, &predicted);
        cost_choose(&of_group, &targets[t], 0, &of_four);
        assert_int_equal(any.rows_mode, ROWS_RUN_TIME);
        assert_non_null(family_key(any.family, "rows"));
        assert_true(predicted.total >= of_four.total && predicted.total < 1);
    }
}

ARENA_TEST(a_chosen_kernel_that_the_spec_names_is_made_once_with_a_note)
{
    static const char asking[] = "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n";
    instance asked = asked_by(a, &(question){ "q4k_gemv", "k=4096 n=4096 precision=f32" });
    instance chosen = cost_choose(&asked, target_find("sm_80"), 0, NULL);
    chosen.name = instance_make_name(a, &chosen);
    outcome o = generate(a, arena_format(a, TARGETS "%s%s", asking, section_of(a, &chosen)));
    const char *note = arena_format(a,
                                    "t.ini:7:1: note: %s is also requested by the section "
                                    "on line 3; it is generated once [E025]\n",
                                    chosen.name);
    assert_memory_equal(o.messages, note, strlen(note));
    for (size_t i = 0; i < o.spec.instance_count; i++) {
        const instance *in = &o.spec.instances[i];
        bool named = strcmp(in->name, chosen.name) == 0;
        assert_true((in->excluded == 0) == named);
    }
}

typedef struct shape {
    int64_t k, n;
} shape;

/* Attention, feed-forward and vocabulary matrices of models with 0.6, 1, 1.5, 3, 4, 7, 8, 32, 70
 * and 405 billion weights. */
static const shape shapes[] = {
    { 1024, 1024 },  { 1024, 3072 },   { 1024, 4096 },   { 256, 1024 },     { 512, 4096 },
    { 2048, 2048 },  { 2048, 512 },    { 2048, 8192 },   { 8192, 2048 },    { 2048, 128256 },
    { 1536, 1536 },  { 1536, 256 },    { 1536, 8960 },   { 8960, 1536 },    { 1536, 151936 },
    { 3072, 3072 },  { 3072, 1024 },   { 3072, 8192 },   { 8192, 3072 },    { 3072, 128256 },
    { 2560, 2560 },  { 2560, 1024 },   { 2560, 9728 },   { 9728, 2560 },    { 2560, 151936 },
    { 3584, 3584 },  { 3584, 512 },    { 3584, 18944 },  { 18944, 3584 },   { 3584, 152064 },
    { 4096, 4096 },  { 4096, 1024 },   { 4096, 14336 },  { 14336, 4096 },   { 4096, 128256 },
    { 5120, 5120 },  { 5120, 1024 },   { 5120, 25600 },  { 25600, 5120 },   { 5120, 151936 },
    { 8192, 8192 },  { 8192, 1024 },   { 8192, 28672 },  { 28672, 8192 },   { 8192, 128256 },
    { 4096, 128 },   { 8192, 128 },    { 8192, 256 },    { 4096, 512 },     { 16384, 16384 },
    { 16384, 2048 }, { 16384, 53248 }, { 53248, 16384 }, { 16384, 128256 },
};

/* Questions and the families that may answer them, with and without rounding x. */
enum { MOST_CANDIDATES = 10 };
typedef struct group {
    question asked;
    const char *exact[MOST_CANDIDATES], *rounding[2];
} group;

static const group groups[] = {
    { { "q4k_gemv", "" },
      { "q4k_gemv", "coalesced_q4k_gemv", "vectorized_q4k_gemv", "mwv_q4k_gemv", "wide_q4k_gemv",
        "tiled_q4k_gemv", "chunked_tiled_q4k_gemv", "fused_fp32_q4k_gemv", "gemv" },
      { "stream_gemv", "inline_q8_dp4a_q4k_gemv" } },
    { { "q6k_gemv", "" },
      { "q6k_gemv", "coalesced_q6k_gemv", "mwv_q6k_gemv", "batched_q6k_gemv", "gemv" },
      { "stream_gemv" } },
    { { "q8_0_gemv", "" }, { "q8_0_gemv", "gemv" }, { "stream_gemv" } },
    { { "q5_0_gemv", "" }, { "q5_0_gemv", "gemv" }, { "stream_gemv" } },
    { { "q4_0_gemv", "" }, { "q4_0_gemv", "gemv" }, { "stream_gemv" } },
    { { "gemv", "weights=bf16" }, { "gemv", "stream_gemv" }, { NULL } }, /* no family rounds x */
};

typedef struct least_time {
    const cost_gpu *gpu;
    const char *family;
    double seconds;
    instance fastest;
} least_time;

/* Tries every number of warps and rows that the family accepts. */
static void try_family(arena *a, const char *name, const instance *asked, least_time *least)
{
    static const int64_t warps[] = { 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32 };
    static const int64_t counts[] = { 1, 2, 4, 8 };
    const family *f = family_find(families, name);
    assert_non_null(f);
    instance in = instance_of_defaults(f);
    in.shape.k = asked->shape.k;
    in.shape.n = asked->shape.n;
    in.weights = instance_weights_index(instance_weights(asked));
    cost_figures figures;
    if (!cost_find(&in, least->gpu->target, &figures))
        return;
    cost_work work = cost_work_of(a, &in);
    const key *has_warps = family_key(f, "num_warps");
    bool has_rows = family_key(f, "rows_per_warp");
    bool has_outputs = family_key(f, "outputs_per_block");
    for (size_t w = 0; w < (has_warps ? sizeof warps / sizeof *warps : 1); w++)
        for (int64_t rows = 1; rows <= (has_rows ? 2 : 1); rows++)
            for (size_t o = 0; o < (has_outputs ? sizeof counts / sizeof *counts : 1); o++) {
                if (has_warps && (warps[w] < has_warps->min || warps[w] > has_warps->max))
                    continue;
                if (has_warps)
                    in.num_warps = warps[w];
                in.rows_per_warp = rows;
                in.outputs_per_block = counts[o];
                instance made = in;
                if (!launch_fit_on(&made, target_bit(least->gpu->target)))
                    continue;
                double seconds = cost_predict(&figures, &made, &work, least->gpu).total;
                if (seconds < least->seconds) {
                    least->seconds = seconds;
                    least->fastest = in;
                }
            }
}

static void check_choice(arena *a, const group *g, const shape *s, int64_t precision,
                         const cost_gpu *gpu)
{
    instance asked = asked_by(a, &g->asked);
    asked.shape.k = s->k;
    asked.shape.n = s->n;
    asked.precision = precision;
    cost_prediction predicted;
    instance chosen = cost_choose(&asked, gpu->target, 0, &predicted);
    least_time least = { .gpu = gpu, .seconds = HUGE_VAL };
    for (size_t i = 0; i < MOST_CANDIDATES && g->exact[i]; i++)
        try_family(a, g->exact[i], &asked, &least);
    for (size_t i = 0; i < 2 && precision == PRECISION_Q8 && g->rounding[i]; i++)
        try_family(a, g->rounding[i], &asked, &least);
    cost_figures figures;
    assert_true(cost_find(&chosen, gpu->target, &figures));
    cost_work work = cost_work_of(a, &chosen);
    assert_true(launch_fit_on(&chosen, target_bit(gpu->target)));
    double seconds = cost_predict(&figures, &chosen, &work, gpu).total;
    /* A preferred family may be up to 10 % slower than the fastest. Differences below 1 % do not
     * count. */
    bool preferred = chosen.family->preference > least.fastest.family->preference;
    if (seconds > least.seconds * (preferred ? 1.1 : 1.01) || predicted.total > seconds ||
        predicted.total < seconds)
        fail_msg("%s, %s, k = %lld, n = %lld: %s takes %.3f us (%.3f predicted), %s %.3f us",
                 gpu->target->name, g->asked.family, (long long)s->k, (long long)s->n,
                 instance_make_name(a, &chosen), seconds * 1e6, predicted.total * 1e6,
                 instance_make_name(a, &least.fastest), least.seconds * 1e6);
    if (precision == PRECISION_F32 && instance_precision(&chosen) != FORMAT_F32)
        fail_msg("%s rounds x", chosen.family->name);
}

ARENA_TEST(no_candidate_is_predicted_faster_than_the_choice)
{
    for (size_t t = 0; t < target_count; t++) {
        cost_gpu gpu = cost_gpu_of(&targets[t]);
        if (!target_part(&targets[t]))
            continue;
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                if (!test_takes_row(t + g + s, EACH))
                    continue;
                check_choice(a, &groups[g], &shapes[s], PRECISION_F32, &gpu);
                check_choice(a, &groups[g], &shapes[s], PRECISION_Q8, &gpu);
                arena_reset(a);
            }
    }
}

static double predicted_seconds(arena *a, const instance *in, const target *t)
{
    cost_gpu gpu = cost_gpu_of(t);
    cost_work work = cost_work_of(a, in);
    cost_figures figures;
    assert_true(cost_find(in, t, &figures));
    return cost_predict(&figures, in, &work, &gpu).total;
}

/* If the predictions of several families are within 10 %, auto takes the preferred family. */
ARENA_TEST(a_preferred_family_is_chosen_within_ten_percent)
{
    const target *t = target_find("sm_75");
    instance asked = asked_by(a, &(question){ "q4k_gemv", "k=1024 n=1024" });
    instance chosen = cost_choose(&asked, t, 0, NULL), faster = asked;
    faster.family = family_find(families, "inline_q8_dp4a_q4k_gemv");
    faster.variant = VARIANT_PLAIN;
    faster.shape.m = 1;
    faster.num_warps = 4;
    assert_string_equal(chosen.family->name, "stream_gemv");
    assert_true(predicted_seconds(a, &faster, t) < predicted_seconds(a, &chosen, t));
}

/* On sm_75, memory is slower if each warp reads its own rows, as streaming kernels do. */
ARENA_TEST(on_sm_75_the_warps_of_a_block_share_rows)
{
    static const int64_t rows[] = { 1024, 4096, 14336, 128256 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        instance asked = asked_by(a, &(question){ "q4k_gemv", "k=4096" });
        asked.shape.n = rows[i];
        instance chosen = cost_choose(&asked, target_find("sm_75"), 0, NULL);
        assert_string_not_equal(chosen.family->name, "stream_gemv");
        assert_true(chosen.num_warps > 1);
    }
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is missing", part);
}

static const char *header(const outcome *o)
{
    strbuf text = strbuf_new(o->arena);
    described_set described = describe_set(o->arena, &o->set);
    emit_header(&text, &described);
    return text.text;
}

ARENA_TEST(the_header_lists_the_choices_by_target)
{
    outcome o = generate_marked(a, MIXED "[q4k_gemv:named]\nshape = 256x1\n", exact_marks);
    const char *text = header(&o);
    assert_has(text, " *        mwv_q4k_gemv_k4096_n4096_w2 chosen by q4k_gemv auto, precision "
                     "f32, for sm_75 to "
                     "sm_80\n");
    assert_has(text, " *        mwv_q4k_gemv_k4096_n4096_w4 chosen by q4k_gemv auto, precision "
                     "f32, for sm_86\n");
    assert_has(text, "16 bytes shared; chosen by q4k_gemv auto, precision f32, for sm_86. */\n"
                     "extern const ptxgen_kernel ptxgen_mwv_q4k_gemv_k4096_n4096_w4;\n");
    assert_has(text, "chosen by q4k_gemv auto, precision f32, for sm_89. */\n"
                     "extern const ptxgen_kernel ptxgen_mwv_q4k_gemv_k4096_n4096_w2_sm_89;\n");
    assert_has(text, "block 32, grid 1. */\nextern const ptxgen_kernel ptxgen_q4k_gemv_k256_n1;\n");
    assert_has(text, "    { \"precision\", 0, 0, \"f32\", 0, 0, 0, 1 },\n");
}

ARENA_TEST(the_manifest_lists_the_choices_by_target)
{
    outcome o = generate_marked(a, MIXED "[q4k_gemv:named]\nshape = 256x1\n", exact_marks);
    strbuf text = strbuf_new(a);
    described_set described = describe_set(a, &o.set);
    emit_manifest(&text, &described);
    assert_has(text.text, "      \"file\": \"ptxgen.mwv_q4k_gemv_k4096_n4096_w2.sm_75.ptx\",\n"
                          "      \"target\": \"sm_75\",\n"
                          "      \"isa\": \"6.3\",\n"
                          "      \"overlaps\": false,\n"
                          "      \"chosen_by\": \"q4k_gemv\",\n"
                          "      \"chosen_for\": [\n"
                          "        \"sm_75\",\n"
                          "        \"sm_80\"\n"
                          "      ],\n"
                          "      \"chosen_with\": [\n"
                          "        \"f32\"\n"
                          "      ],\n");
    const char *named = strstr(text.text, "\"name\": \"q4k_gemv_k256_n1\"");
    assert_non_null(named);
    assert_null(strstr(named, "chosen_by"));
}

/* A program that prints the kernel found on devices of several generations, with any precision and
 * with exact precision. */
static const char finder[] =
    "#include <stdio.h>\n"
    "#define PTXGEN_KERNELS_IMPLEMENTATION\n"
    "#include \"ptxgen_kernels.h\"\n"
    "int main(void)\n"
    "{\n"
    "    static const unsigned devices[] = { 0, 70, 75, 80, 86, 87, 89, 90 };\n"
    "    for (size_t i = 0; i < 2 * (sizeof devices / sizeof *devices); i++) {\n"
    "        ptxgen_query q = { .op = PTXGEN_GEMV, .k = 4096, .n = 4096, .sm = devices[i / 2] };\n"
    "        q.precision = i % 2 ? PTXGEN_F32 : PTXGEN_NONE;\n"
    "        const ptxgen_kernel *k = ptxgen_find(&q);\n"
    "        if (i % 2 == 0)\n"
    "            printf(\"%u:\", devices[i / 2]);\n"
    "        printf(\"%ld/%u%c\", k ? (long)k->num_warps : 0, k ? k->sm : 0, i % 2 ? ' ' : ',');\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static void write(arena *a, const char *path, const char *text)
{
    const char *error;
    assert_true(os_write_file(a, path, text, strlen(text), &error));
}

/* Compiles the header of a spec with the program and returns its output: "device:num_warps/sm,exact
 * pair" per device. */
static const char *find(const outcome *o, const char *compiler)
{
    arena *a = o->arena;
    const char *folder, *error;
    char *output;
    int status;
    assert_true(os_temporary_directory(a, &folder, &error));
    const char *source = arena_format(a, "%s/finder.c", folder);
    const char *program = arena_format(a, "%s/finder", folder);
    write(a, arena_format(a, "%s/ptxgen_kernels.h", folder), header(o));
    write(a, source, finder);
    assert_true(os_run(a, (const char *const[]){ compiler, "-o", program, source, NULL }, &output,
                       &status, &error));
    if (status != 0)
        fail_msg("%s", output);
    assert_true(os_run(a, (const char *const[]){ program, NULL }, &output, &status, &error));
    os_remove_directory(a, folder);
    return output;
}

ARENA_TEST(a_device_finds_the_kernel_chosen_for_it)
{
    static const char exact[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:2/75,2/75 "
                                "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    static const char rounded[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:12/80,2/75 "
                                  "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    static const char both[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:12/80,2/80 "
                               "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    /* Chosen kernels that the spec also names, before or after the auto section. */
    static const mark named_marks[MOST_MARKS] = { { TWO_WARPS, FOR_F32("75 80 89"), true },
                                                  { FOUR_WARPS, FOR_F32("86"), true } };
    static const struct {
        const char *spec;
        const mark *marks;
        const char *found;
    } cases[] = {
        { MIXED, exact_marks, exact },
        { TARGETS "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 8, 2, 4\n[q4k_gemv:plain]\n"
                  "shape = 4096x4096\n",
          named_marks, exact },
        { TARGETS "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 4, 2, 8\n", named_marks, exact },
        { MIXED STREAM_SECTION("8"), exact_marks, exact },
        { ROUNDED, rounded_marks, rounded },
        { ROUNDED "[stream_gemv:named]\nweights = q4_k\nshape = 4096x4096\nnum_warps = 8\n",
          rounded_marks, rounded },
        { ROUNDED, both_marks, both },
        { TARGETS STREAM_SECTION("12") TWO_AND_FOUR, both_marks, both },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = generate_marked(a, cases[i].spec, cases[i].marks);
        const char *compiler = os_find_program(a, "cc");
        if (!compiler)
            skip();
        const char *found = find(&o, compiler);
        if (strcmp(found, cases[i].found) != 0)
            fail_msg("case %zu: %s", i, found);
    }
}

/* Every GPU that runs a target's chosen kernel must have enough shared memory for one of its
 * blocks. */
ARENA_TEST(choices_fit_all_gpus_of_their_targets)
{
    static const char *const targets_of[] = {
        "sm_75", "sm_80", "sm_90", "sm_80, sm_90", "sm_80, sm_86, sm_90", "sm_86, sm_90a"
    };
    for (size_t i = 0; i < sizeof targets_of / sizeof *targets_of; i++) {
        const char *text =
            arena_format(a,
                         "[ptxgen]\ntargets = %s\n[gemv]\nweights = q4_k, q8_0, iq3_xxs, f16\n"
                         "shape = 14336x4096, 28672x8192, 53248x16384\nm = 1, 8\nvariant = auto\n",
                         targets_of[i]);
        spec s;
        diags d = diags_new(a);
        if (!spec_parse(a, "spec.ini", text, strlen(text), families, NULL, NULL, &s, &d))
            fail_msg("%s%s", text, diags_text(a, &d));
        for (size_t n = 0; n < s.alias_count; n++)
            for (size_t t = 0; t < s.target_count; t++) {
                instance chosen = *s.aliases[n].chosen[t];
                if (!launch_fit_on(&chosen, launch_gpus(s.targets, s.target_count, t)))
                    fail_msg("%s for %s", chosen.name, s.targets[t]->name);
            }
    }
}
