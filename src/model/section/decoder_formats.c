#include "model/section/decoder_keys.h"

#include <string.h>

#include "input/values.h"

static const uint8_t formats_of_choices[] = {
#define FORMAT(id, ...) FORMAT_##id,
#include "kernel/format.def"
};

static bool read_format(const layered *l, const item *word, int64_t *out)
{
    const key k = { .name = l->entry->key, .choices = weights_choices };
    if (!reader_item(l->reader, &k, word, out))
        return false;
    *out = formats_of_choices[*out];
    return true;
}

static bool set_format(const layered *l, int64_t layer, int64_t number)
{
    decoder *d = l->reader->out;
    const char *name = tensor_infos[l->tensor].name;
    unsigned t = 0;
    while (t < TENSOR_COUNT &&
           !(strcmp(tensor_infos[t].name, name) == 0 && decoder_has(d, t, layer)))
        t++;
    if (t == TENSOR_COUNT)
        return false;
    d->formats[t][layer] = (uint8_t)number;
    return true;
}

/* Returns the decoder's matrix that a key names, or reports the key and returns TENSOR_COUNT. */
static unsigned find_tensor(const reader *r, const entry *e)
{
    strbuf there = strbuf_new(r->arena);
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        if (!decoder_has_matrix(r->out, t))
            continue;
        if (strcmp(formats_key(r->arena, t), e->key) == 0)
            return t;
        strbuf_format(&there, "%s%s", there.length ? ", " : "", tensor_word(r->arena, t));
    }
    diag_error(r->diags, DIAG_CONFLICT, e->where, "this decoder has no tensor %s; it has %s",
               e->key + strlen(FORMATS_PREFIX), there.text);
    return TENSOR_COUNT;
}

void decoder_read_formats(reader *r)
{
    const entry *all = reader_entry(r, "weights");
    const layered first = { .reader = r, .entry = all };
    int64_t common = FORMAT_NONE;
    if (all->items.count > 1)
        diag_error(
            r->diags, DIAG_BAD_CHOICE, all->items.items[1].where,
            "weights is one format; set another for single tensors, e.g. weights.attn_v = q6_k");
    read_format(&first, &all->items.items[0], &common);
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        for (int64_t l = 0; decoder_has_matrix(r->out, t) && l < decoder_copies(r->out, t); l++)
            if (decoder_has(r->out, t, l))
                r->out->formats[t][l] = (uint8_t)tensor_usual_format(t, (format)common);

    for (size_t i = 0; i < r->section->entries.count; i++) {
        const entry *e = &r->section->entries.items[i];
        if (strncmp(e->key, FORMATS_PREFIX, strlen(FORMATS_PREFIX)) != 0)
            continue;
        unsigned t = find_tensor(r, e);
        layered l = { .reader = r,
                      .entry = e,
                      .tensor = (decoder_tensor)t,
                      .layers = t == TENSOR_COUNT ? 0 : decoder_copies(r->out, t),
                      .thing = "format",
                      .example = "q6_k",
                      .read = read_format,
                      .set = set_format };
        if (t != TENSOR_COUNT) {
            l.name = tensor_word(r->arena, l.tensor);
            l.single = !tensor_infos[t].by_layer;
            layered_read(&l);
        }
    }
}
