#include "kernel/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"

#include "proof_hash.h"

uint64_t cache_hash(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t left = count; left; left -= left < 8 ? left : 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, left < 8 ? left : 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (hash ^ count) * UINT64_C(0xff51afd7ed558ccd);
}

static uint64_t hash_buffer(uint64_t hash, const device_buffer *b)
{
    hash = cache_hash(hash, &b->size, sizeof b->size);
    return b->bytes ? cache_hash(hash, b->bytes, b->stored) : hash;
}

/* Hashes the first and last values of an output's reference. They change with the reference or the
 * tolerance. */
static uint64_t hash_reference(uint64_t hash, const trial *t, const trial_param *p, unsigned output)
{
    enum { SOME = 4 };
    const family *f = t->instance->family;
    ref_value values[SOME];
    uint64_t count = p->values < SOME ? p->values : SOME;
    const uint64_t starts[] = { 0, p->values - count };
    for (size_t i = 0; count && i < (f->reference_is_whole ? 1 : 2); i++) {
        memset(values, 0, sizeof values);
        f->reference(&t->problem, output, starts[i], count, values);
        hash = cache_hash(hash, values, sizeof values);
    }
    return cache_hash(hash, &f->tolerance, sizeof f->tolerance);
}

uint64_t cache_key(const char *use, const kernel *k, const trial *t)
{
    const instance *in = t->instance;
    uint64_t hash = cache_hash(PROOF_HASH, k->ptx, k->ptx_length);
    hash = cache_hash(hash, use, strlen(use));
    hash = cache_hash(hash, in->name, strlen(in->name));
    for (const key *each = in->family->keys; each->name; each++) {
        int64_t value = instance_value(in, each);
        hash = cache_hash(hash, &value, sizeof value);
    }
    hash = cache_hash(hash, &t->setup.shape, sizeof t->setup.shape);
    hash = cache_hash(hash, &t->setup.turn, sizeof t->setup.turn);
    hash = cache_hash(hash, t->grid, sizeof t->grid);
    hash = cache_hash(hash, &t->block, sizeof t->block);
    hash = cache_hash(hash, &t->dynamic_shared, sizeof t->dynamic_shared);
    unsigned output = 0;
    for (const trial_param *p = t->params; p < t->params + t->param_count; p++) {
        hash = cache_hash(hash, &p->size, sizeof p->size);
        hash = cache_hash(hash, &p->number, sizeof p->number);
        hash = hash_buffer(hash, &p->content);
        if (p->param.kind == PARAM_OUT)
            hash = hash_reference(hash, t, p, output++);
    }
    return hash;
}

/* Returns the path of a key's file, or NULL if there is no cache. */
static const char *path_of(arena *a, uint64_t id)
{
    const char *folder = getenv("PTXGEN_TEST_CACHE");
    return folder && *folder ? arena_format(a, "%s/%016llx", folder, (unsigned long long)id) : NULL;
}

void *cache_find(arena *a, uint64_t id, size_t bytes)
{
    const char *path = path_of(a, id), *error;
    char *content;
    size_t size;
    bool kept = path && os_read_file(a, path, &content, &size, &error) && size == bytes;
    return kept ? content : NULL;
}

void cache_keep(uint64_t id, const void *bytes, size_t count)
{
    arena *a = arena_new();
    const char *path = path_of(a, id), *error;
    if (path)
        os_write_file(a, path, bytes, count, &error); /* a failed write only leaves the cache
                                                         empty */
    arena_free(a);
}
