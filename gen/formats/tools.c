#include "gen/formats/tools.h"

#include <string.h>

uint32_t word_of_bytes(const int8_t bytes[4], int offset)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)(uint8_t)(bytes[i] + offset) << (8 * i);
    return word;
}

val byte_at(ptx *p, val block, val bytes)
{
    return add(p, block, block.type == U32 ? bytes : convert(p, U64, bytes));
}

val load_half_as_f32(ptx *p, val block, unsigned offset)
{
    return convert(p, F32, load_packed(p, F16, block, offset));
}

void load_fields(ptx *p, val at, unsigned offset, val shift, unsigned bits, val fields[UNPACKED])
{
    for (unsigned i = 0; i < UNPACKED; i++)
        fields[i] = bit_and(p, shr(p, load_packed(p, U8, at, offset + i), shift), (1u << bits) - 1);
}

void load_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    load_fields(p, byte_at(p, block, bit_and(p, first, 15)), offset, mul(p, shr(p, first, 4), 4), 4,
                w);
}

void load_two_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val byte = mad(p, shr(p, first, 7), 32, bit_and(p, first, 31));
    load_fields(p, byte_at(p, block, byte), offset, mul(p, bfe(p, first, 5, 2), 2), 2, w);
}

void add_one_bits(ptx *p, val block, unsigned offset, val first, unsigned place, val w[UNPACKED])
{
    val bits[UNPACKED];
    load_fields(p, byte_at(p, block, bit_and(p, first, 31)), offset, shr(p, first, 5), 1, bits);
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bit_or(p, w[i], shl(p, bits[i], place));
}

void scale_integers(ptx *p, val d, int offset, val w[UNPACKED])
{
    for (int i = 0; i < UNPACKED; i++)
        w[i] = mul(p, d, convert(p, F32, offset ? add(p, as(p, S32, w[i]), offset) : w[i]));
}

void scale_and_add(ptx *p, val d, val m, val w[UNPACKED])
{
    for (int i = 0; i < UNPACKED; i++)
        w[i] = add(p, mul(p, d, convert(p, F32, w[i])), m);
}

/* Returns the f16 bits of an integer of at most 11 bits, or of a sixteenth of it. */
static uint32_t half_bits(int number)
{
    uint32_t sign = number < 0 ? 0x8000 : 0, size = (uint32_t)(number < 0 ? -number : number);
    unsigned exponent = 25;
    for (; size < 1024; size *= 2)
        exponent--;
    return sign | exponent << 10 | (size & 1023);
}

val pair_centred(ptx *p, val pair, unsigned up, int center)
{
    enum { BIAS = 15, FRACTION_BITS = 10 };
    val offset = PAIR_OF(half_bits(-(1024 >> up) - center));
    if (!up)
        return add_pair(p, pair, offset);
    return fma_pair(p, pair, PAIR_OF((BIAS - up) << FRACTION_BITS), offset);
}

val both_halves(ptx *p, val number)
{
    return pack_halves(p, number, number);
}

/* Loads shared words by the widest loads that the offset and alignment of `at` (bytes) allow. */
static void load_aligned(ptx *p, val at, int64_t offset, unsigned aligned, unsigned count,
                         val *words)
{
    for (unsigned i = 0; i < count;) {
        unsigned width = count - i >= 4 ? 4 : count - i >= 2 ? 2 : 1;
        while (width > 1 && (aligned % (4 * width) || (offset + 4 * i) % (4 * width)))
            width /= 2;
        if (width == 4) {
            val4 four = ld_shared_v4(p, U32, at, offset + 4 * i);
            memcpy(words + i, four.v, sizeof four.v);
        } else if (width == 2) {
            val2 two = ld_shared_v2(p, U32, at, offset + 4 * i);
            memcpy(words + i, two.v, sizeof two.v);
        } else {
            words[i] = ld_shared(p, U32, at, offset + 4 * i);
        }
        i += width;
    }
}

/* Bytes aligned to 2 straddle words. The memory may end at the low half of the last word. */
void gemm_load_words(ptx *p, const gemm_row *row, int64_t offset, val words[GEMM_OWN_WORDS])
{
    enum { IN_PLACE = 0x3210, ACROSS = 0x5432, WORD = 4, LAST_HALF = 4 * GEMM_OWN_WORDS - 2 };
    val at = mad(p, row->half, GEMM_OWN, row->at);
    bool known = row->aligned >= WORD;
    if (known && offset % WORD == 0) {
        load_aligned(p, at, offset, row->aligned, GEMM_OWN_WORDS, words);
        return;
    }
    val selector = imm(U32, ACROSS), lines[GEMM_OWN_WORDS + 1], start = at;
    int64_t before = offset % WORD;
    if (!known) {
        start = before ? add(p, at, (unsigned)before) : at;
        selector = mad(p, bfe(p, start, 1, 1), ACROSS - IN_PLACE, imm(U32, IN_PLACE));
        start = bit_and(p, start, imm(U32, 0xfffffffc));
    }
    load_aligned(p, start, offset - before, known ? row->aligned : WORD, GEMM_OWN_WORDS, lines);
    lines[GEMM_OWN_WORDS] = ld_shared(p, U16, at, offset + LAST_HALF);
    for (unsigned i = 0; i < GEMM_OWN_WORDS; i++)
        words[i] = prmt(p, lines[i], lines[i + 1], selector);
}

enum { LINE = STREAM_LANE_BYTES };

val stream_piece_of_sixteen(ptx *p, val part)
{
    return mul(p, part, LINE);
}

val part_half(ptx *p, val part)
{
    return shr(p, part, 1);
}

val part_sixteen(ptx *p, val part)
{
    return bit_and(p, part, 1);
}

val stream_first_line(ptx *p, const stream_format *f, val piece)
{
    if (f->at_end)
        piece = sub(p, piece, 1);
    val first = bit_and(p, piece, imm(U64, -LINE));
    return f->swaps ? mad_wide(p, bit_and(p, lane_id(p), 1), LINE, first) : first;
}

val stream_other_line(ptx *p, val line)
{
    val odd = convert(p, U64, bit_and(p, lane_id(p), 1));
    return sub(p, add(p, line, LINE), mul(p, odd, 2 * LINE));
}

/* Returns a rotation by `bytes`: predicates for 8 and 4 bytes, a prmt selector for fewer. */
static stream_shift rotation_by(ptx *p, val bytes, unsigned alignment)
{
    enum { AS_IS = 0x3210, ONE_BYTE = 0x1111 };
    stream_shift by = { 0 };
    if (alignment <= 8)
        by.by_eight = ne(p, bit_and(p, bytes, 8), 0);
    if (alignment <= 4)
        by.by_four = ne(p, bit_and(p, bytes, 4), 0);
    if (alignment <= 2)
        by.by_few = mad(p, bit_and(p, bytes, 3), ONE_BYTE, imm(U32, AS_IS));
    return by;
}

static void rotate_words(ptx *p, val by, unsigned count, val words[STREAM_WORDS])
{
    val old[STREAM_WORDS];
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        old[i] = words[i];
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        words[i] = select(p, by, old[(i + count) % STREAM_WORDS], old[i]);
}

static void rotate_piece(ptx *p, const stream_shift *by, val words[STREAM_WORDS])
{
    if (by->by_eight.kind)
        rotate_words(p, by->by_eight, 2, words);
    if (by->by_four.kind)
        rotate_words(p, by->by_four, 1, words);
    if (by->by_few.kind) {
        val first = words[0];
        for (unsigned i = 0; i < STREAM_WORDS; i++)
            words[i] = prmt(p, words[i], i + 1 < STREAM_WORDS ? words[i + 1] : first, by->by_few);
    }
}

void stream_rotate(ptx *p, val bytes, unsigned alignment, val words[STREAM_WORDS])
{
    stream_shift by = rotation_by(p, bytes, alignment);
    rotate_piece(p, &by, words);
}

/* A rotated piece starts with the second line's bytes: 0 to 15 of them, with at_end 1 to 16. */
stream_shift stream_shift_new(ptx *p, const stream_format *f, val start, unsigned alignment,
                              val back, unsigned back_alignment)
{
    enum { ONE_NIBBLE = 4, WORD_NIBBLES = 16, OF_FIRST = 0x3210, TO_SECOND = 0x4444 };
    stream_shift s = rotation_by(p, back, back_alignment);
    val odd = bit_and(p, lane_id(p), 1);
    val count = f->at_end ? add(p, bit_and(p, sub(p, start, 1), LINE - 1), 1) : start;
    if (alignment >= 4) {
        unsigned whole = alignment / 4; /* words that come from the same line */
        for (unsigned i = 0; i < STREAM_WORDS; i++) {
            unsigned bytes = 4 * (i / whole * whole);
            if (f->at_end ? bytes == 0 : bytes + alignment == LINE)
                s.second[i] = !f->swaps ? imm(PRED, f->at_end) : eq(p, odd, f->at_end ? 0u : 1u);
            else
                s.second[i] =
                    f->swaps ? bit_xor(p, gt(p, count, bytes), eq(p, odd, 1)) : gt(p, count, bytes);
        }
        return s;
    }
    /* One nibble per byte: all ones where the byte comes from the second line. */
    val nibbles = sub(p, shl(p, imm(U64, 1), mul(p, count, ONE_NIBBLE)), 1);
    for (unsigned i = 0; i < STREAM_WORDS; i++) {
        val of_word = convert(p, U32, shr(p, nibbles, WORD_NIBBLES * i));
        s.selector[i] = lop3(p, of_word, imm(U32, TO_SECOND), imm(U32, OF_FIRST), AND_OR);
        if (f->swaps)
            s.selector[i] = bit_xor(p, s.selector[i], mul(p, odd, TO_SECOND));
    }
    return s;
}

void stream_join(ptx *p, const stream_shift *shift, const val *lines, val piece[STREAM_WORDS])
{
    for (unsigned i = 0; i < STREAM_WORDS; i++) {
        val first = lines[i], second = lines[STREAM_WORDS + i];
        if (shift->selector[i].kind)
            piece[i] = prmt(p, first, second, shift->selector[i]);
        else
            piece[i] = select(p, shift->second[i], second, first);
    }
    rotate_piece(p, shift, piece);
}
