/* Latent attention, absorbed. Each head's query q' = [W_k_b nope, rope(pe)] attends to rows
 * [latent, pe], which all heads share. o = W_v_b times the weighted sum of latents. */
#include <string.h>

#include "model/reference/step_call.h"
#include "ref/reference.h"

/* Multiplies each head's plane of a tensor by the first `columns` of the head's `from` values. */
static void multiply_heads(const call *c, decoder_tensor t, const double *x, int64_t from,
                           int64_t columns, double *y, int64_t to)
{
    int64_t heads = c->s->d->at[c->layer].num_heads;
    for (int64_t head = 0; head < heads; head++) {
        double *part = call_vectors(c, columns);
        for (size_t token = 0; token < c->count; token++)
            memcpy(part + (int64_t)token * columns, x + ((int64_t)token * heads + head) * from,
                   (size_t)columns * sizeof *part);
        const operand o = { part, NULL, c->count, columns };
        call_multiply(c, &o, t, (uint64_t)head, y + head * to, (size_t)(heads * to));
    }
}

/* Multiplies each head's rows of v in attn_kv_b by the head's latents. */
static void multiply_values(const call *c, const double *latents, double *o)
{
    const decoder *d = c->s->d;
    int64_t heads = d->at[c->layer].num_heads, plane = decoder_kv_b_rows(d, c->layer);
    double *room = call_vectors(c, d->latent);
    for (int64_t head = 0; head < heads; head++)
        for (size_t token = 0; token < c->count; token++) {
            ref_matrix w = call_matrix(c, TENSOR_ATTN_KV_B, 0);
            int64_t number = (int64_t)token * heads + head;
            w.rows = (uint64_t)d->value_dim;
            w.first = (uint64_t)((head + 1) * plane - d->value_dim);
            ref_matrix_times(&w, latents + number * d->latent, 1, o + number * d->value_dim, 0,
                             room);
        }
}

/* Sums each head's rows of k in attn_kv_b, each times a value of q without RoPE. */
static void sum_keys(const call *c, const double *q, double *queries, int64_t row)
{
    const decoder *d = c->s->d;
    int64_t heads = d->at[c->layer].num_heads, size = d->at[c->layer].head_dim;
    int64_t nope = size - d->rope[0].dims, plane = decoder_kv_b_rows(d, c->layer);
    ref_matrix w = call_matrix(c, TENSOR_ATTN_KV_B, 0);
    double *weights = call_vectors(c, d->latent);
    for (int64_t i = 0; i < (int64_t)c->count * heads * row; i++)
        queries[i] = 0;
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = 0; i < nope; i++) {
            ref_matrix_row(&w, (uint64_t)(head * plane + i), weights);
            for (size_t token = 0; token < c->count; token++) {
                int64_t number = (int64_t)token * heads + head;
                for (int64_t l = 0; l < d->latent; l++)
                    queries[number * row + l] += weights[l] * q[number * size + i];
            }
        }
}

/* Returns the queries, [count, heads, latent + rope_dims]. */
static double *absorb(const call *c, const double *q)
{
    const decoder *d = c->s->d;
    const rope_options turned = call_rope(c);
    int64_t heads = d->at[c->layer].num_heads, size = d->at[c->layer].head_dim;
    int64_t rope = turned.dims, row = d->latent + rope, nope = size - rope;
    double *queries = call_vectors(c, heads * row);
    if (d->has[TENSOR_ATTN_KV_B])
        sum_keys(c, q, queries, row);
    else
        multiply_heads(c, TENSOR_ATTN_K_B, q, size, nope, queries, row);
    for (size_t token = 0; token < c->count; token++) {
        const double *turns = call_angles(c, token);
        double temperature = ref_rope_temperature(&turned, c->positions[token]);
        for (int64_t head = 0; head < heads; head++) {
            int64_t number = (int64_t)token * heads + head;
            double *query = queries + number * row;
            memcpy(query + d->latent, q + number * size + nope, (size_t)rope * sizeof *q);
            call_rotate(c, turns, query + d->latent);
            for (int64_t i = 0; i < row; i++)
                query[i] *= temperature;
        }
    }
    return queries;
}

void call_add_latent_attention(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    int64_t heads = d->at[c->layer].num_heads, row = d->latent + d->rope[0].dims;
    const operand x = call_normed(c, from, d->hidden, TENSOR_ATTN_NORM);
    bool by_rank = d->q_rank;
    const double *q = call_product(c, &x, by_rank ? TENSOR_ATTN_Q_A : TENSOR_ATTN_Q);
    if (by_rank) {
        const operand ranks = call_normed(c, q, d->q_rank, TENSOR_ATTN_Q_A_NORM);
        q = call_product(c, &ranks, TENSOR_ATTN_Q_B);
    }
    const double *queries = absorb(c, q);
    double *latents = call_vectors(c, heads * d->latent),
           *o = call_vectors(c, heads * d->value_dim);
    const double *written = call_product(c, &x, TENSOR_ATTN_KV_A);
    const double *gains = call_row(c, TENSOR_ATTN_KV_A_NORM, 0);
    for (size_t token = 0; token < c->count; token++) {
        double *to = call_cache_row(c, token, 0, false);
        memcpy(to, written + (int64_t)token * row, (size_t)row * sizeof *to);
        call_norm(c, to, d->latent, gains);
        call_rotate(c, call_angles(c, token), to + d->latent);
        ref_cache_round(d->kv_type, to, row);
    }
    for (size_t token = 0; token < c->count; token++) {
        ref_query query = { .q = queries + (int64_t)token * heads * row,
                            .heads = heads,
                            .head_dim = row,
                            .value_dim = d->latent };
        call_attend(c, token, 0, &query, latents + (int64_t)token * heads * d->latent);
    }
    if (d->has[TENSOR_ATTN_KV_B])
        multiply_values(c, latents, o);
    else
        multiply_heads(c, TENSOR_ATTN_V_B, latents, d->latent, d->latent, o, d->value_dim);
    call_add_output(c, h, o, heads * d->value_dim, TENSOR_ATTN_OUTPUT);
}
