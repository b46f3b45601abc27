/* Formats whose indices stand for runs of weights: grids in src/kernel/grid.h, layouts in
 * src/ref/decode_iq.c. The grid is an array of the module, as it is packed there. */
#include "gen/common/bytes.h"
#include "gen/formats/unpack.h"
#include "kernel/grid.h"

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

/* The first weight: its number in the block, or that of one whose number is 16 half + known. */
typedef struct unpack_first {
    val number, half; /* half without a kind: there is none */
    unsigned known;
} unpack_first;

/* What follows from the number of the first weight: a part that a register has, if any, and one
 * that is known. */
typedef struct number {
    val part;
    unsigned known;
} number;

/* So many of the number's bits, from one on. Of a thread that has a half of every 32 weights bit 4
 * is that half and all others are known, so that they cost neither instructions nor registers. */
static number bits_from(ptx *p, unpack_first first, unsigned bit, unsigned count)
{
    enum { OF_HALF = 4 };
    if (!first.half.kind)
        return (number){ bfe(p, first.number, bit, count), 0 };
    bool has_half = bit <= OF_HALF && OF_HALF < bit + count;
    number n = { .known = first.known >> bit & ((1U << count) - 1) };
    if (has_half)
        n.part = mul(p, first.half, 1U << (OF_HALF - bit));
    return n;
}

static number number_from(ptx *p, unpack_first first, unsigned bit)
{
    enum { BITS = 8 }; /* of a number below 256 */
    if (!first.half.kind)
        return (number){ shr(p, first.number, bit), 0 };
    return bits_from(p, first, bit, BITS - bit);
}

static number times(ptx *p, number n, unsigned factor)
{
    return (number){ n.part.kind ? mul(p, n.part, factor) : n.part, n.known * factor };
}

static val value_of(ptx *p, number n)
{
    return n.part.kind ? add(p, n.part, n.known) : imm(U32, n.known);
}

/* Bytes of a block, so many behind its start. */
typedef struct place {
    val base;
    unsigned offset;
} place;

static place place_behind(ptx *p, place from, number n)
{
    return (place){ n.part.kind ? byte_behind(p, from.base, n.part) : from.base,
                    from.offset + n.known };
}

static val load_byte(ptx *p, place at, unsigned offset)
{
    return load_packed(p, U8, at.base, at.offset + offset);
}

static val load_half_word(ptx *p, place at, unsigned offset)
{
    return load_packed(p, U16, at.base, at.offset + offset);
}

static val load_word(ptx *p, place at, unsigned offset)
{
    return load_word_by_halves(p, at.base, at.offset + offset);
}

/* Four bits from bit shift on of a byte. */
static val load_nibble(ptx *p, place at, unsigned offset, number shift)
{
    return bit_and(p, shr(p, load_byte(p, at, offset), value_of(p, shift)), 15);
}

/* Scales of 16 weights, in nibbles. */
static val scale_of_sixteen(ptx *p, place block, unsigned offset, unpack_first first)
{
    place at = place_behind(p, block, number_from(p, first, 5));
    return load_nibble(p, at, offset, times(p, bits_from(p, first, 4, 1), 4));
}

/* A run by its number is r, and j is that of 32 weights, of which it is number l. */
static void unpack_iq2_xxs(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    number l = bits_from(p, first, 3, 2);
    place group = place_behind(p, block, times(p, number_from(p, first, 5), 8));
    val word = load_word(p, group, IQ2_XXS_GROUPS + 4);
    val code = bit_and(p, shr(p, word, value_of(p, times(p, l, 7))), 127);
    val index = load_byte(p, place_behind(p, group, l), IQ2_XXS_GROUPS);
    val d = load_half_as_f32(p, block.base, IQ2_XXS_D);
    unpack_run(p, &grid_iq2_xxs, index, signs_of_code(p, code), 0,
               odd_scale(p, d, shr(p, word, 28), 0.125f), w);
}

static void unpack_iq2_xs(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    number r = number_from(p, first, 3);
    val word = load_half_word(p, place_behind(p, block, times(p, r, 2)), IQ2_XS_INDICES);
    val s = scale_of_sixteen(p, block, IQ2_XS_SCALES, first);
    val scale = odd_scale(p, load_half_as_f32(p, block.base, IQ2_XS_D), s, 0.125f);
    unpack_run(p, &grid_iq2_xs, bit_and(p, word, 511), signs_of_code(p, shr(p, word, 9)), 0, scale,
               w);
}

static void unpack_iq2_s(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    place at = place_behind(p, block, number_from(p, first, 3));
    val highs = load_byte(p, place_behind(p, block, number_from(p, first, 5)), IQ2_S_INDICES_HIGH);
    val shift = value_of(p, times(p, bits_from(p, first, 3, 2), 2));
    val high = bit_and(p, shr(p, highs, shift), 3);
    val index = bit_or(p, load_byte(p, at, IQ2_S_INDICES), shl(p, high, 8));
    val s = scale_of_sixteen(p, block, IQ2_S_SCALES, first);
    val scale = odd_scale(p, load_half_as_f32(p, block.base, IQ2_S_D), s, 0.125f);
    unpack_run(p, &grid_iq2_s, index, load_byte(p, at, IQ2_S_SIGNS), 0, scale, w);
}

/* Eight weights are two runs. */
static void unpack_iq3_xxs(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    number j = number_from(p, first, 5), l = bits_from(p, first, 3, 2);
    val word = load_word(p, place_behind(p, block, times(p, j, 4)), IQ3_XXS_SIGNS);
    val signs = signs_of_code(p, bit_and(p, shr(p, word, value_of(p, times(p, l, 7))), 127));
    place at = place_behind(p, block, number_from(p, first, 2));
    val d = load_half_as_f32(p, block.base, IQ3_XXS_D);
    val scale = odd_scale(p, d, shr(p, word, 28), 0.25f);
    for (unsigned i = 0; i < 2; i++)
        unpack_run(p, &grid_iq3_xxs, load_byte(p, at, IQ3_XXS_INDICES + i), signs, 4 * i, scale,
                   w + 4 * i);
}

static void unpack_iq3_s(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    place at = place_behind(p, block, number_from(p, first, 2));
    val highs = load_byte(p, place_behind(p, block, number_from(p, first, 5)), IQ3_S_INDICES_HIGH);
    val signs = load_byte(p, place_behind(p, block, number_from(p, first, 3)), IQ3_S_SIGNS);
    place of_scale = place_behind(p, block, number_from(p, first, 6));
    val s = load_nibble(p, of_scale, IQ3_S_SCALES, times(p, bits_from(p, first, 5, 1), 4));
    val scale = odd_scale(p, load_half_as_f32(p, block.base, IQ3_S_D), s, 1);
    highs = shr(p, highs, value_of(p, bits_from(p, first, 2, 3)));
    for (unsigned i = 0; i < 2; i++) {
        val high = shl(p, bfe(p, highs, i, 1), 8);
        unpack_run(p, &grid_iq3_s, bit_or(p, load_byte(p, at, IQ3_S_INDICES + i), high), signs,
                   4 * i, scale, w + 4 * i);
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

static void unpack_iq1_s(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    number l = bits_from(p, first, 3, 2);
    place at = place_behind(p, block, times(p, number_from(p, first, 5), 2));
    val word = load_half_word(p, at, IQ1_S_INDICES_HIGH);
    val high = bit_and(p, shr(p, word, value_of(p, times(p, l, 3))), 7);
    val delta = shl(p, shr(p, word, 15), 3);
    val d = load_half_as_f32(p, block.base, IQ1_S_D);
    val low = load_byte(p, place_behind(p, block, number_from(p, first, 3)), IQ1_S_INDICES);
    unpack_ternary(p, low, bit_or(p, high, delta), odd_scale(p, d, bfe(p, word, 12, 3), 1), w);
}

/* Nibble k of d is the uppermost of word k. */
static void unpack_iq1_m(ptx *p, place block, unpack_first first, val w[UNPACKED])
{
    val d_bits = imm(U32, 0);
    for (unsigned k = 0; k < 4; k++) {
        val nibble = shr(p, load_half_word(p, block, IQ1_M_SCALES + 2 * k), 12);
        d_bits = bit_or(p, d_bits, shl(p, nibble, 4 * k));
    }
    val d = convert(p, F32, halves(p, d_bits).v[0]);
    place at = place_behind(p, block, times(p, number_from(p, first, 6), 2));
    val word = load_half_word(p, at, IQ1_M_SCALES);
    val s = bit_and(p, shr(p, word, value_of(p, times(p, bits_from(p, first, 4, 2), 3))), 7);
    val upper = load_nibble(p, place_behind(p, block, number_from(p, first, 4)), IQ1_M_INDICES_HIGH,
                            times(p, bits_from(p, first, 3, 1), 4));
    val low = load_byte(p, place_behind(p, block, number_from(p, first, 3)), IQ1_M_INDICES);
    unpack_ternary(p, low, upper, odd_scale(p, d, s, 1), w);
}

typedef void unpack_grid(ptx *p, place block, unpack_first first, val w[UNPACKED]);

static unpack_grid *const grids[FORMAT_COUNT] = {
    [FORMAT_IQ2_XXS] = unpack_iq2_xxs, [FORMAT_IQ2_XS] = unpack_iq2_xs,
    [FORMAT_IQ2_S] = unpack_iq2_s,     [FORMAT_IQ3_XXS] = unpack_iq3_xxs,
    [FORMAT_IQ3_S] = unpack_iq3_s,     [FORMAT_IQ1_S] = unpack_iq1_s,
    [FORMAT_IQ1_M] = unpack_iq1_m,
};

#define UNPACK_GRID(id)                                                                   \
    void unpack_##id(ptx *p, val block, val first, val w[UNPACKED])                       \
    {                                                                                     \
        grids[FORMAT_##id](p, (place){ block, 0 }, (unpack_first){ .number = first }, w); \
    }
UNPACK_GRID(IQ2_XXS)
UNPACK_GRID(IQ2_XS)
UNPACK_GRID(IQ2_S)
UNPACK_GRID(IQ3_XXS)
UNPACK_GRID(IQ3_S)
UNPACK_GRID(IQ1_S)
UNPACK_GRID(IQ1_M)

void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED])
{
    enum { HALF = 16 };
    if (grids[f])
        grids[f](p, (place){ block, 0 }, (unpack_first){ .half = half, .known = known }, w);
    else
        unpack_block(p, f, block, mad(p, half, HALF, imm(U32, known)), w);
}
