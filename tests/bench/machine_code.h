/* Reads the machine code of a cubin: instructions, innermost loops, loads. */
#ifndef PTXGEN_TESTS_MACHINE_CODE_H
#define PTXGEN_TESTS_MACHINE_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/target.h"

enum { MAX_LOOPS = 64 };

/* A range of instructions; `last` is included. */
typedef struct code_range {
    size_t first, last;
} code_range;

typedef struct machine_code {
    const unsigned char *bytes;
    size_t instructions;
    code_range loops[MAX_LOOPS]; /* innermost loops, in the order of the code */
    size_t loop_count;
    size_t nest; /* instructions of the longest loop that contains another loop, or 0 */
} machine_code;

/* Reads the first kernel of a cubin. The bytes must outlive *out. Returns false if they are no
 * cubin or contain no kernel. */
bool machine_code_read(const char *cubin, size_t size, const target *t, machine_code *out);

/* Loads of device memory of one lane in one run through a range, and the number of times it waits
 * for them. `round_trips` is the time of an iteration if a load takes one unit and other
 * instructions take none. A loop is measured in its steady state, where loads of one iteration may
 * serve the next. */
typedef struct memory_use {
    unsigned loads, bytes;
    unsigned copies; /* copies of 16 bytes to shared memory */
    double round_trips;
} memory_use;
memory_use machine_code_memory(const machine_code *m, code_range range, bool is_loop);

/* Returns the bytes of shared memory that a lane loads and stores in a range, its share of the
 * operands of wgmma products included. */
size_t machine_code_shared_bytes(const machine_code *m, code_range range);

/* Returns the number of tensor-core products of a warp in a range, in units of 16 x 8 x 16: HMMA,
 * IMMA and HGMMA. */
size_t machine_code_products(const machine_code *m, code_range range);

#endif
