/* Trials: their inputs, and the detection of wrong outputs. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "ref/half.h"
#include "ref/quant.h"
#include "check/trial.h"
#include "ref/reference.h"

static const key gemv_keys[] = { KEY_K(4), KEY_N, KEY_DIMS, KEY_END };
static const param gemv_params[] = { OUT(F32, y, "n", 4), IN(F32, w, "n*k", 16), IN(F32, x, "k", 4),
                                     PARAM_END };
static const family gemv_family = {
    .name = "plain_gemv",
    .op = OP_GEMV,
    .keys = gemv_keys,
    .params = gemv_params,
    .launch = { .block = "32", .grid = { "min(n, sm_count*16)" } },
    .reference = ref_gemv,
    .tolerance = 1e-6,
};

static const key cache_keys[] = {
    { .name = "head_dim", .field = KEY_FIELD(shape.head_dim), .tag = "d" },
    { .name = "num_heads", .field = KEY_FIELD(shape.num_heads), .tag = "h" },
    { .name = "num_kv_heads", .field = KEY_FIELD(shape.num_kv_heads), .tag = "kv" },
    { .name = "max_seq_len", .field = KEY_FIELD(shape.max_seq_len), .tag = "s" },
    KEY_END,
};
static const param cache_params[] = {
    OUT(F32, o, "num_heads*head_dim", 16),
    IN(F32, q, "num_heads*head_dim", 16),
    KV_CACHE(k),
    KV_CACHE(v),
    { .name = "seq_len", .kind = PARAM_SEQ_LEN },
    PARAM_END,
};
static const family cache_family = {
    .name = "plain_attention",
    .op = OP_ATTENTION,
    .keys = cache_keys,
    .params = cache_params,
    .launch = { .block = "32", .grid = { "num_heads" } },
    .reference = ref_attention,
    .tolerance = 1e-6,
};

enum { K = 8, N = 100, DIM = 8, HEADS = 2, LONGEST = 10 };

static trial gemv_trial(arena *a, const instance *in)
{
    trial_setup setup = { .shape = in->shape, .sm_count = 2, .seed = 3 };
    return trial_prepare(a, in, &setup);
}

static const instance gemv_instance = { .family = &gemv_family,
                                        .name = "plain",
                                        .shape = { .k = K, .n = N } };

ARENA_TEST(a_trial_has_the_sizes_and_the_launch_of_its_formulas)
{
    trial t = gemv_trial(a, &gemv_instance);
    assert_int_equal(t.param_count, 3);
    assert_int_equal(t.params[0].size, 4 * N);
    assert_int_equal(t.params[1].values, N * K);
    assert_int_equal(t.params[2].content.stored, 4 * K);
    assert_int_equal(t.grid[0], 32);
    assert_int_equal(t.grid[1], 1);
    assert_int_equal(t.block, 32);
}

ARENA_TEST(run_time_sizes_are_passed_as_numbers)
{
    instance in = gemv_instance;
    in.dims = DIMS_DYNAMIC;
    in.shape = (problem_shape){ 0 };
    trial_setup setup = { .shape = { .k = 12, .n = 5 }, .sm_count = 2 };
    trial t = trial_prepare(a, &in, &setup);
    assert_int_equal(t.param_count, 5);
    assert_int_equal(t.params[0].values, 5);
    assert_int_equal(t.params[1].values, 60);
    assert_int_equal(t.params[3].number, 12);
    assert_int_equal(t.params[4].number, 5);
    assert_int_equal(t.grid[0], 5);
}

ARENA_TEST(an_input_larger_than_memory_repeats)
{
    instance in = gemv_instance;
    in.shape = (problem_shape){ .k = 1 << 20, .n = 1 << 12 };
    trial t = gemv_trial(a, &in);
    const trial_param *w = &t.params[1];
    assert_int_equal(w->size, 1ULL << 34);
    assert_true(w->content.stored < 1 << 26 && w->content.stored % 4 == 0);
    float late, early;
    uint64_t period = t.problem.periods[0];
    assert_int_equal(period, w->content.stored / 4);
    problem_read(&t.problem, 0, 5 + 3 * period, 1, &late);
    problem_read(&t.problem, 0, 5, 1, &early);
    assert_true(late == early);
}

static trial cache_trial(arena *a, const instance *in, int64_t seq_len)
{
    trial_setup setup = { .shape = in->shape, .seed = 3 };
    setup.shape.seq_len = seq_len;
    return trial_prepare(a, in, &setup);
}

static const instance cache_instance = {
    .family = &cache_family,
    .name = "cache",
    .shape = { .head_dim = DIM, .num_heads = HEADS, .num_kv_heads = HEADS, .max_seq_len = LONGEST },
};

static void check_cache(const trial *t, size_t index, int64_t valid)
{
    const float *cache = t->params[index].content.bytes;
    for (int64_t head = 0; head < HEADS; head++)
        for (int64_t i = 0; i < LONGEST * DIM; i++)
            assert_int_equal(isnan(cache[head * LONGEST * DIM + i]) != 0, i >= valid * DIM);
}

ARENA_TEST(positions_beyond_the_sequence_are_nan)
{
    trial t = cache_trial(a, &cache_instance, LONGEST + 1);
    check_cache(&t, 2, LONGEST);
    assert_int_equal(t.params[4].number, LONGEST + 1);
    trial_shorten(&t, 7);
    check_cache(&t, 2, 7);
    check_cache(&t, 3, 7);
    trial_shorten(&t, 0);
    check_cache(&t, 3, 0);
    t = cache_trial(a, &cache_instance, 4);
    check_cache(&t, 2, 4);
}

ARENA_TEST(an_indirect_length_is_in_a_buffer)
{
    instance in = cache_instance;
    in.seq_len_mode = SEQ_LEN_INDIRECT;
    trial t = cache_trial(a, &in, UINT32_MAX);
    uint32_t length;
    assert_int_equal(t.params[4].param.kind, PARAM_IN);
    memcpy(&length, t.params[4].content.bytes, sizeof length);
    assert_int_equal(length, UINT32_MAX);
    trial_shorten(&t, 3);
    memcpy(&length, t.params[4].content.bytes, sizeof length);
    assert_int_equal(length, 3);
}

/* Judges the correct output of a GEMV trial with one element changed. */
static judgement judge_with(arena *a, uint64_t element, float value)
{
    trial t = gemv_trial(a, &gemv_instance);
    ref_value expected[N];
    float y[N];
    judgement j = { 0 };
    ref_gemv(&t.problem, 0, 0, N, expected);
    for (int i = 0; i < N; i++)
        y[i] = (float)expected[i].value;
    if (element < N)
        y[element] += value;
    trial_judge(&t, 0, &(trial_output){ y, NULL, 0, N }, &j);
    assert_int_equal(j.judged, N);
    return j;
}

ARENA_TEST(a_right_output_is_within_its_bound)
{
    judgement j = judge_with(a, N, 0);
    assert_true(j.worst < 0.5);
}

ARENA_TEST(a_wrong_element_is_named_with_its_error)
{
    judgement j = judge_with(a, 42, 0.5f);
    assert_true(j.worst > 1e3 && isfinite(j.worst));
    assert_int_equal(j.element, 42);
    assert_string_equal(j.output, "y");
    assert_true(fabs(j.got - j.expected - 0.5) < 1e-4);
}

ARENA_TEST(nan_and_infinity_are_wrong)
{
    assert_true(isinf(judge_with(a, N - 1, NAN).worst));
    assert_true(isinf(judge_with(a, 0, -INFINITY).worst));
}

ARENA_TEST(uninitialized_outputs_are_not_judged)
{
    trial t = gemv_trial(a, &gemv_instance);
    float y[N];
    uint8_t written[N] = { 0 };
    ref_value expected;
    judgement j = { 0 };
    for (int i = 0; i < N; i++)
        y[i] = NAN;
    ref_gemv(&t.problem, 0, 70, 1, &expected);
    y[70] = (float)expected.value;
    written[70] = 1;
    trial_judge(&t, 0, &(trial_output){ y, written, 0, N }, &j);
    assert_int_equal(j.judged, 1);
    assert_true(j.worst < 1);
    written[69] = 1;
    trial_judge(&t, 0, &(trial_output){ y, written, 0, N }, &j);
    assert_int_equal(j.element, 69);
    assert_true(isinf(j.worst));
}

TEST(exact_zero_is_required_if_all_terms_are_zero)
{
    const param y = { .name = "y", .kind = PARAM_OUT, .format = FORMAT_F32 };
    ref_value expected[] = { { 0, 0 } };
    float zero = -0.0f, tiny = 1e-30f;
    judgement j = { 0 };
    judge_values(&y, &zero, expected, 0, 1, 1e-6, &j);
    assert_true(j.worst == 0);
    judge_values(&y, &tiny, expected, 0, 1, 1e-6, &j);
    assert_true(isinf(j.worst));
}

static const param q8 = { .name = "q8", .kind = PARAM_OUT, .format = FORMAT_Q8_1 };

static judgement judge_block(const uint8_t *block, const ref_value *x)
{
    judgement j = { 0 };
    judge_values(&q8, block, x, 0, Q8_1_VALUES, 0, &j);
    return j;
}

TEST(quantized_blocks_are_judged_field_by_field)
{
    random_source r = { 5 };
    float x[Q8_1_VALUES];
    ref_value exact[Q8_1_VALUES];
    uint8_t block[Q8_1_BYTES], changed[Q8_1_BYTES];
    for (int kind = 0; kind < FILL_KINDS; kind++) {
        ref_fill(FORMAT_F32, x, Q8_1_VALUES, (fill_kind)kind, &r);
        for (int i = 0; i < Q8_1_VALUES; i++)
            exact[i] = (ref_value){ (double)x[i], fabs((double)x[i]) };
        ref_encode_q8_1(x, Q8_1_VALUES, block);
        assert_true(judge_block(block, exact).worst <= 1);

        memcpy(changed, block, sizeof block);
        changed[4 + 9] = (uint8_t)(changed[4 + 9] ^ 1);
        judgement j = judge_block(changed, exact);
        assert_true(j.worst > 1);

        memcpy(changed, block, sizeof block);
        changed[0] = (uint8_t)(changed[0] + 2);
        j = judge_block(changed, exact);
        assert_true(j.worst > 1);
        assert_string_equal(j.field, "d of ");

        memcpy(changed, block, sizeof block);
        changed[2] = (uint8_t)(changed[2] + 2);
        j = judge_block(changed, exact);
        assert_true(j.worst > 1);
        assert_string_equal(j.field, "s of ");
    }
}

TEST(either_side_of_a_tie_is_right)
{
    float x[Q8_1_VALUES] = { 127, 2.5f };
    ref_value exact[Q8_1_VALUES] = { { 127, 127 }, { 2.5, 2.5 } };
    uint8_t block[Q8_1_BYTES];
    ref_encode_q8_1(x, Q8_1_VALUES, block);
    assert_int_equal(block[5], 3);
    uint16_t sum = half_from_float(129);
    memcpy(block + 2, &sum, sizeof sum);
    block[5] = 2;
    assert_true(judge_block(block, exact).worst <= 1);
    exact[1].value = 2.51;
    assert_true(judge_block(block, exact).worst > 1);
}

TEST(narrow_floats_may_be_off_by_half_a_unit_in_the_last_place)
{
    static const struct {
        format f;
        uint16_t below, above; /* adjacent values of the format */
        double middle, beyond; /* a value halfway, and a value closer to `above` */
    } cases[] = {
        { FORMAT_F16, 0x3c00, 0x3c01, 1 + 0x1p-11, 1 + 0x1.1p-11 },
        { FORMAT_BF16, 0x3f80, 0x3f81, 1 + 0x1p-8, 1 + 0x1.1p-8 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const param y = { .name = "y", .kind = PARAM_OUT, .format = cases[i].f };
        const ref_value middle = { cases[i].middle, 0 }, beyond = { cases[i].beyond, 0 };
        judgement j = { 0 };
        judge_values(&y, &cases[i].below, &middle, 0, 1, 1e-6, &j);
        judge_values(&y, &cases[i].above, &middle, 0, 1, 1e-6, &j);
        judge_values(&y, &cases[i].above, &beyond, 0, 1, 1e-6, &j);
        assert_true(j.worst <= 1);
        judge_values(&y, &cases[i].below, &beyond, 0, 1, 1e-6, &j);
        assert_true(j.worst > 1);
    }
}

enum { ROPE_ROWS = 4, ROPE_DIM = 8 };

/* Returns a trial that writes to caches. Its rows are the last of 10 positions. */
static trial rope_trial(arena *a, instance *in, bool one_cache)
{
    *in = instance_of_defaults(family_find(families, "rope_kv_write"));
    in->name = "rope";
    in->shape = (problem_shape){ .head_dim = ROPE_DIM,
                                 .num_heads = 2,
                                 .num_kv_heads = 2,
                                 .max_seq_len = LONGEST,
                                 .m = ROPE_ROWS };
    in->options.rope.dims = ROPE_DIM;
    trial_setup setup = { .shape = in->shape, .seed = 3, .one_cache = one_cache };
    setup.shape.seq_len = LONGEST;
    return trial_prepare(a, in, &setup);
}

ARENA_TEST(cache_writes_go_to_the_last_position)
{
    enum { OUTPUT = 1, CACHE = HEADS * LONGEST * ROPE_DIM };
    instance in;
    for (int one_cache = 0; one_cache < 2; one_cache++) {
        trial t = rope_trial(a, &in, one_cache);
        const trial_param *k = &t.params[OUTPUT];
        uint64_t blocks = trial_output_blocks(k);
        assert_int_equal(blocks, ROPE_ROWS * CACHE);
        uint8_t *written = arena_zalloc(a, blocks);
        const trial_output o = { NULL, written, 0, blocks };
        for (size_t i = 0; i < HEADS * ROPE_ROWS; i++) {
            trial_blocks own = trial_row_blocks(&t, k, i / HEADS, (int64_t)(i % HEADS));
            assert_int_equal(own.count, t.seq_lens[i / HEADS] ? ROPE_DIM : 0);
            memset(written + own.first, 1, own.count);
        }
        assert_int_equal(trial_missing_block(&t, OUTPUT, &o), blocks);
        assert_int_equal(trial_stray_block(&t, OUTPUT, &o), blocks);

        trial_blocks last = trial_row_blocks(&t, k, ROPE_ROWS - 1, 1);
        written[last.first + 3] = 0;
        assert_int_equal(trial_missing_block(&t, OUTPUT, &o), last.first + 3);
        written[2 * ROPE_DIM + 1] = 1;
        assert_int_equal(trial_stray_block(&t, OUTPUT, &o), 2 * ROPE_DIM + 1);
    }
}
