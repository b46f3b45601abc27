/* Looks up families and keys, and computes instances' fields, names and parameters. */
#include "kernel/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

const operation_info operations[OP_COUNT] = {
#define OPERATION(id, name, purpose, identity) { name, PURPOSE_##purpose, identity },
#include "kernel/operation.def"
#undef OPERATION
};

bool instance_is_gated(const instance *in)
{
    operation op = in->family->op;
    return (op == OP_GATE_UP_SWIGLU || op == OP_EXPERT_GATE_UP) && !in->options.ungated;
}

bool operation_is_of_experts(operation op)
{
    return op == OP_EXPERT_GATE_UP || op == OP_EXPERT_PRODUCT;
}

const choice weights_choices[] = {
#define FORMAT(id, name, ...) { name, NULL },
#include "kernel/format.def"
    { NULL, NULL },
};

/* A key's two words. The first adds nothing to an instance's name, the second adds tag. */
#define TWO_CHOICES(first, second, tag)                 \
    {                                                   \
        { first, "" }, { second, tag }, { NULL, NULL }, \
    }
const choice dims_choices[] = TWO_CHOICES("static", "dynamic", "_dynamic");
const choice rows_choices[] = TWO_CHOICES("fixed", "run_time", "_rows");
const choice variant_choices[] = TWO_CHOICES("plain", "auto", "_auto");
const choice precision_choices[] = TWO_CHOICES("f32", "q8", "");
const choice scaled_choices[] = TWO_CHOICES("none", "tensor", "_scaled");
const choice bias_choices[] = TWO_CHOICES("none", "add", "_bias");
const choice residual_choices[] = TWO_CHOICES("none", "add", "_residual");
const choice norm_choices[] = TWO_CHOICES("none", "rms", "_rms");
const choice gamma_choices[] = TWO_CHOICES("input", "none", "_no_gamma");
const choice out_scale_choices[] = TWO_CHOICES("none", "input", "_out_scale");
const choice layout_choices[] = TWO_CHOICES("grouped", "tiled", "_tiled");
const choice kv_choices[] = TWO_CHOICES("fused", "separate", "_separate");
const choice approximation_choices[] = TWO_CHOICES("erf", "tanh", "_tanh");
const choice broadcast_choices[] = TWO_CHOICES("none", "row", "_row");
const choice seq_len_choices[] = TWO_CHOICES("direct", "indirect", "_indirect");
const choice trigger_choices[] = TWO_CHOICES("first", "waited", "_waited");
const choice state_choices[] = TWO_CHOICES("changing", "settled", "_settled");

const choice activation_choices[] = CHOICES(
    [ACTIVATION_SILU] = { "silu", "" }, [ACTIVATION_GELU] = { "gelu", "_gelu" },
    [ACTIVATION_SWIGLU_OAI] = { "swiglu_oai", "_oai" },
    [ACTIVATION_GELU_ERF] = { "gelu_erf", "_gelu_erf" }, [ACTIVATION_RELU] = { "relu", "_relu" },
    [ACTIVATION_RELU2] = { "relu2", "_relu2" }, [ACTIVATION_XIELU] = { "xielu", "_xielu" });
const choice times_choices[] = TWO_CHOICES("none", "rows", "_times");
const choice epilogue_choices[] = {
    { "none", "" },
    [1 + ACTIVATION_SILU] = { "silu", "_to_silu" },
    [1 + ACTIVATION_GELU] = { "gelu", "_to_gelu" },
    [1 + ACTIVATION_SWIGLU_OAI] = { "swiglu_oai", "_to_oai" }, /* no family accepts it */
    [1 + ACTIVATION_GELU_ERF] = { "gelu_erf", "_to_gelu_erf" },
    [1 + ACTIVATION_RELU] = { "relu", "_to_relu" },
    [1 + ACTIVATION_RELU2] = { "relu2", "_to_relu2" },
    [1 + ACTIVATION_XIELU] = { "xielu", "_to_xielu" },
    { NULL, NULL },
};
const choice kv_type_choices[] =
    CHOICES([KV_F32] = { "f32", "" }, [KV_F16] = { "f16", "_f16" }, [KV_BF16] = { "bf16", "_bf16" },
            [KV_Q8_0] = { "q8_0", "_q8_0" });
const format kv_formats[KV_COUNT] = {
    [KV_F32] = FORMAT_F32, [KV_F16] = FORMAT_F16, [KV_BF16] = FORMAT_BF16, [KV_Q8_0] = FORMAT_Q8_0
};
const choice out_choices[] = CHOICES([TYPE_F32] = WORD("f32"), [TYPE_F16] = WORD("f16"),
                                     [TYPE_BF16] = WORD("bf16"), [TYPE_Q8_1] = WORD("q8_1"));
static const format type_formats[TYPE_COUNT] = { [TYPE_F32] = FORMAT_F32,
                                                 [TYPE_F16] = FORMAT_F16,
                                                 [TYPE_BF16] = FORMAT_BF16,
                                                 [TYPE_Q8_1] = FORMAT_Q8_1 };

const real_range epsilon_range = { .min = 1e-30, .max = 1, .def = 1e-5 };
const real_range factor_range = { .max = 1e6, .def_text = "1" };

const family *family_find(const family *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp((*list)->name, name) == 0)
            return *list;
    return NULL;
}

const key *family_key(const family *f, const char *name)
{
    for (const key *k = f->keys; k->name; k++)
        if (*k->name == *name && strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

bool family_takes_rows(const family *f)
{
    return f->activations == FORMAT_Q8_F32 || (f->halves && f->activations == FORMAT_F16);
}

/* The formats of weights_choices, by index. */
static const format weight_formats[] = {
#define FORMAT(id, ...) FORMAT_##id,
#include "kernel/format.def"
};

int64_t instance_weights_index(format weights)
{
    for (size_t i = 0; i < sizeof weight_formats / sizeof *weight_formats; i++)
        if (weight_formats[i] == weights)
            return (int64_t)i;
    return -1;
}

static int64_t value_of(const instance *in, size_t field)
{
    int64_t value;
    memcpy(&value, (const char *)in + field, sizeof value);
    return value;
}

static bool is_set(const instance *in, size_t field)
{
    return value_of(in, field) != 0;
}

format instance_weights(const instance *in)
{
    if (in->family->weights != FORMAT_NONE || !family_key(in->family, "weights"))
        return in->family->weights;
    return weight_formats[in->weights];
}

instance instance_matrix(const instance *in, unsigned matrix)
{
    enum { SHARED_MATRIX = 2 };
    instance one = *in;
    one.weights = in->weights_of[matrix];
    if (matrix && in->shape.n_kv)
        one.shape.n = matrix == 1 ? in->shape.n_kv : in->shape.n_v;
    if (matrix >= SHARED_MATRIX && in->shape.n_shared)
        one.shape.n = in->shape.n_shared;
    return one;
}

enum { LINE = 16 }; /* bytes that a thread loads at once */

/* Returns the row unit of a format in values: a block, or 16 bytes of floats. */
static int64_t row_multiple(format f)
{
    const format_info *info = &formats[f];
    return info->block_values > 1 ? info->block_values : LINE / info->block_bytes;
}

format instance_strictest_weights(const instance *in)
{
    format strictest = FORMAT_NONE;
    bool has_own = false; /* true: a matrix has the format of the key weights */
    for (const param *p = in->family->params; p && p->name; p++)
        has_own |= p->weights && !p->matrix;
    for (const key *k = in->family->keys; k->name; k++) {
        if (k->choices != weights_choices || !(k->like || has_own) || !key_matters(in, k))
            continue;
        format f = weight_formats[instance_value(in, k)];
        if (strictest == FORMAT_NONE || row_multiple(f) > row_multiple(strictest))
            strictest = f;
    }
    return strictest == FORMAT_NONE ? instance_weights(in) : strictest;
}

format instance_activations(const instance *in)
{
    return in->x_type ? type_formats[in->x_type] : in->family->activations;
}

format instance_result(const instance *in)
{
    return type_formats[in->y_type];
}

format instance_precision(const instance *in)
{
    if (in->family->halves)
        return FORMAT_F16;
    bool rounds = in->family->quantizes && formats[instance_strictest_weights(in)].block_values > 1;
    return rounds ? FORMAT_Q8_1 : instance_activations(in);
}

bool key_takes_choice(const key *k, const choice *c)
{
    return !k->allowed || k->allowed >> (c - k->choices) & 1;
}

format key_weights(const instance *in, const key *k)
{
    return k->of_weights_in ? weight_formats[value_of(in, k->of_weights_in)]
                            : instance_strictest_weights(in);
}

bool key_is_of_weights(const instance *in, const key *k)
{
    return k->of_weights && (!k->of_weights_with || is_set(in, k->of_weights_with)) &&
           (!k->of_weights_without || !is_set(in, k->of_weights_without));
}

int64_t key_multiple(const instance *in, const key *k)
{
    if (k->of_blocks)
        return formats[instance_weights(in)].block_values;
    if (k->of_out)
        return formats[type_formats[in->y_type]].block_values;
    int64_t multiple = k->multiple_of > 1 ? k->multiple_of : 1;
    int64_t row = key_is_of_weights(in, k) ? row_multiple(key_weights(in, k)) : 1;
    return row > multiple ? row : multiple;
}

static bool has_param(const instance *in, const param *p)
{
    if ((p->also_with && !is_set(in, p->also_with)) || (p->unless && is_set(in, p->unless)))
        return false;
    int64_t value = p->only_with ? value_of(in, p->only_with) : 0;
    if (p->only_of)
        return value < 64 && p->only_of >> value & 1;
    if (p->only_above)
        return value > p->only_above;
    for (int i = 0; i < 2; i++)
        if (p->or_with[i] && is_set(in, p->or_with[i]))
            return true;
    return !p->only_with || is_set(in, p->only_with);
}

static bool is_counted(const instance *in, const key *k)
{
    return k->counted_with && is_set(in, k->counted_with);
}

bool key_is_passed(const instance *in, const key *k)
{
    return (k->at_run_time && in->dims == DIMS_DYNAMIC) || is_counted(in, k);
}

int64_t key_least(const instance *in, const key *k)
{
    return is_counted(in, k) ? 1 : k->min;
}

int64_t key_most(const instance *in, const key *k)
{
    return is_counted(in, k) ? TARGET_MOST_GRID_YZ * instance_value(in, k) : k->max;
}

int64_t instance_value(const instance *in, const key *k)
{
    return value_of(in, k->field);
}

static bool is_for(const key *k, const target *t)
{
    return !k->specific_sm || (t->specific && t->sm == k->specific_sm);
}

int64_t key_most_for(const key *k, const target *t)
{
    return is_for(k, t) ? k->max : k->specific_from - 1;
}

bool instance_takes(const instance *in, const key *k)
{
    int64_t value = instance_value(in, k);
    if (k->choices)
        return key_takes_choice(k, k->choices + value);
    return k->real || (k->zero_is_none && !value) ||
           (value >= key_least(in, k) && value <= key_most(in, k) &&
            value % key_multiple(in, k) == 0);
}

bool instance_takes_all(const instance *in)
{
    for (const key *k = in->family->keys; k->name; k++)
        if (!instance_takes(in, k))
            return false;
    return true;
}

bool instance_suits(const instance *in, const target *t)
{
    bool suits = t->sm >= in->family->sm;
    for (const key *k = in->family->keys; k->name; k++)
        suits = suits && (is_for(k, t) || instance_value(in, k) < k->specific_from);
    return suits;
}

void instance_set(instance *in, const key *k, int64_t value)
{
    memcpy((char *)in + k->field, &value, sizeof value);
}

int64_t key_default(const key *k)
{
    int64_t value = k->def;
    while (k->choices && !key_takes_choice(k, &k->choices[value]))
        value++;
    return k->real ? real_bits(k->real->def) : value;
}

instance instance_of_defaults(const family *f)
{
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(&in, k, key_default(k));
    return in;
}

int64_t instance_default(const instance *in, const key *k)
{
    return k->like ? value_of(in, k->like) : key_default(k);
}

int64_t real_bits(double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

double real_of_bits(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

const char *real_text(arena *a, double number)
{
    enum { EXACT_DIGITS = 17, LEAST_PLAIN = -3, MOST_PLAIN = 5 };
    char text[32];
    int decimals = 0; /* after the first digit */
    for (; decimals < EXACT_DIGITS; decimals++) {
        snprintf(text, sizeof text, "%.*e", decimals, number);
        if (!(strtod(text, NULL) < number || strtod(text, NULL) > number))
            break;
    }
    size_t mantissa = strcspn(text, "e");
    int exponent = atoi(text + mantissa + 1);
    if (exponent < LEAST_PLAIN || exponent > MOST_PLAIN)
        return arena_format(a, "%.*se%d", (int)mantissa, text, exponent);
    return arena_format(a, "%.*f", decimals > exponent ? decimals - exponent : 0, number);
}

const char *instance_value_text(arena *a, const instance *in, const key *k)
{
    int64_t value = instance_value(in, k);
    if (k->real)
        return real_text(a, real_of_bits(value));
    return k->choices ? k->choices[value].word : arena_format(a, "%lld", (long long)value);
}

bool key_matters(const instance *in, const key *k)
{
    if (k->unless && is_set(in, k->unless))
        return false;
    return !k->only_with || is_set(in, k->only_with) || (k->or_with && is_set(in, k->or_with));
}

/* Returns true if the name omits a number: an unused option, or a size of run time. */
static bool is_left_out(const instance *in, const key *k)
{
    if (!key_matters(in, k))
        return true;
    int64_t value = instance_value(in, k);
    if (k->real)
        return value == key_default(k);
    if (k->like)
        return (value == 0 && k->min) || value == instance_default(in, k);
    return value == 0 && (k->at_run_time || k->zero_is_none);
}

const char *instance_make_name(arena *a, const instance *in)
{
    strbuf name = strbuf_new(a);
    strbuf_put(&name, in->family->name);
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        const char *word = k->choices ? k->choices[value].word : "";
        if (k->choices && !k->choices[value].tag) {
            /* "_q4k" for q4_k, "_iq4_xs" for iq4_xs; with the tag "v", "_vq6k" for q6_k */
            size_t length = strlen(word);
            bool k_quant = length > 2 && strcmp(word + length - 2, "_k") == 0;
            if (k->required || (key_matters(in, k) && value != instance_default(in, k)))
                strbuf_format(&name, "_%s%.*s%s", k->tag ? k->tag : "",
                              (int)(k_quant ? length - 2 : length), word, k_quant ? "k" : "");
        } else if (k->choices) {
            strbuf_put(&name, k->choices[value].tag);
        } else if (is_left_out(in, k)) {
            continue;
        } else {
            /* "_k4096", "_cap50", "_scale0p125", "_eps1em6": identifiers cannot have '-' and '.' */
            strbuf_format(&name, "_%s", k->tag);
            for (const char *c = instance_value_text(a, in, k); *c; c++)
                strbuf_char(&name, *c == '-' ? 'm' : *c == '.' ? 'p' : *c);
        }
    }
    return name.text;
}

const char *instance_configuration(arena *a, const instance *in)
{
    strbuf text = strbuf_new(a);
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        const char *tag = k->choices ? k->choices[value].tag : NULL;
        bool usual = k->like      ? value == instance_default(in, k)
                     : k->choices ? tag && !*tag
                                  : value == 0;
        if (usual || !key_matters(in, k))
            continue;
        strbuf_format(&text, "%s%s=%s", text.length ? " " : "", k->name,
                      instance_value_text(a, in, k));
    }
    return text.text;
}

bool instance_same_bits(const instance *in)
{
    const family *f = in->family;
    return f->same_bits && (!f->same_bits_with || is_set(in, f->same_bits_with));
}

unsigned instance_chosen(const instance *in, const target *t)
{
    unsigned chosen = 0;
    for (unsigned p = 0; p < PRECISION_COUNT; p++)
        if (in->chosen_for[p] & target_bit(t))
            chosen |= 1u << p;
    return chosen;
}

void instance_merge(instance *in, const instance *other)
{
    in->excluded &= other->excluded;
    for (int p = 0; p < PRECISION_COUNT; p++)
        in->chosen_for[p] |= other->chosen_for[p];
    if (!in->chosen_by)
        in->chosen_by = other->chosen_by;
}

/* Returns the bytes of a buffer as a formula: "n*k" values of q4_k are "n*k/256*144". Buffers
 * loaded in whole lines are rounded up: "ceil_div(n*k/32*34, 16)*16". */
static const char *bytes_formula(arena *a, const param *p, bool whole_lines)
{
    const format_info *f = &formats[p->format];
    if (f->block_values == 1 && strcmp(p->values, "1") == 0)
        return arena_format(a, "%u", f->block_bytes);
    const char *blocks = f->block_values > 1 ? arena_format(a, "/%u", f->block_values) : "";
    bool grouped = strpbrk(p->values, "+-");
    const char *bytes = arena_format(a, "%s%s%s%s*%u", grouped ? "(" : "", p->values,
                                     grouped ? ")" : "", blocks, f->block_bytes);
    bool rounded = whole_lines && f->block_values > 1 && f->block_bytes % LINE;
    return rounded ? arena_format(a, "ceil_div(%s, %d)*%d", bytes, LINE, LINE) : bytes;
}

static param sequence_length(const instance *in, const param *p)
{
    param length = *p;
    length.size = "seq_len";
    if (in->seq_len_mode == SEQ_LEN_INDIRECT) {
        length.kind = PARAM_IN;
        length.format = FORMAT_U32;
        length.values = length.values ? length.values : "1";
        length.align = sizeof(uint32_t);
    } else {
        length.kind = PARAM_U32;
    }
    return length;
}

const char *param_direction(const param *p)
{
    if (p->kind == PARAM_SCRATCH)
        return p->data == DATA_ZEROED ? "zeroed" : "scratch";
    return p->data == DATA_UPDATED ? "inout" : p->kind == PARAM_OUT ? "out" : "in";
}

format kv_format(const instance *in)
{
    return kv_formats[in->kv_type];
}

int64_t kv_page_rows(const instance *in)
{
    const problem_options *o = &in->options;
    return o->page ? o->page : o->ring ? o->ring : in->shape.max_seq_len;
}

int64_t kv_pages(const instance *in)
{
    int64_t page = in->options.page;
    return page ? (in->shape.max_seq_len + page - 1) / page : 1;
}

size_t instance_params(arena *a, const instance *in, param params[MAX_PARAMS])
{
    size_t count = 0;
    for (const param *p = in->family->params; p->name && count < MAX_PARAMS; p++) {
        if (!has_param(in, p))
            continue;
        param *made = &params[count++];
        *made = p->kind == PARAM_SEQ_LEN ? sequence_length(in, p) : *p;
        if (made->weights)
            made->format = made->matrix ? weight_formats[in->weights_of[made->matrix - 1]]
                                        : instance_weights(in);
        if (made->type_in)
            made->format = type_formats[value_of(in, made->type_in)];
        if (made->data == DATA_CACHE)
            made->format = kv_format(in);
        if (made->kind != PARAM_U32)
            made->bytes = bytes_formula(a, made, made->weights && in->family->whole_lines);
        if (!made->row)
            continue;
        uint64_t row = format_bytes(made->format, (uint64_t)value_of(in, made->row));
        while (row % made->align) /* alignment of every row, not only the first */
            made->align /= 2;
    }
    for (int counted = 0; counted < 2; counted++)
        for (const key *k = in->family->keys; k->name; k++)
            if ((counted ? is_counted(in, k) : k->at_run_time && in->dims == DIMS_DYNAMIC) &&
                count < MAX_PARAMS)
                params[count++] =
                    (param){ .name = arena_format(a, "%s_%s", k->name, counted ? "val" : "dim"),
                             .kind = PARAM_U32,
                             .size = k->name };
    return count;
}
