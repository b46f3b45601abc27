/* Mamba instead of attention or beside it. Mamba-2:
 *
 *   in      norm(h), ssm_in                -> qkv, with rows z, X B C, dt
 *   mamba2  qkv, states, inputs            -> delta
 *   norm    delta by groups, if there is ssm_norm
 *   output  ssm_out delta + h              -> middle
 *
 * Mamba:
 *
 *   in      norm(h), ssm_in                -> qkv, with rows u, z
 *   conv    qkv, inputs                    -> u
 *   x       ssm_x u                        -> dt_rank, and -> bc, with rows B, C
 *   norm    dt_rank, with dt_b_c_norm
 *   dt      ssm_dt dt_rank + bias          -> dt
 *   scan    qkv, u, bc, dt, states         -> delta
 *   output  ssm_out delta + h              -> middle
 */
#include "model/plan/plan_product.h"

static const plan_branch output = { .w = TENSOR_SSM_OUT,
                                    .post_norm = TENSOR_COUNT,
                                    .x = BUFFER_DELTA };

/* Norms rows of a buffer in place: m rows of groups, each with its gains, or without gains. */
static void add_norm(planner *p, buffer_id x, int64_t size, int64_t groups, decoder_tensor gains)
{
    const plan_key keys[] = { { "k", size },
                              { "m", p->m * groups },
                              { "gamma", gains == TENSOR_COUNT },
                              { "num_groups", groups > 1 ? groups : 0 },
                              { "epsilon", real_bits(p->d->epsilon) },
                              { 0 } };
    launch_draft l = planner_draft(p, FAMILY_RMS_NORM, keys, NULL);
    planner_bind_buffer(p, &l, "y", x, 0);
    planner_bind_buffer(p, &l, "x", x, 0);
    if (gains != TENSOR_COUNT)
        planner_bind_tensor(p, &l, "gamma", gains);
    planner_add(
        p, &l,
        arena_format(p->arena, "norm(%s) -> %s", buffer_lives[x].name, buffer_lives[x].name));
}

void plan_mamba2(planner *p)
{
    static const plan_bind binds[] = { { "y", BIND_BUFFER, BUFFER_DELTA },
                                       { "states", BIND_STATES, 0 },
                                       { "convs", BIND_STATES, 1 },
                                       { "x", BIND_BUFFER, BUFFER_QKV },
                                       { "conv", BIND_TENSOR, TENSOR_SSM_CONV1D },
                                       { "bias", BIND_TENSOR, TENSOR_SSM_CONV1D_BIAS },
                                       { "dt", BIND_TENSOR, TENSOR_SSM_DT },
                                       { "a", BIND_TENSOR, TENSOR_SSM_A },
                                       { "d", BIND_TENSOR, TENSOR_SSM_D },
                                       { "positions", BIND_STATE, AT_POSITIONS },
                                       { 0 } };
    const decoder *d = p->d;
    const plan_key keys[] = { { "head_dim", d->inner / d->state_heads },
                              { "num_heads", d->state_heads },
                              { "num_groups", d->state_groups },
                              { "state_size", d->state_size },
                              { "conv_kernel", d->conv_kernel },
                              { "bias", 1 },
                              { 0 } };
    plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_SSM_IN, BUFFER_QKV);
    planner_launch(p, FAMILY_MAMBA2, keys, binds, "qkv, states, inputs -> delta, states, inputs");
    if (planner_has(p, TENSOR_SSM_NORM))
        add_norm(p, BUFFER_DELTA, d->inner / d->state_groups, d->state_groups, TENSOR_SSM_NORM);
    plan_add_branch(p, &output);
}

void plan_mamba(planner *p)
{
    static const plan_bind conv_binds[] = { { "y", BIND_BUFFER, BUFFER_U },
                                            { "convs", BIND_STATES, 1 },
                                            { "x", BIND_BUFFER, BUFFER_QKV },
                                            { "conv", BIND_TENSOR, TENSOR_SSM_CONV1D },
                                            { "bias", BIND_TENSOR, TENSOR_SSM_CONV1D_BIAS },
                                            { "positions", BIND_STATE, AT_POSITIONS },
                                            { 0 } };
    static const plan_bind scan_binds[] = {
        { "y", BIND_BUFFER, BUFFER_DELTA }, { "states", BIND_STATES, 0 },
        { "x", BIND_BUFFER, BUFFER_QKV },   { "u", BIND_BUFFER, BUFFER_U },
        { "dt", BIND_BUFFER, BUFFER_DT },   { "a", BIND_TENSOR, TENSOR_SSM_A },
        { "d", BIND_TENSOR, TENSOR_SSM_D }, { "positions", BIND_STATE, AT_POSITIONS },
        { "bc", BIND_BUFFER, BUFFER_BC },   { 0 },
    };
    const decoder *d = p->d;
    const plan_key conv_keys[] = {
        { "n", d->inner }, { "conv_kernel", d->conv_kernel }, { "form", CONV_SILU }, { 0 }
    };
    const plan_key scan_keys[] = { { "n", d->inner },
                                   { "state_size", d->state_size },
                                   { "norm", d->dt_b_c_norm ? NORM_RMS : NORM_NONE },
                                   { "epsilon", d->dt_b_c_norm ? real_bits(d->epsilon) : 0 },
                                   { 0 } };
    const plan_product rank = { .w = TENSOR_SSM_X,
                                .rows = d->dt_rank,
                                .x = BUFFER_U,
                                .y = BUFFER_DT_RANK,
                                .residual = BUFFERS,
                                .norm = TENSOR_COUNT };
    const plan_product bc = { .w = TENSOR_SSM_X,
                              .first = d->dt_rank,
                              .rows = 2 * d->state_size,
                              .x = BUFFER_U,
                              .y = BUFFER_BC,
                              .residual = BUFFERS,
                              .norm = TENSOR_COUNT };
    plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_SSM_IN, BUFFER_QKV);
    planner_launch(p, FAMILY_SHORT_CONV, conv_keys, conv_binds, "qkv, inputs -> u, inputs");
    plan_multiply(p, &rank, p->m, 0);
    plan_multiply(p, &bc, p->m, 0);
    if (d->dt_b_c_norm)
        add_norm(p, BUFFER_DT_RANK, d->dt_rank, 1, TENSOR_COUNT);
    plan_multiply_normed(p, BUFFER_DT_RANK, TENSOR_COUNT, TENSOR_SSM_DT_W, BUFFER_DT);
    planner_launch(p, FAMILY_MAMBA_SCAN, scan_keys, scan_binds,
                   "qkv, u, bc, dt, states -> delta, states");
    plan_add_branch(p, &output);
}
