#include "gen/formats/weight_format.h"

const weight_format *weight_format_of(format f)
{
    static const weight_format *const all[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = &weight_format_##id,
#include "kernel/format.def"
    };
    return all[f];
}

static void unpack(ptx *p, format f, val block, unpack_first first, val w[UNPACKED])
{
    enum { HALF = 16 };
    const weight_format *of = weight_format_of(f);
    if (of->unpack_known)
        of->unpack_known(p, (block_bytes){ block, 0 }, first, w);
    else if (first.half.kind)
        of->unpack(p, block, mad(p, first.half, HALF, imm(U32, first.known)), w);
    else
        of->unpack(p, block, first.number, w);
}

void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED])
{
    unpack(p, f, block, (unpack_first){ .half = half, .known = known }, w);
}

/* Returns the address of a block; the type of row says which memory. */
static val block_at(ptx *p, val row, val number, unsigned bytes)
{
    return row.type == U32 ? mad(p, number, bytes, row) : mad_wide(p, number, bytes, row);
}

void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED])
{
    const format_info *info = &formats[f];
    if (info->block_values == 1) {
        val eight = block_at(p, row, piece, UNPACKED * info->block_bytes);
        unpack(p, f, eight, (unpack_first){ .number = imm(U32, 0) }, w);
        return;
    }
    unsigned pieces = info->block_values / UNPACKED;
    val block = block_at(p, row, div(p, piece, pieces), info->block_bytes);
    val first = mul(p, rem(p, piece, pieces), UNPACKED);
    unpack(p, f, block, (unpack_first){ .number = first }, w);
}
