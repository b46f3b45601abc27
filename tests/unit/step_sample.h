/* Small random models for tests of the reference step. */
#ifndef PTXGEN_TESTS_STEP_SAMPLE_H
#define PTXGEN_TESTS_STEP_SAMPLE_H

#include <math.h>
#include <string.h>

#include "ref/quant.h"
#include "ref/random.h"
#include "model/reference/step.h"

enum { SAMPLE_LAYERS = 3, SAMPLE_VOCAB = 40 };

typedef struct sample_model {
    decoder d;
    void *blocks[TENSOR_COUNT][SAMPLE_LAYERS];
} sample_model;

static inline ref_tensor sample_weights(void *user, decoder_tensor t, int64_t layer)
{
    const sample_model *m = user;
    return (ref_tensor){ .blocks = m->blocks[t][tensor_infos[t].by_layer ? layer : 0],
                         .rows = decoder_rows(&m->d, t, layer) };
}

/* Returns the smallest dense decoder, with float matrices and no rounding. */
static inline decoder sample_decoder(int64_t layers)
{
    static const uint8_t has[] = { TENSOR_TOKEN_EMBD, TENSOR_ATTN_NORM,   TENSOR_ATTN_Q,
                                   TENSOR_ATTN_K,     TENSOR_ATTN_V,      TENSOR_ATTN_OUTPUT,
                                   TENSOR_FFN_NORM,   TENSOR_FFN_GATE,    TENSOR_FFN_UP,
                                   TENSOR_FFN_DOWN,   TENSOR_OUTPUT_NORM, TENSOR_OUTPUT };
    const rope_options rope = { .style = ROPE_NEOX, .dims = 16, .base = 1000 };
    decoder d = { .layers = layers,
                  .hidden = 64,
                  .vocab = SAMPLE_VOCAB,
                  .epsilon = 1e-5,
                  .rope = { rope, rope },
                  .kv_type = KV_F32,
                  .max_seq_len = 64,
                  .precision = PRECISION_F32,
                  .m = { 1 },
                  .m_count = 1,
                  .sequences = 2 };
    for (int64_t layer = 0; layer < SAMPLE_LAYERS; layer++)
        d.at[layer] = (decoder_layer){ .attends = 1,
                                       .is_dense = 1,
                                       .ff = 96,
                                       .num_heads = 4,
                                       .num_kv_heads = 2,
                                       .head_dim = 16,
                                       .cache = layer };
    for (size_t i = 0; i < sizeof has; i++)
        d.has[has[i]] = 1;
    for (int t = 0; t < TENSOR_COUNT; t++)
        for (int64_t layer = 0; layer < layers; layer++)
            d.formats[t][layer] = FORMAT_F32;
    return d;
}

/* Sets the layers that have experts: all from `first` on; the others have a dense feed-forward. */
static inline void sample_route(decoder *d, int64_t first)
{
    for (int64_t layer = 0; layer < SAMPLE_LAYERS; layer++) {
        d->at[layer].is_routed = layer >= first;
        d->at[layer].is_dense = layer < first;
    }
}

/* Gives a layer a recurrence instead of attention. */
static inline void sample_recur(decoder *d, int64_t layer)
{
    d->at[layer].recurs = 1;
    d->at[layer].attends = 0;
}

/* Fills a model with random tensors that depend only on the seed. Tensors that the decoder does not
 * use are filled, too. */
static inline sample_model *sample_fill(arena *a, const decoder *d, uint64_t seed)
{
    sample_model *m = arena_zalloc(a, sizeof *m);
    m->d = *d;
    for (int t = 0; t < TENSOR_COUNT; t++)
        for (int64_t layer = 0; layer < SAMPLE_LAYERS; layer++) {
            random_source r = { seed + (uint64_t)(t * SAMPLE_LAYERS + layer) };
            format f = tensor_is_matrix((decoder_tensor)t) && d->formats[t][layer]
                           ? (format)d->formats[t][layer]
                           : FORMAT_F32;
            uint64_t values = decoder_rows(d, (decoder_tensor)t, layer) *
                              decoder_columns(d, (decoder_tensor)t, layer);
            m->blocks[t][layer] = arena_alloc(a, format_bytes(f, values));
            ref_fill(f, m->blocks[t][layer], values, FILL_NORMAL, &r);
            float *numbers = m->blocks[t][layer];
            for (uint64_t i = 0; f == FORMAT_F32 && i < values; i++)
                numbers[i] = tensor_is_matrix((decoder_tensor)t)      ? 0.15f * numbers[i]
                             : tensor_infos[t].kind == TENSOR_FACTORS ? 1 + numbers[i] * numbers[i]
                                                                      : numbers[i];
        }
    return m;
}

/* Returns the logits [count, vocab] of tokens of sequence 0, fed at_once tokens per step. */
static inline double *sample_logits(arena *a, sample_model *m, const uint32_t *tokens, size_t count,
                                    size_t at_once)
{
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    double *logits = arena_alloc(a, count * (size_t)m->d.vocab * sizeof *logits);
    for (size_t at = 0; at < count; at += at_once) {
        ref_row rows[64];
        size_t some = count - at < at_once ? count - at : at_once;
        for (size_t i = 0; i < some; i++)
            rows[i] = (ref_row){ 0, tokens[at + i] };
        ref_step_feed(s, rows, some, logits + at * (size_t)m->d.vocab, NULL);
    }
    return logits;
}

/* number of test tokens and of their logits */
enum { TOKENS = 12, LOGITS = TOKENS * SAMPLE_VOCAB };
static const uint32_t some_tokens[TOKENS] = { 3, 17, 39, 0, 5, 5, 22, 31, 8, 14, 2, 29 };

static inline double difference(const double *x, const double *y, size_t count)
{
    double most = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, isnan(x[i] - y[i]) ? HUGE_VAL : fabs(x[i] - y[i]));
        largest = fmax(largest, fabs(x[i]));
    }
    return most / largest;
}

static const double SAME = 1e-11, OTHER = 1e-3;

#define assert_same(x, y, count)  assert_true(difference(x, y, count) < SAME)
#define assert_other(x, y, count) assert_true(difference(x, y, count) > OTHER)

static inline const double *sample_all_logits(arena *a, sample_model *m)
{
    return sample_logits(a, m, some_tokens, TOKENS, 1);
}

static inline float *sample_tensor(sample_model *m, decoder_tensor t, int64_t layer)
{
    return m->blocks[t][layer];
}

static inline size_t sample_values(const sample_model *m, decoder_tensor t)
{
    return (size_t)(decoder_rows(&m->d, t, 0) * decoder_columns(&m->d, t, 0));
}

static inline void sample_scale(sample_model *m, decoder_tensor t, float by)
{
    for (int64_t layer = 0; layer < m->d.layers; layer++)
        for (size_t i = 0; i < sample_values(m, t); i++)
            sample_tensor(m, t, layer)[i] *= by;
}

/* Computes y = norm(x) * gains. */
static inline void sample_norm(const decoder *d, const double *x, const float *gains, size_t size,
                               double *y)
{
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += x[i] * x[i];
    for (size_t i = 0; i < size; i++)
        y[i] = x[i] / sqrt(squares / (double)size + d->epsilon) * (double)gains[i];
}

/* Returns the hidden states [TOKENS, layers + 1, hidden]. */
static inline const double *sample_hidden(arena *a, sample_model *m)
{
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    ref_row rows[TOKENS];
    size_t size = (size_t)((m->d.layers + 1) * m->d.hidden);
    double *hidden = arena_alloc(a, TOKENS * size * sizeof *hidden);
    for (int i = 0; i < TOKENS; i++)
        rows[i] = (ref_row){ 0, some_tokens[i] };
    ref_step_feed(s, rows, TOKENS, NULL, hidden);
    return hidden;
}

#endif
