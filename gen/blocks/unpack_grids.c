/* Formats whose indices stand for runs of weights: grids in src/grid.h, layouts in
 * src/ref/decode_iq.c. The grid is an array of the module, as it is packed there. */
#include "gen/blocks/bytes.h"
#include "gen/blocks/unpack.h"
#include "grid.h"

/* The values of entry index of a grid, as s32. */
static void load_run(ptx *p, const weight_grid *g, val index, val *values)
{
    uint32_t levels[2] = { 0 };
    for (unsigned i = 0; i < 8; i++)
        levels[i / 4] |= (uint32_t)(uint8_t)g->levels[i] << (8 * (i % 4));
    val grid = global_array(p, g->name, grid_notice, g->words, g->entries / 4);
    val codes = ld_const(p, U16, mad_wide(p, index, sizeof(uint16_t), grid), 0);
    for (unsigned i = 0; i < g->run; i++) {
        val code = bfe(p, codes, g->code_bits * i, g->code_bits);
        val byte = prmt(p, imm(U32, levels[0]), imm(U32, levels[1]), code);
        values[i] = bfe(p, as(p, S32, byte), 0, 8);
    }
}

/* The same as weights, with signs of bit first_sign on (set: minus). */
static void unpack_run(ptx *p, const weight_grid *g, val index, val signs, unsigned first_sign,
                       val scale, val *w)
{
    load_run(p, g, index, w);
    for (unsigned i = 0; i < g->run; i++) {
        val size = mul(p, scale, convert(p, F32, w[i]));
        w[i] = select(p, ne(p, bfe(p, signs, first_sign + i, 1), 0), neg(p, size), size);
    }
}

/* The eighth sign of a code of seven makes their number even. */
static val signs_of_code(ptx *p, val code)
{
    val parity = code;
    for (unsigned shift = 4; shift; shift /= 2)
        parity = bit_xor(p, parity, shr(p, parity, shift));
    return bit_or(p, code, shl(p, bit_and(p, parity, 1), 7));
}

/* d (2 s + 1) times a power of two. */
static val odd_scale(ptx *p, val d, val s, float unit)
{
    val scale = mul(p, d, convert(p, F32, add(p, shl(p, s, 1), 1)));
    return mul(p, scale, unit);
}

/* Four bits from bit shift on of the byte so many bytes behind the block. */
static val load_nibble(ptx *p, val block, val bytes, unsigned offset, val shift)
{
    return bit_and(p, shr(p, load_packed(p, U8, byte_behind(p, block, bytes), offset), shift), 15);
}

/* Scales of 16 weights, in nibbles. */
static val scale_of_sixteen(ptx *p, val block, unsigned offset, val first)
{
    return load_nibble(p, block, shr(p, first, 5), offset, mul(p, bfe(p, first, 4, 1), 4));
}

/* A run by its number is r, and j is that of 32 weights, of which it is number l. */
void unpack_IQ2_XXS(ptx *p, val block, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5), l = bfe(p, first, 3, 2);
    val group = byte_behind(p, block, mul(p, j, 8));
    val word = load_word_by_halves(p, group, IQ2_XXS_GROUPS + 4);
    val code = bit_and(p, shr(p, word, mul(p, l, 7)), 127);
    val index = load_packed(p, U8, byte_behind(p, group, l), IQ2_XXS_GROUPS);
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ2_XXS_D), shr(p, word, 28), 0.125f);
    unpack_run(p, &grid_iq2_xxs, index, signs_of_code(p, code), 0, scale, w);
}

void unpack_IQ2_XS(ptx *p, val block, val first, val w[UNPACKED])
{
    val r = shr(p, first, 3);
    val word = load_packed(p, U16, byte_behind(p, block, mul(p, r, 2)), IQ2_XS_INDICES);
    val s = scale_of_sixteen(p, block, IQ2_XS_SCALES, first);
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ2_XS_D), s, 0.125f);
    unpack_run(p, &grid_iq2_xs, bit_and(p, word, 511), signs_of_code(p, shr(p, word, 9)), 0, scale,
               w);
}

void unpack_IQ2_S(ptx *p, val block, val first, val w[UNPACKED])
{
    val r = shr(p, first, 3), at = byte_behind(p, block, r);
    val highs = load_packed(p, U8, byte_behind(p, block, shr(p, r, 2)), IQ2_S_INDICES_HIGH);
    val high = bit_and(p, shr(p, highs, mul(p, bit_and(p, r, 3), 2)), 3);
    val index = bit_or(p, load_packed(p, U8, at, IQ2_S_INDICES), shl(p, high, 8));
    val s = scale_of_sixteen(p, block, IQ2_S_SCALES, first);
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ2_S_D), s, 0.125f);
    unpack_run(p, &grid_iq2_s, index, load_packed(p, U8, at, IQ2_S_SIGNS), 0, scale, w);
}

/* Eight weights are two runs. */
void unpack_IQ3_XXS(ptx *p, val block, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5), l = bfe(p, first, 3, 2);
    val word = load_word_by_halves(p, byte_behind(p, block, mul(p, j, 4)), IQ3_XXS_SIGNS);
    val signs = signs_of_code(p, bit_and(p, shr(p, word, mul(p, l, 7)), 127));
    val at = byte_behind(p, block, shr(p, first, 2));
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ3_XXS_D), shr(p, word, 28), 0.25f);
    for (unsigned i = 0; i < 2; i++)
        unpack_run(p, &grid_iq3_xxs, load_packed(p, U8, at, IQ3_XXS_INDICES + i), signs, 4 * i,
                   scale, w + 4 * i);
}

void unpack_IQ3_S(ptx *p, val block, val first, val w[UNPACKED])
{
    val r = shr(p, first, 2), at = byte_behind(p, block, r);
    val highs = load_packed(p, U8, byte_behind(p, block, shr(p, r, 3)), IQ3_S_INDICES_HIGH);
    val signs = load_packed(p, U8, byte_behind(p, block, shr(p, first, 3)), IQ3_S_SIGNS);
    val s = load_nibble(p, block, shr(p, first, 6), IQ3_S_SCALES, mul(p, bfe(p, first, 5, 1), 4));
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ3_S_D), s, 1);
    highs = shr(p, highs, bit_and(p, r, 7));
    for (unsigned i = 0; i < 2; i++) {
        val high = shl(p, bfe(p, highs, i, 1), 8);
        unpack_run(p, &grid_iq3_s, bit_or(p, load_packed(p, U8, at, IQ3_S_INDICES + i), high),
                   signs, 4 * i, scale, w + 4 * i);
    }
}

/* A run of iq1 by the low eight bits of its index and a nibble: the upper three, and delta's
 * sign. */
static void unpack_ternary(ptx *p, val low, val upper, val scale, val w[UNPACKED])
{
    val index = bit_or(p, low, shl(p, bit_and(p, upper, 7), 8));
    val delta = select(p, ne(p, bit_and(p, upper, 8), 0), imm(F32, 0xbe000000),
                       imm(F32, 0x3e000000)); /* 1/8 */
    load_run(p, &grid_iq1, index, w);
    for (unsigned i = 0; i < UNPACKED; i++)
        w[i] = mul(p, scale, add(p, convert(p, F32, w[i]), delta));
}

void unpack_IQ1_S(ptx *p, val block, val first, val w[UNPACKED])
{
    val r = shr(p, first, 3), l = bit_and(p, r, 3);
    val at = byte_behind(p, block, mul(p, shr(p, first, 5), 2));
    val word = load_packed(p, U16, at, IQ1_S_INDICES_HIGH);
    val high = bit_and(p, shr(p, word, mul(p, l, 3)), 7), delta = shl(p, shr(p, word, 15), 3);
    val scale = odd_scale(p, load_half_as_f32(p, block, IQ1_S_D), bfe(p, word, 12, 3), 1);
    unpack_ternary(p, load_packed(p, U8, byte_behind(p, block, r), IQ1_S_INDICES),
                   bit_or(p, high, delta), scale, w);
}

/* Nibble k of d is the uppermost of word k. */
void unpack_IQ1_M(ptx *p, val block, val first, val w[UNPACKED])
{
    val r = shr(p, first, 3), d_bits = imm(U32, 0);
    for (unsigned k = 0; k < 4; k++) {
        val nibble = shr(p, load_packed(p, U16, block, IQ1_M_SCALES + 2 * k), 12);
        d_bits = bit_or(p, d_bits, shl(p, nibble, 4 * k));
    }
    val d = convert(p, F32, halves(p, d_bits).v[0]);
    val at = byte_behind(p, block, mul(p, shr(p, first, 6), 2));
    val word = load_packed(p, U16, at, IQ1_M_SCALES);
    val s = bit_and(p, shr(p, word, mul(p, bfe(p, first, 4, 2), 3)), 7);
    val upper =
        load_nibble(p, block, shr(p, r, 1), IQ1_M_INDICES_HIGH, mul(p, bit_and(p, r, 1), 4));
    unpack_ternary(p, load_packed(p, U8, byte_behind(p, block, r), IQ1_M_INDICES), upper,
                   odd_scale(p, d, s, 1), w);
}
