#include "model/from_gguf/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "kernel/family.h"
#include "model/section/decoder_section.h"

enum { KIBI = 1024, PROMPT_ROWS = 256, NOTE_COLUMN = 39 };

/* One target for each shared-memory limit from sm_80 on. Every newer GPU can run one of the
 * kernels, and A100 and H100 get kernels that use their larger shared memory. */
static const char DEFAULT_TARGETS[] = "sm_80,sm_86,sm_90";

typedef struct conversion {
    arena *arena;
    const char *path;
    const upper_storey *upper;
    const spec_overrides *overrides;
    const model_options *options;
    strbuf *out, *said;
    diags *diags;
    gguf_file file;
    model model;
    bool right;
} conversion;

static const char *positions_text(arena *a, int64_t positions)
{
    bool kibi = positions % KIBI == 0;
    return arena_format(a, kibi ? "%lldk" : "%lld",
                        (long long)(kibi ? positions / KIBI : positions));
}

static void put_spec(strbuf *out, const conversion *c, const spec_overrides *overrides)
{
    arena *a = out->arena;
    const model *m = &c->model;
    bool has_freqs = m->decoder.has[TENSOR_ROPE_FREQS];
    const decoder_note notes[] = {
        { "max_seq_len", arena_format(a, "KV-cache length in tokens; the model was trained for %s",
                                      positions_text(a, m->context_length)) },
        { "rope_factors",
          has_freqs ? tensor_infos[TENSOR_ROPE_FREQS].name
                    : arena_format(a, "short factors up to max_seq_len = %s, else long ones",
                                   positions_text(a, m->original_context)) },
        { NULL, NULL },
    };
    strbuf_put(out, "; The spec of ");
    for (const char *text = os_name_of(c->path); *text; text++) /* printable ASCII only */
        strbuf_char(out, *text >= ' ' && *text <= '~' ? *text : '?');
    strbuf_put(out, ", written by ptxgen --from-gguf. From now on this is the source: edit it.\n");
    if (m->ignored_window)
        strbuf_format(out,
                      "; The file's sliding window of %lld tokens is ignored, as in llama.cpp.\n",
                      (long long)m->ignored_window);
    if (m->further_layers)
        strbuf_format(out, "; Left out: layers from blk.%lld on, which predict further tokens.\n",
                      (long long)m->decoder.layers);
    strbuf_put(out, "[ptxgen]\n");
    size_t start = out->length;
    strbuf_format(out, "prefix  = %s", overrides->prefix ? overrides->prefix : "model");
    strbuf_pad(out, start, NOTE_COLUMN);
    strbuf_put(out, " ; start of all names in the header\n");
    start = out->length;
    strbuf_put(out, "targets = ");
    for (const char *list = overrides->targets ? overrides->targets : DEFAULT_TARGETS; *list;
         list++)
        strbuf_format(out, *list == ',' && list[1] != ' ' ? "%c " : "%c", *list);
    strbuf_pad(out, start, NOTE_COLUMN);
    strbuf_put(out, " ; GPU architectures; newer GPUs run them, too");
    strbuf_put(out, "\n\n");
    decoder_print(out, &m->decoder, notes);
}

typedef struct type_count {
    const gguf_type *type;
    size_t count;
} type_count;

/* Orders types by number of tensors, most frequent first, f32 last. */
static int by_count(const void *left, const void *right)
{
    const type_count *a = left, *b = right;
    if ((a->type->id == 0) != (b->type->id == 0))
        return a->type->id == 0 ? 1 : -1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->type->id < b->type->id ? -1 : 1;
}

static void put_summary(strbuf *out, const gguf_file *file, const decoder *d)
{
    VEC(type_count) counts = { 0 };
    for (size_t i = 0; i < file->tensor_count; i++) {
        size_t at = 0;
        while (at < counts.count && counts.items[at].type != file->tensors[i].type)
            at++;
        if (at == counts.count)
            *VEC_PUSH(out->arena, &counts) = (type_count){ file->tensors[i].type, 0 };
        counts.items[at].count++;
    }
    qsort(counts.items, counts.count, sizeof *counts.items, by_count);
    strbuf_format(out, "ptxgen: %s, %lld layers, %lld wide, ", d->architecture,
                  (long long)d->layers, (long long)d->hidden);
    const int64_t first = decoder_first_layer(d, PART_ATTENTION);
    const decoder_layer *at = &d->at[first < 0 ? 0 : first];
    if (first >= 0)
        strbuf_format(out, "%lld/%lld heads of %lld, ", (long long)at->num_heads,
                      (long long)at->num_kv_heads, (long long)at->head_dim);
    if (d->experts)
        strbuf_format(out, "%lld of %lld experts, ", (long long)d->experts_used,
                      (long long)d->experts);
    strbuf_format(out, "%zu tensors (", file->tensor_count);
    for (size_t i = 0; i < counts.count; i++) {
        strbuf_put(out, i ? ", " : "");
        for (const char *c = counts.items[i].type->name; *c; c++)
            strbuf_char(out, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
        strbuf_format(out, " %zu", counts.items[i].count);
    }
    strbuf_put(out, ")\n");
}

/* Prints which GPUs the targets cover and which not: "RTX 30, RTX 40; not RTX 20 (sm_75)". */
static void put_served(strbuf *out, const spec *of)
{
    target_set named = 0;
    for (size_t t = 0; t < of->target_count; t++)
        named |= target_bit(of->targets[t]);
    strbuf served = strbuf_new(out->arena), others = strbuf_new(out->arena);
    for (const target *gpu = targets; gpu < targets + target_count; gpu++) {
        if (gpu->specific)
            continue;
        if (target_newest_for(gpu, of->targets, of->target_count) < of->target_count)
            strbuf_format(&served, "%s%s", served.length ? ", " : " run on ", gpu->gpus);
        else
            strbuf_format(&others, "%s%s (%s)", others.length ? ", " : "; not ", gpu->gpus,
                          gpu->name);
    }
    strbuf_put(out, "ptxgen: targets ");
    target_print_set(out, named);
    strbuf_format(out, "%s%s\n", served.length ? served.text : "",
                  others.length ? others.text : "");
}

/* Parses the generated spec: sizes may violate rules, --target may be unknown. */
static bool check_spec(conversion *c, spec *back)
{
    static const spec_overrides none = { 0 };
    strbuf text = strbuf_new(c->arena);
    put_spec(&text, c, &none);
    return spec_parse(c->arena, arena_format(c->arena, "the spec of %s", os_name_of(c->path)),
                      text.text, text.length, families, c->upper, c->overrides, back, c->diags);
}

/* Warns if the starter engine does not support the file's tokenizer. */
static void check_tokenizer(conversion *c)
{
    enum { SHOWN = 64 };
    static const char *const pre_tokenizers[] = {
#define PRE_TOKENIZER(name, ...) name,
#include "templates/engine/pre_tokenizers.def"
#undef PRE_TOKENIZER
    };
    static const char model_key[] = "tokenizer.ggml.model", pre_key[] = "tokenizer.ggml.pre";
    gguf_string kind, pre = { "default", strlen("default") };
    if (!gguf_get_string(gguf_find_key(&c->file, model_key), &kind))
        return;
    gguf_get_string(gguf_find_key(&c->file, pre_key), &pre);
    bool is_bpe = gguf_string_is(kind, "gpt2");
    gguf_string shown = is_bpe ? pre : kind;
    const char *name =
        arena_copy(c->arena, shown.bytes, shown.length < SHOWN ? shown.length : SHOWN);
    bool is_supported = gguf_string_is(kind, "llama") || gguf_string_is(kind, "gemma4");
    for (size_t i = 0; is_bpe && i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
        is_supported |= strcmp(pre_tokenizers[i], name) == 0;
    if (!is_supported)
        diag_warning(c->diags, DIAG_NO_TOKENIZER, (location){ .file = c->path },
                     "%s = %s is not supported by the starter engine; write a tokenizer for this "
                     "model. Kernels and header do not depend on it",
                     is_bpe ? pre_key : model_key, name);
}

static void convert(void *context)
{
    conversion *c = context;
    decoder *d = &c->model.decoder;
    gguf_error error;
    spec back;
    if (!gguf_open(c->path, &c->file, &error)) {
        size_t length = strlen(c->path);
        bool named = strncmp(error.message, c->path, length) == 0 && error.message[length] == ':';
        const char *message = error.message + (named ? length + 1 : 0);
        diag_error(c->diags, error.unreadable ? DIAG_UNREADABLE : DIAG_BAD_GGUF,
                   (location){ .file = c->path }, "%s", message + strspn(message, " "));
        return;
    }
    c->right = model_read(c->arena, c->path, &c->file, c->options, &c->model, c->diags) &&
               check_spec(c, &back);
    if (c->right && !decoder_lacks_prompts(d) && back.targets[0]->sm >= DECODER_PROMPT_SM) {
        spec with_prompts;
        d->m[d->m_count++] = PROMPT_ROWS;
        c->right = check_spec(c, &with_prompts);
    }
    if (c->right) {
        put_spec(c->out, c, c->overrides);
        put_summary(c->said, &c->file, d);
        put_served(c->said, &back);
        check_tokenizer(c);
    }
    gguf_close(&c->file);
}

bool from_gguf(arena *a, const char *path, const upper_storey *upper,
               const spec_overrides *overrides, const model_options *options, strbuf *out,
               strbuf *said, diags *d)
{
    conversion *c = arena_alloc(a, sizeof *c);
    *c = (conversion){ .arena = a,
                       .path = path,
                       .upper = upper,
                       .overrides = overrides,
                       .options = options,
                       .out = out,
                       .said = said,
                       .diags = d };
    if (os_try_mapped(convert, c))
        return c->right;
    diag_error(d, DIAG_UNREADABLE, (location){ .file = path },
               "was truncated while it was read; is it still being written?");
    return false;
}
