/* One kernel on a GPU: is it right, and how long does it take when its inputs are not in the L2? */
#ifndef PTXGEN_TESTS_TIMING_H
#define PTXGEN_TESTS_TIMING_H

#include "bench/gpu/peers.h"
#include "check/trial.h"
#include "kernel/kernel.h"
#include "gpu/gpu.h"

/* batches: timed one by one. batch_seconds: what each should take at least, so that the clock's
 * steps and a batch's start don't count, within most_launches; 0: one launch of each copy is timed.
 */
typedef struct effort {
    unsigned batches, most_copies, most_launches;
    double batch_seconds;
    size_t copy_bytes; /* of the copy that memory's speed is measured with */
} effort;

typedef struct timing {
    double seconds;             /* a launch: median of the batches */
    int64_t rows;               /* of x; given for kernels that take any number */
    judgement wrong;            /* the largest error of the sampled outputs */
    unsigned blocks, blocks_sm; /* of the grid; that an SM has room for */
    bool written;               /* every element of the outputs */
    bool loaded;                /* the device took the PTX */
    bool in_l2; /* most_copies together are too small to leave the L2 before their next turn */
} timing;

/* Times one kernel, or its peer if that is not NULL. The device has several copies of the buffers,
 * together three times the L2 or most_copies, and each launch takes the next ones. A batch is a
 * CUDA graph of launches without gaps that uses all copies. The first launch is judged: spans of
 * the outputs against the reference. Memory of a is used until the next reset. */
bool time_kernel(arena *a, gpu *g, const kernel *k, const peer *by, const effort *e, timing *out);

/* Bytes that a copy on the device reads and writes in a second, the fastest of several. */
bool time_copy(gpu *g, const effort *e, double *bandwidth);

#endif
