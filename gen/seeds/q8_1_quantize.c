/* q8_1 blocks of f32 activations, one warp per block: the input of the dp4a GEMVs.
 *
 * The result equals ggml's quantize_row_q8_1_ref bit for bit: d = amax / 127, q = x * (1 / d)
 * rounded half away from zero, s = d * sum(q). d and s are stored as f16; q and s are computed from
 * the unrounded d. */
#include "gen/products/gemv.h"
#include "gen/common/q8_1.h"
#include "ref/reference.h"

static void build(ptx *p, const instance *in)
{
    val q8 = parameter(p, "q8"), x = parameter(p, "x");
    val lane = lane_id(p);
    val block = mad(p, ctaid_x(p), in->num_warps, warp_id(p));
    val rows =
        in->rows_mode == ROWS_RUN_TIME ? named(p, "m_val", parameter(p, "m_val")) : dim_m(p, in);
    val blocks = mul(p, div(p, dim_k(p, in), Q8_1_VALUES), rows);
    ret_if(p, ge(p, named(p, "block", block), blocks));

    val value = add(p, mul_wide(p, block, Q8_1_VALUES), convert(p, U64, lane));
    val v = ld_const(p, F32, add(p, x, shl(p, value, 2)), 0);
    q8_1_store_warp(p, mad_wide(p, block, Q8_1_BYTES, q8), v);
}

static const char *check(const instance *in, arena *a, const char **blamed)
{
    (void)a;
    *blamed = "rows";
    return in->rows_mode == ROWS_RUN_TIME && in->dims == DIMS_DYNAMIC
               ? "rows = run_time and dims = dynamic both make the rows a parameter; leave out "
                 "one of them"
               : NULL;
}

const family q8_1_quantize = {
    .name = "q8_1_quantize",
    .summary = "quantizes f32 activations to q8_1 blocks, one warp per q8_1 block",
    .computes = "q8[m,k] = q8_1(x[m,k])",
    .op = OP_QUANTIZE,
    .weights = FORMAT_NONE,
    .activations = FORMAT_F32,
    .keys = KEYS(KEY_NUMBER("k", "columns of x", shape.k, Q8_1_VALUES, INT32_MAX,
                            .multiple_of = Q8_1_VALUES, .required = true, .at_run_time = true,
                            .tag = "k"),
                 KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .at_run_time = true,
                            .counted_with = KEY_FIELD(rows_mode), .tag = "m"),
                 KEY_ROWS, KEY_NUM_WARPS(4), KEY_DIMS),
    .params = PARAMS(OUT(Q8_1, q8, "m*k", 4), IN(F32, x, "m*k", 4)),
    .launch = { .block = "32*num_warps",
                .grid = { "ceil_div(k/32*m, num_warps)" },
                .registers = 32 },
    .check = check,
    .build = build,
    .reference = ref_q8_1_quantize,
    .tolerance = 0, /* relative to x */
};
