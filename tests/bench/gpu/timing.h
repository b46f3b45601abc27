/* Checks one kernel on a GPU and times it with inputs that are not in the L2. */
#ifndef PTXGEN_TESTS_TIMING_H
#define PTXGEN_TESTS_TIMING_H

#include "bench/gpu/peers.h"
#include "check/trial.h"
#include "kernel/kernel.h"
#include "gpu/gpu.h"

/* The effort of a measurement: `batches` timed batches. A batch repeats its launches until it takes
 * batch_seconds or has most_launches launches, so that the clock's resolution and the start do not
 * count. batch_seconds = 0: one launch of each copy is timed. */
typedef struct effort {
    unsigned batches, most_copies, most_launches;
    double batch_seconds;
    size_t copy_bytes; /* size of the copy that measures the memory's speed */
} effort;

typedef struct timing {
    double seconds;             /* per launch, median of the batches */
    int64_t rows;               /* rows of x; an input for kernels with any number of rows */
    judgement wrong;            /* largest error of the sampled outputs */
    unsigned blocks, blocks_sm; /* blocks of the grid, and blocks that fit an SM */
    bool written;               /* every element of the outputs was written */
    bool loaded;                /* the device could load the PTX */
    bool in_l2; /* all copies together are smaller than three times the L2, so reads may hit it */
} timing;

/* Times one kernel, or its peer if `by` is not NULL. The device has several copies of the buffers,
 * three times the L2 together or most_copies, and launches use them round-robin. A batch is a CUDA
 * graph of launches that uses all copies. The first launch is judged: spans of the outputs are
 * compared with the reference. Memory of `a` is in use until its next reset. */
bool time_kernel(arena *a, gpu *g, const kernel *k, const peer *by, const effort *e, timing *out);

/* Measures the bytes per second that a copy on the device reads and writes, the fastest of several.
 */
bool time_copy(gpu *g, const effort *e, double *bandwidth);

#endif
