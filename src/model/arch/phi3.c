/* Phi-3, 3.5, 4 and 4-mini: a llama layer with fused q, k, v and fused gate and up. RoPE's angles
 * are divided by one of two tensors: the long factors if max_seq_len exceeds the original context,
 * else the short ones. The file's sliding window is ignored, as in llama.cpp. */
#include "model/from_gguf/architecture.h"

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t original =
        model_number(r, "rope.scaling.original_context_length", 1, r->out->context_length);
    int64_t window = model_number(r, "attention.sliding_window", 0, 0);
    if (window < d->max_seq_len)
        r->out->ignored_window = window;
    if (!gguf_find(r->file, tensor_infos[TENSOR_ROPE_LONG].name) &&
        !gguf_find(r->file, tensor_infos[TENSOR_ROPE_SHORT].name))
        return;
    bool is_long = d->max_seq_len > original;
    r->out->original_context = original;
    d->has[is_long ? TENSOR_ROPE_LONG : TENSOR_ROPE_SHORT] = 1;
    model_ignore_tensor(r, TENSOR_ROPE_SHORT); /* only one of the two is used */
    model_ignore_tensor(r, TENSOR_ROPE_LONG);
    d->rope[0].factors = d->rope[1].factors = 1;
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
