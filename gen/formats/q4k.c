/* The packing of the scales, by ggml's get_scale_min_k4: with s[0..11] the 12 bytes,
 *
 *   j < 4   scale = s[j] & 63
 *           min   = s[j + 4] & 63
 *   j >= 4  scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4
 *           min   = (s[j + 4] >> 4) | (s[j] >> 6) << 4
 *
 * Sub-blocks 2c and 2c + 1 lie in neighbouring bytes, in the half c & 1 of each word: s[0..3] is
 * word 0, s[4..7] word 1, s[8..11] word 2.
 */
#include "gen/formats/q4k.h"

#include "gen/common/bytes.h"

q4k_chunk q4k_chunk_new(ptx *p, val chunk)
{
    enum { LOW_HALVES = 0x5410, HIGH_HALVES = 0x7632 };
    val upper_half = ne(p, bit_and(p, chunk, 1), 0), late = ge(p, chunk, 2);
    return (q4k_chunk){
        .selector = select(p, upper_half, imm(U32, HIGH_HALVES), imm(U32, LOW_HALVES)),
        .shift = select(p, late, imm(U32, 2), imm(U32, 0)),
        .mask_six = select(p, late, imm(U32, 0x30303030), imm(U32, 0x3f3f3f3f)),
        .mask_last = select(p, late, imm(U32, 0x0f0f0f0f), imm(U32, 0)),
    };
}

q4k_header q4k_header_at(ptx *p, val row, int64_t offset, const q4k_chunk *c)
{
    return q4k_header_of(p, ld_const_v4(p, U32, row, offset), c);
}

q4k_header q4k_header_of(ptx *p, val4 word, const q4k_chunk *c)
{
    val2 d = halves(p, word.v[0]);

    val first = prmt(p, word.v[1], word.v[2], c->selector);
    val upper = bit_and(p, shr(p, first, c->shift), c->mask_six);
    /* Both halves hold the same two bytes; the mins' are the high nibbles. */
    val last = prmt(p, word.v[3], shr(p, word.v[3], 4), c->selector);
    return (q4k_header){
        .d = convert(p, F32, d.v[0]),
        .dmin = convert(p, F32, d.v[1]),
        .packed = lop3(p, last, c->mask_last, upper, AND_OR),
    };
}
