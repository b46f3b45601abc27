/* Muse Glimmer: normed embeddings, norms before and after attention and feed-forward, the latter with
 * an epsilon of 1e-8, norms of heads, a gate per value of attention's output, windows in three of four
 * layers with RoPE in those only, and scaled and capped logits. */
#include "model/from_gguf/architecture.h"

static const double POST_NORM_EPSILON = 1e-8, USUAL_CAP = 30;

static void adapt(model_reader *r)
{
    enum { PERIOD = 4 };
    decoder *d = &r->out->decoder;
    d->embedding_norm = 1;
    d->post_norm_epsilon = POST_NORM_EPSILON;
    d->attention_gate = ATTENTION_GATE_VALUES;
    d->logit_scale = model_required_real(r, "logit_scale");
    d->final_softcap = model_real(r, "final_logit_softcapping", USUAL_CAP);
    model_windows(r, model_required_number(r, "attention.sliding_window"), PERIOD);
    model_turn_windowed(r);
    double base = d->rope[1].base;
    d->rope[1] = model_plain_rope(ROPE_NORM, d->rope[0].dims);
    d->rope[1].base = base;
}

const architecture arch_muse[] = {
    {
        .name = "muse-glimmer",
        .features = FEATURE_OWN_OUTPUT,
        .required = TENSOR_LIST(QK_NORMS, POST_NORMS),
        .void_keys = KEY_LIST("attention.scale"),
        .adapt = adapt,
    },
    ARCHITECTURE_END,
};
