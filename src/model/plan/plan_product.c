#include "model/plan/plan_product.h"

#include <string.h>

#include "base/strbuf.h"
#include "kernel/formula.h"

bool plan_uses_bytes(const planner *p, decoder_tensor t)
{
    const decoder *d = p->d;
    int64_t layer = planner_layer(p);
    return d->m[d->m_count - 1] > 1 && p->targets[0]->sm >= DECODER_PROMPT_SM &&
           decoder_product_rounding(d, p->m, t, p->layer) == ROUNDS_TO_8_BITS &&
           (decoder_takes_bytes(d, p->m, t, layer) ||
            decoder_takes_bytes(d, 1, t, layer)); /* logits of one row */
}

family_id plan_product_family(const planner *p, decoder_tensor t, family_id of_bytes,
                              family_id rounding, family_id exact, family_id of_prompts)
{
    if (plan_uses_bytes(p, t))
        return of_bytes;
    if (decoder_product_rounding(p->d, p->m, t, p->layer) == ROUNDS_TO_HALVES)
        return of_prompts;
    bool rounds = p->d->precision == PRECISION_Q8 && tensor_infos[t].kind != TENSOR_EXACT;
    return rounds ? rounding : exact;
}

/* Sets an RMS norm of x before a product, with the gains of a tensor. */
static void set_norm(const planner *p, launch_draft *l, decoder_tensor gains)
{
    const plan_key keys[] = { { "norm", NORM_RMS },
                              { "epsilon", real_bits(p->d->epsilon) },
                              { 0 } };
    planner_set_all(&l->in, keys);
    planner_bind_tensor(p, l, "gamma", gains);
}

plan_rows plan_normed(planner *p, buffer_id x, decoder_tensor norm, uint64_t first, int64_t count,
                      int64_t columns)
{
    plan_rows rows = { x, first, count, columns, norm, FORMAT_F32 };
    if (norm != TENSOR_COUNT && !planner_has(p, norm))
        rows.norm = TENSOR_COUNT;
    if (rows.norm == TENSOR_COUNT ||
        !(p->d->layer_norm && (norm == TENSOR_ATTN_NORM || norm == TENSOR_OUTPUT_NORM ||
                               norm == decoder_ffn_norm(p->d))))
        return rows;
    if (p->normed != norm || p->normed_layer != p->layer) {
        const plan_key keys[] = {
            { "k", columns }, { "m", count }, { "epsilon", real_bits(p->d->epsilon) }, { 0 }
        };
        launch_draft l = planner_draft(p, FAMILY_LAYER_NORM, keys, NULL);
        planner_bind_buffer(p, &l, "y", BUFFER_NORMED, 0);
        planner_bind_buffer(p, &l, "x", x, first * (uint64_t)columns * sizeof(float));
        planner_bind_tensor(p, &l, "gamma", norm);
        planner_add(p, &l, arena_format(p->arena, "norm(%s) -> normed", buffer_lives[x].name));
        p->normed = norm;
        p->normed_layer = p->layer;
        p->rows.x = BUFFERS;
    }
    return (plan_rows){ BUFFER_NORMED, 0, count, columns, TENSOR_COUNT, FORMAT_F32 };
}

plan_rows plan_feed_rows(planner *p)
{
    buffer_id x = p->d->parallel ? BUFFER_H : planner_stream(p);
    return plan_normed(p, x, decoder_ffn_norm(p->d), 0, p->m, p->d->hidden);
}

buffer_id plan_next_stream(const planner *p)
{
    return planner_stream(p) == BUFFER_H ? BUFFER_MIDDLE : BUFFER_H;
}

/* Drafts the kernel that converts x to rows of a format. */
static launch_draft draft_converter(const planner *p, const plan_rows *of)
{
    const plan_key keys[] = { { "k", of->columns }, { "m", of->count }, { 0 } };
    launch_draft l =
        planner_draft(p, of->made == FORMAT_F16 ? FAMILY_F16_ROWS : FAMILY_Q8_ROWS, keys, NULL);
    if (of->norm != TENSOR_COUNT)
        set_norm(p, &l, of->norm);
    return l;
}

static bool has_rows(const planner *p, const plan_rows *of)
{
    const plan_rows *have = &p->rows;
    return p->rows_layer == p->layer && have->x == of->x && have->norm == of->norm &&
           have->first == of->first && have->count == of->count && have->made == of->made;
}

void plan_bind_rows(planner *p, launch_draft *l, const plan_rows *of)
{
    uint64_t first = of->first * (uint64_t)of->columns * sizeof(float);
    if (!family_takes_rows(l->in.family)) {
        planner_bind_buffer(p, l, "x", of->x, first);
        if (of->norm != TENSOR_COUNT)
            set_norm(p, l, of->norm);
        return;
    }
    plan_rows made = *of;
    made.made = l->in.family->activations;
    if (!has_rows(p, &made)) {
        launch_draft converter = draft_converter(p, &made);
        planner_bind_buffer(p, &converter, "rows", BUFFER_ROWS, 0);
        planner_bind_buffer(p, &converter, "factors", BUFFER_FACTORS, 0);
        planner_bind_buffer(p, &converter, "x", of->x, first);
        planner_reserve(p, BUFFER_ROWS,
                        (int64_t)format_bytes(made.made, (uint64_t)(of->count * of->columns)));
        planner_reserve(p, BUFFER_FACTORS, of->count * (int64_t)sizeof(float));
        planner_add(p, &converter,
                    arena_format(p->arena,
                                 of->norm != TENSOR_COUNT ? "norm(%s) -> rows" : "%s -> rows",
                                 buffer_lives[of->x].name));
        p->rows = made;
        p->rows_layer = p->layer;
    }
    planner_bind_buffer(p, l, "x", BUFFER_ROWS, 0);
    planner_bind_buffer(p, l, "factors", BUFFER_FACTORS, 0);
}

/* Splits k to keep a large GPU busy, by the tiles of Y alone: the same sums in all steps. */
static void split_columns(planner *p, launch_draft *l)
{
    enum { USUAL_SMS = 128, LEAST_COLUMNS = 2048 };
    instance *in = &l->in;
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
    planner_bind_buffer(p, l, "partials", BUFFER_SUMS, 0);
}

typedef struct matrix_names {
    const char *w, *scale, *bias;
} matrix_names;

/* Binds a matrix from a row on, its scale and its bias, and sets their keys. */
static void bind_matrix(const planner *p, launch_draft *l, const matrix_names *names,
                        decoder_tensor w, uint64_t row, decoder_tensor bias)
{
    decoder_tensor scale = decoder_scale(w);
    planner_bind_rows(p, l, names->w, w, row);
    if (scale != TENSOR_COUNT && planner_has(p, scale)) {
        planner_set(&l->in, "scaled", 1);
        planner_bind_tensor(p, l, names->scale, scale);
    }
    if (bias != TENSOR_COUNT && planner_has(p, bias)) {
        planner_set(&l->in, "bias", 1);
        planner_bind_tensor(p, l, names->bias, bias);
    }
}

/* Adds a product with bound matrices, and converts x to 8 bits before if that is faster. */
static void add_product(planner *p, launch_draft *l, const plan_rows *x, const char *said)
{
    plan_bind_rows(p, l, x);
    split_columns(p, l);
    planner_set_rows(p, l, x->count);
    if (l->in.family->of_rows) {
        plan_rows made = *x;
        made.made = FORMAT_Q8_F32;
        launch_draft converter = draft_converter(p, &made);
        const instance *ahead = has_rows(p, &made) ? NULL : &converter.in;
        instance other = l->in;
        other.family = family_find(families, l->in.family->of_rows);
        other.options.norm = NORM_NONE;
        other.options.epsilon = 0;
        if (planner_prefers_rows(p, ahead, &other, &l->in, x->count)) {
            l->in = other;
            plan_bind_rows(p, l, x);
        }
    }
    planner_add(p, l, said);
}

/* Sets the decoder's activation of a product without a gate. */
static void set_activation(const planner *p, launch_draft *l)
{
    static const char *const names[] = { "xielu_p", "xielu_n", "xielu_beta", "xielu_eps" };
    planner_set(&l->in, "epilogue", 1 + p->d->activation);
    if (p->d->activation != ACTIVATION_XIELU)
        return;
    float numbers[XIELU_NUMBERS];
    decoder_xielu(p->d, p->layer, numbers);
    for (int i = 0; i < XIELU_NUMBERS; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        planner_bind_number(l, names[i], bits, names[i]);
    }
}

void plan_multiply(planner *p, const plan_product *of, int64_t rows, uint64_t first_row)
{
    static const matrix_names names = { "w", "w_scale", "bias" };
    int64_t columns = (int64_t)decoder_columns(p->d, of->w, planner_layer(p));
    const plan_rows x = plan_normed(p, of->x, of->norm, first_row, rows, columns);
    const plan_key keys[] = {
        { "weights", planner_format(p, of->w) },
        { "k", columns },
        { "n", of->rows ? of->rows : (int64_t)decoder_rows(p->d, of->w, planner_layer(p)) },
        { "residual", of->residual != BUFFERS },
        { "scale", real_bits(of->scale) },
        { "softcap", real_bits(of->softcap) },
        { 0 },
    };
    family_id of_kernel = plan_product_family(p, of->w, FAMILY_MMA_Q8, FAMILY_STREAM_GEMV,
                                              FAMILY_GEMV, FAMILY_MMA_GEMM_F16);
    launch_draft l = planner_draft(p, of_kernel, keys, NULL);
    if (of->activated)
        set_activation(p, &l);
    if (of->times) {
        uint64_t before = (uint64_t)(p->layer * p->m * p->d->per_layer) * sizeof(float);
        planner_set(&l.in, "times", 1);
        planner_bind_buffer(p, &l, "times", BUFFER_PER_LAYER, before);
    }
    bind_matrix(p, &l, &names, of->w, (uint64_t)of->first, decoder_bias(of->w));
    if (of->y == BUFFERS)
        planner_bind_state(&l, "y", p->plan->state.logits, "logits");
    else
        planner_bind_buffer(p, &l, "y", of->y, 0);
    if (of->residual != BUFFERS)
        planner_bind_buffer(p, &l, "residual", of->residual, 0);
    bool normed = x.norm != TENSOR_COUNT;
    const char *w = tensor_word(p->arena, of->w), *from = buffer_lives[x.x].name;
    strbuf said = strbuf_new(p->arena);
    strbuf_format(&said, normed ? "norm(%s), %s" : "%s %s", normed ? from : w, normed ? w : from);
    if (of->activated)
        strbuf_put(&said, ", activation");
    if (of->times)
        strbuf_put(&said, " * per_layer");
    if (of->residual != BUFFERS)
        strbuf_format(&said, " + %s", buffer_lives[of->residual].name);
    strbuf_format(&said, " -> %s", of->y == BUFFERS ? "logits" : buffer_lives[of->y].name);
    add_product(p, &l, &x, said.text);
}

void plan_multiply_normed(planner *p, buffer_id x, decoder_tensor norm, decoder_tensor w,
                          buffer_id y)
{
    const plan_product of = { .w = w, .x = x, .y = y, .residual = BUFFERS, .norm = norm };
    plan_multiply(p, &of, p->m, 0);
}

void plan_multiply_gates(planner *p, const plan_gates *of)
{
    enum { LOAD_BYTES = 16 };
    static const matrix_names of_gate = { "wg", "g_scale", "bg" },
                              of_up = { "wu", "u_scale", "bu" };
    const decoder *d = p->d;
    const plan_rows x = plan_feed_rows(p);
    if (d->no_gates) {
        const plan_product product = { .w = of->up,
                                       .x = x.x,
                                       .y = of->y,
                                       .residual = BUFFERS,
                                       .norm = x.norm,
                                       .activated = true };
        plan_multiply(p, &product, p->m, 0);
        return;
    }
    bool fused = of->fused != TENSOR_COUNT && planner_has(p, of->fused);
    decoder_tensor gate = fused ? of->fused : of->gate, up = fused ? of->fused : of->up;
    uint64_t rows = decoder_rows(d, gate, p->layer) / (fused ? 2 : 1);
    double limit = d->at[p->layer].shared_limit;
    const plan_key keys[] = {
        { "weights", planner_format(p, gate) }, { "k", d->hidden }, { "n", (int64_t)rows }, { 0 }
    };
    const plan_key formats_keys[] = { { "weights_g", planner_format(p, gate) },
                                      { "weights_u", planner_format(p, up) },
                                      { 0 } };
    family_id of_kernel = plan_product_family(p, gate, FAMILY_MMA_Q8_GATE_UP, FAMILY_STREAM_GATE_UP,
                                              FAMILY_EXACT_GATE_UP, FAMILY_MMA_GATE_UP_F16);
    launch_draft l = planner_draft(p, of_kernel, keys, NULL);
    if (family_key(l.in.family, "weights_g"))
        planner_set_all(&l.in, formats_keys);
    if (limit > 0)
        planner_set(&l.in, "limit", real_bits(limit));
    uint64_t half = planner_tensor(p, gate)->bytes / 2; /* offset of up in a fused tensor */
    if (fused && half % LOAD_BYTES)
        diag_error(p->diags, DIAG_CONFLICT, p->where,
                   "%s fuses gate and up, and up starts at byte %llu, not a multiple of %d; use a "
                   "file with separate tensors",
                   planner_tensor(p, gate)->name, (unsigned long long)half, LOAD_BYTES);
    bind_matrix(p, &l, &of_gate, gate, 0, decoder_bias(of->gate));
    bind_matrix(p, &l, &of_up, up, fused ? rows : 0, decoder_bias(of->up));
    planner_bind_buffer(p, &l, "y", of->y, 0);
    const char *names = tensor_word(p->arena, up);
    if (!fused)
        names = arena_format(p->arena, "%s %s", tensor_word(p->arena, gate), names);
    const char *said = arena_format(p->arena,
                                    x.norm != TENSOR_COUNT ? "norm(%s), %s, activation -> %s"
                                                           : "%s, %s, activation -> %s",
                                    buffer_lives[x.x].name, names, buffer_lives[of->y].name);
    add_product(p, &l, &x, said);
}

void plan_add_branch(planner *p, const plan_branch *of)
{
    bool post = of->post_norm != TENSOR_COUNT && planner_has(p, of->post_norm);
    const plan_product product = { .w = of->w,
                                   .x = of->x,
                                   .y = post ? of->product : plan_next_stream(p),
                                   .residual = post ? BUFFERS : planner_stream(p),
                                   .norm = TENSOR_COUNT,
                                   .scale = post ? 0 : p->d->residual_scale };
    plan_multiply(p, &product, p->m, 0);
    if (post)
        plan_add_normed(p, of);
    else
        p->branches++;
}

void plan_add_normed(planner *p, const plan_branch *of)
{
    const decoder *d = p->d;
    double epsilon = d->post_norm_epsilon > 0 ? d->post_norm_epsilon : d->epsilon;
    const buffer_id residual = planner_stream(p), sum = plan_next_stream(p);
    const plan_key keys[] = { { "k", d->hidden },
                              { "residual", RESIDUAL_POST_NORM },
                              { "epsilon", real_bits(epsilon) },
                              { "scale", real_bits(d->residual_scale) },
                              { "out_scale", d->has[TENSOR_LAYER_OUTPUT_SCALE] &&
                                                 of->post_norm == decoder_last_norm(d, p->layer) },
                              { 0 } };
    const plan_bind binds[] = { { "h_out", BIND_BUFFER, sum },
                                { "h", BIND_BUFFER, residual },
                                { "x", BIND_BUFFER, of->product },
                                { "gamma", BIND_TENSOR, of->post_norm },
                                { "out_scale", BIND_TENSOR, TENSOR_LAYER_OUTPUT_SCALE },
                                { 0 } };
    planner_launch(p, FAMILY_RMS_NORM, keys, binds,
                   arena_format(p->arena, "norm(%s) + %s -> %s", buffer_lives[of->product].name,
                                buffer_lives[residual].name, buffer_lives[sum].name));
    p->branches++;
}

void plan_multiply_matrices(planner *p, decoder_tensor q, decoder_tensor k, decoder_tensor v,
                            buffer_id y)
{
    static const struct {
        const char *format, *rows;
        matrix_names names;
    } matrices[] = { { "weights_q", "n", { "wq", "q_scale", "bq" } },
                     { "weights_k", "n_kv", { "wk", "k_scale", "bk" } },
                     { "weights_v", "n_v", { "wv", "v_scale", "bv" } } };
    const decoder *d = p->d;
    const decoder_tensor w[] = { q, k, v };
    const plan_key keys[] = { { "weights", planner_format(p, q) }, { "k", d->hidden }, { 0 } };
    family_id of_kernel = plan_product_family(p, q, FAMILY_MMA_Q8_QKV, FAMILY_STREAM_QKV,
                                              FAMILY_EXACT_QKV, FAMILY_MMA_QKV);
    const plan_rows x = plan_normed(p, BUFFER_H, TENSOR_ATTN_NORM, 0, p->m, d->hidden);
    launch_draft l = planner_draft(p, of_kernel, keys, NULL);
    planner_bind_buffer(p, &l, "y", y, 0);
    strbuf said = strbuf_new(p->arena);
    strbuf_format(&said, x.norm != TENSOR_COUNT ? "norm(%s)," : "%s,", buffer_lives[x.x].name);
    for (int i = 0; i < 3; i++) {
        bool there = w[i] != TENSOR_COUNT;
        planner_set(&l.in, matrices[i].rows, there ? (int64_t)decoder_rows(d, w[i], p->layer) : 0);
        planner_set(&l.in, matrices[i].format, planner_format(p, there ? w[i] : q));
        if (!there)
            break;
        bind_matrix(p, &l, &matrices[i].names, w[i], 0, decoder_bias(w[i]));
        strbuf_format(&said, " %s", tensor_word(p->arena, w[i]));
    }
    strbuf_format(&said, " -> %s", buffer_lives[y].name);
    add_product(p, &l, &x, said.text);
}

void plan_set_rope(const planner *p, launch_draft *l, const rope_options *rope)
{
    const plan_key keys[] = { { "rope_base", real_bits(rope->base) },
                              { "rope_scaling", rope->scaling },
                              { "rope_factors", rope->factors },
                              { "rope_magnitude", real_bits(rope->magnitude) },
                              { 0 } };
    const plan_key yarn_keys[] = { { "rope_original_context", real_bits(rope->original_context) },
                                   { "rope_extension", real_bits(rope->extension) },
                                   { "rope_beta_fast", real_bits(rope->beta_fast) },
                                   { "rope_beta_slow", real_bits(rope->beta_slow) },
                                   { 0 } };
    const plan_key section_keys[] = { { "rope_section_t", rope->sections[0] },
                                      { "rope_section_h", rope->sections[1] },
                                      { "rope_section_w", rope->sections[2] },
                                      { 0 } };
    for (int t = TENSOR_ROPE_FREQS; rope->factors && t <= TENSOR_ROPE_SHORT; t++)
        planner_bind_tensor(p, l, "factors", (decoder_tensor)t);
    planner_set(&l->in, "rope", rope->style);
    if (rope->style == ROPE_NONE)
        return;
    planner_set_all(&l->in, keys);
    if (rope->scaling != ROPE_UNSCALED)
        planner_set(&l->in, "rope_factor", real_bits(rope->factor));
    if (rope->scaling == ROPE_YARN)
        planner_set_all(&l->in, yarn_keys);
    if (family_key(l->in.family, "rope_section_t"))
        planner_set_all(&l->in, section_keys);
}
