/* A layer's kernels, and the buffers of the workspace that they hand on. The same for every layer,
 * so that the buffers have the same places in each:
 *
 *   qkv        norm(h), W_q W_k W_v                -> qkv
 *   rope       qkv                                 -> q, and K and V into the caches
 *   attention  q, K, V                             -> o
 *   output     W_o o + h                           -> middle
 *   gate_up    norm(middle), W_gate W_up           -> f
 *   down       W_down f + middle                   -> h
 *
 * With norms behind attention and feed-forward, output and down make a product of their own, and a
 * norm adds it to h or middle. h and middle are two buffers: no kernel writes what it reads.
 */
#include "family/plan_layer.h"

static bool quantizes(const planner *p)
{
    return p->d->precision == PRECISION_Q8;
}

static void set_norm(const planner *p, instance *in)
{
    planner_set(in, "norm", NORM_RMS);
    planner_set_real(in, "epsilon", p->d->epsilon);
}

void plan_embed(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "embed_rows");
    bindings b = { 0 };
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_TOKEN_EMBD, 0));
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "n", d->vocab);
    planner_set(&in, "m", p->m);
    planner_set_real(&in, "scale", d->embedding_scale);
    planner_bind_buffer(&b, "y", BUFFER_H);
    planner_bind_tensor(p, &b, "w", TENSOR_TOKEN_EMBD);
    planner_bind_state(&b, "tokens", p->plan->state.tokens, "tokens");
    planner_add(p, &in, &b, "token_embd[token] -> h");
}

/* A product of the plain kind with what stands around it. */
typedef struct product {
    decoder_tensor w, bias;
    buffer_id x, y, residual; /* BUFFERS: none; y: the logits */
    decoder_tensor norm;      /* TENSOR_COUNT: none */
    double scale, softcap;
} product;

static void add_product(planner *p, const product *of, int64_t rows, uint64_t first_row,
                        const char *said)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, quantizes(p) ? "stream_gemv" : "gemv");
    bindings b = { 0 };
    uint64_t columns = decoder_columns(d, of->w);
    planner_set_weights(&in, "weights", decoder_format(d, of->w, p->layer));
    planner_set(&in, "k", (int64_t)columns);
    planner_set(&in, "n", (int64_t)decoder_rows(d, of->w));
    planner_set(&in, "bias", planner_has(p, of->bias));
    planner_set(&in, "residual", of->residual != BUFFERS);
    planner_set_real(&in, "scale", of->scale);
    planner_set_real(&in, "softcap", of->softcap);
    if (of->norm != TENSOR_COUNT) {
        set_norm(p, &in);
        planner_bind_tensor(p, &b, "gamma", of->norm);
    }
    planner_set_rows(p, &in, rows, &b);
    if (of->y == BUFFERS)
        planner_bind_state(&b, "y", p->plan->state.logits, "logits");
    else
        planner_bind_buffer(&b, "y", of->y);
    planner_bind_tensor(p, &b, "w", of->w);
    planner_bind_buffer_from(&b, "x", of->x, first_row * columns * sizeof(float));
    planner_bind_tensor(p, &b, "bias", of->bias);
    if (of->residual != BUFFERS)
        planner_bind_buffer(&b, "residual", of->residual);
    planner_add(p, &in, &b, said);
}

static void add_fused_qkv(planner *p)
{
    const product of = { .w = TENSOR_ATTN_QKV,
                         .bias = TENSOR_ATTN_QKV_BIAS,
                         .x = BUFFER_H,
                         .y = BUFFER_QKV,
                         .residual = BUFFERS,
                         .norm = TENSOR_ATTN_NORM };
    add_product(p, &of, p->m, 0, "norm(h), attn_qkv -> qkv");
}

static void add_qkv(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, quantizes(p) ? "stream_qkv" : "exact_qkv");
    bindings b = { 0 };
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_ATTN_Q, p->layer));
    planner_set_weights(&in, "weights_q", decoder_format(d, TENSOR_ATTN_Q, p->layer));
    planner_set_weights(&in, "weights_k", decoder_format(d, TENSOR_ATTN_K, p->layer));
    planner_set_weights(&in, "weights_v", decoder_format(d, TENSOR_ATTN_V, p->layer));
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "n", (int64_t)decoder_rows(d, TENSOR_ATTN_Q));
    planner_set(&in, "n_kv", (int64_t)decoder_rows(d, TENSOR_ATTN_K));
    planner_set(&in, "n_v", (int64_t)decoder_rows(d, TENSOR_ATTN_V));
    planner_set(&in, "bias", planner_has(p, TENSOR_ATTN_Q_BIAS));
    set_norm(p, &in);
    planner_set_rows(p, &in, p->m, &b);
    planner_bind_buffer(&b, "y", BUFFER_QKV);
    planner_bind_tensor(p, &b, "wq", TENSOR_ATTN_Q);
    planner_bind_tensor(p, &b, "wk", TENSOR_ATTN_K);
    planner_bind_tensor(p, &b, "wv", TENSOR_ATTN_V);
    planner_bind_buffer(&b, "x", BUFFER_H);
    planner_bind_tensor(p, &b, "gamma", TENSOR_ATTN_NORM);
    planner_bind_tensor(p, &b, "bq", TENSOR_ATTN_Q_BIAS);
    planner_bind_tensor(p, &b, "bk", TENSOR_ATTN_K_BIAS);
    planner_bind_tensor(p, &b, "bv", TENSOR_ATTN_V_BIAS);
    planner_add(p, &in, &b, "norm(h), attn_q attn_k attn_v -> qkv");
}

static bool windowed(const planner *p)
{
    return p->d->window && p->d->windowed[p->layer];
}

/* The heads, the positions and the caches of a row's layer. */
static void set_heads(const planner *p, instance *in)
{
    planner_set(in, "head_dim", p->d->head_dim);
    planner_set(in, "num_heads", p->d->num_heads);
    planner_set(in, "num_kv_heads", p->d->num_kv_heads);
    planner_set(in, "max_seq_len", p->d->max_seq_len);
    planner_set(in, "kv_type", p->d->kv_type);
    planner_set(in, "m", p->m);
}

static void bind_caches(const planner *p, bindings *b)
{
    uint64_t rows = (uint64_t)p->plan->rows * sizeof(uint64_t);
    uint64_t k = p->plan->state.caches + 2 * rows * (uint64_t)p->layer;
    planner_bind_state(b, "k", k, "K of the rows");
    planner_bind_state(b, "v", k + rows, "V of the rows");
}

static void set_rope(instance *in, const rope_options *rope)
{
    planner_set(in, "rope", rope->style);
    if (rope->style == ROPE_NONE)
        return;
    planner_set(in, "n_rot", rope->dims);
    planner_set_real(in, "rope_base", rope->base);
    planner_set(in, "rope_scaling", rope->scaling);
    planner_set(in, "rope_factors", rope->factors);
    planner_set_real(in, "rope_magnitude", rope->magnitude);
    if (rope->scaling != ROPE_UNSCALED)
        planner_set_real(in, "rope_factor", rope->factor);
    if (rope->scaling == ROPE_YARN) {
        planner_set_real(in, "rope_original_context", rope->original_context);
        planner_set_real(in, "rope_extension", rope->extension);
        planner_set_real(in, "rope_beta_fast", rope->beta_fast);
        planner_set_real(in, "rope_beta_slow", rope->beta_slow);
    }
}

static void add_rope(planner *p)
{
    const decoder *d = p->d;
    const rope_options *rope = &d->rope[windowed(p)];
    instance in = planner_kernel(p, "rope_kv_write");
    bindings b = { 0 };
    set_heads(p, &in);
    set_rope(&in, rope);
    planner_set_real(&in, "temperature_scale", rope->temperature_scale);
    planner_set_real(&in, "temperature_length", rope->temperature_length);
    if (planner_has(p, TENSOR_ATTN_Q_NORM)) {
        planner_set(&in, "qk_norm", 1);
        planner_set_real(&in, "epsilon", d->epsilon);
    }
    planner_bind_buffer(&b, "q", BUFFER_Q);
    bind_caches(p, &b);
    planner_bind_buffer(&b, "qkv", BUFFER_QKV);
    planner_bind_state(&b, "positions", p->plan->state.positions, "positions");
    planner_bind_tensor(p, &b, "q_norm", TENSOR_ATTN_Q_NORM);
    planner_bind_tensor(p, &b, "k_norm", TENSOR_ATTN_K_NORM);
    for (int t = TENSOR_ROPE_FREQS; t <= TENSOR_ROPE_SHORT; t++)
        if (rope->factors)
            planner_bind_tensor(p, &b, "factors", (decoder_tensor)t);
    planner_add(p, &in, &b, "qkv -> q, cache");
}

static void add_attention(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "gqa_flash_decoding");
    bindings b = { 0 };
    set_heads(p, &in);
    planner_set(&in, "chunking", CHUNKING_FIXED);
    planner_set_real(&in, "scale", d->attention_scale);
    planner_set_real(&in, "softcap", d->attention_softcap);
    planner_set(&in, "window", windowed(p) && d->window < d->max_seq_len ? d->window : 0);
    planner_bind_buffer(&b, "o", BUFFER_O);
    planner_bind_buffer(&b, "q", BUFFER_Q);
    bind_caches(p, &b);
    planner_bind_state(&b, "seq_lens", p->plan->state.lengths, "lengths");
    planner_add(p, &in, &b, "q, cache[0..length) -> o");
}

/* A norm behind a product, which it adds to the hidden states ahead of that. */
static void add_post_norm(planner *p, decoder_tensor gamma, buffer_id x, buffer_id h, buffer_id sum,
                          const char *said)
{
    instance in = planner_kernel(p, "rms_norm");
    bindings b = { 0 };
    planner_set(&in, "k", p->d->hidden);
    planner_set(&in, "m", p->m);
    planner_set(&in, "residual", RESIDUAL_POST_NORM);
    planner_set_real(&in, "epsilon", p->d->epsilon);
    planner_bind_buffer(&b, "h_out", sum);
    planner_bind_buffer(&b, "h", h);
    planner_bind_buffer(&b, "x", x);
    planner_bind_tensor(p, &b, "gamma", gamma);
    planner_add(p, &in, &b, said);
}

static void add_output(planner *p)
{
    bool post = planner_has(p, TENSOR_POST_ATTENTION_NORM);
    const product of = { .w = TENSOR_ATTN_OUTPUT,
                         .bias = TENSOR_ATTN_OUTPUT_BIAS,
                         .x = BUFFER_O,
                         .y = post ? BUFFER_PRODUCT : BUFFER_MIDDLE,
                         .residual = post ? BUFFERS : BUFFER_H,
                         .norm = TENSOR_COUNT,
                         .scale = p->d->residual_scale };
    add_product(p, &of, p->m, 0, post ? "attn_output o -> product" : "attn_output o + h -> middle");
    if (post)
        add_post_norm(p, TENSOR_POST_ATTENTION_NORM, BUFFER_PRODUCT, BUFFER_H, BUFFER_MIDDLE,
                      "norm(product) + h -> middle");
}

/* Gate and up in one matrix: up's rows lie behind gate's. */
static void bind_fused_gate_up(planner *p, bindings *b)
{
    enum { LOAD_BYTES = 16 };
    const plan_tensor *fused = planner_tensor(p, TENSOR_FFN_GATE_UP);
    uint64_t half = fused->bytes / 2;
    if (half % LOAD_BYTES)
        diag_error(p->diags, DIAG_CONFLICT, p->where,
                   "%s has gate and up in one, and up starts %llu bytes into it: a multiple of %d "
                   "is needed",
                   fused->name, (unsigned long long)half, LOAD_BYTES);
    planner_bind_rows(p, b, "wg", TENSOR_FFN_GATE_UP, 0);
    planner_bind_rows(p, b, "wu", TENSOR_FFN_GATE_UP, fused->rows / 2);
}

static void add_gate_up(planner *p)
{
    const decoder *d = p->d;
    bool fused = planner_has(p, TENSOR_FFN_GATE_UP);
    decoder_tensor gate = fused ? TENSOR_FFN_GATE_UP : TENSOR_FFN_GATE;
    decoder_tensor up = fused ? TENSOR_FFN_GATE_UP : TENSOR_FFN_UP;
    instance in = planner_kernel(p, quantizes(p) ? "stream_gate_up" : "exact_gate_up");
    bindings b = { 0 };
    planner_set_weights(&in, "weights", decoder_format(d, gate, p->layer));
    planner_set_weights(&in, "weights_g", decoder_format(d, gate, p->layer));
    planner_set_weights(&in, "weights_u", decoder_format(d, up, p->layer));
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "n", d->ff);
    planner_set(&in, "bias", planner_has(p, TENSOR_FFN_GATE_BIAS));
    planner_set(&in, "activation", d->activation);
    set_norm(p, &in);
    planner_set_rows(p, &in, p->m, &b);
    planner_bind_buffer(&b, "y", BUFFER_F);
    if (fused) {
        bind_fused_gate_up(p, &b);
    } else {
        planner_bind_tensor(p, &b, "wg", TENSOR_FFN_GATE);
        planner_bind_tensor(p, &b, "wu", TENSOR_FFN_UP);
    }
    planner_bind_buffer(&b, "x", BUFFER_MIDDLE);
    planner_bind_tensor(p, &b, "gamma", TENSOR_FFN_NORM);
    planner_bind_tensor(p, &b, "bg", TENSOR_FFN_GATE_BIAS);
    planner_bind_tensor(p, &b, "bu", TENSOR_FFN_UP_BIAS);
    planner_add(p, &in, &b,
                fused ? "norm(middle), ffn_up, activation -> f"
                      : "norm(middle), ffn_gate ffn_up, activation -> f");
}

static void add_down(planner *p)
{
    bool post = planner_has(p, TENSOR_POST_FFW_NORM);
    const product of = { .w = TENSOR_FFN_DOWN,
                         .bias = TENSOR_FFN_DOWN_BIAS,
                         .x = BUFFER_F,
                         .y = post ? BUFFER_DOWN : BUFFER_H,
                         .residual = post ? BUFFERS : BUFFER_MIDDLE,
                         .norm = TENSOR_COUNT,
                         .scale = p->d->residual_scale };
    add_product(p, &of, p->m, 0, post ? "ffn_down f -> down" : "ffn_down f + middle -> h");
    if (post)
        add_post_norm(p, TENSOR_POST_FFW_NORM, BUFFER_DOWN, BUFFER_MIDDLE, BUFFER_H,
                      "norm(down) + middle -> h");
}

void plan_layer(planner *p)
{
    if (planner_has(p, TENSOR_ATTN_QKV))
        add_fused_qkv(p);
    else
        add_qkv(p);
    add_rope(p);
    add_attention(p);
    add_output(p);
    add_gate_up(p);
    add_down(p);
}

/* The logits of some rows, the step's last ones. */
void plan_logits(planner *p, int64_t rows)
{
    const decoder *d = p->d;
    const product of = { .w = planner_has(p, TENSOR_OUTPUT) ? TENSOR_OUTPUT : TENSOR_TOKEN_EMBD,
                         .bias = TENSOR_OUTPUT_BIAS,
                         .x = BUFFER_H,
                         .y = BUFFERS,
                         .residual = BUFFERS,
                         .norm = TENSOR_OUTPUT_NORM,
                         .scale = d->logit_scale,
                         .softcap = d->final_softcap };
    add_product(p, &of, rows, (uint64_t)(p->m - rows),
                planner_has(p, TENSOR_OUTPUT) ? "norm(h), output -> logits"
                                              : "norm(h), token_embd -> logits");
}

/* Of the last rows, whose logits are the last of some. */
void plan_sample(planner *p, int64_t rows, int64_t logits_rows)
{
    const plan_state *s = &p->plan->state;
    uint64_t ahead = (uint64_t)(logits_rows - rows) * (uint64_t)p->d->vocab * sizeof(float);
    instance in = planner_kernel(p, "sample");
    bindings b = { 0 };
    planner_set(&in, "n", p->d->vocab);
    planner_set(&in, "m", rows);
    planner_bind_state(&b, "token", s->tokens, "tokens");
    planner_bind_state(&b, "next_position", s->positions, "positions");
    planner_bind_state(&b, "length", s->lengths, "lengths");
    planner_bind_state(&b, "logits", s->logits + ahead, "logits");
    planner_bind_state(&b, "positions", s->positions + (uint64_t)(p->m - rows) * sizeof(uint32_t),
                       rows < p->m ? "positions of the last row" : "positions");
    planner_bind_state(&b, "sampling", s->sampling, "sampling");
    planner_add(p, &in, &b, "logits -> token, position, length");
}
