/* Hot loops must have no shared-memory bank conflicts, except in look-ups of weights by
 * data-dependent indices. Code outside the loops is not counted: a problem with more iterations
 * must not have more conflicts. */
#include <string.h>

#include "test_arena.h"
#include "gen/attention/cache_row.h"
#include "gen/formats/weight_format.h"
#include "kernel/formula.h"
#include "kernel/suite.h"

/* Returns true for streaming families without experts. Experts use the same loops, and their random
 * lists change the number of stagings. */
static bool streams(const family *f)
{
    return !family_key(f, "experts") && strncmp(f->name, "stream_", strlen("stream_")) == 0;
}

static uint64_t bank_conflicts(arena *a, const instance *in, int64_t seq_len, bool random)
{
    kernel k = suite_kernel(a, in);
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 1 };
    setup.shape.seq_len = seq_len;
    trial t = trial_prepare(a, in, &setup);
    for (size_t i = 0; !random && i < t.param_count; i++) /* all lanes look up one entry */
        if (t.params[i].param.weights)
            memset(t.params[i].content.bytes, 0, t.params[i].content.stored);
    return suite_count(a, &k, &t, NULL).shared_bank_conflicts;
}

static void expect_no_more(const char *name, uint64_t few_turns, uint64_t many_turns)
{
    if (many_turns != few_turns)
        fail_msg("%s: %llu bank conflicts in the loops", name,
                 (unsigned long long)(many_turns - few_turns));
}

static void check_stream(const family *f, const char *weights, int k, int m)
{
    arena *a = arena_new();
    instance few = suite_made(a, f, "%sk=%d n=56 m=%d", weights, k, m);
    instance many = suite_made(a, f, "%sk=%d n=400 m=%d", weights, k, m);
    expect_no_more(many.name, bank_conflicts(a, &few, 0, false),
                   bank_conflicts(a, &many, 0, false));
    arena_free(a);
}

/* Both n stage activations in the same number of blocks; n = 400 only runs the loop longer. */
ARENA_TEST(streaming_gemvs_have_no_bank_conflicts_in_their_loops)
{
    static const struct {
        int k, m;
    } cases[] = { { 1024, 1 }, { 2560, 1 }, { 2048, 3 } };
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t w = 0; streams(*f) && (weights = suite_weights(a, *f, w)); w++)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                check_stream(*f, weights, cases[i].k, cases[i].m);
}

/* Loads of weights must not keep the L1 cache busy for longer than memory: an H200 delivers 17 bytes
 * per clock and SM, a B200 24.5. */
ARENA_TEST(streaming_gemvs_load_many_bytes_per_clock_of_the_l1)
{
    enum { K = 4096, FEW = 24, MANY = 240, LEAST = 27 };
    const family *f = family_find(families, "stream_gemv");
    const char *weights;
    for (size_t w = 0; (weights = suite_weights(a, f, w)); w++) {
        uint64_t passes[2];
        instance in = { 0 };
        for (int i = 0; i < 2; i++) {
            in = suite_made(a, f, "%sk=%d n=%d m=1", weights, K, i ? MANY : FEW);
            kernel k = suite_kernel(a, &in);
            trial_setup setup = { .shape = in.shape, .sm_count = 1, .seed = 1 };
            trial t = trial_prepare(a, &in, &setup);
            passes[i] = suite_count(a, &k, &t, NULL).global_load_passes;
        }
        uint64_t bytes = format_bytes(instance_weights(&in), (uint64_t)K * (MANY - FEW));
        double of_clock = (double)bytes / (double)(passes[1] - passes[0]);
        printf("%-8s %5.1f bytes per clock of the L1\n", formats[instance_weights(&in)].name,
               of_clock);
        if (of_clock < LEAST)
            fail_msg("%s: only %.1f bytes per clock", in.name, of_clock);
    }
}

/* Stages x for one row. Two scales and two sums of a lane are stored in two passes each. */
ARENA_TEST(streaming_gemvs_stage_x_without_bank_conflicts)
{
    enum { K = 4096, CHUNK = 512, OF_CHUNK = 2 };
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t w = 0; streams(*f) && (weights = suite_weights(a, *f, w)); w++) {
            instance in = suite_made(a, *f, "%sk=%d n=1 m=1", weights, K);
            const stream_format *of = &weight_format_of(instance_weights(&in))->stream;
            bool two = of->scales == SCALES && of->segments == 2;
            uint64_t stagings = in.family->op == OP_QKV ? 2 : 1;
            uint64_t allowed = two ? stagings * K / CHUNK * OF_CHUNK : 0;
            uint64_t conflicts = bank_conflicts(a, &in, 0, false);
            if (conflicts > allowed)
                fail_msg("%s: %llu bank conflicts", in.name, (unsigned long long)conflicts);
        }
}

/* On average 3.5 of 32 random words share a bank of 32: 2.5 conflicts. Eight weights need at most
 * three look-ups. */
ARENA_TEST(look_ups_have_no_more_bank_conflicts_than_random_ones)
{
    enum { K = 2048, ROWS = 400, LOOK_UPS = 3, LANES = 32, RUN = 8 };
    const char *weights;
    for (const family *const *f = families; *f; f++)
        for (size_t w = 0; streams(*f) && (weights = suite_weights(a, *f, w)); w++) {
            instance in = suite_made(a, *f, "%sk=%d n=%d", weights, K, ROWS);
            uint64_t matrices = in.family->op == OP_GATE_UP_SWIGLU ? 2 : 1;
            uint64_t look_ups = matrices * ROWS * K / RUN / LANES * LOOK_UPS;
            uint64_t conflicts = bank_conflicts(a, &in, 0, true) - bank_conflicts(a, &in, 0, false);
            if (conflicts > look_ups * 5 / 2)
                fail_msg("%s: %llu bank conflicts in %llu look-ups", in.name,
                         (unsigned long long)conflicts, (unsigned long long)look_ups);
        }
}

/* Runs with one tile of positions and with three. Per tile, each of four warps stores weights once,
 * with two conflicts. */
TEST(latent_attention_on_tensor_cores_has_bank_conflicts_only_for_weights)
{
    enum { TILE = 32, OF_WEIGHTS = 4 * 2 };
    static const int latents[] = { 32, 64, 256, 512 };
    const family *f = family_find(families, "mla_attention");
    for (size_t i = 0; i < sizeof latents / sizeof *latents; i++) {
        arena *a = arena_new();
        instance in = suite_made(a, f,
                                 "latent=%d n_rope=64 num_heads=16 m=1 max_seq_len=128 "
                                 "kv_type=f16 products=f16",
                                 latents[i]);
        expect_no_more(in.name, bank_conflicts(a, &in, TILE, true) + 2 * OF_WEIGHTS,
                       bank_conflicts(a, &in, 3 * TILE, true));
        arena_free(a);
    }
}

/* Runs one chunk, of which each warp reads half a tile or a whole tile. */
TEST(grouped_attention_has_no_bank_conflicts_in_its_loops)
{
    static const int head_dims[] = { 64, 80, 128, 256 }, ratios[] = { 1, 2, 3, 4, 7, 8, 12 };
    const family *f = family_find(families, "gqa_flash_decoding"); /* one block per KV head */
    assert_non_null(f);
    const choice *types = family_key(f, "kv_type")->choices;
    for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
        for (size_t j = 0; j < sizeof ratios / sizeof *ratios; j++)
            for (size_t t = 0; types[t].word; t++) {
                if (t == KV_Q8_0 && head_dims[i] % Q8_0_VALUES)
                    continue;
                arena *a = arena_new();
                instance in = suite_made(a, f,
                                         "head_dim=%d num_heads=%d num_kv_heads=1 m=1 "
                                         "max_seq_len=512 chunks=1 kv_type=%s",
                                         head_dims[i], ratios[j], types[t].word);
                int64_t threads = formula_value(f->launch.block, &in, NULL);
                expect_no_more(in.name, bank_conflicts(a, &in, threads, true),
                               bank_conflicts(a, &in, 2 * threads, true));
                arena_free(a);
            }
}
