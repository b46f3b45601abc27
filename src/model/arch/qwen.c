/* Qwen2 and 2.5: a llama layer with biases on q, k and v. Qwen3: RMS norm of each head of q and k
 * before RoPE, dense or with experts but no shared expert; Qwen3-VL likewise for text, with RoPE by
 * sections. Qwen 1.5 and 2 with experts: these beside a gated shared expert. */
#include "model/from_gguf/architecture.h"

static void adapt_qwen2moe(model_reader *r)
{
    decoder *d = &r->out->decoder;
    if (!d->shared_ff)
        d->shared_ff = model_required_number(r, "feed_forward_length");
}

static void adapt_qwen3vl(model_reader *r)
{
    if (!model_find_key(r, "rope.dimension_sections"))
        model_bad_key(r, "rope.dimension_sections is missing");
    model_read_sections(r);
}

const architecture arch_qwen[] = {
    {
        .name = "qwen2",
        .rope_style = ROPE_NEOX,
        .optional = TENSOR_LIST(QKV_BIASES, TENSOR_OUTPUT_BIAS),
    },
    {
        .name = "qwen3",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(QK_NORMS),
    },
    {
        .name = "qwen3moe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_SHARED_OUT,
        .required = TENSOR_LIST(QK_NORMS),
    },
    {
        .name = "qwen2moe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_OWN_OUTPUT,
        .expert_rows = EXPERT_ROWS_SHARED_OUT,
        .required = TENSOR_LIST(TENSOR_FFN_GATE_INP_SHEXP),
        .optional = TENSOR_LIST(QKV_BIASES),
        .void_keys = KEY_LIST("attention.scale", "expert_gating_func", "expert_weights_norm",
                              "expert_weights_scale", "expert_shared_count"),
        .adapt = adapt_qwen2moe,
    },
    {
        .name = "qwen3vl",
        .rope_style = ROPE_NEOX,
        .required = TENSOR_LIST(QK_NORMS),
        .void_keys = KEY_LIST("attention.scale", "n_deepstack_layers"),
        .adapt = adapt_qwen3vl,
    },
    {
        .name = "qwen3vlmoe",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS),
        .void_keys = KEY_LIST("attention.scale", "n_deepstack_layers", "expert_gating_func",
                              "expert_weights_norm", "expert_weights_scale"),
        .adapt = adapt_qwen3vl,
    },
    ARCHITECTURE_END,
};
