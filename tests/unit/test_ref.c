/* The references against ggml's data and against results in double precision. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "golden/golden.h"
#include "ref/half.h"
#include "ref/quant.h"
#include "ref/random.h"
#include "ref/reference.h"

static golden_dims dims(arena *a)
{
    return *(golden_dims *)golden(a, "dims.i32", sizeof(golden_dims));
}

ARENA_TEST(quantized_activations_equal_ggml_s_to_the_bit)
{
    golden_dims d = dims(a);
    size_t values = (size_t)d.m * (size_t)d.k, bytes = format_bytes(FORMAT_Q8_1, values);
    uint8_t *blocks = arena_alloc(a, bytes);
    ref_encode_q8_1(golden(a, "x.f32", values * sizeof(float)), values, blocks);
    assert_memory_equal(blocks, golden(a, "x.q8_1.bin", bytes), bytes);
}

static void check_values(const char *what, const double *expected, const ref_value *got,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(got[i].value - expected[i]) <= 1e-12 * got[i].magnitude))
            fail_msg("%s[%zu] is %.17g, expected %.17g", what, i, got[i].value, expected[i]);
}

static void check_gemv(arena *a, format f, bool random)
{
    golden_matrix g = golden_matrix_of(a, f, random);
    golden_dims d = dims(a);
    size_t count = (size_t)d.m * g.rows;
    ref_value *y = arena_alloc(a, count * sizeof *y);
    problem p = { .shape = { .k = d.k, .n = g.rows, .m = d.m },
                  .inputs = { g.weights, golden(a, "x.f32", 0) },
                  .input_formats = { f, FORMAT_F32 } };
    ref_gemv(&p, 0, 0, count, y);
    check_values(formats[f].name, g.y, y, count);
    if (!g.y_q8)
        return;
    p.inputs[1] = golden(a, "x.q8_1.bin", 0);
    p.input_formats[1] = FORMAT_Q8_1;
    ref_gemv(&p, 0, 0, count, y);
    check_values(formats[f].name, g.y_q8, y, count);
}

ARENA_TEST(gemv_of_every_format_equals_the_double_result)
{
    for (format f = 0; f < FORMAT_COUNT; f++)
        if (formats[f].gguf_type != NO_GGUF_TYPE && f != FORMAT_Q8_1) {
            check_gemv(a, f, false);
            if (f != FORMAT_F32)
                check_gemv(a, f, true);
        }
}

ARENA_TEST(attention_equals_the_double_result)
{
    static const char *const sets[] = { "d64", "d128" };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const char *set = arena_format(a, "attn.%s", sets[i]);
        golden_attention_dims d = *(golden_attention_dims *)golden(
            a, arena_format(a, "%s.dims.i32", set), sizeof(golden_attention_dims));
        const int32_t *lengths = golden(a, arena_format(a, "%s.seq_lens.i32", set), 0);
        size_t outputs = (size_t)(d.num_heads * d.head_dim);
        size_t cache = (size_t)(d.num_kv_heads * d.max_seq_len * d.head_dim);
        const float *q = golden(a, arena_format(a, "%s.q.f32", set), 0);
        const float *k = golden(a, arena_format(a, "%s.k.f32", set), 0);
        const float *v = golden(a, arena_format(a, "%s.v.f32", set), 0);
        const double *expected = golden(a, arena_format(a, "%s.out.f64", set), 0);
        ref_value *o = arena_alloc(a, outputs * sizeof *o);
        for (size_t b = 0; b < (size_t)d.batch; b++) {
            problem p = {
                .shape = { .head_dim = d.head_dim,
                           .num_heads = d.num_heads,
                           .num_kv_heads = d.num_kv_heads,
                           .max_seq_len = d.max_seq_len,
                           .seq_len = lengths[b] },
                .inputs = { q + b * outputs, k + b * cache, v + b * cache },
                .input_formats = { FORMAT_F32, FORMAT_F32, FORMAT_F32 },
            };
            ref_attention(&p, 0, 0, outputs, o);
            check_values(set, expected + b * outputs, o, outputs);
        }
    }
}

TEST(attention_over_no_position_is_zero_and_too_many_are_clamped)
{
    float q[8] = { 1 }, k[16] = { 1 }, v[16] = { 3, [8] = 5 };
    problem p = {
        .shape = { .head_dim = 8, .num_heads = 1, .num_kv_heads = 1, .max_seq_len = 2 },
        .inputs = { q, k, v },
        .input_formats = { FORMAT_F32, FORMAT_F32, FORMAT_F32 },
    };
    ref_value o[8], clamped[8];
    ref_attention(&p, 0, 0, 8, o);
    for (int i = 0; i < 8; i++)
        assert_true(o[i].value == 0);
    p.shape.seq_len = 2;
    ref_attention(&p, 0, 0, 8, o);
    p.shape.seq_len = 0xffffffff;
    ref_attention(&p, 0, 0, 8, clamped);
    double weight = exp(1 / sqrt(8.0));
    assert_true(fabs(o[0].value - (3 * weight + 5) / (weight + 1)) < 1e-14);
    assert_memory_equal(o, clamped, sizeof o);
}

enum { DIM = 8, POSITIONS = 70 };

/* Computes attention with softmax in two passes over all scores, as in a textbook. */
static void textbook_attention(const problem *p, const float *q, const float *k, const float *v,
                               double o[DIM])
{
    double weights[POSITIONS] = { 0 };
    double sum = p->options.sinks ? exp((double)*(const float *)p->inputs[3]) : 0;
    int64_t first = p->options.window ? p->shape.seq_len - p->options.window : 0;
    for (int64_t t = first; t < p->shape.seq_len; t++) {
        double score = 0;
        for (int d = 0; d < DIM; d++)
            score += (double)q[d] * (double)k[t * DIM + d];
        score *= p->options.scale;
        if (p->options.softcap > 0)
            score = p->options.softcap * tanh(score / p->options.softcap);
        weights[t] = exp(score);
        sum += weights[t];
    }
    for (int d = 0; d < DIM; d++) {
        o[d] = 0;
        for (int64_t t = first; t < p->shape.seq_len; t++)
            o[d] += weights[t] / sum * (double)v[t * DIM + d];
    }
}

static problem options_problem(const float *q, const float *k, const float *v, double softcap,
                               int64_t window)
{
    return (problem){
        .shape = { .head_dim = DIM,
                   .num_heads = 1,
                   .num_kv_heads = 1,
                   .max_seq_len = POSITIONS,
                   .seq_len = POSITIONS - 3,
                   .chunk_size = 16 },
        .inputs = { q, k, v },
        .input_formats = { FORMAT_F32, FORMAT_F32, FORMAT_F32 },
        .options = { .scale = 0.7, .softcap = softcap, .window = window },
    };
}

TEST(attention_with_its_options_equals_the_textbook_and_its_merged_chunks)
{
    static const float sink = 1.75f;
    enum { CHUNKS = (POSITIONS + 15) / 16, ROW = DIM + PARTIAL_EXTRA };
    random_source r = { 1 };
    float q[DIM], k[POSITIONS * DIM], v[POSITIONS * DIM], partials[CHUNKS * ROW];
    ref_fill(FORMAT_F32, q, DIM, FILL_NORMAL, &r);
    ref_fill(FORMAT_F32, k, POSITIONS * DIM, FILL_NORMAL, &r);
    ref_fill(FORMAT_F32, v, POSITIONS * DIM, FILL_NORMAL, &r);
    for (int i = 0; i < 8; i++) {
        problem p = options_problem(q, k, v, i & 1 ? 2 : 0, i & 2 ? 37 : 0);
        p.options.sinks = i & 4;
        p.inputs[3] = &sink;
        p.input_formats[3] = FORMAT_F32;
        double expected[DIM];
        ref_value o[DIM], chunks[CHUNKS * ROW], merged[DIM];
        textbook_attention(&p, q, k, v, expected);
        ref_attention(&p, 0, 0, DIM, o);
        ref_attention_chunks(&p, 0, 0, CHUNKS * ROW, chunks);
        for (int j = 0; j < CHUNKS * ROW; j++)
            partials[j] = isinf(chunks[j].magnitude) ? NAN : (float)chunks[j].value;
        p.inputs[0] = partials;
        p.inputs[1] = &sink;
        ref_merge_chunks(&p, 0, 0, DIM, merged);
        for (int d = 0; d < DIM; d++) {
            assert_true(fabs(o[d].value - expected[d]) < 1e-13);
            assert_true(fabs(merged[d].value - expected[d]) < 1e-6 * o[d].magnitude);
        }
    }
}

/* A ring holds positions older than the window, which must not be read. */
TEST(attention_over_a_ring_equals_attention_over_all_positions)
{
    enum { RING = 41, WINDOW = 37 };
    random_source r = { 2 };
    float q[DIM], k[POSITIONS * DIM], v[POSITIONS * DIM], k_ring[RING * DIM], v_ring[RING * DIM];
    ref_fill(FORMAT_F32, q, DIM, FILL_NORMAL, &r);
    ref_fill(FORMAT_F32, k, POSITIONS * DIM, FILL_NORMAL, &r);
    ref_fill(FORMAT_F32, v, POSITIONS * DIM, FILL_NORMAL, &r);
    for (int64_t length = 0; length <= POSITIONS; length++) {
        for (int i = 0; i < RING * DIM; i++)
            k_ring[i] = v_ring[i] = NAN;
        for (int64_t t = length > WINDOW ? length - WINDOW : 0; t < length; t++) {
            memcpy(k_ring + t % RING * DIM, k + t * DIM, DIM * sizeof *k);
            memcpy(v_ring + t % RING * DIM, v + t * DIM, DIM * sizeof *v);
        }
        problem p = options_problem(q, k, v, 0, WINDOW);
        p.shape.seq_len = length;
        ref_value all[DIM], wrapped[DIM];
        ref_attention(&p, 0, 0, DIM, all);
        p.options.ring = RING;
        p.inputs[1] = k_ring;
        p.inputs[2] = v_ring;
        ref_attention(&p, 0, 0, DIM, wrapped);
        assert_memory_equal(all, wrapped, sizeof all);
    }
}

TEST(a_gate_multiplies_by_its_sigmoid_or_gives_nan)
{
    static const float gates[DIM] = { 0, 1, -2, 100, -100, INFINITY, -INFINITY, NAN };
    static const double factors[DIM] = { 0.5, 0.73105857863000490, 0.11920292202211755, 1, 0 };
    float q[DIM] = { 1 }, k[POSITIONS * DIM] = { 0 }, v[POSITIONS * DIM];
    for (int i = 0; i < POSITIONS * DIM; i++)
        v[i] = 3;
    problem p = options_problem(q, k, v, 0, 0);
    p.options.gate = 1;
    p.inputs[3] = gates;
    p.input_formats[3] = FORMAT_F32;
    ref_value o[DIM];
    ref_attention(&p, 0, 0, DIM, o);
    for (int d = 0; d < DIM; d++)
        assert_true(d < 5 ? fabs(o[d].value - 3 * factors[d]) < 1e-14 : isnan(o[d].value));
}

ARENA_TEST(a_part_of_a_result_equals_the_whole)
{
    random_source r = { 1 };
    float q[3 * 24], cache[5 * 24];
    ref_fill(FORMAT_F32, q, 72, FILL_NORMAL, &r);
    ref_fill(FORMAT_F32, cache, 120, FILL_NORMAL, &r);
    problem p = {
        .shape = { .head_dim = 24,
                   .num_heads = 3,
                   .num_kv_heads = 1,
                   .max_seq_len = 5,
                   .seq_len = 4 },
        .inputs = { q, cache, cache },
        .input_formats = { FORMAT_F32, FORMAT_F32, FORMAT_F32 },
    };
    ref_value whole[72], part[72];
    ref_attention(&p, 0, 0, 72, whole);
    ref_attention(&p, 0, 20, 33, part);
    assert_memory_equal(whole + 20, part, 33 * sizeof *part);
    (void)a;
}

TEST(a_periodic_input_reads_as_if_it_were_repeated)
{
    float x[6] = { 0, 1, 2, 3, 4, 5 }, read[14];
    problem p = { .inputs = { x }, .input_formats = { FORMAT_F32 }, .periods = { 6 } };
    problem_read(&p, 0, 4, 14, read);
    for (int i = 0; i < 14; i++)
        assert_true(read[i] == (float)((i + 4) % 6));
}

TEST(fp16_survives_conversion_to_float_and_back)
{
    for (uint32_t half = 0; half < 65536; half++) {
        float value = half_to_float((uint16_t)half);
        if ((half & 0x7fff) > 0x7c00)
            assert_true(isnan(value) && (half_from_float(value) & 0x7fff) > 0x7c00);
        else
            assert_int_equal(half_from_float(value), half);
    }
    assert_true(half_to_float(0x0001) == 0x1p-24f);
    assert_true(half_to_float(0x7bff) == 65504);
    assert_true(half_to_float(0xfc00) == -INFINITY);
}

TEST(bf16_rounds_to_nearest_with_ties_to_even)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = bfloat_to_float((uint16_t)bits);
        if (!isnan(value))
            assert_int_equal(bfloat_from_float(value), bits);
    }
    assert_true(bfloat_to_float(0x3f81) == 1.0078125f);
    assert_int_equal(bfloat_from_float(1.00390625f), 0x3f80);
    assert_int_equal(bfloat_from_float(1.01171875f), 0x3f82);
    assert_int_equal(bfloat_from_float(3.4e38f), 0x7f80);
    assert_true(isnan(bfloat_to_float(bfloat_from_float(NAN))));
}

TEST(fp16_rounds_to_nearest_with_ties_to_even)
{
    for (uint32_t half = 0; half < 0x7bff; half++) {
        double low = (double)half_to_float((uint16_t)half);
        double high = (double)half_to_float((uint16_t)(half + 1));
        float middle = (float)((low + high) / 2);
        uint32_t even = half + (half & 1);
        assert_int_equal(half_from_float(middle), even);
        assert_int_equal(half_from_float(nextafterf(middle, 0)), half);
        assert_int_equal(half_from_float(nextafterf(middle, INFINITY)), half + 1);
        assert_int_equal(half_from_float(-middle), 0x8000 | even);
    }
    assert_int_equal(half_from_float(65519.996f), 0x7bff);
    assert_int_equal(half_from_float(65520), 0x7c00);
    assert_int_equal(half_from_float(-INFINITY), 0xfc00);
}

/* A kernel that computes weights d q - m in f16 rounds both terms, which may be larger than their
 * difference. */
TEST(weights_with_minima_are_rounded_by_parts)
{
    enum { COLUMNS = 4096 };
    static const struct {
        format format;
        bool larger;
    } cases[] = {
        { FORMAT_Q4_K, true },  { FORMAT_Q5_K, true },  { FORMAT_Q4_1, true },
        { FORMAT_Q6_K, false }, { FORMAT_Q8_0, false },
    };
    static uint8_t blocks[COLUMNS * sizeof(float)];
    static double exact[COLUMNS], rounded[COLUMNS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_source r = { 1 };
        double by_parts = 0, at_once = 0;
        ref_matrix w = { cases[i].format, blocks, NULL, 1, COLUMNS, 1, 0, false };
        ref_fill(w.format, blocks, COLUMNS, FILL_NORMAL, &r);
        ref_matrix_row(&w, 0, exact);
        w.halves = true;
        ref_matrix_row(&w, 0, rounded);
        for (size_t j = 0; j < COLUMNS; j++) {
            by_parts += pow(rounded[j] - exact[j], 2);
            at_once += pow(ref_round_to_half(exact[j]) - exact[j], 2);
        }
        assert_true(by_parts < 36 * at_once);
        assert_int_equal(by_parts > 2 * at_once, cases[i].larger);
    }
}
