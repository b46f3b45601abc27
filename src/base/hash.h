/* Hashes of texts, and maps from names to numbers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Returns the 64-bit FNV-1a hash of bytes. Used for maps and to detect edited files. */
uint64_t fnv1a64(const void *bytes, size_t count);

/* Returns a hash as 16 hexadecimal digits. */
const char *fnv1a64_text(arena *a, uint64_t hash);

typedef struct name_map {
    struct name_slot *slots;
    size_t count, capacity; /* capacity: 0 or a power of 2 */
} name_map;

/* Returns the number of a name. Adds a missing name, without a copy, with the given number. */
size_t name_map_find_or_add(arena *a, name_map *map, const char *name, size_t number);

/* Returns the number of a name, or SIZE_MAX if the map does not have it. */
size_t name_map_find(const name_map *map, const char *name);
