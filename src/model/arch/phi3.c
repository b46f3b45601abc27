/* Phi-3, 3.5, 4 and 4-mini: a llama layer with fused q, k, v and fused gate and up. RoPE's angles
 * are divided by one of two tensors: the long factors if max_seq_len exceeds the original context,
 * else the short ones. The file's sliding window is ignored, as in llama.cpp. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t window = model_number(r, "attention.sliding_window", 0, 0);
    if (window < d->max_seq_len)
        r->out->ignored_window = window;
    model_choose_factors(r);
}

const architecture arch_phi3[] = {
    {
        .name = "phi3",
        .rope_style = ROPE_NEOX,
        .rope_base = 10000,
        .optional = TENSOR_LIST(TENSOR_ATTN_QKV_BIAS, TENSOR_OUTPUT_BIAS),
        .may_fuse_gate_up = true,
        .has_long_factors = true,
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
