#include "model/plan/plan_product.h"

#include "kernel/formula.h"

const char *plan_kernel_name(const planner *p, const char *rounding, const char *exact)
{
    return p->d->precision == PRECISION_Q8 ? rounding : exact;
}

bool plan_is_of_halves(const planner *p, decoder_tensor t)
{
    return decoder_product_rounding(p->d, p->m, t, p->layer) == ROUNDS_TO_HALVES;
}

const char *plan_product_name(const planner *p, decoder_tensor t, const char *rounding,
                              const char *exact, const char *of_prompts)
{
    return plan_is_of_halves(p, t) ? of_prompts : plan_kernel_name(p, rounding, exact);
}

void plan_norm(const planner *p, instance *in, bindings *b, decoder_tensor gains)
{
    planner_set(in, "norm", NORM_RMS);
    planner_set_real(in, "epsilon", p->d->epsilon);
    planner_bind_tensor(p, b, "gamma", gains);
}

static bool are_there(const planner *p, const plan_rows *of)
{
    const plan_rows *have = &p->rows;
    return p->rows_layer == p->layer && have->x == of->x && have->norm == of->norm &&
           have->first == of->first && have->count == of->count && have->made == of->made;
}

/* What makes rows of a format. */
static instance maker_of(const planner *p, const plan_rows *of, bindings *b)
{
    instance in = planner_kernel(p, of->made == FORMAT_F16 ? "f16_rows" : "q8_rows");
    planner_set(&in, "k", of->columns);
    planner_set(&in, "m", of->count);
    if (of->norm != TENSOR_COUNT)
        plan_norm(p, &in, b, of->norm);
    return in;
}

static void make_rows(planner *p, const plan_rows *of)
{
    const char *x = buffer_lives[of->x].name;
    bindings b = { 0 };
    instance in = maker_of(p, of, &b);
    planner_bind_buffer(&b, "rows", BUFFER_ROWS);
    planner_bind_buffer(&b, "factors", BUFFER_FACTORS);
    planner_bind_buffer_from(&b, "x", of->x, of->first * (uint64_t)of->columns * sizeof(float));
    planner_need(p, BUFFER_ROWS,
                 (int64_t)format_bytes(of->made, (uint64_t)(of->count * of->columns)));
    planner_need(p, BUFFER_FACTORS, of->count * (int64_t)sizeof(float));
    planner_add(
        p, &in, &b,
        arena_format(p->arena, of->norm != TENSOR_COUNT ? "norm(%s) -> rows" : "%s -> rows", x));
    p->rows = *of;
    p->rows_layer = p->layer;
}

void plan_bind_rows(planner *p, instance *in, bindings *b, const plan_rows *of)
{
    if (family_takes_rows(in->family)) {
        plan_rows made = *of;
        made.made = in->family->activations;
        if (!are_there(p, &made))
            make_rows(p, &made);
        planner_bind_buffer(b, "x", BUFFER_ROWS);
        planner_bind_buffer(b, "factors", BUFFER_FACTORS);
        return;
    }
    planner_bind_buffer_from(b, "x", of->x, of->first * (uint64_t)of->columns * sizeof(float));
    if (of->norm != TENSOR_COUNT)
        plan_norm(p, in, b, of->norm);
}

void plan_prepare_rows(planner *p, instance *in, bindings *b, const plan_rows *of)
{
    if (!in->family->of_rows)
        return;
    bindings of_maker = { 0 };
    plan_rows made = *of;
    made.made = FORMAT_Q8_F32;
    instance maker = maker_of(p, &made, &of_maker), other = *in;
    other.family = family_find(families, in->family->of_rows);
    other.options.norm = NORM_NONE;
    other.options.epsilon = 0;
    if (!planner_prepares(p, are_there(p, &made) ? NULL : &maker, &other, in, of->count))
        return;
    *in = other;
    plan_bind_rows(p, in, b, of);
}

/* Parts of k with which the tiles of Y keep a large GPU's SMs busy: the same whatever the number of
 * rows, so that all steps add up in the same order. */
static void split_columns(planner *p, instance *in, bindings *b)
{
    enum { USUAL_SMS = 128, LEAST_COLUMNS = 2048 };
    const key *splits = family_key(in->family, "splits");
    const char *blamed;
    if (!splits)
        return;
    int64_t tiles = formula_value(in->family->launch.grid[0], in, NULL), best = 0;
    for (int64_t parts = 2;
         parts <= splits->max && parts * tiles <= USUAL_SMS && parts * LEAST_COLUMNS <= in->shape.k;
         parts *= 2) {
        instance_set(in, splits, parts);
        if (!in->family->check(in, p->arena, &blamed))
            best = parts;
    }
    instance_set(in, splits, best);
    planner_bind_buffer(b, "partials", BUFFER_SUMS);
}

/* Makes the kernel multiply by the scale of a matrix if the decoder has one, and binds it. */
static void bind_scale(const planner *p, instance *in, bindings *b, const char *name,
                       decoder_tensor w)
{
    decoder_tensor scale = decoder_scale(w);
    if (scale == TENSOR_COUNT || !planner_has(p, scale))
        return;
    planner_set(in, "scaled", 1);
    planner_bind_tensor(p, b, name, scale);
}

void plan_multiply(planner *p, const plan_product *of, int64_t rows, uint64_t first_row)
{
    const decoder *d = p->d;
    instance in =
        planner_kernel(p, plan_product_name(p, of->w, "stream_gemv", "gemv", "mma_gemm_f16"));
    bindings b = { 0 };
    uint64_t columns = decoder_columns(d, of->w);
    planner_set_weights(&in, "weights", decoder_format(d, of->w, p->layer));
    planner_set(&in, "k", (int64_t)columns);
    planner_set(&in, "n", (int64_t)decoder_rows(d, of->w));
    planner_set(&in, "residual", of->residual != BUFFERS);
    planner_set_real(&in, "scale", of->scale);
    planner_set_real(&in, "softcap", of->softcap);
    const plan_rows x = { of->x, first_row, rows, (int64_t)columns, of->norm, FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    split_columns(p, &in, &b);
    planner_set_rows(p, &in, rows, &b);
    if (of->y == BUFFERS)
        planner_bind_state(&b, "y", p->plan->state.logits, "logits");
    else
        planner_bind_buffer(&b, "y", of->y);
    planner_bind_tensor(p, &b, "w", of->w);
    bind_scale(p, &in, &b, "w_scale", of->w);
    if (of->bias != TENSOR_COUNT && planner_has(p, of->bias)) {
        planner_set(&in, "bias", 1);
        planner_bind_tensor(p, &b, "bias", of->bias);
    }
    if (of->residual != BUFFERS)
        planner_bind_buffer(&b, "residual", of->residual);
    plan_prepare_rows(p, &in, &b, &x);
    planner_add(p, &in, &b, of->said);
}

/* Gate and up in one matrix: up's rows lie behind gate's. */
static void bind_fused_gate_up(planner *p, bindings *b, decoder_tensor both)
{
    enum { LOAD_BYTES = 16 };
    const plan_tensor *fused = planner_tensor(p, both);
    uint64_t half = fused->bytes / 2;
    if (half % LOAD_BYTES)
        diag_error(p->diags, DIAG_CONFLICT, p->where,
                   "%s has gate and up in one, and up starts %llu bytes into it: a multiple of %d "
                   "is needed",
                   fused->name, (unsigned long long)half, LOAD_BYTES);
    planner_bind_rows(p, b, "wg", both, 0);
    planner_bind_rows(p, b, "wu", both, fused->rows / 2);
}

static bool has(const planner *p, decoder_tensor t)
{
    return t != TENSOR_COUNT && planner_has(p, t);
}

void plan_multiply_gates(planner *p, const plan_gates *of)
{
    const decoder *d = p->d;
    bool fused = has(p, of->fused), biased = has(p, of->gate_bias);
    decoder_tensor gate = fused ? of->fused : of->gate, up = fused ? of->fused : of->up;
    const char *name =
        plan_product_name(p, gate, "stream_gate_up", "exact_gate_up", "mma_gate_up_f16");
    instance in = planner_kernel(p, name);
    bindings b = { 0 };
    planner_set_weights(&in, "weights", decoder_format(d, gate, p->layer));
    if (family_key(in.family, "weights_g")) {
        planner_set_weights(&in, "weights_g", decoder_format(d, gate, p->layer));
        planner_set_weights(&in, "weights_u", decoder_format(d, up, p->layer));
    }
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "n", (int64_t)decoder_rows(d, gate) / (fused ? 2 : 1));
    planner_set(&in, "bias", biased);
    planner_set(&in, "activation", d->activation);
    const plan_rows x = { BUFFER_MIDDLE, 0, p->m, d->hidden, decoder_ffn_norm(d), FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    split_columns(p, &in, &b);
    planner_set_rows(p, &in, p->m, &b);
    planner_bind_buffer(&b, "y", of->y);
    if (fused) {
        bind_fused_gate_up(p, &b, of->fused);
    } else {
        planner_bind_tensor(p, &b, "wg", of->gate);
        planner_bind_tensor(p, &b, "wu", of->up);
    }
    bind_scale(p, &in, &b, "g_scale", gate);
    bind_scale(p, &in, &b, "u_scale", up);
    if (biased) {
        planner_bind_tensor(p, &b, "bg", of->gate_bias);
        planner_bind_tensor(p, &b, "bu", of->up_bias);
    }
    plan_prepare_rows(p, &in, &b, &x);
    planner_add(p, &in, &b, fused ? of->said_fused : of->said);
}

bool plan_has_post_norm(const planner *p, const plan_branch *of)
{
    return of->post_norm != TENSOR_COUNT && planner_has(p, of->post_norm);
}

void plan_add_branch(planner *p, const plan_branch *of)
{
    bool post = plan_has_post_norm(p, of);
    const plan_product product = { .w = of->w,
                                   .bias = of->bias,
                                   .x = of->x,
                                   .y = post ? of->product : of->sum,
                                   .residual = post ? BUFFERS : of->residual,
                                   .norm = TENSOR_COUNT,
                                   .scale = post ? 0 : p->d->residual_scale,
                                   .said = post ? of->said_alone : of->said };
    plan_multiply(p, &product, p->m, 0);
    if (post)
        plan_add_normed(p, of);
}

void plan_add_normed(planner *p, const plan_branch *of)
{
    instance in = planner_kernel(p, "rms_norm");
    bindings b = { 0 };
    planner_set(&in, "k", p->d->hidden);
    planner_set(&in, "m", p->m);
    planner_set(&in, "residual", RESIDUAL_POST_NORM);
    planner_set_real(&in, "epsilon", p->d->epsilon);
    planner_set_real(&in, "scale", p->d->residual_scale);
    planner_bind_buffer(&b, "h_out", of->sum);
    planner_bind_buffer(&b, "h", of->residual);
    planner_bind_buffer(&b, "x", of->product);
    planner_bind_tensor(p, &b, "gamma", of->post_norm);
    planner_add(p, &in, &b, of->said_norm);
}

void plan_multiply_matrices(planner *p, const plan_matrices *of)
{
    static const char *const formats_of[] = { "weights_q", "weights_k", "weights_v" };
    static const char *const rows_of[] = { "n", "n_kv", "n_v" };
    static const char *const matrices[] = { "wq", "wk", "wv" };
    static const char *const biases[] = { "bq", "bk", "bv" };
    static const char *const scales[] = { "q_scale", "k_scale", "v_scale" };
    const decoder *d = p->d;
    instance in =
        planner_kernel(p, plan_product_name(p, of->w[0], "stream_qkv", "exact_qkv", "mma_qkv"));
    bindings b = { 0 };
    bool biased = of->bias[0] != TENSOR_COUNT && planner_has(p, of->bias[0]);
    planner_set_weights(&in, "weights", decoder_format(d, of->w[0], p->layer));
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "bias", biased);
    const plan_rows x = { BUFFER_H, 0, p->m, d->hidden, TENSOR_ATTN_NORM, FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    planner_bind_buffer(&b, "y", of->y);
    for (int i = 0; i < 3; i++) {
        bool there = of->w[i] != TENSOR_COUNT;
        planner_set(&in, rows_of[i], there ? (int64_t)decoder_rows(d, of->w[i]) : 0);
        planner_set_weights(&in, formats_of[i], decoder_format(d, of->w[there ? i : 0], p->layer));
        if (there) {
            planner_bind_tensor(p, &b, matrices[i], of->w[i]);
            bind_scale(p, &in, &b, scales[i], of->w[i]);
        }
        if (biased)
            planner_bind_tensor(p, &b, biases[i], of->bias[i]);
    }
    split_columns(p, &in, &b);
    planner_set_rows(p, &in, p->m, &b);
    plan_prepare_rows(p, &in, &b, &x);
    planner_add(p, &in, &b, of->said);
}

void plan_bind_caches(const planner *p, bindings *b, const char *first, const char *second)
{
    uint64_t rows = (uint64_t)p->plan->rows * sizeof(uint64_t);
    uint64_t at = p->plan->state.caches + 2 * rows * (uint64_t)p->layer;
    planner_bind_state(b, first, at,
                       p->d->recurrent[p->layer] ? "states of the rows" : "K of the rows");
    if (second)
        planner_bind_state(b, second, at + rows,
                           p->d->recurrent[p->layer] ? "inputs of the rows" : "V of the rows");
}

void plan_set_rope(instance *in, const rope_options *rope)
{
    planner_set(in, "rope", rope->style);
    if (rope->style == ROPE_NONE)
        return;
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

void plan_bind_factors(const planner *p, bindings *b, const rope_options *rope)
{
    for (int t = TENSOR_ROPE_FREQS; t <= TENSOR_ROPE_SHORT; t++)
        if (rope->factors)
            planner_bind_tensor(p, b, "factors", (decoder_tensor)t);
}
