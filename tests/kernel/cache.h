/* What came of runs on the emulator, kept in a folder for the next run of the tests: a run is not
 * repeated whose kernel, inputs and code are the same. The code is that of the emulator, of the
 * references and of what judges by them; a build that changes it empties the folder. Failures are
 * never kept.
 *
 * The folder is $PTXGEN_TEST_CACHE; if it is empty or not set, nothing is kept.
 */
#ifndef PTXGEN_TESTS_CACHE_H
#define PTXGEN_TESTS_CACHE_H

#include "check/run.h"
#include "kernel/kernel.h"

/* Returns a hash of more bytes behind those of another hash. */
uint64_t cache_hash(uint64_t hash, const void *bytes, size_t count);

/* Returns the key of a kernel's run: a hash of its PTX, of the trial's launch and inputs, of some
 * results of the reference, and of a word for what is done with it. */
uint64_t cache_key(const char *use, const kernel *k, const trial *t);

/* Returns what was kept with a key, which must have that many bytes; NULL: nothing was. */
void *cache_find(arena *a, uint64_t id, size_t bytes);

/* Keeps bytes, which may be none. */
void cache_keep(uint64_t id, const void *bytes, size_t count);

#endif
