/* The keys of a mixture of experts, with the defaults of the architecture. */
#include "model/arch/experts.h"

static int64_t read_gating(model_reader *r)
{
    enum { SOFTMAX = 1, SIGMOID, SOFTMAX_OF_CHOSEN };
    static const char name[] = "expert_gating_func";
    int64_t number = model_number(r, name, 0, 0);
    switch (number) {
    case 0:
        return r->architecture->gating;
    case SOFTMAX:
        return GATING_SOFTMAX;
    case SIGMOID:
        return GATING_SIGMOID;
    case SOFTMAX_OF_CHOSEN:
        return GATING_SOFTMAX_OF_CHOSEN;
    default:
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.%s = %lld is unknown; there are 1 (softmax), 2 (sigmoid) and 3 (softmax of "
                    "the chosen)",
                    r->architecture->name, name, (long long)number);
        return 0;
    }
}

/* Rows of an expert's ffn_up, where they have no key of their own by that of dense layers. */
static int64_t read_rows(model_reader *r)
{
    static const char own[] = "expert_feed_forward_length", all[] = "feed_forward_length";
    int64_t used = r->out->decoder.experts_used;
    if (model_has_key(r, own) || r->architecture->expert_rows == EXPERT_ROWS_OWN)
        return model_required_number(r, own);
    int64_t rows = model_required_number(r, all);
    return r->architecture->expert_rows == EXPERT_ROWS_OF_ALL ? rows : rows / used;
}

static void read_groups(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t groups = model_number(r, "expert_group_count", 0, 0);
    int64_t used = model_number(r, "expert_group_used_count", 0, 0);
    if (groups < 2)
        return;
    if (d->experts % groups || used < 1 || used > groups)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.expert_group_count = %lld with expert_group_used_count = %lld and "
                    "expert_count = %lld: groups divide the experts, and up to all are used",
                    r->architecture->name, (long long)groups, (long long)used,
                    (long long)d->experts);
    d->expert_groups = groups;
    d->expert_groups_used = used;
}

static void read_sizes(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->experts_used = model_required_number(r, "expert_used_count");
    d->expert_ff = read_rows(r);
    d->shared_ff = model_number(r, "expert_shared_count", 0, 0) * d->expert_ff;
    d->shared_ff = model_number(r, "expert_shared_feed_forward_length", 0, d->shared_ff);
    d->dense_layers = model_number(r, "leading_dense_block_count", 0, 0);
    if (d->experts_used > d->experts)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.expert_used_count = %lld is more than expert_count = %lld",
                    r->architecture->name, (long long)d->experts_used, (long long)d->experts);
    if (d->dense_layers >= d->layers)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.leading_dense_block_count = %lld leaves no layer of %lld that has experts",
                    r->architecture->name, (long long)d->dense_layers, (long long)d->layers);
}

void model_read_experts(model_reader *r)
{
    static const char count[] = "expert_count";
    decoder *d = &r->out->decoder;
    bool required = r->architecture->features & FEATURE_EXPERTS_ALWAYS;
    d->experts = required ? model_required_number(r, count) : model_number(r, count, 0, 0);
    if (!d->experts) {
        model_ignore_key(r, "expert_used_count");
        return;
    }
    read_sizes(r);
    read_groups(r);
    double scale = model_real(r, "expert_weights_scale", 0);
    d->gating = read_gating(r);
    d->experts_normed = model_flag(r, "expert_weights_norm", r->architecture->experts_normed);
    d->experts_scale = scale < 1 || scale > 1 ? scale : 0;
}
