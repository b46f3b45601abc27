/* Families whose kernels overlap with preceding launches. Every family used by steps must overlap
 * if the target can. A family that claims to overlap and does not must be found. */
#include <stdio.h>
#include <string.h>

#include "test_arena.h"
#include "diags_text.h"
#include "base/strbuf.h"
#include "check/verify.h"
#include "model/check/verify_model.h"
#include "kernel/family.h"
#include "kernel/generate.h"
#include "model/storey.h"
#include "input/spec.h"

#define HEAD "[ptxgen]\nprefix = t\ntargets = sm_80, sm_90, sm_100\n[decoder]\n"
#define HEADS \
    "hidden = 64\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\nvocab = 96\nlayers = 2\n"

static const char *const decoders[] = {
    HEAD HEADS "ff = 96\nmax_seq_len = 64\nrope = norm\nweights = q8_0\nm = 1, 3\n",
    HEAD HEADS "ff = 96\nmax_seq_len = 64\nrope = neox\nprecision = f32\nweights = q8_0\n"
               "ffn_norm = post_attention_norm\n",
    HEAD HEADS "experts = 5\nexperts_used = 2\nexpert_ff = 32\nmax_seq_len = 64\nrope = neox\n"
               "weights = q8_0\n",
    HEAD HEADS "experts = 5\nexperts_used = 2\nexpert_ff = 32\nmax_seq_len = 64\nrope = neox\n"
               "weights = q8_0\nprecision = f32\n",
    HEAD HEADS "ff = 96\nmax_seq_len = 64\nrecurrent_layers = 0\ndelta_key_heads = 1\n"
               "delta_value_heads = 2\ndelta_head_dim = 32\nrope = neox\nweights = q8_0\n",
    HEAD "hidden = 64\nff = 96\nnum_heads = 2\nnum_kv_heads = 1\nhead_dim = 64\nvocab = 96\n"
         "layers = 2\nmax_seq_len = 64\nlatent = 64\nq_rank = 32\nvalue_dim = 32\nrope = norm\n"
         "rope_dims = 32\nattention_scale = 0.3\nweights = q8_0\n",
    HEAD "hidden = 64\nff = 96\nnum_heads = 2\nnum_kv_heads = 1\nhead_dim = 64\nvocab = 96\n"
         "layers = 2\nmax_seq_len = 100\nrope = neox\nwindow = 24\nwindow_layers = 0\n"
         "window_cache = ring\nkv_type = f16\nweights = q8_0\nm = 1, 3\n",
    HEAD HEADS "ff = 96\nmax_seq_len = 64\nsequences = 3\nrope = norm\nweights = q8_0\nm = 3\n",
};

/* Returns true for gate and up products of few rows. */
static bool is_gate_up(const kernel *k)
{
    return strncmp(k->instance->family->name, "stream_", 7) == 0 &&
           strstr(k->instance->family->name, "gate_up");
}

static void make(arena *a, const char *text, spec *s, kernel_set *set)
{
    diags d = diags_new(a);
    if (!spec_parse(a, "spec.ini", text, strlen(text), families, &model_storey, NULL, s, &d) ||
        !generate_kernels(a, s, set, &d))
        fail_msg("%s", diags_text(a, &d));
}

/* Calls a function for every kernel of the decoders. */
static void for_each_kernel(arena *a, void (*check)(const kernel *k, void *context), void *context)
{
    for (size_t n = 0; n < sizeof decoders / sizeof *decoders; n++) {
        spec s;
        kernel_set set;
        make(a, decoders[n], &s, &set);
        for (size_t i = 0; i < set.kernel_count; i++)
            check(&set.kernels[i], context);
    }
}

static void check_wait(const kernel *k, void *context)
{
    (void)context;
    bool waits = strstr(k->ptx, "griddepcontrol.wait");
    if (k->overlaps != (k->target->sm >= 90) || waits != k->overlaps)
        fail_msg("%s", k->file);
}

ARENA_TEST(all_kernels_of_steps_overlap_if_the_target_supports_it)
{
    for_each_kernel(a, check_wait, NULL);
}

/* Counts kernels without a trigger in counts[0], with a trigger in counts[1]. */
static void check_trigger(const kernel *k, void *counts)
{
    bool triggers = strstr(k->ptx, "griddepcontrol.launch_dependents");
    if (strncmp(k->instance->family->name, "stream_", 7) != 0 || k->target->sm < 90)
        return;
    if (triggers == is_gate_up(k))
        fail_msg("%s", k->file);
    ((size_t *)counts)[triggers]++;
}

ARENA_TEST(gate_and_up_do_not_trigger_early)
{
    size_t counts[2] = { 0 };
    for_each_kernel(a, check_trigger, counts);
    assert_true(counts[0] > 0 && counts[1] > 0);
}

ARENA_TEST(a_kernel_is_made_once_for_targets_that_overlap_and_once_for_others)
{
    static const char text[] = "[ptxgen]\nprefix = t\ntargets = sm_80, sm_89, sm_90, sm_100\n"
                               "[rms_norm]\nk = 64\n[q4k_gemv]\nk = 256\nn = 4\n";
    spec s;
    kernel_set set;
    make(a, text, &s, &set);
    assert_int_equal(set.kernel_count, 3);
    assert_string_equal(set.kernels[0].target->name, "sm_80");
    assert_string_equal(set.kernels[0].newest->name, "sm_89");
    assert_string_equal(set.kernels[1].target->name, "sm_90");
    assert_string_equal(set.kernels[1].newest->name, "sm_100");
    assert_string_equal(set.kernels[2].newest->name, "sm_100");
    assert_false(set.kernels[2].overlaps);
}

/* Returns the builder's message for the first kernel of a spec, whose family is changed to wait
 * elsewhere. */
static const char *verdict(arena *a, const char *text, overlap planted)
{
    spec s;
    kernel_set set;
    kernel k;
    const char *error = NULL;
    make(a, arena_format(a, "[ptxgen]\nprefix = t\ntargets = sm_90\n%s", text), &s, &set);
    family spoiled = *s.instances[0].family;
    spoiled.launch.overlap = planted;
    instance in = s.instances[0];
    in.family = &spoiled;
    arena *scratch = arena_new();
    bool made = generate_ptx(a, scratch, &in, target_find("sm_90"), &k, &error);
    arena_free(scratch);
    return made ? "right" : error;
}

#define STREAM_GEMV "[stream_gemv]\nweights = q8_0\nk = 64\nn = 8\n"

ARENA_TEST(a_family_that_waits_elsewhere_than_declared_is_refused)
{
    assert_string_equal(verdict(a, "[rms_norm]\nk = 64\n", WAITS_FIRST), "right");
    assert_string_equal(verdict(a, STREAM_GEMV, WAITS_ITSELF), "right");
    assert_non_null(strstr(verdict(a, "[rms_norm]\nk = 64\n", WAITS_ITSELF), "precedes the wait"));
    assert_non_null(strstr(verdict(a, STREAM_GEMV, WAITS_FIRST), "may wait twice"));
}

/* Row counts that are no multiple of a line, below the number of warps, below one line, and above
 * the prefetched amount. Tensors end with these rows. */
static const char streams[] =
    "[ptxgen]\nprefix = t\ntargets = sm_86, sm_90\n"
    "[stream_gemv]\nweights = f32, q8_0, q4_k\nshape = 256x1, 1024x25, 4096x34\n"
    "rows_per_warp = 1, 2\nresidual = add\nnorm = rms\n"
    "[stream_gemv:passes]\nweights = q6_k\nshape = 2304x29\npasses = 2\n"
    "[stream_qkv]\nweights = q4_k, f32\nweights_k = q4_k, q8_0\nweights_v = q6_k\n"
    "k = 1024\nn = 70\nn_kv = 23\nnorm = rms\n"
    "[stream_gate_up]\nweights = q4_k, f32\nweights_u = iq3_s, f16\nk = 768\nn = 33\n"
    "norm = rms\n";

ARENA_TEST(weights_are_prefetched_from_valid_addresses)
{
    spec s;
    kernel_set set;
    make(a, streams, &s, &set);
    for (size_t i = 0; i < set.kernel_count; i++) {
        const kernel *k = &set.kernels[i];
        verify_result r = verify_kernel(a, k, 1, NULL, false, NULL);
        if (!r.right)
            fail_msg("%s: %s", k->file, r.message);
        const char *wait = strstr(k->ptx, "griddepcontrol.wait");
        const char *fetched = strstr(k->ptx, "prefetch.global.L2");
        const char *staged = strstr(k->ptx, "// stage x");
        if (!staged)
            staged = strstr(k->ptx, "// stage a pass of x");
        if (!fetched || fetched > staged || (k->target->sm >= 90 && (!wait || fetched > wait)))
            fail_msg("%s prefetches nothing before x", k->file);
    }
}

/* With groups of 24 rows, q has 3 groups, k and v have one each, in separate streams. */
ARENA_TEST(a_block_prefetches_rows_of_its_first_matrix)
{
    static const char text[] =
        "[ptxgen]\nprefix = t\ntargets = sm_90\n[stream_qkv]\nweights = q4_k\nweights_k = q8_0\n"
        "weights_v = q6_k\nk = 1024\nn = 70\nn_kv = 23\n";
    spec s;
    kernel_set set;
    make(a, text, &s, &set);
    char *head = arena_strdup(a, set.kernels[0].ptx), *wait = strstr(head, "griddepcontrol.wait");
    char block[16];
    assert_non_null(wait);
    *wait = '\0';
    const char *from = strstr(head, ", %ctaid.x;");
    assert_non_null(from);
    while (*from != '%' || from[1] != 'r')
        from--;
    assert_int_equal(sscanf(from, "%15[%a-z0-9]", block), 1);
    assert_non_null(strstr(head, arena_format(a, ", %s, 3;", block)));
    assert_non_null(strstr(head, arena_format(a, ", %s, 4;", block)));
}

ARENA_TEST(steps_of_kernels_that_overlap_are_right)
{
    enum { ORDERS = 3 }; /* one of each kind */
    for (size_t n = 0; n < sizeof decoders / sizeof *decoders; n++) {
        spec s;
        kernel_set set;
        kernel *newest;
        size_t count = 0;
        if (!test_takes_row(n, EACH))
            continue;
        make(a, decoders[n], &s, &set);
        newest = arena_alloc(a, set.kernel_count * sizeof *newest);
        for (size_t i = 0; i < set.kernel_count; i++)
            if (set.kernels[i].overlaps)
                newest[count++] = set.kernels[i];
        step_result r =
            verify_step(a, set.plan, set.targets, set.target_count, newest, count, 1, ORDERS, 1);
        if (!r.right)
            fail_msg("%s\n%s", decoders[n], r.message);
    }
}

/* The kernels of a decoder's steps for targets that overlap, as generated or corrupted. */
typedef struct steps {
    spec spec;
    kernel_set set;
    kernel *kernels;
    size_t count;
} steps;

static void make_steps(arena *a, const char *text, steps *s)
{
    make(a, text, &s->spec, &s->set);
    s->kernels = arena_alloc(a, s->set.kernel_count * sizeof *s->kernels);
    s->count = 0;
    for (size_t i = 0; i < s->set.kernel_count; i++)
        if (s->set.kernels[i].overlaps)
            s->kernels[s->count++] = s->set.kernels[i];
}

/* Replaces every occurrence of words by other words in the kernels of a family. */
static void spoil(arena *a, steps *s, const char *family_name, const char *words, const char *by)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        kernel *k = &s->kernels[i];
        if (strcmp(k->instance->family->name, family_name) != 0)
            continue;
        strbuf text = strbuf_new(a);
        const char *from = k->ptx, *found;
        for (; (found = strstr(from, words)); from = found + strlen(words), count++)
            strbuf_format(&text, "%.*s%s", (int)(found - from), from, by);
        strbuf_put(&text, from);
        k->ptx = text.text;
        k->ptx_length = text.length;
    }
    assert_true(count > 0);
}

static void assert_race(arena *a, const steps *s, const char *const *words)
{
    step_result r = verify_step(a, s->set.plan, s->set.targets, s->set.target_count, s->kernels,
                                s->count, 1, 1, 1);
    assert_false(r.right);
    for (; *words; words++)
        if (!strstr(r.message, *words))
            fail_msg("'%s' is not in '%s'", *words, r.message);
}

#define NO_WAIT "may not have finished: no griddepcontrol.wait precedes the access [race]"

static const char small[] =
    HEAD "hidden = 64\nff = 96\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\n"
         "vocab = 96\nlayers = 1\nmax_seq_len = 32\nrope = norm\nweights = q8_0\nm = 1\n";
static const char llama[] =
    HEAD HEADS "ff = 96\nmax_seq_len = 64\nrope = norm\nweights = q8_0\nm = 1\n";

ARENA_TEST(a_step_reads_its_state_early_if_its_first_launch_waits)
{
    static const char *const old =
        "[ptxgen]\nprefix = t\ntargets = sm_80, sm_89\n[decoder]\n" HEADS
        "ff = 96\nmax_seq_len = 64\nrope = norm\nweights = q8_0\nm = 1\n";
    for (int n = 0; n < 2; n++) {
        spec s;
        kernel_set set;
        unsigned readers = 0;
        make(a, n ? llama : old, &s, &set);
        const plan *p = set.plan;
        const instance *first = &p->kernels[p->steps[0].launches[0].kernel];
        assert_int_equal(first->trigger, n ? TRIGGER_WAITED : TRIGGER_FIRST);
        for (size_t i = 0; i < p->kernel_count; i++)
            if (family_key(p->kernels[i].family, "state")) {
                assert_int_equal(p->kernels[i].state, n ? STATE_SETTLED : STATE_CHANGING);
                readers++;
            }
        assert_int_equal(readers, 2);
    }
}

ARENA_TEST(settled_values_are_read_and_prefetched_before_the_wait)
{
    unsigned readers = 0;
    for (size_t n = 0; n < sizeof decoders / sizeof *decoders; n++) {
        steps s;
        make_steps(a, decoders[n], &s);
        for (size_t i = 0; i < s.count; i++) {
            const kernel *k = &s.kernels[i];
            const char *wait = strstr(k->ptx, "griddepcontrol.wait");
            if (!family_key(k->instance->family, "state"))
                continue;
            assert_true(strstr(k->ptx, "ld.relaxed.gpu.global.u32") < wait);
            assert_true(strstr(k->ptx, "ld.relaxed.gpu.global.u64") < wait);
            if (k->instance->family->op != OP_ROPE_KV_WRITE)
                assert_true(strstr(k->ptx, "prefetch.global.L2") < wait);
            assert_null(strstr(wait, "ld.relaxed"));
            readers++;
        }
    }
    assert_true(readers > 2 * sizeof decoders / sizeof *decoders);
}

ARENA_TEST(steps_with_a_settled_state_are_the_same_in_a_hundred_orders)
{
    steps s;
    make_steps(a, small, &s);
    step_result r = verify_step(a, s.set.plan, s.set.targets, s.set.target_count, s.kernels,
                                s.count, 1, test_takes_row(1, EACH) ? 100 : 10, 1);
    if (!r.right)
        fail_msg("%s", r.message);
}

/* The step's first launch triggers at its start, like kernels outside of steps. The order decides
 * which of the early readers is found. */
ARENA_TEST(a_step_that_triggers_before_its_wait_races_with_the_preceding_step)
{
    steps s;
    make_steps(a, llama, &s);
    spoil(a, &s, "embed_rows", "griddepcontrol.launch_dependents;", "");
    spoil(a, &s, "embed_rows", "griddepcontrol.wait;",
          "griddepcontrol.launch_dependents; griddepcontrol.wait;");
    assert_race(a, &s,
                (const char *[]){ "race between launches: '", "_settled' loads byte ", "; 'sample",
                                  " launches before it", NO_WAIT, NULL });
}

/* The report must name the length: RoPE loads nothing else early. */
ARENA_TEST(a_length_that_is_not_settled_is_found)
{
    steps s;
    make_steps(a, llama, &s);
    spoil(a, &s, "embed_rows", "griddepcontrol.launch_dependents;", "");
    spoil(a, &s, "embed_rows", "griddepcontrol.wait;",
          "griddepcontrol.launch_dependents; griddepcontrol.wait;");
    spoil(a, &s, "rope_kv_write", "griddepcontrol.wait;", "");
    spoil(a, &s, "rope_kv_write", "griddepcontrol.launch_dependents;",
          "griddepcontrol.launch_dependents; griddepcontrol.wait;");
    assert_race(a, &s,
                (const char *[]){ "race between launches: 'gqa_flash_decoding", " loads byte ",
                                  " of 'lengths'", "; 'sample", "4 launches before it", NO_WAIT,
                                  NULL });
}

/* Cache rows may be prefetched but not loaded early: RoPE is about to write the last row. */
ARENA_TEST(a_cache_row_loaded_early_instead_of_prefetched_is_found)
{
    steps s;
    make_steps(a, llama, &s);
    spoil(a, &s, "gqa_flash_decoding", "prefetch.global.L2  [", "ld.global.u8 %spare, [");
    spoil(a, &s, "gqa_flash_decoding", "    .reg .pred ", "    .reg .b32 %spare;\n    .reg .pred ");
    assert_race(a, &s,
                (const char *[]){ "race between launches: 'gqa_flash_decoding", " loads byte ",
                                  " of 'K cache of layer ", "; 'rope_kv_write",
                                  "1 launch before it", "stores", NO_WAIT, NULL });
}
