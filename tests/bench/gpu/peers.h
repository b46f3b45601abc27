/* Kernels by another compiler that do what ours do, to be timed beside them: peers/NAME.cu, which
 * nvcc makes NAME_peer.ptx of. */
#ifndef PTXGEN_TESTS_PEERS_H
#define PTXGEN_TESTS_PEERS_H

#include "kernel/family.h"
#include "gpu/gpu.h"

enum { MAX_PEER_SIZES = 2 };

/* Takes the parameters of the family's kernels, then sizes that ours have baked in. */
typedef struct peer {
    const char *family;
    const char *entry; /* and its file, less .ptx */
    bool (*fits)(const instance *in);
    size_t sizes[MAX_PEER_SIZES]; /* where an instance has them, as int64_t */

    /* Changes the grid and the shared memory that ours is launched with; NULL: they are the same.
     */
    void (*regrid)(const instance *in, gpu_grid *grid);

    const char *ptx; /* NULL until somebody has read it */
} peer;

/* The peer for an instance; NULL: there is none. */
const peer *peer_of(const instance *in);

#endif
