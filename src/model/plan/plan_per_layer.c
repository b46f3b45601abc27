/* Per-layer embeddings. Before the layers:
 *
 *   project    per_layer_model_proj h              -> projected
 *   rows       norm(projected), table[token]       -> per_layer [layers, m, values]
 *
 * and in each layer, as its last branch:
 *
 *   gate       act(inp_gate h) per_layer           -> inner
 *   output     proj inner                          -> embedded
 *   norm       norm(embedded) + h                  -> middle
 */
#include <math.h>

#include "model/plan/plan_product.h"

void plan_make_per_layer(planner *p)
{
    static const plan_bind binds[] = { { "y", BIND_BUFFER, BUFFER_PER_LAYER },
                                       { "w", BIND_TENSOR, TENSOR_PER_LAYER_TOKEN_EMBD },
                                       { "a", BIND_BUFFER, BUFFER_PROJECTED },
                                       { "gamma", BIND_TENSOR, TENSOR_PER_LAYER_PROJ_NORM },
                                       { "tokens", BIND_STATE, AT_TOKENS },
                                       { 0 } };
    const decoder *d = p->d;
    const plan_product projection = { .w = TENSOR_PER_LAYER_MODEL_PROJ,
                                      .x = BUFFER_H,
                                      .y = BUFFER_PROJECTED,
                                      .residual = BUFFERS,
                                      .norm = TENSOR_COUNT,
                                      .scale = 1 / sqrt((double)d->hidden) };
    const plan_key keys[] = { { "weights", planner_format(p, TENSOR_PER_LAYER_TOKEN_EMBD) },
                              { "k", d->per_layer * d->embedded_layers },
                              { "per_layer", d->per_layer },
                              { "n", d->vocab },
                              { "scale", real_bits(sqrt((double)d->per_layer)) },
                              { "factor", real_bits(sqrt(0.5)) },
                              { "epsilon", real_bits(d->epsilon) },
                              { 0 } };
    plan_multiply(p, &projection, p->m, 0);
    planner_launch(p, FAMILY_PER_LAYER_ROWS, keys, binds,
                   "norm(projected), per_layer_token_embd[token] -> per_layer");
}

void plan_add_per_layer(planner *p)
{
    static const plan_branch output = { .w = TENSOR_PROJ,
                                        .post_norm = TENSOR_POST_NORM,
                                        .x = BUFFER_INNER,
                                        .product = BUFFER_EMBEDDED };
    const plan_product gate = { .w = TENSOR_INP_GATE,
                                .x = planner_stream(p),
                                .y = BUFFER_INNER,
                                .residual = BUFFERS,
                                .norm = TENSOR_COUNT,
                                .activated = true,
                                .times = true };
    plan_multiply(p, &gate, p->m, 0);
    plan_add_branch(p, &output);
}
