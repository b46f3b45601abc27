/* The keys of gated delta nets, which stand in place of attention in some layers. */
#include "model/arch/architecture.h"

enum { USUAL_INTERVAL = 4 };

/* The layers by a list of them; those that predict further tokens have values as well. */
static void read_list(model_reader *r, const gguf_key *key)
{
    decoder *d = &r->out->decoder;
    int64_t recurrent = 0;
    for (int64_t l = 0; l < d->layers; l++) {
        int64_t is = 0;
        if (!gguf_get_i64(key, (uint64_t)l, &is)) {
            model_error(r, DIAG_BAD_MODEL_KEY, "%s says nothing of layer %lld", key->name,
                        (long long)l);
            return;
        }
        d->recurrent[l] = is != 0;
        recurrent += is != 0;
    }
    if (!recurrent || recurrent == d->layers)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s has %s of %lld layers: there are layers of both kinds", key->name,
                    recurrent ? "all" : "none", (long long)d->layers);
}

static void read_layers(model_reader *r)
{
    static const char list[] = "attention.recurrent_layers", name[] = "full_attention_interval";
    decoder *d = &r->out->decoder;
    int64_t interval = model_number(r, name, 1, USUAL_INTERVAL);
    if (model_has_key(r, list)) {
        read_list(r, model_use_key(r, list));
        return;
    }
    for (int64_t l = 0; l < d->layers; l++)
        d->recurrent[l] = (l + 1) % interval != 0;
    if (interval < 2 || interval > d->layers)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.%s = %lld is not from 2 to %lld, the number of layers: there are layers of "
                    "both kinds",
                    r->architecture->name, name, (long long)interval, (long long)d->layers);
}

void model_read_delta_nets(model_reader *r, int64_t layout)
{
    decoder *d = &r->out->decoder;
    read_layers(r);
    d->delta_layout = layout;
    d->delta_key_heads = model_required_number(r, "ssm.group_count");
    d->delta_value_heads = model_required_number(r, "ssm.time_step_rank");
    d->delta_head_dim = model_required_number(r, "ssm.state_size");
    model_required_number(r, "ssm.conv_kernel");
    model_require_same(r, "ssm.conv_kernel", DELTA_CONV, "the inputs that a convolution is over");
    model_require_same(r, "ssm.inner_size", d->delta_value_heads * d->delta_head_dim,
                       "it is ssm.time_step_rank * ssm.state_size");
    if (d->delta_value_heads % d->delta_key_heads)
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s.ssm.time_step_rank = %lld is not a multiple of ssm.group_count = %lld",
                    r->architecture->name, (long long)d->delta_value_heads,
                    (long long)d->delta_key_heads);
}
