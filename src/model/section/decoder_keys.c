#include "model/section/decoder_keys.h"

#include <string.h>

const char FORMATS_PREFIX[] = "weights.";
const char METADATA_PREFIX[] = "metadata.";

enum { MOST_SEQUENCES = 1024, MOST_HEADS = 65535 };

static const choice rope_styles[] = {
    [ROPE_NORM] = { "norm", NULL },
    [ROPE_NEOX] = { "neox", NULL },
    [ROPE_NONE] = { "none", NULL },
    { NULL, NULL },
};
static const choice rope_scalings[] = {
    [ROPE_UNSCALED] = { "none", NULL },
    [ROPE_LINEAR] = { "linear", NULL },
    [ROPE_YARN] = { "yarn", NULL },
    { NULL, NULL },
};
static const choice factor_tensors[] = {
    { "none", NULL }, { "tensor", NULL }, { "long", NULL }, { "short", NULL }, { NULL, NULL },
};
static const choice window_factors[] = { { "none", NULL }, { "tensor", NULL }, { NULL, NULL } };
static const choice logits_choices[] = { { "last", NULL }, { "all", NULL }, { NULL, NULL } };
static const choice next_choices[] = {
    [NEXT_NONE] = { "none", NULL },
    [NEXT_FETCHED] = { "fetched", NULL },
    { NULL, NULL },
};
static const choice gatings[] = {
    [GATING_SOFTMAX] = { "softmax", NULL },
    [GATING_SIGMOID] = { "sigmoid", NULL },
    [GATING_SOFTMAX_OF_CHOSEN] = { "softmax_of_chosen", NULL },
    { NULL, NULL },
};
static const choice no_yes[] = { { "no", NULL }, { "yes", NULL }, { NULL, NULL } };
static const choice gate_choices[] = { { "none", NULL }, { "sigmoid", NULL }, { NULL, NULL } };
static const choice sink_choices[] = { { "none", NULL }, { "add", NULL }, { NULL, NULL } };
static const choice ffn_norms[] = { { "ffn_norm", NULL },
                                    { "post_attention_norm", NULL },
                                    { NULL, NULL } };
static const choice window_caches[] = {
    [WINDOW_CACHE_RING] = { "ring", NULL },
    [WINDOW_CACHE_FULL] = { "full", NULL },
    { NULL, NULL },
};
static const uint8_t sinks[] = { TENSOR_ATTN_SINKS },
                     shared_gates[] = { TENSOR_FFN_GATE_INP_SHEXP },
                     pre_ffn_norms[] = { TENSOR_PRE_FFN_NORM };
static const choice output_choices[] = { { "own", NULL }, { "tied", NULL }, { NULL, NULL } };

static const choice bias_words[] = {
    { "attn_q", NULL },        { "attn_k", NULL },        { "attn_v", NULL },
    { "attn_qkv", NULL },      { "ffn_gate", NULL },      { "ffn_up", NULL },
    { "attn_output", NULL },   { "ffn_down", NULL },      { "ffn_gate_inp", NULL },
    { "exp_probs_b", NULL },   { "ffn_gate_exps", NULL }, { "ffn_up_exps", NULL },
    { "ffn_down_exps", NULL }, { "output", NULL },        { NULL, NULL },
};
static const uint8_t bias_tensors[] = {
    TENSOR_ATTN_Q_BIAS,        TENSOR_ATTN_K_BIAS,        TENSOR_ATTN_V_BIAS,
    TENSOR_ATTN_QKV_BIAS,      TENSOR_FFN_GATE_BIAS,      TENSOR_FFN_UP_BIAS,
    TENSOR_ATTN_OUTPUT_BIAS,   TENSOR_FFN_DOWN_BIAS,      TENSOR_FFN_GATE_INP_BIAS,
    TENSOR_EXP_PROBS_B,        TENSOR_FFN_GATE_EXPS_BIAS, TENSOR_FFN_UP_EXPS_BIAS,
    TENSOR_FFN_DOWN_EXPS_BIAS, TENSOR_OUTPUT_BIAS,
};
static const choice scale_words[] = {
    { "attn_q", NULL },      { "attn_k", NULL }, { "attn_v", NULL },   { "attn_qkv", NULL },
    { "ffn_gate", NULL },    { "ffn_up", NULL }, { "ffn_down", NULL }, { "output", NULL },
    { "attn_output", NULL }, { NULL, NULL },
};
static const uint8_t scale_tensors[] = {
    TENSOR_ATTN_Q_SCALE,   TENSOR_ATTN_K_SCALE,   TENSOR_ATTN_V_SCALE,
    TENSOR_ATTN_QKV_SCALE, TENSOR_FFN_GATE_SCALE, TENSOR_FFN_UP_SCALE,
    TENSOR_FFN_DOWN_SCALE, TENSOR_OUTPUT_SCALE,   TENSOR_ATTN_OUTPUT_SCALE,
};
static const choice norm_words[] = {
    { "attn_q_norm", NULL },   { "attn_k_norm", NULL }, { "post_attention_norm", NULL },
    { "post_ffw_norm", NULL }, { NULL, NULL },
};
static const uint8_t norm_tensors[] = {
    TENSOR_ATTN_Q_NORM,
    TENSOR_ATTN_K_NORM,
    TENSOR_POST_ATTENTION_NORM,
    TENSOR_POST_FFW_NORM,
};
static const choice fused_words[] = {
    { "attn_qkv", NULL },
    { "ffn_gate_up", NULL },
    { "ffn_gate_up_exps", NULL },
    { NULL, NULL },
};
static const uint8_t fused_tensors[] = { TENSOR_ATTN_QKV, TENSOR_FFN_GATE_UP,
                                         TENSOR_FFN_GATE_UP_EXPS };

static const real_range base_range = { .min = 1.0001, .max = 1e12, .def = 10000 };
static const real_range rope_factor_range = { .min = 1e-3, .max = 1e6, .def = 1 };
static const real_range context_range = {
    .min = 1, .max = UINT32_MAX, .def = 0, .def_text = "required"
};
static const real_range extension_range = { .min = 0, .max = 1, .def = 1 };
static const real_range beta_fast_range = { .min = 1e-3, .max = 1e6, .def = 32 };
static const real_range beta_slow_range = { .min = 1e-3, .max = 1e6, .def = 1 };
static const real_range scale_range = { .min = 1e-9, .max = 1e6, .def = 0, .def_text = "1" };
static const real_range magnitude_range = { .min = 1e-3, .max = 1e3, .def = 0, .def_text = "1" };
static const real_range attention_range = {
    .min = 1e-9, .max = 1e6, .def = 0, .def_text = "head_dim^-0.5"
};
static const real_range softcap_range = { .min = 1e-3, .max = 1e6, .def = 0, .def_text = "none" };
static const real_range temperature_range = {
    .min = 1e-9, .max = 1e3, .def = 0, .def_text = "none"
};

static bool has_dense(const decoder *d)
{
    return !d->experts || d->dense_layers > 0;
}

static bool has_no_latent(const decoder *d)
{
    return !d->latent;
}

static bool has_recurrent(const decoder *d)
{
    return memchr(d->recurrent, 1, sizeof d->recurrent);
}

static bool turns(const rope_options *rope)
{
    return rope->style != ROPE_NONE;
}

static bool is_scaled(const rope_options *rope)
{
    return turns(rope) && rope->scaling != ROPE_UNSCALED;
}

static bool is_yarn(const rope_options *rope)
{
    return turns(rope) && rope->scaling == ROPE_YARN;
}

static bool has_temperature(const rope_options *rope)
{
    return rope->temperature_scale > 0;
}

#define NUMBER(member) .number = offsetof(decoder, member)
static const setting_case with_experts = { NUMBER(experts), .said = "experts" },
                          with_dense = { .holds = has_dense,
                                         .said = "dense_layers",
                                         .usual = true },
                          with_shared = { NUMBER(shared_ff), .said = "shared_ff" },
                          with_groups = { NUMBER(expert_groups), .said = "expert_groups" },
                          with_latent = { NUMBER(latent), .said = "latent" },
                          without_latent = { .holds = has_no_latent,
                                             .said = "no latent",
                                             .usual = true },
                          with_recurrent = { .holds = has_recurrent, .said = "recurrent_layers" },
                          with_window = { NUMBER(window), .said = "window" };

/* Of RoPE of layers over the whole context, and of windowed ones, of which there have to be some.
 */
#define OF_ROPES(condition, key, value)                                   \
    {                                                                     \
        { .rope_holds = condition, .said = key value },                   \
        {                                                                 \
            NUMBER(window), .rope_holds = condition, .is_windowed = true, \
                            .said = key ".window" value                   \
        }                                                                 \
    }
static const setting_case with_rope[] = OF_ROPES(turns, "rope", " = norm or neox"),
                          when_scaled[] = OF_ROPES(is_scaled, "rope_scaling", " = linear or yarn"),
                          when_yarn[] = OF_ROPES(is_yarn, "rope_scaling", " = yarn"),
                          with_temperature[] = OF_ROPES(has_temperature, "temperature_scale", "");

static int64_t derive_head_dim(const decoder *d)
{
    return d->num_heads > 0 && d->hidden % d->num_heads == 0 ? d->hidden / d->num_heads : 0;
}

static int64_t derive_kv_heads(const decoder *d)
{
    return d->latent ? 1 : d->num_heads;
}

#define AT(id, member) .name = id, .field = offsetof(decoder, member)
#define SIZE           .min = 1, .max = INT32_MAX, .required = true

/* RoPE of layers over the whole context, i = 0, or of windowed ones, whose keys have a suffix and
 * are like those of the others where they are not given. */
#define ROPE_AT(i, id, suffix, member) \
    AT(id suffix, rope[i].member), .like = (size_t)(i)*offsetof(decoder, rope[0].member)
#define ROPE_SETTINGS(i, suffix, always)                                                        \
    { .key = { ROPE_AT(i, "rope", suffix, style), .choices = rope_styles,                       \
               .summary = "pairs 2i, 2i+1 or i, i+dims/2" },                                    \
      .when = always,                                                                           \
      .shown = !(i) },                                                                          \
        { .key = { ROPE_AT(i, "rope_base", suffix, base), .real = &base_range },                \
          .when = &with_rope[i],                                                                \
          .shown = !(i) },                                                                      \
        { .key = { AT("rope_dims" suffix, rope[i].dims),                                        \
                   .like = (i) ? offsetof(decoder, rope[0].dims) : offsetof(decoder, head_dim), \
                   .min = 2, .max = 256, .multiple_of = 2,                                      \
                   .summary = "values of a head that turn" },                                   \
          .when = &with_rope[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_scaling", suffix, scaling), .choices = rope_scalings },     \
          .when = &with_rope[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_factor", suffix, factor), .real = &rope_factor_range,       \
                   .required = !(i), .summary = "that divides positions" },                     \
          .when = &when_scaled[i] },                                                            \
        { .key = { ROPE_AT(i, "rope_original_context", suffix, original_context),               \
                   .real = &context_range, .required = !(i),                                    \
                   .summary = "positions trained for, of yarn" },                               \
          .when = &when_yarn[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_extension", suffix, extension), .real = &extension_range }, \
          .when = &when_yarn[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_beta_fast", suffix, beta_fast), .real = &beta_fast_range }, \
          .when = &when_yarn[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_beta_slow", suffix, beta_slow), .real = &beta_slow_range }, \
          .when = &when_yarn[i] },                                                              \
        { .key = { ROPE_AT(i, "rope_magnitude", suffix, magnitude), .real = &magnitude_range,   \
                   .summary = "of cos and sin" },                                               \
          .when = &with_rope[i],                                                                \
          .one_is_zero = true },                                                                \
        { .key = { ROPE_AT(i, "temperature_scale", suffix, temperature_scale),                  \
                   .real = &temperature_range,                                                  \
                   .summary = "q *= 1 + scale ln(1 + floor(position/length))" },                \
          .when = always },                                                                     \
    {                                                                                           \
        .key = { ROPE_AT(i, "temperature_length", suffix, temperature_length),                  \
                 .real = &context_range, .required = !(i) },                                    \
        .when = &with_temperature[i]                                                            \
    }

const setting decoder_settings[] = {
    { .key = { .name = "architecture", .summary = "a name; decides nothing" },
      .kind = SETTING_NAME,
      .range = "a word",
      .said = "custom" },
    { .key = { AT("layers", layers), .min = 1, .max = DECODER_MOST_LAYERS, .required = true } },
    { .key = { AT("hidden", hidden), SIZE, .summary = "values of a token between layers" } },
    { .key = { AT("experts", experts), .min = 1, .max = PROBLEM_MOST_EXPERTS, .zero_is_none = true,
               .summary = "feed-forwards a layer, of which some are used" } },
    { .key = { AT("experts_used", experts_used), .min = 1, .max = PROBLEM_MOST_EXPERTS_USED,
               .required = true, .summary = "by a token" },
      .when = &with_experts },
    { .key = { AT("expert_ff", expert_ff), SIZE, .summary = "rows of ffn_up_exps, of an expert" },
      .when = &with_experts },
    { .key = { AT("shared_ff", shared_ff), .min = 1, .max = INT32_MAX, .zero_is_none = true,
               .summary = "those of the expert of all tokens" },
      .when = &with_experts },
    { .key = { AT("dense_layers", dense_layers), .min = 1, .max = DECODER_MOST_LAYERS,
               .zero_is_none = true, .summary = "first layers, without experts" },
      .when = &with_experts },
    { .key = { AT("ff", ff), SIZE, .summary = "rows of ffn_up" }, .when = &with_dense },
    { .key = { AT("latent", latent), .min = PROBLEM_LATENT_UNIT, .max = PROBLEM_MOST_LATENT,
               .multiple_of = PROBLEM_LATENT_UNIT, .zero_is_none = true,
               .summary = "values that k and v of all heads are made of" } },
    { .key = { AT("q_rank", q_rank), .min = 8, .max = PROBLEM_MOST_Q_RANK, .multiple_of = 8,
               .zero_is_none = true, .summary = "rows of attn_q_a, in place of attn_q" },
      .when = &with_latent },
    { .key = { AT("value_dim", value_dim), .min = 8, .max = 256, .multiple_of = 8, .required = true,
               .summary = "values of a head of v" },
      .when = &with_latent },
    { .key = { AT("num_heads", num_heads), .min = 1, .max = MOST_HEADS, .required = true } },
    { .key = { AT("num_kv_heads", num_kv_heads), .min = 1, .max = MOST_HEADS },
      .derive = derive_kv_heads,
      .said = "num_heads, 1 with latent",
      .shown = true },
    { .key = { AT("head_dim", head_dim), .min = 4, .max = 256, .multiple_of = 4 },
      .derive = derive_head_dim,
      .said = "hidden/num_heads",
      .shown = true },
    { .key = { AT("vocab", vocab), .min = 1, .max = PROBLEM_MOST_VOCAB, .required = true,
               .summary = "tokens" } },
    { .key = { AT("norm_epsilon", epsilon), .real = &epsilon_range }, .shown = true },
    { .key = { AT("activation", activation), .choices = activation_choices,
               .summary = "of the gate" },
      .shown = true },
    { .key = { AT("gating", gating), .choices = gatings, .summary = "scores of experts" },
      .when = &with_experts,
      .shown = true },
    { .key = { AT("experts_normed", experts_normed), .choices = no_yes,
               .summary = "weights are divided by their sum" },
      .when = &with_experts,
      .shown = true },
    { .key = { AT("experts_scale", experts_scale), .real = &scale_range,
               .summary = "of the weights, after that" },
      .when = &with_experts,
      .one_is_zero = true },
    { .key = { AT("expert_groups", expert_groups), .min = 2, .max = PROBLEM_MOST_EXPERT_GROUPS,
               .zero_is_none = true, .summary = "of which the best are chosen first" },
      .when = &with_experts },
    { .key = { AT("expert_groups_used", expert_groups_used), .min = 1,
               .max = PROBLEM_MOST_EXPERT_GROUPS, .required = true },
      .when = &with_groups },
    { .key = { .name = "shared_gate",
               .choices = gate_choices,
               .summary = "of the expert of all tokens: ffn_gate_inp_shexp" },
      .kind = SETTING_TENSOR,
      .words = shared_gates,
      .when = &with_shared },
    { .key = { AT("recurrent_layers", recurrent), .summary = "gated delta nets, not attention" },
      .kind = SETTING_LAYERS,
      .range = "0..2, 4, 5..20:2",
      .said = "none" },
    { .key = { AT("delta_key_heads", delta_key_heads), .min = 1, .max = MOST_HEADS,
               .required = true, .summary = "heads of k and q of a delta net" },
      .when = &with_recurrent },
    { .key = { AT("delta_value_heads", delta_value_heads), .min = 1, .max = MOST_HEADS,
               .required = true, .summary = "heads of v, with a state each" },
      .when = &with_recurrent },
    { .key = { AT("delta_head_dim", delta_head_dim), .min = 32, .max = PROBLEM_MOST_DELTA_HEAD,
               .multiple_of = 32, .required = true },
      .when = &with_recurrent },
    { .key = { AT("delta_layout", delta_layout), .choices = layout_choices,
               .summary = "a value head's key head: h/r or h%key_heads" },
      .when = &with_recurrent },
    { .key = { AT("attention_gate", attention_gate), .choices = gate_choices,
               .summary = "of o, rows of attn_q behind each head" },
      .when = &without_latent },
    { .key = { .name = "sinks",
               .choices = sink_choices,
               .summary = "one more score a head: attn_sinks" },
      .kind = SETTING_TENSOR,
      .words = sinks,
      .when = &without_latent },
    { .key = { AT("window", window), .min = 1, .max = INT32_MAX, .zero_is_none = true,
               .summary = "positions, the query's own included" },
      .when = &without_latent },
    { .key = { AT("window_layers", windowed), .summary = "those that have it" },
      .kind = SETTING_LAYERS,
      .when = &with_window,
      .all_layers = true,
      .range = "0..3, 6, 8..20:2",
      .said = "all" },
    { .key = { AT("window_cache", window_cache), .choices = window_caches,
               .summary = "of the last positions alone, or of all" },
      .when = &with_window },
    ROPE_SETTINGS(0, "", NULL),
    { .key = { AT("rope_factors", rope[0].factors), .choices = factor_tensors,
               .summary = "rope_freqs, rope_factors_long or _short" },
      .kind = SETTING_FACTORS,
      .when = &with_rope[0] },
    ROPE_SETTINGS(1, ".window", &with_window),
    { .key = { AT("rope_factors.window", rope[1].factors), .choices = window_factors,
               .like = offsetof(decoder, rope[0].factors) },
      .when = &with_rope[1] },
    { .key = { AT("attention_scale", attention_scale), .real = &attention_range,
               .summary = "of q.k" } },
    { .key = { AT("attention_softcap", attention_softcap), .real = &softcap_range,
               .summary = "c of c tanh(score/c)" },
      .when = &without_latent },
    { .key = { AT("final_softcap", final_softcap), .real = &softcap_range,
               .summary = "the same of logits" } },
    { .key = { AT("embedding_scale", embedding_scale), .real = &scale_range },
      .one_is_zero = true },
    { .key = { AT("residual_scale", residual_scale), .real = &scale_range,
               .summary = "of what is added to h" },
      .one_is_zero = true },
    { .key = { AT("logit_scale", logit_scale), .real = &scale_range }, .one_is_zero = true },
    { .key = { .name = "fused", .choices = fused_words, .summary = "matrices that are one" },
      .kind = SETTING_TENSORS,
      .words = fused_tensors,
      .said = "none" },
    { .key = { .name = "biases", .choices = bias_words, .summary = "products that have one" },
      .kind = SETTING_TENSORS,
      .words = bias_tensors,
      .said = "none" },
    { .key = { .name = "scales",
               .choices = scale_words,
               .summary = "products that have a factor, of nvfp4" },
      .kind = SETTING_TENSORS,
      .words = scale_tensors,
      .said = "none" },
    { .key = { .name = "norms",
               .choices = norm_words,
               .summary = "besides attn_norm, ffn_norm, output_norm" },
      .kind = SETTING_TENSORS,
      .words = norm_tensors,
      .said = "none" },
    { .key = { .name = "ffn_norm",
               .choices = ffn_norms,
               .summary = "name of the norm ahead of the feed-forward" },
      .kind = SETTING_TENSOR,
      .words = pre_ffn_norms },
    { .key = { .name = "output",
               .choices = output_choices,
               .summary = "a matrix, or token_embd's" },
      .kind = SETTING_OUTPUT,
      .said = "own" },
    { .key = { AT("max_seq_len", max_seq_len), .min = 1, .max = PROBLEM_MOST_POSITIONS, .def = 8192,
               .summary = "positions the caches have room for" },
      .shown = true,
      .kibi = true },
    { .key = { AT("kv_type", kv_type), .choices = kv_type_choices, .def = KV_F16,
               .summary = "elements of the caches" },
      .shown = true },
    { .key = { AT("sequences", sequences), .min = 1, .max = MOST_SEQUENCES, .def = 1,
               .summary = "that have a cache each" } },
    { .key = { .name = "m",
               .min = 1,
               .max = PROBLEM_MOST_ROWS,
               .summary = "tokens of a step, one step each" },
      .kind = SETTING_ROWS,
      .said = "1, 8",
      .shown = true },
    { .key = { AT("logits", all_logits), .choices = logits_choices,
               .summary = "of a step's last token, or of all" } },
    { .key = { AT("precision", precision), .choices = precision_choices, .def = PRECISION_Q8,
               .summary = "q8: x may be rounded to 8 bits" } },
    { .key = { AT("next", next), .choices = next_choices,
               .summary = "weights that the next launch reads first" } },
    { .key = { .name = "weights",
               .choices = weights_choices,
               .required = true,
               .summary = "format of all matrices but routers, which are f32" },
      .kind = SETTING_WEIGHTS },
    { .key = { .name = "weights.TENSOR", .summary = "that of one, or of some of its layers" },
      .kind = SETTING_FORMATS,
      .range = "q5_k, q6_k: 0..3, 7",
      .said = "weights" },
    { .key = { .name = "metadata.KEY", .summary = "the file's; whoever loads weights compares it" },
      .kind = SETTING_METADATA,
      .range = "10000; 1, 0, 1; yarn",
      .said = "not known" },
    { .key = KEY_END },
};

int64_t setting_value(const setting *s, const decoder *d)
{
    int64_t value;
    memcpy(&value, (const char *)d + s->key.field, sizeof value);
    return value;
}

void setting_store(const setting *s, decoder *d, int64_t value)
{
    if (s->one_is_zero && value == real_bits(1))
        value = real_bits(0);
    memcpy((char *)d + s->key.field, &value, sizeof value);
}

int64_t setting_default(const setting *s, const decoder *d)
{
    if (s->derive)
        return s->derive(d);
    int64_t value = key_default(&s->key);
    if (s->key.like)
        memcpy(&value, (const char *)d + s->key.like, sizeof value);
    return value;
}

const char *setting_default_text(arena *a, const setting *s)
{
    const key *k = &s->key;
    if (k->required)
        return "required";
    if (s->said)
        return s->said;
    if (strchr(k->name, '.'))
        return "as above";
    for (const setting *other = decoder_settings; k->like && other->key.name; other++)
        if (other->kind == SETTING_VALUE && other->key.field == k->like)
            return other->key.name;
    if (k->real)
        return k->real->def_text ? k->real->def_text : real_text(a, k->real->def);
    if (k->choices)
        return k->choices[k->def].word;
    return k->def ? arena_format(a, "%lld", (long long)k->def) : "none";
}

bool setting_matters(const setting *s, const decoder *d)
{
    const setting_case *c = s->when;
    int64_t number = 1;
    if (!c)
        return true;
    if (c->number)
        memcpy(&number, (const char *)d + c->number, sizeof number);
    return number > 0 && (!c->holds || c->holds(d)) &&
           (!c->rope_holds || c->rope_holds(&d->rope[c->is_windowed]));
}

const char *tensor_word(arena *a, decoder_tensor t)
{
    const char *name = tensor_infos[t].name;
    return arena_copy(a, name, strcspn(name, "."));
}

bool decoder_has_matrix(const decoder *d, unsigned t)
{
    return d->has[t] && tensor_is_matrix(t);
}

int64_t decoder_copies(const decoder *d, unsigned t)
{
    return tensor_infos[t].by_layer ? d->layers : 1;
}

format tensor_usual_format(unsigned t, format common)
{
    return t == TENSOR_FFN_GATE_INP ? FORMAT_F32 : common;
}
