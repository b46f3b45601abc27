/* Streaming gate and up: the same row of both by a warp, each matrix of its own format. */
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_PAIR_H
#define PTXGEN_GEN_PRODUCTS_STREAM_PAIR_H

#include "gen/products/stream.h"

enum { STREAM_PAIR = 2 };

typedef struct stream_pair {
    instance matrices[STREAM_PAIR]; /* each alone: see instance_matrix */
    gemv_operands g[STREAM_PAIR];   /* the first one's x and y */
    val before, bias; /* rows ahead of them in their tensors, and in bg and bu; without a kind: 0 */
} stream_pair;

/* Has the warp whose first row this is fetch what that starts with, where there is one: see
 * stream_prefetch_turn. */
void stream_pair_prefetch(ptx *p, const stream_pair *of, val first);

/* Stages x, by all threads of the block, and stores activation(gate) * up of the rows from first
 * on, by their warps. first and stride are a warp's. */
void stream_pair_multiply(ptx *p, const stream_pair *of, const stream_memory *memory, val first,
                          val stride);

/* Of gate and up that are an instance's matrices from one on: registers a thread, and bytes of
 * shared memory for what is staged. */
unsigned stream_pair_registers(const instance *in, unsigned from);
int64_t stream_pair_staged_bytes(const instance *in, unsigned from);

#endif
