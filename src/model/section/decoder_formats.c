#include "model/section/decoder_keys.h"

#include <string.h>

#include "input/values.h"

const entry *reader_entry(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->section->entries.count; i++)
        if (strcmp(r->section->entries.items[i].key, name) == 0)
            return &r->section->entries.items[i];
    return NULL;
}

location reader_blame(const reader *r, const char *name)
{
    const entry *e = reader_entry(r, name);
    return e && e->items.count ? e->items.items[0].where : r->section->name_where;
}

/* The entry of one tensor while it is read. Two tensors may share a name, in different layers or as
 * alternatives: tensor is then any of them. */
typedef struct formats_entry {
    reader *reader;
    const entry *entry;
    decoder_tensor tensor;
    bool has_rest;                   /* an item without layers: the format of all other layers */
    uint8_t rest;                    /* that format */
    bool named[DECODER_MOST_LAYERS]; /* layers with a format of their own */
} formats_entry;

static const uint8_t formats_of_choices[] = {
#define FORMAT(id, ...) FORMAT_##id,
#include "kernel/format.def"
};

static bool read_format(const reader *r, const char *key_name, const item *i, size_t length,
                        uint8_t *out)
{
    key k = { .name = key_name, .choices = weights_choices };
    item word = { .text = arena_copy(r->arena, i->text, length),
                  .where = location_part(i->where, 0, length) };
    entry one = { .key = key_name, .items = { .items = &word, .count = 1 } };
    value_list values = { 0 };
    values_read(r->arena, &k, &one, &values, r->diags);
    if (values.count)
        *out = formats_of_choices[values.items[0].numbers[0]];
    return values.count;
}

/* Returns a layer's tensor with the name of another, or TENSOR_COUNT. */
static unsigned tensor_of(const decoder *d, decoder_tensor named, int64_t layer)
{
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (strcmp(tensor_infos[t].name, tensor_infos[named].name) == 0 && decoder_has(d, t, layer))
            return t;
    return TENSOR_COUNT;
}

/* Reads layer numbers that start at offset of an item, and sets their format. */
static void read_layers(formats_entry *f, const item *i, size_t offset, uint8_t known)
{
    const reader *r = f->reader;
    key k = { .name = "layer", .max = r->out->layers - 1 };
    item numbers = { .text = i->text + offset,
                     .where = location_part(i->where, offset, strlen(i->text + offset)) };
    entry one = { .key = f->entry->key, .items = { .items = &numbers, .count = 1 } };
    value_list layers = { 0 };
    values_read(r->arena, &k, &one, &layers, r->diags);
    for (size_t l = 0; l < layers.count; l++) {
        int64_t layer = layers.items[l].numbers[0];
        if (f->named[layer]) {
            diag_error(r->diags, DIAG_CONFLICT, numbers.where,
                       "layer %lld has two formats in '%s'; remove one", (long long)layer,
                       f->entry->key);
            return;
        }
        unsigned t = tensor_of(r->out, f->tensor, layer);
        if (t == TENSOR_COUNT) {
            diag_error(r->diags, DIAG_CONFLICT, numbers.where, "layer %lld has no %s",
                       (long long)layer, tensor_word(r->arena, f->tensor));
            return;
        }
        f->named[layer] = true;
        r->out->formats[t][layer] = known;
    }
}

/* Reads "FORMAT" or "FORMAT: LAYER". Returns false after a problem. takes_layers: more may follow.
 */
static bool read_head(formats_entry *f, const item *i, size_t length, uint8_t *found,
                      bool *takes_layers)
{
    const reader *r = f->reader;
    if (!read_format(r, f->entry->key, i, length, found))
        return false;
    size_t colon = strcspn(i->text, ":"), first = colon;
    *takes_layers = i->text[colon];
    if (!*takes_layers) {
        if (f->has_rest)
            diag_error(r->diags, DIAG_CONFLICT, i->where,
                       "'%s' has two formats for all layers; give one of them layers: %s: 0..3",
                       f->entry->key, i->text);
        f->has_rest = true;
        f->rest = *found;
        return true;
    }
    first += 1 + strspn(i->text + colon + 1, " \t");
    if (!i->text[first])
        diag_error(r->diags, DIAG_NOT_A_NUMBER, i->where,
                   "'%s' names no layers; write %.*s: 0..3, 7, or remove the colon", i->text,
                   (int)length, i->text);
    else if (!tensor_infos[f->tensor].by_layer)
        diag_error(r->diags, DIAG_CONFLICT, i->where,
                   "%s is a single tensor, not one per layer; write %.*s",
                   tensor_word(r->arena, f->tensor), (int)length, i->text);
    else
        read_layers(f, i, first, *found);
    return i->text[first] && tensor_infos[f->tensor].by_layer;
}

static void read_entry(formats_entry *f)
{
    const reader *r = f->reader;
    uint8_t latest = FORMAT_NONE;
    bool known = true, takes_layers = false; /* of the latest format: valid; followed by layers */
    for (size_t i = 0; i < f->entry->items.count; i++) {
        const item *at = &f->entry->items.items[i];
        bool is_letter = (at->text[0] | 0x20) >= 'a' && (at->text[0] | 0x20) <= 'z';
        size_t length =
            is_letter ? strcspn(at->text, ":") : 0; /* of the format's name; 0 = layers only */
        while (length && strchr(" \t", at->text[length - 1]))
            length--;
        if (length)
            known = read_head(f, at, length, &latest, &takes_layers);
        else if (known && takes_layers)
            read_layers(f, at, 0, latest);
        else if (known)
            diag_error(r->diags, DIAG_BAD_CHOICE, at->where,
                       "'%s' is not a format; layers follow a format and a colon: q6_k: 0..3, 7",
                       at->text);
    }
    for (int64_t l = 0; f->has_rest && l < decoder_copies(r->out, f->tensor); l++) {
        unsigned t = f->named[l] ? TENSOR_COUNT : tensor_of(r->out, f->tensor, l);
        if (t != TENSOR_COUNT)
            r->out->formats[t][l] = f->rest;
    }
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
    uint8_t common = FORMAT_NONE;
    if (all->items.count > 1)
        diag_error(
            r->diags, DIAG_BAD_CHOICE, all->items.items[1].where,
            "weights is one format; set another for single tensors, e.g. weights.attn_v = q6_k");
    read_format(r, all->key, &all->items.items[0], strlen(all->items.items[0].text), &common);
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        for (int64_t l = 0; decoder_has_matrix(r->out, t) && l < decoder_copies(r->out, t); l++)
            if (decoder_has(r->out, t, l))
                r->out->formats[t][l] = (uint8_t)tensor_usual_format(t, common);

    for (size_t i = 0; i < r->section->entries.count; i++) {
        const entry *e = &r->section->entries.items[i];
        if (strncmp(e->key, FORMATS_PREFIX, strlen(FORMATS_PREFIX)) != 0)
            continue;
        formats_entry f = { .reader = r, .entry = e, .tensor = find_tensor(r, e) };
        if (f.tensor != TENSOR_COUNT)
            read_entry(&f);
    }
}
