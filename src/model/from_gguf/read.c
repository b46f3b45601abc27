#include "model/from_gguf/read.h"

#include <string.h>

#include "model/from_gguf/architecture.h"

const char *model_architectures(arena *a)
{
    strbuf names = strbuf_new(a);
    for (const architecture *const *list = model_architecture_lists; *list; list++)
        for (const architecture *of = *list; of->name; of++)
            strbuf_format(&names, "%s%s", names.length ? ", " : "", of->name);
    return names.text;
}

/* Returns the file's architecture. Reports an unsupported one and returns NULL. */
static const architecture *find_architecture(model_reader *r)
{
    gguf_string named;
    if (!gguf_get_string(gguf_find_key(r->file, "general.architecture"), &named)) {
        model_error(r, DIAG_BAD_MODEL_KEY,
                    "general.architecture is missing; the file contains no model");
        return NULL;
    }
    const char *name = model_shown_text(r, named), *key_name;
    for (const architecture *const *list = model_architecture_lists; *list; list++)
        for (const architecture *of = *list; of->name; of++)
            if (strcmp(of->name, name) == 0)
                return of;
    r->architecture = &(const architecture){ .name = name };
    const char *feature = model_missing_feature(r, &key_name);
    model_error(r, DIAG_NO_ARCHITECTURE, "architecture '%s'%s%s is not supported; supported are %s",
                name, feature ? " with " : "", feature ? feature : "",
                model_architectures(r->arena));
    return NULL;
}

/* Reads everything but tensors. Returns false after errors. */
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

bool model_expect(arena *a, const decoder *d, model *out, decoder_file *expected, diags *reported)
{
    gguf_file file;
    model_file_of(a, d, &file);
    model_reader r = new_reader(a, &file, (location){ 0 }, out, reported);
    const model_options options = { .max_seq_len = d->max_seq_len, .kv_type = d->kv_type };
    if (!read_keys(&r, &options))
        return false;
    decoder_key *keys = arena_alloc(a, (r.notes.count + 1) * sizeof *keys);
    bool decides = false; /* context_length is the default of a key that the file lacks */
    for (size_t i = 0; i < r.notes.count; i++) {
        const model_note *note = &r.notes.items[i];
        if (strcmp(note->key.name, "rope.scaling.original_context_length") == 0)
            decides = !note->is_there && note->key.use != DECODER_KEY_IGNORED;
    }
    for (size_t i = 0; i < r.notes.count; i++) {
        keys[i] = r.notes.items[i].key;
        /* Loaders count the decoder's layers, without layers that predict further tokens. */
        if ((!decides && strcmp(keys[i].name, "context_length") == 0) ||
            strcmp(keys[i].name, "block_count") == 0 ||
            strcmp(keys[i].name, "nextn_predict_layers") == 0)
            keys[i].use = DECODER_KEY_IGNORED;
        keys[i].name = model_key_name(a, r.architecture->name, keys[i].name);
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
    VEC(decoder_metadata) kept = { 0 }; /* keys of the file that the decoder depends on */
    for (size_t i = 0; i < r.notes.count; i++) {
        const model_note *note = &r.notes.items[i];
        if (note->is_there && note->key.use != DECODER_KEY_IGNORED)
            *VEC_PUSH(a, &kept) = (decoder_metadata){ note->key.name, note->key.text };
    }
    out->decoder.metadata = kept.items;
    out->decoder.metadata_count = kept.count;
    return d->errors == errors;
}
