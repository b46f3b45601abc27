/* gpt-oss: attention with a sink logit per head, a window in every other layer, biases on all
 * products, and experts with clamped SwiGLU. The norm before the experts is named
 * post_attention_norm. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    enum { PERIOD = 2 };
    model_windows(r, model_required_number(r, "attention.sliding_window"), PERIOD);
}

const architecture arch_gpt_oss[] = {
    {
        .name = "gpt-oss",
        .rope_style = ROPE_NEOX,
        .activation = ACTIVATION_SWIGLU_OAI,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS,
        .gating = GATING_SOFTMAX_OF_CHOSEN,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS,
                                TENSOR_ATTN_SINKS, TENSOR_ATTN_OUTPUT_BIAS, TENSOR_PRE_FFN_NORM,
                                TENSOR_FFN_GATE_INP_BIAS, TENSOR_FFN_GATE_EXPS_BIAS,
                                TENSOR_FFN_UP_EXPS_BIAS, TENSOR_FFN_DOWN_EXPS_BIAS),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
