/* The plan as printed by --plan: a model of five layers, two of them with another format. */
#include <math.h>
#include <string.h>

#include "cost/measured.h"
#include "plan_sample.h"

enum { LAYERS = 5, A_LAYER = 2, LAUNCHES = 1 + LAYERS * A_LAYER + 1, HIDDEN = 4096, VOCAB = 32000 };
enum { EMBED, GEMV_Q4, GEMV_Q6, ATTENTION, KERNELS };

typedef struct sample {
    instance kernels[KERNELS];
    plan_launch launches[LAUNCHES];
    plan_step steps[1];
    plan_buffer buffers[3];
    decoder decoder;
    plan plan;
} sample;

static instance kernel_of(arena *a, const char *name, int64_t weights)
{
    instance in = instance_of_defaults(family_find(families, name));
    in.weights = weights;
    in.shape.k = HIDDEN;
    in.shape.m = 1;
    in.shape.n = HIDDEN;
    in.name = instance_make_name(a, &in);
    return in;
}

static void add(sample *s, int64_t layer, size_t kernel, const char *said)
{
    s->launches[s->steps[0].launch_count++] =
        (plan_launch){ .kernel = kernel, .layer = layer, .said = said };
}

static sample *make(arena *a)
{
    sample *s = arena_zalloc(a, sizeof *s);
    s->kernels[EMBED] = kernel_of(a, "embed_rows", WEIGHTS_Q4_K);
    s->kernels[EMBED].shape.n = VOCAB;
    s->kernels[GEMV_Q4] = kernel_of(a, "stream_gemv", WEIGHTS_Q4_K);
    s->kernels[GEMV_Q6] = kernel_of(a, "stream_gemv", WEIGHTS_Q6_K);
    s->kernels[ATTENTION] = instance_of_defaults(family_find(families, "gqa_flash_decoding"));
    s->kernels[ATTENTION].shape = (problem_shape){
        .head_dim = 128, .num_heads = 32, .num_kv_heads = 8, .max_seq_len = 8192, .m = 1
    };
    s->kernels[ATTENTION].kv_type = KV_F16;
    s->steps[0] = (plan_step){ .m = 1, .launches = s->launches, .buffers = s->buffers };
    add(s, -1, EMBED, "token_embd.weight[token] -> h");
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        add(s, layer, ATTENTION, "q, cache[0..length) -> o");
        add(s, layer, layer == 1 || layer == 4 ? GEMV_Q6 : GEMV_Q4, "attn_output o + h -> h");
    }
    add(s, LAYERS, GEMV_Q6, "norm(h), output -> logits");
    s->buffers[0] = (plan_buffer){ .bytes = 4096, .offset = 0 };
    s->buffers[1] = (plan_buffer){ .bytes = 4096, .offset = 4096 };
    s->buffers[2] = (plan_buffer){ .bytes = 1024, .offset = 0 };
    s->steps[0].buffer_count = 3;
    s->decoder =
        (decoder){ .layers = LAYERS, .max_seq_len = 8192, .sequences = 2, .kv_type = KV_F16 };
    s->plan = (plan){ .decoder = &s->decoder,
                      .bytes = { [PLAN_WEIGHTS] = UINT64_C(4917800000),
                                 [PLAN_CACHE] = 1 << 20,
                                 [PLAN_STATE] = 1000,
                                 [PLAN_WORKSPACE] = 8192 },
                      .steps = s->steps,
                      .step_count = 1,
                      .kernels = s->kernels,
                      .kernel_count = KERNELS };
    return s;
}

static const char *printed(arena *a)
{
    strbuf out = strbuf_new(a);
    cost_plan(&out, &make(a)->plan, target_find("sm_90"), false);
    return out.text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("not in the plan: %s\n%s", part, text);
}

ARENA_TEST(layers_that_are_alike_are_shown_once)
{
    const char *text = printed(a);
    assert_has(text, "      layer 0, 2, 3:\n    2 gqa_flash_decoding ");
    assert_has(text, "    3 stream_gemv q4_k    attn_output o + h -> h ");
    assert_has(text, "      layer 1, 4:\n    4 gqa_flash_decoding ");
    assert_has(text, "    5 stream_gemv q6_k    attn_output o + h -> h ");
    assert_has(text, "   12 stream_gemv q6_k    norm(h), output -> logits ");
    assert_null(strstr(text, "\n    6 "));
}

/* Attention reads 4096 of 8192 positions. */
ARENA_TEST(a_step_takes_the_sum_of_its_launches)
{
    instance attention = make(a)->kernels[ATTENTION];
    double launches = 0, bytes = 0;
    attention.shape.max_seq_len = 4096;
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    const instance *kernels = make(a)->kernels;
    const instance used[] = { kernels[EMBED], kernels[GEMV_Q4], kernels[GEMV_Q6], attention };
    const double times[] = { 1, 3, 3, 5 };
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        cost_figures figures;
        cost_work work = cost_work_of(a, &used[i]);
        assert_true(cost_find(&used[i], target_find("sm_90"), &figures));
        launches += times[i] * cost_predict(&figures, &used[i], &work, &gpu).total;
        bytes += times[i] * work.bytes;
    }
    assert_true(cost_of_bytes(4e12, &gpu) > 4e12 / gpu.bandwidth);
    double between = (12 * COST_LAUNCH + 6 * COST_RAMP) * 1e6, seconds = launches * 1e6 + between;
    assert_has(printed(a),
               arena_format(a,
                            "step of 1 token, 12 launches, %.1f MB read and written: "
                            "predicted %.1f us on sm_90 (memory traffic %.1f us, launch gaps "
                            "%.1f us)\n",
                            bytes / 1e6, seconds, bytes / gpu.bandwidth * 1e6, between));
}

ARENA_TEST(overlapping_launches_have_shorter_gaps)
{
    sample *s = make(a);
    launch_cost costs[KERNELS];
    double launches = 0;
    for (size_t i = 0; i < KERNELS; i++)
        costs[i] = (launch_cost){ .seconds = 10e-6, .bytes = 1e6, .between = { 3e-6, 2e-6 } };
    for (size_t i = 0; i < LAUNCHES; i++)
        launches += costs[s->launches[i].kernel].seconds;
    step_cost apart = cost_of_step(s->steps, costs, false);
    step_cost overlapped = cost_of_step(s->steps, costs, true);
    assert_true(fabs(apart.between - LAUNCHES * 3e-6) < 1e-12);
    assert_true(fabs(overlapped.between - LAUNCHES * 2e-6) < 1e-12);
    assert_true(fabs(overlapped.seconds - launches - overlapped.between) < 1e-12);
    assert_true(overlapped.bytes > 11e6 && overlapped.bytes < 13e6);
    strbuf out[2] = { strbuf_new(a), strbuf_new(a) };
    for (int o = 0; o < 2; o++)
        cost_plan(&out[o], &s->plan, target_find("sm_90"), o);
    assert_string_not_equal(out[0].text, out[1].text);
}

/* One token after 256 others, in steps measured on an H200
 * (tests/bench/results/gpu-nvidia-h200.json). */
ARENA_TEST(predicted_steps_are_within_fifteen_percent_of_measured_ones)
{
    static const struct {
        const char *name, *text;
        double seconds;
    } measured[] = {
        { "Llama-3.2-1B BF16",
          "[decoder]\nlayers = 16\nhidden = 2048\nff = 8192\nnum_heads = 32\nnum_kv_heads = 8\n"
          "head_dim = 64\nvocab = 128256\nmax_seq_len = 8k\nweights = bf16\nm = 1\noutput = tied\n",
          879e-6 },
        { "Llama-3.1-8B Q8_0",
          "[decoder]\nlayers = 32\nhidden = 4096\nff = 14336\nnum_heads = 32\nnum_kv_heads = 8\n"
          "head_dim = 128\nvocab = 128256\nmax_seq_len = 8k\nweights = q8_0\nm = 1\n",
          2.711e-3 },
    };
    cost_gpu gpu = cost_gpu_of(target_find("sm_90a"));
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        plan *p = right_plan(a, measured[i].text, "sm_90a");
        launch_cost *costs = arena_alloc(a, p->kernel_count * sizeof *costs);
        cost_of_launches(a, p, p->steps, 257, &gpu, costs);
        double of_measured = cost_of_step(p->steps, costs, true).seconds / measured[i].seconds;
        print_message("%s: %.3f of the measured time\n", measured[i].name, of_measured);
        assert_true(of_measured > 0.85 && of_measured < 1.15);
    }
}

/* Prefetched bytes are subtracted from the next launch's memory time. This is an upper bound:
 * measurements on an H200 show no gain. */
ARENA_TEST(bytes_prefetched_for_the_next_launch_are_counted_once)
{
    static const char text[] =
        "[decoder]\nlayers = 16\nhidden = 2048\nff = 8192\n"
        "num_heads = 32\nnum_kv_heads = 8\nhead_dim = 64\n"
        "vocab = 128256\nmax_seq_len = 160\nweights = bf16\nm = 1\nnext = fetched\n";
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    plan *p = right_plan(a, text, "sm_90");
    launch_cost *costs = arena_alloc(a, p->kernel_count * sizeof *costs);
    cost_of_launches(a, p, p->steps, p->decoder->max_seq_len, &gpu, costs);
    step_cost fetching[2] = { cost_of_step(p->steps, costs, false),
                              cost_of_step(p->steps, costs, true) };
    for (size_t i = 0; i < p->kernel_count; i++)
        p->kernels[i].next = 0;
    cost_of_launches(a, p, p->steps, p->decoder->max_seq_len, &gpu, costs);
    for (int overlapped = 0; overlapped < 2; overlapped++) {
        step_cost step = cost_of_step(p->steps, costs, overlapped);
        assert_true(fetching[overlapped].seconds < 0.98 * step.seconds);
        assert_true(fetching[overlapped].seconds > step.bytes / gpu.bandwidth);
        assert_true(fetching[overlapped].bytes == step.bytes);
    }
}

/* RoPE and attention. Attention's lengths, cache addresses and rows of K and V are prefetched: they
 * have arrived or are in flight when RoPE ends. */
typedef struct attention_step {
    plan_launch launches[2];
    plan_step step;
    instance kernels[2];
    plan plan;
    launch_cost costs[2];
} attention_step;

static attention_step *predict_attention(arena *a, const char *ahead, int64_t state, const char *on)
{
    attention_step *s = arena_zalloc(a, sizeof *s);
    cost_gpu gpu = cost_gpu_of(target_find(on));
    s->kernels[0] = kernel_of(a, ahead, WEIGHTS_Q4_K);
    s->kernels[1] = kernel_of(a, "mma_flash_decoding", WEIGHTS_F32);
    for (size_t i = 0; i < 2; i++) {
        if (s->kernels[i].family->op != OP_GEMV)
            s->kernels[i].shape = (problem_shape){ .head_dim = 128,
                                                   .num_heads = 32,
                                                   .num_kv_heads = 8,
                                                   .max_seq_len = 4096,
                                                   .chunk_size = 128,
                                                   .m = 1 };
        s->kernels[i].kv_type = KV_F16;
        s->launches[i] = (plan_launch){ .kernel = i, .said = "" };
    }
    s->kernels[1].state = state;
    s->kernels[1].chunking = CHUNKING_FIXED;
    s->kernels[1].chunks = 64;
    s->step = (plan_step){ .m = 1, .launches = s->launches, .launch_count = 2 };
    static const decoder one_sequence = { .sequences = 1 };
    s->plan = (plan){
        .decoder = &one_sequence, .kernels = s->kernels, .kernel_count = 2, .steps = &s->step
    };
    cost_of_launches(a, &s->plan, &s->step, 4096, &gpu, s->costs);
    return s;
}

ARENA_TEST(attention_s_early_loads_of_a_settled_state_are_hidden)
{
    const attention_step *changing = predict_attention(a, "rope_kv_write", STATE_CHANGING, "sm_90");
    const attention_step *settled = predict_attention(a, "rope_kv_write", STATE_SETTLED, "sm_90");
    double rope = settled->costs[0].seconds, hidden = settled->costs[1].spared[1];
    print_message("%.2f us, %.2f of them hidden behind %.2f\n", settled->costs[1].seconds * 1e6,
                  hidden * 1e6, rope * 1e6);
    assert_true(hidden > 0.5 * rope && hidden <= rope);
    assert_true(changing->costs[1].spared[1] == 0 && settled->costs[0].spared[1] == 0);
    assert_true(settled->costs[1].spared[0] == 0);
    /* by itself it takes as long: the rows are in flight while it waits for q */
    assert_true(fabs(settled->costs[1].seconds / changing->costs[1].seconds - 1) < 0.02);
    step_cost apart = cost_of_step(&settled->step, settled->costs, false);
    step_cost overlapped = cost_of_step(&settled->step, settled->costs, true);
    double seen = rope + settled->costs[1].seconds - hidden;
    assert_true(apart.seconds > rope + settled->costs[1].seconds);
    assert_true(fabs(overlapped.seconds - seen - 2 * COST_OVERLAPPED_LAUNCH) < 1e-12);
}

/* A prefetch through attention over a window must save memory time of attn_output. */
ARENA_TEST(bytes_prefetched_through_attention_are_there_after_it)
{
    static const char text[] =
        "[decoder]\nlayers = 2\nhidden = 4096\nff = 14336\n"
        "num_heads = 32\nnum_kv_heads = 8\nhead_dim = 128\nvocab = 8k\n"
        "max_seq_len = 8k\nweights = q4_k\nm = 1\nwindow = 128\nnext = fetched\n";
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    const plan *p = right_plan(a, text, "sm_90");
    launch_cost *costs = arena_alloc(a, p->kernel_count * sizeof *costs);
    cost_of_launches(a, p, p->steps, 4096, &gpu, costs);
    size_t checked = 0;
    for (size_t i = 0; i < p->steps[0].launch_count; i++) {
        const plan_launch *l = &p->steps[0].launches[i];
        const launch_cost *c = &costs[l->kernel];
        for (int o = 0; o < 2; o++)
            assert_true(c->spared[o] > -1e-12 && c->spared[o] < c->seconds);
        if (strncmp(l->said, "attn_output", strlen("attn_output")) == 0) {
            double memory =
                (double)p->decoder->hidden * (double)p->decoder->hidden / 256 * 144 / gpu.bandwidth;
            assert_true(c->spared[0] > 0.05 * memory && c->spared[0] < memory);
            checked++;
        }
    }
    assert_int_equal(checked, 2);
}

ARENA_TEST(nothing_is_hidden_without_room_or_overlap)
{
    const attention_step *full = predict_attention(a, "stream_gemv", STATE_SETTLED, "sm_90");
    const attention_step *older = predict_attention(a, "rope_kv_write", STATE_SETTLED, "sm_89");
    assert_true(full->costs[1].spared[1] == 0 && older->costs[1].spared[1] == 0);
}

/* A kernel for a target that is older than every measured target. */
ARENA_TEST(a_launch_without_figures_takes_the_time_of_its_bytes)
{
    target old = *target_find("sm_75");
    cost_gpu gpu = cost_gpu_of(target_find("sm_75"));
    old.sm = 70;
    gpu.target = &old;
    launch_cost cost = cost_of_launch(a, &make(a)->kernels[EMBED], 1, 1, &gpu);
    assert_true(cost.bytes == HIDDEN * 144.0 / 256 + HIDDEN * 4 + 4);
    assert_true(cost.seconds == cost_of_bytes(cost.bytes, &gpu));
    assert_string_equal(cost.bound, "");
}

ARENA_TEST(attention_reads_at_most_the_positions_of_a_window)
{
    instance whole = make(a)->kernels[ATTENTION], windowed = whole;
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    windowed.options.window = 1024;
    assert_true(cost_of_launch(a, &windowed, windowed.shape.m, 4096, &gpu).bytes ==
                cost_of_launch(a, &whole, whole.shape.m, 1024, &gpu).bytes);
    assert_true(cost_of_launch(a, &windowed, windowed.shape.m, 512, &gpu).bytes ==
                cost_of_launch(a, &whole, whole.shape.m, 512, &gpu).bytes);
}

ARENA_TEST(a_ring_has_at_most_the_positions_of_attention)
{
    instance whole = make(a)->kernels[ATTENTION], ring = whole;
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    ring.options.window = 1024;
    ring.options.ring = 1280;
    assert_true(cost_of_launch(a, &ring, ring.shape.m, 4096, &gpu).bytes ==
                cost_of_launch(a, &whole, whole.shape.m, 1024, &gpu).bytes);
}

static instance experts_kernel(arena *a, const char *name, int64_t m)
{
    instance in = kernel_of(a, name, WEIGHTS_Q4_K);
    for (const key *k = in.family->keys; k->name; k++)
        if (k->like)
            instance_set(&in, k, instance_default(&in, k));
    in.shape.m = m;
    in.shape.n = in.shape.plane_rows = 256;
    in.shape.experts = 64;
    in.shape.experts_used = 4;
    return in;
}

/* One row reads 4 of 64 experts. Two rows read 4 each, of which 1/16 of the second's are the
 * first's. */
ARENA_TEST(only_used_experts_are_read)
{
    static const char *const names[] = { "stream_expert_gate_up", "stream_expert_down" };
    const double plane = 256.0 * HIDDEN * 144 / 256, planes[] = { 4, 4 + 4 * 15.0 / 16 };
    cost_gpu gpu = cost_gpu_of(target_find("sm_90"));
    for (unsigned i = 0; i < 2; i++)
        for (unsigned m = 1; m <= 2; m++) {
            instance in = experts_kernel(a, names[i], m);
            double weights = planes[m - 1] * plane * (i ? 1 : 2);
            double bytes = cost_of_launch(a, &in, in.shape.m, 1, &gpu).bytes;
            assert_true(bytes > weights && bytes < weights * 1.1);
        }
}

ARENA_TEST(formats_are_printed_only_for_present_matrices)
{
    instance in = experts_kernel(a, "stream_expert_down", 1);
    instance_set(&in, family_key(in.family, "weights_s"), WEIGHTS_Q6_K);
    assert_string_equal(cost_label(a, &in), "stream_expert_down q4_k");
    in.shape.n_shared = 256;
    assert_string_equal(cost_label(a, &in), "stream_expert_down q4_k q6_k");
}

ARENA_TEST(memory_is_printed_in_suitable_units)
{
    assert_has(printed(a),
               "memory  weights 4.58 GiB, cache 1.0 MiB (8192 positions of 2 sequences, f16), "
               "state 1000 bytes, workspace 8.0 KiB (3 buffers at 2 offsets)\n");
}

/* Prompt attention without measured figures takes at least the tensor cores' time. */
ARENA_TEST(attention_of_prompts_takes_the_time_of_its_products)
{
    cost_gpu gpu = cost_gpu_of(target_find("sm_80"));
    instance in = instance_of_defaults(family_find(families, "mma_attention"));
    in.shape.head_dim = 128;
    in.shape.num_heads = 32;
    in.shape.num_kv_heads = 8;
    in.shape.max_seq_len = 4096;
    launch_cost cost = cost_of_launch(a, &in, 256, 4096, &gpu);
    double fmas = 2.0 * 2 * 64 * 128 * 4096; /* of two blocks of 64 rows: 128 blocks, 108 SMs */
    assert_true(fabs(cost.seconds / (fmas / (0.4 * 1024 * gpu.clock)) - 1) < 1e-9);
    assert_true(cost.seconds > cost_of_bytes(cost.bytes, &gpu));
    assert_true(cost_of_launch(a, &in, 8, 4096, &gpu).seconds == cost.seconds / 2); /* 8 blocks */
}

static instance streaming(arena *a, int64_t weights, int64_t k, int64_t n, int64_t m)
{
    instance in = kernel_of(a, "stream_gemv", weights);
    in.shape.k = k;
    in.shape.n = n;
    in.shape.m = m;
    return in;
}

static double predicted_seconds(arena *a, const instance *in, const target *t)
{
    cost_gpu gpu = cost_gpu_of(t);
    cost_work work = cost_work_of(a, in);
    cost_figures figures;
    assert_true(cost_find(in, t, &figures));
    return cost_predict(&figures, in, &work, &gpu).total;
}

/* Blocks of 16 warps compute 32 rows on almost every SM of an H200 and stage x once. Two blocks of
 * 12 warps would leave most SMs with one block. */
ARENA_TEST(a_plan_s_kernel_has_the_warps_and_rows_that_suit_its_targets)
{
    const instance kernels[] = { streaming(a, WEIGHTS_Q4_K, 4096, 4096, 1),
                                 streaming(a, WEIGHTS_Q4_K, 4096, 14336, 1),
                                 streaming(a, WEIGHTS_Q6_K, 14336, 4096, 1) };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (size_t t = 0; t < target_count; t++) {
            const target *wanted[] = { &targets[t] };
            instance tuned = kernels[i], other = tuned;
            cost_tune(&tuned, tuned.shape.m, wanted, 1);
            double seconds = predicted_seconds(a, &tuned, wanted[0]);
            for (int64_t warps = 1; warps <= 12; warps++)
                for (other.rows_per_warp = 1; other.rows_per_warp <= 2; other.rows_per_warp++) {
                    other.num_warps = warps;
                    bool is_tried = warps <= 4 || warps % 2 == 0;
                    assert_true(!is_tried ||
                                seconds <= 1.011 * predicted_seconds(a, &other, wanted[0]));
                }
        }
    const target *h200[] = { target_find("sm_90") };
    instance in = kernels[0];
    cost_tune(&in, in.shape.m, h200, 1);
    assert_int_equal(in.num_warps, 16);
}

ARENA_TEST(targets_share_a_kernel_that_is_good_for_all)
{
    const target *both[] = { target_find("sm_80"), target_find("sm_90") };
    const instance usual = streaming(a, WEIGHTS_Q4_K, 4096, 4096, 1);
    instance tuned = usual;
    double gained = 0;
    cost_tune(&tuned, tuned.shape.m, both, 2);
    for (size_t t = 0; t < 2; t++)
        gained += 1 - predicted_seconds(a, &tuned, both[t]) / predicted_seconds(a, &usual, both[t]);
    assert_true(gained > 0.02 * 0.99);
    assert_true(tuned.num_warps != usual.num_warps || tuned.rows_per_warp != usual.rows_per_warp);
}

/* Sums over several warps depend on their number. Several vectors share rows of x. */
ARENA_TEST(a_plan_s_kernel_keeps_keys_that_determine_its_bits_or_figures)
{
    const target *wanted[] = { target_find("sm_90") };
    instance exact = kernel_of(a, "mwv_q4k_gemv", WEIGHTS_Q4_K), before = exact;
    exact.num_warps = before.num_warps = 32;
    cost_tune(&exact, exact.shape.m, wanted, 1);
    assert_int_equal(exact.num_warps, before.num_warps);
    instance several = streaming(a, WEIGHTS_Q4_K, 4096, 4096, 8);
    cost_tune(&several, several.shape.m, wanted, 1);
    assert_int_equal(several.rows_per_warp, 2);
}

/* 32 tiles of columns and 256 rows: tiles of 64 rows give nearly as many blocks as an H200 has SMs.
 * 132 tiles and 128 rows: tiles of 128 rows do. A kernel with fixed rows keeps its tile. */
TEST(products_of_prompts_have_tiles_that_fill_the_gpu)
{
    const target *h200[] = { target_find("sm_90") };
    instance in = { .family = family_find(families, "mma_gemm") };
    for (const key *k = in.family->keys; k->name; k++)
        instance_set(&in, k, instance_default(&in, k));
    in.weights = instance_weights_index(FORMAT_Q4_K);
    in.shape.k = in.shape.n = 4096;
    instance narrow = in, fixed = in, wide = in;
    fixed.rows_mode = ROWS_FIXED;
    wide.shape.n = 128 * 132;
    cost_tune(&narrow, 256, h200, 1);
    cost_tune(&fixed, 128, h200, 1);
    cost_tune(&wide, 128, h200, 1);
    assert_int_equal(narrow.shape.m, 64);
    assert_int_equal(fixed.shape.m, 128);
    assert_int_equal(wide.shape.m, 128);
}
