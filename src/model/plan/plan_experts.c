/* A mixture of experts as the feed-forward of a layer:
 *
 *   route    norm(middle), ffn_gate_inp                    -> ids, mix, list
 *   gate_up  norm(middle), of the experts in use, shared   -> f
 *   down     of the experts in use, shared, mix + middle   -> h
 *
 * With a norm behind it the sum is one of its own, and the norm adds it to middle.
 *
 * In steps of prompts, by tensor cores, the shared expert has products of its own:
 *
 *   gate_up  norm(middle), of the experts in use           -> f
 *   gate_up  norm(middle), shared                          -> f_shared
 *   down     f_shared                                      -> shared
 *   down     of the experts in use, f                      -> choices
 *   sum      mix of choices and shared + middle            -> h
 */
#include "model/plan/plan_product.h"

static void add_route(planner *p)
{
    static const plan_bind binds[] = {
        { "ids", BIND_BUFFER, BUFFER_IDS },
        { "weights", BIND_BUFFER, BUFFER_MIX },
        { "list", BIND_BUFFER, BUFFER_LIST },
        { "w", BIND_TENSOR, TENSOR_FFN_GATE_INP },
        { "x", BIND_BUFFER, BUFFER_MIDDLE },
        { "bias", BIND_TENSOR, TENSOR_FFN_GATE_INP_BIAS },
        { "choice_bias", BIND_TENSOR, TENSOR_EXP_PROBS_B },
        { "w_shared", BIND_TENSOR, TENSOR_FFN_GATE_INP_SHEXP },
        { "scratch", BIND_BUFFER, BUFFER_SCORES },
        { 0 },
    };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "m", p->m },
        { "weights", planner_format(p, TENSOR_FFN_GATE_INP) },
        { "k", d->hidden },
        { "bias", planner_has(p, TENSOR_FFN_GATE_INP_BIAS) },
        { "choice_bias", planner_has(p, TENSOR_EXP_PROBS_B) },
        { "groups", d->expert_groups },
        { "groups_used", d->expert_groups_used },
        { "normed", d->experts_normed },
        { "scale", real_bits(d->experts_scale) },
        { "shared", d->shared_ff ? 1 + planner_has(p, TENSOR_FFN_GATE_INP_SHEXP) : 0 },
        { 0 },
    };
    instance in = planner_kernel(p, FAMILY_MOE_ROUTE, keys);
    bindings b = { 0 };
    planner_bind(p, &b, binds);
    plan_norm(p, &in, &b, decoder_ffn_norm(d));
    planner_add(p, &in, &b, "norm(middle), ffn_gate_inp -> ids, mix, list");
}

static void add_gate_up(planner *p)
{
    static const plan_bind binds[] = {
        { "y", BIND_BUFFER, BUFFER_F },
        { "wsg", BIND_TENSOR, TENSOR_FFN_GATE_SHEXP },
        { "wsu", BIND_TENSOR, TENSOR_FFN_UP_SHEXP },
        { "bg", BIND_TENSOR, TENSOR_FFN_GATE_EXPS_BIAS },
        { "bu", BIND_TENSOR, TENSOR_FFN_UP_EXPS_BIAS },
        { "list", BIND_BUFFER, BUFFER_LIST },
        { 0 },
    };
    const decoder *d = p->d;
    bool fused = planner_has(p, TENSOR_FFN_GATE_UP_EXPS), prompt = decoder_is_prompt(p->m);
    decoder_tensor gate = fused ? TENSOR_FFN_GATE_UP_EXPS : TENSOR_FFN_GATE_EXPS;
    decoder_tensor up = fused ? TENSOR_FFN_GATE_UP_EXPS : TENSOR_FFN_UP_EXPS;
    const plan_key keys[] = {
        { "m", p->m },
        { "weights", planner_format(p, gate) },
        { "k", d->hidden },
        { "n", d->expert_ff },
        { "plane_rows", fused ? 2 * d->expert_ff : d->expert_ff },
        { "bias", planner_has(p, TENSOR_FFN_GATE_EXPS_BIAS) },
        { 0 },
    };
    const plan_key formats_keys[] = {
        { "weights_g", planner_format(p, gate) },
        { "weights_u", planner_format(p, up) },
        { "n_shared", d->shared_ff },
        { 0 },
    };
    const plan_key shared_keys[] = {
        { "weights_sg", planner_format(p, TENSOR_FFN_GATE_SHEXP) },
        { "weights_su", planner_format(p, TENSOR_FFN_UP_SHEXP) },
        { 0 },
    };
    instance in =
        planner_kernel(p,
                       plan_product_family(p, gate, FAMILY_STREAM_EXPERT_GATE_UP,
                                           FAMILY_EXACT_EXPERT_GATE_UP, FAMILY_MMA_EXPERT_GATE_UP),
                       keys);
    bindings b = { 0 };
    planner_bind(p, &b, binds);
    planner_bind_rows(p, &b, "wg", gate, 0);
    planner_bind_rows(p, &b, "wu", up, fused ? (uint64_t)d->expert_ff : 0);
    if (!prompt)
        planner_set_all(&in, formats_keys);
    if (!prompt && d->shared_ff)
        planner_set_all(&in, shared_keys);
    const plan_rows x = { BUFFER_MIDDLE, 0, p->m, d->hidden, decoder_ffn_norm(d), FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    if (prompt)
        planner_set_rows(p, &in, p->m, &b);
    planner_add(p, &in, &b, "norm(middle), gate and up of experts, activation -> f");
}

/* Adds a kernel whose y is added to middle, by itself or by a norm behind it. */
static void add_sum(planner *p, instance *in, bindings *b, const char *said, const char *said_alone)
{
    static const plan_branch sum = { .post_norm = TENSOR_POST_FFW_NORM,
                                     .product = BUFFER_DOWN,
                                     .residual = BUFFER_MIDDLE,
                                     .sum = BUFFER_H,
                                     .said_norm = "norm(down) + middle -> h" };
    bool post = planner_has(p, sum.post_norm);
    planner_bind_buffer(b, "y", post ? sum.product : sum.sum, 0);
    if (!post) {
        planner_set(in, "residual", 1);
        if (p->d->residual_scale > 0)
            planner_set(in, "scale", real_bits(p->d->residual_scale));
        planner_bind_buffer(b, "residual", sum.residual, 0);
    }
    planner_add(p, in, b, post ? said_alone : said);
    if (post)
        plan_add_normed(p, &sum);
}

static void add_down(planner *p)
{
    static const plan_bind binds[] = {
        { "w", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS },
        { "ws", BIND_TENSOR, TENSOR_FFN_DOWN_SHEXP },
        { "x", BIND_BUFFER, BUFFER_F },
        { "bd", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS_BIAS },
        { "weights", BIND_BUFFER, BUFFER_MIX },
        { "list", BIND_BUFFER, BUFFER_LIST },
        { 0 },
    };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "m", p->m },
        { "weights", planner_format(p, TENSOR_FFN_DOWN_EXPS) },
        { "k", d->expert_ff },
        { "n", d->hidden },
        { "n_shared", d->shared_ff },
        { "bias", planner_has(p, TENSOR_FFN_DOWN_EXPS_BIAS) },
        { 0 },
    };
    instance in = planner_kernel(
        p, d->precision == PRECISION_Q8 ? FAMILY_STREAM_EXPERT_DOWN : FAMILY_EXACT_EXPERT_DOWN,
        keys);
    bindings b = { 0 };
    planner_bind(p, &b, binds);
    if (d->shared_ff)
        planner_set(&in, "weights_s", planner_format(p, TENSOR_FFN_DOWN_SHEXP));
    planner_set_rows(p, &in, p->m, &b);
    add_sum(p, &in, &b, "mix of ffn_down of experts f + middle -> h",
            "mix of ffn_down of experts f -> down");
}

static void add_choices(planner *p)
{
    static const plan_bind binds[] = {
        { "y", BIND_BUFFER, BUFFER_CHOICES },
        { "w", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS },
        { "bias", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS_BIAS },
        { "list", BIND_BUFFER, BUFFER_LIST },
        { 0 },
    };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "m", p->m },
        { "weights", planner_format(p, TENSOR_FFN_DOWN_EXPS) },
        { "k", d->expert_ff },
        { "n", d->hidden },
        { "plane_rows", d->hidden },
        { "bias", planner_has(p, TENSOR_FFN_DOWN_EXPS_BIAS) },
        { 0 },
    };
    instance in = planner_kernel(p, FAMILY_MMA_EXPERT_DOWN, keys);
    bindings b = { 0 };
    const plan_rows x = { BUFFER_F,     0,         p->m * d->experts_used, d->expert_ff,
                          TENSOR_COUNT, FORMAT_F32 };
    planner_bind(p, &b, binds);
    plan_bind_rows(p, &in, &b, &x);
    planner_set_rows(p, &in, p->m, &b);
    planner_add(p, &in, &b, "ffn_down of experts f -> choices");
}

static void add_mix(planner *p)
{
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "m", p->m },
        { "n", d->hidden },
        { "shared", d->shared_ff > 0 },
        { 0 },
    };
    instance in = planner_kernel(p, FAMILY_EXPERT_SUM, keys);
    bindings b = { 0 };
    planner_bind_buffer(&b, "x", BUFFER_CHOICES, 0);
    planner_bind_buffer(&b, "shared", BUFFER_SHARED, 0);
    planner_bind_buffer(&b, "weights", BUFFER_MIX, 0);
    add_sum(p, &in, &b, "mix of choices + middle -> h", "mix of choices -> down");
}

void plan_experts(planner *p)
{
    static const plan_gates shared_gates = {
        .gate = TENSOR_FFN_GATE_SHEXP,
        .up = TENSOR_FFN_UP_SHEXP,
        .fused = TENSOR_COUNT,
        .y = BUFFER_F_SHARED,
        .said = "norm(middle), gate and up of all rows' expert, activation -> f_shared",
    };
    static const plan_product shared_down = {
        .w = TENSOR_FFN_DOWN_SHEXP,
        .x = BUFFER_F_SHARED,
        .y = BUFFER_SHARED,
        .residual = BUFFERS,
        .norm = TENSOR_COUNT,
        .said = "ffn_down of all rows' expert f_shared -> shared",
    };
    add_route(p);
    add_gate_up(p);
    if (!decoder_is_prompt(p->m)) {
        add_down(p);
        return;
    }
    if (p->d->shared_ff) {
        plan_multiply_gates(p, &shared_gates);
        plan_multiply(p, &shared_down, p->m, 0);
    }
    add_choices(p);
    add_mix(p);
}
