/* The reference of a decoder's step, tested by equivalences: two computations that must have equal
 * results. */
#include <math.h>

#include "test_arena.h"
#include "ref/quant.h"
#include "ref/reference.h"
#include "model/reference/step_call.h"
#include "step_sample.h"

static const double *logits_of(arena *a, const decoder *d)
{
    return sample_logits(a, sample_fill(a, d, 7), some_tokens, TOKENS, 1);
}

ARENA_TEST(tokens_at_once_give_the_results_of_single_tokens)
{
    decoder d = sample_decoder(SAMPLE_LAYERS);
    d.window = 5;
    d.at[1].windowed = 1;
    sample_model *m = sample_fill(a, &d, 7);
    const double *one_by_one = sample_logits(a, m, some_tokens, TOKENS, 1);
    for (size_t at_once = 2; at_once <= TOKENS; at_once++)
        assert_same(one_by_one, sample_logits(a, m, some_tokens, TOKENS, at_once), LOGITS);
}

ARENA_TEST(a_window_over_all_positions_changes_nothing)
{
    decoder d = sample_decoder(2);
    const double *without = logits_of(a, &d);
    d.at[0].windowed = d.at[1].windowed = 1;
    d.window = TOKENS;
    assert_same(without, logits_of(a, &d), LOGITS);
    d.window = TOKENS - 1;
    assert_same(without, logits_of(a, &d), LOGITS - SAMPLE_VOCAB);
    assert_other(without + LOGITS - SAMPLE_VOCAB, logits_of(a, &d) + LOGITS - SAMPLE_VOCAB,
                 SAMPLE_VOCAB);
}

ARENA_TEST(a_window_counts_the_position_itself)
{
    decoder d = sample_decoder(1);
    d.at[0].windowed = 1;
    d.window = 4;
    sample_model *m = sample_fill(a, &d, 7);
    uint32_t tokens[TOKENS];
    memcpy(tokens, some_tokens, sizeof tokens);
    const double *before = sample_logits(a, m, tokens, TOKENS, 1);
    tokens[2]++;
    const double *after = sample_logits(a, m, tokens, TOKENS, 1);
    for (int position = 0; position < TOKENS; position++) {
        const double *x = before + position * SAMPLE_VOCAB, *y = after + position * SAMPLE_VOCAB;
        if (position >= 2 && position < 2 + d.window)
            assert_other(x, y, SAMPLE_VOCAB);
        else
            assert_same(x, y, SAMPLE_VOCAB);
    }
}

ARENA_TEST(sequences_do_not_see_each_other)
{
    decoder d = sample_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    const double *alone = sample_logits(a, m, some_tokens, TOKENS, 1);
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    for (int i = 0; i < TOKENS; i++) {
        double both[2 * SAMPLE_VOCAB];
        const ref_row rows[] = { { 1, (uint32_t)i }, { 0, some_tokens[i] } };
        ref_step_feed(s, rows, 2, both, NULL);
        assert_same(alone + i * SAMPLE_VOCAB, both + SAMPLE_VOCAB, SAMPLE_VOCAB);
    }
}

/* Swaps heads 0 and 1 of q, which share their K and V. */
static void swap_heads(sample_model *m)
{
    size_t dim = (size_t)m->d.at[0].head_dim, hidden = (size_t)m->d.hidden;
    float *q = m->blocks[TENSOR_ATTN_Q][0], *out = m->blocks[TENSOR_ATTN_OUTPUT][0];
    for (size_t i = 0; i < dim * hidden; i++) {
        float kept = q[i];
        q[i] = q[i + dim * hidden];
        q[i + dim * hidden] = kept;
    }
    for (size_t row = 0; row < hidden; row++)
        for (size_t i = 0; i < dim; i++) {
            float *at = out + row * 4 * dim + i, kept = at[0];
            at[0] = at[dim];
            at[dim] = kept;
        }
}

ARENA_TEST(heads_of_a_group_may_be_swapped)
{
    decoder d = sample_decoder(1);
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_logits(a, m, some_tokens, TOKENS, 1);
    swap_heads(m);
    assert_same(before, sample_logits(a, m, some_tokens, TOKENS, 1), LOGITS);
}

/* Moves rows 2i and 2i + 1 of each head to i and i + dims / 2. */
static void reorder_for_neox(arena *a, sample_model *m, decoder_tensor t)
{
    size_t dim = (size_t)m->d.at[0].head_dim, row = (size_t)m->d.hidden;
    size_t rows = (size_t)decoder_rows(&m->d, t, 0);
    float *w = m->blocks[t][0];
    const float *old = (float *)arena_copy(a, w, rows * row * sizeof *w);
    for (size_t r = 0; r < rows; r++) {
        size_t i = r % dim, to = r - i + i / 2 + i % 2 * dim / 2;
        memcpy(w + to * row, old + r * row, row * sizeof *w);
    }
}

ARENA_TEST(the_styles_of_rope_are_orders_of_rows)
{
    decoder d = sample_decoder(1);
    d.rope[0].style = ROPE_NORM;
    const double *norm = logits_of(a, &d);
    d.rope[0].style = ROPE_NEOX;
    assert_other(norm, logits_of(a, &d), LOGITS);
    sample_model *m = sample_fill(a, &d, 7);
    reorder_for_neox(a, m, TENSOR_ATTN_Q);
    reorder_for_neox(a, m, TENSOR_ATTN_K);
    assert_same(norm, sample_logits(a, m, some_tokens, TOKENS, 1), LOGITS);
}

ARENA_TEST(fused_matrices_are_their_concatenated_parts)
{
    decoder d = sample_decoder(1);
    const double *apart = logits_of(a, &d);
    sample_model *m = sample_fill(a, &d, 7);
    const uint8_t parts[] = { TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V };
    char *to = m->blocks[TENSOR_ATTN_QKV][0];
    for (size_t i = 0; i < sizeof parts; i++) {
        size_t bytes = (size_t)decoder_bytes(&m->d, (decoder_tensor)parts[i], 0);
        memcpy(to, m->blocks[parts[i]][0], bytes);
        to += bytes;
    }
    size_t half = (size_t)decoder_bytes(&m->d, TENSOR_FFN_GATE, 0);
    to = m->blocks[TENSOR_FFN_GATE_UP][0];
    memcpy(to, m->blocks[TENSOR_FFN_GATE][0], half);
    memcpy(to + half, m->blocks[TENSOR_FFN_UP][0], half);
    m->d.has[TENSOR_ATTN_QKV] = m->d.has[TENSOR_FFN_GATE_UP] = 1;
    assert_same(apart, sample_logits(a, m, some_tokens, TOKENS, 1), LOGITS);
}

ARENA_TEST(logits_are_scaled_then_capped)
{
    decoder d = sample_decoder(1);
    const double *plain = logits_of(a, &d);
    double expected[LOGITS];
    for (int i = 0; i < LOGITS; i++)
        expected[i] = 2 * tanh(plain[i] * 3 / 2);
    d.logit_scale = 3;
    d.final_softcap = 2;
    assert_same(expected, logits_of(a, &d), LOGITS);
}

/* Each of these options, set to 0.7, must change the logits. */
ARENA_TEST(each_option_changes_the_logits)
{
    static const size_t options[] = {
        offsetof(decoder, attention_scale), offsetof(decoder, attention_softcap),
        offsetof(decoder, final_softcap),   offsetof(decoder, embedding_scale),
        offsetof(decoder, residual_scale),  offsetof(decoder, logit_scale),
    };
    const decoder plain = sample_decoder(2);
    const double *before = logits_of(a, &plain);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        decoder d = plain;
        *(double *)(void *)((char *)&d + options[i]) = 0.7;
        assert_other(before, logits_of(a, &d), LOGITS);
    }
}

ARENA_TEST(each_optional_tensor_changes_the_logits)
{
    static const uint8_t optional[] = {
        TENSOR_ATTN_Q_BIAS,   TENSOR_ATTN_K_BIAS,         TENSOR_ATTN_V_BIAS,
        TENSOR_ATTN_Q_NORM,   TENSOR_ATTN_K_NORM,         TENSOR_ATTN_OUTPUT_BIAS,
        TENSOR_FFN_GATE_BIAS, TENSOR_POST_ATTENTION_NORM, TENSOR_FFN_UP_BIAS,
        TENSOR_FFN_DOWN_BIAS, TENSOR_POST_FFW_NORM,       TENSOR_OUTPUT_BIAS,
        TENSOR_ATTN_QKV,      TENSOR_FFN_GATE_UP,
    };
    const decoder plain = sample_decoder(2);
    const double *before = logits_of(a, &plain);
    for (size_t i = 0; i < sizeof optional; i++) {
        decoder d = plain;
        d.has[optional[i]] = 1;
        assert_other(before, logits_of(a, &d), LOGITS);
    }
}

/* Without rotation, an equal bias on all keys of a head adds a constant to all scores of a query.
 */
ARENA_TEST(a_bias_of_unrotated_keys_changes_nothing)
{
    decoder d = sample_decoder(2);
    d.rope[0].style = ROPE_NONE;
    const double *before = logits_of(a, &d);
    d.has[TENSOR_ATTN_K_BIAS] = 1;
    assert_same(before, logits_of(a, &d), LOGITS);
}

ARENA_TEST(a_temperature_is_a_scale_of_later_positions)
{
    decoder d = sample_decoder(1);
    const double *plain = logits_of(a, &d);
    d.rope[0].temperature_length = 4;
    d.rope[0].temperature_scale = 0.5;
    const double *with = logits_of(a, &d);
    d.rope[0].temperature_length = 0;
    d.attention_scale = (1 + 0.5 * log(1 + 2)) / sqrt((double)d.at[0].head_dim);
    const double *scaled = logits_of(a, &d);
    assert_same(plain, with, 4 * SAMPLE_VOCAB);
    assert_same(scaled + 8 * SAMPLE_VOCAB, with + 8 * SAMPLE_VOCAB, 4 * SAMPLE_VOCAB);
    assert_other(plain + 8 * SAMPLE_VOCAB, with + 8 * SAMPLE_VOCAB, SAMPLE_VOCAB);
}

/* YaRN keeps fast angles, divides slow ones, and interpolates between them. */
ARENA_TEST(yarn_scales_the_slow_angles)
{
    enum { DIMS = 64, POSITION = 1000 };
    rope_options o = { .dims = DIMS, .base = 10000 };
    double plain[DIMS], yarn[DIMS], slow[DIMS];
    ref_angles(&o, NULL, POSITION, plain);
    ref_angles(&o, NULL, POSITION / 4, slow);
    o.scaling = ROPE_YARN;
    o.factor = 4;
    o.original_context = 4096;
    o.extension = 1;
    o.beta_fast = 32;
    o.beta_slow = 1;
    ref_angles(&o, NULL, POSITION, yarn);
    assert_same(plain, yarn, 2 * 10);
    assert_same(slow + DIMS - 2 * 9, yarn + DIMS - 2 * 9, 2 * 9);
    assert_other(plain + DIMS / 2, yarn + DIMS / 2, 2);
    assert_other(slow + DIMS / 2, yarn + DIMS / 2, 2);
}

ARENA_TEST(a_cache_rounds_to_its_type)
{
    enum { DIM = 32 };
    double row[DIM], rounded[DIM];
    random_source r = { 3 };
    for (int i = 0; i < DIM; i++)
        row[i] = (double)random_normal(&r);
    for (int64_t type = KV_F32; type <= KV_Q8_0; type++) {
        memcpy(rounded, row, sizeof row);
        ref_cache_round(type, rounded, DIM);
        double most = difference(row, rounded, DIM);
        const double limits[] = {
            [KV_F32] = 0, [KV_F16] = 0x1p-11, [KV_BF16] = 0x1p-8, [KV_Q8_0] = 0.51 / 127
        };
        assert_true(most <= limits[type] && most >= limits[type] / 8);
    }
    float as_floats[DIM];
    uint8_t block[Q8_1_BYTES];
    for (int i = 0; i < DIM; i++)
        as_floats[i] = (float)row[i];
    ref_encode_q8_1(as_floats, DIM, block);
    q8_1_block b = q8_1_load(block);
    for (int i = 0; i < DIM; i++)
        assert_true(rounded[i] == (double)b.d * b.q[i]);
}

static void read_earlier(void *user, const ref_cached *which, float *row)
{
    const ref_step *before = user;
    double exact[PROBLEM_MOST_HEAD_DIM];
    ref_step_cached(before, which, exact);
    for (int i = 0; i < 16; i++)
        row[i] = (float)exact[i];
}

ARENA_TEST(restored_rows_equal_fed_rows)
{
    enum { EARLIER = 7 };
    decoder d = sample_decoder(2);
    d.kv_type = KV_F16; /* the rows of the cache are f16 */
    sample_model *m = sample_fill(a, &d, 7);
    const double *all = sample_logits(a, m, some_tokens, TOKENS, 1);
    ref_step *before = ref_step_new(a, &m->d, sample_weights, m);
    ref_step *after = ref_step_new(a, &m->d, sample_weights, m);
    for (int i = 0; i < EARLIER; i++)
        ref_step_feed(before, &(ref_row){ 0, some_tokens[i] }, 1, NULL, NULL);
    ref_step_start(after, 0, EARLIER, read_earlier, before);
    for (int i = EARLIER; i < TOKENS; i++) {
        double logits[SAMPLE_VOCAB];
        ref_step_feed(after, &(ref_row){ 0, some_tokens[i] }, 1, logits, NULL);
        assert_same(all + i * SAMPLE_VOCAB, logits, SAMPLE_VOCAB);
    }
}

ARENA_TEST(an_invalid_token_gives_nan)
{
    decoder d = sample_decoder(1);
    sample_model *m = sample_fill(a, &d, 7);
    const uint32_t tokens[] = { 1, SAMPLE_VOCAB };
    const double *logits = sample_logits(a, m, tokens, 2, 1);
    for (int i = 0; i < SAMPLE_VOCAB; i++)
        assert_true(isfinite(logits[i]) && isnan(logits[SAMPLE_VOCAB + i]));
}

ARENA_TEST(a_matrix_multiplies_several_vectors_and_repeats_its_rows)
{
    enum { ROWS = 7, THERE = 3, FIRST = 4, COLUMNS = 21, VECTORS = 2, STRIDE = 9 };
    float w[THERE * COLUMNS], zeros[THERE * COLUMNS] = { 0 };
    double x[VECTORS * COLUMNS], y[VECTORS * STRIDE], room[COLUMNS];
    random_source r = { 5 };
    for (int i = 0; i < THERE * COLUMNS; i++)
        w[i] = random_normal(&r);
    for (int i = 0; i < VECTORS * COLUMNS; i++)
        x[i] = (double)random_normal(&r);
    for (int decoded = 0; decoded < 2; decoded++) {
        const ref_matrix matrix = {
            FORMAT_F32, decoded ? zeros : w, decoded ? w : NULL, ROWS, COLUMNS, THERE, FIRST, false
        };
        ref_matrix_times(&matrix, x, VECTORS, y, STRIDE, room);
        for (int v = 0; v < VECTORS; v++)
            for (int row = 0; row < ROWS; row++) {
                double sum = 0;
                for (int i = 0; i < COLUMNS; i++)
                    sum += (double)w[(FIRST + row) % THERE * COLUMNS + i] * x[v * COLUMNS + i];
                assert_true(fabs(sum - y[v * STRIDE + row]) < SAME);
            }
    }
}

/* Without layers the logits are one product of a normed vector of floats. */
ARENA_TEST(eight_bits_are_rounded_as_a_product_rounds_them)
{
    decoder d = sample_decoder(1);
    d.precision = PRECISION_Q8;
    d.formats[TENSOR_OUTPUT][0] = FORMAT_Q8_0;
    sample_model *m = sample_fill(a, &d, 7);
    m->d.layers = 0;
    const double *logits = sample_logits(a, m, &some_tokens[1], 1, 1);
    const float *embeddings = m->blocks[TENSOR_TOKEN_EMBD][0];
    problem p = { .shape = { .k = d.hidden, .n = d.vocab, .m = 1 },
                  .options = { .norm = NORM_RMS, .epsilon = d.epsilon },
                  .inputs = { m->blocks[TENSOR_OUTPUT][0], embeddings + some_tokens[1] * 64,
                              m->blocks[TENSOR_OUTPUT_NORM][0] },
                  .input_formats = { FORMAT_Q8_0, FORMAT_F32, FORMAT_F32 },
                  .quantizes = true };
    ref_value values[SAMPLE_VOCAB];
    double expected[SAMPLE_VOCAB];
    ref_gemv(&p, 0, 0, SAMPLE_VOCAB, values);
    for (int i = 0; i < SAMPLE_VOCAB; i++)
        expected[i] = values[i].value;
    assert_same(expected, logits, SAMPLE_VOCAB);
    m->d.precision = PRECISION_F32;
    assert_true(difference(expected, sample_logits(a, m, &some_tokens[1], 1, 1), SAMPLE_VOCAB) >
                1e-4);
}
