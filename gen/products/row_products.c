#include "gen/products/row_products.h"

#include "gen/common/reduce.h"
#include "gen/formats/weight_format.h"

enum { LINE_VALUES = 4 };

row_products row_products_new(format f, unsigned columns, unsigned vectors, val x, unsigned stride)
{
    row_products r = {
        .format = f, .columns = columns, .vectors = vectors, .lanes = 1, .x = x, .stride = stride
    };
    while (r.lanes < WARP && r.lanes < columns / UNPACKED)
        r.lanes *= 2;
    return r;
}

unsigned row_products_rows(const row_products *r)
{
    return WARP / r->lanes;
}

val row_products_own(ptx *p, const row_products *r)
{
    return div(p, lane_id(p), r->lanes);
}

val row_products_first(ptx *p, const row_products *r)
{
    return eq(p, bit_and(p, lane_id(p), r->lanes - 1), 0);
}

static void load_eight(ptx *p, val at, int64_t offset, val values[UNPACKED])
{
    for (unsigned i = 0; i < UNPACKED; i += LINE_VALUES) {
        int64_t behind = offset + i * F32_BYTES;
        val4 four =
            at.type == U64 ? ld_const_v4(p, F32, at, behind) : ld_shared_v4(p, F32, at, behind);
        for (unsigned j = 0; j < LINE_VALUES; j++)
            values[i + j] = four.v[j];
    }
}

/* base plus the piece's place in f32. */
static val piece_at(ptx *p, val base, val piece)
{
    enum { PIECE_BYTES = UNPACKED * F32_BYTES };
    return base.type == U64 ? mad_wide(p, piece, PIECE_BYTES, base)
                            : mad(p, piece, imm(U32, PIECE_BYTES), base);
}

void row_products_of(ptx *p, const row_products *r, val row, val *sums)
{
    var added[MAX_VECTORS];
    for (unsigned v = 0; v < r->vectors; v++)
        added[v] = var_f32(p, 0.0f);
    val first = bit_and(p, lane_id(p), r->lanes - 1);
    ptx_loop_work(p, UNPACKED, "weights");
    PTX_FOR (p, piece, first, r->columns / UNPACKED, r->lanes) {
        val w[UNPACKED], x[UNPACKED], gamma[UNPACKED];
        unpack_piece(p, r->format, row, piece, w);
        val at = piece_at(p, r->x, piece);
        if (r->gamma.kind)
            load_eight(p, piece_at(p, r->gamma, piece), 0, gamma);
        for (unsigned v = 0; v < r->vectors; v++) {
            load_eight(p, at, (int64_t)v * r->stride, x);
            for (unsigned i = 0; i < UNPACKED; i++) {
                val factor = r->gamma.kind ? mul(p, x[i], gamma[i]) : x[i];
                assign(p, added[v], fma(p, w[i], factor, added[v]));
            }
        }
    }
    for (unsigned v = 0; v < r->vectors; v++)
        sums[v] = group_sum(p, get(p, added[v]), r->lanes);
}
