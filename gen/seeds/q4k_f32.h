/* Q4_K weights times f32 activations: one warp per super-block.
 *
 * A lane loads four bytes of a chunk, eight weights. The low nibbles belong to sub-block 2c, the
 * high ones to 2c + 1, so a lane decodes two scales and two mins. Lanes 0 to 7 have chunk 0, lanes
 * 8 to 15 chunk 1, and so on: a warp's nibbles are one load of 128 bytes. */
#pragma once

#include "gen/common/walk.h"
#include "gen/formats/q4k.h"

enum { Q4K_LANE_BYTES = 4, Q4K_F32_BYTES = Q4_K_VALUES * 4 }; /* bytes of x per super-block */

typedef struct q4k_lane {
    q4k_chunk chunk;
    val quants; /* offset of its four bytes */
    val value;  /* index of its first low nibble's weight; of the first high one's: 32 more */
} q4k_lane;
q4k_lane q4k_lane_new(ptx *p);

/* A lane's eight weights: w[0] from the low nibbles, w[1] from the high ones. */
typedef struct q4k_weights {
    val w[2][Q4K_LANE_BYTES];
} q4k_weights;
q4k_weights q4k_unpack(ptx *p, val word, const q4k_header *h);

/* The activations of a lane's weights: four at base + offset, and four 32 values later. base is a
 * 64-bit global address or a 32-bit shared one. */
typedef struct q4k_activations {
    val4 x[2];
} q4k_activations;
q4k_activations q4k_load_activations(ptx *p, val base, int64_t offset);

/* Returns acc + the products of a lane's weights and activations. */
val q4k_multiply(ptx *p, const q4k_weights *w, const q4k_activations *a, val acc);
/* Loads the activations, then multiplies as q4k_multiply. */
val q4k_dot(ptx *p, const q4k_weights *w, val base, int64_t offset, val acc);

typedef struct q4k_row {
    const q4k_chunk *chunk;
    var header, quants, values;
    var acc;
} q4k_row;
enum { Q4K_AT_HEADER, Q4K_AT_QUANTS, Q4K_AT_VALUES }; /* indices of its cursors */

/* Starts a row at w, super-blocks first, first + stride, ..., with activations at x (global or
 * shared). Sets the walk's first, stride and cursors, and adds to its weights. */
q4k_row q4k_row_new(ptx *p, const q4k_lane *lane, val w, val x, val first, unsigned stride,
                    walk *along);

/* Adds a super-block with one 32-bit load of nibbles: an item of a walk, whose context is a
 * q4k_row. */
void q4k_add_super_block(ptx *p, void *row, const int64_t offset[MAX_CURSORS]);
