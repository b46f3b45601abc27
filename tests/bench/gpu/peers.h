/* Peers: kernels in peers/NAME.cu that nvcc compiles to NAME_peer.ptx. They do the same work as a
 * family's kernels and are timed beside them. */
#ifndef PTXGEN_TESTS_PEERS_H
#define PTXGEN_TESTS_PEERS_H

#include "kernel/family.h"
#include "gpu/gpu.h"

enum { MAX_PEER_SIZES = 2 };

/* A peer. Its parameters are those of the family's kernels, then the sizes that ours have as
 * constants. */
typedef struct peer {
    const char *family;
    const char *entry; /* name of the entry, and of its file without .ptx */
    bool (*fits)(const instance *in);
    size_t sizes[MAX_PEER_SIZES]; /* offsets of the sizes in an instance, as int64_t */

    /* Changes the grid and the dynamic shared memory of our launch; NULL: no change. */
    void (*regrid)(const instance *in, gpu_grid *grid);

    const char *ptx; /* NULL until it has been read */
} peer;

/* Returns the peer for an instance, or NULL. */
const peer *peer_of(const instance *in);

#endif
