/* A map from texts to numbers: which section an instance's name was seen in, the first of equal
 * lines. */
#ifndef PTXGEN_BASE_NAME_MAP_H
#define PTXGEN_BASE_NAME_MAP_H

#include "base/arena.h"

typedef struct name_map {
    struct name_slot *slots;
    size_t count, capacity; /* capacity: 0 or a power of 2 */
} name_map;

/* The number of a name. One that is not in the map is put there with the number given, which is
 * returned. The name is not copied. */
size_t name_map_find_or_add(arena *a, name_map *map, const char *name, size_t number);

/* Returns the number of a name, or SIZE_MAX if the map does not have it. */
size_t name_map_find(const name_map *map, const char *name);

#endif
