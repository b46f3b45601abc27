/* Weights of three values: layouts in src/ref/decode_k.c. */
#include "gen/formats/unpack.h"

/* Trit n of a byte is what 3 gives above 255 when multiplied by the lower eight bits of byte 3^n.
 * Eight of the last 16 weights are two trits of four bytes, others one of eight. */
void unpack_TQ1_0(ptx *p, val block, val first, val w[UNPACKED])
{
    enum { FIRST_SIXTEENS = 160, LAST = 240, POWERS = 0x1b090301, LAST_POWER = 0x51 };
    val of_32 = lt(p, first, FIRST_SIXTEENS), is_last = ge(p, first, LAST);
    val byte = select(p, of_32, bit_and(p, first, 31), add(p, bit_and(p, first, 15), 32));
    val trit = select(p, of_32, shr(p, first, 5), shr(p, sub(p, first, FIRST_SIXTEENS), 4));
    byte = select(p, is_last, imm(U32, TQ1_0_LAST_QUANTS), byte);
    trit = select(p, is_last, shr(p, sub(p, first, LAST), 2), trit);
    val d = load_half_as_f32(p, block, TQ1_0_D);
    for (int half = 0; half < 2; half++) {
        val at = byte_behind(p, block, byte);
        val power = prmt(p, imm(U32, POWERS), imm(U32, LAST_POWER), trit);
        for (int i = 0; i < UNPACKED / 2; i++) {
            val fraction =
                bit_and(p, mul(p, load_packed(p, U8, at, TQ1_0_QUANTS + i), power), 0xff);
            w[UNPACKED / 2 * half + i] = shr(p, mul(p, fraction, 3), 8);
        }
        byte = select(p, is_last, byte, add(p, byte, 4));
        trit = select(p, is_last, add(p, trit, 1), trit);
    }
    scale_integers(p, d, -1, w);
}

void unpack_TQ2_0(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, TQ2_0_QUANTS, first, w);
    scale_integers(p, load_half_as_f32(p, block, TQ2_0_D), -1, w);
}
