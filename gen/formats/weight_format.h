/* A weight format: how products read its blocks. A file of this folder defines the const
 * weight_format of one format or of related formats; formats.c finds them by id.
 *
 * There are three ways from a block to its weights:
 *
 *   unpack   Eight neighbouring weights as f32, loaded byte by byte and computed in ggml's order of
 *            operations. Slow and exact: the other two are compared with it.
 *   stream   A lane of a streaming product loads its part of a row and makes bytes for dp4a of it.
 *            gen/products/stream_plan.h draws how the activations are laid out to match.
 *   gemm     A thread of a tensor-core product decodes a chunk in shared memory to pairs of f16. A
 *            format without its own decoder has its unpacked weights rounded.
 */
#pragma once

#include "gen/common/bytes.h"
#include "kernel/format.h"
#include "kernel/grid.h"
#include "ptx/ptx.h"

enum { UNPACKED = 8 }; /* neighbouring weights per call of unpack */

/* Index of the first of eight weights in a block: `number`, or 16 half + known where a thread owns
 * one half of each 32 weights. half is 0 or 1; known is a multiple of 8 with bit 4 clear. */
typedef struct unpack_first {
    val number, half; /* half = VAL_NONE: use number */
    unsigned known;
} unpack_first;

/* Address of a block's bytes in global or shared memory: base + offset. */
typedef struct block_bytes {
    val base;
    unsigned offset;
} block_bytes;

enum {
    STREAM_SEGMENT = 16,
    STREAM_SEGMENTS = 4, /* segments per lane, at most */
    STREAM_WORDS = 4,    /* words of a segment's activations, and of a piece */
    STREAM_FACTORS = 8,  /* words of quants per segment, at most */
    STREAM_LINES = 8,    /* words of the two lines around a piece */
    STREAM_LOADED = 32,
    STREAM_POINTERS = 5,
    STREAM_CONSTANTS = 6,
    STREAM_LANE_BYTES = 16 /* bytes of a line; of floats: bytes per lane and step */
};

/* How a piece is put together from the two lines around it. Pieces at the same offset from a
 * multiple of 16 share one shift. */
typedef struct stream_shift {
    val second[STREAM_WORDS];      /* predicate per word: take it from the second line */
    val selector[STREAM_WORDS];    /* prmt selector per word, where words straddle lines */
    val by_eight, by_four, by_few; /* rotation back, see stream_rotate; or VAL_NONE */
} stream_shift;

/* A lane's place in a step of a row. */
typedef struct stream_lane {
    val block, part;                 /* index of its block, and of the lane in it */
    val start;                       /* as stream_row.start, if all rows share it */
    val piece;                       /* offset of its first piece in the block, in bytes */
    val constants[STREAM_CONSTANTS]; /* values of the format's own, from lane_new */
    val rotation;                    /* rotation of its pieces in the tile, in bytes */
    val swizzle;                     /* fragments: load i has chunk i ^ swizzle; VAL_NONE: 0 */
    val table;                       /* shared-memory address of the format's table */
    unsigned table_bytes;            /* size of the table */
    bool codes;                      /* formats with look_up: decode leaves codes in q[0] */
    stream_shift shift;              /* shift of all rows, if they share one */
} stream_lane;

/* Pointers of a lane into the first step of a row. */
typedef struct stream_row {
    const stream_lane *lane;
    val block;               /* address of the lane's block */
    val start;               /* offset of that block from a multiple of 16 */
    val lines;               /* address of the line around the lane's first piece to load first */
    val at[STREAM_POINTERS]; /* pointers of the format's own, from row_new */
    val constants[STREAM_CONSTANTS];
    stream_shift shift;
    int64_t offset; /* bytes from these pointers to the row */
} stream_row;

/* A lane's decoded weights of a step: quants, four per word, with their scales and minima. In a
 * segment with eight words, weight i is unit * quant[i] + quant[16 + i]. */
typedef struct stream_weights {
    val q[STREAM_SEGMENTS][STREAM_FACTORS];
    val d, dmin;
    val scale[STREAM_SEGMENTS], min[STREAM_SEGMENTS]; /* VAL_NONE: a scale of 1 */
} stream_weights;

typedef enum stream_scales {
    NO_SCALE,  /* floats */
    ONE_SCALE, /* 32 values per scale: d (q + offset), plus dmin if the format has minima */
    SCALES     /* d scale[i] (q + offset), minus dmin min[i] if the format has minima */
} stream_scales;

/* Order of the weights in a lane's words of quants. Activations are staged in the same order. */
typedef enum stream_order {
    ROTATED, /* a segment's weights in order, rotated as joining two lines leaves them */

    /* Rotated. Words alternate between both segments, as nibbles do: low, high, low, high. The
     * first segment has the lower halves of words, the second the upper. A weight is the sum of two
     * words. */
    ROTATED_PAIRS,

    /* The low nibbles of 8 bytes are a segment's first eight weights, the high nibbles the other
     * eight. Words hold both nibbles of a byte side by side. Pieces stay rotated by 8 bytes or not
     * at all, which swaps a lane's segments. */
    EIGHTS,

    IN_ORDER, /* not rotated */
    SPREAD,   /* not rotated; byte b of word i of a segment is its weight 4b + i */

    /* Not rotated, SCALES of 1. Four lanes share a block of 16 segments: lane l has word l of every
     * segment, and q holds these words in order of segments. */
    CROSSWISE
} stream_order;

/* A load of a lane in a step: `words` words at a pointer of the row plus an offset, by loads of up
 * to 16 bytes. A single word may have another type, and may be converted to f32 at once. */
typedef struct stream_load {
    unsigned words; /* 0 ends the list */
    int from;       /* FROM_BLOCK, FROM_LINES or an index into stream_row.at */
    int64_t offset;
    type type;
    bool as_f32;
} stream_load;
enum { FROM_BLOCK = -2, FROM_LINES = -1, STREAM_LOADS = 12 };
#define LOAD_AS(...) \
    {                \
        __VA_ARGS__  \
    }
#define LOAD(of, from, at)      LOAD_AS(1, from, at, of, false)
#define LOAD_AS_F32(of, at)     LOAD_AS(1, FROM_BLOCK, at, of, true)
#define LOAD_WORDS(n, from, at) LOAD_AS(n, from, at, U32, false)
#define LOAD_PIECE              LOAD_WORDS(STREAM_LINES, FROM_LINES, 0) /* the lane's first piece */

/* The first piece of a format that swaps: its other line is at pointer `other`. */
#define LOAD_SWAPPED(other) \
    LOAD_WORDS(STREAM_WORDS, FROM_LINES, 0), LOAD_WORDS(STREAM_WORDS, other, 0)

/* How lanes of streaming products load and decode a format. */
typedef struct stream_format {
    /* Formats of floats: converts 16 loaded bytes to 4, 8 or 16 f32. They need no other field. */
    void (*floats)(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES]);

    /* Formats of integers: all other fields. */
    stream_scales scales;
    stream_order order;
    bool minima;
    int offset;
    unsigned segments;            /* segments per lane, 2 or 4 */
    unsigned up[STREAM_SEGMENTS]; /* bits by which the quants of each segment are shifted left */
    int unit;           /* factor of a segment's first four words of eight; 0: only four */
    unsigned index_bit; /* a segment's number has its index in the lane from this bit on */
    bool twos;          /* SCALES: segments 2i and 2i + 1 are 32 values that share scale[2i] */

    /* Offset of a lane's first piece: quants + piece(part); piece = NULL: quants. All pieces of a
     * lane have the same rotation. at_end: pieces may end at the block's end and never start at its
     * start. A piece within one line is then the second line, else the first: both overlap the
     * block. */
    unsigned quants;
    val (*piece)(ptx *p, val part);
    bool at_end;
    /* Odd lanes load the second line first. Neighbours then read different banks of the L1 cache,
     * where their first lines would share banks. See LOAD_SWAPPED. */
    bool swaps;
    /* Lane l of the four of 256 values holds values 8l .. 8l + 7 of each 32, its part of a fragment of
     * mma.m16n8k32: those of group 2c + h are words 2 (c % 2) and the next of q[2h + c / 2].
     * Its scales are those of groups 2l and 2l + 1. */
    bool fragments;
    /* Segments i of lanes 2h and 2h + 1 of the four of 256 values are the halves of 32 values.
     * Scales are integers, in lane 2h + l those of segments 2l and 2l + 1: of both lanes' first and
     * second. */
    bool halves;

    /* Lookup table in shared memory (grid.h): a grid, sign words, and a word of levels times factor
     * plus offset. table_bytes is a multiple of 16; 0: no table. factor = 0: no levels. */
    unsigned table_bytes;
    const weight_grid *grid;
    unsigned signs;
    struct {
        int factor, offset;
    } levels;

    /* ROTATED_PAIRS: looks up a word of codes. parts[i][j] is word j of the weights of segment i. */
    void (*look_up)(ptx *p, const stream_lane *lane, val codes, val parts[2][2]);

    /* Fill in the format's constants and pointers; NULL: it has none. */
    void (*lane_new)(ptx *p, stream_lane *lane);
    void (*row_new)(ptx *p, stream_row *row);

    /* Loads of a lane in a step; decode gets the loaded words in this order. */
    stream_load loads[STREAM_LOADS];
    stream_weights (*decode)(ptx *p, const stream_row *row, const val words[STREAM_LOADED]);
} stream_format;

enum {
    GEMM_STEP = 32, /* values of k between two barriers */
    GEMM_OWN = 16,  /* values of a row's step that a thread converts to f16 */
    GEMM_KEPT = 16, /* words that a decoder keeps from step to step */
};

/* A thread's half of a row of a chunk: whole blocks in shared memory, as ggml stores them. */
typedef struct gemm_row {
    val at;           /* address of the chunk's first byte */
    unsigned aligned; /* alignment of `at` in bytes, at most 16 */
    val half;         /* the thread's 16 of every 32 values, 0 or 1 */
    val scale;        /* f32 factor of all weights, used with beyond_f16 */
    val kept[GEMM_KEPT];
} gemm_row;

/* A decoder from a chunk's bytes to pairs of f16. Of every four values a word holds the first and
 * second, or the first and third if `apart`. */
typedef struct gemm_decoder {
    bool apart;
    void (*begin)(ptx *p, gemm_row *row); /* called once per chunk; NULL: nothing to do */
    /* Decodes the thread's 16 values of a step. `valid` is the number of the row's values in the
     * step, GEMM_STEP but in a last, partial step. */
    void (*step)(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2]);
} gemm_decoder;

/* All that products need to know of a format. */
typedef struct weight_format {
    /* Unpacks weights first .. first + 7 of a block; first is a u32 and a multiple of 8. In formats
     * of single values the block is the eight values and first is 0. A format with unpack_known has
     * it instead of unpack: it folds the known bits of first. */
    void (*unpack)(ptx *p, val block, val first, val w[UNPACKED]);
    void (*unpack_known)(ptx *p, block_bytes block, unpack_first first, val w[UNPACKED]);
    stream_format stream;
    const stream_format *tensor_stream; /* of products on tensor cores; NULL: stream */
    gemm_decoder gemm;                  /* step = NULL: no decoder of its own */
    /* Weights may exceed the range of f16, or be an f16 scale, possibly subnormal, times a factor
     * below 1: rows are first multiplied by a power of two. */
    bool beyond_f16;
    /* Bound of a beyond_f16 format with blocks: no weight exceeds `times` times the block's scale,
     * an f32 that scale() loads from `offset`. */
    struct {
        val (*scale)(ptx *p, val block, unsigned offset);
        unsigned offset;
        float times;
    } largest;
} weight_format;

#define FORMAT(id, ...) extern const weight_format weight_format_##id;
#include "kernel/format.def"

/* Returns the weight_format of a format that W may have. */
const weight_format *weight_format_of(format f);

/* Unpacks weights 16 half + known on of a block; a thread owns one half of each 32 weights. */
void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED]);
/* Unpacks weights 8 piece .. 8 piece + 7 of a row in global or, with a U32 address, shared memory. */
void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED]);
