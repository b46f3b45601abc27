#include "gen/blocks/gemv.h"

static val dim(ptx *p, const instance *in, const char *name, int64_t built)
{
    return in->dims == DIMS_DYNAMIC ? named(p, name, parameter(p, name)) : imm(U32, built);
}

val dim_k(ptx *p, const instance *in)
{
    return dim(p, in, "k_dim", in->shape.k);
}

val dim_n(ptx *p, const instance *in)
{
    return dim(p, in, "n_dim", in->shape.n);
}

val dim_m(ptx *p, const instance *in)
{
    return dim(p, in, "m_dim", in->shape.m);
}

gemv gemv_parameters(ptx *p, const instance *in)
{
    const format_info *weights = &formats[in->family->weights];
    gemv g = {
        .y = parameter(p, "y"),
        .w = parameter(p, "w"),
        .x = parameter(p, "x"),
        .n = dim_n(p, in),
        .blocks = div(p, dim_k(p, in), weights->block_values),
    };
    g.row_bytes = mul(p, g.blocks, weights->block_bytes);
    return g;
}

val gemv_row(ptx *p, const gemv *g, val row)
{
    return named(p, "&w[row]", mad_wide(p, row, g->row_bytes, g->w));
}

void gemv_store(ptx *p, const gemv *g, val row, val sum)
{
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, row, 4, g->y), 0, sum);
}
