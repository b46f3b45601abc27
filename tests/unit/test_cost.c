/* The cost model: its table is complete, and its predictions follow from its figures. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "cost/cost.h"

static const cost_figures counted = {
    .registers = 64,
    .shared = 1024,
    .instructions = 2,
    .load_bytes = 16,
    .unit_bytes = 34.0 / 32,
    .turn = 1,
    .in_flight = 32,
};

#define TEST_GEMV(id)                                                             \
    .name = #id, .weights = FORMAT_Q8_0, .activations = FORMAT_F32,               \
    .keys = (const key[]){ KEY_K(32), KEY_N, KEY_END }, .params = (const param[]) \
    {                                                                             \
        OUT(F32, y, "n", 4), IN(Q8_0, w, "n*k", 2), IN(F32, x, "k", 4), PARAM_END \
    }

/* Eight warps per block at 64 registers: four blocks per SM. q8_0 has 34 bytes per 32 weights. */
static const family test_gemv = {
    TEST_GEMV(test_gemv),
    .launch = { .block = "256", .grid = { "n" } },
};

/* test_gemv with persistent blocks: each iteration computes eight rows, with x in shared memory. */
static const family staying_gemv = {
    TEST_GEMV(staying_gemv),
    .launch = { .block = "256",
                .grid = { "min(ceil_div(n, 8), sm_count*2)" },
                .dynamic_shared = "k",
                .rows = "8" },
};

static cost_prediction predict(const cost_figures *f, const instance *in, const cost_gpu *gpu)
{
    arena *a = arena_new();
    cost_work work = cost_work_of(a, in);
    arena_free(a);
    return cost_predict(f, in, &work, gpu);
}

static instance gemv_of(int64_t k, int64_t n)
{
    return (instance){ .family = &test_gemv, .name = "test_gemv", .shape = { .k = k, .n = n } };
}

static cost_gpu gpu_of(double sm_count, double clock, double bandwidth)
{
    return (cost_gpu){ target_find("sm_80"), sm_count, clock, bandwidth, 1024, 0, 0 };
}

static void close_to(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}

static instance default_instance(const char *family_name, format weights)
{
    instance in = instance_of_defaults(family_find(families, family_name));
    in.weights = instance_weights_index(weights);
    for (const key *k = in.family->keys; k->name; k++)
        if (k->like)
            instance_set(&in, k, instance_default(&in, k));
    return in;
}

TEST(streaming_families_stay_within_their_budgets)
{
    static const struct {
        format weights;
        double most_instructions;
    } budgets[] = {
        { FORMAT_Q4_K, 1.4 }, { FORMAT_Q6_K, 2.2 }, { FORMAT_Q8_0, 1.1 },
        { FORMAT_Q5_0, 2.2 }, { FORMAT_Q4_0, 1.2 },
    };
    enum { LANES = 12 * 32 };
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
        for (unsigned sm = 80; sm <= 90; sm += 10) {
            cost_figures f;
            instance in = default_instance("stream_gemv", budgets[i].weights);
            const target *t = target_find(sm == 80 ? "sm_80" : "sm_90");
            assert_true(cost_find(&in, t, &f));
            unsigned blocks = target_blocks_per_sm(t, LANES, f.registers, 0);
            assert_true(f.in_flight * blocks * LANES >= 25e3);
            if (f.instructions > budgets[i].most_instructions + 0.05)
                fail_msg("%s: %.2f", formats[budgets[i].weights].name, f.instructions);
        }
}

/* Without ptx_keep_loads, ptxas would postpone half of the loads. */
TEST(products_with_many_vectors_load_a_whole_iteration_at_once)
{
    static const format weights[] = { FORMAT_Q4_K, FORMAT_Q6_K, FORMAT_Q8_0,   FORMAT_Q5_0,
                                      FORMAT_Q4_0, FORMAT_Q5_1, FORMAT_IQ4_XS, FORMAT_MXFP4 };
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        for (size_t t = 0; t < target_count; t++) {
            cost_figures f;
            instance in = default_instance("stream_gemv", weights[i]);
            in.shape.m = 8;
            assert_true(cost_find(&in, &targets[t], &f));
            if (f.in_flight < 0.99 * f.turn * f.unit_bytes)
                fail_msg("%s, %s: %.0f bytes", formats[weights[i]].name, targets[t].name,
                         f.in_flight);
        }
}

TEST(memory_time_is_every_byte_once_at_the_speed_of_reads)
{
    instance in = gemv_of(4096, 1000);
    cost_gpu gpu = gpu_of(1000, 1e12, 1e9);
    cost_prediction p = predict(&counted, &in, &gpu);
    close_to(p.times[BOUND_MEMORY], (1000 * 4096 / 32 * 34 + 4 * 4096 + 4 * 1000) / 1e9);
    assert_int_equal(p.bound, BOUND_MEMORY);
}

static cost_prediction of_experts(int64_t k, int64_t n)
{
    instance in = default_instance("stream_expert_down", FORMAT_Q6_K);
    cost_gpu gpu = gpu_of(108, 1e9, 1e12);
    cost_figures f;
    in.shape.k = k;
    in.shape.n = n;
    in.shape.experts = in.shape.experts_used = 8;
    assert_true(cost_find(&in, gpu.target, &f));
    return predict(&f, &in, &gpu);
}

/* Four rows of 512 weights must fill a warp like one row of 2048. */
TEST(narrow_rows_cost_lanes_as_much_as_wide_rows)
{
    cost_prediction narrow = of_experts(512, 2048), wide = of_experts(2048, 512);
    close_to(narrow.times[BOUND_ISSUE], wide.times[BOUND_ISSUE]);
    close_to(narrow.times[BOUND_LATENCY], wide.times[BOUND_LATENCY]);
}

TEST(issue_time_is_warp_instructions_over_all_schedulers)
{
    instance in = gemv_of(4096, 1000);
    cost_figures figures = counted;
    figures.instructions = 3;
    cost_gpu gpu = gpu_of(10, 1e6, 1e15);
    cost_prediction p = predict(&figures, &in, &gpu);
    close_to(p.times[BOUND_ISSUE], 1000.0 * 4096 * 3 / 32 / (10 * 4 * 1e6));
    assert_int_equal(p.bound, BOUND_ISSUE);
}

TEST(latency_time_is_round_trips_of_the_bytes_in_flight)
{
    instance in = gemv_of(4096, 1000);
    cost_gpu gpu = gpu_of(2, 1e12, 1e15);
    cost_prediction p = predict(&counted, &in, &gpu);
    double in_flight_sm = 4 * 256 * 32;
    assert_int_equal(p.warps_sm, 32);
    close_to(p.in_flight_sm, in_flight_sm);
    /* The start includes the first round trip and the load of x for it: 1/16 of x per block, four
     * blocks per SM through the SM's port. */
    close_to(p.start, 780e-9 + 4 * 4096 * 4 / 16.0 / 64e12);
    close_to(p.times[BOUND_LATENCY],
             1000.0 * 4096 / 32 * 34 * 780e-9 / (2 * in_flight_sm) - 780e-9);
    assert_int_equal(p.bound, BOUND_LATENCY);
}

TEST(a_grid_smaller_than_the_gpu_uses_a_part_of_it)
{
    instance one_block = gemv_of(4096, 1), two_blocks = gemv_of(4096, 2);
    cost_gpu gpu = gpu_of(100, 1e9, 1e12);
    cost_prediction one = predict(&counted, &one_block, &gpu);
    cost_prediction two = predict(&counted, &two_blocks, &gpu);
    close_to(one.times[BOUND_ISSUE], two.times[BOUND_ISSUE]);
    close_to(one.times[BOUND_LATENCY], two.times[BOUND_LATENCY]);
    close_to(one.times[BOUND_ISSUE], 4096 * 2 / 32.0 / (4 * 1e9));
}

TEST(a_warp_that_is_not_persistent_has_instructions_outside_its_loop)
{
    cost_figures figures = counted;
    figures.beside = 100;
    instance in = gemv_of(4096, 1000), staying = in;
    staying.family = &staying_gemv;
    staying.shape.m = 1;
    cost_gpu gpu = gpu_of(10, 1e6, 1e15);
    close_to(predict(&figures, &in, &gpu).times[BOUND_ISSUE],
             1000.0 * (4096 * 2 / 32.0 + 8 * 100) / (10 * 4 * 1e6));
    /* 125 iterations of 8 rows: the busiest SMs have 13. */
    close_to(predict(&figures, &staying, &gpu).times[BOUND_ISSUE],
             13 * 8 * 4096 * 2 / 32.0 / (4 * 1e6));
}

TEST(persistent_blocks_stage_x_before_their_loop)
{
    instance in = gemv_of(12288, 1600), passing = in;
    in.family = &staying_gemv;
    in.shape.m = 1;
    cost_gpu gpu = gpu_of(100, 1e9, 1e12);
    cost_prediction p = predict(&counted, &in, &gpu);
    /* Staging loads 8192 values at once: two round trips, plus one for the first weights. Two
     * blocks bring x through the SM's port at 5120 / 100 bytes per clock; one block issues 8
     * instructions per value. */
    close_to(p.start, 3 * 780e-9 + 2 * 12288 * 4 / 51.2e9 + 12288 / 32.0 * 8 / (4 * 1e9));
    in.passes = 3; /* passes per iteration; there is one iteration here */
    close_to(predict(&counted, &in, &gpu).start, p.start);
    in.shape.n = 3200;
    close_to(predict(&counted, &in, &gpu).start, 2 * p.start - 780e-9);
    in.passes = 0;
    close_to(predict(&counted, &in, &gpu).start, p.start);
    in.shape.m = 0; /* like a family without m */
    close_to(predict(&counted, &in, &gpu).start, p.start);
    /* Four blocks without staging each read 1/48 of x for their first iterations. */
    close_to(predict(&counted, &passing, &gpu).start, 780e-9 + 4 * 12288 * 4 / 48.0 / 51.2e9);
}

/* Returns the predicted saving, in a case that is almost purely memory-bound. */
static double gained(const instance *staying, const instance *ahead, const cost_gpu *gpu)
{
    return predict(&counted, staying, gpu).total - predict(&counted, ahead, gpu).total;
}

static void about(double got, double expected)
{
    if (!(fabs(got - expected) <= 0.01 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}

/* With prefetch, memory is busy from its first round trip until the prefetched bytes have arrived.
 * On an RTX 3090 the small L2 limits the prefetch to 12 lines per warp. */
TEST(prefetched_weights_keep_memory_busy_while_x_is_staged)
{
    family fetching = staying_gemv;
    fetching.launch.weights_first = true;
    instance staying = gemv_of(4096, 128000), ahead = staying;
    staying.family = &staying_gemv;
    ahead.family = &fetching;
    cost_gpu gpu = gpu_of(100, 1e9, 1e11);
    double staging = predict(&counted, &staying, &gpu).start - 780e-9;
    about(gained(&staying, &ahead, &gpu), staging);
    staying.shape.k = ahead.shape.k = 1 << 15;
    gpu.bandwidth = 5e11;
    gpu.target = target_find("sm_86");
    about(gained(&staying, &ahead, &gpu), 100 * 2 * 8 * 12 * 128 / gpu.bandwidth);
}

TEST(persistent_blocks_wait_for_blocks_with_one_more_iteration)
{
    instance even = gemv_of(4096, 1600), one_more = gemv_of(4096, 1608);
    even.family = one_more.family = &staying_gemv;
    cost_gpu gpu = gpu_of(100, 1e12, 1e15);
    double first = 780e-9;
    close_to(predict(&counted, &one_more, &gpu).times[BOUND_LATENCY] + first,
             2 * (predict(&counted, &even, &gpu).times[BOUND_LATENCY] + first));
}

/* Iterations of 8 rows: 150 blocks on 100 SMs, so every second SM has two. */
TEST(memory_waits_for_the_busiest_sms)
{
    instance even = gemv_of(4096, 1600), uneven = gemv_of(4096, 1200);
    even.family = uneven.family = &staying_gemv;
    cost_gpu gpu = gpu_of(100, 1e9, 2e12);
    double turn = 8.0 * 4096 / 32 * 34, bytes = 1200.0 * 4096 / 32 * 34 + 4096 * 4 + 1200 * 4;
    double of_sm = 2 * 256 * 32 / 780e-9;
    assert_true(predict(&counted, &even, &gpu).times[BOUND_BALANCE] <= 0);
    /* The memory time of 100 iterations, one round trip, and the remaining iterations. 2 blocks per
     * SM run the remaining iterations, with 256 lanes and 32 bytes in flight per lane. */
    close_to(predict(&counted, &uneven, &gpu).times[BOUND_BALANCE],
             100 * bytes / 150 / 2e12 + 780e-9 + turn / of_sm);
    gpu.bandwidth = 50 * of_sm; /* the remaining blocks alone saturate it */
    assert_true(predict(&counted, &uneven, &gpu).times[BOUND_BALANCE] <= 0);
}

/* Memory and latency bounds of about 10 us each combine to a time about 20 % longer. */
TEST(bounds_of_similar_time_add_up)
{
    instance in = gemv_of(4096, 1000);
    cost_gpu gpu = gpu_of(10, 1e12, 4e11);
    cost_prediction p = predict(&counted, &in, &gpu);
    double memory = p.times[BOUND_MEMORY], latency = p.times[BOUND_LATENCY];
    double together = pow(pow(memory, 4) + pow(latency, 4) + pow(p.times[BOUND_ISSUE], 4), 0.25);
    assert_true(p.times[BOUND_BALANCE] <= memory);
    assert_true(together > 1.1 * memory && together > 1.1 * latency);
    close_to(p.total, p.start + together);
    gpu.bandwidth *= 1e-3;
    p = predict(&counted, &in, &gpu);
    close_to(p.total, p.start + p.times[BOUND_MEMORY]);
}

TEST(many_rows_at_once_cost_dram_pages_on_sm_75)
{
    instance in = default_instance("stream_gemv", FORMAT_Q4_K);
    instance shared = default_instance("inline_q8_dp4a_q4k_gemv", FORMAT_Q4_K);
    in.shape = shared.shape = (problem_shape){ .k = 4096, .n = 14336, .m = 1 };
    cost_gpu gpu = gpu_of(100, 1e12, 1e9), older = gpu;
    older.target = target_find("sm_75");
    double whole = predict(&counted, &in, &gpu).times[BOUND_MEMORY];
    close_to(predict(&counted, &in, &older).times[BOUND_MEMORY], whole / 0.81);
    close_to(predict(&counted, &shared, &older).times[BOUND_MEMORY], whole);
    shared.num_warps = 2; /* a block reads two rows */
    close_to(predict(&counted, &shared, &older).times[BOUND_MEMORY], whole / 0.81);
}

ARENA_TEST(dependent_first_loads_and_merges_are_round_trips)
{
    static const struct {
        const char *family;
        double ahead, behind;
    } cases[] = {
        { "gqa_flash_decoding", 1, 3 }, /* before: lengths, addresses; after: counter, chunks */
        { "embed_rows", 1, 0 },         /* before: tokens */
        { "sample", 0, 0 },             /* positions are loaded, but logits do not depend on them */
        { "stream_gemv", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        instance in = default_instance(cases[i].family, FORMAT_Q4_K);
        cost_gpu gpu = gpu_of(100, 1e9, 1e12);
        in.shape.k = in.shape.n = 4096;
        in.shape.m = 1;
        in.shape.head_dim = 128;
        in.shape.num_heads = in.shape.num_kv_heads = 8;
        in.shape.max_seq_len = in.shape.seq_len = 4096;
        cost_work work = cost_work_of(a, &in), none = work;
        assert_true(fabs(work.first_trips - cases[i].ahead) < 0.5);
        assert_true(fabs(work.last_trips - cases[i].behind) < 0.5);
        none.first_trips = none.last_trips = 0;
        cost_prediction p = cost_predict(&counted, &in, &work, &gpu);
        close_to(p.total, cost_predict(&counted, &in, &none, &gpu).total +
                              (cases[i].ahead + cases[i].behind) * 780e-9);
        close_to(p.end, cases[i].behind * 780e-9);
    }
}

ARENA_TEST(a_single_chunk_is_not_merged)
{
    static const struct {
        int64_t chunking, size, window;
        double behind;
    } cases[] = {
        { CHUNKING_FIXED, 128, 0, 3 },   { CHUNKING_FIXED, 4096, 0, 0 },
        { CHUNKING_FIXED, 128, 128, 0 }, { CHUNKING_FIXED, 128, 129, 3 },
        { CHUNKING_FREE, 4096, 0, 3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        instance in = default_instance("gqa_flash_decoding", FORMAT_Q4_K);
        in.shape = (problem_shape){ .m = 1,
                                    .head_dim = 128,
                                    .num_heads = 8,
                                    .num_kv_heads = 8,
                                    .max_seq_len = 4096,
                                    .chunk_size = cases[i].size };
        in.chunking = cases[i].chunking;
        in.options.window = cases[i].window;
        assert_true(fabs(cost_work_of(a, &in).last_trips - cases[i].behind) < 0.5);
    }
}

/* A KV head has 20 query heads. Blocks of 7 heads load each value three times, blocks of 10 twice.
 */
ARENA_TEST(blocks_load_a_cache_for_several_heads)
{
    static const struct {
        const char *family;
        unsigned heads;
        double times;
    } cases[] = { { "gqa_flash_decoding", 7, 3 }, { "mma_flash_decoding", 10, 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        instance in = default_instance(cases[i].family, FORMAT_NONE);
        in.shape = (problem_shape){ .m = 3,
                                    .head_dim = 64,
                                    .num_heads = 40,
                                    .num_kv_heads = 2,
                                    .max_seq_len = 100,
                                    .seq_len = 100 };
        in.kv_type = KV_F16;
        assert_int_equal(cost_vectors(&in), cases[i].heads);
        close_to(cost_work_of(a, &in).units, cases[i].times * 2 * 3 * 2 * 100 * 64);
    }
}

ARENA_TEST(each_query_head_reads_its_shared_cache_again)
{
    instance in = default_instance("incremental_attention", FORMAT_NONE);
    in.shape = (problem_shape){
        .head_dim = 64, .num_heads = 12, .num_kv_heads = 4, .max_seq_len = 100, .seq_len = 100
    };
    in.kv_type = KV_F16;
    cost_work work = cost_work_of(a, &in);
    close_to(work.units, 2.0 * 12 * 100 * 64);
    close_to(work.unit_bytes, 2);
    close_to(work.bytes, 2.0 * 4 * 100 * 64 * 2 + 2 * 12 * 64 * 4);
}

ARENA_TEST(only_weights_are_counted_and_not_activations)
{
    instance plain = { .family = family_find(families, "f32_gemv"), .shape = { .k = 64, .n = 3 } };
    instance pair = default_instance("stream_gate_up", FORMAT_Q4_K);
    pair.shape = (problem_shape){ .k = 512, .n = 3, .m = 1 };
    close_to(cost_work_of(a, &plain).units, 3 * 64);
    close_to(cost_work_of(a, &pair).units, 2 * 3 * 512);
    close_to(cost_work_of(a, &pair).bytes, 2 * 3 * 2 * 144 + 4 * 512 + 4 * 3);
}

TEST(a_target_without_figures_has_those_of_the_preceding_target)
{
    instance in = default_instance("f32_gemv", FORMAT_F32), unknown = gemv_of(32, 1);
    const target older = { .sm = 70 };
    cost_figures f;
    assert_true(cost_find(&in, target_find("sm_87"), &f));
    assert_int_equal(f.sm, 86);
    assert_true(cost_find(&in, target_find("sm_103"), &f));
    assert_int_equal(f.sm, 100);
    assert_false(cost_find(&in, &older, &f));
    assert_false(cost_find(&unknown, target_find("sm_90"), &f));
}

TEST(figures_are_interpolated_between_counted_numbers_of_vectors)
{
    instance in = default_instance("stream_gemv", FORMAT_Q4_K);
    cost_figures one, three, eight;
    in.shape.m = 1;
    assert_true(cost_find(&in, target_find("sm_80"), &one));
    in.shape.m = 8;
    assert_true(cost_find(&in, target_find("sm_80"), &eight));
    in.shape.m = 3;
    assert_true(cost_find(&in, target_find("sm_80"), &three));
    assert_true(eight.instructions > one.instructions);
    close_to(three.instructions,
             one.instructions + (eight.instructions - one.instructions) * 2 / 7);
    assert_int_equal(three.registers, eight.registers);
}

static cost_figures figures_of(const char *family_name, format weights)
{
    instance in = default_instance(family_name, weights);
    cost_figures f;
    in.shape.m = 1;
    assert_true(cost_find(&in, target_find("sm_80"), &f));
    return f;
}

TEST(figures_of_several_matrices_are_weighted_by_rows)
{
    static const char *const families_of[][2] = { { "stream_qkv", "stream_gemv" },
                                                  { "exact_qkv", "gemv" } };
    for (size_t i = 0; i < sizeof families_of / sizeof *families_of; i++) {
        instance in = default_instance(families_of[i][0], FORMAT_Q4_K);
        cost_figures q4_k = figures_of(families_of[i][1], FORMAT_Q4_K), all;
        cost_figures q6_k = figures_of(families_of[i][1], FORMAT_Q6_K);
        in.shape = (problem_shape){ .k = 4096, .n = 4096, .n_kv = 1024, .n_v = 1024, .m = 1 };
        in.weights_of[0] = in.weights_of[1] = in.weights_of[2] = WEIGHTS_Q4_K;
        assert_true(cost_find(&in, target_find("sm_80"), &all));
        close_to(all.instructions, q4_k.instructions);
        close_to(all.in_flight, q4_k.in_flight);
        in.weights_of[2] = WEIGHTS_Q6_K;
        assert_true(cost_find(&in, target_find("sm_80"), &all));
        close_to(all.instructions, (5 * q4_k.instructions + q6_k.instructions) / 6);
        close_to(all.unit_bytes, (5 * q4_k.unit_bytes + q6_k.unit_bytes) / 6);
        assert_int_equal(all.registers, q6_k.registers);
        in.shape.n_v = 2048;
        assert_true(cost_find(&in, target_find("sm_80"), &all));
        close_to(all.instructions, (5 * q4_k.instructions + 2 * q6_k.instructions) / 7);
        in.shape.n_v = 0; /* without V, the format of V is ignored */
        assert_true(cost_find(&in, target_find("sm_80"), &all));
        close_to(all.instructions, q4_k.instructions);
    }
}

/* The measured gate and up kernels have equal formats; mixed formats are combined from them. */
TEST(gate_and_up_of_different_formats_are_combined)
{
    instance in = default_instance("stream_gate_up", FORMAT_Q4_K);
    cost_figures same, mixed, q4_k = figures_of("stream_gemv", FORMAT_Q4_K);
    cost_figures q6_k = figures_of("stream_gemv", FORMAT_Q6_K);
    in.shape = (problem_shape){ .k = 4096, .n = 4096, .m = 1 };
    in.weights_of[0] = in.weights_of[1] = WEIGHTS_Q4_K;
    assert_true(cost_find(&in, target_find("sm_80"), &same));
    in.weights_of[1] = WEIGHTS_Q6_K;
    assert_true(cost_find(&in, target_find("sm_80"), &mixed));
    close_to(mixed.instructions, (q4_k.instructions + q6_k.instructions) / 2);
    assert_true(same.sm == 80 && same.registers > 0);
}

TEST(rows_of_q_k_and_v_are_shared_among_persistent_blocks)
{
    instance in = default_instance("stream_qkv", FORMAT_Q4_K), one = in;
    cost_figures f = figures_of("stream_gemv", FORMAT_Q4_K);
    one.family = family_find(families, "stream_gemv");
    in.num_warps = one.num_warps = 12;
    in.rows_per_warp = one.rows_per_warp = 2;
    in.shape = (problem_shape){ .k = 4096, .n = 4800, .n_kv = 1200, .n_v = 1200, .m = 1 };
    one.shape = (problem_shape){ .k = 4096, .n = 7200, .m = 1 };
    for (size_t i = 0; i < 3; i++)
        in.weights_of[i] = WEIGHTS_Q4_K;
    cost_gpu gpu = gpu_of(100, 1e12, 1e15);
    close_to(predict(&f, &in, &gpu).times[BOUND_LATENCY],
             predict(&f, &one, &gpu).times[BOUND_LATENCY]);
}

/* Both formats' loops have equal weights per iteration. A slightly wrong average would turn a row's
 * two iterations into more than two, and the model would round up to three. */
TEST(iterations_of_rows_in_several_formats_are_whole)
{
    instance in = default_instance("stream_qkv", FORMAT_Q4_K);
    cost_figures mixed, whole;
    in.num_warps = 8;
    in.rows_per_warp = 2;
    in.shape = (problem_shape){ .k = 4096, .n = 4096, .n_kv = 1024, .n_v = 1024, .m = 1 };
    in.weights_of[0] = in.weights_of[1] = WEIGHTS_Q4_K;
    in.weights_of[2] = WEIGHTS_Q6_K;
    assert_true(cost_find(&in, target_find("sm_80"), &mixed));
    whole = mixed;
    whole.turn = figures_of("stream_gemv", FORMAT_Q4_K).turn;
    close_to(whole.turn, figures_of("stream_gemv", FORMAT_Q6_K).turn);
    cost_gpu gpu = gpu_of(100, 1e12, 1e15);
    close_to(predict(&mixed, &in, &gpu).times[BOUND_LATENCY],
             predict(&whole, &in, &gpu).times[BOUND_LATENCY]);
}

ARENA_TEST(partial_buffer_accesses_count_only_that_part)
{
    instance embed = default_instance("embed_rows", FORMAT_Q4_K);
    embed.shape = (problem_shape){ .k = 4096, .n = 128256, .m = 3 };
    cost_work work = cost_work_of(a, &embed);
    close_to(work.units, 3 * 4096);
    close_to(work.bytes, 3 * (4096 * 144 / 256.0 + 4096 * 4 + 4));
    instance rope = default_instance("rope_kv_write", FORMAT_NONE);
    rope.shape = (problem_shape){
        .head_dim = 64, .num_heads = 12, .num_kv_heads = 4, .max_seq_len = 1000, .m = 3
    };
    rope.kv_type = KV_F16;
    work = cost_work_of(a, &rope);
    close_to(work.units, 3 * 20 * 64);
    close_to(work.bytes, 3 * (20 * 64 * 4 + 12 * 64 * 4 + 2 * 4 * 64 * 2 + 2 * 4));
    instance norm = default_instance("rms_norm", FORMAT_NONE);
    norm.shape = (problem_shape){ .k = 4096, .m = 3 };
    close_to(cost_work_of(a, &norm).units, 3 * 4096);
}

ARENA_TEST(the_table_has_a_line_for_every_family_and_target)
{
    for (size_t t = 0; t < target_count; t++) {
        strbuf out = strbuf_new(a);
        cost_list(&out, &targets[t]);
        if (!target_part(&targets[t])) {
            assert_int_equal(out.length, 0);
            continue;
        }
        assert_non_null(strstr(out.text, target_part(&targets[t])->name));
        for (const cost_row *row = cost_table; row->family; row++)
            if (targets[t].sm >= family_find(families, row->family)->sm &&
                !strstr(out.text, row->family))
                fail_msg("%s has no line for %s", targets[t].name, row->family);
        assert_null(strstr(out.text, "nan"));
        assert_null(strstr(out.text, "inf"));
    }
}

/* Figures of a product on tensor cores with tiles of 128 rows and columns and chunks of 256 values
 * of k. */
static const cost_figures of_products = { .sm = 80,
                                          .registers = 255,
                                          .instructions = 6,
                                          .load_bytes = 16,
                                          .unit_bytes = 0.5625,
                                          .turn = 128,
                                          .in_flight = 72,
                                          .products = 2,
                                          .shared_bytes = 16,
                                          .x_bytes = 4 };

static instance product_of(int64_t rows_of_block)
{
    instance in = default_instance("mma_gemm", FORMAT_Q4_K);
    in.shape.k = 4096;
    in.shape.n = 128 * 100;
    in.shape.m = rows_of_block;
    in.stages = 3;
    in.rows_mode = ROWS_RUN_TIME;
    return in;
}

/* 100 column blocks on 50 SMs. */
ARENA_TEST(tensor_cores_and_shared_memory_bound_products)
{
    instance in = product_of(128);
    cost_gpu gpu = gpu_of(50, 1e9, 1e15);
    cost_work work = cost_work_of_rows(a, &in, 128);
    cost_prediction p = cost_predict(&of_products, &in, &work, &gpu);
    double weights = 2.0 * 128 * 4096;
    close_to(p.times[BOUND_TENSOR], weights * 128 / (1024 * 1e9));
    close_to(p.times[BOUND_SHARED], weights * 16 / (128 * 1e9));
    close_to(p.times[BOUND_LATENCY], weights * 4.5625 / 64e9);
    assert_int_equal(p.bound, BOUND_TENSOR);
    gpu.tensor_fmas = 2048;
    p = cost_predict(&of_products, &in, &work, &gpu);
    close_to(p.times[BOUND_TENSOR], weights * 128 / (2048 * 1e9));
    assert_true(p.total > p.times[BOUND_SHARED]);
}

/* One block per group of rows reads all weights, but DRAM delivers them once. */
ARENA_TEST(each_group_of_rows_reads_all_weights)
{
    instance in = product_of(128);
    cost_gpu gpu = gpu_of(50, 1e9, 1e15);
    cost_work one = cost_work_of_rows(a, &in, 128), two = cost_work_of_rows(a, &in, 129);
    close_to(two.units, 2 * one.units);
    close_to(two.bytes - one.bytes, 4.0 * (4096 + 128 * 100));
    close_to(cost_predict(&of_products, &in, &two, &gpu).times[BOUND_TENSOR],
             2 * cost_predict(&of_products, &in, &one, &gpu).times[BOUND_TENSOR]);
}

TEST(products_on_tensor_cores_were_counted)
{
    static const char *const targets_of[] = { "sm_80", "sm_89", "sm_90" };
    for (size_t i = 0; i < sizeof targets_of / sizeof *targets_of; i++) {
        cost_figures gemm, gate_up;
        instance one = product_of(128), pair = default_instance("mma_gate_up", FORMAT_Q4_K);
        const target *t = target_find(targets_of[i]);
        pair.shape.m = 128;
        assert_true(cost_find(&one, t, &gemm));
        assert_true(cost_find(&pair, t, &gate_up));
        close_to(gemm.products, 2);
        close_to(gate_up.products, gemm.products);
        assert_true(gemm.instructions < 3.5 * gemm.products);
        assert_true(gemm.shared_bytes > 16 && gemm.shared_bytes < 20);
    }
}

/* Returns a gate and up product of experts with m rows and tiles of `tile` rows. */
static instance product_of_experts(const char *family_name, format weights, int64_t m, int64_t tile)
{
    instance in = default_instance(family_name, weights);
    in.shape.k = in.shape.n = 2048;
    in.shape.plane_rows = in.shape.n;
    in.shape.experts = 128;
    in.shape.experts_used = 8;
    in.shape.m = m;
    in.tile_rows = tile;
    in.stages = 2;
    return in;
}

/* If every row chooses every expert, the number of tiles is exact. */
ARENA_TEST(experts_have_whole_tiles_of_rows)
{
    instance in = product_of_experts("mma_expert_down", FORMAT_Q4_K, 40, 32);
    in.shape.experts = in.shape.experts_used = 5;
    close_to(cost_expert_tiles(&in), 5 * 2);
    close_to(cost_work_of(a, &in).units, 5 * 2 * 2048.0 * 2048);
    in.shape.m = 32;
    close_to(cost_expert_tiles(&in), 5);
    /* A tile of 24 rows costs as much as a tile of 32. */
    in.tile_rows = 24;
    close_to(cost_expert_tiles(&in), 5 * 2);
    assert_int_equal(cost_vectors(&in), 32);
}

/* With one row, each chosen expert has one tile. With 2 rows that each choose one of 2 experts,
 * both experts have a tile in half of the cases. */
TEST(the_number_of_expert_tiles_is_the_expected_value)
{
    instance in = product_of_experts("mma_expert_gate_up", FORMAT_Q4_K, 1, 32);
    close_to(cost_expert_tiles(&in), 8);
    in.shape.experts = 2;
    in.shape.experts_used = 1;
    in.shape.m = 2;
    close_to(cost_expert_tiles(&in), 1.5);
    close_to(cost_expert_tiles(&in), cost_experts(&in.shape));
    in.tile_rows = 1;
    close_to(cost_expert_tiles(&in), 2);
}

/* 16 column blocks for each of 2 tiles of 5 experts on 40 SMs: four blocks per SM. */
ARENA_TEST(tensor_cores_bound_products_of_experts)
{
    instance in = product_of_experts("mma_expert_down", FORMAT_Q4_K, 40, 32);
    in.shape.experts = in.shape.experts_used = 5;
    cost_gpu gpu = gpu_of(40, 1e9, 1e15);
    cost_figures f = of_products;
    f.products = 32.0 / 64; /* tiles of 32 rows, by warp products of 16 x 8 x 16 */
    cost_work work = cost_work_of(a, &in);
    cost_prediction p = cost_predict(&f, &in, &work, &gpu);
    close_to(p.times[BOUND_TENSOR], 4 * 128 * 2048.0 * 32 / (1024 * 1e9));
}

ARENA_TEST(products_of_experts_on_tensor_cores_were_counted)
{
    static const char *const targets_of[] = { "sm_80", "sm_89", "sm_90", "sm_90a" };
    static const char *const families_of[] = { "mma_expert_gate_up", "mma_expert_down" };
    static const format weights[] = { FORMAT_Q4_K, FORMAT_Q6_K, FORMAT_Q8_0, FORMAT_Q5_0,
                                      FORMAT_MXFP4 };
    static const int64_t rows[] = { 16, 64, 256, 512 };
    enum { TARGETS = 4, FAMILIES = 2, FORMATS = 5, ROWS = 4 };
    for (size_t i = 0; i < (size_t)TARGETS * FAMILIES * FORMATS; i++) {
        cost_gpu gpu = cost_gpu_of(target_find(targets_of[i % TARGETS]));
        double before = 0;
        for (size_t r = 0; r < ROWS; r++) {
            instance in = product_of_experts(families_of[i / TARGETS % FAMILIES],
                                             weights[i / TARGETS / FAMILIES], rows[r], 0);
            cost_figures f;
            assert_true(cost_find(&in, gpu.target, &f));
            cost_work work = cost_work_of(a, &in);
            double seconds = cost_predict(&f, &in, &work, &gpu).total;
            assert_true(seconds >= work.bytes / gpu.bandwidth);
            if (!(seconds > before))
                fail_msg("%s, %s: m = %d takes %g us, fewer %g", in.family->name, gpu.target->name,
                         (int)rows[r], seconds * 1e6, before * 1e6);
            before = seconds;
        }
    }
}
