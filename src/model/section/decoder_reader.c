#include "model/section/decoder_reader.h"

#include <string.h>

const entry *reader_entry(const reader *r, const char *key)
{
    for (size_t i = 0; i < r->section->entries.count; i++)
        if (strcmp(r->section->entries.items[i].key, key) == 0)
            return &r->section->entries.items[i];
    return NULL;
}

location reader_blame(const reader *r, const char *key)
{
    const entry *e = reader_entry(r, key);
    return e && e->items.count ? e->items.items[0].where : r->section->name_where;
}
