/* q8_1: 32 activations in 36 bytes, as ggml stores them (block_q8_1).
 *
 *   offset  0  f16  d        value = d * q
 *           2  f16  s        d * sum(q), with d before it was rounded
 *           4  32 x s8       q
 *
 * A block is a multiple of 4 bytes, so quants are read as aligned words if the array is aligned. */
#pragma once

#include "gen/common/reduce.h"
#include "kernel/format.h"
#include "ptx/ptx.h"

/* Quantization in registers. Magnitudes are handled as the bits of |x|, which order like the
 * floats. A NaN is above infinity, so d shows either. Q8_SMALLEST is 1e-30 and keeps 1 / d finite.
 *
 *   q8_largest   largest magnitude of count values and of an earlier largest
 *   q8_scale     d, from the largest magnitude of 32 values
 *   q8_pack      four values as signed bytes, rounded to nearest even; inverse is 1 / d */
enum { Q8_SMALLEST = 0x0da24260 };
val q8_largest(ptx *p, val largest, const val *x, unsigned count);
val q8_scale(ptx *p, val largest);
val q8_pack(ptx *p, const val x[4], val inverse);

/* A warp loads a chunk of 16 lines: blocks of 32 values, 128 bytes as f32. Eight lanes share a line,
 * four values each, and a lane has values of four lines:
 *
 *   load i = 0 .. 3   word `word` of half `half` of line `line` + 2 i; line is 0, 1, 8 or 9
 *
 * So a load reads four whole lines. q8_transpose gives each lane a segment, half a line:
 *
 *   word i = 0 .. 3   word i of half `half` of line `own` = line + 2 word
 *
 * `bits` are the numbers of the lane's bits that hold word (two), half and line (two). Any order
 * loads the same lines; it decides which lanes store neighbouring segments. */
enum { Q8_LINES = 16, Q8_WORDS = 4, Q8_LANE_VALUES = 16, Q8_WORD_LINES = 2, Q8_HALF_BIT = 2 };
typedef struct q8_lane_place {
    const lane_bits *bits;
    val word, half, line, own;
    val upper[2]; /* predicates: the bits of word */
} q8_lane_place;
q8_lane_place q8_lane_place_of(ptx *p, const lane_bits *bits);
extern const lane_bits q8_usual_bits; /* word, half, line from the lowest bit on */

/* A lane's lines of a chunk, by load. Lines past the row's end are its last line. */
typedef struct q8_lines {
    val line[Q8_WORDS];
    unsigned further[Q8_WORDS]; /* lines from there on */
    val exists[Q8_WORDS];       /* predicates: the row has the line */
} q8_lines;
/* Returns the lines of a row's chunk. ragged: the row may end in it. */
q8_lines q8_lines_of_chunk(ptx *p, const q8_lane_place *at, val chunk, unsigned lines, bool ragged);
/* Loads a lane's f32 values of a chunk of a row. */
void q8_load_lines(ptx *p, const q8_lane_place *at, const q8_lines *lines, val row,
                   val x[Q8_LANE_VALUES]);

/* Quantizes a lane's values of a chunk to one word per load. Returns d of line `own`. */
val q8_quantize_chunk(ptx *p, const q8_lane_place *at, const val x[Q8_LANE_VALUES],
                      val q[Q8_WORDS]);
void q8_transpose(ptx *p, const q8_lane_place *at, val q[Q8_WORDS]);
/* Adds a value of both halves of each line, or of each segment. */
val q8_add_halves(ptx *p, const q8_lane_place *at, val v);

/* Quantizes a block of 32 values, one per lane. The result has the same bits as ggml's
 * quantize_row_q8_0_ref and quantize_row_q8_1_ref: d = amax / 127 in f32, q = x * (1 / d), rounded
 * half away from zero. All lanes must call it. */
typedef struct q8_lane {
    val d, q;
} q8_lane;
q8_lane q8_quantize_lane(ptx *p, val x);

/* Quantizes the warp's 32 values, one per lane, and stores the q8_1 block. */
void q8_1_store_warp(ptx *p, val block, val x);

/* Converts a dp4a sum to f32 without cvt. A sum below 2^22 that starts at DP4A_START, the bits of
 * 1.5 * 2^23, ends as the bits of 1.5 * 2^23 + sum. */
enum { DP4A_START = 0x4b400000 };
val dp4a_sum_as_f32(ptx *p, val sum);
