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

gemv_operands gemv_parameters(ptx *p, const instance *in)
{
    gemv_operands g = gemv_of(p, in, "y", "w", "x");
    if (in->options.bias)
        g.bias = parameter(p, "bias");
    if (in->options.residual)
        g.residual = parameter(p, "residual");
    return g;
}

/* Rows from m_val on stand for the last one. */
static void place_vectors(ptx *p, const instance *in, gemv_operands *g)
{
    const format_info *x = &formats[in->family->activations];
    g->m = named(p, "m_val", parameter(p, "m_val"));
    g->first = named(p, "first vector", mul(p, ctaid_y(p), (unsigned)in->shape.m));
    val blocks = div(p, dim_k(p, in), x->block_values), last = sub(p, g->m, 1);
    for (unsigned v = 0; v < in->shape.m; v++) {
        val row = min(p, gemv_vector_row(p, g, imm(U32, v)), last);
        g->behind[v] = mul(p, mul_wide(p, row, blocks), x->block_bytes);
    }
}

gemv_operands gemv_of(ptx *p, const instance *in, const char *y, const char *w, const char *x)
{
    const format_info *weights = &formats[instance_weights(in)];
    gemv_operands g = {
        .y = parameter(p, y),
        .w = parameter(p, w),
        .x = parameter(p, x),
        .n = dim_n(p, in),
        .blocks = div(p, dim_k(p, in), weights->block_values),
    };
    g.row_bytes = mul(p, g.blocks, weights->block_bytes);
    if (in->rows_mode == ROWS_RUN_TIME)
        place_vectors(p, in, &g);
    return g;
}

int64_t gemv_vectors(const instance *in)
{
    return in->shape.m;
}

const derived_size gemv_sizes[] = { GEMV_VECTORS, { NULL, NULL, NULL } };

unsigned gemv_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 64 };
    return in->shape.m == 1 ? OF_ONE_VECTOR : in->family->launch.registers;
}

val gemv_row(ptx *p, const gemv_operands *g, val row)
{
    return named(p, "&w[row]", mad_wide(p, row, g->row_bytes, g->w));
}

place place_behind(ptx *p, val base, unsigned number, val count, unsigned bytes)
{
    uint64_t step = (uint64_t)number * bytes;
    if (count.kind == VAL_IMM && (step == 0 || count.bits <= INT32_MAX / 2 / step))
        return (place){ base, (int64_t)(count.bits * step) };
    return (place){ mad_wide(p, count, (long long)step, base), 0 };
}

place place_of_vector(ptx *p, val base, const val *behind, unsigned number, val count,
                      unsigned bytes)
{
    if (behind && behind[number].kind)
        return (place){ add(p, base, behind[number]), 0 };
    return place_behind(p, base, number, count, bytes);
}

val gemv_vector_row(ptx *p, const gemv_operands *g, val number)
{
    return g->m.kind ? add(p, g->first, number) : number;
}

val gemv_vector_exists(ptx *p, const gemv_operands *g, val vector_row)
{
    return g->m.kind ? lt(p, vector_row, g->m) : imm(PRED, 1);
}

bool gemv_turns_are_whole(const gemv_operands *g, unsigned rows)
{
    return g->n.kind == VAL_IMM && g->n.bits % rows == 0;
}

val gemv_row_of_turn(ptx *p, const gemv_operands *g, val row, unsigned number, unsigned rows)
{
    val own = number ? add(p, row, number) : row;
    return gemv_row(p, g,
                    gemv_turns_are_whole(g, rows) || !number ? own : min(p, own, sub(p, g->n, 1)));
}

void gemv_store_turn(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned vectors,
                     spread_sums sums)
{
    PTX_IF (p, lt(p, sums.number, rows * vectors)) {
        val own = add(p, row, vectors == 1 ? sums.number : rem(p, sums.number, rows));
        val inside = gemv_turns_are_whole(g, rows) ? imm(PRED, 1) : lt(p, own, g->n);
        val element = convert(p, U64, own);
        val vector_row =
            gemv_vector_row(p, g, vectors == 1 ? imm(U32, 0) : div(p, sums.number, rows));
        if (vectors > 1 || g->m.kind)
            element = mad_wide(p, vector_row, g->n, element);
        PTX_IF (p, inside)
            PTX_IF (p, gemv_vector_exists(p, g, vector_row)) {
                val offset = shl(p, element, 2), sum = sums.sum;
                if (g->factors.kind) {
                    val of = vectors == 1 ? imm(U32, 0) : div(p, sums.number, rows);
                    sum = mul(p, sum, ld_shared(p, F32, mad(p, of, 4, g->factors), 0));
                }
                if (g->bias.kind)
                    sum = add(p, sum, ld_const(p, F32, mad_wide(p, own, 4, g->bias), 0));
                if (g->residual.kind)
                    sum = add(p, sum, ld_const(p, F32, add(p, g->residual, offset), 0));
                st_global(p, F32, add(p, g->y, offset), 0, sum);
            }
    }
}

/* g / (1 + exp(-x)) */
static val by_sigmoid(ptx *p, val g, val x)
{
    const float log2_e = 1.44269504f;
    return mul(p, g, rcp(p, add(p, ex2(p, mul(p, x, -log2_e)), 1.0f)));
}

val gated(ptx *p, int64_t activation, val gate, val up)
{
    const float limit = 7;
    switch (activation) {
    case ACTIVATION_GELU: {
        const float twice_root = 1.59576912f, cubic = 0.044715f; /* 2 sqrt(2 / pi) */
        val bent = fma(p, mul(p, mul(p, gate, gate), cubic), gate, gate);
        return mul(p, by_sigmoid(p, gate, mul(p, bent, twice_root)), up);
    }
    case ACTIVATION_SWIGLU_OAI: {
        val g = min(p, gate, limit), u = max(p, min(p, up, limit), -limit);
        val y = mul(p, by_sigmoid(p, g, mul(p, g, 1.702f)), add(p, u, 1.0f));
        /* What is no number has come to the limits, and must show: zero times it is a NaN. */
        return fma(p, add(p, gate, up), imm(F32, 0), y);
    }
    default:
        return mul(p, by_sigmoid(p, gate, gate), up);
    }
}

void gemv_store(ptx *p, const gemv_operands *g, val row, val sum)
{
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, row, 4, g->y), 0, sum);
}
