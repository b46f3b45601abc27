/* Softmax attention of a layer:
 *
 *   qkv        norm(h), W_q W_k W_v                -> qkv
 *   rope       qkv                                 -> q, and K and V into the caches
 *   attention  q, K, V                             -> o
 *   output     W_o o + h                           -> middle
 */
#include "model/plan/plan_product.h"

const plan_branch plan_attention_output = {
    .w = TENSOR_ATTN_OUTPUT,
    .bias = TENSOR_ATTN_OUTPUT_BIAS,
    .post_norm = TENSOR_POST_ATTENTION_NORM,
    .x = BUFFER_O,
    .product = BUFFER_PRODUCT,
    .residual = BUFFER_H,
    .sum = BUFFER_MIDDLE,
    .said = "attn_output o + h -> middle",
    .said_alone = "attn_output o -> product",
    .said_norm = "norm(product) + h -> middle",
};

static bool windowed(const planner *p)
{
    return p->d->window && p->d->windowed[p->layer];
}

static void multiply_qkv(planner *p)
{
    static const plan_product fused = { .w = TENSOR_ATTN_QKV,
                                        .bias = TENSOR_ATTN_QKV_BIAS,
                                        .x = BUFFER_H,
                                        .y = BUFFER_QKV,
                                        .residual = BUFFERS,
                                        .norm = TENSOR_ATTN_NORM,
                                        .said = "norm(h), attn_qkv -> qkv" };
    static const plan_matrices apart = {
        .w = { TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V },
        .bias = { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS },
        .y = BUFFER_QKV,
        .said = "norm(h), attn_q attn_k attn_v -> qkv",
    };
    if (planner_has(p, TENSOR_ATTN_QKV))
        plan_multiply(p, &fused, p->m, 0);
    else
        plan_multiply_matrices(p, &apart);
}

/* The heads and the positions of a row's layer. */
static void set_heads(const planner *p, instance *in)
{
    planner_set(in, "head_dim", p->d->head_dim);
    planner_set(in, "num_heads", p->d->num_heads);
    planner_set(in, "num_kv_heads", p->d->num_kv_heads);
    planner_set(in, "max_seq_len", p->d->max_seq_len);
    planner_set(in, "kv_type", p->d->kv_type);
    planner_set(in, "ring", plan_ring(p->d, p->layer));
}

static void turn(planner *p)
{
    const decoder *d = p->d;
    const rope_options *rope = &d->rope[windowed(p)];
    instance in = planner_kernel(p, "rope_kv_write");
    bindings b = { 0 };
    set_heads(p, &in);
    planner_set(&in, "m", p->m);
    plan_set_rope(&in, rope);
    planner_set(&in, "n_rot", rope->style == ROPE_NONE ? d->head_dim : rope->dims);
    planner_set_real(&in, "temperature_scale", rope->temperature_scale);
    planner_set_real(&in, "temperature_length", rope->temperature_length);
    if (planner_has(p, TENSOR_ATTN_Q_NORM)) {
        planner_set(&in, "qk_norm", 1);
        planner_set_real(&in, "epsilon", d->epsilon);
    }
    planner_set(&in, "gated", d->attention_gate);
    planner_settle(p, &in);
    planner_bind_buffer(&b, "q", BUFFER_Q);
    planner_bind_buffer(&b, "gate", BUFFER_GATE);
    plan_bind_caches(p, &b, "k", "v");
    planner_bind_buffer(&b, "qkv", BUFFER_QKV);
    planner_bind_state(&b, "positions", p->plan->state.positions, "positions");
    planner_bind_tensor(p, &b, "q_norm", TENSOR_ATTN_Q_NORM);
    planner_bind_tensor(p, &b, "k_norm", TENSOR_ATTN_K_NORM);
    plan_bind_factors(p, &b, rope);
    planner_add(p, &in, &b, "qkv -> q, cache");
}

/* Rows, and chunks for two blocks on each SM of a large GPU, and no more than one block merges
 * well: of 8 KV heads 32 chunks of 128 positions each have the first 4096. */
static void set_chunks(const planner *p, instance *in)
{
    planner_set(in, "m", p->m);
    enum { MANY_HEADS = 8, SPREAD_POSITIONS = 4096 };
    int64_t limit = p->d->num_kv_heads < MANY_HEADS ? 64 : 32;
    planner_set(in, "chunking", CHUNKING_FIXED);
    planner_set(in, "chunk_size", SPREAD_POSITIONS / limit);
    planner_set(in, "chunk_limit", p->d->max_seq_len > SPREAD_POSITIONS ? limit : 0);
}

/* On tensor cores rows are those of one sequence, and heads of sizes that tiles divide. */
static bool is_in_tiles(const planner *p)
{
    enum { TILE = 16 };
    const decoder *d = p->d;
    return decoder_is_prompt(p->m) && d->precision == PRECISION_Q8 && d->sequences == 1 &&
           d->head_dim % TILE == 0;
}

static instance attention_by(const planner *p, const char *name)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, name);
    set_heads(p, &in);
    if (!in.family->one_sequence) {
        set_chunks(p, &in);
        planner_settle(p, &in);
    }
    planner_set_real(&in, "scale", d->attention_scale);
    planner_set_real(&in, "softcap", d->attention_softcap);
    planner_set(&in, "window", windowed(p) && d->window < d->max_seq_len ? d->window : 0);
    planner_set(&in, "sinks", planner_has(p, TENSOR_ATTN_SINKS));
    planner_set(&in, "gate", d->attention_gate);
    return in;
}

/* Of whatever rows: a row has the same bits in each step. */
static instance attention_of(const planner *p)
{
    if (is_in_tiles(p))
        return attention_by(p, "mma_attention");
    instance floats = attention_by(p, "gqa_flash_decoding");
    instance halves = attention_by(p, "mma_flash_decoding");
    bool rounds = p->d->precision == PRECISION_Q8;
    return rounds && planner_prefers(p, &halves, &floats) ? halves : floats;
}

static void attend(planner *p)
{
    instance in = attention_of(p);
    bindings b = { 0 };
    if (in.family->one_sequence)
        planner_bind_number(&b, "m_val", p->m, "m");
    planner_bind_buffer(&b, "o", BUFFER_O);
    planner_bind_buffer(&b, "partials", BUFFER_PARTIALS);
    planner_bind_buffer(&b, "q", BUFFER_Q);
    planner_bind_tensor(p, &b, "sinks", TENSOR_ATTN_SINKS);
    planner_bind_buffer(&b, "gate", BUFFER_GATE);
    plan_bind_caches(p, &b, "k", "v");
    planner_bind_state(&b, "seq_lens", p->plan->state.lengths, "lengths");
    planner_add(p, &in, &b, "q, cache[0..length) -> o");
}

void plan_attention(planner *p)
{
    multiply_qkv(p);
    turn(p);
    attend(p);
    plan_add_branch(p, &plan_attention_output);
}
