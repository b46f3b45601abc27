/* Formats whose four-bit codes index a table: layouts in src/ref/decode_tables.c. */
#include "gen/formats/unpack.h"
#include "kernel/grid.h"

/* The value of each code times d. A byte of eight by its number is what a permutation gives; the
 * bit 3 of the code says of which eight. */
static void scale_codes(ptx *p, val d, const int8_t table[16], val w[UNPACKED])
{
    val words[4];
    for (int i = 0; i < 4; i++) {
        uint32_t bytes = 0;
        for (int j = 0; j < 4; j++)
            bytes |= (uint32_t)(uint8_t)table[4 * i + j] << (8 * j);
        words[i] = imm(U32, bytes);
    }
    for (int i = 0; i < UNPACKED; i++) {
        val of_eight = bit_and(p, w[i], 7);
        val low = prmt(p, words[0], words[1], of_eight),
            high = prmt(p, words[2], words[3], of_eight);
        val bytes = select(p, lt(p, w[i], 8), low, high);
        w[i] = mul(p, d, convert(p, F32, bfe(p, as(p, S32, bytes), 0, 8)));
    }
}

void unpack_IQ4_NL(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, IQ4_NL_QUANTS, first, w);
    scale_codes(p, load_half_as_f32(p, block, IQ4_NL_D), iq4_values, w);
}

/* The scale of sub-block j: a nibble of byte j / 2, and bits 2j and 2j + 1 of the upper ones. */
void unpack_IQ4_XS(ptx *p, val block, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5);
    load_nibbles(p, byte_behind(p, block, mul(p, j, 16)), IQ4_XS_QUANTS, bit_and(p, first, 31), w);
    val low = load_packed(p, U8, byte_behind(p, block, shr(p, j, 1)), IQ4_XS_SCALES_LOW);
    val high = load_packed(p, U16, block, IQ4_XS_SCALES_HIGH);
    low = bit_and(p, shr(p, low, mul(p, bit_and(p, j, 1), 4)), 15);
    high = bit_and(p, shr(p, high, mul(p, j, 2)), 3);
    val scale = sub(p, as(p, S32, bit_or(p, low, shl(p, high, 4))), 32);
    scale_codes(p, mul(p, load_half_as_f32(p, block, IQ4_XS_D), convert(p, F32, scale)), iq4_values,
                w);
}

/* 2^(e - 128), which is subnormal for e below 2. */
void unpack_MXFP4(ptx *p, val block, val first, val w[UNPACKED])
{
    load_nibbles(p, block, MXFP4_QUANTS, first, w);
    val e = load_packed(p, U8, block, MXFP4_E);
    val subnormal = shl(p, imm(U32, 0x00200000), e), normal = shl(p, sub(p, e, 1), 23);
    scale_codes(p, bits_as(p, F32, select(p, lt(p, e, 2), subnormal, normal)), fp4_values, w);
}

/* A scale is half of a ue4m3. The bits of one are an fp16's but for the bias, which is 15 there:
 * 2^8 is missing. */
void unpack_NVFP4(ptx *p, val block, val first, val w[UNPACKED])
{
    val s = shr(p, first, 4), upper = bfe(p, first, 3, 1);
    load_fields(p, byte_behind(p, block, mul(p, s, 8)), NVFP4_QUANTS, mul(p, upper, 4), 4, w);
    val code = load_packed(p, U8, byte_behind(p, block, s), NVFP4_SCALES);
    val bits = select(p, eq(p, code, 0x7f), imm(U32, 0), shl(p, bit_and(p, code, 0x7f), 7));
    val half = halves(p, bits).v[0];
    scale_codes(p, mul(p, convert(p, F32, half), 128.0f), fp4_values, w);
}
