/* Latent attention of a layer, absorbed: the cache has one row a position for all heads.
 *
 *   qkv        norm(h), W_q (or W_q_a) W_kv_a       -> qkv
 *   query      qkv: W_k_b (W_q_b norm), RoPE        -> q, and the row into the cache
 *   attention  q, rows                              -> latents
 *   values     W_v_b latents                        -> o
 *   output     W_o o + h                            -> middle
 *
 * In steps of prompts on tensor cores a product by way of W_q_a has launches of its own:
 *
 *   ranks      norm(h), W_q_a                       -> ranks
 *   kv         norm(h), W_kv_a                      -> kv
 *   qkv        norm(ranks), W_q_b                   -> qkv
 *   query      qkv: W_k_b, RoPE                     -> q, and the row of kv into the cache
 */
#include <math.h>

#include "model/plan/plan_product.h"

static void set_sizes(const planner *p, instance *in)
{
    planner_set(in, "num_heads", p->d->num_heads);
    planner_set(in, "latent", p->d->latent);
    planner_set(in, "m", p->m);
}

static void set_rows(const planner *p, instance *in)
{
    planner_set(in, "n_rope", p->d->rope[0].dims);
    planner_set(in, "max_seq_len", p->d->max_seq_len);
    planner_set(in, "kv_type", p->d->kv_type);
}

static void make_queries(planner *p)
{
    const decoder *d = p->d;
    bool apart = plan_is_apart(p), by_rank = d->q_rank && !apart;
    instance in = planner_kernel(p, "mla_query");
    bindings b = { 0 };
    set_sizes(p, &in);
    set_rows(p, &in);
    plan_set_rope(&in, &d->rope[0]);
    planner_set_real(&in, "epsilon", d->epsilon);
    planner_set(&in, "nope", d->head_dim - d->rope[0].dims);
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_ATTN_K_B, p->layer));
    planner_set(&in, "inputs", apart);
    planner_set(&in, "q_rank", by_rank ? d->q_rank : 0);
    if (by_rank)
        planner_set_weights(&in, "weights_q", decoder_format(d, TENSOR_ATTN_Q_B, p->layer));
    planner_bind_buffer(&b, "q", BUFFER_Q);
    plan_bind_caches(p, &b, "c", NULL);
    planner_bind_tensor(p, &b, "w", TENSOR_ATTN_K_B);
    planner_bind_tensor(p, &b, "wq", TENSOR_ATTN_Q_B);
    planner_bind_buffer(&b, "qc", BUFFER_QKV);
    planner_bind_buffer(&b, "kv", BUFFER_KV);
    planner_bind_tensor(p, &b, "gamma", TENSOR_ATTN_KV_A_NORM);
    planner_bind_tensor(p, &b, "gamma_q", TENSOR_ATTN_Q_A_NORM);
    planner_bind_state(&b, "positions", p->plan->state.positions, "positions");
    plan_bind_factors(p, &b, &d->rope[0]);
    planner_add(p, &in, &b,
                by_rank ? "norm(qkv), attn_q_b attn_k_b -> q, cache"
                : apart ? "qkv, kv, attn_k_b -> q, cache"
                        : "qkv, attn_k_b -> q, cache");
}

/* Attention may round to f16 what it multiplies, where that takes the cache's rows: but a cache of
 * f32 is there to lose nothing. */
static void set_products(const planner *p, instance *in)
{
    const decoder *d = p->d;
    const char *blamed;
    if (d->precision != PRECISION_Q8 || d->kv_type == KV_F32 ||
        !planner_has_choices(p, in, "products"))
        return;
    planner_set(in, "products", 1);
    if (in->family->check(in, p->arena, &blamed))
        planner_set(in, "products", 0);
}

/* Of many rows there are blocks enough without chunks, and what these come to takes memory: as many
 * floats as latents of a row, head and chunk. So there are few, of whatever length; but where
 * nothing is rounded many rows have the bits of one. */
static void set_chunks(const planner *p, instance *in)
{
    enum { FEW_CHUNKS = 4 };
    const key *k = family_key(in->family, "chunk_size");
    int64_t usual = key_default(k), positions = p->d->max_seq_len;
    int64_t size = (positions + FEW_CHUNKS - 1) / FEW_CHUNKS;
    size = (size + k->multiple_of - 1) / k->multiple_of * k->multiple_of;
    if (decoder_is_prompt(p->m) && p->d->precision == PRECISION_Q8 && size > usual)
        planner_set(in, "chunk_size", size < k->max ? size : k->max);
}

static void attend(planner *p)
{
    const decoder *d = p->d;
    double usual = 1 / sqrt((double)d->head_dim);
    instance in = planner_kernel(p, "mla_attention");
    bindings b = { 0 };
    set_sizes(p, &in);
    set_rows(p, &in);
    planner_set_real(&in, "scale", d->attention_scale > 0 ? d->attention_scale : usual);
    set_products(p, &in);
    set_chunks(p, &in);
    planner_settle(p, &in);
    planner_bind_buffer(&b, "o", BUFFER_LATENTS);
    planner_bind_buffer(&b, "partials", BUFFER_PARTIALS);
    planner_bind_buffer(&b, "q", BUFFER_Q);
    plan_bind_caches(p, &b, "c", NULL);
    planner_bind_state(&b, "seq_lens", p->plan->state.lengths, "lengths");
    planner_add(p, &in, &b, "q, cache[0..length) -> latents");
}

static void make_values(planner *p)
{
    instance in = planner_kernel(p, "mla_values");
    bindings b = { 0 };
    set_sizes(p, &in);
    planner_set(&in, "value_dim", p->d->value_dim);
    planner_set_weights(&in, "weights", decoder_format(p->d, TENSOR_ATTN_V_B, p->layer));
    planner_bind_buffer(&b, "y", BUFFER_O);
    planner_bind_tensor(p, &b, "w", TENSOR_ATTN_V_B);
    planner_bind_buffer(&b, "o", BUFFER_LATENTS);
    planner_add(p, &in, &b, "attn_v_b latents -> o");
}

bool plan_is_apart(const planner *p)
{
    return p->d->q_rank && plan_is_of_halves(p, TENSOR_ATTN_Q_B);
}

static void multiply_apart(planner *p)
{
    static const plan_product products[] = {
        { .w = TENSOR_ATTN_Q_A,
          .bias = TENSOR_COUNT,
          .x = BUFFER_H,
          .y = BUFFER_RANKS,
          .residual = BUFFERS,
          .norm = TENSOR_ATTN_NORM,
          .said = "norm(h), attn_q_a -> ranks" },
        { .w = TENSOR_ATTN_KV_A,
          .bias = TENSOR_COUNT,
          .x = BUFFER_H,
          .y = BUFFER_KV,
          .residual = BUFFERS,
          .norm = TENSOR_ATTN_NORM,
          .said = "norm(h), attn_kv_a_mqa -> kv" },
        { .w = TENSOR_ATTN_Q_B,
          .bias = TENSOR_COUNT,
          .x = BUFFER_RANKS,
          .y = BUFFER_QKV,
          .residual = BUFFERS,
          .norm = TENSOR_ATTN_Q_A_NORM,
          .said = "norm(ranks), attn_q_b -> qkv" },
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        plan_multiply(p, &products[i], p->m, 0);
}

void plan_latent_attention(planner *p)
{
    static const plan_matrices direct = {
        .w = { TENSOR_ATTN_Q, TENSOR_ATTN_KV_A, TENSOR_COUNT },
        .bias = { TENSOR_COUNT, TENSOR_COUNT, TENSOR_COUNT },
        .y = BUFFER_QKV,
        .said = "norm(h), attn_q attn_kv_a_mqa -> qkv",
    };
    static const plan_matrices by_rank = {
        .w = { TENSOR_ATTN_Q_A, TENSOR_ATTN_KV_A, TENSOR_COUNT },
        .bias = { TENSOR_COUNT, TENSOR_COUNT, TENSOR_COUNT },
        .y = BUFFER_QKV,
        .said = "norm(h), attn_q_a attn_kv_a_mqa -> qkv",
    };
    if (plan_is_apart(p))
        multiply_apart(p);
    else
        plan_multiply_matrices(p, p->d->q_rank ? &by_rank : &direct);
    make_queries(p);
    attend(p);
    make_values(p);
    plan_add_branch(p, &plan_attention_output);
}
