/* Q4_K weights times integer activations with dp4a: half a warp, one super-block.
 *
 * A lane takes eight bytes of one chunk and with them sixteen weights, so that what it does once a
 * super-block (its header, two scales, two mins) serves sixteen. With q8 the integers and d8 the
 * scale of 32 activations, a sub-block is
 *
 *   d8 * (d * scale * sum(q q8) - dmin * min * sum(q8))
 *
 * The sum of the integers is taken anew: the s of a q8_1 block went through f16 and would cost
 * three digits.
 *
 * The integers come from q8_1 blocks, or from f32 activations that lanes quantize on the way. Then
 * d8 is amax / 127 of 32 values, as in q8_1, but stays an f32.
 */
#ifndef PTXGEN_GEN_SEEDS_Q4K_Q8_H
#define PTXGEN_GEN_SEEDS_Q4K_Q8_H

#include "gen/formats/q4k.h"
#include "gen/common/q8_1.h"
#include "kernel/family.h"

enum {
    Q4K_Q8_WORDS = 2, /* of quants, a lane's */
    Q4K_Q8_LANES = 16,
    Q4K_WARP_SUPER_BLOCKS = 2,
    Q4K_Q8_ROWS = 2,                                       /* of weights at once, at most */
    Q4K_Q8_BYTES = Q4_K_VALUES / Q8_1_VALUES * Q8_1_BYTES, /* activations of a super-block */
};

/* A lane's place in every super-block. */
typedef struct q4k_q8_lane {
    val half; /* of the warp: which of two super-blocks */
    q4k_chunk chunk;
    val quants;    /* offset of its eight bytes */
    val sub_block; /* number of its low nibbles' sub-block; the high ones' is the next */
    val byte;      /* number of its first value in both */
} q4k_q8_lane;
q4k_q8_lane q4k_q8_lane_new(ptx *p);

/* A lane's sixteen weights: quants[0] and what goes with it of the low nibbles, [1] of the high
 * ones. These stay where they are in their bytes, and their scale is a sixteenth. */
typedef struct q4k_quants {
    val quants[2][Q4K_Q8_WORDS];
    val scale[2], low[2]; /* d * scale and -dmin * min */
} q4k_quants;
q4k_quants q4k_load_quants(ptx *p, val2 words, const q4k_header *h);

/* The sixteen activations beside them. */
typedef struct q8_values {
    val q[2][Q4K_Q8_WORDS]; /* four signed bytes each */
    val d[2];
    val sum[2]; /* of a lane's eight integers, as f32 */
} q8_values;

/* From two neighbouring q8_1 blocks; q8 is the lane's byte in the first of them. */
q8_values q8_load(ptx *p, val block, int64_t block_offset, val q8, int64_t q8_offset);

/* From f32 values, two runs of 32 shared by four neighbouring lanes: x is the lane's first value in
 * the first run. All lanes of the warp must call it. */
q8_values q8_quantize(ptx *p, val x, int64_t offset);

/* acc + the sixteen products. */
val q4k_dot_q8(ptx *p, const q4k_quants *w, const q8_values *x, val acc);

/* Rows of weights times vectors of activations. */
typedef struct q4k_q8_product {
    val w[Q4K_Q8_ROWS]; /* where each row starts */
    unsigned rows, vectors;
    val x;             /* vectors one behind the other, or */
    const val *behind; /* each so many bytes behind x (gemv_operands); NULL: the former, */
    bool quantized;    /* of q8_1 blocks, else of f32 */
    val blocks;        /* super-blocks of a row and of a vector */
    unsigned unroll;
} q4k_q8_product;

/* A lane's part of them: sums[rows * vector + row]. The warps of a block take super-blocks in turn.
 * Weights are read and decoded once for all vectors, activations and their sums once for all rows.
 */
void q4k_q8_multiply(ptx *p, const q4k_q8_lane *lane, const q4k_q8_product *of, val *sums);

#endif
