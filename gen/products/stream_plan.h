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
 * stream.lanes). The other lanes have rows of their own, and the same activations: Q6_K with k =
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
#include "gen/products/product_keys.h"

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
    unsigned alignment;     /* a power of two, up to a line, that a row's bytes are a multiple of */
    unsigned steps;         /* of a row, the last of which may have idle lanes: */
    bool ragged;            /* it has some */
    unsigned passes;        /* that the steps come in */
    unsigned pass_steps;    /* the tile has of each vector: a multiple of */
    unsigned turn_steps;    /* those whose weights are added in the same turn of a loop */
    unsigned loads_at_once; /* integers: steps of rows that are loaded before any of them is used */
    bool loads_stay;        /* the loads stay ahead of a barrier of the warp */
    bool clamped;           /* a turn is one step, and may be the last one, with idle lanes */
    stream_tile x;
    stream_source source;
    val table;  /* shared memory: what stands ahead of the tile */
    val staged; /* the tile's start */
    val tile;   /* the lane's first 16 bytes in it */
    val beside; /* where what stands beside them has another place: the lane's first 8 bytes */
    var sums[STREAM_ROWS * MAX_VECTORS];
    stream_lane lane; /* integers */
} stream;

/* A stream of so many rows at once and of all vectors, as far as an instance says it; 0: of as many
 * rows as warps take. And its turns, where the vectors are others. */
stream stream_plan(const instance *in, unsigned rows);
void stream_plan_turns(stream *s);

/* Return true if X comes in 8 bits, as q8_rows makes it; if activations' sums are needed. */
bool stream_is_of_8_bits(const instance *in);
bool stream_has_sums(const stream_format *f);

/* Bytes that a step takes in the tile, the steps of a pass, and bytes of the format's table. */
int64_t stream_step_bytes(const instance *in);
int64_t stream_pass_steps(const instance *in);
int64_t stream_table_bytes(const instance *in);

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

/* Integers: a lane's place in a step. */
stream_lane stream_lane_at(ptx *p, const stream *s, val lane);

/* Stages a pass of all vectors, by all threads of the block; the second between barriers, as a turn
 * of several passes needs it ahead of each pass's weights. */
void stream_stage(ptx *p, const stream *s, val pass);
void stream_stage_pass(ptx *p, const stream *s, val pass);

/* Computes the factor that the norm leaves for each vector. */
void stream_norm_factors(ptx *p, const stream *s);

/* The two kinds: what the lanes know ahead of all rows, and all weights of the rows at these
 * addresses into sums. */
void stream_integers_begin(ptx *p, stream *s);
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);
void stream_floats_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

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
