/* A device that runs kernels: the emulator or a GPU. One suite of tests runs on both. */
#ifndef PTXGEN_TESTS_DEVICE_H
#define PTXGEN_TESTS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* One launch of the kernel loaded last. params as cuLaunchKernel takes them. */
typedef struct device_launch {
    const char *entry;
    unsigned grid[3], block;
    size_t dynamic_shared;
    const void **params;
    size_t param_count;
} device_launch;

/* Functions that can fail return false and set *error to a sentence. */
typedef struct device {
    const char *name;
    void *state;
    unsigned sm, sm_count;         /* 90 for sm_90 */
    const struct emu_stats *stats; /* of the last launch; NULL where none are kept */

    /* Memory without content; with content, which a kernel may write where it is not read-only.
     * Freed by reset. */
    bool (*alloc)(void *state, size_t size, uint64_t *address, const char **error);
    bool (*copy_in)(void *state, const void *bytes, size_t size, bool read_only, uint64_t *address,
                    const char **error);

    /* Reads blocks of block_bytes and says of each whether a kernel wrote it: a GPU knows it by the
     * bytes that alloc put there, all 0xff. */
    bool (*copy_out)(void *state, uint64_t address, void *bytes, size_t blocks, size_t block_bytes,
                     uint8_t *written, const char **error);

    bool (*load)(void *state, const char *ptx, size_t length, const char **error);
    bool (*launch)(void *state, const device_launch *l, const char **error);

    /* Frees the memory, forgets the kernel, and makes the device usable after one that failed. */
    void (*reset)(void *state);
    void (*close)(void *state);
} device;

/* False where there is no such device; why says so in a sentence. */
bool device_open_emulator(arena *a, device *d, const char **why);
bool device_open_cuda(arena *a, device *d, const char **why);

#endif
