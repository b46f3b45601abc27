/* Latent attention, absorbed: q' = [W_k_b nope, rope(rope)] of each head against rows of [latent,
 * rope], which all heads share; o = W_v_b of the latents' mean. */
#include <string.h>

#include "model/reference/step_call.h"
#include "ref/reference.h"

typedef struct sizes {
    int64_t heads, latent, rope, row, nope, head, value;
} sizes;

static sizes sizes_of(const decoder *d)
{
    int64_t rope = d->rope[0].dims;
    return (sizes){ .heads = d->num_heads,
                    .latent = d->latent,
                    .rope = rope,
                    .row = d->latent + rope,
                    .nope = d->head_dim - rope,
                    .head = d->head_dim,
                    .value = d->value_dim };
}

static void write_rows(const call *c, const operand *o)
{
    const sizes s = sizes_of(c->s->d);
    const double *rows = call_product(c, o, TENSOR_ATTN_KV_A, TENSOR_COUNT);
    const double *gains = call_row(c, TENSOR_ATTN_KV_A_NORM, 0);
    for (size_t token = 0; token < c->count; token++) {
        double *row = call_cache_row(c, token, 0, false);
        memcpy(row, rows + (int64_t)token * s.row, (size_t)s.row * sizeof *row);
        call_norm(c, row, s.latent, gains);
        call_rotate(c, call_turns(c, token), row + s.latent);
        ref_cache_round(c->s->d->kv_type, row, s.row);
    }
}

/* Multiplies a matrix of each head with the first columns of that head's from values. */
static void multiply_heads(const call *c, decoder_tensor t, const double *x, int64_t from,
                           int64_t columns, double *y, int64_t to)
{
    int64_t heads = c->s->d->num_heads;
    for (int64_t head = 0; head < heads; head++) {
        double *part = call_vectors(c, columns);
        for (size_t token = 0; token < c->count; token++)
            memcpy(part + (int64_t)token * columns, x + ((int64_t)token * heads + head) * from,
                   (size_t)columns * sizeof *part);
        const operand o = { part, NULL, c->count, columns };
        call_multiply(c, &o, &(ref_product){ t, TENSOR_COUNT, (uint64_t)head }, y + head * to,
                      (size_t)(heads * to));
    }
}

/* Returns the queries, [count, heads, latent + rope]. */
static double *absorb(const call *c, const double *q)
{
    const sizes s = sizes_of(c->s->d);
    double *queries = call_vectors(c, s.heads * s.row);
    multiply_heads(c, TENSOR_ATTN_K_B, q, s.head, s.nope, queries, s.row);
    for (size_t token = 0; token < c->count; token++) {
        const double *turns = call_turns(c, token);
        double temperature = ref_rope_temperature(call_rope(c), c->positions[token]);
        for (int64_t head = 0; head < s.heads; head++) {
            int64_t number = (int64_t)token * s.heads + head;
            double *query = queries + number * s.row;
            memcpy(query + s.latent, q + number * s.head + s.nope, (size_t)s.rope * sizeof *q);
            call_rotate(c, turns, query + s.latent);
            for (int64_t i = 0; i < s.row; i++)
                query[i] *= temperature;
        }
    }
    return queries;
}

void call_add_latent_attention(const call *c, double *h)
{
    const sizes s = sizes_of(c->s->d);
    const operand x = call_normed(c, h, c->s->d->hidden, TENSOR_ATTN_NORM);
    bool by_rank = c->s->d->q_rank;
    const double *q = call_product(c, &x, by_rank ? TENSOR_ATTN_Q_A : TENSOR_ATTN_Q,
                                   by_rank ? TENSOR_COUNT : TENSOR_ATTN_Q_BIAS);
    if (by_rank) {
        const operand ranks = call_normed(c, q, c->s->d->q_rank, TENSOR_ATTN_Q_A_NORM);
        q = call_product(c, &ranks, TENSOR_ATTN_Q_B, TENSOR_COUNT);
    }
    const double *queries = absorb(c, q);
    double *latents = call_vectors(c, s.heads * s.latent), *o = call_vectors(c, s.heads * s.value);
    write_rows(c, &x);
    for (size_t token = 0; token < c->count; token++) {
        ref_query query = { .q = queries + (int64_t)token * s.heads * s.row,
                            .heads = s.heads,
                            .head_dim = s.row,
                            .value_dim = s.latent };
        call_attend(c, token, 0, &query, latents + (int64_t)token * s.heads * s.latent);
    }
    multiply_heads(c, TENSOR_ATTN_V_B, latents, s.latent, s.latent, o, s.value);
    call_add_output(c, h, o, s.heads * s.value, TENSOR_ATTN_OUTPUT, TENSOR_ATTN_OUTPUT_BIAS);
}
