/* Streaming products: Y = X W^T with f32 activations, bound by memory bandwidth.
 *
 * Blocks are persistent. A block first stages X in shared memory, as a tile. Each of its warps then
 * loops over rows, one or two at a time. That loop has no barrier and no bounds check, and with k
 * baked in it computes no address but pointers and constants.
 *
 * Integer weights with scales (stream_integers.c): X is quantized into the tile in groups of 32
 * values, as q8_1 does, but with an f32 scale. The lanes of a warp process a step of a row: 1024 or
 * 2048 weights. Each lane owns two or four segments of 16 weights. A lane's segments lie in the
 * same bytes and need not be neighbours: the low and the high nibbles of 16 bytes, or the four
 * two-bit values of each. A step of the tile has the activations in the order in which lanes read
 * them, so that all accesses are contiguous across lanes:
 *
 *   for each of the lane's segments   32 x 16 x s8   of every lane, rotated as its weights are
 *   ONE_SCALE                         32 x 2 words   d; the term from the sum of x, unless a tensor-core
 *                                                    product does not need it
 *   SCALES, two segments              32 x 2 words   d of each, or
 *                                     32 x 4 words   d of each, then their sum terms;
 *                                                    also of four, where two share a scale
 *   SCALES, four segments             32 x 4 words   d of each
 *                                     32 x 4 words   their sum terms, if the format needs them
 *
 * CROSSWISE, where a lane has one word of each of 16 segments, the order is:
 *
 *   the words of four segments       4 times 32 x 16 x s8
 *   start values of the dp4a sums,   2 times 32 x 4 words
 *     for four pairs of segments
 *   d of each pair of a block        8 x 8 words
 *
 * Blocks of weights may start at any byte. A lane reads its 16 bytes of quants, a piece, as the two
 * aligned lines of 16 bytes around it. It takes each byte from the line that holds it, at its place
 * in the line: one prmt or select per word. So the piece is rotated by its address modulo 16:
 *
 *   first line    .  .  .  .  .  a0 a1 ... a10      rotated piece   a11 ... a15 a0 a1 ... a10
 *   second line   a11 ... a15 .  .  .  .  .
 *
 * A step is a multiple of 16 bytes, so all pieces of a lane have the same rotation. The activations
 * in the tile are rotated alike, and the sum does not change. If rows are not multiples of 16
 * bytes, each row's start adds to the rotation, and its pieces are rotated back by that.
 *
 * In some formats the lines of neighbouring lanes would share banks of the L1 cache. There odd
 * lanes load the second line first (stream_format.swaps).
 *
 * A row may be so short that half or a quarter of a warp's lanes hold all of it. Then stream.lanes
 * is 16 or 8: these lanes share a row, and the 32 above is that number. The other lanes have other
 * rows and the same activations. Q6_K with k = 512 has four rows per warp, of 8 lanes with 64
 * weights each.
 *
 * Lookup tables (formats/grid.h) precede the tile. Pieces of indices are in order, not rotated.
 *
 * Float weights (stream_floats.c): the tile holds X unchanged. A step is 32 16-byte loads of
 * weights, one per lane. Its activations are the first four of every lane, then the next four.
 *
 * The tile is padded with zeros past the end of X. Lanes whose block lies past the end of a row
 * read the row's last block instead.
 *
 * If the tile of all of X is too large, X is staged in passes of some steps, and each iteration
 * over rows runs through all passes. All warps of a block then do the same number of iterations.
 * The sums stay in registers, so the order of additions does not change.
 *
 * With norm = rms the tile holds x * gamma, and the results of each vector are multiplied by 1 /
 * sqrt(mean(x^2) + epsilon). */
#pragma once

#include "gen/formats/weight_format.h"
#include "gen/products/gemv.h"
#include "gen/products/product_keys.h"

enum {
    STREAM_PIECE = 4, /* floats that a lane stages at once */
    STREAM_ROWS = 2,  /* rows of an iteration, at most */
    CROSS_LANES = 4,  /* lanes per block of weights, CROSSWISE */
    CROSS_SEGMENTS = 16,
    CROSS_SCALES = CROSS_SEGMENTS / 2
};

/* The source of X for the tile. */
typedef struct stream_source {
    const gemv_operands *of; /* x, and the address of its vectors */
    val (*place)(ptx *p, const void *context,
                 val vector); /* address of a vector not in X, or NULL */
    const void *context;
    val vectors;     /* number of vectors at run time; VAL_NONE: all */
    val gamma;       /* VAL_NONE: no norm */
    val factors;     /* shared memory: the norm's factor of each vector */
    val partial;     /* shared memory: sums of squares of chunks, by vector */
    unsigned chunks; /* chunks per vector */
} stream_source;

/* Layout of a step of a vector's activations in the tile, in bytes. Scales and sums follow the
 * quants: a lane reads `words` words at once, its sums `sums_at` bytes after its scales. */
typedef struct stream_tile {
    unsigned bytes;  /* bytes of a step */
    unsigned plane;  /* bytes of one segment of every lane */
    unsigned quants; /* bytes of all segments */
    unsigned words, sums_at;
} stream_tile;

/* The plan of a stream of weights, and a lane's state in it. */
typedef struct stream {
    const instance *in;
    const stream_format *f;
    const format_info *weights;
    unsigned rows, vectors;
    unsigned lanes;                   /* lanes that share a row */
    unsigned step_values, step_bytes; /* weights of a row in a step, and their bytes */
    unsigned alignment;     /* largest power of two, up to 16, that divides a row's bytes */
    unsigned steps;         /* steps of a row */
    bool ragged;            /* the last step has idle lanes */
    unsigned passes;        /* passes over x */
    unsigned pass_steps;    /* steps of a vector in the tile: a multiple of loop_steps, or all */
    unsigned vector_bytes;  /* bytes from a vector to the next in the tile */
    bool of_parts;          /* steps of 256 values, shared by warps: see mma_q8.h */
    bool as_stored;         /* x lies as the weights of Q8_0 do, with zeros as scales */
    unsigned loop_steps;    /* steps per iteration of the loop over a row */
    unsigned loads_at_once; /* integers: steps of rows loaded before the first is used */
    bool loads_stay;        /* a warp barrier keeps the loads before their uses */
    bool clamped;           /* an iteration is one step, the last one with idle lanes included */
    stream_tile x;
    stream_source source;
    val table;  /* shared memory: lookup tables */
    val staged; /* shared memory: start of the tile */
    val tile;   /* the lane's first 16 bytes in it */
    val beside; /* the lane's first scales, less x.quants; VAL_NONE: tile */
    var sums[STREAM_ROWS * MAX_VECTORS];
    stream_lane lane; /* integers only */
} stream;

/* Plans a stream of `rows` rows at once and all vectors of an instance. rows = 0: rows_per_warp. */
stream stream_plan(const instance *in, unsigned rows);
/* Plans steps of 256 values, of which warps take every `parts`-th: see mma_q8.h. */
stream stream_plan_parts(const instance *in, const stream_format *f, unsigned parts);
/* Plans the iterations anew, after a change of s->vectors. */
void stream_plan_loop(stream *s);

/* Returns true if X has 8-bit rows, as q8_rows writes them. */
bool stream_is_of_8_bits(const instance *in);
/* Returns true if a format needs sums of the activations. */
bool stream_has_sums(const stream_format *f);

/* Returns bytes per step in the tile. */
int64_t stream_step_bytes(const instance *in);
/* Returns steps per pass. */
int64_t stream_pass_steps(const instance *in);
/* Returns bytes of the format's lookup table. */
int64_t stream_table_bytes(const instance *in);

/* Returns the number of partial sums of squares per vector. */
int64_t stream_chunks(const instance *in);
/* Returns the most stream_chunks of an instance's matrices. */
int64_t stream_most_chunks(const instance *in);

/* Returns the largest value of `of` over an instance's matrices. */
int64_t stream_most_of(const instance *in, int64_t (*of)(const instance *one));

/* Returns bytes of shared memory for tables and tile, a multiple of 16. */
int64_t stream_staged_bytes(const instance *in);

/* Returns true if a warp's rows are always neighbours of one matrix at multiples of 16 bytes:
 * pointers into the first row then serve the others. */
bool stream_rows_share_pointers(const instance *in);

/* Returns registers per thread. 80 for one vector let two blocks of 12 warps share an SM; 128 for
 * several leave room for 16 warps, if the format does not need more. */
int64_t stream_registers(const instance *in);

/* Returns a lane's place in a step of integers. */
stream_lane stream_lane_at(ptx *p, const stream *s, val lane);

/* Stages one pass of all vectors, by all threads of the block. */
void stream_stage(ptx *p, const stream *s, val pass);
/* Stages one pass between two barriers. */
void stream_stage_pass(ptx *p, const stream *s, val pass);

/* Fills the lookup tables, by all threads of the block. */
void stream_fill_table(ptx *p, const stream *s);

/* Computes the norm's factor of each vector. */
void stream_norm_factors(ptx *p, const stream *s);

/* Sets the values of a lane that all rows share: its place, table, shift and tile. */
void stream_integers_begin(ptx *p, stream *s);
/* Sets s->lane to lane `lane` of a row, counted from its start. */
void stream_lane_begin(ptx *p, stream *s, val lane);
/* Returns the lane's pointers into a row, from the addresses of the row and of the lane's block.
 * own: the block is s->lane's. */
stream_row stream_row_at(ptx *p, const stream *s, val row, val block, bool own);
/* Loads a lane's words of a row's step, `offset` bytes past the row's pointers. */
void stream_load_words(ptx *p, const stream_format *f, const stream_row *row, int64_t offset,
                       val words[STREAM_LOADED]);
/* Adds the products of all weights of the rows to s->sums. */
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);
void stream_floats_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

/* Shared memory of a kernel: the tile, and with a norm one f32 factor per vector, followed by its
 * partial sums. Several streams may use it in sequence. */
typedef struct stream_memory {
    val staged, factors;
    val table; /* VAL_NONE: the tables precede the tile */
} stream_memory;
stream_memory stream_memory_new(ptx *p, const instance *in, unsigned chunks);

/* Begins a stream of `rows` rows at once: stages x by all threads, computes the factors of a norm,
 * and sets the lane's place. */
stream stream_begin(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                    const stream_memory *memory);

/* Begins a stream without vectors and without a norm. The caller sets its source, calls
 * stream_stage, and then stream_begin_lane, whose results occupy registers from there on. */
stream stream_begin_empty(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                          const stream_memory *memory);
void stream_begin_lane(ptx *p, stream *s);
/* Notes the work of an iteration over rows that has no inner loop, for the cost model. */
void stream_note_rows(ptx *p, const stream *s);

/* Returns a stream of `count` of another stream's vectors, from `first` on. */
stream stream_of_vectors(ptx *p, const stream *s, val first, unsigned count);

/* Sets the addresses of an iteration's rows. alike: stream_rows_share_pointers of all matrices. */
void stream_row_places(ptx *p, bool alike, const gemv_operands *g, val row, unsigned rows,
                       place addresses[STREAM_ROWS]);

/* Prefetches the start of an iteration's rows, or all of it, into L2, by the warp, so that memory
 * is busy while x is waited for and staged. `rows` are of this matrix, `in_all` of all matrices. */
void stream_prefetch_rows(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned in_all);

/* Multiplies the rows with all vectors: s->sums[rows * vector + row] is the lane's partial sum. */
void stream_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

/* Returns the warp's number in the grid, for a block number. */
val stream_warp(ptx *p, val block);
/* Returns the number of warps in the grid. */
val stream_warps(ptx *p);

/* Prefetches the first row of gate and up of a warp, if it has one: see stream_prefetch_rows. A
 * warp computes the same row of both matrices. If both have one format, they share a stream; else
 * each has its own, and X is staged twice. Without a gate there is one matrix. */
void stream_pair_prefetch(ptx *p, const gemv_pair *of, val first);

/* Stages x by all threads of the block, then stores activation(gate) * up of a warp's rows from
 * `first` on, in steps of `stride`. */
void stream_pair_multiply(ptx *p, const gemv_pair *of, const stream_memory *memory, val first,
                          val stride);

/* Returns registers per thread for gate and up, an instance's matrices `from` and from + 1. */
int64_t stream_pair_registers(const instance *in, unsigned from);
/* Returns bytes of shared memory that gate and up stage. */
int64_t stream_pair_staged_bytes(const instance *in, unsigned from);

/* Two rows share the loads of x. With few rows, one row per warp keeps more warps busy. */
#define KEY_ROWS_PER_WARP(usual)                                                     \
    KEY_NUMBER("rows_per_warp", "output rows per warp, 1 or 2", rows_per_warp, 1, 2, \
               .def = (usual), .tag = "r")
/* 24 warps with 80 registers fit an SM, with two 16-byte loads in flight per lane: two blocks of
 * 12, or a single block, which stages x once. */
#define KEY_STREAM_WARPS(most) \
    KEY_NUMBER("num_warps", "warps per block", num_warps, 1, most, .def = 12, .tag = "w")
/* With several passes the tile of x is smaller, and blocks stage x anew for each iteration. */
#define KEY_PASSES                                                                 \
    KEY_NUMBER("passes", "passes to stage x in; 0 = as few as fit", passes, 0, 64, \
               .zero_is_none = true, .tag = "passes")
/* Shared memory of a norm: partial sums of squares, and factors. */
#define STREAM_NORM_SHARED "norm*4*vectors*(chunks+1)"
