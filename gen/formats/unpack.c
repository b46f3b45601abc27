#include "gen/formats/unpack.h"

static unpack *const unpackers[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = unpack_##id,
#include "kernel/format.def"
};

void unpack_block(ptx *p, format f, val block, val first, val w[UNPACKED])
{
    unpackers[f](p, block, first, w);
}

void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED])
{
    const format_info *info = &formats[f];
    if (info->block_values == 1) {
        unpackers[f](p, mad_wide(p, piece, UNPACKED * info->block_bytes, row), imm(U32, 0), w);
        return;
    }
    unsigned pieces = info->block_values / UNPACKED;
    val block = mad_wide(p, div(p, piece, pieces), info->block_bytes, row);
    unpackers[f](p, block, mul(p, rem(p, piece, pieces), UNPACKED), w);
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

void unpack_F32(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i++)
        w[i] = load_packed(p, F32, block, i * F32_BYTES);
}

void unpack_F16(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (unsigned i = 0; i < UNPACKED; i++)
        w[i] = load_half_as_f32(p, block, i * F16_BYTES);
}

/* Rows are multiples of 16 bytes: eight of them are whole words. */
void unpack_E4M3(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i += 4)
        e4m3_as_f32(p, load_packed(p, U32, block, i), w + i);
}

void unpack_E5M2(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i += 4)
        e5m2_as_f32(p, load_packed(p, U32, block, i), w + i);
}

/* A bf16 is the upper half of an f32. */
void unpack_BF16(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bits_as(p, F32, shl(p, load_packed(p, U16, block, i * BF16_BYTES), 16));
}
