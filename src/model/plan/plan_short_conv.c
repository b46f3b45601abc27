/* A short convolution instead of attention:
 *
 *   in      norm(h), shortconv.in_proj     -> qkv, with rows b, c, u
 *   conv    qkv, inputs                    -> delta
 *   output  shortconv.out_proj delta + h   -> middle
 */
#include "model/plan/plan_product.h"

static const plan_branch output = { .w = TENSOR_SHORTCONV_OUT,
                                    .post_norm = TENSOR_COUNT,
                                    .x = BUFFER_DELTA };
static const plan_bind binds[] = {
    { "y", BIND_BUFFER, BUFFER_DELTA },        { "convs", BIND_STATES, 1 },
    { "x", BIND_BUFFER, BUFFER_QKV },          { "conv", BIND_TENSOR, TENSOR_SHORTCONV_CONV },
    { "positions", BIND_STATE, AT_POSITIONS }, { 0 },
};

void plan_short_conv(planner *p)
{
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "n", d->hidden }, { "conv_kernel", d->conv_kernel }, { "form", CONV_GATED }, { 0 }
    };
    plan_multiply_normed(p, BUFFER_H, TENSOR_ATTN_NORM, TENSOR_SHORTCONV_IN, BUFFER_QKV);
    planner_launch(p, FAMILY_SHORT_CONV, keys, binds, "qkv, inputs -> delta, inputs");
    plan_add_branch(p, &output);
}
