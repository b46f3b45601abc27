/* Machine code as ptxas writes it into a cubin: instructions, innermost loops, loads. */
#ifndef PTXGEN_TESTS_MACHINE_CODE_H
#define PTXGEN_TESTS_MACHINE_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/target.h"

enum { MAX_LOOPS = 64 };

/* Instructions first .. last. */
typedef struct code_range {
    size_t first, last;
} code_range;

typedef struct machine_code {
    const unsigned char *bytes;
    size_t instructions;
    code_range loops[MAX_LOOPS]; /* that hold no other loop, in the order of the code */
    size_t loop_count;
    size_t nest; /* instructions of the longest loop that holds others; 0: none does */
} machine_code;

/* The kernel of a cubin with one. False where the bytes are none. */
bool machine_code_read(const char *cubin, size_t size, const target *t, machine_code *out);

/* What a lane loads from device memory in one run through a range, and how many times it waits for
 * memory in that: with loads that take one unit of time and instructions that take none, the time
 * of a turn. A loop is taken in its steady state, where loads of one turn may serve the next. */
typedef struct memory_use {
    unsigned loads, bytes;
    double round_trips;
} memory_use;
memory_use machine_code_memory(const machine_code *m, code_range range, bool is_loop);

/* Bytes of shared memory that a lane loads and stores in a run through a range, with its part of
 * those that four warps multiply. */
size_t machine_code_shared_bytes(const machine_code *m, code_range range);

/* Products on tensor cores in a range, of a warp and of 8 columns: HMMA, IMMA and HGMMA. */
size_t machine_code_products(const machine_code *m, code_range range);

#endif
