#include "emu/symbols.h"

static uint32_t bucket_of(const char *name, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
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
        s->heads[bucket_of(last->name, strlen(last->name))] = last->next;
    }
    s->depth--;
}

symbol *symbols_find_start(symbols *s, const char *name, size_t length)
{
    for (uint32_t i = s->heads[bucket_of(name, length)]; i; i = s->list.items[i - 1].next) {
        symbol *found = &s->list.items[i - 1];
        if ((found->depth == 0 || found->depth >= s->floor) &&
            strncmp(found->name, name, length) == 0 && !found->name[length])
            return found;
    }
    return NULL;
}

symbol *symbols_find(symbols *s, const char *name)
{
    return symbols_find_start(s, name, strlen(name));
}

symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind)
{
    const symbol *known = symbols_find(s, name);
    if (known && known->depth == s->depth)
        return NULL;
    uint32_t *head = &s->heads[bucket_of(name, strlen(name))];
    symbol *added = VEC_PUSH(a, &s->list);
    *added = (symbol){ .name = name, .kind = kind, .depth = s->depth, .next = *head };
    *head = (uint32_t)s->list.count;
    return added;
}
