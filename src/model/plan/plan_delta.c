/* A gated delta net in the place of attention:
 *
 *   qkv     norm(h), attn_qkv attn_gate ssm_ba   -> qkv
 *   delta   qkv, states, inputs                  -> delta
 *   output  ssm_out delta + h                    -> middle
 *
 * With tiled value heads the betas and alphas have a matrix each, and come by a launch of their
 * own:
 *
 *   qkv     norm(h), attn_qkv attn_gate          -> qkv
 *   ba      norm(h), ssm_beta ssm_alpha          -> ba
 *   delta   qkv, ba, states, inputs              -> delta
 */
#include "model/plan/plan_product.h"

static void step_states(planner *p)
{
    const decoder *d = p->d;
    instance in = planner_kernel(p, "delta_net");
    bindings b = { 0 };
    planner_set(&in, "head_dim", d->delta_head_dim);
    planner_set(&in, "num_kv_heads", d->delta_key_heads);
    planner_set(&in, "num_heads", d->delta_value_heads);
    planner_set(&in, "layout", d->delta_layout);
    planner_set(&in, "max_seq_len", d->max_seq_len);
    planner_set(&in, "m", p->m);
    planner_set_real(&in, "epsilon", d->epsilon);
    planner_bind_buffer(&b, "y", BUFFER_DELTA);
    plan_bind_caches(p, &b, "states", "convs");
    planner_bind_buffer(&b, "x", BUFFER_QKV);
    planner_bind_tensor(p, &b, "conv", TENSOR_SSM_CONV1D);
    planner_bind_tensor(p, &b, "dt", TENSOR_SSM_DT);
    planner_bind_tensor(p, &b, "a", TENSOR_SSM_A);
    planner_bind_tensor(p, &b, "gamma", TENSOR_SSM_NORM);
    planner_bind_state(&b, "positions", p->plan->state.positions, "positions");
    planner_bind_buffer(&b, "ba", BUFFER_BA);
    planner_add(p, &in, &b,
                d->delta_layout == DELTA_TILED ? "qkv, ba, states -> delta, states"
                                               : "qkv, states -> delta, states");
}

static void multiply_inputs(planner *p)
{
    static const plan_matrices grouped = {
        .w = { TENSOR_DELTA_QKV, TENSOR_ATTN_GATE, TENSOR_SSM_BA },
        .bias = { TENSOR_COUNT, TENSOR_COUNT, TENSOR_COUNT },
        .y = BUFFER_QKV,
        .said = "norm(h), attn_qkv attn_gate ssm_ba -> qkv",
    };
    static const plan_matrices tiled = {
        .w = { TENSOR_DELTA_QKV, TENSOR_ATTN_GATE, TENSOR_COUNT },
        .bias = { TENSOR_COUNT, TENSOR_COUNT, TENSOR_COUNT },
        .y = BUFFER_QKV,
        .said = "norm(h), attn_qkv attn_gate -> qkv",
    };
    static const plan_matrices factors = {
        .w = { TENSOR_SSM_BETA, TENSOR_SSM_ALPHA, TENSOR_COUNT },
        .bias = { TENSOR_COUNT, TENSOR_COUNT, TENSOR_COUNT },
        .y = BUFFER_BA,
        .said = "norm(h), ssm_beta ssm_alpha -> ba",
    };
    bool is_tiled = p->d->delta_layout == DELTA_TILED;
    plan_multiply_matrices(p, is_tiled ? &tiled : &grouped);
    if (is_tiled)
        plan_multiply_matrices(p, &factors);
}

void plan_delta_net(planner *p)
{
    static const plan_branch output = { .w = TENSOR_SSM_OUT,
                                        .bias = TENSOR_COUNT,
                                        .post_norm = TENSOR_COUNT,
                                        .x = BUFFER_DELTA,
                                        .residual = BUFFER_H,
                                        .sum = BUFFER_MIDDLE,
                                        .said = "ssm_out delta + h -> middle" };
    multiply_inputs(p);
    step_states(p);
    plan_add_branch(p, &output);
}
