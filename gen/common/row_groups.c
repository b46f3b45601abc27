#include "gen/common/row_groups.h"

int64_t row_group_count(const instance *in)
{
    return (in->shape.m + MAX_VECTORS - 1) / MAX_VECTORS;
}

unsigned row_group_rows(const instance *in)
{
    return in->shape.m < MAX_VECTORS ? (unsigned)in->shape.m : MAX_VECTORS;
}

row_group row_group_new(ptx *p, const instance *in, val number)
{
    unsigned rows = (unsigned)in->shape.m;
    row_group g = { .count = row_group_rows(in),
                    .several = rows > MAX_VECTORS,
                    .ragged = rows > MAX_VECTORS && rows % MAX_VECTORS,
                    .first = imm(U32, 0),
                    .own = imm(U32, 0) };
    if (g.several)
        g.own = g.first = named(p, "first_row", mul(p, number, MAX_VECTORS));
    if (g.ragged)
        g.first = min(p, g.own, rows - MAX_VECTORS);
    return g;
}

val row_of_group(ptx *p, const row_group *g, val number)
{
    return g->several ? add(p, g->first, number) : number;
}

val row_is_own(ptx *p, const row_group *g, val row)
{
    return g->ragged ? ge(p, row, g->own) : imm(PRED, 1);
}

val row_group_start(ptx *p, const row_group *g, val array, unsigned row_bytes)
{
    return g->several ? mad_wide(p, g->first, row_bytes, array) : array;
}
