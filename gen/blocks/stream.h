/* GEMVs that stream their weights: Y = X W^T with f32 activations, made for the speed of memory.
 *
 * Blocks stay for many rows. First a block quantizes X into shared memory, 32 values by 32 as q8_1
 * does, but with an f32 scale. Then each of its warps takes rows, some at once, on its own: no
 * barrier, no bounds check, and with k baked in no address but pointers and constants.
 *
 * A step is 1024 weights of a row, 32 a lane: two segments of 16 weights, a low and a high one
 * (those of a byte's low and high nibbles, where weights are nibbles). In shared memory a step has
 * the activations in the order in which lanes need them, so that every access is a 16-byte word
 * beside its neighbour's:
 *
 *   offset    0   32 x 16 x s8     lane's low segment
 *           512   32 x 16 x s8     lane's high segment
 *          1024   32 x 4 words     d of the low and of the high segment; what their sums give
 *
 * Past the end of X there are zeros, and lanes whose block lies past the end of a row read the
 * row's last block instead.
 */
#ifndef PTXGEN_GEN_BLOCKS_STREAM_H
#define PTXGEN_GEN_BLOCKS_STREAM_H

#include "gen/blocks/gemv.h"
#include "gen/blocks/q4k.h"

enum {
    STREAM_VALUES = 1024,
    STREAM_BYTES = 1536,
    STREAM_SEGMENT = 16,
    STREAM_WORDS = 4, /* of a segment's quants */
    STREAM_LOADED = 16,
    STREAM_POINTERS = 4,
    STREAM_ROWS = 2, /* at once, at most */
};
#define STREAM_SHARED "ceil_div(k, 1024)*1536"

/* Where a lane's weights are in a step, in words of its format. */
typedef struct stream_lane {
    val block; /* number of its block in a step */
    val offset[STREAM_POINTERS];
    val shift;
    q4k_chunk chunk;
} stream_lane;

/* A row as a lane sees it. */
typedef struct stream_row {
    val at[STREAM_POINTERS]; /* pointers into the row's first step */
    val selector, aligned;   /* of formats that are only 2-byte aligned */
    int64_t offset;          /* of the row from them, in bytes */
} stream_row;

/* A lane's 32 weights: quants, four a word, and what makes weights of them. */
typedef struct stream_weights {
    val q[2][STREAM_WORDS];
    val d, dmin;
    val scale[2], min[2];
} stream_weights;

typedef enum stream_scales {
    ONE_SCALE,          /* d (q + offset) in both segments */
    TWO_SCALES,         /* d scale[i] (q + offset) */
    TWO_SCALES_AND_MINS /* d scale[i] q - dmin min[i] */
} stream_scales;

typedef struct stream_format {
    stream_scales scales;
    int offset;
    unsigned high_factor; /* what the high segment's quants are multiplied by, 1 or 16: high nibbles
                             stay where they are in their bytes */

    /* The lane that has a segment of a step, and whether it is the lane's high one. */
    val (*lane_of)(ptx *p, val segment);
    val (*is_high)(ptx *p, val segment);

    stream_lane (*lane_new)(ptx *p);

    /* Pointers from the lane's block in the first step. */
    stream_row (*row_new)(ptx *p, const stream_lane *lane, val block);

    /* What the lane needs of a step that lies offset bytes further, and what it makes of it. */
    void (*load)(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED]);
    stream_weights (*decode)(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED]);
} stream_format;

/* The kernel: g's matrix by the vectors of in, in->rows_per_warp rows at once. */
void stream_gemv(ptx *p, const instance *in, const stream_format *f);

/* y = swiglu(W_0 x, W_1 x): the same row of both at once. */
void stream_gate_up_swiglu(ptx *p, const instance *in, const stream_format *f);

/* What kernels of weights that are no integers have in common with these: the parameters, registers
 * a thread, the warp's number in the grid and how many there are, and the rows of a turn. Rows that
 * lie equally far from a multiple of 4 share the first one's pointers. */
gemv stream_parameters(ptx *p, const instance *in);
unsigned stream_registers(const instance *in);
val stream_warp(ptx *p);
val stream_warps(ptx *p);
void stream_rows_of_turn(ptx *p, const gemv *g, val row, unsigned rows,
                         place addresses[STREAM_ROWS]);

#endif
