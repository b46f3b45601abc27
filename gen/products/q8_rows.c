/* Rows of x in 8 bits, with a factor per row: the input of streaming products
 * (products/stream_plan.h), quantized once for all their blocks.
 *
 *   rows[m] = q8_f32(x[m] gamma)    factors[m] = 1 / sqrt(mean(x[m]^2) + epsilon)
 *
 * or without a norm q8_f32(x[m]) and 1. A block of q8_f32 is 32 values in 36 bytes:
 *
 *   offset  0  f32  d        value = d * q, d = amax / 127 of an amax of at least 1e-30
 *           4  32 x s8       q, rounded to nearest even
 *
 * stream_gemv and its relatives compute the same integers, scales and factors from f32 x, so
 * results have the same bits either way. One difference: if the sum of squares overflows f32, the
 * factor here is NaN.
 *
 * A warp quantizes chunks of 512 values, as q8_1.h draws them. With a norm a block has a row and
 * sums its squares. Without a norm long rows are split over blocks, one chunk per warp. */
#include "gen/common/reduce.h"
#include "gen/common/q8_1.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { CHUNK = WARP * Q8_LANE_VALUES };

typedef struct row {
    const instance *in;
    val x, gamma, to; /* gamma VAL_NONE: no norm */
    val sums;         /* shared memory: sums of squares of chunks */
} row;

/* Quantizes a chunk. Lanes past the row's end load its last values; norms count them as 0. */
static void add_chunk(ptx *p, const row *r, val chunk)
{
    unsigned lines = (unsigned)r->in->shape.k / Q8_F32_VALUES;
    q8_lane_place at = q8_lane_place_of(p, &q8_usual_bits);
    q8_lines of = q8_lines_of_chunk(p, &at, chunk, lines, lines % Q8_LINES);
    val x[Q8_LANE_VALUES], gamma[Q8_LANE_VALUES], q[Q8_WORDS];
    q8_load_lines(p, &at, &of, r->x, x);
    if (r->gamma.kind) {
        q8_load_lines(p, &at, &of, r->gamma, gamma);
        for (unsigned i = 0; i < Q8_LANE_VALUES; i++)
            x[i] = select(p, of.exists[i / Q8_WORDS], x[i], imm(F32, 0));
        val sum = norm_chunk_squares(p, x, Q8_LANE_VALUES, at.bits);
        for (unsigned i = 0; i < Q8_LANE_VALUES; i++)
            x[i] = mul(p, x[i], gamma[i]);
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, mad(p, chunk, imm(U32, F32_BYTES), r->sums), 0, sum);
    }
    val d = q8_quantize_chunk(p, &at, x, q), word = mad(p, at.half, Q8_WORDS, at.word);
    for (unsigned i = 0; i < Q8_WORDS; i++)
        PTX_IF (p, of.exists[i]) {
            val block = add(p, mad_wide(p, of.line[i], Q8_F32_BYTES, r->to),
                            (int64_t)of.further[i] * Q8_F32_BYTES);
            st_global(p, S32, mad_wide(p, word, F32_BYTES, block), Q8_F32_QUANTS, q[i]);
            PTX_IF (p, eq(p, word, i)) /* the lane has d of this line */
                st_global(p, F32, block, Q8_F32_D, d);
        }
}

static void build(ptx *p, const instance *in)
{
    uint64_t k = (uint64_t)in->shape.k;
    unsigned warps = ptx_block(p) / WARP, chunks = ((unsigned)k + CHUNK - 1) / CHUNK;
    val number = ctaid_x(p), first = warp_id(p);
    row r = { .in = in,
              .x = mad_wide(p, number, (int64_t)format_bytes(FORMAT_F32, k), parameter(p, "x")),
              .to = mad_wide(p, number, (int64_t)format_bytes(FORMAT_Q8_F32, k),
                             parameter(p, "rows")) };
    if (in->options.norm) {
        r.gamma = parameter(p, "gamma");
        r.sums = shared_array(p, "squares", F32, chunks);
    }
    phase(p, "quantize a row");
    if (in->options.norm) {
        PTX_FOR (p, chunk, first, chunks, warps)
            add_chunk(p, &r, chunk);
        barrier(p);
    } else {
        if (chunks > warps)
            first = mad(p, ctaid_y(p), warps, first);
        PTX_IF (p, lt(p, first, chunks))
            add_chunk(p, &r, first);
    }
    phase(p, "store the row's factor");
    PTX_IF (p, eq(p, first, 0)) {
        val factor = V(1.0f);
        if (in->options.norm)
            factor = norm_factor_or_nan(p, in, norm_mean_of_chunks(p, in, r.sums, chunks));
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_global(p, F32, mad_wide(p, number, F32_BYTES, parameter(p, "factors")), 0, factor);
    }
}

/* One warp per chunk, up to 16; more chunks need several blocks, except with a norm. */
const family q8_rows = {
    .name = "q8_rows",
    .summary =
        "rows of x in 8 bits with a factor per row, with a norm if wanted: for stream_gemv_q8",
    .computes = "rows[m,k] = q8_f32(x[m,k]), factors[m] = 1, with norm 1 / rms(x[m])",
    F32_FAMILY(OP_Q8_ROWS, build, ref_q8_rows, 1e-6),
    .keys = KEYS(KEY_NUMBER("k", "columns of x", shape.k, Q8_F32_VALUES, INT32_MAX,
                            .multiple_of = Q8_F32_VALUES, .required = true, .at_run_time = true,
                            .tag = "k"),
                 KEY_ROW_COUNT, KEYS_NORM),
    .params = PARAMS(OUT(Q8_F32, rows, "m*k", 4), OUT(F32, factors, "m", 4), IN(F32, x, "m*k", 16),
                     IN_WHERE(norm, F32, gamma, "k", 16)),
    .launch = { .block = "32*warps",
                .grid = { "m", "parts" },
                .shared = "norm*4*chunks",
                .terms = TERMS({ "chunks", "ceil_div(k, 512)" }, { "warps", "min(chunks, 16)" },
                               { "parts", "ceil_div(chunks, warps)*(1-norm)+norm" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
};
