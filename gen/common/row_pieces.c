#include "gen/common/row_pieces.h"

#include "gen/common/reduce.h"
#include "kernel/formula.h"

const term row_pieces_terms[] = { { "warps", "min(32, ceil_div(k, 128))" }, { NULL, NULL } };

static unsigned step_columns(const row_pieces *r)
{
    return r->warps * WARP * PIECE_COLUMNS;
}

row_pieces row_pieces_new(ptx *p, const instance *in)
{
    row_pieces r = { .columns = (unsigned)in->shape.k, .warps = formula_unsigned("warps", in) };
    r.count = (r.columns + step_columns(&r) - 1) / step_columns(&r);
    r.first = named(p, "column", mul(p, tid_x(p), PIECE_COLUMNS));
    return r;
}

bool row_pieces_are_few(const row_pieces *r)
{
    return r->count <= MOST_KEPT_PIECES;
}

void row_pieces_make_room(ptx *p, row_pieces *r)
{
    for (unsigned i = 0; i < r->count && row_pieces_are_few(r); i++)
        for (unsigned j = 0; j < PIECE_COLUMNS; j++)
            r->kept[i][j] = var_f32(p, 0.0f);
}

void row_piece_keep(ptx *p, const row_pieces *r, const row_piece *at, val4 values)
{
    for (unsigned i = 0; i < PIECE_COLUMNS && row_pieces_are_few(r); i++)
        assign(p, r->kept[at->number][i], values.v[i]);
}

val4 row_piece_kept(ptx *p, const row_pieces *r, const row_piece *at)
{
    val4 values;
    for (unsigned i = 0; i < PIECE_COLUMNS; i++)
        values.v[i] = get(p, r->kept[at->number][i]);
    return values;
}

val row_piece_address(ptx *p, const row_piece *at, val first, unsigned value_bytes)
{
    val behind = at->behind;
    if (!behind.kind)
        return first;
    return add(p, first, value_bytes == F32_BYTES ? behind : shr(p, behind, 1));
}

int64_t row_piece_offset(const row_pieces *r, const row_piece *at, unsigned value_bytes)
{
    return (int64_t)at->number * step_columns(r) * value_bytes;
}

val4 row_piece_load(ptx *p, const row_pieces *r, const row_piece *at, val first)
{
    return ld_global_v4(p, F32, row_piece_address(p, at, first, F32_BYTES),
                        row_piece_offset(r, at, F32_BYTES));
}

val4 row_piece_again(ptx *p, const row_pieces *r, const row_piece *at, val first)
{
    return row_pieces_are_few(r) ? row_piece_kept(p, r, at) : row_piece_load(p, r, at, first);
}

val4 row_piece_weights(ptx *p, const row_pieces *r, const row_piece *at, val first)
{
    return ld_const_v4(p, F32, row_piece_address(p, at, first, F32_BYTES),
                       row_piece_offset(r, at, F32_BYTES));
}

void row_piece_store(ptx *p, const row_pieces *r, const row_piece *at, val first, val4 values)
{
    st_global_v4(p, F32, row_piece_address(p, at, first, F32_BYTES),
                 row_piece_offset(r, at, F32_BYTES), values);
}

val row_pieces_sum(ptx *p, const row_pieces *r, val sums, unsigned number, val own)
{
    val sum = warp_sum(p, own), lane = lane_id(p);
    if (r->warps == 1)
        return sum;
    int64_t offset = (int64_t)number * r->warps * F32_BYTES;
    var of_warp = var_f32(p, 0.0f);
    PTX_IF (p, eq(p, lane, 0))
        st_shared(p, F32, mad(p, warp_id(p), F32_BYTES, sums), offset, sum);
    barrier(p);
    PTX_IF (p, lt(p, lane, r->warps))
        assign(p, of_warp, ld_shared(p, F32, mad(p, lane, F32_BYTES, sums), offset));
    return warp_sum(p, get(p, of_warp));
}

void row_pieces_each(ptx *p, const row_pieces *r, row_pass *pass, void *context)
{
    unsigned step = step_columns(r);
    if (!row_pieces_are_few(r)) {
        PTX_FOR (p, columns, r->first, r->columns, step)
            pass(p, context,
                 (row_piece){ .behind = mul_wide(p, sub(p, columns, r->first), F32_BYTES) });
        return;
    }
    for (unsigned i = 0; i < r->count; i++)
        PTX_IF (p, (i + 1) * step <= r->columns ? imm(PRED, 1)
                                                : lt(p, r->first, r->columns - i * step))
            pass(p, context, (row_piece){ .number = i });
}
