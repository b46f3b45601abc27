/* Q6_K: 256 weights in 210 bytes, as ggml stores them (block_q6_K).
 *
 *   offset  0  128 x u8   nibbles: the low four bits of q
 *         128   64 x u8   the upper two bits of q
 *         192   16 x s8   scales
 *         208  f16  d     weight = d * scale[index / 16] * (q - 32)
 *
 * With index = 128 h + 32 g + l (half h, group g = 0 … 3 of it, l = 0 … 31), the nibble is in byte
 * 64 h + 32 (g & 1) + l, the low one of it where g < 2, and the upper bits are bits 2g and 2g + 1
 * of byte 128 + 32 h + l.
 *
 * A super-block is only 2-byte aligned, so words are loaded as two halves.
 *
 * A lane works on four neighbouring l of one half, with sixteen lanes to a super-block on all four
 * groups, with thirty-two on two of them, g and g + 2, which share a word of nibbles. A lane's
 * groups differ from its first one by constants; all that differs between lanes are a few offsets.
 * The four weights of a group have one scale, and lie in one block of thirty-two activations.
 */
#ifndef PTXGEN_GEN_SEEDS_Q6K_H
#define PTXGEN_GEN_SEEDS_Q6K_H

#include "kernel/format.h"
#include "ptx/ptx.h"

enum {
    Q6K_SCALE_COUNT = 16,
    Q6K_GROUPS = 4,
    Q6K_GROUP_VALUES = 32,
    Q6K_GROUP_SCALES = 2,
    Q6K_LANE_VALUES = 4, /* neighbouring weights that a lane takes of each of its groups */
};

/* A lane's place in a row and in each of its super-blocks. */
typedef struct q6k_lane {
    unsigned group_step; /* its groups, counted from its first one: 0, group_step, … below 4 */
    val super_block;     /* the first that it takes */
    val group, l;        /* 4 h + g of its first group, and its first weight there */
    val low, high;       /* offsets of its bytes in a super-block, */
    val scale;           /* and of its first group's scale */
    val shift;           /* of its first group's bits in a byte of upper bits */
} q6k_lane;

/* lanes to a super-block, 16 or 32: the threads of a block take as many super-blocks side by side
 * as they can. */
q6k_lane q6k_lane_new(ptx *p, unsigned lanes);

/* A lane's quants in a super-block. low and high point at its bytes there. */
typedef struct q6k_quants {
    val low[2], high; /* four bytes each: nibbles of even and odd groups, upper bits */
} q6k_quants;
q6k_quants q6k_quants_at(ptx *p, const q6k_lane *lane, val low, val high, int64_t offset);
#define q6k_load_quants(p, lane, low, high, offset) q6k_quants_at(p, lane, V(low), V(high), offset)

/* The four q - 32 of a group in units that come cheap: signed bytes in an S32 word, Q6K_BYTE_UNIT
 * each; floats, Q6K_F32_UNIT each. */
#define Q6K_BYTE_UNIT 0.25f
#define Q6K_F32_UNIT  64.0f
val q6k_as_bytes(ptx *p, const q6k_quants *q, unsigned group);
void q6k_as_f32(ptx *p, const q6k_quants *q, unsigned group, val weight[Q6K_LANE_VALUES]);

#endif
