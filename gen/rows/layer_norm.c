/* LayerNorm of rows (Ba, Kiros and Hinton, "Layer Normalization", 2016):
 *
 *   y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) gamma + beta
 *
 * A block normalizes one row. A thread has pieces of four columns, one block width apart. If there
 * are few, it keeps them in registers between passes, else it loads them again. No thread reads
 * what another thread writes: y may alias x.
 *
 * The variance is computed in a second pass over the row, not as a difference of two sums, so no
 * digits cancel. The order of additions depends only on k. A row is NaN if it contains a NaN or an
 * infinity, or if its sum or variance overflows f32. */
#include "gen/common/reduce.h"
#include "gen/common/row_pieces.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { PIECE = PIECE_COLUMNS };

typedef struct layer {
    const instance *in;
    row_pieces row;
    val x, y, gamma, beta; /* addresses of the thread's first column */
    val mean, factor;
    var sum;  /* the thread's partial sum */
    val sums; /* warps' sums in shared memory, [2, warps] */
} layer;

static void add_values(ptx *p, void *context, row_piece at)
{
    const layer *n = context;
    val4 x = row_piece_load(p, &n->row, &at, n->x);
    for (int i = 0; i < PIECE; i++)
        assign(p, n->sum, add(p, n->sum, x.v[i]));
    row_piece_keep(p, &n->row, &at, x);
}

static void add_squares(ptx *p, void *context, row_piece at)
{
    const layer *n = context;
    val4 x = row_piece_again(p, &n->row, &at, n->x);
    for (int i = 0; i < PIECE; i++) {
        val distance = sub(p, x.v[i], n->mean);
        assign(p, n->sum, fma(p, distance, distance, n->sum));
    }
}

static void store_normed(ptx *p, void *context, row_piece at)
{
    const layer *n = context;
    val4 x = row_piece_again(p, &n->row, &at, n->x), beta;
    val4 gamma = row_piece_weights(p, &n->row, &at, n->gamma);
    if (n->beta.kind)
        beta = row_piece_weights(p, &n->row, &at, n->beta);
    for (int i = 0; i < PIECE; i++) {
        val normed = mul(p, sub(p, x.v[i], n->mean), n->factor);
        x.v[i] = n->beta.kind ? fma(p, normed, gamma.v[i], beta.v[i]) : mul(p, normed, gamma.v[i]);
    }
    row_piece_store(p, &n->row, &at, n->y, x);
}

/* Returns the row's mean of the threads' sums. number is the index of the sum in the kernel. */
static val mean_of_row(ptx *p, const layer *n, unsigned number)
{
    val sum = row_pieces_sum(p, &n->row, n->sums, number, get(p, n->sum));
    return div(p, sum, (float)n->in->shape.k);
}

static void layer_norm_build(ptx *p, const instance *in)
{
    layer n = { .in = in, .row = row_pieces_new(p, in), .sum = var_f32(p, 0.0f) };
    val behind = mul_wide(p, tid_x(p), PIECE * F32_BYTES);
    val row = add(p, mul_wide(p, ctaid_x(p), n.row.columns * F32_BYTES), behind);
    n.x = add(p, parameter(p, "x"), row);
    n.y = add(p, parameter(p, "y"), row);
    n.gamma = add(p, parameter(p, "gamma"), behind);
    if (in->options.bias)
        n.beta = add(p, parameter(p, "beta"), behind);
    if (n.row.warps > 1)
        n.sums = shared_array(p, "sums", F32, 2 * n.row.warps);
    row_pieces_make_room(p, &n.row);
    phase(p, "mean");
    row_pieces_each(p, &n.row, add_values, &n);
    n.mean = named(p, "mean", mean_of_row(p, &n, 0));
    assign(p, n.sum, 0.0f);
    phase(p, "variance");
    row_pieces_each(p, &n.row, add_squares, &n);
    n.factor = named(p, "factor", norm_factor_or_nan(p, in, mean_of_row(p, &n, 1)));
    phase(p, "store y");
    row_pieces_each(p, &n.row, store_normed, &n);
}

const family layer_norm = {
    .name = "layer_norm",
    .summary = "LayerNorm of rows, with or without a bias",
    .computes = "y[m,k] = (x[m,k] - mean) / sqrt(variance + epsilon) * gamma[k] + beta[k]",
    F32_FAMILY(OP_LAYER_NORM, layer_norm_build, ref_layer_norm, 1e-7),
    .keys = KEYS(KEY_PIECE_COLUMNS, KEY_ROW_COUNT, KEY_OPTION(bias, "add: beta[k] is added"),
                 KEY_REAL("epsilon", "added to the variance, e.g. 1e-5", options.epsilon, "eps",
                          epsilon_range)),
    .params = PARAMS(OUT(F32, y, "m*k", 16), IN(F32, gamma, "k", 16),
                     IN_WHERE(bias, F32, beta, "k", 16), IN(F32, x, "m*k", 16)),
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "8*warps*min(1, warps - 1)",
                .terms = row_pieces_terms,
                .overlap = WAITS_FIRST,
                .registers = 64 },
};
