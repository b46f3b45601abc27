/* dots.llm1: norms of q's and k's heads, and experts beside a shared expert. */
#include "model/from_gguf/architecture.h"

const architecture arch_dots1[] = {
    {
        .name = "dots1",
        .rope_style = ROPE_NEOX,
        .features =
            FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_GATING_KEY | FEATURE_OWN_OUTPUT,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale"),
    },
    ARCHITECTURE_END,
};
