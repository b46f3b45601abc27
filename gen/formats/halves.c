#include "gen/formats/tools.h"

#include <string.h>

/* The f16 of a whole number of at most 11 bits, or of its sixteenth part. */
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

/* 32-bit words from a place on that is a multiple of so many bytes, by as wide loads as that
 * allows; the offset in front of it counts. */
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

/* Bytes that are aligned to 2 alone lie across words; of the last of these the half that counts may
 * be all that there is. */
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
