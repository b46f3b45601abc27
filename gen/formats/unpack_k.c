/* K-quants: layouts in src/ref/decode_k.c. */
#include "gen/formats/unpack.h"

/* The six-bit scale and min of sub-block j among twelve bytes: see decode_k.c. */
typedef struct scale_and_min {
    val scale, min;
} scale_and_min;

static scale_and_min load_scale_and_min(ptx *p, val block, unsigned offset, val j)
{
    val at = byte_behind(p, block, bit_and(p, j, 3)), low = lt(p, j, 4);
    val scales = load_packed(p, U8, at, offset), mins = load_packed(p, U8, at, offset + 4);
    val nibbles = load_packed(p, U8, at, offset + 8);
    val late_scale = bit_or(p, bit_and(p, nibbles, 15), shl(p, shr(p, scales, 6), 4));
    val late_min = bit_or(p, shr(p, nibbles, 4), shl(p, shr(p, mins, 6), 4));
    return (scale_and_min){ convert(p, F32, select(p, low, bit_and(p, scales, 63), late_scale)),
                            convert(p, F32, select(p, low, bit_and(p, mins, 63), late_min)) };
}

/* Eight nibbles of sub-block j: bytes 32 (j / 2) on, the low ones where j is even. */
static void load_paired_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5);
    val byte = mad(p, shr(p, j, 1), 32, bit_and(p, first, 31));
    load_fields(p, byte_behind(p, block, byte), offset, mul(p, bit_and(p, j, 1), 4), 4, w);
}

/* The bit of each value in a field of 32 bytes, bit index / 32 of byte index % 32, as bit number
 * place of it. */
static void add_one_bits(ptx *p, val block, unsigned offset, val first, unsigned place,
                         val w[UNPACKED])
{
    val bits[UNPACKED];
    load_fields(p, byte_behind(p, block, bit_and(p, first, 31)), offset, shr(p, first, 5), 1, bits);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, bits[i], place));
}

void unpack_Q2_K(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, Q2_K_QUANTS, first, w);
    val both = load_packed(p, U8, byte_behind(p, block, shr(p, first, 4)), Q2_K_SCALES);
    val scale = convert(p, F32, bit_and(p, both, 15)), min = convert(p, F32, shr(p, both, 4));
    scale_and_add(p, mul(p, load_half_as_f32(p, block, Q2_K_D), scale),
                  neg(p, mul(p, load_half_as_f32(p, block, Q2_K_DMIN), min)), w);
}

/* Scale k of 16: four bits in byte k % 8, two in byte 8 + k % 4. */
void unpack_Q3_K(ptx *p, val block, val first, val w[UNPACKED])
{
    load_two_bits(p, block, Q3_K_QUANTS, first, w);
    add_one_bits(p, block, Q3_K_HIGH_BITS, first, 2, w);
    val k = shr(p, first, 4);
    val low = load_packed(p, U8, byte_behind(p, block, bit_and(p, k, 7)), Q3_K_SCALES);
    val high = load_packed(p, U8, byte_behind(p, block, bit_and(p, k, 3)), Q3_K_SCALES + 8);
    low = bit_and(p, shr(p, low, mul(p, shr(p, k, 3), 4)), 15);
    high = bit_and(p, shr(p, high, mul(p, shr(p, k, 2), 2)), 3);
    val scale = sub(p, as(p, S32, bit_or(p, low, shl(p, high, 4))), 32);
    scale_integers(p, mul(p, load_half_as_f32(p, block, Q3_K_D), convert(p, F32, scale)), -4, w);
}

/* Q4_K, and Q5_K with its fifth bits; d, dmin and the scales lie alike. */
static void scale_with_mins(ptx *p, val block, val first, val w[UNPACKED])
{
    scale_and_min s = load_scale_and_min(p, block, Q4_K_SCALES, shr(p, first, 5));
    val min = mul(p, load_half_as_f32(p, block, Q4_K_DMIN), s.min);
    scale_and_add(p, mul(p, load_half_as_f32(p, block, Q4_K_D), s.scale), neg(p, min), w);
}

void unpack_Q4_K(ptx *p, val block, val first, val w[UNPACKED])
{
    load_paired_nibbles(p, block, Q4_K_QUANTS, first, w);
    scale_with_mins(p, block, first, w);
}

void unpack_Q5_K(ptx *p, val block, val first, val w[UNPACKED])
{
    load_paired_nibbles(p, block, Q5_K_QUANTS, first, w);
    add_one_bits(p, block, Q5_K_FIFTH_BITS, first, 4, w);
    scale_with_mins(p, block, first, w);
}

/* With index = 128 h + 32 g + l: nibble in byte 64 h + 32 (g & 1) + l, low where g < 2; upper bits
 * as two-bit values. */
void unpack_Q6_K(ptx *p, val block, val first, val w[UNPACKED])
{
    val h = shr(p, first, 7), g = bfe(p, first, 5, 2), l = bit_and(p, first, 31), upper[UNPACKED];
    val low = mad(p, h, 64, mad(p, bit_and(p, g, 1), 32, l));
    load_fields(p, byte_behind(p, block, low), Q6_K_QUANTS, mul(p, shr(p, g, 1), 4), 4, w);
    load_two_bits(p, block, Q6_K_HIGH_BITS, first, upper);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, upper[i], 4));
    val at = byte_behind(p, block, shr(p, first, 4));
    val scale = convert(p, F32, load_packed(p, S8, at, Q6_K_SCALES));
    scale_integers(p, mul(p, load_half_as_f32(p, block, Q6_K_D), scale), -32, w);
}
