#include "emu/symbols.h"

static uint32_t bucket_of(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return (hash ^ hash >> 16) % SYMBOL_BUCKETS;
}

size_t symbols_open(symbols *s)
{
    s->depth++;
    return s->list.count;
}

void symbols_close(symbols *s, size_t opened)
{
    while (s->list.count > opened) {
        const symbol *last = &s->list.items[--s->list.count];
        s->heads[bucket_of(last->name)] = last->next;
    }
    s->depth--;
}

symbol *symbols_find(symbols *s, const char *name)
{
    for (uint32_t i = s->heads[bucket_of(name)]; i; i = s->list.items[i - 1].next)
        if ((s->list.items[i - 1].depth == 0 || s->list.items[i - 1].depth >= s->floor) &&
            strcmp(s->list.items[i - 1].name, name) == 0)
            return &s->list.items[i - 1];
    return NULL;
}

symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind)
{
    const symbol *known = symbols_find(s, name);
    if (known && known->depth == s->depth)
        return NULL;
    uint32_t *head = &s->heads[bucket_of(name)];
    symbol *added = VEC_PUSH(a, &s->list);
    *added = (symbol){ .name = name, .kind = kind, .depth = s->depth, .next = *head };
    *head = (uint32_t)s->list.count;
    return added;
}
