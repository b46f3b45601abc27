/* The reference of a step, for norms, gates and caches that differ by architecture or layer: each
 * must change the logits, or equal another decoder. */
#include "test_arena.h"
#include "step_sample.h"

static const double *logits_of(arena *a, const decoder *d)
{
    return sample_all_logits(a, sample_fill(a, d, 7));
}

/* Replaces a tensor of a layer by another tensor of the same size. */
static void copy_tensor(sample_model *m, decoder_tensor to, int64_t layer, decoder_tensor from,
                        int64_t of)
{
    memcpy(sample_tensor(m, to, layer), sample_tensor(m, from, of),
           sample_values(m, to) * sizeof(float));
}

ARENA_TEST(each_choice_of_norms_and_gates_changes_the_logits)
{
    static const struct {
        size_t field;
        int64_t value;
    } choices[] = {
        { offsetof(decoder, layer_norm), 1 },
        { offsetof(decoder, no_pre_norms), 1 },
        { offsetof(decoder, parallel), 1 },
        { offsetof(decoder, qk_norm), QK_NORM_HEAD_AFTER },
        { offsetof(decoder, qk_norm), QK_NORM_ROW },
        { offsetof(decoder, v_norm), 1 },
        { offsetof(decoder, embedding_norm), 1 },
        { offsetof(decoder, no_gates), 1 },
        { offsetof(decoder, attention_gate), ATTENTION_GATE_VALUES },
        { offsetof(decoder, attention_gate), ATTENTION_GATE_HEADS },
    };
    decoder plain = sample_decoder(2);
    plain.has[TENSOR_ATTN_Q_NORM] = plain.has[TENSOR_ATTN_K_NORM] = 1;
    const double *before = logits_of(a, &plain);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        decoder d = plain;
        *(int64_t *)(void *)((char *)&d + choices[i].field) = choices[i].value;
        decoder_complete(&d);
        assert_other(before, logits_of(a, &d), LOGITS);
    }
}

/* Subtracts each column's mean, so that products with the matrix have a mean of 0. */
static void center(float *w, size_t rows, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        double mean = 0;
        for (size_t r = 0; r < rows; r++)
            mean += (double)w[r * columns + i] / (double)rows;
        for (size_t r = 0; r < rows; r++)
            w[r * columns + i] -= (float)mean;
    }
}

ARENA_TEST(layer_norm_of_values_around_0_is_an_rms_norm)
{
    const double ALMOST = 1e-5; /* the means of floats are not quite 0 */
    decoder d = sample_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    float *embedding = sample_tensor(m, TENSOR_TOKEN_EMBD, 0);
    for (int64_t token = 0; token < d.vocab; token++)
        center(embedding + token * d.hidden, (size_t)d.hidden, 1);
    for (int64_t layer = 0; layer < d.layers; layer++) {
        center(sample_tensor(m, TENSOR_ATTN_OUTPUT, layer), (size_t)d.hidden, 64);
        center(sample_tensor(m, TENSOR_FFN_DOWN, layer), (size_t)d.hidden, (size_t)d.at[0].ff);
    }
    const double *rms = sample_all_logits(a, m);
    m->d.layer_norm = 1;
    assert_true(difference(rms, sample_all_logits(a, m), LOGITS) < ALMOST);
}

ARENA_TEST(parallel_branches_are_sequential_if_attention_adds_nothing)
{
    decoder d = sample_decoder(1);
    sample_model *m = sample_fill(a, &d, 7);
    copy_tensor(m, TENSOR_FFN_NORM, 0, TENSOR_ATTN_NORM, 0);
    const double *with = sample_all_logits(a, m);
    sample_scale(m, TENSOR_ATTN_OUTPUT, 0);
    const double *sequential = sample_all_logits(a, m);
    m->d.parallel = 1;
    decoder_complete(&m->d);
    assert_int_equal(m->d.has[TENSOR_FFN_NORM], 0);
    assert_same(sequential, sample_all_logits(a, m), LOGITS);
    assert_other(with, sequential, LOGITS);
}

/* Without norms before branches, norms after them hide a scale of the branches' last matrices. */
ARENA_TEST(norms_after_branches_hide_the_scale_of_a_branch)
{
    decoder d = sample_decoder(2);
    d.epsilon = 0;
    d.no_pre_norms = 1;
    d.has[TENSOR_POST_ATTENTION_NORM] = d.has[TENSOR_POST_FFW_NORM] = 1;
    decoder_complete(&d);
    assert_int_equal(d.has[TENSOR_ATTN_NORM] + d.has[TENSOR_FFN_NORM], 0);
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_all_logits(a, m);
    sample_scale(m, TENSOR_ATTN_OUTPUT, 2);
    sample_scale(m, TENSOR_FFN_DOWN, 4);
    assert_same(before, sample_all_logits(a, m), LOGITS);
    m->d.post_norm_epsilon = 0.5;
    assert_other(before, sample_all_logits(a, m), LOGITS);
    m->d.has[TENSOR_POST_ATTENTION_NORM] = m->d.has[TENSOR_POST_FFW_NORM] = 0;
    m->d.post_norm_epsilon = 0;
    assert_other(before, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(an_epsilon_after_branches_leaves_the_other_norms)
{
    decoder d = sample_decoder(2);
    d.has[TENSOR_POST_ATTENTION_NORM] = d.has[TENSOR_POST_FFW_NORM] = 1;
    const double *before = logits_of(a, &d);
    d.post_norm_epsilon = d.epsilon;
    assert_same(before, logits_of(a, &d), LOGITS);
    d.has[TENSOR_POST_ATTENTION_NORM] = d.has[TENSOR_POST_FFW_NORM] = 0;
    before = logits_of(a, &d);
    d.post_norm_epsilon = 0.5;
    assert_same(before, logits_of(a, &d), LOGITS);
}

ARENA_TEST(norms_of_one_head_are_norms_of_the_row)
{
    decoder d = sample_decoder(2);
    for (int64_t layer = 0; layer < d.layers; layer++)
        d.at[layer].num_heads = d.at[layer].num_kv_heads = 1;
    d.has[TENSOR_ATTN_Q_NORM] = d.has[TENSOR_ATTN_K_NORM] = 1;
    const double *of_head = logits_of(a, &d);
    d.qk_norm = QK_NORM_ROW;
    assert_same(of_head, logits_of(a, &d), LOGITS);
}

/* RoPE keeps a head's sum of squares. */
ARENA_TEST(norms_with_equal_gains_may_follow_rope)
{
    decoder d = sample_decoder(2);
    d.has[TENSOR_ATTN_Q_NORM] = d.has[TENSOR_ATTN_K_NORM] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    for (int64_t layer = 0; layer < d.layers; layer++)
        for (int64_t i = 0; i < d.at[0].head_dim; i++) {
            sample_tensor(m, TENSOR_ATTN_Q_NORM, layer)[i] = 1.25f;
            sample_tensor(m, TENSOR_ATTN_K_NORM, layer)[i] = 0.75f;
        }
    const double *first = sample_all_logits(a, m);
    m->d.qk_norm = QK_NORM_HEAD_AFTER;
    assert_same(first, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_norm_of_v_hides_its_scale)
{
    decoder d = sample_decoder(2);
    d.epsilon = 0;
    d.v_norm = 1;
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_all_logits(a, m);
    sample_scale(m, TENSOR_ATTN_V, 4);
    assert_same(before, sample_all_logits(a, m), LOGITS);
    m->d.v_norm = 0;
    assert_other(before, sample_all_logits(a, m), LOGITS);
}

/* V is K before its norm and RoPE. */
ARENA_TEST(v_from_k_equals_equal_matrices)
{
    decoder d = sample_decoder(2);
    d.has[TENSOR_ATTN_K_NORM] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    const double *own = sample_all_logits(a, m);
    m->d.at[1].v_from_k = 1;
    const double *from_k = sample_all_logits(a, m);
    assert_other(own, from_k, LOGITS);
    m->d.at[1].v_from_k = 0;
    copy_tensor(m, TENSOR_ATTN_V, 1, TENSOR_ATTN_K, 1);
    assert_same(from_k, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_shared_cache_equals_a_copy)
{
    decoder d = sample_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    m->d.at[1].cache = 0;
    const double *shared = sample_all_logits(a, m);
    m->d.at[1].cache = 1;
    assert_other(shared, sample_all_logits(a, m), LOGITS);
    /* Layer 0 adds nothing, so that both layers have the same input. */
    memset(sample_tensor(m, TENSOR_ATTN_OUTPUT, 0), 0,
           sample_values(m, TENSOR_ATTN_OUTPUT) * sizeof(float));
    memset(sample_tensor(m, TENSOR_FFN_DOWN, 0), 0,
           sample_values(m, TENSOR_FFN_DOWN) * sizeof(float));
    copy_tensor(m, TENSOR_ATTN_NORM, 1, TENSOR_ATTN_NORM, 0);
    m->d.at[1].cache = 0;
    shared = sample_all_logits(a, m);
    m->d.at[1].cache = 1;
    copy_tensor(m, TENSOR_ATTN_K, 1, TENSOR_ATTN_K, 0);
    copy_tensor(m, TENSOR_ATTN_V, 1, TENSOR_ATTN_V, 0);
    assert_same(shared, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_gate_per_head_is_one_per_value_with_equal_rows)
{
    decoder d = sample_decoder(2);
    const size_t hidden = (size_t)d.hidden, dim = (size_t)d.at[0].head_dim;
    d.attention_gate = ATTENTION_GATE_VALUES;
    decoder_complete(&d);
    sample_model *m = sample_fill(a, &d, 7);
    for (int64_t layer = 0; layer < d.layers; layer++) {
        float *w = sample_tensor(m, TENSOR_ATTN_GATE, layer);
        for (size_t row = 0; row < sample_values(m, TENSOR_ATTN_GATE) / hidden; row++)
            memmove(w + row * hidden, w + row / dim * dim * hidden, hidden * sizeof *w);
    }
    const double *by_value = sample_all_logits(a, m);
    for (int64_t layer = 0; layer < d.layers; layer++) {
        float *w = sample_tensor(m, TENSOR_ATTN_GATE, layer);
        for (int64_t head = 0; head < d.at[0].num_heads; head++)
            memmove(w + (size_t)head * hidden, w + (size_t)head * dim * hidden, hidden * sizeof *w);
    }
    m->d.attention_gate = ATTENTION_GATE_HEADS;
    assert_same(by_value, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_limit_clamps_the_feed_forward_of_its_layer)
{
    decoder d = sample_decoder(2);
    const double *before = logits_of(a, &d);
    d.at[1].shared_limit = 1e6;
    assert_same(before, logits_of(a, &d), LOGITS);
    d.at[1].shared_limit = 0.05;
    const double *second = logits_of(a, &d);
    assert_other(before, second, LOGITS);
    d.at[0].shared_limit = 0.05;
    d.at[1].shared_limit = 0;
    assert_other(second, logits_of(a, &d), LOGITS);
}

/* relu(x) x = relu(x)^2 */
ARENA_TEST(a_squared_relu_without_gates_is_a_relu_with_equal_gates)
{
    decoder d = sample_decoder(2);
    d.activation = ACTIVATION_RELU;
    sample_model *m = sample_fill(a, &d, 7);
    for (int64_t layer = 0; layer < d.layers; layer++)
        copy_tensor(m, TENSOR_FFN_GATE, layer, TENSOR_FFN_UP, layer);
    const double *gated = sample_all_logits(a, m);
    m->d.activation = ACTIVATION_RELU2;
    m->d.no_gates = 1;
    decoder_complete(&m->d);
    assert_int_equal(m->d.has[TENSOR_FFN_GATE], 0);
    assert_same(gated, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_norm_of_embeddings_hides_their_scale)
{
    decoder d = sample_decoder(1);
    d.epsilon = 0;
    d.embedding_norm = 1;
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_all_logits(a, m);
    sample_scale(m, TENSOR_TOKEN_EMBD, 4);
    assert_same(before, sample_all_logits(a, m), LOGITS);
    m->d.embedding_norm = 0;
    assert_other(before, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(unturned_layers_have_no_rope)
{
    decoder d = sample_decoder(2);
    const double *turned = logits_of(a, &d);
    d.at[1].unturned = 1;
    const double *second = logits_of(a, &d);
    assert_other(turned, second, LOGITS);
    d.at[0].unturned = 1;
    const double *neither = logits_of(a, &d);
    assert_other(second, neither, LOGITS);
    d.at[0].unturned = d.at[1].unturned = 0;
    d.rope[0].style = ROPE_NONE;
    assert_same(neither, logits_of(a, &d), LOGITS);
}

/* Heads whose columns of attn_output are 0 add nothing. */
ARENA_TEST(a_layer_may_have_fewer_heads_than_others)
{
    decoder d = sample_decoder(2);
    const size_t all = (size_t)(d.at[1].num_heads * d.at[1].head_dim), kept = all / 2;
    sample_model *m = sample_fill(a, &d, 7);
    float *w = sample_tensor(m, TENSOR_ATTN_OUTPUT, 1);
    for (size_t row = 0; row < (size_t)d.hidden; row++)
        memset(w + row * all + kept, 0, kept * sizeof *w);
    const double *padded = sample_all_logits(a, m);
    for (size_t row = 0; row < (size_t)d.hidden; row++)
        memmove(w + row * kept, w + row * all, kept * sizeof *w);
    m->d.at[1].num_heads /= 2;
    m->d.at[1].num_kv_heads /= 2;
    assert_same(padded, sample_all_logits(a, m), LOGITS);
}
