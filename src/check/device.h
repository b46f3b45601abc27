/* A device that runs kernels: the emulator, or a GPU in tests. All launches of kernels, steps and
 * tests' trials use this interface.
 *
 * Functions that can fail return false and set error to a message. */
#pragma once

#include "emu/emu.h"

typedef struct device_buffer {
    uint64_t size;     /* size in bytes */
    uint64_t readable; /* bytes according to the manifest: includes the rest of a last line that a
                          kernel loads as a whole. Bytes after the content are 0xff */
    uint64_t stored;   /* bytes that exist; if fewer than size, in a buffer too large for memory,
                          they repeat */
    void *bytes;
} device_buffer;

/* A launch. A GPU ignores blocks and descending and runs the whole grid. */
typedef struct device_launch {
    const void *module; /* result of load */
    const char *entry;
    unsigned grid[3], block;
    size_t dynamic_shared;
    const void *const *params; /* as for cuLaunchKernel */
    size_t param_count;

    const uint64_t *blocks; /* linear, ascending; NULL: the whole grid */
    size_t block_count;
    bool descending;            /* run from the last block to the first */
    bool no_race_check;         /* disables the race check between blocks */
    uint64_t instruction_limit; /* of all threads of a block; 0: the emulator's default */
    uint64_t watch;             /* address whose last store is recorded in stats; 0: none */
    unsigned threads;           /* number of threads that may run blocks; 0 or 1: only the caller */
    uint64_t *speculated_blocks; /* see emu_launch_config */
} device_launch;

typedef struct device device;
struct device {
    const char *name;
    arena *arena; /* for messages, lives as long as the device */
    void *state;
    unsigned sm, sm_count; /* sm is 90 for sm_90 */
    const char *error;     /* message of the last failed call */

    /* Emulator only: its memory (NULL on a GPU), and statistics and report of the last launch. */
    emu_memory *memory;
    emu_stats stats;
    emu_report report;

    /* Allocates a buffer without content. Only a small part of a sparse buffer is written. */
    bool (*alloc)(device *d, uint64_t size, bool sparse, uint64_t *address);

    /* Allocates a buffer with content. The content's bytes must outlive it and are not changed. */
    bool (*map)(device *d, const device_buffer *content, bool read_only, uint64_t *address);

    /* Writes to the start of a buffer, if bytes is given, and marks it as unwritten by a kernel. */
    bool (*put)(device *d, uint64_t address, const void *bytes, uint64_t size);

    /* Reads count blocks, all if written is NULL, and sets written[i] if a kernel wrote block i.
     * Other blocks may stay unchanged. A GPU recognizes them by the bytes that alloc stored. */
    bool (*read)(device *d, uint64_t address, void *bytes, uint64_t count, size_t block_bytes,
                 uint8_t *written);

    /* Returns a loaded module, or NULL on an error. It stays valid while few others are loaded. */
    const void *(*load)(device *d, const char *ptx, size_t length);
    bool (*launch)(device *d, const device_launch *l);

    /* Frees all memory, and makes the device usable again after a failure. */
    void (*reset)(device *d);
    void (*close)(device *d);
};

/* Returns an emulator that lives in the arena. Close it before the arena is freed or reset. */
device device_emulator(arena *a);

/* Returns the emulator's configuration of a launch, for streams of launches. */
emu_launch_config device_emu_config(const device_launch *l);
