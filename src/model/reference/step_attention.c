#include <math.h>
#include <string.h>

#include "model/reference/step_call.h"
#include "ref/half.h"
#include "ref/reference.h"

/* ggml's reference quantizer of q8_0 divides in float and rounds half away from zero. */
static void round_q8_0(double *x)
{
    enum { LARGEST = 127 };
    double largest = 0;
    for (int i = 0; i < Q8_0_VALUES; i++)
        largest = fmax(largest, fabs(x[i]));
    float d = (float)largest / LARGEST;
    double stored = (double)half_to_float(half_from_float(d));
    for (int i = 0; i < Q8_0_VALUES; i++)
        x[i] = d > 0 ? round(x[i] / (double)d) * stored : x[i] * stored;
}

void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim)
{
    for (int64_t i = 0; i < head_dim; i++)
        switch (kv_type) {
        case KV_F16:
            row[i] = (double)half_to_float(half_from_float((float)row[i]));
            break;
        case KV_BF16:
            row[i] = (double)bfloat_to_float(bfloat_from_float((float)row[i]));
            break;
        case KV_Q8_0:
            if (i % Q8_0_VALUES == 0)
                round_q8_0(row + i);
            break;
        default:
            break;
        }
}

/* A factor of a product. */
static double factor_of(const ref_query *query, double value)
{
    return query->halves ? ref_round_to_half(value) : value;
}

static double score_of(const ref_query *query, const double *q, const double *k)
{
    double sum = 0;
    for (int64_t d = 0; d < query->head_dim; d++)
        sum += factor_of(query, q[d]) * factor_of(query, k[d]);
    sum *= query->scale;
    return query->softcap > 0 ? query->softcap * tanh(sum / query->softcap) : sum;
}

/* exp of the scores, by the largest of them; a NaN stays one. Returns their sum, with that of a
 * sink, which may be NULL. */
static double weigh(double *scores, uint64_t count, const double *sink)
{
    double largest = sink ? *sink : -HUGE_VAL, sum = 0;
    for (uint64_t t = 0; t < count; t++)
        largest = fmax(largest, scores[t]);
    for (uint64_t t = 0; t < count; t++)
        sum += scores[t] = exp(scores[t] - largest);
    return sink ? sum + exp(*sink - largest) : sum;
}

void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room)
{
    int64_t dim = query->value_dim;
    uint64_t count = query->end - query->begin, heads = (uint64_t)query->heads;
    double *row = room + heads * count;
    for (uint64_t t = 0; t < count; t++) {
        read(user, false, query->begin + t, row);
        for (uint64_t h = 0; h < heads; h++)
            room[h * count + t] = score_of(query, query->q + (int64_t)h * query->head_dim, row);
    }
    for (uint64_t h = 0; h < heads; h++) {
        double sum = weigh(room + h * count, count, query->sinks ? &query->sinks[h] : NULL);
        for (uint64_t t = 0; t < count; t++)
            room[h * count + t] = factor_of(query, room[h * count + t]) / sum;
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
    const head_reader reader = { c->s, { c->rows[token].sequence, c->layer, kv_head, 0, false } };
    uint64_t end = c->positions[token] + 1, window = (uint64_t)d->window;
    query->scale = d->attention_scale != 0 ? d->attention_scale : 1 / sqrt((double)d->head_dim);
    query->softcap = d->attention_softcap;
    query->begin = d->windowed[c->layer] && window && window < end ? end - window : 0;
    query->end = end;
    query->halves = c->s->attends_by_halves;
    size_t room = (size_t)query->heads * (end - query->begin) + (size_t)query->head_dim;
    ref_attend(query, read_row, &reader, o, arena_alloc(c->a, room * sizeof(double)));
}

/* q, k and v of all tokens, each token's in one row of so many values, and with a gate that of q,
 * [count, num_heads, head_dim]; else NULL. */
typedef struct heads {
    double *qkv, *gate;
    int64_t q_size, kv_size, size;
} heads;

/* The rows of attn_q are by heads, of which each has its q ahead of its gate. */
static void multiply_gated_q(const call *c, const operand *o, heads *to)
{
    int64_t dim = c->s->d->head_dim;
    const double *both = call_product(c, o, TENSOR_ATTN_Q, TENSOR_ATTN_Q_BIAS);
    to->gate = call_vectors(c, to->q_size);
    for (size_t token = 0; token < c->count; token++)
        for (int64_t i = 0; i < to->q_size; i++) {
            const double *head = both + 2 * ((int64_t)token * to->q_size + i / dim * dim);
            to->qkv[(int64_t)token * to->size + i] = head[i % dim];
            to->gate[(int64_t)token * to->q_size + i] = head[dim + i % dim];
        }
}

static heads multiply_qkv(const call *c, const double *h)
{
    const decoder *d = c->s->d;
    heads to = { .q_size = d->num_heads * d->head_dim, .kv_size = d->num_kv_heads * d->head_dim };
    const operand o = call_normed(c, h, d->hidden, TENSOR_ATTN_NORM);
    to.size = to.q_size + 2 * to.kv_size;
    to.qkv = call_vectors(c, to.size);
    size_t stride = (size_t)to.size;
    double *k = to.qkv + to.q_size, *v = k + to.kv_size;
    if (d->has[TENSOR_ATTN_QKV]) {
        call_multiply(c, &o, &(ref_product){ TENSOR_ATTN_QKV, TENSOR_ATTN_QKV_BIAS, 0 }, to.qkv,
                      stride);
        return to;
    }
    if (d->attention_gate)
        multiply_gated_q(c, &o, &to);
    else
        call_multiply(c, &o, &(ref_product){ TENSOR_ATTN_Q, TENSOR_ATTN_Q_BIAS, 0 }, to.qkv,
                      stride);
    call_multiply(c, &o, &(ref_product){ TENSOR_ATTN_K, TENSOR_ATTN_K_BIAS, 0 }, k, stride);
    call_multiply(c, &o, &(ref_product){ TENSOR_ATTN_V, TENSOR_ATTN_V_BIAS, 0 }, v, stride);
    return to;
}

/* Heads one behind another, normed where there are gains, and turned. */
static void turn_heads(const call *c, double *head, int64_t count, const double *gains,
                       const double *turns)
{
    int64_t dim = c->s->d->head_dim;
    for (int64_t i = 0; i < count; i++, head += dim) {
        if (gains)
            call_norm(c, head, dim, gains);
        call_rotate(c, turns, head);
    }
}

/* The cache's rows of a token, from its k and v. */
static void write_cache(const call *c, size_t token, const double *k, const double *v)
{
    const decoder *d = c->s->d;
    for (int64_t i = 0; i < 2 * d->num_kv_heads; i++) {
        bool values = i >= d->num_kv_heads;
        int64_t head = values ? i - d->num_kv_heads : i;
        double *row = call_cache_row(c, token, head, values);
        memcpy(row, (values ? v : k) + head * d->head_dim, (size_t)d->head_dim * sizeof *row);
        ref_cache_round(d->kv_type, row, d->head_dim);
    }
}

static void turn_and_write(const call *c, const heads *all)
{
    const decoder *d = c->s->d;
    const double *q_gains = call_row(c, TENSOR_ATTN_Q_NORM, 0),
                 *k_gains = call_row(c, TENSOR_ATTN_K_NORM, 0);
    for (size_t token = 0; token < c->count; token++) {
        double *q = all->qkv + (int64_t)token * all->size, *k = q + all->q_size;
        double temperature = ref_rope_temperature(call_rope(c), c->positions[token]);
        const double *turns = call_turns(c, token);
        turn_heads(c, q, d->num_heads, q_gains, turns);
        turn_heads(c, k, d->num_kv_heads, k_gains, turns);
        for (int64_t i = 0; i < all->q_size; i++)
            q[i] *= temperature;
        write_cache(c, token, k, k + all->kv_size);
    }
}

void call_add_attention(const call *c, double *h)
{
    const decoder *d = c->s->d;
    const heads all = multiply_qkv(c, h);
    const double *sinks = call_row(c, TENSOR_ATTN_SINKS, 0);
    int64_t shared = d->num_heads / d->num_kv_heads, of_head = shared * d->head_dim;
    double *o = call_vectors(c, all.q_size);
    turn_and_write(c, &all);
    for (size_t token = 0; token < c->count; token++)
        for (int64_t head = 0; head < d->num_kv_heads; head++) {
            ref_query query = { .q = all.qkv + (int64_t)token * all.size + head * of_head,
                                .sinks = sinks ? sinks + head * shared : NULL,
                                .heads = shared,
                                .head_dim = d->head_dim,
                                .value_dim = d->head_dim };
            call_attend(c, token, head, &query, o + (int64_t)token * all.q_size + head * of_head);
        }
    for (int64_t i = 0; all.gate && i < (int64_t)c->count * all.q_size; i++)
        o[i] *= ref_sigmoid(all.gate[i]);
    call_add_output(c, h, o, all.q_size, TENSOR_ATTN_OUTPUT, TENSOR_ATTN_OUTPUT_BIAS);
}
