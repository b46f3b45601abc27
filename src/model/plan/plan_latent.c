/* Latent attention of a layer, absorbed: the cache has one row per position for all heads.
 *
 *   qkv        norm(h), W_q (or W_q_a) W_kv_a       -> qkv
 *   query      qkv: W_k_b (W_q_b norm), RoPE        -> q, and the row into the cache
 *   attention  q, rows                              -> latents
 *   values     W_v_b latents                        -> o
 *   output     W_o o + h                            -> middle
 *
 * In prompt steps on tensor cores, q by way of W_q_a has launches of its own:
 *
 *   ranks      norm(h), W_q_a                       -> ranks
 *   kv         norm(h), W_kv_a                      -> kv
 *   qkv        norm(ranks), W_q_b                   -> qkv
 *   query      qkv: W_k_b, RoPE                     -> q, and the row of kv into the cache
 */
#include <math.h>

#include "model/plan/plan_product.h"

bool plan_separates_q(const planner *p)
{
    return p->d->q_rank && decoder_product_rounding(p->d, p->m, TENSOR_ATTN_Q_B,
                                                    planner_layer(p)) != ROUNDS_NOTHING;
}

/* Returns the tensor of the matrices of k, or of v: the file's own, or attn_kv_b with both. */
static decoder_tensor matrices(const planner *p, decoder_tensor own)
{
    return p->d->has[TENSOR_ATTN_KV_B] ? TENSOR_ATTN_KV_B : own;
}

static int64_t plane_rows(const planner *p)
{
    return p->d->has[TENSOR_ATTN_KV_B] ? decoder_kv_b_rows(p->d, p->layer) : 0;
}

static void add_queries(planner *p)
{
    decoder_tensor keys_of = matrices(p, TENSOR_ATTN_K_B);
    const plan_bind binds[] = { { "q", BIND_BUFFER, BUFFER_Q },
                                { "c", BIND_CACHE, 0 },
                                { "w", BIND_TENSOR, keys_of },
                                { "wq", BIND_TENSOR, TENSOR_ATTN_Q_B },
                                { "qc", BIND_BUFFER, BUFFER_QKV },
                                { "kv", BIND_BUFFER, BUFFER_KV },
                                { "gamma", BIND_TENSOR, TENSOR_ATTN_KV_A_NORM },
                                { "gamma_q", BIND_TENSOR, TENSOR_ATTN_Q_A_NORM },
                                { "positions", BIND_STATE, AT_POSITIONS },
                                { 0 } };
    const decoder *d = p->d;
    bool is_apart = plan_separates_q(p), is_by_rank = d->q_rank && !is_apart;
    const plan_key keys[] = { { "n_rope", d->rope[0].dims },
                              { "epsilon", real_bits(d->epsilon) },
                              { "nope", d->at[p->layer].head_dim - d->rope[0].dims },
                              { "weights", planner_format(p, keys_of) },
                              { "plane_rows", plane_rows(p) },
                              { "temperature_scale", real_bits(d->rope[0].temperature_scale) },
                              { "temperature_length", real_bits(d->rope[0].temperature_length) },
                              { "inputs", is_apart },
                              { "q_rank", is_by_rank ? d->q_rank : 0 },
                              { 0 } };
    launch_draft l = planner_draft(p, FAMILY_MLA_QUERY, keys, binds);
    if (is_by_rank)
        planner_set(&l.in, "weights_q", planner_format(p, TENSOR_ATTN_Q_B));
    plan_set_rope(p, &l, &d->rope[0]);
    planner_add(p, &l,
                is_by_rank ? "norm(qkv), attn_q_b attn_k_b -> q, cache"
                : is_apart ? "qkv, kv, attn_k_b -> q, cache"
                           : "qkv, attn_k_b -> q, cache");
}

static void add_attention(planner *p)
{
    enum { FEW_CHUNKS = 4 };
    static const plan_bind binds[] = {
        { "o", BIND_BUFFER, BUFFER_LATENTS },   { "partials", BIND_BUFFER, BUFFER_PARTIALS },
        { "q", BIND_BUFFER, BUFFER_Q },         { "c", BIND_CACHE, 0 },
        { "seq_lens", BIND_STATE, AT_LENGTHS }, { 0 },
    };
    const decoder *d = p->d;
    bool rounds = d->precision == PRECISION_Q8;
    double usual = 1 / sqrt((double)d->at[p->layer].head_dim);
    const plan_key keys[] = { { "n_rope", d->rope[0].dims },
                              { "scale",
                                real_bits(d->attention_scale > 0 ? d->attention_scale : usual) },
                              { 0 } };
    launch_draft l = planner_draft(p, FAMILY_MLA_ATTENTION, keys, binds);
    /* Use tensor cores where the kernel supports the cache's rows, except for f32's precision. */
    const char *blamed;
    const family *of = l.in.family;
    if (rounds && d->kv_type != KV_F32 && p->targets[0]->sm >= family_key(of, "products")->sm) {
        planner_set(&l.in, "products", 1);
        if (of->check(&l.in, p->arena, &blamed))
            planner_set(&l.in, "products", 0);
    }
    /* Many rows fill the GPU without chunks, and partial results need memory: a latent in f32 for
     * each row, head and chunk. So prompt steps use at most 4 chunks. Without rounding, though,
     * many rows must have the bits of one row, so that chunks stay as they are. */
    const key *k = family_key(of, "chunk_size");
    int64_t size = (d->max_seq_len + FEW_CHUNKS - 1) / FEW_CHUNKS;
    size = (size + k->multiple_of - 1) / k->multiple_of * k->multiple_of;
    if (rounds && decoder_is_prompt(p->m) && size > key_default(k))
        planner_set(&l.in, "chunk_size", size < k->max ? size : k->max);
    planner_add(p, &l, "q, cache[0..length) -> latents");
}

void plan_latent_attention(planner *p)
{
    decoder_tensor values_of = matrices(p, TENSOR_ATTN_V_B);
    const plan_bind value_binds[] = { { "y", BIND_BUFFER, BUFFER_O },
                                      { "w", BIND_TENSOR, values_of },
                                      { "o", BIND_BUFFER, BUFFER_LATENTS },
                                      { 0 } };
    const plan_key value_keys[] = { { "weights", planner_format(p, values_of) },
                                    { "plane_rows", plane_rows(p) },
                                    { 0 } };
    if (plan_separates_q(p)) {
        plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_ATTN_Q_A, BUFFER_RANKS);
        plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_ATTN_KV_A, BUFFER_KV);
        plan_multiply_normed(p, BUFFER_RANKS, TENSOR_ATTN_Q_A_NORM, TENSOR_ATTN_Q_B, BUFFER_QKV);
    } else {
        plan_multiply_matrices(p, p->d->q_rank ? TENSOR_ATTN_Q_A : TENSOR_ATTN_Q, TENSOR_ATTN_KV_A,
                               TENSOR_COUNT, BUFFER_QKV);
    }
    add_queries(p);
    add_attention(p);
    planner_launch(p, FAMILY_MLA_VALUES, value_keys, value_binds, "attn_v_b latents -> o");
    plan_add_branch(p, &plan_attention_output);
}
