#include "base/hash.h"

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
