/* A cache of emulator results that lasts from one test run to the next. A result is reused if the
 * kernel, its inputs and the checking code are unchanged. The checking code is the emulator, the
 * references and the comparison; a build that changes it empties the folder. Failures are never
 * cached.
 *
 * The folder is $PTXGEN_TEST_CACHE. If that is empty or not set, nothing is cached. */
#ifndef PTXGEN_TESTS_CACHE_H
#define PTXGEN_TESTS_CACHE_H

#include "check/run.h"
#include "kernel/kernel.h"

/* Returns a hash extended by more bytes. */
uint64_t cache_hash(uint64_t hash, const void *bytes, size_t count);

/* Returns the cache key of a run: a hash of the kernel's PTX, the trial's launch and inputs,
 * samples of the reference, and a word for the use of the result. */
uint64_t cache_key(const char *use, const kernel *k, const trial *t);

/* Returns the cached bytes of a key, or NULL if there are none of this size. */
void *cache_find(arena *a, uint64_t id, size_t bytes);

/* Stores bytes under a key; count may be 0. */
void cache_keep(uint64_t id, const void *bytes, size_t count);

#endif
