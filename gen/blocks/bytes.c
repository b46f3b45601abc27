#include "gen/blocks/bytes.h"

val ptx_load_packed(ptx *p, type t, val base, int64_t offset)
{
    return base.type == U32 ? ld_shared(p, t, base, offset) : ld_const(p, t, base, offset);
}

val ptx_load_word_by_halves(ptx *p, val base, int64_t offset)
{
    enum { LOW_HALVES = 0x5410 };
    return prmt(p, load_packed(p, U16, base, offset), load_packed(p, U16, base, offset + 2),
                LOW_HALVES);
}

val byte_of(ptx *p, val word, unsigned n)
{
    if (n == 3)
        return shr(p, word, 24);
    return n == 0 ? bit_and(p, word, 0xff) : bfe(p, word, 8 * n, 8);
}

val byte_as_f32(ptx *p, val word, unsigned n)
{
    return convert(p, F32, byte_of(p, word, n));
}

val signed_byte_as_f32(ptx *p, val word, unsigned n)
{
    return convert(p, F32, bfe(p, as(p, S32, word), 8 * n, 8));
}

void scaled_signed_bytes(ptx *p, const val *words, unsigned count, val scale, val *values)
{
    enum { BYTE_INTO_MANTISSA = 0x7404 };
    val offset = mul(p, scale, -32896.0f); /* 2^15 + 2^7: with an f16, 20 bits */
    for (unsigned i = 0; i < count; i++) {
        val flipped = bit_xor(p, words[i], IN_EACH_BYTE(0x80));
        for (unsigned j = 0; j < 4; j++) {
            val f = prmt(p, flipped, imm(U32, 0x47000000), BYTE_INTO_MANTISSA | j << 4);
            values[4 * i + j] = fma(p, bits_as(p, F32, f), scale, offset);
        }
    }
}

void fractions_from_one(ptx *p, val bytes, val fraction[4])
{
    enum { BYTE_INTO_MANTISSA = 0x7044 };
    for (unsigned i = 0; i < 4; i++)
        fraction[i] =
            bits_as(p, F32, prmt(p, bytes, imm(U32, 0x3f000000), BYTE_INTO_MANTISSA | i << 8));
}

void centred_fractions(ptx *p, val bytes, val fraction[4])
{
    fractions_from_one(p, bytes, fraction);
    for (unsigned i = 0; i < 4; i++)
        fraction[i] = sub(p, fraction[i], 1.5f);
}
