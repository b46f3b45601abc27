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

static void set_experts(const planner *p, instance *in)
{
    planner_set(in, "experts", p->d->experts);
    planner_set(in, "experts_used", p->d->experts_used);
    planner_set(in, "m", p->m);
}

static void route(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "moe_route");
    bindings b = { 0 };
    bool gated = planner_has(p, TENSOR_FFN_GATE_INP_SHEXP);
    set_experts(p, &in);
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_FFN_GATE_INP, p->layer));
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "gating", d->gating);
    planner_set(&in, "bias", planner_has(p, TENSOR_FFN_GATE_INP_BIAS));
    planner_set(&in, "choice_bias", planner_has(p, TENSOR_EXP_PROBS_B));
    planner_set(&in, "groups", d->expert_groups);
    planner_set(&in, "groups_used", d->expert_groups_used);
    planner_set(&in, "normed", d->experts_normed);
    planner_set_real(&in, "scale", d->experts_scale);
    planner_set(&in, "shared", d->shared_ff ? 1 + gated : 0);
    plan_norm(p, &in, &b, decoder_ffn_norm(d));
    planner_bind_buffer(&b, "ids", BUFFER_IDS);
    planner_bind_buffer(&b, "weights", BUFFER_MIX);
    planner_bind_buffer(&b, "list", BUFFER_LIST);
    planner_bind_tensor(p, &b, "w", TENSOR_FFN_GATE_INP);
    planner_bind_buffer(&b, "x", BUFFER_MIDDLE);
    planner_bind_tensor(p, &b, "bias", TENSOR_FFN_GATE_INP_BIAS);
    planner_bind_tensor(p, &b, "choice_bias", TENSOR_EXP_PROBS_B);
    planner_bind_tensor(p, &b, "w_shared", TENSOR_FFN_GATE_INP_SHEXP);
    planner_bind_buffer(&b, "scratch", BUFFER_SCORES);
    planner_add(p, &in, &b, "norm(middle), ffn_gate_inp -> ids, mix, list");
}

static void multiply_gate_up(planner *p)
{
    const decoder *d = p->d;
    bool fused = planner_has(p, TENSOR_FFN_GATE_UP_EXPS);
    decoder_tensor gate = fused ? TENSOR_FFN_GATE_UP_EXPS : TENSOR_FFN_GATE_EXPS;
    decoder_tensor up = fused ? TENSOR_FFN_GATE_UP_EXPS : TENSOR_FFN_UP_EXPS;
    bool prompt = decoder_is_prompt(p->m), shared = d->shared_ff && !prompt;
    const char *name = plan_product_name(p, gate, "stream_expert_gate_up", "exact_expert_gate_up",
                                         "mma_expert_gate_up");
    instance in = planner_kernel(p, name);
    bindings b = { 0 };
    set_experts(p, &in);
    planner_set_weights(&in, "weights", decoder_format(d, gate, p->layer));
    if (!prompt) {
        planner_set_weights(&in, "weights_g", decoder_format(d, gate, p->layer));
        planner_set_weights(&in, "weights_u", decoder_format(d, up, p->layer));
        planner_set(&in, "n_shared", d->shared_ff);
    }
    if (shared) {
        planner_set_weights(&in, "weights_sg", decoder_format(d, TENSOR_FFN_GATE_SHEXP, p->layer));
        planner_set_weights(&in, "weights_su", decoder_format(d, TENSOR_FFN_UP_SHEXP, p->layer));
    }
    planner_set(&in, "k", d->hidden);
    planner_set(&in, "n", d->expert_ff);
    planner_set(&in, "plane_rows", fused ? 2 * d->expert_ff : d->expert_ff);
    planner_set(&in, "bias", planner_has(p, TENSOR_FFN_GATE_EXPS_BIAS));
    planner_set(&in, "activation", d->activation);
    const plan_rows x = { BUFFER_MIDDLE, 0, p->m, d->hidden, decoder_ffn_norm(d), FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    if (prompt)
        planner_set_rows(p, &in, p->m, &b);
    planner_bind_buffer(&b, "y", BUFFER_F);
    planner_bind_rows(p, &b, "wg", gate, 0);
    planner_bind_rows(p, &b, "wu", up, fused ? (uint64_t)d->expert_ff : 0);
    if (shared) {
        planner_bind_tensor(p, &b, "wsg", TENSOR_FFN_GATE_SHEXP);
        planner_bind_tensor(p, &b, "wsu", TENSOR_FFN_UP_SHEXP);
    }
    planner_bind_tensor(p, &b, "bg", TENSOR_FFN_GATE_EXPS_BIAS);
    planner_bind_tensor(p, &b, "bu", TENSOR_FFN_UP_EXPS_BIAS);
    planner_bind_buffer(&b, "list", BUFFER_LIST);
    planner_add(p, &in, &b, "norm(middle), gate and up of experts, activation -> f");
}

/* What is added to middle. */
static const plan_branch sum_of_experts = { .post_norm = TENSOR_POST_FFW_NORM,
                                            .product = BUFFER_DOWN,
                                            .residual = BUFFER_MIDDLE,
                                            .sum = BUFFER_H,
                                            .said_norm = "norm(down) + middle -> h" };

/* A kernel whose y it is. */
static void add_sum(planner *p, instance *in, bindings *b, const char *said, const char *said_alone)
{
    bool post = plan_has_post_norm(p, &sum_of_experts);
    planner_bind_buffer(b, "y", post ? sum_of_experts.product : sum_of_experts.sum);
    if (!post) {
        planner_set(in, "residual", 1);
        planner_set_real(in, "scale", p->d->residual_scale);
        planner_bind_buffer(b, "residual", sum_of_experts.residual);
    }
    planner_add(p, in, b, post ? said_alone : said);
    if (post)
        plan_add_normed(p, &sum_of_experts);
}

static void multiply_down(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, plan_kernel_name(p, "stream_expert_down", "exact_expert_down"));
    bindings b = { 0 };
    set_experts(p, &in);
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_FFN_DOWN_EXPS, p->layer));
    if (d->shared_ff)
        planner_set_weights(&in, "weights_s", decoder_format(d, TENSOR_FFN_DOWN_SHEXP, p->layer));
    planner_set(&in, "k", d->expert_ff);
    planner_set(&in, "n", d->hidden);
    planner_set(&in, "n_shared", d->shared_ff);
    planner_set(&in, "bias", planner_has(p, TENSOR_FFN_DOWN_EXPS_BIAS));
    planner_set_rows(p, &in, p->m, &b);
    planner_bind_tensor(p, &b, "w", TENSOR_FFN_DOWN_EXPS);
    planner_bind_tensor(p, &b, "ws", TENSOR_FFN_DOWN_SHEXP);
    planner_bind_buffer(&b, "x", BUFFER_F);
    planner_bind_tensor(p, &b, "bd", TENSOR_FFN_DOWN_EXPS_BIAS);
    planner_bind_buffer(&b, "weights", BUFFER_MIX);
    planner_bind_buffer(&b, "list", BUFFER_LIST);
    add_sum(p, &in, &b, "mix of ffn_down of experts f + middle -> h",
            "mix of ffn_down of experts f -> down");
}

static void multiply_shared(planner *p)
{
    static const plan_gates gates = {
        .gate = TENSOR_FFN_GATE_SHEXP,
        .up = TENSOR_FFN_UP_SHEXP,
        .fused = TENSOR_COUNT,
        .gate_bias = TENSOR_COUNT,
        .up_bias = TENSOR_COUNT,
        .y = BUFFER_F_SHARED,
        .said = "norm(middle), gate and up of all rows' expert, activation -> f_shared"
    };
    static const plan_product down = { .w = TENSOR_FFN_DOWN_SHEXP,
                                       .bias = TENSOR_COUNT,
                                       .x = BUFFER_F_SHARED,
                                       .y = BUFFER_SHARED,
                                       .residual = BUFFERS,
                                       .norm = TENSOR_COUNT,
                                       .said = "ffn_down of all rows' expert f_shared -> shared" };
    plan_multiply_gates(p, &gates);
    plan_multiply(p, &down, p->m, 0);
}

static void multiply_choices(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "mma_expert_down");
    bindings b = { 0 };
    set_experts(p, &in);
    planner_set_weights(&in, "weights", decoder_format(d, TENSOR_FFN_DOWN_EXPS, p->layer));
    planner_set(&in, "k", d->expert_ff);
    planner_set(&in, "n", d->hidden);
    planner_set(&in, "plane_rows", d->hidden);
    planner_set(&in, "bias", planner_has(p, TENSOR_FFN_DOWN_EXPS_BIAS));
    const plan_rows x = { BUFFER_F,     0,         p->m * d->experts_used, d->expert_ff,
                          TENSOR_COUNT, FORMAT_F32 };
    plan_bind_rows(p, &in, &b, &x);
    planner_set_rows(p, &in, p->m, &b);
    planner_bind_buffer(&b, "y", BUFFER_CHOICES);
    planner_bind_tensor(p, &b, "w", TENSOR_FFN_DOWN_EXPS);
    planner_bind_tensor(p, &b, "bias", TENSOR_FFN_DOWN_EXPS_BIAS);
    planner_bind_buffer(&b, "list", BUFFER_LIST);
    planner_add(p, &in, &b, "ffn_down of experts f -> choices");
}

static void add_choices(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "expert_sum");
    bindings b = { 0 };
    planner_set(&in, "n", d->hidden);
    planner_set(&in, "experts_used", d->experts_used);
    planner_set(&in, "m", p->m);
    planner_set(&in, "shared", d->shared_ff > 0);
    planner_bind_buffer(&b, "x", BUFFER_CHOICES);
    if (d->shared_ff)
        planner_bind_buffer(&b, "shared", BUFFER_SHARED);
    planner_bind_buffer(&b, "weights", BUFFER_MIX);
    add_sum(p, &in, &b, "mix of choices + middle -> h", "mix of choices -> down");
}

void plan_experts(planner *p)
{
    route(p);
    multiply_gate_up(p);
    if (!decoder_is_prompt(p->m)) {
        multiply_down(p);
        return;
    }
    if (p->d->shared_ff)
        multiply_shared(p);
    multiply_choices(p);
    add_choices(p);
}
