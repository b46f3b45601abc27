/* Sixteen bytes at any address, read as aligned lines: see stream.h. */
#include "gen/formats/tools.h"

enum { LINE = STREAM_LANE_BYTES };

val stream_piece_of_sixteen(ptx *p, val part)
{
    return mul(p, part, LINE);
}

val stream_first_line(ptx *p, const stream_format *f, val piece)
{
    if (f->at_end)
        piece = sub(p, piece, 1);
    return bit_and(p, piece, imm(U64, -LINE));
}

/* What turning takes: by 8 and by 4 bytes where a predicate holds, by a selector's bytes. */
static stream_shift turning(ptx *p, val bytes, unsigned alignment)
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

static void turn_words(ptx *p, val by, unsigned count, val words[STREAM_WORDS])
{
    val old[STREAM_WORDS];
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        old[i] = words[i];
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        words[i] = select(p, by, old[(i + count) % STREAM_WORDS], old[i]);
}

static void turn(ptx *p, const stream_shift *by, val words[STREAM_WORDS])
{
    if (by->by_eight.kind)
        turn_words(p, by->by_eight, 2, words);
    if (by->by_four.kind)
        turn_words(p, by->by_four, 1, words);
    if (by->by_few.kind) {
        val first = words[0];
        for (unsigned i = 0; i < STREAM_WORDS; i++)
            words[i] = prmt(p, words[i], i + 1 < STREAM_WORDS ? words[i + 1] : first, by->by_few);
    }
}

void stream_turn(ptx *p, val bytes, unsigned alignment, val words[STREAM_WORDS])
{
    stream_shift by = turning(p, bytes, alignment);
    turn(p, &by, words);
}

/* The second line's bytes are the first ones of the turned piece, 0 to 15 of them, or 1 to 16. */
stream_shift stream_shift_new(ptx *p, const stream_format *f, val start, unsigned alignment,
                              val back, unsigned back_alignment)
{
    enum { ONE_NIBBLE = 4, WORD_NIBBLES = 16, OF_FIRST = 0x3210, TO_SECOND = 0x4444 };
    stream_shift s = turning(p, back, back_alignment);
    val count = f->at_end ? add(p, bit_and(p, sub(p, start, 1), LINE - 1), 1) : start;
    if (alignment >= 4) {
        unsigned whole = alignment / 4; /* words that are one line's together */
        for (unsigned i = 0; i < STREAM_WORDS; i++) {
            unsigned bytes = 4 * (i / whole * whole);
            if (f->at_end ? bytes == 0 : bytes + alignment == LINE)
                s.second[i] = imm(PRED, f->at_end);
            else
                s.second[i] = gt(p, count, bytes);
        }
        return s;
    }
    /* A nibble a byte: all ones where it is the second line's. */
    val nibbles = sub(p, shl(p, imm(U64, 1), mul(p, count, ONE_NIBBLE)), 1);
    for (unsigned i = 0; i < STREAM_WORDS; i++) {
        val of_word = convert(p, U32, shr(p, nibbles, WORD_NIBBLES * i));
        s.selector[i] = lop3(p, of_word, imm(U32, TO_SECOND), imm(U32, OF_FIRST), AND_OR);
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
    turn(p, shift, piece);
}
