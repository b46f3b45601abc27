/* FNV-1a hashes. Maps use open addressing with linear probing, at most half full. */
#include "base/hash.h"

#include <string.h>

#include "base/strbuf.h"

uint64_t fnv1a64(const void *bytes, size_t count)
{
    const unsigned char *next = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ next[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const char *fnv1a64_text(arena *a, uint64_t hash)
{
    strbuf digits = strbuf_new(a);
    strbuf_hex(&digits, hash, 16);
    return digits.text;
}

enum { FIRST_SLOTS = 64 };

typedef struct name_slot {
    const char *name;
    uint64_t hash;
    size_t number;
} name_slot;

static name_slot *find_slot(const name_map *map, const char *name, uint64_t hash)
{
    for (size_t at = (size_t)hash;; at++) {
        name_slot *slot = &map->slots[at & (map->capacity - 1)];
        if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0))
            return slot;
    }
}

size_t name_map_find_or_add(arena *a, name_map *map, const char *name, size_t number)
{
    if (2 * map->count >= map->capacity) {
        name_map larger = { .count = map->count,
                            .capacity = map->capacity ? 2 * map->capacity : FIRST_SLOTS };
        larger.slots = arena_zalloc(a, larger.capacity * sizeof *larger.slots);
        for (size_t i = 0; i < map->capacity; i++)
            if (map->slots[i].name)
                *find_slot(&larger, map->slots[i].name, map->slots[i].hash) = map->slots[i];
        *map = larger;
    }
    uint64_t hash = fnv1a64(name, strlen(name));
    name_slot *slot = find_slot(map, name, hash);
    if (!slot->name) {
        *slot = (name_slot){ .name = name, .hash = hash, .number = number };
        map->count++;
    }
    return slot->number;
}

size_t name_map_find(const name_map *map, const char *name)
{
    if (!map->count)
        return SIZE_MAX;
    const name_slot *slot = find_slot(map, name, fnv1a64(name, strlen(name)));
    return slot->name ? slot->number : SIZE_MAX;
}
