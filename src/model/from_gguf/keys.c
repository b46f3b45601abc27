/* Reads a GGUF file's keys, by llama.cpp's names and with its defaults. */
#include "model/from_gguf/architecture.h"

#include <math.h>
#include <string.h>

/* Reads head sizes. Heads of k and v, in all layers, must have one size. */
static void read_heads(model_reader *r)
{
    static const char one_size[] = "k and v have the same head size in all layers";
    decoder *d = &r->out->decoder;
    int64_t heads[DECODER_MOST_LAYERS], kv_heads[DECODER_MOST_LAYERS];
    bool mixed = r->architecture->features & FEATURE_MIXED;
    model_numbers(r, "attention.head_count", mixed ? 0 : 1, 0, heads);
    int64_t most = 1;
    for (int64_t l = 0; l < d->layers; l++)
        most = heads[l] > most ? heads[l] : most;
    model_numbers(r, "attention.head_count_kv", mixed ? 0 : 1, most, kv_heads);
    int64_t head_dim = model_number(r, "attention.key_length", 1, d->hidden / most);
    model_require_same(r, "attention.value_length", head_dim, one_size);
    model_require_same(r, "attention.key_length_swa", head_dim, one_size);
    model_require_same(r, "attention.value_length_swa", head_dim, one_size);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].num_heads = heads[l];
        d->at[l].num_kv_heads = kv_heads[l];
        d->at[l].head_dim = head_dim;
        d->at[l].attends = heads[l] > 0 && kv_heads[l] > 0;
    }
}

static void read_groups(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t groups = model_number(r, "expert_group_count", 0, 0);
    int64_t used = model_number(r, "expert_group_used_count", 0, 0);
    if (groups < 2)
        return;
    if (d->experts % groups || used < 1 || used > groups)
        model_bad_key(r,
                      "expert_group_count = %lld with expert_group_used_count = %lld and "
                      "expert_count = %lld; the groups must divide the experts, and 1 to all of "
                      "them are used",
                      (long long)groups, (long long)used, (long long)d->experts);
    d->expert_groups = groups;
    d->expert_groups_used = used;
}

static void read_experts(model_reader *r)
{
    static const int64_t gatings[] = { GATING_SOFTMAX, GATING_SIGMOID, GATING_SOFTMAX_OF_CHOSEN };
    decoder *d = &r->out->decoder;
    bool required = r->architecture->features & FEATURE_EXPERTS_ALWAYS;
    d->experts =
        required ? model_required_number(r, "expert_count") : model_number(r, "expert_count", 0, 0);
    if (!d->experts) {
        static const char *const others[] = {
            "expert_used_count",          "expert_shared_count",
            "expert_feed_forward_length", "expert_shared_feed_forward_length",
            "expert_gating_func",         "expert_weights_scale",
            "expert_weights_norm",        "leading_dense_block_count"
        };
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            model_ignore_key(r, others[i]);
        return;
    }
    d->experts_used = model_required_number(r, "expert_used_count");
    static const char own_rows[] = "expert_feed_forward_length";
    int64_t rows_from = r->architecture->expert_rows;
    if (model_find_key(r, own_rows) || rows_from == EXPERT_ROWS_OWN)
        d->expert_ff = model_required_number(r, own_rows);
    else
        d->expert_ff = model_required_number(r, "feed_forward_length") /
                       (rows_from == EXPERT_ROWS_OF_ALL ? 1 : d->experts_used);
    d->shared_ff = model_number(r, "expert_shared_count", 0, 0) * d->expert_ff;
    d->shared_ff = model_number(r, "expert_shared_feed_forward_length", 0, d->shared_ff);
    int64_t leading = model_number(r, "leading_dense_block_count", 0, 0);
    if (d->experts_used > d->experts)
        model_bad_key(r, "expert_used_count = %lld is more than expert_count = %lld",
                      (long long)d->experts_used, (long long)d->experts);
    if (leading >= d->layers)
        model_bad_key(r, "leading_dense_block_count = %lld leaves none of %lld layers with experts",
                      (long long)leading, (long long)d->layers);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].is_routed = l >= leading;
        d->at[l].is_dense = l < leading;
    }
    read_groups(r);
    double scale = model_real(r, "expert_weights_scale", 0);
    int64_t gating = r->architecture->features & FEATURE_GATING_KEY
                         ? model_required_number(r, "expert_gating_func")
                         : model_number(r, "expert_gating_func", 0, 0); /* 0 = the default */
    if (gating > (int64_t)(sizeof gatings / sizeof *gatings))
        model_bad_key(
            r,
            "expert_gating_func = %lld is unknown; known are 1 (softmax), 2 (sigmoid) and "
            "3 (softmax of the chosen)",
            (long long)gating);
    else
        d->gating = gating ? gatings[gating - 1] : r->architecture->gating;
    d->experts_normed = model_flag(r, "expert_weights_norm", r->architecture->experts_normed);
    d->experts_scale = scale < 1 || scale > 1 ? scale : 0;
}

static void read_sizes(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t layers = model_required_number(r, "block_count"), further = 0;
    if (r->architecture->features & FEATURE_NEXTN) /* the last layers predict further tokens */
        further = model_number(r, "nextn_predict_layers", 0, 0);
    if (further >= layers)
        model_bad_key(r, "nextn_predict_layers = %lld leaves none of %lld layers to the decoder",
                      (long long)further, (long long)layers);
    r->out->further_layers = further;
    d->layers = further < layers ? layers - further : layers;
    d->hidden = model_required_number(r, "embedding_length");
    if (d->layers > DECODER_MOST_LAYERS) {
        model_bad_key(r, "block_count = %lld is too large; the largest is %d", (long long)d->layers,
                      DECODER_MOST_LAYERS);
        d->layers = 1;
        return;
    }
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].attends = d->at[l].is_dense = 1;
        d->at[l].cache = l;
    }
    if (r->architecture->read_heads)
        r->architecture->read_heads(r);
    else
        read_heads(r);
    if (r->architecture->features & FEATURE_EXPERTS)
        read_experts(r);
    if (r->architecture->adapt_layers)
        r->architecture->adapt_layers(r);
    int64_t ff[DECODER_MOST_LAYERS] = { 0 };
    if (decoder_first_layer(d, PART_DENSE) >= 0)
        model_numbers(r, "feed_forward_length", r->architecture->features & FEATURE_MIXED ? 0 : 1,
                      0, ff);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].is_dense &= ff[l] > 0;
        d->at[l].ff = d->at[l].is_dense ? ff[l] : 0;
    }
    model_ignore_key(r, "feed_forward_length");
}

/* Reads YaRN's keys. The default magnitude of cos and sin is 1 + 0.1 ln factor. Models that scale
 * their scores instead divide it by 1 + 0.1 multiplier ln factor. */
static void read_yarn(model_reader *r, rope_options *rope, double factor, double *magnitude)
{
    static const char multiplier_name[] = "rope.scaling.yarn_log_multiplier";
    rope->scaling = ROPE_YARN;
    rope->factor = factor > 0 ? factor : 1;
    rope->original_context =
        (double)model_number(r, "rope.scaling.original_context_length", 1, r->out->context_length);
    rope->extension = model_real(r, "rope.scaling.yarn_ext_factor", 1);
    rope->beta_fast = model_real(r, "rope.scaling.yarn_beta_fast", 32);
    rope->beta_slow = model_real(r, "rope.scaling.yarn_beta_slow", 1);
    if (rope->extension > 0) {
        bool divides = r->architecture->features & FEATURE_YARN_LOG;
        double multiplier = divides ? model_real(r, multiplier_name, 0) : 0;
        double growth = rope->factor > 1 ? 0.1 * log(rope->factor) : 0;
        *magnitude *= (1 + growth) / (1 + multiplier * growth);
    } else {
        *magnitude *= model_real(r, "rope.scaling.yarn_attn_factor", 1);
    }
    model_ignore_key(r, "rope.scaling.yarn_attn_factor");
    model_ignore_key(r, multiplier_name);
}

static void read_scaling(model_reader *r, rope_options *rope)
{
    const char *type = model_text(r, "rope.scaling.type", "linear");
    double old = model_real(r, "rope.scale_linear", 0);
    double factor = model_real(r, "rope.scaling.factor", old);
    double magnitude = model_real(r, "rope.scaling.attn_factor", 1);
    bool is_linear = strcmp(type, "linear") == 0;
    bool divides = factor > 0 && (factor < 1 || factor > 1);
    if (is_linear && divides) {
        rope->scaling = ROPE_LINEAR;
        rope->factor = factor;
    } else if (strcmp(type, "yarn") == 0) {
        read_yarn(r, rope, factor, &magnitude);
    } else if (!is_linear && strcmp(type, "none") != 0 &&
               !(r->architecture->has_long_factors && strcmp(type, "longrope") == 0)) {
        model_bad_key(r, "rope.scaling.type = '%s' is unknown; known are %s", type,
                      r->architecture->has_long_factors ? "none, linear, yarn and longrope"
                                                        : "none, linear and yarn");
    }
    if (!divides && (is_linear || strcmp(type, "none") == 0))
        model_note_same(r, "rope.scaling.type", is_linear ? "none" : "linear");
    rope->magnitude = magnitude < 1 || magnitude > 1 ? magnitude : 0;
    model_ignore_key(r, "rope.scaling.original_context_length");
}

rope_options model_plain_rope(int64_t style, int64_t dims)
{
    return (rope_options){ .style = style,
                           .dims = dims,
                           .base = 10000,
                           .factor = 1,
                           .extension = 1,
                           .beta_fast = 32,
                           .beta_slow = 1 };
}

void model_read_keys(model_reader *r, const model_options *options)
{
    decoder *d = &r->out->decoder;
    const architecture *of = r->architecture;
    d->architecture = of->name;
    d->activation = of->activation;
    d->qk_norm = of->qk_norm;
    d->layer_norm = (of->features & FEATURE_LAYER_NORM) != 0;
    d->no_pre_norms = (of->features & FEATURE_NO_PRE_NORMS) != 0;
    d->parallel = (of->features & FEATURE_PARALLEL) != 0;
    d->no_gates = (of->features & FEATURE_NO_GATES) != 0;
    const char *key, *feature = model_missing_feature(r, &key);
    if (feature) {
        model_error(r, DIAG_BAD_MODEL_KEY, "%s: architecture %s is not supported with %s", key,
                    r->architecture->name, feature);
        return;
    }
    r->out->context_length = model_required_number(r, "context_length");
    read_sizes(r);
    int64_t first = decoder_first_layer(d, PART_ATTENTION),
            head = first < 0 ? 0 : d->at[first].head_dim;
    d->rope[0] = model_plain_rope(of->rope_style, model_number(r, "rope.dimension_count", 2, head));
    d->rope[0].base = of->rope_base > 0 ? model_real(r, "rope.freq_base", of->rope_base)
                                        : model_required_real(r, "rope.freq_base");
    if (!(of->features & FEATURE_FULL_FACTORS))
        model_require_same(r, "rope.dimension_count_swa", d->rope[0].dims,
                           "all layers rotate the same number of values");
    read_scaling(r, &d->rope[0]);
    d->rope[1] = d->rope[0];
    int64_t context = r->out->context_length;
    int64_t usual = context < MODEL_USUAL_POSITIONS ? context : MODEL_USUAL_POSITIONS;
    d->max_seq_len = options->max_seq_len ? options->max_seq_len : usual;
    d->kv_type = options->kv_type < 0 ? KV_F16 : options->kv_type;
    d->precision = PRECISION_Q8;
    d->m[d->m_count++] = 1;
    d->m[d->m_count++] = DECODER_FEW_ROWS;
    d->sequences = 1;
    static const char of_rms[] = "attention.layer_norm_rms_epsilon",
                      of_layer[] = "attention.layer_norm_epsilon";
    if (of->features & FEATURE_NORM_BY_KEY && model_find_key(r, of_rms))
        d->layer_norm = 0;
    if (of->features & FEATURE_TWO_EPSILONS)
        d->epsilon = model_real(r, of_rms, model_required_real(r, of_layer));
    else
        d->epsilon = model_required_real(r, d->layer_norm ? of_layer : of_rms);
    if (!d->layer_norm) /* converters copy it from any config */
        model_ignore_key(r, of_layer);
    d->attention_scale = model_real(r, "attention.scale", 0);
}

void model_read_sections(model_reader *r)
{
    enum { AXES = 4 };
    const gguf_key *key = model_use_key(r, "rope.dimension_sections");
    decoder *d = &r->out->decoder;
    int64_t sections[AXES] = { 0 }, pairs = d->rope[0].dims / 2;
    bool right = key && key->is_array && key->count == AXES, all = true;
    if (r->diags->errors)
        return; /* dims may be wrong */
    for (uint64_t i = 0; right && i < key->count; i++)
        right = gguf_get_i64(key, i, &sections[i]) && sections[i] >= 0 && sections[i] <= pairs;
    if (key && (!right || sections[0] + sections[1] + sections[2] != pairs))
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "%s is not a list of four lengths, of which the first three add up to "
                    "rope.dimension_count / 2 = %lld",
                    key->name, (long long)pairs);
    for (int64_t i = 0; i < pairs; i++)
        all &= i / ROPE_AXES < sections[i % ROPE_AXES];
    for (int axis = 0; right && !all && axis < ROPE_AXES; axis++)
        d->rope[0].sections[axis] = d->rope[1].sections[axis] = sections[axis];
}

void model_read_mamba2(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->recurrence = RECURRENCE_MAMBA2;
    d->conv_kernel = model_required_number(r, "ssm.conv_kernel");
    d->inner = model_required_number(r, "ssm.inner_size");
    d->state_size = model_required_number(r, "ssm.state_size");
    d->state_heads = model_required_number(r, "ssm.time_step_rank");
    d->state_groups = model_required_number(r, "ssm.group_count");
    if (d->inner % d->state_heads || d->state_heads % d->state_groups)
        model_bad_key(
            r,
            "ssm.time_step_rank = %lld does not divide ssm.inner_size = %lld, or is not a "
            "multiple of ssm.group_count = %lld",
            (long long)d->state_heads, (long long)d->inner, (long long)d->state_groups);
}

void model_read_temperature(model_reader *r)
{
    decoder *d = &r->out->decoder;
    double scale = model_real(r, "attention.temperature_scale", 0);
    double length = (double)model_number(r, "attention.temperature_length", 0, 0);
    if (scale <= 0)
        return;
    if (length <= 0)
        length = d->rope[0].original_context;
    if (length <= 0)
        model_bad_key(r, "attention.temperature_scale needs attention.temperature_length or "
                         "rope.scaling.original_context_length");
    for (int i = 0; i < 2; i++) {
        d->rope[i].temperature_scale = scale;
        d->rope[i].temperature_length = length;
    }
}

void model_scale_embedding(model_reader *r)
{
    decoder *d = &r->out->decoder;
    d->embedding_scale = sqrt((double)d->hidden);
}

void model_turn_windowed(model_reader *r)
{
    decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++)
        d->at[l].unturned = d->at[l].attends && !d->at[l].windowed;
}

void model_windows(model_reader *r, int64_t window, int64_t period)
{
    static const char pattern[] = "attention.sliding_window_pattern";
    decoder *d = &r->out->decoder;
    const gguf_key *key = model_find_key(r, pattern);
    bool by_layer = key && key->is_array, any = false;
    if (by_layer)
        model_use_key(r, pattern);
    else
        period = model_number(r, pattern, 1, period);
    for (int64_t l = 0; window && l < d->layers; l++) {
        bool windowed = l % period < period - 1;
        if (by_layer && !gguf_get_bool(key, (uint64_t)l, &windowed))
            model_error(r, DIAG_BAD_MODEL_KEY, "%s has no value for layer %lld", key->name,
                        (long long)l);
        d->at[l].windowed = windowed && d->at[l].attends;
        any |= d->at[l].windowed;
    }
    d->window = any ? window : 0;
    if (any)
        d->rope[1].base = model_real(r, "rope.freq_base_swa", d->rope[0].base);
}

void model_check_keys(model_reader *r)
{
    static const char window_name[] = "attention.sliding_window";
    const char *prefix = arena_format(r->arena, "%s.", r->architecture->name);
    const gguf_key *window_key = model_find_key(r, window_name);
    int64_t window;
    model_ignore_key(r, "vocab_size"); /* these do not affect the computation */
    model_ignore_key(r, "tensor_data_layout");
    model_ignore_key(r, "use_parallel_residual"); /* of all models, by a converter of 2024 */
    model_ignore_key(r, "rope.scaling.finetuned");
    /* A window that no layer has is irrelevant if it covers max_seq_len. */
    if (gguf_get_i64(window_key, 0, &window) &&
        (window <= 0 || window >= r->out->decoder.max_seq_len))
        model_note_number(r, window_name, (double)window, true);
    for (const char *const *key = r->architecture->void_keys; key && *key; key++)
        model_ignore_key(r, *key);
    for (size_t i = 0; i < r->file->key_count; i++) {
        const char *name = r->file->keys[i].name;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        model_ignore_void(r, name + strlen(prefix));
        if (!r->known_keys[i])
            model_error(r, DIAG_BAD_MODEL_KEY,
                        "%s is not supported; ignoring it could change the logits", name);
    }
}

const char *model_missing_feature(model_reader *r, const char **key)
{
    static const char recurrent[] = "recurrent layers (delta net or SSM)",
                      latent[] = "multi-head latent attention", experts[] = "a mixture of experts";
    static const struct {
        const char *name, *feature;
        unsigned taken_with; /* FEATURE_ of architectures that read the key; 0 = none */
    } features[] = {
        { "ssm.conv_kernel", recurrent, FEATURE_RECURRENT },
        { "attention.kv_lora_rank", latent, FEATURE_LATENT },
        { "attention.q_lora_rank", latent, FEATURE_LATENT },
        { "expert_count", experts, FEATURE_EXPERTS },
        { "expert_used_count", experts, FEATURE_EXPERTS },
        { "expert_feed_forward_length", experts, FEATURE_EXPERTS },
        { "expert_shared_count", experts, FEATURE_EXPERTS },
        { "leading_dense_block_count", experts, FEATURE_EXPERTS },
        { "nextn_predict_layers", "layers that predict further tokens", FEATURE_NEXTN },
    };
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        if (r->architecture->features & features[i].taken_with)
            continue;
        const gguf_key *found = model_find_key(r, features[i].name);
        int64_t number;
        if (!found || (gguf_get_i64(found, 0, &number) && number == 0)) {
            model_number(r, features[i].name, 0, 0);
            continue;
        }
        *key = found->name;
        return features[i].feature;
    }
    return NULL;
}
