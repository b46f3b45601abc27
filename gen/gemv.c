/* Y = X W^T with weights of any format and f32 activations, nothing rounded: the plain one. A warp
 * takes a row, a lane eight neighbouring weights at a time: see blocks/unpack.h.
 *
 * With norm = rms x is multiplied by gamma on the way, and what is left of the norm is a factor of
 * the sums.
 */
#include "gen/blocks/gemv.h"
#include "gen/blocks/unpack.h"
#include "gen/product_keys.h"

static void load_eight(ptx *p, val at, val values[UNPACKED])
{
    for (int i = 0; i < UNPACKED; i += 4) {
        val4 four = ld_const_v4(p, F32, at, i * F32_BYTES);
        for (int j = 0; j < 4; j++)
            values[i + j] = four.v[j];
    }
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    unsigned vectors = (unsigned)in->shape.m;
    val columns = dim_k(p, in), row = named(p, "row", ctaid_x(p)), w_row = gemv_row(p, &g, row);
    val gamma = in->options.norm ? parameter(p, "gamma") : w_row;
    var sums[MAX_VECTORS], squares[MAX_VECTORS];
    for (unsigned v = 0; v < vectors; v++) {
        sums[v] = var_f32(p, 0.0f);
        if (in->options.norm)
            squares[v] = var_f32(p, 0.0f);
    }
    ptx_loop_work(p, UNPACKED, "weights");
    PTX_FOR (p, piece, lane_id(p), div(p, columns, UNPACKED), 32) {
        val w[UNPACKED], x[UNPACKED], norm[UNPACKED];
        val offset = mul_wide(p, piece, UNPACKED * F32_BYTES);
        unpack_piece(p, instance_weights(in), w_row, piece, w);
        if (in->options.norm)
            load_eight(p, add(p, gamma, offset), norm);
        for (unsigned v = 0; v < vectors; v++) {
            place vector = place_of_vector(p, add(p, g.x, offset), g.behind, v, columns, F32_BYTES);
            load_eight(p, add(p, vector.base, vector.offset), x);
            for (int i = 0; i < UNPACKED; i++) {
                if (in->options.norm) {
                    assign(p, squares[v], fma(p, x[i], x[i], squares[v]));
                    x[i] = mul(p, x[i], norm[i]);
                }
                assign(p, sums[v], fma(p, w[i], x[i], sums[v]));
            }
        }
    }
    val results[MAX_VECTORS];
    for (unsigned v = 0; v < vectors; v++) {
        results[v] = get(p, sums[v]);
        if (in->options.norm) {
            val mean = div(p, warp_sum(p, get(p, squares[v])), convert(p, F32, columns));
            val factor = rsqrt(p, add(p, mean, (float)in->options.epsilon));
            results[v] = mul(p, results[v], factor);
        }
    }
    gemv_store_turn(p, &g, row, 1, vectors, block_sum_spread(p, results, vectors, 1));
}

const family gemv = {
    .name = "gemv",
    .summary = "GEMV with weights of any format, one warp a row, nothing rounded: the plain one",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F32,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), KEY_ROWS,
                           KEYS_AROUND_PRODUCT, KEY_VARIANT, KEY_PRECISION, KEY_DIMS, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = { .block = "32",
                .grid = { "n", GEMV_GRID_Y },
                .sizes = gemv_sizes,
                .registers = 128 },
    .build = build,
    .reference = ref_gemv,
    .tolerance = 5e-7,
};
