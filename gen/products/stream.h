/* Products that stream their weights: see stream_plan.h. */
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_H
#define PTXGEN_GEN_PRODUCTS_STREAM_H

#include "gen/products/product_keys.h"
#include "gen/products/stream_plan.h"

/* The shared memory of a kernel: for what is staged, and with a norm for the vectors' factors, f32,
 * behind which there are the partial sums that they are made of. Several streams may use it one
 * after the other. */
typedef struct stream_memory {
    val staged, factors;
    val table; /* where it is not ahead of what is staged */
} stream_memory;
stream_memory stream_memory_new(ptx *p, const instance *in, unsigned chunks);

/* What a stream begins with: the vectors of x into the tile, by all threads, the factors of a norm,
 * and the lane's place for so many rows at once. */
stream stream_begin(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                    const stream_memory *memory);

/* The same without any vectors, for who stages some himself (stream_stage) as the source of the
 * stream says then, which is no norm's, and who says when lanes look for their place, which takes
 * registers from then on; and what a turn of a loop over rows does, said ahead of it where it is
 * all of a row. */
stream stream_begin_empty(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                          const stream_memory *memory);
void stream_begin_lane(ptx *p, stream *s);
void stream_note_rows(ptx *p, const stream *s);

/* A stream of count vectors of those that another one has in its tile, from one on. */
stream stream_of_vectors(ptx *p, const stream *s, val first, unsigned count);

/* Where the rows of a turn are; alike: stream_rows_share_pointers of all that may be. */
void stream_rows_of_turn(ptx *p, bool alike, const gemv_operands *g, val row, unsigned rows,
                         place addresses[STREAM_ROWS]);

/* Has the warp fetch what a turn starts with, or all of it, into the L2 cache, so that memory has
 * work while x is waited for and staged. The turn has so many rows, here and of other matrices. */
void stream_prefetch_turn(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned in_all);

/* The rows' products with all vectors: s->sums[rows * vector + row] is the lane's part. */
void stream_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

/* The warp's number in the grid, where its block has this number, and how many there are. */
val stream_warp(ptx *p, val block);
val stream_warps(ptx *p);

/* Streaming gate and up: the same row of both by a warp, each matrix of its own format. Where the
 * formats are the same both rows are one stream's; else each has one, and X stands in shared memory
 * twice.
 *
 * Has the warp whose first row this is fetch what that starts with, where there is one: see
 * stream_prefetch_turn. */
void stream_pair_prefetch(ptx *p, const gemv_pair *of, val first);

/* Stages x, by all threads of the block, and stores activation(gate) * up of the rows from first
 * on, by their warps. first and stride are a warp's. */
void stream_pair_multiply(ptx *p, const gemv_pair *of, const stream_memory *memory, val first,
                          val stride);

/* Of gate and up that are an instance's matrices from one on: registers a thread, and bytes of
 * shared memory for what is staged. */
int64_t stream_pair_registers(const instance *in, unsigned from);
int64_t stream_pair_staged_bytes(const instance *in, unsigned from);

/* Keys. Two rows share what is loaded of x; of few rows one leaves more warps to wait for memory.
 */
#define KEY_ROWS_PER_WARP(usual)                                                       \
    KEY_NUMBER("rows_per_warp", "rows that a warp takes at once", rows_per_warp, 1, 2, \
               .def = (usual), .tag = "r")
/* 24 warps with 80 registers fit an SM, with two 16-byte loads a lane: two blocks of 12, or a
 * single one, which stages x once. */
#define KEY_STREAM_WARPS(most) \
    KEY_NUMBER("num_warps", "warps a block", num_warps, 1, most, .def = 12, .tag = "w")
/* Of several the tile of x takes less shared memory, and blocks stage x anew for each turn. */
#define KEY_PASSES                                                                     \
    KEY_NUMBER("passes", "parts that x is staged in; 0: as few as fit", passes, 0, 64, \
               .zero_is_none = true, .tag = "passes")
/* Shared memory of a norm: partial sums of squares, and factors. */
#define STREAM_NORM_SHARED "norm*4*vectors*(chunks+1)"

#endif
