#include "model/arch/read.h"

#include <string.h>

#include "model/arch/architecture.h"
#include "model/arch/expect.h"
#include "model/arch/keys.h"
#include "model/arch/tensors.h"

static const architecture *const architectures[] = {
    &model_llama,   &model_mistral3,  &model_qwen2,     &model_qwen3,   &model_qwen3moe,
    &model_gemma2,  &model_gemma3,    &model_phi3,      &model_granite, &model_granitemoe,
    &model_gpt_oss, &model_deepseek2, &model_qwen3next, &model_qwen35,  &model_qwen35moe,
};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

const char *model_architectures(arena *a)
{
    strbuf names = strbuf_new(a);
    for (size_t i = 0; i < ARCHITECTURES; i++)
        strbuf_format(&names, "%s%s", i ? ", " : "", architectures[i]->name);
    return names.text;
}

/* What architectures need that no key tells; NULL: nothing known. */
static const char *missing_part(const char *name)
{
    static const struct {
        const char *name, *part;
    } parts[] = {
        { "gemma4", "heads of two sizes and embeddings by layer" },
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].name, name) == 0)
            return parts[i].part;
    return NULL;
}

/* The architecture that the file names; NULL where it is none of ours, which is said. */
static const architecture *find_architecture(model_reader *r)
{
    gguf_string named;
    if (!gguf_get_string(gguf_find_key(r->file, "general.architecture"), &named)) {
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "general.architecture is missing; this is no file of a model");
        return NULL;
    }
    const char *name = model_shown_text(r, named);
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i]->name, name) == 0)
            return architectures[i];
    const char *key, *feature;
    r->architecture = &(const architecture){ .name = name };
    feature = missing_part(name);
    if (!feature)
        feature = model_missing_feature(r, &key);
    model_error(r, DIAG_NO_ARCHITECTURE, "architecture '%s' has no decoder here%s%s; there are %s",
                name, feature ? ", it needs " : "", feature ? feature : "",
                model_architectures(r->arena));
    return NULL;
}

/* Reads all but tensors. */
static bool read_keys(model_reader *r, const model_options *options)
{
    size_t errors = r->diags->errors;
    *r->out = (model){ 0 };
    r->architecture = find_architecture(r);
    if (!r->architecture)
        return false;
    model_read_keys(r, options);
    if (r->diags->errors == errors && r->architecture->adapt)
        r->architecture->adapt(r);
    if (r->diags->errors == errors)
        model_check_keys(r);
    return r->diags->errors == errors;
}

static model_reader new_reader(arena *a, const gguf_file *file, location where, model *out,
                               diags *d)
{
    return (model_reader){ .arena = a,
                           .diags = d,
                           .file = file,
                           .where = where,
                           .known_keys = arena_zalloc(a, file->key_count + 1),
                           .known_tensors = arena_zalloc(a, file->tensor_count + 1),
                           .out = out };
}

/* Keeps the keys of the file that decided something. */
static void keep_metadata(model_reader *r)
{
    VEC(decoder_metadata) kept = { 0 };
    for (size_t i = 0; i < r->notes.count; i++) {
        const model_note *note = &r->notes.items[i];
        if (note->is_there && note->key.use != DECODER_KEY_IGNORED)
            *VEC_PUSH(r->arena, &kept) = (decoder_metadata){ note->key.name, note->key.text };
    }
    r->out->decoder.metadata = kept.items;
    r->out->decoder.metadata_count = kept.count;
}

/* Returns true if context_length is the value of a key that the file leaves out. */
static bool context_decides(const model_reader *r)
{
    for (size_t i = 0; i < r->notes.count; i++) {
        const model_note *note = &r->notes.items[i];
        if (strcmp(note->key.name, "rope.scaling.original_context_length") == 0)
            return !note->is_there && note->key.use != DECODER_KEY_IGNORED;
    }
    return false;
}

bool model_expect(arena *a, const decoder *d, model *out, decoder_file *expected, diags *reported)
{
    gguf_file file;
    model_file_of(a, d, &file);
    model_reader r = new_reader(a, &file, (location){ 0 }, out, reported);
    const model_options options = { .max_seq_len = d->max_seq_len, .kv_type = d->kv_type };
    if (!read_keys(&r, &options))
        return false;
    decoder_key *keys = arena_alloc(a, (r.notes.count + 1) * sizeof *keys);
    bool decides = context_decides(&r);
    for (size_t i = 0; i < r.notes.count; i++) {
        keys[i] = r.notes.items[i].key;
        bool is_context = strcmp(keys[i].name, "context_length") == 0;
        if (is_context ? !decides : model_is_free(keys[i].name))
            keys[i].use = DECODER_KEY_IGNORED;
        keys[i].name = arena_format(a, "%s.%s", r.architecture->name, keys[i].name);
    }
    *expected = (decoder_file){ .keys = keys,
                                .key_count = r.notes.count,
                                .ignored_tensors = r.ignored.items,
                                .ignored_tensor_count = r.ignored.count };
    return true;
}

bool model_read(arena *a, const char *path, const gguf_file *file, const model_options *options,
                model *out, diags *d)
{
    model_reader r = new_reader(a, file, (location){ .file = path }, out, d);
    size_t errors = d->errors;
    if (!read_keys(&r, options))
        return false;
    model_read_tensors(&r);
    keep_metadata(&r);
    return d->errors == errors;
}
