/* Products that round nothing: see exact.h. */
#include "gen/common/norm.h"
#include "gen/products/exact.h"

#include "gen/formats/formats.h"

enum { LINE_VALUES = 4 };

/* Adds the products of a piece's first count weights: all of them, or of f32 the first line. */
static void add_piece(ptx *p, exact *s, val piece, unsigned count)
{
    val w[EXACT_ROWS][UNPACKED], x[UNPACKED], norm[UNPACKED];
    val offset = mul_wide(p, piece, UNPACKED * F32_BYTES);
    for (unsigned r = 0; r < s->rows; r++) {
        if (count == UNPACKED)
            unpack_piece(p, s->formats[r], s->at[r], piece, w[r]);
        else
            load_floats(p, add(p, s->at[r], offset), 0, count, w[r]);
    }
    if (s->in->options.norm)
        load_floats(p, add(p, s->gamma, offset), 0, count, norm);
    for (unsigned v = 0; v < s->vectors; v++) {
        place vector =
            place_of_vector(p, add(p, s->x->x, offset), s->x->behind, v, s->columns, F32_BYTES);
        load_floats(p, add(p, vector.base, vector.offset), 0, count, x);
        for (unsigned i = 0; i < count; i++) {
            if (s->in->options.norm) {
                assign(p, s->squares[v], fma(p, x[i], x[i], s->squares[v]));
                x[i] = mul(p, x[i], norm[i]);
            }
            for (unsigned r = 0; r < s->rows; r++)
                assign(p, s->sums[r][v], fma(p, w[r][i], x[i], s->sums[r][v]));
        }
    }
}

/* Rows of f32 may end with half a piece. */
static void add_half_piece(ptx *p, exact *s)
{
    bool known = s->columns.kind == VAL_IMM;
    for (unsigned r = 0; r < s->rows; r++)
        if (formats[s->formats[r]].block_bytes != F32_BYTES)
            return;
    if (known && s->columns.bits % UNPACKED == 0)
        return;
    val alone = eq(p, lane_id(p), 0);
    PTX_IF (p, alone)
        PTX_IF (p, known ? imm(PRED, 1) : ne(p, rem(p, s->columns, UNPACKED), 0))
            add_piece(p, s, div(p, s->columns, UNPACKED), LINE_VALUES);
}

void exact_multiply(ptx *p, exact *s, val *results)
{
    s->vectors = (unsigned)s->in->shape.m;
    for (unsigned v = 0; v < s->vectors; v++) {
        for (unsigned r = 0; r < s->rows; r++)
            s->sums[r][v] = var_f32(p, 0.0f);
        if (s->in->options.norm)
            s->squares[v] = var_f32(p, 0.0f);
    }
    ptx_loop_work(p, s->rows * UNPACKED, "weights");
    PTX_FOR (p, piece, lane_id(p), div(p, s->columns, UNPACKED), 32)
        add_piece(p, s, piece, UNPACKED);
    add_half_piece(p, s);
    for (unsigned v = 0; v < s->vectors; v++) {
        val factor = { 0 };
        for (unsigned r = 0; r < s->rows; r++)
            results[s->rows * v + r] = get(p, s->sums[r][v]);
        if (s->in->options.norm) {
            val mean = div(p, warp_sum(p, get(p, s->squares[v])), convert(p, F32, s->columns));
            factor = norm_factor(p, s->in, mean);
        }
        for (unsigned r = 0; r < s->rows && s->in->options.norm; r++)
            results[s->rows * v + r] = mul(p, results[s->rows * v + r], factor);
    }
}

void exact_gated_row(ptx *p, const instance matrices[EXACT_ROWS], const gemv_operands g[EXACT_ROWS],
                     val row, val bias)
{
    const instance *in = &matrices[0];
    val results[EXACT_ROWS * MAX_VECTORS];
    exact s = { .in = in, .x = &g[0], .rows = EXACT_ROWS, .columns = dim_k(p, in) };
    for (unsigned i = 0; i < EXACT_ROWS; i++) {
        s.formats[i] = instance_weights(&matrices[i]);
        s.at[i] = gemv_row(p, &g[i], row);
    }
    s.gamma = in->options.norm ? parameter(p, "gamma") : s.at[0];
    exact_multiply(p, &s, results);
    gemv_biases biases = gemv_biases_of_row(p, in, bias);
    gemv_store_gated(p, in, &g[0], row, results, &biases);
}
