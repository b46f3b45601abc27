/* Ling 2.0 and Ring 2.0: fused q, k, v with norms of heads, RoPE of half of each head, and experts in
 * groups beside a shared expert. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->shared_ff = model_required_number(r, "expert_shared_feed_forward_length") *
                   model_number(r, "expert_shared_count", 0, 0);
}

const architecture arch_bailing[] = {
    {
        .name = "bailingmoe2",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN | FEATURE_GATING_KEY |
                    FEATURE_OWN_OUTPUT,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
