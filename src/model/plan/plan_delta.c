/* A gated delta net instead of attention:
 *
 *   qkv     norm(h), attn_qkv attn_gate ssm_ba   -> qkv
 *   delta   qkv, states, inputs                  -> delta
 *   output  ssm_out delta + h                    -> middle
 *
 * With tiled value heads the betas and alphas have a matrix each, and a launch of their own:
 *
 *   qkv     norm(h), attn_qkv attn_gate          -> qkv
 *   ba      norm(h), ssm_beta ssm_alpha          -> ba
 *   delta   qkv, ba, states, inputs              -> delta
 */
#include "model/plan/plan_product.h"

static const plan_branch output = { .w = TENSOR_SSM_OUT,
                                    .post_norm = TENSOR_COUNT,
                                    .x = BUFFER_DELTA };
static const plan_bind net_binds[] = { { "y", BIND_BUFFER, BUFFER_DELTA },
                                       { "states", BIND_STATES, 0 },
                                       { "convs", BIND_STATES, 1 },
                                       { "x", BIND_BUFFER, BUFFER_QKV },
                                       { "conv", BIND_TENSOR, TENSOR_SSM_CONV1D },
                                       { "dt", BIND_TENSOR, TENSOR_SSM_DT },
                                       { "a", BIND_TENSOR, TENSOR_SSM_A },
                                       { "gamma", BIND_TENSOR, TENSOR_SSM_NORM },
                                       { "positions", BIND_STATE, AT_POSITIONS },
                                       { "ba", BIND_BUFFER, BUFFER_BA },
                                       { 0 } };

void plan_delta_net(planner *p)
{
    const decoder *d = p->d;
    bool is_tiled = d->delta_layout == DELTA_TILED;
    const plan_key keys[] = {
        { "head_dim", d->delta_head_dim },     { "num_kv_heads", d->delta_key_heads },
        { "num_heads", d->delta_value_heads }, { "layout", d->delta_layout },
        { "epsilon", real_bits(d->epsilon) },  { 0 },
    };
    plan_multiply_matrices(p, TENSOR_DELTA_QKV, TENSOR_DELTA_GATE,
                           is_tiled ? TENSOR_COUNT : TENSOR_SSM_BA, BUFFER_QKV);
    if (is_tiled)
        plan_multiply_matrices(p, TENSOR_SSM_BETA, TENSOR_SSM_ALPHA, TENSOR_COUNT, BUFFER_BA);
    planner_launch(p, FAMILY_DELTA_NET, keys, net_binds,
                   is_tiled ? "qkv, ba, states -> delta, states" : "qkv, states -> delta, states");
    plan_add_branch(p, &output);
}
