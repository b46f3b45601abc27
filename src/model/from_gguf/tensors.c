#include "model/from_gguf/architecture.h"

#include <string.h>

#include "kernel/family.h"

#define PRODUCT_BIASES                                                             \
    QKV_BIASES, TENSOR_ATTN_OUTPUT_BIAS, TENSOR_FFN_GATE_BIAS, TENSOR_FFN_UP_BIAS, \
        TENSOR_FFN_DOWN_BIAS
const uint8_t model_biases[] = { PRODUCT_BIASES, TENSOR_COUNT };

const gguf_tensor *model_find_tensor(const model_reader *r, decoder_tensor t, int64_t layer)
{
    char name[DECODER_NAME];
    decoder_tensor_name(&r->out->decoder, t, layer, name);
    return gguf_find(r->file, name);
}

void model_ignore_in_layer(model_reader *r, decoder_tensor t, int64_t layer)
{
    char name[DECODER_NAME];
    const gguf_tensor *tensor = model_find_tensor(r, t, layer);
    decoder_tensor_name(&r->out->decoder, t, layer, name);
    *VEC_PUSH(r->arena, &r->ignored) = arena_strdup(r->arena, name);
    if (tensor)
        r->known_tensors[tensor - r->file->tensors] = true;
}

void model_ignore_tensor(model_reader *r, decoder_tensor t)
{
    for (int64_t l = 0; l < (tensor_infos[t].by_layer ? r->out->decoder.layers : 1); l++)
        model_ignore_in_layer(r, t, l);
}

void model_ignore_prefix(model_reader *r, const char *prefix)
{
    *VEC_PUSH(r->arena, &r->ignored) = arena_format(r->arena, "%s*", prefix);
    for (size_t t = 0; t < r->file->tensor_count; t++)
        if (strncmp(r->file->tensors[t].name, prefix, strlen(prefix)) == 0)
            r->known_tensors[t] = true;
}

void model_choose_factors(model_reader *r)
{
    decoder *d = &r->out->decoder;
    int64_t original =
        model_number(r, "rope.scaling.original_context_length", 1, r->out->context_length);
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

void model_route_by_tensors(model_reader *r)
{
    decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].is_routed = model_find_tensor(r, TENSOR_FFN_GATE_INP, l) != NULL;
        d->at[l].is_dense = !d->at[l].is_routed;
    }
}

const uint8_t model_biases_and_factors[] = { PRODUCT_BIASES, TENSOR_ROPE_FREQS, TENSOR_COUNT };

/* Returns the tensor in the first layer that can have it, or NULL. */
static const gguf_tensor *find_first(const model_reader *r, unsigned t)
{
    const decoder *d = &r->out->decoder;
    for (int64_t l = 0; l < d->layers; l++)
        if (decoder_has_part(d, tensor_infos[t].part, l))
            return model_find_tensor(r, t, l);
    return NULL;
}

static void choose_tensors(model_reader *r)
{
    const architecture *of = r->architecture;
    decoder *d = &r->out->decoder;
    bool may_fuse = !d->latent && d->attention_gate != ATTENTION_GATE_OF_Q;
    /* Biases and scales of products in one kernel: a file must have all of a group or none. */
    static const uint8_t groups[][4] = {
        { TENSOR_ATTN_Q_SCALE, TENSOR_ATTN_K_SCALE, TENSOR_ATTN_V_SCALE, TENSOR_COUNT },
        { TENSOR_FFN_GATE_SCALE, TENSOR_FFN_UP_SCALE, TENSOR_COUNT },
        { TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS, TENSOR_COUNT },
        { TENSOR_FFN_GATE_BIAS, TENSOR_FFN_UP_BIAS, TENSOR_COUNT },
        { TENSOR_FFN_GATE_EXPS_BIAS, TENSOR_FFN_UP_EXPS_BIAS, TENSOR_COUNT },
    };
    for (const uint8_t *t = of->required; t && *t != TENSOR_COUNT; t++)
        d->has[*t] = 1;
    for (const uint8_t *t = of->optional; t && *t != TENSOR_COUNT; t++)
        d->has[*t] |= find_first(r, *t) != NULL;
    for (unsigned t = 0; t < TENSOR_COUNT; t++) /* scales of matrices, as in NVFP4 files */
        if (tensor_infos[t].kind == TENSOR_SCALE && !d->latent)
            d->has[t] = find_first(r, t) != NULL;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        uint8_t any = 0;
        for (const uint8_t *t = groups[g]; *t != TENSOR_COUNT; t++)
            any |= d->has[*t];
        for (const uint8_t *t = groups[g]; *t != TENSOR_COUNT; t++)
            d->has[*t] = any;
    }
    d->has[TENSOR_FFN_GATE_BIAS] &= !d->no_gates;
    d->has[TENSOR_FFN_GATE_SCALE] &= !d->no_gates;
    d->has[TENSOR_OUTPUT] =
        model_find_tensor(r, TENSOR_OUTPUT, 0) != NULL || (of->features & FEATURE_OWN_OUTPUT) != 0;
    d->has[TENSOR_OUTPUT_SCALE] &= d->has[TENSOR_OUTPUT];
    d->has[TENSOR_ATTN_QKV] = may_fuse && find_first(r, TENSOR_ATTN_QKV);
    d->has[TENSOR_ATTN_KV_B] =
        d->latent && find_first(r, TENSOR_ATTN_KV_B) && !find_first(r, TENSOR_ATTN_K_B);
    d->has[TENSOR_FFN_GATE_UP] =
        of->may_fuse_gate_up && find_first(r, TENSOR_FFN_UP) && !find_first(r, TENSOR_FFN_GATE);
    d->has[TENSOR_FFN_GATE_SCALE] &= !d->has[TENSOR_FFN_GATE_UP];
    d->has[TENSOR_FFN_GATE_UP_EXPS] =
        of->may_fuse_experts && find_first(r, TENSOR_FFN_GATE_UP_EXPS);
    decoder_complete(d);
    if (d->has[TENSOR_ROPE_FREQS]) {
        d->rope[0].factors = 1;
        d->rope[1].factors = (of->features & FEATURE_FULL_FACTORS) == 0;
    }
}

static const char *shape_text(arena *a, const uint64_t *ne, unsigned dims)
{
    strbuf text = strbuf_new(a);
    for (unsigned i = 0; i < dims; i++)
        strbuf_format(&text, "%s%llu", i ? ", " : "", (unsigned long long)ne[i]);
    return text.text;
}

/* Returns the weight format of a tensor type, or FORMAT_NONE. */
static format format_of(const gguf_type *type)
{
    for (format f = FORMAT_NONE; f < FORMAT_COUNT; f++)
        if (formats[f].gguf_type == (int)type->id && instance_weights_index(f) >= 0)
            return f;
    return FORMAT_NONE;
}

/* Reads the format of a layer's tensor. Reports a missing tensor, or another shape or type. */
static bool check_tensor(model_reader *r, unsigned t, int64_t layer)
{
    decoder *d = &r->out->decoder;
    const gguf_tensor *tensor = model_find_tensor(r, t, layer);
    if (!tensor) {
        char name[DECODER_NAME];
        decoder_tensor_name(&r->out->decoder, t, layer, name);
        model_error(r, DIAG_BAD_TENSOR, "%s is missing", name);
        return false;
    }
    r->known_tensors[tensor - r->file->tensors] = true;
    if (t == TENSOR_TOKEN_EMBD)
        d->vocab = (int64_t)tensor->ne[1];
    uint64_t planes = decoder_planes(d, t, layer);
    const uint64_t said[GGUF_MAX_DIMS] = { decoder_columns(d, t, layer),
                                           decoder_rows(d, t, layer) / planes, planes, 1 };
    format stored = format_of(tensor->type);
    bool matrix = tensor_is_matrix(t);
    if (memcmp(tensor->ne, said, sizeof said) != 0) {
        model_error(r, DIAG_BAD_TENSOR, "%s has shape [%s], but the keys require [%s]",
                    tensor->name, shape_text(r->arena, tensor->ne, tensor->n_dims),
                    shape_text(r->arena, said,
                               planes > 1    ? 3
                               : said[1] > 1 ? 2
                                             : 1));
        return false;
    }
    if (matrix ? stored == FORMAT_NONE : stored != FORMAT_F32) {
        model_error(r, DIAG_BAD_TENSOR,
                    matrix ? "%s has type %s, which is not supported"
                           : "%s has type %s; only matrices may differ from f32",
                    tensor->name, tensor->type->name);
        return false;
    }
    if (matrix)
        d->formats[t][layer] = (uint8_t)stored;
    return true;
}

/* Reports a tensor that newer files replace by others: clearer than what is missing. */
static bool report_outdated(model_reader *r)
{
    static const struct {
        const char *part, *said;
    } outdated[] = {
        { ".ssm_in.weight", "attn_qkv and attn_gate instead of ssm_in" },
        { ".ssm_alpha.weight", "ssm_ba instead of ssm_alpha and ssm_beta" },
        { ".ssm_ba.weight", "ssm_alpha and ssm_beta instead of ssm_ba" },
        { ".ffn_gate.0.weight",
          "ffn_gate_exps, one tensor for all experts, instead of ffn_gate.0" },
    };
    for (size_t i = 0; i < r->file->tensor_count; i++)
        for (size_t o = 0; o < sizeof outdated / sizeof *outdated; o++) {
            const char *name = r->file->tensors[i].name;
            if (!strstr(name, outdated[o].part))
                continue;
            bool has_use = false; /* the decoder uses a tensor of this name */
            for (unsigned t = 0; t < TENSOR_COUNT; t++)
                has_use |= r->out->decoder.has[t] &&
                           strcmp(tensor_infos[t].name, outdated[o].part + 1) == 0;
            if (has_use)
                continue;
            model_error(r, DIAG_BAD_TENSOR, "%s is not supported; use a file with %s", name,
                        outdated[o].said);
            return true;
        }
    return false;
}

static bool has_first_layer(const model_reader *r)
{
    static const char prefix[] = "blk.0.";
    bool has = false;
    for (size_t i = 0; i < r->file->tensor_count && !has; i++)
        has = strncmp(r->file->tensors[i].name, prefix, strlen(prefix)) == 0;
    return has;
}

/* Reports the tensors that the decoder does not use. */
static void report_unknown(model_reader *r)
{
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < r->file->tensor_count; i++) {
        if (r->known_tensors[i])
            continue;
        count++;
        first = first ? first : r->file->tensors[i].name;
    }
    if (count)
        model_error(r, DIAG_BAD_TENSOR, "%s%s not used by architecture %s", first,
                    count == 1 ? " is" : arena_format(r->arena, " and %zu more are", count - 1),
                    r->architecture->name);
}

void model_read_tensors(model_reader *r)
{
    const decoder *d = &r->out->decoder;
    size_t errors = r->diags->errors;
    choose_tensors(r);
    for (int64_t i = 0; i < r->out->further_layers; i++) { /* their numbers follow the decoder's */
        const char *prefix = arena_format(r->arena, "blk.%lld.", (long long)(d->layers + i));
        for (size_t t = 0; t < r->file->tensor_count; t++)
            if (strncmp(r->file->tensors[t].name, prefix, strlen(prefix)) == 0)
                r->known_tensors[t] = true;
    }
    if (r->out->further_layers && !has_first_layer(r)) {
        model_error(r, DIAG_BAD_TENSOR, "the file has only the layers that predict further tokens");
        return;
    }
    if (report_outdated(r))
        return;
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        int64_t copies = tensor_infos[t].by_layer ? d->layers : 1;
        bool right = true; /* only the first wrong layer is reported */
        for (int64_t l = 0; l < copies && right; l++)
            right = !decoder_has(d, t, l) || check_tensor(r, t, l);
        if (!d->vocab)
            return; /* the embedding decides sizes of other tensors */
    }
    for (size_t t = 0; t < r->file->tensor_count; t++) {
        static const char ending[] = ".input_scale"; /* scale for x in FP4; x is not rounded here */
        const char *name = r->file->tensors[t].name;
        size_t length = strlen(name), tail = strlen(ending);
        if (length <= tail || strcmp(name + length - tail, ending) != 0)
            continue;
        const char *stem = arena_copy(r->arena, name, length - tail);
        if (gguf_find(r->file, arena_format(r->arena, "%s.weight", stem)))
            r->known_tensors[t] = true;
    }
    if (r->diags->errors == errors)
        report_unknown(r);
}
