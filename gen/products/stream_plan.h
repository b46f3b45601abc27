/* Products that stream their weights: Y = X W^T with f32 activations, made for the speed of memory.
 *
 * Blocks stay for many rows. First a block puts X into shared memory, as a tile. Then each of its
 * warps takes rows, some at once, on its own: no barrier, no bounds check, and with k baked in no
 * address but pointers and constants.
 *
 * Weights that are integers with scales (stream_integers.c): X is quantized into the tile, 32
 * values by 32 as q8_1 does, but with an f32 scale. The lanes of a warp take a step of a row, each
 * two or four segments of 16 weights: 1024 weights or 2048. What a lane takes is what lies in the
 * same bytes, so that its segments need not be neighbours: the low and the high nibbles of 16
 * bytes, or the four two-bit values of each. In the tile a step has the activations in the order in
 * which lanes need them, so that every access is beside its neighbour's:
 *
 *   for each of the lane's segments   32 x 16 x s8   every lane's, turned as its weights are
 *   ONE_SCALE                         32 x 2 words   d; what the sum of x gives
 *   SCALES, two segments              32 x 2 words   d of each, or
 *                                     32 x 4 words   and behind them what their sums give;
 *                                                    the same of four, where two have one scale
 *   SCALES, four segments             32 x 4 words   d of each
 *                                     32 x 4 words   what their sums give, where that is needed
 *
 * Crosswise, where a lane has a word of each of 16 segments, it is another order:
 *
 *   the words of four segments       4 times 32 x 16 x s8
 *   where the sums of products of each two neighbouring segments start, for four pairs of them
 *                                    2 times 32 x 4 words
 *   d of each pair of a block's      8 x 8 words
 *
 * Blocks may start at any byte. A lane reads its 16 bytes of quants, a piece, as the two aligned
 * lines of 16 bytes that hold it, and takes each byte from the line where it is, at its place in
 * the line: a permutation a word. That leaves the piece turned, by as many bytes as its address is
 * behind a multiple of 16:
 *
 *   first line    .  .  .  .  .  a0 a1 ... a10      turned piece   a11 ... a15 a0 a1 ... a10
 *   second line   a11 ... a15 .  .  .  .  .
 *
 * A step is a multiple of 16 bytes, so that a lane's pieces are all turned alike, and so are the
 * activations in the tile; sums don't mind. Where rows are no multiple of 16 bytes, each row's
 * start adds to that: its pieces are turned back by as many bytes.
 *
 * Rows may be so narrow that half of a warp's lanes, or a quarter, have all of one. Then so many
 * lanes share a row, steps and tile are as narrow, and where it says 32 above it is 16 or 8 (see
 * stream_lanes). The other lanes have rows of their own, and the same activations: Q6_K with k =
 * 512 has four rows in a warp, of 8 lanes with 64 weights each.
 *
 * What weights are looked up in (formats/grid.h) stands ahead of the tile. Pieces of indices are
 * left in order, not turned.
 *
 * Weights that are floats (stream_floats.c): the tile has X as it is. A step is 32 16-byte loads of
 * weights, one a lane, and its activations are the first four of every lane, then the next four.
 *
 * Past the end of X there are zeros, and lanes whose block lies past the end of a row read the
 * row's last block instead.
 *
 * Where the tile of all of X would be too large, X comes in passes of some steps, which a turn of
 * rows goes through one after the other: all warps of a block then make the same number of turns.
 * The sums stay in registers, so that the order of additions is the same.
 *
 * With norm = rms the tile has x * gamma, and what is left of the norm, 1 / sqrt(mean(x^2) +
 * epsilon), is a factor of each vector's results.
 */
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_PLAN_H
#define PTXGEN_GEN_PRODUCTS_STREAM_PLAN_H

#include "gen/formats/weight_format.h"
#include "gen/products/gemv.h"

enum {
    STREAM_PIECE = 4, /* floats that a lane stages at once */
    STREAM_ROWS = 2,  /* at once, at most */
    CROSS_LANES = 4,  /* of a block, crosswise */
    CROSS_SEGMENTS = 16,
    CROSS_SCALES = CROSS_SEGMENTS / 2
};

/* X on its way into the tile. */
typedef struct stream_source {
    const gemv_operands *of;                               /* x, and where its vectors are, */
    val (*place)(ptx *p, const void *context, val vector); /* where they are no rows of X */
    const void *context;
    val vectors;     /* that are staged, a number known at run time; without a kind: all */
    val gamma;       /* without a kind: no norm */
    val factors;     /* shared memory: what the norm leaves for each vector, and */
    val partial;     /* the sums of squares of chunks, vector by vector, */
    unsigned chunks; /* so many of each */
} stream_source;

/* A step of a vector's activations in the tile, in bytes. Behind the quants stands what belongs to
 * them: words of a lane that are read at once, and how far behind those of its scales its sums are.
 */
typedef struct stream_tile {
    unsigned bytes;  /* of a step */
    unsigned plane;  /* of a segment of every lane */
    unsigned quants; /* of all segments */
    unsigned words, sums_at;
} stream_tile;

typedef struct stream {
    const instance *in;
    const stream_format *f;
    const format_info *weights;
    unsigned rows, vectors;
    unsigned lanes;                   /* that share a row */
    unsigned step_values, step_bytes; /* of a row's weights */
    unsigned alignment;  /* a power of two, up to a line, that a row's bytes are a multiple of */
    unsigned pass_steps; /* the tile has of each vector */
    stream_tile x;
    stream_source source;
    val table;  /* shared memory: what stands ahead of the tile */
    val staged; /* the tile's start */
    val tile;   /* the lane's first 16 bytes in it */
    val beside; /* where what stands beside them has another place: the lane's first 8 bytes */
    var sums[STREAM_ROWS * MAX_VECTORS];
    stream_lane lane; /* integers */
} stream;

/* A stream of so many rows at once and of all vectors, as far as an instance says it. */
stream stream_plan(const instance *in, unsigned rows);

/* Whether the weights are floats. */
bool stream_is_of_floats(const instance *in);

/* Whether X comes in 8 bits, as q8_rows makes it. */
bool stream_is_of_8_bits(const instance *in);

/* Whether activations' sums are needed. */
bool stream_has_sums(const stream_format *f);

/* Lanes of a warp that share a row: 32, but 8 or 16 where rows are so narrow that fewer lanes have
 * all of it in a step. Of experts and of the one that all rows use they are the same. */
unsigned stream_lanes(const instance *in);

/* Values of a step, and the bytes that they take in the tile. */
int64_t stream_step_values(const instance *in);
int64_t stream_step_bytes(const instance *in);

/* Bytes of shared memory that a format's table takes. */
int64_t stream_table_bytes(format weights);

/* The steps of a row, the last of which may have idle lanes, and the passes that they come in. */
unsigned stream_steps(const instance *in);
unsigned stream_passes(const instance *in);

/* Steps that a pass has. */
int64_t stream_pass_steps(const instance *in);

/* Of a norm: the partial sums of squares that a vector has; and of several matrices the most. */
int64_t stream_chunks(const instance *in);
int64_t stream_most_chunks(const instance *in);

/* The largest of what an instance's matrices have each. */
int64_t stream_most_of(const instance *in, int64_t (*of)(const instance *one));

/* Bytes of shared memory that an instance's tables and tile take: a multiple of 16. */
int64_t stream_staged_bytes(const instance *in);

/* Whether the rows that a warp takes at once are neighbours of one matrix that lie equally far from
 * a multiple of 16, in every turn: pointers into the first serve the others. */
bool stream_rows_share_pointers(const instance *in);

/* Registers a thread: 80 for one vector let two blocks of 12 warps share an SM, 128 for several
 * have room for 16 warps, where the format is not crowded. */
int64_t stream_registers(const instance *in);

/* Steps of a row whose weights are added in the same turn of a loop: what a pass has is a multiple
 * of them. */
unsigned stream_turn_steps(const stream *s);

/* Integers: the steps of rows that are loaded before any of them is used; whether the loads stay
 * ahead of a barrier of the warp; whether a row's last step has idle lanes; and whether a turn is
 * one step, and may be such a last one. */
unsigned stream_loads_at_once(const stream *s);
bool stream_loads_stay(const stream *s);
bool stream_is_ragged(const stream *s);
bool stream_turns_are_clamped(const stream *s);

/* Integers: a lane's place in a step. */
stream_lane stream_lane_at(ptx *p, const stream *s, val lane);

/* Stages a pass of all vectors, by all threads of the block. */
void stream_stage(ptx *p, const stream *s, val pass);

/* A turn's pass ahead of its weights, where there are several: by all threads of the block. */
void stream_stage_pass(ptx *p, const stream *s, val pass);

/* Computes the factor that the norm leaves for each vector. */
void stream_norm_factors(ptx *p, const stream *s);

/* The two kinds: what the lanes know ahead of all rows, and all weights of the rows at these
 * addresses into sums. */
void stream_integers_begin(ptx *p, stream *s);
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);
void stream_floats_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

#endif
