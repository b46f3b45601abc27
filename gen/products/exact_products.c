/* Y = X W^T with weights of any format and f32 activations, nothing rounded: the plain one. A warp
 * takes a row, a lane eight neighbouring weights at a time: see formats/weight_format.h.
 *
 * With norm = rms x is multiplied by gamma on the way, and what is left of the norm is a factor of
 * the sums.
 *
 * exact_qkv and exact_gate_up are several such products of one X, each with weights of its own
 * format: of exact_qkv a warp takes a row of one of the matrices, of exact_gate_up the same row of
 * both.
 */
#include "gen/products/exact.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

static void store_product(ptx *p, const instance *in, const gemv_operands *g, val row)
{
    val results[MAX_VECTORS];
    exact s = { .in = in, .x = g, .rows = 1, .formats = { instance_weights(in) } };
    s.columns = dim_k(p, in);
    s.at[0] = gemv_row(p, g, row);
    s.gamma = in->options.norm ? parameter(p, "gamma") : s.at[0];
    exact_multiply(p, &s, results);
    gemv_store_turn(p, g, row, 1, s.vectors, block_sum_spread(p, results, s.vectors, 1));
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", ctaid_x(p));
    store_product(p, in, &g, row);
}

static void build_qkv(ptx *p, const instance *in)
{
    for (unsigned i = 0; i < gemv_matrices_of_qkv(in); i++) {
        instance one = instance_matrix(in, i);
        gemv_operands g = gemv_of_qkv(p, in, &one, i);
        val row = named(p, "row", sub(p, ctaid_x(p), gemv_first_of_qkv(in, i)));
        PTX_IF (p, lt(p, row, g.n))
            store_product(p, &one, &g, row);
    }
}

static void build_gate_up(ptx *p, const instance *in)
{
    gemv_operands g[EXACT_ROWS];
    instance matrices[EXACT_ROWS];
    val row = named(p, "row", ctaid_x(p));
    for (unsigned i = 0; i < EXACT_ROWS; i++) {
        matrices[i] = instance_matrix(in, i);
        g[i] = gemv_of(p, &matrices[i], "y", i ? "wu" : "wg", "x");
    }
    exact_gated_row(p, matrices, g, row, row);
}

const family gemv = {
    .name = "gemv",
    .summary = "GEMV with weights of any format, one warp a row, nothing rounded: the plain one",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F32,
    .same_bits = true,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), KEY_ROWS,
                           KEYS_AROUND_PRODUCT, KEY_VARIANT, KEY_PRECISION, KEY_DIMS, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = { .block = "32",
                .grid = { "n", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_product,
    .build = build,
    .reference = ref_gemv,
    .tolerance = 5e-7,
};

const family exact_qkv = {
    .name = "exact_qkv",
    .summary = "Q, K and V by one kernel, weights of any formats, nothing rounded",
    .computes = QKV_COMPUTES,
    .op = OP_QKV,
    .activations = FORMAT_F32,
    .same_bits = true,
    .each_matrix = "gemv",
    .keys = (const key[]){ KEYS_OF_QKV, KEYS_AROUND_QKV, KEY_END },
    .params = (const param[]){ PARAMS_OF_QKV, PARAM_END },
    .launch = { .block = "32",
                .grid = { "n+n_kv+n_v", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .build = build_qkv,
    .reference = ref_qkv,
    .tolerance = 5e-7,
};

const family exact_gate_up = {
    .name = "exact_gate_up",
    .summary = "gate and up by one kernel, with the activation, nothing rounded",
    .computes = GATE_UP_COMPUTES,
    .op = OP_GATE_UP_SWIGLU,
    .activations = FORMAT_F32,
    .same_bits = true,
    .each_matrix = "gemv",
    .keys = (const key[]){ KEYS_OF_GATE_UP, KEYS_AROUND_GATE_UP, KEY_END },
    .params = (const param[]){ PARAMS_OF_GATE_UP, PARAM_END },
    .launch = { .block = "32",
                .grid = { "n", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .build = build_gate_up,
    .reference = ref_gate_up_swiglu,
    .tolerance = 5e-7,
};
