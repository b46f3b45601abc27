/* MiniMax M2: RMS norms of whole rows of q and k, RoPE of half of each head, and experts chosen by
 * scores with a bias. */
#include "model/from_gguf/architecture.h"

const architecture arch_minimax[] = {
    {
        .name = "minimax-m2",
        .rope_style = ROPE_NEOX,
        .qk_norm = QK_NORM_ROW,
        .features =
            FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_GATING_KEY | FEATURE_OWN_OUTPUT,
        .experts_normed = true,
        .expert_rows = EXPERT_ROWS_OF_ALL,
        .required = TENSOR_LIST(QK_NORMS, TENSOR_EXP_PROBS_B),
        .void_keys = KEY_LIST("attention.scale", "expert_weights_norm", "expert_weights_scale",
                              "expert_feed_forward_length", "expert_shared_count",
                              "leading_dense_block_count"),
    },
    ARCHITECTURE_END,
};
