/* GLM-4: norms before and after attention and feed-forward, and fused gate and up. RoPE rotates half
 * of each head, in neighbouring pairs; of models for images, by their sections, in NEOX's pairs.
 * GLM-4.5: a llama layer with experts chosen by sigmoid scores with a bias, beside a shared expert. */
#include "model/from_gguf/architecture.h"

static void adapt_glm4(model_reader *r)
{
    decoder *d = &r->out->decoder;
    const gguf_key *sections = model_use_key(r, "rope.dimension_sections");
    int64_t first = 0, second = 0;
    gguf_get_i64(sections, 0, &first);
    gguf_get_i64(sections, 1, &second);
    if (first > 0 && second > 0) /* all axes are equal in text */
        d->rope[0].style = d->rope[1].style = ROPE_NEOX;
}

static void adapt_glm4moe(model_reader *r)
{
    model_ignore_key(r, "rope.dimension_sections");
}

const architecture arch_glm[] = {
    {
        .name = "glm4",
        .rope_base = 10000,
        .features = FEATURE_NEXTN,
        .required = TENSOR_LIST(POST_NORMS),
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale"),
        .may_fuse_gate_up = true,
        .adapt = adapt_glm4,
    },
    {
        .name = "glm4moe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_NEXTN,
        .gating = GATING_SIGMOID,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(TENSOR_PRE_FFN_NORM, TENSOR_EXP_PROBS_B),
        .optional = TENSOR_LIST(QKV_BIASES, QK_NORMS),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt_glm4moe,
    },
    ARCHITECTURE_END,
};
