/* Qwen3.5: as Qwen3-Next, but that value heads are tiled over the key heads and have their betas
 * and alphas of two matrices; dense, or with experts. A pair of RoPE turns by one of up to four
 * positions of a token, those of an image say, and of text all but the fourth are its position:
 * NEOX. */
#include "model/arch/architecture.h"

enum { AXES = 4, AXES_OF_TEXT = 3 };

static const uint8_t of_dense[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_PRE_FFN_NORM,
                                    TENSOR_COUNT },
                     of_experts[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM, TENSOR_PRE_FFN_NORM,
                                      TENSOR_FFN_GATE_INP_SHEXP, TENSOR_COUNT };

/* Whether no pair turns by the fourth position. Pairs take the first three by turns; a section's
 * length is how often its position's turn comes. */
static bool is_of_text(const int64_t *sections, int64_t pairs)
{
    int64_t all = 0;
    for (int i = 0; i < AXES; i++)
        all += sections[i];
    for (int64_t pair = 0; pair < pairs; pair++)
        if (!all || pair % all >= AXES_OF_TEXT * sections[pair % all % AXES_OF_TEXT])
            return false;
    return true;
}

static void check_sections(model_reader *r)
{
    const gguf_key *key = model_use_key(r, "rope.dimension_sections");
    int64_t sections[AXES] = { 0 }, pairs = r->out->decoder.rope[0].dims / 2;
    if (!key)
        return;
    bool right = key->is_array && key->count == AXES;
    for (uint64_t i = 0; right && i < key->count; i++)
        right = gguf_get_i64(key, i, &sections[i]) && sections[i] >= 0 && sections[i] <= pairs;
    if (!right)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s is no list of four lengths of up to rope.dimension_count / 2 = %lld",
                    key->name, (long long)pairs);
    else if (!is_of_text(sections, pairs))
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s leaves values to a fourth position, which text does not have: its first "
                    "three lengths are those of %lld pairs taken by turns",
                    key->name, (long long)pairs);
}

static void adapt(model_reader *r)
{
    decoder *d = &r->out->decoder;
    model_read_delta_nets(r, DELTA_TILED);
    check_sections(r);
    d->attention_gate = 1;
    model_required_number(r, "rope.dimension_count"); /* a part of a head turns */
    if (d->experts && !d->shared_ff)
        d->shared_ff = model_required_number(r, "feed_forward_length");
}

const architecture model_qwen35 = {
    .name = "qwen35",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_RECURRENT | FEATURE_NEXTN,
    .required = of_dense,
    .adapt = adapt,
};

const architecture model_qwen35moe = {
    .name = "qwen35moe",
    .rope_style = ROPE_NEOX,
    .activation = ACTIVATION_SILU,
    .features = FEATURE_EXPERTS | FEATURE_EXPERTS_ALWAYS | FEATURE_RECURRENT | FEATURE_NEXTN,
    .gating = GATING_SOFTMAX,
    .experts_normed = true,
    .expert_rows = EXPERT_ROWS_SHARED_OUT,
    .may_fuse_experts = true,
    .required = of_experts,
    .adapt = adapt,
};
