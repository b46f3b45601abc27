#include "model/section/decoder_keys.h"

#include <string.h>

const char NO_LAYERS[] = "none";
const char FORMATS_PREFIX[] = "weights.";
const char METADATA_PREFIX[] = "metadata.";

enum { MOST_SEQUENCES = 1024, MOST_HEADS = 65535, PER_LAYER_UNIT = 32 };

static const choice rope_styles[] =
    CHOICES([ROPE_NORM] = WORD("norm"), [ROPE_NEOX] = WORD("neox"), [ROPE_NONE] = WORD("none"));
static const choice rope_scalings[] = CHOICES(
    [ROPE_UNSCALED] = WORD("none"), [ROPE_LINEAR] = WORD("linear"), [ROPE_YARN] = WORD("yarn"));
static const choice factor_tensors[] =
    CHOICES(WORD("none"), WORD("tensor"), WORD("long"), WORD("short"));
static const choice window_factors[] = CHOICES(WORD("none"), WORD("tensor"));
static const choice logits_choices[] = CHOICES(WORD("last"), WORD("all"));
static const choice next_choices[] =
    CHOICES([NEXT_NONE] = WORD("none"), [NEXT_FETCHED] = WORD("fetched"));
static const choice gatings[] =
    CHOICES([GATING_SOFTMAX] = WORD("softmax"), [GATING_SIGMOID] = WORD("sigmoid"),
            [GATING_SOFTMAX_OF_CHOSEN] = WORD("softmax_of_chosen"));
static const choice no_yes[] = CHOICES(WORD("no"), WORD("yes"));
static const choice yes_no[] = CHOICES(WORD("yes"), WORD("no"));
static const choice norm_kinds[] = CHOICES(WORD("rms"), WORD("layer"));
static const choice branch_orders[] = CHOICES(WORD("in_turn"), WORD("parallel"));
static const choice qk_norms[] =
    CHOICES([QK_NORM_HEAD] = WORD("head"), [QK_NORM_HEAD_AFTER] = WORD("head_after_rope"),
            [QK_NORM_ROW] = WORD("row"));
static const choice recurrences[] =
    CHOICES([RECURRENCE_DELTA] = WORD("delta_net"), [RECURRENCE_SHORT_CONV] = WORD("short_conv"),
            [RECURRENCE_MAMBA2] = WORD("mamba2"), [RECURRENCE_MAMBA] = WORD("mamba"));
static const choice state_norms[] = CHOICES(WORD("none"), WORD("ssm_norm"));
static const choice attention_gates[] = CHOICES(
    [ATTENTION_GATE_NONE] = WORD("none"), [ATTENTION_GATE_OF_Q] = WORD("sigmoid"),
    [ATTENTION_GATE_VALUES] = WORD("attn_gate"), [ATTENTION_GATE_HEADS] = WORD("attn_gate_head"));
static const choice gate_choices[] = CHOICES(WORD("none"), WORD("sigmoid"));
static const choice router_norms[] = CHOICES(WORD("experts"), WORD("ffn_gate_inp.scale"));
static const choice layer_scales[] = CHOICES(WORD("none"), WORD("layer_output_scale"));
static const choice sink_choices[] = CHOICES(WORD("none"), WORD("add"));
static const choice ffn_norms[] = CHOICES(WORD("ffn_norm"), WORD("post_attention_norm"));
static const choice window_caches[] =
    CHOICES([WINDOW_CACHE_RING] = WORD("ring"), [WINDOW_CACHE_FULL] = WORD("full"));
static const choice sampling_choices[] = CHOICES(WORD("step"), WORD("caller"));
static const choice table_memories[] = CHOICES(WORD("device"), WORD("host"));
static const choice output_choices[] = CHOICES(WORD("own"), WORD("tied"));

static const choice bias_words[] =
    CHOICES(WORD("attn_q"), WORD("attn_k"), WORD("attn_v"), WORD("attn_qkv"), WORD("ffn_gate"),
            WORD("ffn_up"), WORD("attn_output"), WORD("ffn_down"), WORD("ffn_gate_inp"),
            WORD("exp_probs_b"), WORD("ffn_gate_exps"), WORD("ffn_up_exps"), WORD("ffn_down_exps"),
            WORD("output"));
static const uint8_t bias_tensors[] = {
    TENSOR_ATTN_Q_BIAS,        TENSOR_ATTN_K_BIAS,        TENSOR_ATTN_V_BIAS,
    TENSOR_ATTN_QKV_BIAS,      TENSOR_FFN_GATE_BIAS,      TENSOR_FFN_UP_BIAS,
    TENSOR_ATTN_OUTPUT_BIAS,   TENSOR_FFN_DOWN_BIAS,      TENSOR_FFN_GATE_INP_BIAS,
    TENSOR_EXP_PROBS_B,        TENSOR_FFN_GATE_EXPS_BIAS, TENSOR_FFN_UP_EXPS_BIAS,
    TENSOR_FFN_DOWN_EXPS_BIAS, TENSOR_OUTPUT_BIAS,
};
static const choice scale_words[] = CHOICES(
    WORD("attn_q"), WORD("attn_k"), WORD("attn_v"), WORD("attn_qkv"), WORD("ffn_gate"),
    WORD("ffn_up"), WORD("ffn_down"), WORD("output"), WORD("attn_output"), WORD("ffn_down_exps"));
static const uint8_t scale_tensors[] = {
    TENSOR_ATTN_Q_SCALE,        TENSOR_ATTN_K_SCALE,   TENSOR_ATTN_V_SCALE,
    TENSOR_ATTN_QKV_SCALE,      TENSOR_FFN_GATE_SCALE, TENSOR_FFN_UP_SCALE,
    TENSOR_FFN_DOWN_SCALE,      TENSOR_OUTPUT_SCALE,   TENSOR_ATTN_OUTPUT_SCALE,
    TENSOR_FFN_DOWN_EXPS_SCALE,
};
static const choice norm_words[] = CHOICES(WORD("attn_q_norm"), WORD("attn_k_norm"),
                                           WORD("post_attention_norm"), WORD("post_ffw_norm"));
static const uint8_t norm_tensors[] = { TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM,
                                        TENSOR_POST_ATTENTION_NORM, TENSOR_POST_FFW_NORM };
static const choice renamed_words[] =
    CHOICES(WORD("exp_probs_b"), WORD("ffn_norm"), WORD("token_embd_norm"));
static const uint8_t renamed_tensors[] = { TENSOR_EXP_PROBS_B, TENSOR_FFN_NORM,
                                           TENSOR_OUTPUT_NORM };
static const choice fused_words[] =
    CHOICES(WORD("attn_qkv"), WORD("ffn_gate_up"), WORD("ffn_gate_up_exps"), WORD("attn_kv_b"));
static const uint8_t fused_tensors[] = { TENSOR_ATTN_QKV, TENSOR_FFN_GATE_UP,
                                         TENSOR_FFN_GATE_UP_EXPS, TENSOR_ATTN_KV_B };

static bool has_head_norms(const decoder *d)
{
    return d->has[TENSOR_ATTN_Q_NORM];
}

static bool has_post_norms(const decoder *d)
{
    return d->has[TENSOR_POST_ATTENTION_NORM] || d->has[TENSOR_POST_FFW_NORM] || d->per_layer;
}

static bool has_temperature(const rope_options *rope)
{
    return rope->temperature_scale > 0;
}

#define NUMBER(member)     .number = offsetof(decoder, member)
#define IS(member, values) .choice = offsetof(decoder, member), .chosen = (values)
#define RECURS(which)      .part = PART_RECURRENT, IS(recurrence, which)
enum {
    DELTA = 1 << RECURRENCE_DELTA,
    MAMBA = 1 << RECURRENCE_MAMBA,
    MAMBA2 = 1 << RECURRENCE_MAMBA2,
    YARN = 1 << ROPE_YARN,
    SCALED = YARN | 1 << ROPE_LINEAR,
    CONVOLVED = MAMBA | MAMBA2 | 1 << RECURRENCE_SHORT_CONV,
};
static const setting_case
    with_experts = { NUMBER(experts), .said = "experts" },
    with_dense = { .part = PART_DENSE, .said = "ffn_layers", .usual = true },
    with_shared = { NUMBER(shared_ff), .said = "shared_ff" },
    with_groups = { NUMBER(expert_groups), .said = "expert_groups" },
    with_latent = { NUMBER(latent), .said = "latent" },
    without_latent = { .part = PART_ATTENTION,
                       IS(latent, 1 << 0),
                       .said = "latent = none",
                       .usual = true },
    with_attention = { .part = PART_ATTENTION, .said = "attention_layers", .usual = true },
    with_recurrent = { .part = PART_RECURRENT, .said = "recurrent_layers" },
    with_delta = { RECURS(DELTA), .said = "recurrence = delta_net" },
    with_conv = { RECURS(CONVOLVED), .said = "recurrence = short_conv, mamba2 or mamba" },
    with_ssm = { RECURS(MAMBA | MAMBA2), .said = "recurrence = mamba2 or mamba" },
    with_mamba2 = { RECURS(MAMBA2), .said = "recurrence = mamba2" },
    with_mamba = { RECURS(MAMBA), .said = "recurrence = mamba" },
    with_head_norms = { .holds = has_head_norms, .said = "norms = attn_q_norm, attn_k_norm" },
    with_post_norms = { .holds = has_post_norms,
                        .said = "norms = post_attention_norm or "
                                "post_ffw_norm, or per_layer" },
    with_xielu = { IS(activation, 1 << ACTIVATION_XIELU), .said = "activation = xielu" },
    with_silu = { IS(activation, 1 << ACTIVATION_SILU), .said = "activation = silu",
                  .usual = true },
    with_per_layer = { NUMBER(per_layer), .said = "per_layer" },
    with_window = { NUMBER(window), .said = "window" };

/* Cases for RoPE of layers with full context, and of windowed layers. */
#define OF_ROPES(condition, key, value)                                                 \
    {                                                                                   \
        { condition, .said = key value },                                               \
        {                                                                               \
            NUMBER(window), condition, .is_windowed = true, .said = key ".window" value \
        }                                                                               \
    }
static const setting_case with_rope[] = OF_ROPES(.scalings = UINT32_MAX, "rope", " = norm or neox"),
                          when_scaled[] =
                              OF_ROPES(.scalings = SCALED, "rope_scaling", " = linear or yarn"),
                          when_yarn[] = OF_ROPES(.scalings = YARN, "rope_scaling", " = yarn"),
                          with_temperature[] =
                              OF_ROPES(.rope_holds = has_temperature, "temperature_scale", "");

static int64_t derive_head_dim(const decoder *d, int64_t layer)
{
    int64_t heads = d->at[layer].num_heads;
    return heads > 0 && d->hidden % heads == 0 ? d->hidden / heads : 0;
}

static int64_t derive_kv_heads(const decoder *d, int64_t layer)
{
    return d->latent ? 1 : d->at[layer].num_heads;
}

int64_t derive_own_layer(const decoder *d, int64_t layer)
{
    (void)d;
    return layer;
}

static int64_t derive_attends(const decoder *d, int64_t layer)
{
    return !d->at[layer].recurs;
}

static int64_t derive_routed(const decoder *d, int64_t layer)
{
    (void)layer;
    return d->experts > 0;
}

static int64_t derive_dense(const decoder *d, int64_t layer)
{
    return !d->at[layer].is_routed;
}

static int64_t derive_windowed(const decoder *d, int64_t layer)
{
    return d->window && d->at[layer].attends;
}

/* Returns head_dim of the first layer with full context, or of the first with attention. */
static int64_t derive_rope_dims(const decoder *d, int64_t layer)
{
    (void)layer;
    int64_t dim = 0;
    for (int64_t l = 0; l < d->layers; l++) {
        if (d->at[l].attends && !d->at[l].windowed)
            return d->at[l].head_dim;
        dim = dim ? dim : d->at[l].head_dim;
    }
    return dim;
}

/* Attributes in decoder_keys.def. */
#define ALWAYS               NULL
#define REQUIRED             .key.required = true
#define BETWEEN(least, most) .key.min = (least), .key.max = (most)
#define SIZE                 BETWEEN(1, INT32_MAX), REQUIRED
#define MULTIPLE(number)     .key.multiple_of = (number)
#define OR_NONE              .key.zero_is_none = true
#define DEFAULT(number)      .key.def = (number)
#define LIKE(member)         .key.like = offsetof(decoder, member)
#define AS_ROPE(member)      .key.like = ROPE * offsetof(decoder, rope[0].member)
#define WORDS(list)          .key.choices = (list)
#define REAL(least, most, usual)       \
    .key.real = &(const real_range)    \
    {                                  \
        (least), (most), (usual), NULL \
    }
#define OPTIONAL_REAL(least, most, usual) \
    .key.real = &(const real_range)       \
    {                                     \
        (least), (most), 0, (usual)       \
    }
#define FACTOR(least, most)     OPTIONAL_REAL(least, most, "1"), .one_is_zero = true
#define DERIVED(function, text) .derive = (function), SAID(text)
#define SAID(text)              .said = (text)
#define LOOKS(text)             .range = (text)
#define FREE                    .is_free = true
#define SHOWN                   .shown = true
#define OF(tensor)             \
    .words = (const uint8_t[]) \
    {                          \
        tensor                 \
    }
#define AT(member)       .key.field = offsetof(decoder, member)
#define AT_LAYER(member) AT(at[0].member)
#define IN_PART(layers)  .part = PART_##layers
#define KEY(id, member, condition, text, ...) \
    KEY_OF(VALUE, id, condition, text, AT(member), __VA_ARGS__)
#define KEY_OF(of, id, condition, text, ...) \
    { .kind = SETTING_##of,                  \
      .key.name = (id),                      \
      .when = (condition),                   \
      .key.summary = (text),                 \
      __VA_ARGS__ },

const setting decoder_settings[] = {
#include "model/section/decoder_keys.def"
    { .key = KEY_END },
};

/* Returns the address of a value. Fields of a layer follow those of the preceding layer. */
static void *value_at(const setting *s, const decoder *d, int64_t layer)
{
    return (char *)(uintptr_t)d + s->key.field + (size_t)layer * sizeof(decoder_layer);
}

int64_t setting_value(const setting *s, const decoder *d, int64_t layer)
{
    int64_t value;
    if (s->kind == SETTING_LAYERS)
        return *(const uint8_t *)value_at(s, d, layer);
    memcpy(&value, value_at(s, d, layer), sizeof value);
    return value;
}

void setting_store(const setting *s, decoder *d, int64_t layer, int64_t value)
{
    if (s->one_is_zero && value == real_bits(1))
        value = real_bits(0);
    if (s->kind == SETTING_LAYERS)
        *(uint8_t *)value_at(s, d, layer) = (uint8_t)value;
    else
        memcpy(value_at(s, d, layer), &value, sizeof value);
}

int64_t setting_default(const setting *s, const decoder *d, int64_t layer)
{
    if (s->derive)
        return s->derive(d, layer);
    int64_t value = key_default(&s->key);
    if (s->key.like)
        memcpy(&value, (const char *)d + s->key.like, sizeof value);
    return value;
}

bool setting_has_layer(const setting *s, const decoder *d, int64_t layer)
{
    return s->kind == SETTING_LAYERS || decoder_has_part(d, s->part, layer);
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

const char *setting_text(arena *a, const setting *s, int64_t value)
{
    if (s->one_is_zero && value == real_bits(0))
        value = real_bits(1);
    return s->key.real      ? real_text(a, real_of_bits(value))
           : s->key.choices ? s->key.choices[value].word
                            : arena_format(a, "%lld", (long long)value);
}

bool setting_matters(const setting *s, const decoder *d)
{
    const setting_case *c = s->when;
    enum { MOST_CHOICES = 32 };
    int64_t number = 1, value;
    if (!c)
        return true;
    if (c->number)
        memcpy(&number, (const char *)d + c->number, sizeof number);
    memcpy(&value, (const char *)d + c->choice, sizeof value);
    if (c->choice && (value >= MOST_CHOICES || !(c->chosen >> value & 1)))
        return false;
    if (c->part && decoder_first_layer(d, c->part) < 0 && (d->layers || !c->usual))
        return false;
    const rope_options *rope = &d->rope[c->is_windowed];
    if (c->scalings && (rope->style == ROPE_NONE || !(c->scalings >> rope->scaling & 1)))
        return false;
    return number > 0 && (!c->holds || c->holds(d)) && (!c->rope_holds || c->rope_holds(rope));
}

const char *formats_key(arena *a, decoder_tensor t)
{
    return arena_format(a, "%s%s", FORMATS_PREFIX, tensor_word(a, t));
}

bool tensor_is_first(const decoder *d, decoder_tensor t)
{
    unsigned first = 0;
    while ((d && !d->has[first]) || strcmp(tensor_infos[first].name, tensor_infos[t].name) != 0)
        first++;
    return first == t;
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
