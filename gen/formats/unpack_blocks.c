/* Blocks of 32 weights: layouts in src/ref/decode_blocks.c. */
#include "gen/formats/unpack.h"

/* The fifth bits of eight values are a byte: bit i of the word is value i's. */
static void add_fifth_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val bits = load_packed(p, U8, byte_behind(p, block, shr(p, first, 3)), offset);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, bfe(p, bits, i, 1), 4));
}

void unpack_Q4_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q4_0_QUANTS, first, w);
    scale_integers(p, load_half_as_f32(p, block, Q4_0_D), -8, w);
}

void unpack_Q4_1(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q4_1_QUANTS, first, w);
    scale_and_add(p, load_half_as_f32(p, block, Q4_1_D), load_half_as_f32(p, block, Q4_1_MIN), w);
}

void unpack_Q5_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q5_0_QUANTS, first, w);
    add_fifth_bits(p, block, Q5_0_FIFTH_BITS, first, w);
    scale_integers(p, load_half_as_f32(p, block, Q5_0_D), -16, w);
}

void unpack_Q5_1(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, Q5_1_QUANTS, first, w);
    add_fifth_bits(p, block, Q5_1_FIFTH_BITS, first, w);
    scale_and_add(p, load_half_as_f32(p, block, Q5_1_D), load_half_as_f32(p, block, Q5_1_MIN), w);
}

void unpack_Q8_0(ptx *p, val block, val first, val w[UNPACKED])
{
    val at = byte_behind(p, block, first);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = load_packed(p, S8, at, Q8_0_QUANTS + i);
    scale_integers(p, load_half_as_f32(p, block, Q8_0_D), 0, w);
}
