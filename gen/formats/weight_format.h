/* A weight format: what products need to know of it. Each format, or a few of a kin, is a file of
 * this folder with one const weight_format each; formats.c finds them by their number.
 *
 * There are three ways from a block to its weights:
 *
 *   unpack   Eight neighbouring weights as f32, loaded byte by byte and computed as ggml's decoder
 *            does it, in the same order of operations. Slow and exact: the one to compare with.
 *   stream   What a lane of a streaming product loads of a row at once, as bytes that dp4a
 *            multiplies. gen/products/stream_plan.h draws how activations are laid out for that.
 *   gemm     What a thread of a product on the tensor cores makes of a chunk in shared memory:
 *            pairs of f16. A format without a decoder of its own has its unpacked weights rounded.
 */
#ifndef PTXGEN_GEN_FORMATS_WEIGHT_FORMAT_H
#define PTXGEN_GEN_FORMATS_WEIGHT_FORMAT_H

#include "gen/common/bytes.h"
#include "kernel/format.h"
#include "kernel/grid.h"
#include "ptx/ptx.h"

enum { UNPACKED = 8 }; /* neighbouring weights that are unpacked at once */

/* The number of the first of eight weights in a block: a value, or 16 half + known for a thread
 * that has a half of each 32 weights. half is 0 or 1, known a multiple of 8 whose bit of 16 is 0.
 */
typedef struct unpack_first {
    val number, half; /* half without a kind: number says it */
    unsigned known;
} unpack_first;

/* Bytes of a block in global or shared memory: an address and an offset from it. */
typedef struct block_bytes {
    val base;
    unsigned offset;
} block_bytes;

enum {
    STREAM_SEGMENT = 16,
    STREAM_SEGMENTS = 4, /* of a lane, at most */
    STREAM_WORDS = 4,    /* of a segment's activations, and of a piece */
    STREAM_FACTORS = 8,  /* words that they are multiplied with, at most */
    STREAM_LINES = 8,    /* words of the lines around a piece */
    STREAM_LOADED = 32,
    STREAM_POINTERS = 4,
    STREAM_CONSTANTS = 6,
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
    const stream_lane *lane;
    val block;               /* the lane's block, */
    val start;               /* and by how many bytes it is behind a multiple of 16 */
    val lines;               /* the first line around the lane's first piece */
    val at[STREAM_POINTERS]; /* what else its format needs */
    val constants[STREAM_CONSTANTS];
    stream_shift shift;
    int64_t offset; /* of the row from them, in bytes */
} stream_row;

/* A lane's weights: quants, four a word, and what makes weights of them. Of a segment with eight
 * words, weight i is the format's unit times the quant at i, and the one at 16 + i. */
typedef struct stream_weights {
    val q[STREAM_SEGMENTS][STREAM_FACTORS];
    val d, dmin;
    val scale[STREAM_SEGMENTS], min[STREAM_SEGMENTS]; /* scales without a kind are 1 */
} stream_weights;

typedef enum stream_scales {
    NO_SCALE,  /* floats */
    ONE_SCALE, /* of 32 values: d (q + offset), and with minima + dmin */
    SCALES     /* d scale[i] (q + offset), and with minima - dmin min[i] */
} stream_scales;

/* The order in which a lane's words of quants have its weights; activations are staged alike. */
typedef enum stream_order {
    TURNED, /* a segment's weights in order, but turned as the lines around pieces leave them */

    /* Turned. Words have those of both segments in turn, as nibbles stand: the low and the high one
     * of a byte, the low and the high one of the next. The first segment has the lower halves of
     * words, the second the upper ones, and a weight is the sum of two words. */
    TURNED_PAIRS,

    /* The low nibbles of 8 bytes are a segment's first eight weights, the high ones the other
     * eight; words have those of each byte side by side. Pieces are left turned by 8 bytes alone,
     * which swaps a lane's segments. */
    EIGHTS,

    IN_ORDER, /* not turned */
    SPREAD,   /* not turned; byte b of word i of a segment is its weight 4b + i */

    /* Not turned, SCALES of 1: the four lanes of a block of 16 segments have a word of each
     * segment, the first its first one; q has them in the segments' order. */
    CROSSWISE
} stream_order;

/* What a lane loads of a step: so many words from a pointer of the row on, an offset behind it, by
 * loads as wide as a line. A single word may be of another type, and may become f32 at once. */
typedef struct stream_load {
    unsigned words; /* 0: no more */
    int from;       /* FROM_BLOCK, FROM_LINES or the number of a pointer of the row's own */
    int64_t offset;
    type type;
    bool as_f32;
} stream_load;
enum { FROM_BLOCK = -2, FROM_LINES = -1, STREAM_LOADS = 8 };
#define LOAD(of, from, at)     \
    {                          \
        1, from, at, of, false \
    }
#define LOAD_AS_F32(of, at)         \
    {                               \
        1, FROM_BLOCK, at, of, true \
    }
#define LOAD_WORDS(n, from, at) \
    {                           \
        n, from, at, U32, false \
    }
#define LOAD_PIECE LOAD_WORDS(STREAM_LINES, FROM_LINES, 0) /* the first one */

typedef struct stream_format {
    /* Floats: those of 16 loaded bytes, four or eight. Nothing else is needed. */
    void (*floats)(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES]);

    /* Integers. */
    stream_scales scales;
    stream_order order;
    bool minima;
    int offset;
    unsigned segments;            /* of a lane: 2 or 4 */
    unsigned up[STREAM_SEGMENTS]; /* bits that the quants of each stand above their place */
    int unit;                     /* of the first four words of a segment's eight; 0: it has four */
    unsigned index_bit; /* the segments of a row are numbered; the bits from this one on are a
                           segment's index in its lane, the other ones the lane's number */
    bool twos; /* SCALES: segments 2i and 2i + 1 are of the same 32 values and have scale[2i] */

    /* The lane's first piece: quants in the block, and from there on what its part makes; NULL: no
     * more. Pieces of a lane are turned alike. at_end: they may end where the block does, and never
     * start there. Then a piece that needs only one line has that one second, else first: the other
     * line still has a byte of the block. */
    unsigned quants;
    val (*piece)(ptx *p, val part);
    bool at_end;

    /* What weights are looked up in, in shared memory (grid.h): bytes, a multiple of 16, of a grid,
     * of so many words of signs, and of a word of levels, times a factor, plus an offset. 0 bytes:
     * nothing; factor 0: no levels. */
    unsigned table_bytes;
    const weight_grid *grid;
    unsigned signs;
    struct {
        int factor, offset;
    } levels;

    /* Fill in the constants and the other pointers; NULL: there are none. */
    void (*lane_new)(ptx *p, stream_lane *lane);
    void (*row_new)(ptx *p, stream_row *row);

    /* What the lane loads of a step, and what it makes of the words, which are in that order. */
    stream_load loads[STREAM_LOADS];
    stream_weights (*decode)(ptx *p, const stream_row *row, const val words[STREAM_LOADED]);
} stream_format;

enum {
    GEMM_STEP = 32, /* values of k that are multiplied between two barriers */
    GEMM_OWN = 16,  /* values of a row's step that a thread makes f16 of */
    GEMM_KEPT = 16, /* words that a decoder keeps from step to step */
};

/* A thread's half of a row of a chunk: whole blocks in shared memory, as they stand in the GGUF. */
typedef struct gemm_row {
    val at;           /* the chunk's first byte, */
    unsigned aligned; /* a multiple of so many bytes, 16 at most */
    val half;         /* which 16 of every 32 values are the thread's */
    val scale;        /* f32 that weights are multiplied by, where beyond_f16 says so */
    val kept[GEMM_KEPT];
} gemm_row;

/* A way from a chunk's bytes to pairs of f16. Of every four values a word has the first and the
 * second, or where pairs are apart the first and the third. */
typedef struct gemm_decoder {
    bool apart;
    void (*begin)(ptx *p, gemm_row *row); /* of a chunk; NULL: nothing */
    /* The thread's 16 values of a step: of a row's last one so many are there. */
    void (*step)(ptx *p, gemm_row *row, unsigned step, unsigned there, val words[GEMM_OWN / 2]);
} gemm_decoder;

typedef struct weight_format {
    /* Weights first .. first + 7 of a block; first, a u32, is a multiple of 8. Of a format of
     * single values the block is the eight, and first 0. unpack_known, in its place, makes use of
     * what is known of the first weight's number. */
    void (*unpack)(ptx *p, val block, val first, val w[UNPACKED]);
    void (*unpack_known)(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED]);
    stream_format stream;
    gemm_decoder gemm; /* without a step: none of its own */
    bool
        beyond_f16; /* weights may be larger than f16 has room for, or be an f16 scale, which may be
                       subnormal, times less than 1: rows are multiplied by a power of two first */
    /* Of these formats, other than of single values: no weight of a block is larger than so many
     * times its scale, an f32 that is loaded from the offset. */
    struct {
        val (*scale)(ptx *p, val block, unsigned offset);
        unsigned offset;
        float times;
    } largest;
} weight_format;

#define FORMAT(id, ...) extern const weight_format weight_format_##id;
#include "kernel/format.def"

/* Returns that of a format that W may have. */
const weight_format *weight_format_of(format f);

/* Unpack eight weights: 16 half + known .. + 7 of a block, for a thread that has a half of each 32;
 * and of a row, weights 8 piece .. 8 piece + 7. */
void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED]);
void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED]);

#endif
