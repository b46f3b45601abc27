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
 * What weights are looked up in (stream_grid.h) stands ahead of the tile. Pieces of indices are
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
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_H
#define PTXGEN_GEN_PRODUCTS_STREAM_H

#include "gen/products/gemv.h"

enum {
    STREAM_SEGMENT = 16,
    STREAM_PIECE = 4,    /* floats that a lane stages at once */
    STREAM_SEGMENTS = 4, /* of a lane, at most */
    STREAM_WORDS = 4,    /* of a segment's activations, and of a piece */
    STREAM_FACTORS = 8,  /* words that they are multiplied with, at most */
    STREAM_LINES = 8,    /* words of the lines around a piece */
    STREAM_LOADED = 32,
    STREAM_POINTERS = 4,
    STREAM_CONSTANTS = 6,
    STREAM_ROWS = 2,       /* at once, at most */
    STREAM_LANE_BYTES = 16 /* a line; of floats, in a step */
};

/* How pieces are put together of the lines around them, the same for all that lie equally far
 * behind a multiple of 16. */
typedef struct stream_shift {
    val second[STREAM_WORDS];      /* of whole words: whether it is the second line's */
    val selector[STREAM_WORDS];    /* of bytes */
    val by_eight, by_four, by_few; /* turning it back, see stream_turn; without a kind: no need */
} stream_shift;

/* Where a lane's weights are in a step. */
typedef struct stream_lane {
    val block, part;                 /* number of its block, and of the lane among the block's */
    val start;                       /* of its block, see stream_row, where rows are lines */
    val piece;                       /* offset of its first piece in the block */
    val constants[STREAM_CONSTANTS]; /* what its format needs to know */
    val turned;                      /* bytes by which its pieces are turned in the tile */
    val table;                       /* shared memory: the format's table, */
    unsigned table_bytes;            /* of so many bytes */
    stream_shift shift;              /* where that is the same in all rows */
} stream_lane;

/* A row as a lane sees it: pointers into its first step. */
typedef struct stream_row {
    val block;               /* the lane's block, */
    val start;               /* and by how many bytes it is behind a multiple of 16 */
    val lines;               /* the first line around the lane's first piece */
    val at[STREAM_POINTERS]; /* what else its format needs */
    val constants[STREAM_CONSTANTS];
    stream_shift shift;
    int64_t offset; /* of the row from them, in bytes */
} stream_row;

/* A lane's weights: quants, four a word, and what makes weights of them. Of a segment with eight
 * words, weight i of it is the sum of those at i and at 16 + i. */
typedef struct stream_weights {
    val q[STREAM_SEGMENTS][STREAM_FACTORS];
    val d, dmin;
    val scale[STREAM_SEGMENTS], min[STREAM_SEGMENTS]; /* scales without a kind are 1 */
} stream_weights;

typedef enum stream_scales {
    ONE_SCALE, /* of 32 values: d (q + offset), and with minima + dmin */
    SCALES,    /* d scale[i] (q + offset), and with minima - dmin min[i] */
    NO_SCALE   /* floats */
} stream_scales;

/* What streaming needs to know of a weight format; one for each FORMAT of format.def. */
typedef struct stream_format {
    stream_scales scales;

    /* Floats: those of 16 loaded bytes, four or eight. */
    void (*floats)(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES]);

    /* Integers. */
    bool minima;
    int offset;
    unsigned segments;                 /* of a lane: 2 or 4 */
    unsigned factors[STREAM_SEGMENTS]; /* powers of two that the quants of each are too large by */
    unsigned index_bit; /* the segments of a row are numbered; the bits from this one on are a
                           segment's index in its lane, the other ones the lane's number */
    bool pairs;         /* words of quants have those of both segments in turn, as nibbles stand:
                           the low and the high one of a byte, the low and the high one of the next;
                           the first segment has the lower halves of words, the second the upper */
    bool twos;   /* SCALES: segments 2i and 2i + 1 are of the same 32 values and have scale[2i] */
    bool eights; /* the low nibbles of 8 bytes are a segment's first eight weights, the high ones
                    the other eight; words of quants have those of each byte side by side.
                    Pieces are left turned by 8 bytes alone, which swaps a lane's segments */
    bool spread; /* byte b of word i of a segment's quants is its weight 4b + i */
    bool crosswise; /* SCALES of 1: the four lanes of a block of 16 segments have a word of each
                       segment, the first its first one; q has them in the segments' order */
    unsigned words; /* of a segment's quants: 4, or 8 as stream_weights says */
    bool in_order;  /* pieces are not left turned */
    bool at_end;    /* pieces may end where the block does, and never start there. Then a piece
                       that needs only one line has that one second, else first: the other line
                       still has a byte of the block */

    /* The lane's first piece: quants in the block, and from there on what its part makes; NULL: no
     * more. Pieces of a lane are turned alike. */
    unsigned quants;
    val (*piece)(ptx *p, val part);

    /* What weights are looked up in: bytes of shared memory, a multiple of 16, and how all threads
     * of the block fill them. 0: nothing. */
    unsigned table_bytes;
    void (*table)(ptx *p, val at);

    /* What is loaded at once is loaded ahead of a barrier of the warp, by ordinary loads (see
     * ptx_keep_loads), as whole turns always are for many vectors. ptxas would else put some
     * loads off until what they load is used, to save registers. */
    bool barrier;

    /* Two rows of a turn are loaded one after the other in the 80 registers that two blocks of an
     * SM leave a thread: with so many all loads of a turn are under way at once, which is more
     * bytes in flight though fewer warps. 0: 80 are enough for that. */
    unsigned registers;

    /* A warp that takes so many rows, each with pointers of its own, needs more registers than the
     * 80 that two blocks of an SM leave it: 1 or 2. 0: not with any. */
    unsigned crowded;

    /* So does one with rows of two steps of which the second is not whole: ptxas loads both at
     * once. */
    bool crowded_end;

    /* So do two rows with pointers of their own that are a turn of two steps, one more and part of
     * one, code without a loop through which ptxas loads ahead. Turns then are single steps, and
     * 80 registers are enough. */
    bool crowded_turn;

    /* Several vectors need more than the 128 registers with which an SM has room for 16 warps. */
    bool crowded_vectors;
    bool crowded_passes; /* so do they if x comes in passes */

    /* Fill in the constants and the other pointers; NULL: there are none. */
    void (*lane_new)(ptx *p, stream_lane *lane);
    void (*row_new)(ptx *p, const stream_lane *lane, stream_row *row);

    /* What the lane needs of a step that lies offset bytes further, and what it makes of it. */
    void (*load)(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED]);
    stream_weights (*decode)(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED]);
} stream_format;

#define FORMAT(id, ...) extern const stream_format stream_##id;
#include "kernel/format.def"

/* The piece of a format whose parts have 16 bytes each, one behind the other. */
val stream_piece_of_sixteen(ptx *p, val part);

/* The first of the lines around a piece: the second one is 16 bytes behind it. */
val stream_first_line(ptx *p, const stream_format *f, val piece);

/* Count neighbouring lines from one on, as words. */
void stream_load_lines(ptx *p, val first, int64_t offset, unsigned count, val *words);

/* The piece in the two lines of these words. */
void stream_join(ptx *p, const stream_shift *shift, const val *lines, val piece[STREAM_WORDS]);

/* For pieces start bytes behind a multiple of 16, a multiple of alignment, to be turned back by so
 * many bytes, a multiple of their alignment. */
stream_shift stream_shift_new(ptx *p, const stream_format *f, val start, unsigned alignment,
                              val back, unsigned back_alignment);

/* Sixteen bytes turned back: byte i becomes what byte (i + bytes) % 16 was. */
void stream_turn(ptx *p, val bytes, unsigned alignment, val words[STREAM_WORDS]);

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

/* What a warp stages of X as a part: a chunk of a vector, of which each lane has neighbouring
 * values, STREAM_SEGMENT or STREAM_PIECE of them. */
typedef struct stream_part {
    val vector, chunk;     /* their numbers; of a pass's chunks */
    val x[STREAM_SEGMENT]; /* zeros past the end of X */
    val q[STREAM_WORDS];   /* in place of these where X comes in 8 bits, */
    val d;                 /* and their scale; without a kind: it does not */
} stream_part;

typedef struct stream {
    const instance *in;
    const stream_format *f;
    unsigned rows, vectors;
    unsigned lanes;      /* that share a row */
    unsigned pass_steps; /* the tile has of each vector */
    stream_source source;
    val table;  /* shared memory: what stands ahead of the tile */
    val staged; /* the tile's start */
    val tile;   /* the lane's first 16 bytes in it */
    val beside; /* where what stands beside them has another place: the lane's first 8 bytes */
    var sums[STREAM_ROWS * MAX_VECTORS];
    stream_lane lane; /* integers */
} stream;

/* The two kinds: a part into the tile; what the lanes know ahead of all rows; all weights of the
 * rows at these addresses into sums. */
void stream_integers_stage(ptx *p, const stream *s, const stream_part *part);
void stream_integers_begin(ptx *p, stream *s);
void stream_integers_note_rows(ptx *p, const stream *s);
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);
void stream_floats_stage(ptx *p, const stream *s, const stream_part *part);
void stream_floats_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

/* Steps of a row whose weights are added in the same turn of a loop: what a pass has is a multiple
 * of them. */
unsigned stream_integers_turn_steps(const instance *in, const stream_format *f);
unsigned stream_floats_turn_steps(const instance *in);

/* The steps of a row, the last of which may have idle lanes, and the passes that they come in. */
unsigned stream_steps(const instance *in);
unsigned stream_passes(const instance *in);

/* A turn's pass ahead of its weights, where there are several: by all threads of the block. */
void stream_stage_pass(ptx *p, stream *s, val pass);

/* Whether the weights are floats. */
bool stream_is_of_floats(const instance *in);

/* Lanes of a warp that share a row, 8, 16 or 32, and the groups of so many that a warp has: one,
 * but where rows are so narrow that fewer lanes have all of it in a step. Of experts and of the one
 * that all rows use they are the same. */
unsigned stream_lanes(const instance *in);
int64_t stream_row_groups(const instance *in);

/* Values of a step, and the bytes that they take in the tile. */
int64_t stream_step_values(const instance *in);
int64_t stream_step_bytes(const instance *in);

/* Bytes of shared memory that a format's table takes. */
int64_t stream_table_bytes(format weights);
int64_t stream_integers_step_bytes(const stream_format *f, unsigned lanes);

/* Steps that a pass has. */
int64_t stream_pass_steps(const instance *in);

/* Of a norm: the partial sums of squares that a vector has. */
int64_t stream_chunks(const instance *in);

/* Bytes of shared memory that an instance's tables and tile take: a multiple of 16. */
int64_t stream_staged_bytes(const instance *in);

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

/* The same without any vectors, for who stages some himself (stream_stage_vectors) as the source of
 * the stream says then, which is no norm's, and who says when lanes look for their place, which
 * takes registers from then on; and what a turn of a loop over rows does, said ahead of it where it
 * is all of a row. */
stream stream_begin_empty(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                          const stream_memory *memory);
void stream_stage_vectors(ptx *p, stream *s);
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

/* Whether the rows that a warp takes at once are neighbours of one matrix that lie equally far from
 * a multiple of 16, in every turn: pointers into the first serve the others. */
bool stream_rows_share_pointers(const instance *in);

/* Registers a thread: 80 for one vector let two blocks of 12 warps share an SM, 128 for several
 * have room for 16 warps, where the format is not crowded. */
unsigned stream_registers(const instance *in);

#endif
