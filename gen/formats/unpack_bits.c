/* Neighbouring weights side by side in a byte: layouts in src/ref/decode_blocks.c. */
#include "gen/formats/unpack.h"

/* A byte's fields of so many bits. */
static void split_byte(ptx *p, val at, unsigned offset, unsigned bits, unsigned count, val *fields)
{
    val byte = load_packed(p, U8, at, offset);
    for (unsigned i = 0; i < count; i++)
        fields[i] = bfe(p, byte, i * bits, bits);
}

/* d * (2 bit - 1). */
void unpack_Q1_0(ptx *p, val block, val first, val w[UNPACKED])
{
    split_byte(p, byte_behind(p, block, shr(p, first, 3)), Q1_0_BITS, 1, 8, w);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = shl(p, w[i], 1);
    scale_integers(p, load_half_as_f32(p, block, Q1_0_D), -1, w);
}

void unpack_Q2_0(ptx *p, val block, val first, val w[UNPACKED])
{
    val at = byte_behind(p, block, shr(p, first, 2));
    for (unsigned i = 0; i < 2; i++)
        split_byte(p, at, Q2_0_QUANTS + i, 2, 4, w + 4 * i);
    scale_integers(p, load_half_as_f32(p, block, Q2_0_D), -1, w);
}
