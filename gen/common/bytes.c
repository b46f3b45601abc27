#include "gen/common/bytes.h"

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

val byte_as_f32(ptx *p, val word, unsigned n)
{
    if (n == 3)
        return convert(p, F32, shr(p, word, 24));
    return convert(p, F32, n ? bfe(p, word, 8 * n, 8) : bit_and(p, word, 0xff));
}

val signed_byte_as_f32(ptx *p, val word, unsigned n)
{
    return convert(p, F32, bfe(p, as(p, S32, word), 8 * n, 8));
}

/* An e5m2 is the upper byte of an f16. */
val2 e5m2_as_halves(ptx *p, val word)
{
    enum { LOW_BYTES = 0x1404, HIGH_BYTES = 0x3424 };
    val zero = imm(U32, 0);
    return (val2){ { prmt(p, word, zero, LOW_BYTES), prmt(p, word, zero, HIGH_BYTES) } };
}

void e5m2_as_f32(ptx *p, val word, val values[4])
{
    val2 pairs = e5m2_as_halves(p, word);
    for (unsigned i = 0; i < 4; i++)
        values[i] = convert(p, F32, halves(p, pairs.v[i / 2]).v[i % 2]);
}

/* Places each byte's exponent and mantissa in the f16 fields. This gives 2^-8 of the value, for
 * subnormals too. The largest magnitude is NaN: adding 1 to it carries into the exponent's top bit,
 * and the other exponent bits are already set. */
void e4m3_as_f32(ptx *p, val word, val values[4])
{
    val2 pairs = e5m2_as_halves(p, word);
    for (unsigned i = 0; i < 2; i++) {
        val magnitude = bit_and(p, shr(p, pairs.v[i], 1), 0x3f803f80);
        val carried = add(p, magnitude, 0x00800080);
        val half = lop3(p, pairs.v[i], imm(U32, 0x80008000), magnitude, AND_OR);
        pairs.v[i] = lop3(p, carried, imm(U32, 0x40004000), half, AND_OR);
    }
    for (unsigned i = 0; i < 4; i++)
        values[i] = mul(p, convert(p, F32, halves(p, pairs.v[i / 2]).v[i % 2]), 256.0f);
}

void scaled_signed_bytes(ptx *p, const val *words, unsigned count, val scale, val *values)
{
    enum { BYTE_INTO_MANTISSA = 0x7404 };
    val offset = mul(p, scale, -32896.0f); /* 2^15 + 2^7 */
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
