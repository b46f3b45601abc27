#include <math.h>
#include <string.h>

#include "model/reference/step_call.h"
#include "ref/half.h"
#include "ref/reference.h"

/* Like ggml's reference quantizer of q8_0, divides in float and rounds half away from zero. */
void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim)
{
    enum { LARGEST = 127 };
    for (int64_t i = 0; i < head_dim; i += Q8_0_VALUES) {
        int64_t end = i + Q8_0_VALUES < head_dim ? i + Q8_0_VALUES : head_dim;
        double largest = 0;
        for (int64_t j = i; j < end; j++)
            largest = fmax(largest, fabs(row[j]));
        float d = (float)largest / LARGEST;
        double stored = (double)half_to_float(half_from_float(d));
        for (int64_t j = i; j < end; j++)
            row[j] = kv_type == KV_F16 ? (double)half_to_float(half_from_float((float)row[j]))
                     : kv_type == KV_BF16
                         ? (double)bfloat_to_float(bfloat_from_float((float)row[j]))
                     : kv_type != KV_Q8_0 ? row[j]
                     : d > 0              ? round(row[j] / (double)d) * stored
                                          : row[j] * stored;
    }
}

/* Returns an operand of a product, rounded to f16 with query->halves. */
static double factor_of(const ref_query *query, double value)
{
    return query->halves ? ref_round_to_half(value) : value;
}

void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room)
{
    int64_t dim = query->value_dim;
    uint64_t count = query->end - query->begin, heads = (uint64_t)query->heads;
    double *row = room + heads * count;
    for (uint64_t t = 0; t < count; t++) {
        read(user, false, query->begin + t, row);
        for (uint64_t h = 0; h < heads; h++) {
            const double *q = query->q + (int64_t)h * query->head_dim;
            double sum = 0, cap = query->softcap;
            for (int64_t d = 0; d < query->head_dim; d++)
                sum += factor_of(query, q[d]) * factor_of(query, row[d]);
            sum *= query->scale;
            room[h * count + t] = cap > 0 ? cap * tanh(sum / cap) : sum;
        }
    }
    for (uint64_t h = 0; h < heads; h++) { /* softmax; a NaN stays NaN */
        double *scores = room + h * count, sum = 0;
        double largest = query->sinks ? query->sinks[h] : -HUGE_VAL;
        for (uint64_t t = 0; t < count; t++)
            largest = fmax(largest, scores[t]);
        for (uint64_t t = 0; t < count; t++)
            sum += scores[t] = exp(scores[t] - largest);
        if (query->sinks)
            sum += exp(query->sinks[h] - largest);
        for (uint64_t t = 0; t < count; t++)
            scores[t] = factor_of(query, scores[t]) / sum;
    }
    for (uint64_t i = 0; i < heads * (uint64_t)dim; i++)
        o[i] = 0;
    for (uint64_t t = 0; t < count; t++) {
        read(user, true, query->begin + t, row);
        for (uint64_t h = 0; h < heads; h++)
            for (int64_t d = 0; d < dim; d++)
                o[(int64_t)h * dim + d] += room[h * count + t] * factor_of(query, row[d]);
    }
}

typedef struct head_reader {
    const ref_step *s;
    ref_cached row;
} head_reader;

static void read_row(const void *user, bool values, uint64_t position, double *row)
{
    const head_reader *r = user;
    ref_cached which = r->row;
    which.values = values && !r->s->d->latent;
    which.position = position;
    ref_step_cached(r->s, &which, row);
}

void call_attend(const call *c, size_t token, int64_t kv_head, ref_query *query, double *o)
{
    const decoder *d = c->s->d;
    const decoder_layer *at = &d->at[c->layer];
    const head_reader reader = {
        c->s, { .sequence = c->rows[token].sequence, .layer = at->cache, .kv_head = kv_head }
    };
    uint64_t end = c->positions[token] + 1, window = (uint64_t)decoder_window(d, c->layer);
    query->scale = d->attention_scale != 0 ? d->attention_scale : 1 / sqrt((double)at->head_dim);
    query->softcap = d->attention_softcap;
    query->begin = window && window < end ? end - window : 0;
    query->end = end;
    query->halves = c->s->attends_in_f16;
    size_t room = (size_t)query->heads * (end - query->begin) + (size_t)query->head_dim;
    ref_attend(query, read_row, &reader, o, arena_alloc(c->a, room * sizeof(double)));
}

/* q, k and v in rows of size values; gate [count, num_heads, gate_size], or NULL. */
typedef struct heads {
    double *qkv, *gate;
    int64_t q_size, kv_size, size, gate_size;
} heads;

static void split_gates(const call *c, const double *both, heads *to)
{
    int64_t dim = to->gate_size;
    to->gate = call_vectors(c, to->q_size);
    for (int64_t i = 0; i < (int64_t)c->count * to->q_size; i++) {
        const double *head = both + 2 * (i / dim * dim);
        to->qkv[i / to->q_size * to->size + i % to->q_size] = head[i % dim];
        to->gate[i] = head[dim + i % dim];
    }
}

static heads multiply_qkv(const call *c, const double *from)
{
    const decoder *d = c->s->d;
    const decoder_layer *at = &d->at[c->layer];
    heads to = { .q_size = at->num_heads * at->head_dim,
                 .kv_size = at->num_kv_heads * at->head_dim,
                 .gate_size = d->attention_gate == ATTENTION_GATE_HEADS ? 1 : at->head_dim };
    const operand o = call_normed(c, from, d->hidden, TENSOR_ATTN_NORM);
    to.size = to.q_size + 2 * to.kv_size;
    to.qkv = call_vectors(c, to.size);
    size_t stride = (size_t)to.size;
    double *k = to.qkv + to.q_size, *v = k + to.kv_size;
    if (decoder_has(d, TENSOR_ATTN_GATE, c->layer))
        to.gate = call_product(c, &o, TENSOR_ATTN_GATE);
    if (d->has[TENSOR_ATTN_QKV]) {
        call_multiply(c, &o, TENSOR_ATTN_QKV, 0, to.qkv, stride);
        return to;
    }
    if (d->attention_gate == ATTENTION_GATE_OF_Q)
        split_gates(c, call_product(c, &o, TENSOR_ATTN_Q), &to);
    else
        call_multiply(c, &o, TENSOR_ATTN_Q, 0, to.qkv, stride);
    if (at->cache != c->layer)
        return to;
    call_multiply(c, &o, TENSOR_ATTN_K, 0, k, stride);
    if (!at->v_from_k)
        call_multiply(c, &o, TENSOR_ATTN_V, 0, v, stride);
    for (size_t token = 0; at->v_from_k && token < c->count; token++)
        memcpy(v + token * stride, k + token * stride, (size_t)to.kv_size * sizeof *v);
    return to;
}

/* Applies norms, if there are gains, and RoPE to the heads of q or k. */
static void rotate_heads(const call *c, double *row, int64_t count, const double *gains,
                         const double *turns)
{
    const decoder *d = c->s->d;
    int64_t dim = d->at[c->layer].head_dim;
    if (gains && d->qk_norm == QK_NORM_ROW)
        call_norm(c, row, count * dim, gains);
    for (int64_t i = 0; i < count; i++, row += dim) {
        if (gains && d->qk_norm == QK_NORM_HEAD)
            call_norm(c, row, dim, gains);
        call_rotate(c, turns, row);
        if (gains && d->qk_norm == QK_NORM_HEAD_AFTER)
            call_norm(c, row, dim, gains);
    }
}

/* Rotates q of a token, and writes its rows of K and V. */
static void rotate_and_write(const call *c, size_t token, const heads *all)
{
    const decoder *d = c->s->d;
    const decoder_layer *at = &d->at[c->layer];
    const double *q_gains = call_row(c, TENSOR_ATTN_Q_NORM, 0),
                 *k_gains = call_row(c, TENSOR_ATTN_K_NORM, 0);
    double *q = all->qkv + (int64_t)token * all->size, *k = q + all->q_size;
    const rope_options rope = call_rope(c);
    double temperature = ref_rope_temperature(&rope, c->positions[token]);
    const double *turns = call_angles(c, token);
    rotate_heads(c, q, at->num_heads, q_gains, turns);
    for (int64_t i = 0; i < all->q_size; i++)
        q[i] *= temperature;
    if (at->cache != c->layer)
        return;
    rotate_heads(c, k, at->num_kv_heads, k_gains, turns);
    for (int64_t i = 0; i < 2 * at->num_kv_heads; i++) { /* heads of k, then of v */
        bool values = i >= at->num_kv_heads;
        double *row = call_cache_row(c, token, i % at->num_kv_heads, values);
        memcpy(row, k + i * at->head_dim, (size_t)at->head_dim * sizeof *row);
        if (values && d->v_norm)
            call_norm(c, row, at->head_dim, NULL);
        ref_cache_round(d->kv_type, row, at->head_dim);
    }
}

void call_add_attention(const call *c, const double *from, double *h)
{
    const decoder_layer *at = &c->s->d->at[c->layer];
    const heads all = multiply_qkv(c, from);
    const double *sinks = call_row(c, TENSOR_ATTN_SINKS, 0);
    int64_t shared = at->num_heads / at->num_kv_heads, of_head = shared * at->head_dim;
    double *o = call_vectors(c, all.q_size);
    for (size_t token = 0; token < c->count; token++)
        rotate_and_write(c, token, &all);
    for (size_t token = 0; token < c->count; token++)
        for (int64_t head = 0; head < at->num_kv_heads; head++) {
            ref_query query = { .q = all.qkv + (int64_t)token * all.size + head * of_head,
                                .sinks = sinks ? sinks + head * shared : NULL,
                                .heads = shared,
                                .head_dim = at->head_dim,
                                .value_dim = at->head_dim };
            call_attend(c, token, head, &query, o + (int64_t)token * all.q_size + head * of_head);
        }
    for (int64_t i = 0; all.gate && i < (int64_t)c->count * all.q_size; i++)
        o[i] *= ref_sigmoid(all.gate[i / at->head_dim * all.gate_size + i % all.gate_size]);
    call_add_output(c, h, o, all.q_size, TENSOR_ATTN_OUTPUT);
}
