/* 64-bit FNV-1a: to find names, and to see whether a text is still the one that was written. */
#ifndef PTXGEN_BASE_HASH_H
#define PTXGEN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

uint64_t fnv1a64(const void *bytes, size_t count);

/* As 16 hexadecimal digits. */
const char *fnv1a64_text(arena *a, uint64_t hash);

#endif
