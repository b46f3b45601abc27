#include "model/read.h"

#include <string.h>

#include "model/architecture.h"
#include "model/keys.h"
#include "model/tensors.h"

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
    const char *name = arena_copy(r->arena, named.bytes, named.length);
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

bool model_read(arena *a, const char *path, const gguf_file *file, const model_options *options,
                model *out, diags *d)
{
    model_reader r = { .arena = a,
                       .diags = d,
                       .file = file,
                       .where = { .file = path },
                       .known_keys = arena_zalloc(a, file->key_count + 1),
                       .known_tensors = arena_zalloc(a, file->tensor_count + 1),
                       .out = out };
    size_t errors = d->errors;
    *out = (model){ 0 };
    r.architecture = find_architecture(&r);
    if (!r.architecture)
        return false;
    model_read_keys(&r, options);
    if (d->errors == errors && r.architecture->adapt)
        r.architecture->adapt(&r);
    if (d->errors == errors)
        model_check_keys(&r);
    if (d->errors == errors)
        model_read_tensors(&r);
    return d->errors == errors;
}
