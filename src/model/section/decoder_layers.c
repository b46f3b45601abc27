/* Reads lists of values by layer: "8, 1: 5, 11" is 1 in layers 5 and 11, and 8 in all others. */
#include <string.h>

#include "input/values.h"
#include "model/section/decoder_keys.h"

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

bool reader_layers(const reader *r, const entry *e, bool set[DECODER_MOST_LAYERS])
{
    const key k = { .name = "layer", .max = r->out->layers - 1 };
    value_list layers = { 0 };
    values_read(r->arena, &k, e, &layers, r->diags);
    for (size_t i = 0; i < layers.count; i++)
        set[layers.items[i].numbers[0]] = true;
    return layers.count;
}

bool reader_item(const reader *r, const key *k, const item *i, int64_t *out)
{
    const entry one = { .key = k->name, .items = { .items = (item *)i, .count = 1 } };
    value_list values = { 0 };
    values_read(r->arena, k, &one, &values, r->diags);
    if (values.count)
        *out = values.items[0].numbers[0];
    return values.count;
}

/* Reads layer numbers that start at offset of an item, and sets their value. */
static void read_layers(layered *l, const item *i, size_t offset, int64_t number)
{
    const reader *r = l->reader;
    item numbers = { .text = i->text + offset,
                     .where = location_part(i->where, offset, strlen(i->text + offset)) };
    const entry one = { .key = l->entry->key, .items = { .items = &numbers, .count = 1 } };
    bool set[DECODER_MOST_LAYERS] = { false };
    reader_layers(r, &one, set);
    for (int64_t layer = 0; layer < r->out->layers; layer++) {
        if (!set[layer])
            continue;
        if (l->named[layer]) {
            diag_error(r->diags, DIAG_CONFLICT, numbers.where,
                       "layer %lld has two %ss in '%s'; remove one", (long long)layer, l->thing,
                       l->entry->key);
            return;
        }
        if (!l->set(l, layer, number)) {
            diag_error(r->diags, DIAG_CONFLICT, numbers.where, "layer %lld has no %s",
                       (long long)layer, l->name);
            return;
        }
        l->named[layer] = true;
    }
}

/* Returns the length of a value's text, which starts an item; 0 if the item is a list of layers. */
static size_t value_length(const layered *l, const char *text, bool takes_layers)
{
    size_t length = strcspn(text, ":");
    bool is_letter = (text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z';
    const char *dots = strstr(text, "..");
    bool ranges = dots && (size_t)(dots - text) < length;
    if (l->set_number ? ranges || (takes_layers && !text[length]) : !is_letter)
        return 0;
    while (length && strchr(" \t", text[length - 1]))
        length--;
    return length;
}

/* Reads "VALUE" or "VALUE: LAYER". Returns false after a problem. takes_layers: more may follow. */
static bool read_head(layered *l, const item *i, size_t length, int64_t *found, bool *takes_layers)
{
    const reader *r = l->reader;
    const item word = { .text = arena_copy(r->arena, i->text, length),
                        .where = location_part(i->where, 0, length) };
    if (!l->read(l, &word, found))
        return false;
    size_t colon = strcspn(i->text, ":"), first = colon;
    *takes_layers = i->text[colon];
    if (!*takes_layers) {
        if (l->has_rest)
            diag_error(r->diags, DIAG_CONFLICT, i->where,
                       "'%s' has two %ss for all layers; give one of them layers: %s: 0..3",
                       l->entry->key, l->thing, i->text);
        l->has_rest = true;
        l->rest = *found;
        return true;
    }
    first += 1 + strspn(i->text + colon + 1, " \t");
    if (!i->text[first])
        diag_error(r->diags, DIAG_NOT_A_NUMBER, i->where,
                   "'%s' names no layers; write %.*s: 0..3, 7, or remove the colon", i->text,
                   (int)length, i->text);
    else if (l->single)
        diag_error(r->diags, DIAG_CONFLICT, i->where,
                   "%s is a single tensor, not one per layer; write %.*s", l->name, (int)length,
                   i->text);
    else
        read_layers(l, i, first, *found);
    return i->text[first] && !l->single;
}

void layered_read(layered *l)
{
    const reader *r = l->reader;
    int64_t latest = 0;
    bool known = true, takes_layers = false; /* of the latest value: valid; followed by layers */
    for (size_t i = 0; i < l->entry->items.count; i++) {
        const item *at = &l->entry->items.items[i];
        size_t length = value_length(l, at->text, known && takes_layers);
        if (length)
            known = read_head(l, at, length, &latest, &takes_layers);
        else if (known && takes_layers)
            read_layers(l, at, 0, latest);
        else if (known)
            diag_error(r->diags, DIAG_BAD_CHOICE, at->where,
                       "'%s' is not a %s; layers follow a %s and a colon: %s: 0..3, 7", at->text,
                       l->thing, l->thing, l->example);
    }
    for (int64_t layer = 0; l->has_rest && layer < l->layers; layer++)
        if (!l->named[layer])
            l->set(l, layer, l->rest);
}
