#include "gen/formats/tools.h"

uint32_t word_of_bytes(const int8_t bytes[4], int offset)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)(uint8_t)(bytes[i] + offset) << (8 * i);
    return word;
}

val byte_behind(ptx *p, val block, val bytes)
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
    load_fields(p, byte_behind(p, block, bit_and(p, first, 15)), offset,
                mul(p, shr(p, first, 4), 4), 4, w);
}

void load_two_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val byte = mad(p, shr(p, first, 7), 32, bit_and(p, first, 31));
    load_fields(p, byte_behind(p, block, byte), offset, mul(p, bfe(p, first, 5, 2), 2), 2, w);
}

void add_one_bits(ptx *p, val block, unsigned offset, val first, unsigned place, val w[UNPACKED])
{
    val bits[UNPACKED];
    load_fields(p, byte_behind(p, block, bit_and(p, first, 31)), offset, shr(p, first, 5), 1, bits);
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
