/* Streaming products: see blocks/stream.h. */
#include "gen/blocks/reduce.h"
#include "gen/blocks/stream.h"
#include "gen/product_keys.h"

#define KEY_ROWS_PER_WARP                                                           \
    {                                                                               \
        .name = "rows_per_warp", .summary = "rows that a warp takes at once",       \
        .field = KEY_FIELD(rows_per_warp), .min = 1, .max = 2, .def = 2, .tag = "r" \
    }
/* Two blocks of 12 warps with 80 registers fit an SM: 24 warps with two 16-byte loads a lane. */
#define KEY_STREAM_WARPS                                                                          \
    {                                                                                             \
        .name = "num_warps", .summary = "warps a block", .field = KEY_FIELD(num_warps), .min = 1, \
        .max = 12, .def = 12, .tag = "w"                                                          \
    }

/* The rows of a turn. */
static void rows_of_turn(ptx *p, const instance *in, const gemv_operands *g, val row, unsigned rows,
                         place addresses[STREAM_ROWS])
{
    bool alike = stream_rows_share_pointers(in);
    addresses[0] = (place){ gemv_row_of_turn(p, g, row, 0, rows), 0 };
    for (unsigned r = 1; r < rows; r++)
        addresses[r] = alike ? (place){ addresses[0].base, (int64_t)(r * g->row_bytes.bits) }
                             : (place){ gemv_row_of_turn(p, g, row, r, rows), 0 };
}

static void build_gemv(ptx *p, const instance *in)
{
    ptx_max_registers(p, stream_registers(in));
    phase(p, "stage x");
    gemv_operands g = gemv_parameters(p, in);
    unsigned rows = (unsigned)in->rows_per_warp, count = rows * (unsigned)in->shape.m;
    val first = mul(p, stream_warp(p), rows), stride = mul(p, stream_warps(p), rows);
    stream s = stream_begin(p, in, &g, rows, &g.factors);
    PTX_FOR (p, row, first, g.n, stride) {
        place addresses[STREAM_ROWS];
        val sums[STREAM_ROWS * MAX_VECTORS];
        rows_of_turn(p, in, &g, row, rows, addresses);
        stream_add(p, &s, addresses);
        phase(p, "reduce and store");
        for (unsigned i = 0; i < count; i++)
            sums[i] = get(p, s.sums[i]);
        spread_sums spread = block_sum_spread(p, sums, count, 1);
        gemv_store_turn(p, &g, row, rows, s.vectors, spread);
    }
}

static void build_gate_up(ptx *p, const instance *in)
{
    enum { MATRICES = 2 };
    ptx_max_registers(p, stream_registers(in));
    phase(p, "stage x");
    gemv_operands g[MATRICES];
    g[0] = gemv_of(p, in, "y", "wg", "x");
    g[1] = gemv_of(p, in, "y", "wu", "x");
    val first = stream_warp(p), stride = stream_warps(p), factors = { 0 };
    stream s = stream_begin(p, in, &g[0], MATRICES, &factors);
    PTX_FOR (p, row, first, g[0].n, stride) {
        place addresses[STREAM_ROWS];
        for (int i = 0; i < MATRICES; i++)
            addresses[i] = (place){ gemv_row(p, &g[i], row), 0 };
        stream_add(p, &s, addresses);
        phase(p, "reduce, activate and store");
        for (unsigned v = 0; v < s.vectors; v++) {
            val gate = warp_sum(p, get(p, s.sums[MATRICES * v]));
            val up = warp_sum(p, get(p, s.sums[MATRICES * v + 1]));
            if (factors.kind) {
                val factor = ld_shared(p, F32, factors, v * F32_BYTES);
                gate = mul(p, gate, factor);
                up = mul(p, up, factor);
            }
            val vector_row = gemv_vector_row(p, &g[0], imm(U32, v));
            val y = g[0].m.kind ? add(p, g[0].y, shl(p, mul_wide(p, vector_row, g[0].n), 2))
                                : add(p, g[0].y, (long long)v * in->shape.n * F32_BYTES);
            PTX_IF (p, eq(p, lane_id(p), 0))
                PTX_IF (p, gemv_vector_exists(p, &g[0], vector_row))
                    st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0,
                              gated(p, in->options.activation, gate, up));
        }
    }
}

static int64_t step_values(const instance *in)
{
    return stream_step_values(instance_weights(in));
}

static int64_t step_bytes(const instance *in)
{
    return stream_step_bytes(instance_weights(in));
}

static int64_t table_bytes(const instance *in)
{
    return stream_table_bytes(instance_weights(in));
}

static const derived_size tile_sizes[] = {
    GEMV_VECTORS,
    { "step_values", step_values,
      "1024 or 2048, or what 512 bytes of floats are: values staged together" },
    { "step_bytes", step_bytes, "1.25 to 1.625 a value, of floats 4: bytes that they take" },
    { "table_bytes", table_bytes, "of formats with a grid: bytes of the tables ahead of them" },
    { NULL, NULL, NULL },
};

/* The sums of squares and the factors of a norm. */
#define STREAM_LAUNCH(rows_of_turn)                                                  \
    {                                                                                \
        .block = "32*num_warps",                                                     \
        .grid = { "min(ceil_div(n, " rows_of_turn "), sm_count*2)", GEMV_GRID_Y },   \
        .shared = "norm*4*vectors*(num_warps+1)",                                    \
        .dynamic_shared = "table_bytes+vectors*ceil_div(k, step_values)*step_bytes", \
        .sizes = tile_sizes, .rows = rows_of_turn, .registers = 160                  \
    }

const family stream_gemv = {
    .name = "stream_gemv",
    .summary = "streaming GEMV of f32 x, which is rounded to 8 bits for quantized weights",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F32,
    .quantizes = true,
    .preference = 20,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), KEY_ROWS,
                           KEY_STREAM_WARPS, KEY_ROWS_PER_WARP, KEYS_AROUND_PRODUCT, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = STREAM_LAUNCH("num_warps*rows_per_warp"),
    .build = build_gemv,
    .reference = ref_gemv_quantizing,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family stream_gate_up = {
    .name = "stream_gate_up",
    .summary = "streaming gate and up of f32 x, with the activation: x rounded as by stream_gemv",
    .computes = "y[m,n] = activation(x[m,k] Wg[n,k]^T) * (x[m,k] Wu[n,k]^T)",
    .op = OP_GATE_UP_SWIGLU,
    .activations = FORMAT_F32,
    .quantizes = true,
    .preference = 20,
    .keys = (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), KEY_ROWS,
                           KEY_STREAM_WARPS, KEY_ACTIVATION, KEYS_NORM, KEY_END },
    .params =
        (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k"), WEIGHTS(wu, "n*k"),
                         IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16), PARAM_END },
    .launch = STREAM_LAUNCH("num_warps"),
    .build = build_gate_up,
    .reference = ref_gate_up_swiglu_quantizing,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};
