/* Y = X W^T with weights of any format and f32 activations, without rounding: the plain kernels.
 *
 * A block is a warp and computes a row of W with up to 8 vectors; a lane multiplies eight
 * neighbouring weights at a time (weight_format.h). With norm = rms x is multiplied by gamma, and
 * the sums by 1 / rms(x). A vector's results have the same bits alone and as one of m.
 *
 * exact_qkv and exact_gate_up are several such products of one X, each matrix in its own format. In
 * exact_qkv a warp computes a row of one matrix, in exact_gate_up the same row of both. */
#include "gen/common/reduce.h"
#include "gen/formats/weight_format.h"
#include "gen/products/gemv.h"
#include "gen/products/product_keys.h"
#include "gen/products/row_products.h"
#include "ref/reference.h"

enum { LINE_VALUES = 4 };

/* A row of each of one or two matrices of the same size, and the vectors multiplied by them. */
typedef struct exact {
    const instance *in; /* number of vectors, and the norm */
    const gemv_operands *x;
    unsigned rows, vectors;
    format formats[GEMV_PAIR];
    val at[GEMV_PAIR], columns, gamma;
    var sums[GEMV_PAIR][MAX_VECTORS], squares[MAX_VECTORS];
} exact;

/* Adds the products of a piece's first `count` weights: all eight, or four of f32. */
static void add_piece(ptx *p, exact *s, val piece, unsigned count)
{
    val w[GEMV_PAIR][UNPACKED], x[UNPACKED], norm[UNPACKED];
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
            place_of_vector(p, add(p, s->x->x, offset), s->x->offsets, v, s->columns, F32_BYTES);
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

void exact_multiply(ptx *p, const instance *of, const gemv_operands *g, unsigned rows, val row,
                    val *results)
{
    exact s = { .in = of, .x = g, .rows = rows, .vectors = (unsigned)of->shape.m };
    s.columns = dim_k(p, of);
    for (unsigned r = 0; r < rows; r++) {
        s.formats[r] = instance_weights(&of[r]);
        s.at[r] = gemv_row(p, &g[r], row);
    }
    s.gamma = of->options.norm ? parameter(p, "gamma") : s.at[0];
    for (unsigned v = 0; v < s.vectors; v++) {
        for (unsigned r = 0; r < rows; r++)
            s.sums[r][v] = var_f32(p, 0.0f);
        if (of->options.norm)
            s.squares[v] = var_f32(p, 0.0f);
    }
    ptx_loop_work(p, rows * UNPACKED, "weights");
    PTX_FOR (p, piece, lane_id(p), div(p, s.columns, UNPACKED), WARP)
        add_piece(p, &s, piece, UNPACKED);
    /* Rows of f32 may end with half a piece. */
    bool known = s.columns.kind == VAL_IMM, half = !known || s.columns.bits % UNPACKED;
    for (unsigned r = 0; r < rows; r++)
        half = half && formats[s.formats[r]].block_bytes == F32_BYTES;
    if (half)
        PTX_IF (p, eq(p, lane_id(p), 0))
            PTX_IF (p, known ? imm(PRED, 1) : ne(p, rem(p, s.columns, UNPACKED), 0))
                add_piece(p, &s, div(p, s.columns, UNPACKED), LINE_VALUES);
    for (unsigned v = 0; v < s.vectors; v++) {
        val factor = { 0 };
        for (unsigned r = 0; r < rows; r++)
            results[rows * v + r] = get(p, s.sums[r][v]);
        if (of->options.norm) {
            val mean = div(p, warp_sum(p, get(p, s.squares[v])), convert(p, F32, s.columns));
            factor = norm_factor(p, of, mean);
        }
        for (unsigned r = 0; r < rows && of->options.norm; r++)
            results[rows * v + r] = mul(p, results[rows * v + r], factor);
    }
}

void exact_gated_row(ptx *p, const gemv_pair *pair, val row, val bias)
{
    val results[GEMV_PAIR * MAX_VECTORS];
    exact_multiply(p, pair->of, pair->g, pair->count, row, results);
    gemv_biases biases = gemv_biases_of_row(p, &pair->of[0], bias);
    gemv_store_gated(p, &pair->of[0], &pair->g[0], row, results, &biases);
}

static void store_product(ptx *p, const instance *in, const gemv_operands *g, val row)
{
    unsigned vectors = (unsigned)in->shape.m;
    val results[MAX_VECTORS];
    exact_multiply(p, in, g, 1, row, results);
    gemv_store_rows(p, g, row, 1, vectors, block_sum_spread(p, results, vectors, 1));
}

static void build_gemv(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    store_product(p, in, &g, named(p, "row", ctaid_x(p)));
}

static void build_qkv(ptx *p, const instance *in)
{
    for (unsigned i = 0; i < gemv_matrices_of_qkv(in); i++) {
        instance one = instance_matrix(in, i);
        gemv_operands g = gemv_of_qkv(p, in, i);
        val row = named(p, "row", sub(p, ctaid_x(p), gemv_first_of_qkv(in, i)));
        PTX_IF (p, lt(p, row, g.n))
            store_product(p, &one, &g, row);
    }
}

static void build_gate_up(ptx *p, const instance *in)
{
    val row = named(p, "row", ctaid_x(p));
    gemv_pair pair = gemv_pair_of(p, in, 0);
    exact_gated_row(p, &pair, row, row);
}

row_products row_products_new(format f, unsigned columns, unsigned vectors, val x, unsigned stride)
{
    row_products r = {
        .format = f, .columns = columns, .vectors = vectors, .lanes = 1, .x = x, .stride = stride
    };
    while (r.lanes < WARP && r.lanes < columns / UNPACKED)
        r.lanes *= 2;
    r.rows = WARP / r.lanes;
    return r;
}

val row_products_own(ptx *p, const row_products *r)
{
    return div(p, lane_id(p), r->lanes);
}

val row_products_first(ptx *p, const row_products *r)
{
    return eq(p, bit_and(p, lane_id(p), r->lanes - 1), 0);
}

/* Returns the address of a piece in f32 values from base on. */
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
            load_floats(p, piece_at(p, r->gamma, piece), 0, UNPACKED, gamma);
        for (unsigned v = 0; v < r->vectors; v++) {
            load_floats(p, at, (int64_t)v * r->stride, UNPACKED, x);
            for (unsigned i = 0; i < UNPACKED; i++) {
                val factor = r->gamma.kind ? mul(p, x[i], gamma[i]) : x[i];
                assign(p, added[v], fma(p, w[i], factor, added[v]));
            }
        }
    }
    for (unsigned v = 0; v < r->vectors; v++)
        sums[v] = group_sum(p, get(p, added[v]), r->lanes);
}

#define EXACT(of, computed_by)                                                        \
    .op = of, .activations = FORMAT_F32, .same_bits = true, .reference = computed_by, \
    .tolerance = 5e-7
#define WARP_OF_ROWS(rows)                     \
    .launch = { .block = "32",                 \
                .grid = { rows, GEMV_GRID_Y }, \
                .sizes = gemv_sizes,           \
                .overlap = WAITS_FIRST,        \
                .registers = 128 }

const family gemv = {
    .name = "gemv",
    .summary = "plain GEMV: weights of any format, one warp per row, f32 without rounding",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    EXACT(OP_GEMV, ref_gemv),
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEY_M(1), KEY_ROWS, KEYS_AROUND_PRODUCT, KEY_VARIANT,
                 KEY_PRECISION, KEY_DIMS),
    .params = PARAMS(PARAMS_OF_PRODUCT(F32_ROWS), NUMBERS_OF_EPILOGUE),
    WARP_OF_ROWS("n"),
    .check = check_product,
    .build = build_gemv,
};

const family exact_qkv = {
    .name = "exact_qkv",
    .summary = "Q, K and V in one kernel, weights of any formats, f32 without rounding",
    .computes = QKV_COMPUTES,
    EXACT(OP_QKV, ref_qkv),
    .each_matrix = "gemv",
    .keys = KEYS(KEYS_OF_QKV(0), KEY_M(1), KEY_ROWS, KEYS_AROUND_QKV),
    .params = PARAMS(PARAMS_OF_QKV(F32_ROWS)),
    WARP_OF_ROWS("n+n_kv+n_v"),
    .build = build_qkv,
};

const family exact_gate_up = {
    .name = "exact_gate_up",
    .summary = "gate and up with activation in one kernel, f32 without rounding",
    .computes = GATE_UP_COMPUTES,
    EXACT(OP_GATE_UP_SWIGLU, ref_gate_up_swiglu),
    .each_matrix = "gemv",
    .keys = KEYS(KEYS_OF_GATE_UP(0), KEY_M(1), KEY_ROWS, KEYS_AROUND_GATE_UP),
    .params = PARAMS(PARAMS_OF_GATE_UP(F32_ROWS)),
    WARP_OF_ROWS("n"),
    .check = check_product,
    .build = build_gate_up,
};
