/* Softmax attention of a layer:
 *
 *   qkv        norm(h), W_q W_k W_v                -> qkv
 *   rope       qkv                                 -> q, and K and V into the caches
 *   attention  q, K, V                             -> o
 *   output     W_o o + h                           -> middle
 */
#include "kernel/formula.h"
#include "model/plan/plan_product.h"

const plan_branch plan_attention_output = { .w = TENSOR_ATTN_OUTPUT,
                                            .post_norm = TENSOR_POST_ATTENTION_NORM,
                                            .x = BUFFER_O,
                                            .product = BUFFER_PRODUCT };

static void add_rope(planner *p)
{
    static const plan_bind binds[] = { { "q", BIND_BUFFER, BUFFER_Q },
                                       { "gate", BIND_BUFFER, BUFFER_GATE },
                                       { "k", BIND_CACHE, 0 },
                                       { "v", BIND_CACHE, 1 },
                                       { "qkv", BIND_BUFFER, BUFFER_QKV },
                                       { "positions", BIND_STATE, AT_POSITIONS },
                                       { "q_norm", BIND_TENSOR, TENSOR_ATTN_Q_NORM },
                                       { "k_norm", BIND_TENSOR, TENSOR_ATTN_K_NORM },
                                       { 0 } };
    const decoder *d = p->d;
    const decoder_layer *at = &d->at[p->layer];
    const rope_options rope = decoder_rope(d, p->layer);
    bool normed = planner_has(p, TENSOR_ATTN_Q_NORM), writes = at->cache == p->layer;
    const plan_key keys[] = { { "n_rot", rope.style == ROPE_NONE ? at->head_dim : rope.dims },
                              { "temperature_scale", real_bits(rope.temperature_scale) },
                              { "temperature_length", real_bits(rope.temperature_length) },
                              { "qk_norm", normed ? 1 + d->qk_norm : 0 },
                              { "epsilon", normed || d->v_norm ? real_bits(d->epsilon) : 0 },
                              { "gated", d->attention_gate == ATTENTION_GATE_OF_Q },
                              { "ring", plan_ring(d, p->layer) },
                              { 0 } };
    launch_draft l = planner_draft(p, FAMILY_ROPE_KV_WRITE, keys, binds);
    if (d->v_norm && writes)
        planner_set(&l.in, "v_norm", 1);
    if (at->v_from_k)
        planner_set(&l.in, "v_from", 1);
    if (!writes)
        planner_set(&l.in, "kv", 1);
    plan_set_rope(p, &l, &rope);
    planner_add(p, &l, writes ? "qkv -> q, cache" : "qkv -> q");
}

/* Returns true if a step's attention is by runs, in tiles on the tensor cores. Those round, and need
 * a head_dim that is a multiple of a fragment. With several sequences steps of up to SPREAD_ROWS rows
 * attend as single rows do, so that a row has the same bits in each of them. */
static bool attends_in_tiles(const planner *p, int64_t layer, int64_t m)
{
    enum { FRAGMENT = 16, SPREAD_ROWS = 64 };
    const decoder *d = p->d;
    return d->precision == PRECISION_Q8 && !d->latent && d->at[layer].attends &&
           decoder_is_prompt(m) && (d->sequences == 1 || m > SPREAD_ROWS) &&
           d->at[layer].head_dim % FRAGMENT == 0;
}

int64_t plan_tile_rows(const planner *p, int64_t layer)
{
    if (!attends_in_tiles(p, layer, p->plan->rows))
        return 0;
    instance in = { .family = families[FAMILY_MMA_ATTENTION] };
    for (const key *k = in.family->keys; k->name; k++)
        instance_set(&in, k, instance_default(&in, k));
    in.shape.num_heads = p->d->at[layer].num_heads;
    in.shape.num_kv_heads = p->d->at[layer].num_kv_heads;
    in.shape.head_dim = p->d->at[layer].head_dim;
    return formula_value("run_rows", &in, NULL);
}

/* Drafts attention by a family. Chunks of 64 or 128 positions give two blocks to each SM of a large
 * GPU, and one block still merges them well: 4096 positions make 32 chunks. Tiles of more rows than
 * SPLIT_ROWS give each SM a block without chunks. */
static launch_draft attention_by(const planner *p, family_id of)
{
    enum { MANY_HEADS = 8, SPREAD_POSITIONS = 4096, SPLIT_ROWS = 64, SPLIT_CHUNK = 128 };
    static const plan_bind binds[] = { { "o", BIND_BUFFER, BUFFER_O },
                                       { "partials", BIND_BUFFER, BUFFER_PARTIALS },
                                       { "q", BIND_BUFFER, BUFFER_Q },
                                       { "sinks", BIND_TENSOR, TENSOR_ATTN_SINKS },
                                       { "gate", BIND_BUFFER, BUFFER_GATE },
                                       { "k", BIND_CACHE, 0 },
                                       { "v", BIND_CACHE, 1 },
                                       { "seq_lens", BIND_STATE, AT_LENGTHS },
                                       { 0 } };
    static const int64_t gates[] = {
        [ATTENTION_GATE_OF_Q] = 1, [ATTENTION_GATE_VALUES] = 1, [ATTENTION_GATE_HEADS] = 2
    };
    const decoder *d = p->d;
    int64_t window = decoder_window(d, p->layer);
    int64_t limit = d->at[p->layer].num_kv_heads < MANY_HEADS ? 64 : 32;
    const plan_key keys[] = { { "ring", plan_ring(d, p->layer) },
                              { "scale", real_bits(d->attention_scale) },
                              { "softcap", real_bits(d->attention_softcap) },
                              { "window", window < d->max_seq_len ? window : 0 },
                              { "sinks", planner_has(p, TENSOR_ATTN_SINKS) },
                              { "gate", gates[d->attention_gate] },
                              { 0 } };
    const plan_key chunk_keys[] = {
        { "chunking", CHUNKING_FIXED },
        { "chunk_size", SPREAD_POSITIONS / limit },
        { "chunk_limit", d->max_seq_len > SPREAD_POSITIONS ? limit : 0 },
        { 0 },
    };
    launch_draft l = planner_draft(p, of, keys, binds);
    if (l.in.family->by_runs) { /* all rows, in tiles of the family's default m */
        const plan_tiles *tiles = p->plan->tiles;
        while (tiles->rows != plan_tile_rows(p, p->layer))
            tiles++;
        planner_bind_state(&l, "tiles", tiles->offset, "tiles");
        planner_bind_number(&l, "m_val", p->m, "m");
        planner_set(&l.in, "m", key_default(family_key(l.in.family, "m")));
        planner_set(&l.in, "runs", /* unused rows are a run, too */
                    (d->sequences < PROBLEM_MOST_ROWS ? d->sequences : PROBLEM_MOST_ROWS) + 1);
        if (p->m <= SPLIT_ROWS || d->sequences > 1)
            planner_set(&l.in, "chunk_size", SPLIT_CHUNK);
    } else {
        planner_set_all(&l.in, chunk_keys);
    }
    return l;
}

void plan_attention(planner *p)
{
    const decoder *d = p->d;
    const decoder_layer *at = &d->at[p->layer];
    if (planner_has(p, TENSOR_ATTN_QKV))
        plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_ATTN_QKV, BUFFER_QKV);
    else if (at->cache != p->layer)
        plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_ATTN_Q, BUFFER_QKV);
    else
        plan_multiply_matrices(p, TENSOR_ATTN_Q, TENSOR_ATTN_K,
                               at->v_from_k ? TENSOR_COUNT : TENSOR_ATTN_V, BUFFER_QKV);
    if (planner_has(p, TENSOR_ATTN_GATE))
        plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_ATTN_GATE, BUFFER_GATE);
    add_rope(p);
    /* Without tiles the choice does not depend on the rows, so that a row has the same bits. */
    bool rounds = d->precision == PRECISION_Q8, tiles = attends_in_tiles(p, p->layer, p->m);
    launch_draft l = attention_by(p, tiles ? FAMILY_MMA_ATTENTION : FAMILY_GQA_FLASH_DECODING);
    launch_draft halves = attention_by(p, FAMILY_MMA_FLASH_DECODING);
    if (rounds && !tiles && planner_prefers(p, &halves.in, &l.in))
        l = halves;
    planner_add(p, &l, "q, cache[0..length) -> o");
    plan_add_branch(p, &plan_attention_output);
}
