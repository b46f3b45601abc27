/* A device that runs kernels. The emulator is one; the tests have a GPU for another. Kernels, steps
 * and the tests' trials are all launched through it.
 *
 * Functions that can fail return false and leave a sentence in error.
 */
#ifndef PTXGEN_CHECK_DEVICE_H
#define PTXGEN_CHECK_DEVICE_H

#include "emu/emu.h"

/* Content of memory. */
typedef struct device_buffer {
    uint64_t size;     /* bytes */
    uint64_t readable; /* bytes that the manifest names: with the rest of a last line that a kernel
                          loads whole; ones are behind the content */
    uint64_t stored;   /* that there are; fewer than size for a buffer too large to exist, which
                          then repeats them */
    void *bytes;
} device_buffer;

/* A launch. A GPU runs the whole grid in an order of its own. */
typedef struct device_launch {
    const void *module; /* what load returned */
    const char *entry;
    unsigned grid[3], block;
    size_t dynamic_shared;
    const void *const *params; /* as cuLaunchKernel takes them */
    size_t param_count;

    const uint64_t *blocks; /* linear indices of those to run, ascending; NULL: the whole grid */
    size_t block_count;
    bool descending;            /* from the last block to the first */
    bool no_race_check;         /* between blocks */
    uint64_t instruction_limit; /* of a block's threads together; 0: as the emulator has it */
    uint64_t watch;             /* an address whose stores are noted in stats; 0: none */
    unsigned threads;           /* that may run blocks; 0 and 1: this one */
    uint64_t *ahead;            /* how many blocks others ran is added to it; may be NULL */
} device_launch;

typedef struct device device;
struct device {
    const char *name;
    arena *arena; /* of messages, for as long as the device */
    void *state;
    unsigned sm, sm_count; /* 90 for sm_90 */
    const char *error;     /* of the last call that failed */

    /* Of the emulator, for what only that can tell: its memory (NULL on a GPU), what the last
     * launch took, and how it failed. */
    emu_memory *memory;
    emu_stats stats;
    emu_report report;

    /* Makes room without content. Little of sparse room is written to. */
    bool (*alloc)(device *d, uint64_t size, bool sparse, uint64_t *address);

    /* Makes a buffer with content, whose bytes have to stay and are not changed; read-only where so
     * said. */
    bool (*map)(device *d, const device_buffer *content, bool read_only, uint64_t *address);

    /* Writes to the start of what alloc made. It does not count as written by a kernel, nor does
     * what was written before. Without bytes it does that alone. */
    bool (*put)(device *d, uint64_t address, const void *bytes, uint64_t size);

    /* Reads count blocks and notes of each whether a kernel wrote it; of what was not written,
     * bytes may be left as they are. A GPU knows by the ones that alloc put there. written may be
     * NULL: all is read. */
    bool (*read)(device *d, uint64_t address, void *bytes, uint64_t count, size_t block_bytes,
                 uint8_t *written);

    /* Returns a module, NULL if it has an error. It stays for as long as the device is used for few
     * others. */
    const void *(*load)(device *d, const char *ptx, size_t length);
    bool (*launch)(device *d, const device_launch *l);

    /* Frees the memory, and makes the device usable after a call that failed. */
    void (*reset)(device *d);
    void (*close)(device *d);
};

/* The emulator. It lives in the arena, and is to be closed before that is freed or reset. */
device device_emulator(arena *a);

/* A launch as the emulator takes it, for streams of launches. */
emu_launch_config device_emu_config(const device_launch *l);

#endif
