#include "gen/common/heights.h"

val height_of_float(ptx *p, val number)
{
    val bits = bits_as(p, U32, add(p, number, 0.0f)); /* of -0: 0 */
    val sign = as(p, U32, shr(p, as(p, S32, bits), 31));
    val height = bit_xor(p, bits, bit_or(p, sign, 0x80000000));
    return select(p, gt(p, bit_and(p, bits, 0x7fffffff), 0x7f800000), imm(U32, HEIGHT_NAN), height);
}

val float_of_height(ptx *p, val height)
{
    val flipped = select(p, ge(p, height, 0x80000000), imm(U32, 0x80000000), imm(U32, 0xffffffff));
    return bits_as(p, F32, bit_xor(p, height, flipped));
}

val is_ahead(ptx *p, val height, val number, val other_height, val other_number)
{
    val equal = bit_and(p, eq(p, height, other_height), lt(p, number, other_number));
    return bit_or(p, gt(p, height, other_height), equal);
}

void take_if_ahead(ptx *p, const first_number *f, val height, val number)
{
    val ahead = is_ahead(p, height, number, get(p, f->height), get(p, f->number));
    assign(p, f->height, select(p, ahead, height, f->height));
    assign(p, f->number, select(p, ahead, number, f->number));
}

void first_of_warp(ptx *p, const first_number *f)
{
    for (unsigned mask = 16; mask; mask /= 2) {
        val height = shuffle_xor(p, f->height, mask), number = shuffle_xor(p, f->number, mask);
        take_if_ahead(p, f, height, number);
    }
}
