#include "gen/formats/grid.h"

enum { RUN_OF_EIGHT = 8, POSITIONS = 0x3210, NEGATIVE = 4 };

val grid_levels(const weight_grid *g, int factor, int offset)
{
    int8_t levels[4];
    for (unsigned i = 0; i < 4; i++)
        levels[i] = (int8_t)(g->levels[i] * factor);
    return imm(U32, word_of_bytes(levels, offset));
}

/* Moves bit fields of a word apart, one step: 2 x 8 bits, 4 x 4, 8 x 2 and so on. */
static val spread(ptx *p, val word, unsigned shift, uint32_t mask)
{
    return bit_and(p, bit_or(p, word, shl(p, word, shift)), mask);
}

/* Spreads eight two-bit codes, one per nibble. */
static val eight_codes(ptx *p, val codes)
{
    val apart = spread(p, codes, 8, 0x00ff00ff);
    apart = spread(p, apart, 4, 0x0f0f0f0f);
    return spread(p, apart, 2, 0x33333333);
}

/* Spreads four three-bit codes to a prmt selector and looks up their values. */
static val four_values(ptx *p, const weight_grid *g, val codes)
{
    val apart = bit_or(p, bit_and(p, codes, 0x003f), shl(p, bit_and(p, codes, 0x0fc0), 2));
    apart = bit_or(p, bit_and(p, apart, 0x0707), shl(p, bit_and(p, apart, 0x3838), 1));
    return prmt(p, imm(U32, word_of_bytes(g->levels, 0)), imm(U32, word_of_bytes(g->levels + 4, 0)),
                apart);
}

/* Returns a sign word for a code of seven or eight signs, one nibble per sign. */
static val sign_word(ptx *p, const weight_grid *g, unsigned signs, val code)
{
    if (signs == SIGN_CODES)
        code = grid_signs_of_code(p, code);
    val apart = spread(p, code, 12, 0x000f000f);
    apart = spread(p, apart, 6, 0x03030303);
    apart = mul(p, spread(p, apart, 3, 0x11111111), imm(U32, NEGATIVE));
    return g->run == RUN_OF_EIGHT ? apart : bit_or(p, apart, POSITIONS * 0x10001);
}

void grid_stage(ptx *p, const stream_format *f, val at)
{
    const weight_grid *g = f->grid;
    unsigned signs = f->signs;
    val codes = global_array(p, g->name, grid_notice, g->words, g->entries / 4);
    PTX_FOR (p, entry, tid_x(p), g->entries, ptx_block(p)) {
        val loaded = ld_const(p, U16, mad_wide(p, entry, sizeof(uint16_t), codes), 0);
        val word = g->run == RUN_OF_EIGHT ? eight_codes(p, loaded) : four_values(p, g, loaded);
        st_shared(p, U32, mad(p, entry, imm(U32, GRID_WORD), at), 0, word);
    }
    if (signs)
        PTX_FOR (p, code, tid_x(p), signs, ptx_block(p))
            st_shared(p, U32, mad(p, code, imm(U32, GRID_WORD), at), g->entries * GRID_WORD,
                      sign_word(p, g, signs, code));
    if (f->levels.factor)
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_shared(p, U32, at, (g->entries + signs) * GRID_WORD,
                      grid_levels(g, f->levels.factor, f->levels.offset));
}

void grid_lane_new(ptx *p, stream_lane *lane)
{
    lane->constants[GRID_LANE_LEVELS] =
        ld_shared(p, U32, lane->table, lane->table_bytes - GRID_LEVELS);
}

/* A whole byte is extracted by one prmt. */
val grid_field(ptx *p, val word, unsigned first, unsigned bits)
{
    enum { BYTE_AND_ZEROS = 0x4440, BYTE = 8, WORD = 32 };
    if (bits == BYTE && first % BYTE == 0)
        return prmt(p, word, imm(U32, 0), BYTE_AND_ZEROS | first / BYTE);
    if (first)
        word = shr(p, word, first);
    return first + bits == WORD ? word : bit_and(p, word, (1u << bits) - 1);
}

static val moved_bits(ptx *p, val word, unsigned from, unsigned to)
{
    return from > to ? shr(p, word, from - to) : from < to ? shl(p, word, to - from) : word;
}

val grid_index(ptx *p, val low, unsigned byte, val high, unsigned first, unsigned bits)
{
    val upper = moved_bits(p, high, first, 8);
    return lop3(p, upper, imm(U32, ((1u << bits) - 1) << 8), grid_field(p, low, 8 * byte, 8),
                AND_OR);
}

val grid_look_up(ptx *p, const stream_lane *lane, val index, unsigned table)
{
    return ld_shared(p, U32, add(p, lane->table, shl(p, index, 2)), table);
}

void grid_select(ptx *p, val selector, val levels, val others, val q[2])
{
    q[0] = as(p, S32, prmt(p, levels, others, selector));
    q[1] = as(p, S32, prmt(p, levels, others, shr(p, selector, 16)));
}

/* Negates four bytes of 1 to 127: 0x01010100 - w is ~w + 0x01010101, and no byte of ~w is 255. */
void grid_negate(ptx *p, val first, val second, val signs, val q[2])
{
    val zeros = imm(U32, 0x01010100);
    q[0] = as(p, S32, prmt(p, first, sub(p, zeros, first), signs));
    q[1] = as(p, S32, prmt(p, second, sub(p, zeros, second), shr(p, signs, 16)));
}

/* Puts s and a one bit into the top mantissa bits of a power of two, then subtracts the power. */
val grid_scale(ptx *p, val word, unsigned first, unsigned bits, unsigned shift)
{
    enum { MANTISSA = 23, BIAS = 127 };
    unsigned to = MANTISSA - bits;
    uint32_t power = (uint32_t)(BIAS + bits + 1 - shift) << MANTISSA;
    val s = moved_bits(p, word, first, to);
    val number =
        lop3(p, s, imm(U32, ((1u << bits) - 1) << to), imm(U32, power | 1u << (to - 1)), AND_OR);
    return sub(p, bits_as(p, F32, number), imm(F32, power));
}

enum { FIRST, SECOND };   /* pointers */
enum { BY_FOUR, BY_TWO }; /* constants */

void grid_eight_new(ptx *p, stream_row *row, unsigned offset)
{
    enum { EIGHT = 8, LAST_PAIR = 6, AS_IS = 0x3210, UPPER_HALF_FIRST = 0x5432 };
    val first = add(p, mad_wide(p, row->lane->part, EIGHT, row->block), offset);
    row->at[FIRST] = bit_and(p, first, imm(U64, -EIGHT));
    row->at[SECOND] = bit_and(p, add(p, first, LAST_PAIR), imm(U64, -EIGHT));
    val start = convert(p, U32, first);
    row->constants[BY_FOUR] = ne(p, bit_and(p, start, 4), 0);
    row->constants[BY_TWO] =
        select(p, ne(p, bit_and(p, start, 2), 0), imm(U32, UPPER_HALF_FIRST), imm(U32, AS_IS));
}

void grid_eight_join(ptx *p, const stream_row *row, const val words[EIGHT_LOADED], val eight[2])
{
    val w[3];
    for (unsigned i = 0; i < 3; i++)
        w[i] = select(p, row->constants[BY_FOUR], words[i + 1], words[i]);
    for (unsigned i = 0; i < 2; i++)
        eight[i] = prmt(p, w[i], w[i + 1], row->constants[BY_TWO]);
}

void grid_load_run(ptx *p, const weight_grid *g, val index, val *values)
{
    val low = imm(U32, word_of_bytes(g->levels, 0)),
        high = imm(U32, word_of_bytes(g->levels + 4, 0));
    val grid = global_array(p, g->name, grid_notice, g->words, g->entries / 4);
    val codes = ld_const(p, U16, mad_wide(p, index, sizeof(uint16_t), grid), 0);
    for (unsigned i = 0; i < g->run; i++) {
        val code = bfe(p, codes, g->code_bits * i, g->code_bits);
        val byte = prmt(p, low, high, code);
        values[i] = bfe(p, as(p, S32, byte), 0, 8);
    }
}

void grid_unpack_run(ptx *p, const weight_grid *g, val index, val signs, unsigned first_sign,
                     val scale, val *w)
{
    grid_load_run(p, g, index, w);
    for (unsigned i = 0; i < g->run; i++) {
        val size = mul(p, scale, convert(p, F32, w[i]));
        w[i] = select(p, ne(p, bfe(p, signs, first_sign + i, 1), 0), neg(p, size), size);
    }
}

val grid_signs_of_code(ptx *p, val code)
{
    val parity = code;
    for (unsigned shift = 4; shift; shift /= 2)
        parity = bit_xor(p, parity, shr(p, parity, shift));
    return bit_or(p, code, shl(p, bit_and(p, parity, 1), 7));
}

val grid_odd_scale(ptx *p, val d, val s, float unit)
{
    val scale = mul(p, d, convert(p, F32, add(p, shl(p, s, 1), 1)));
    return mul(p, scale, unit);
}

grid_number grid_bits(ptx *p, unpack_first first, unsigned bit, unsigned count)
{
    enum { OF_HALF = 4 };
    if (!first.half.kind)
        return (grid_number){ bfe(p, first.number, bit, count), 0 };
    bool has_half = bit <= OF_HALF && OF_HALF < bit + count;
    grid_number n = { .known = first.known >> bit & ((1U << count) - 1) };
    if (has_half)
        n.part = mul(p, first.half, 1U << (OF_HALF - bit));
    return n;
}

grid_number grid_bits_above(ptx *p, unpack_first first, unsigned bit)
{
    enum { BITS = 8 }; /* bits of an index below 256 */
    if (!first.half.kind)
        return (grid_number){ shr(p, first.number, bit), 0 };
    return grid_bits(p, first, bit, BITS - bit);
}

grid_number grid_times(ptx *p, grid_number n, unsigned factor)
{
    return (grid_number){ n.part.kind ? mul(p, n.part, factor) : n.part, n.known * factor };
}

val grid_value(ptx *p, grid_number n)
{
    return n.part.kind ? add(p, n.part, n.known) : imm(U32, n.known);
}

block_bytes grid_at(ptx *p, block_bytes from, grid_number n)
{
    return (block_bytes){ n.part.kind ? byte_at(p, from.base, n.part) : from.base,
                          from.offset + n.known };
}

val grid_load(ptx *p, type t, block_bytes at, unsigned offset)
{
    return t == U32 ? load_word_by_halves(p, at.base, at.offset + offset)
                    : load_packed(p, t, at.base, at.offset + offset);
}

val grid_byte_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit)
{
    return grid_load(p, U8, grid_at(p, block, grid_bits_above(p, first, bit)), offset);
}

val grid_nibble_of(ptx *p, block_bytes block, unsigned offset, unpack_first first, unsigned bit)
{
    val byte = grid_byte_of(p, block, offset, first, bit + 1);
    return bit_and(p, shr(p, byte, grid_value(p, grid_times(p, grid_bits(p, first, bit, 1), 4))),
                   15);
}
