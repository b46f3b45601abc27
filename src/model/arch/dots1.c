/* dots.llm1: norms of q's and k's heads, and experts beside a shared expert. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    model_required_number(r, "expert_gating_func");
}

const architecture arch_dots1[] = {
    {
        .name = "dots1",
        .rope_style = ROPE_NEOX,
        .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_OWN_OUTPUT,
        .expert_rows = EXPERT_ROWS_OWN,
        .required = TENSOR_LIST(QK_NORMS),
        .optional = TENSOR_LIST(TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
