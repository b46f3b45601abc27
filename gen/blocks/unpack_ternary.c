/* Weights of three values: layouts in src/ref/decode_ternary.c. */
#include "gen/blocks/unpack.h"

void unpack_TQ2_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, TQ2_0_QUANTS, first, w);
    scale_integers(p, load_half_as_f32(p, block, TQ2_0_D), -1, w);
}
