/* The reference of a step, for per-layer embeddings, factors of layers, and a dense feed-forward
 * beside experts: against plain code. */
#include <math.h>

#include "test_arena.h"
#include "ref/reference.h"
#include "model/reference/step_call.h"
#include "step_sample.h"

enum { HIDDEN = 64, VALUES = 32 };

/* Computes y = W x. */
static void times(const sample_model *m, decoder_tensor t, int64_t layer, uint64_t plane,
                  const double *x, double *y)
{
    size_t columns = (size_t)decoder_columns(&m->d, t, layer);
    size_t rows = (size_t)(decoder_rows(&m->d, t, layer) / decoder_planes(&m->d, t, layer));
    const float *w = (const float *)m->blocks[t][layer] + plane * rows * columns;
    for (size_t r = 0; r < rows; r++) {
        y[r] = 0;
        for (size_t i = 0; i < columns; i++)
            y[r] += (double)w[r * columns + i] * x[i];
    }
}

static void norm(const sample_model *m, decoder_tensor t, int64_t layer, const double *x, double *y)
{
    sample_norm(&m->d, x, m->blocks[t][layer], (size_t)decoder_columns(&m->d, t, layer), y);
}

/* Returns a decoder whose layers add only their per-layer embeddings. */
static sample_model *per_layer_model(arena *a)
{
    static const uint8_t has[] = { TENSOR_PER_LAYER_MODEL_PROJ,
                                   TENSOR_PER_LAYER_TOKEN_EMBD,
                                   TENSOR_PER_LAYER_PROJ_NORM,
                                   TENSOR_INP_GATE,
                                   TENSOR_PROJ,
                                   TENSOR_POST_NORM,
                                   TENSOR_LAYER_OUTPUT_SCALE };
    decoder d = sample_decoder(2);
    d.per_layer = VALUES;
    d.embedded_layers = d.layers;
    d.activation = ACTIVATION_GELU;
    for (size_t i = 0; i < sizeof has; i++)
        d.has[has[i]] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    sample_scale(m, TENSOR_ATTN_OUTPUT, 0);
    sample_scale(m, TENSOR_FFN_DOWN, 0);
    return m;
}

ARENA_TEST(a_layer_adds_its_gated_embeddings)
{
    sample_model *m = per_layer_model(a);
    const decoder *d = &m->d;
    const double *hidden = sample_hidden(a, m);
    const float *table = m->blocks[TENSOR_PER_LAYER_TOKEN_EMBD][0];
    for (int t = 0; t < TOKENS; t++, hidden += 3 * HIDDEN) {
        double all[2 * VALUES], e[VALUES], inner[VALUES], y[HIDDEN];
        times(m, TENSOR_PER_LAYER_MODEL_PROJ, 0, 0, hidden, all);
        for (int i = 0; i < 2 * VALUES; i++)
            all[i] /= 8; /* sqrt(HIDDEN) */
        for (int64_t layer = 0; layer < 2; layer++) {
            const double *h = hidden + layer * HIDDEN;
            norm(m, TENSOR_PER_LAYER_PROJ_NORM, 0, all + layer * VALUES, e);
            times(m, TENSOR_INP_GATE, layer, 0, h, inner);
            for (int64_t i = 0; i < VALUES; i++) {
                e[i] += sqrt(VALUES) *
                        (double)table[((int64_t)some_tokens[t] * 2 + layer) * VALUES + i];
                inner[i] = ref_activation(d->activation, inner[i]) * e[i] / sqrt(2);
            }
            times(m, TENSOR_PROJ, layer, 0, inner, y);
            norm(m, TENSOR_POST_NORM, layer, y, y);
            for (int i = 0; i < HIDDEN; i++)
                y[i] = (h[i] + y[i]) * (double)*sample_tensor(m, TENSOR_LAYER_OUTPUT_SCALE, layer);
            assert_same(y, h + HIDDEN, HIDDEN);
        }
    }
}

ARENA_TEST(unknown_tokens_have_no_per_layer_embeddings)
{
    sample_model *m = per_layer_model(a);
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    double hidden[3 * HIDDEN];
    ref_step_feed(s, &(ref_row){ 0, SAMPLE_VOCAB }, 1, NULL, hidden);
    for (int i = 0; i < 3 * HIDDEN; i++)
        assert_true(isnan(hidden[i]));
}

/* Computes y = W_down (act(W_gate x) (W_up x)). */
static void feed(const sample_model *m, const uint8_t w[3], uint64_t plane, const double *x,
                 double *y)
{
    enum { MOST = 96 };
    double gate[MOST], up[MOST];
    times(m, (decoder_tensor)w[0], 0, plane, x, gate);
    times(m, (decoder_tensor)w[1], 0, plane, x, up);
    for (size_t i = 0; i < (size_t)decoder_columns(&m->d, (decoder_tensor)w[2], 0); i++)
        gate[i] = ref_activation(m->d.activation, gate[i]) * up[i];
    times(m, (decoder_tensor)w[2], 0, plane, gate, y);
}

/* All experts are used, so that no choice matters. The router has a norm of its own. */
ARENA_TEST(a_dense_feed_forward_and_experts_have_norms_of_their_own)
{
    static const uint8_t has[] = { TENSOR_FFN_GATE_INP,    TENSOR_FFN_GATE_EXPS,
                                   TENSOR_FFN_UP_EXPS,     TENSOR_FFN_DOWN_EXPS,
                                   TENSOR_PRE_FFW_NORM_2,  TENSOR_POST_FFW_NORM_1,
                                   TENSOR_POST_FFW_NORM_2, TENSOR_POST_FFW_NORM,
                                   TENSOR_ROUTER_NORM,     TENSOR_FFN_DOWN_EXPS_SCALE };
    static const uint8_t dense[] = { TENSOR_FFN_GATE, TENSOR_FFN_UP, TENSOR_FFN_DOWN },
                         experts[] = { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS,
                                       TENSOR_FFN_DOWN_EXPS };
    enum { EXPERTS = 4 };
    decoder d = sample_decoder(1);
    sample_route(&d, 0);
    d.at[0].is_dense = 1;
    d.experts = EXPERTS;
    d.experts_used = EXPERTS;
    d.expert_ff = 32;
    d.router_scale = 0.125;
    for (size_t i = 0; i < sizeof has; i++)
        d.has[has[i]] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    sample_scale(m, TENSOR_ATTN_OUTPUT, 0);
    const float *scales = m->blocks[TENSOR_FFN_DOWN_EXPS_SCALE][0];
    const double *hidden = sample_hidden(a, m);
    for (int t = 0; t < TOKENS; t++, hidden += 2 * HIDDEN) {
        double x[HIDDEN], y[HIDDEN], z[HIDDEN] = { 0 }, logits[EXPERTS], all = 0;
        norm(m, TENSOR_ROUTER_NORM, 0, hidden, x);
        times(m, TENSOR_FFN_GATE_INP, 0, 0, x, logits);
        for (int e = 0; e < EXPERTS; e++)
            all += logits[e] = exp(logits[e] / 8);
        norm(m, TENSOR_PRE_FFW_NORM_2, 0, hidden, x);
        for (int e = 0; e < EXPERTS; e++) {
            feed(m, experts, (uint64_t)e, x, y);
            for (int i = 0; i < HIDDEN; i++)
                z[i] += logits[e] / all * (double)scales[e] * y[i];
        }
        norm(m, TENSOR_POST_FFW_NORM_2, 0, z, z);
        norm(m, TENSOR_FFN_NORM, 0, hidden, x);
        feed(m, dense, 0, x, y);
        norm(m, TENSOR_POST_FFW_NORM_1, 0, y, y);
        for (int i = 0; i < HIDDEN; i++)
            z[i] += y[i];
        norm(m, TENSOR_POST_FFW_NORM, 0, z, z);
        for (int i = 0; i < HIDDEN; i++)
            z[i] += hidden[i];
        assert_same(z, hidden + HIDDEN, HIDDEN);
    }
}
