/* Rows of x as f16, with a factor per row: the input of tensor-core products
 * (products/gemm_tile.h), rounded once for all their blocks.
 *
 *   rows[m] = x[m] gamma 2^e    factors[m] = 2^-e / sqrt(mean(x[m]^2) + epsilon)
 *
 * or without a norm x[m] 2^e and 2^-e. e is 0 if the largest value of x[m] gamma is in [1, 2^15).
 * Otherwise e brings it to 2^14 .. 2^15, so that nothing finite overflows.
 *
 * A block computes a row; a thread has pieces of four columns, a block's width apart. Few pieces
 * stay in registers, more are read twice. The order of the squares' sum depends on k only. An
 * infinite mean square makes the factor NaN. */
#include "gen/common/halves.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/common/row_pieces.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { PIECE = PIECE_COLUMNS, HALF_BYTES = 2, PAIR_BYTES = 2 * F32_BYTES };

typedef struct row {
    const instance *in;
    row_pieces pieces;
    val x, gamma, to;     /* from the thread's first column on; to: in the result */
    var largest, squares; /* bits of the largest value, and sum of squares */
    val power;            /* power of two, the row's factor */
} row;

static val4 normed(ptx *p, const row *r, row_piece at, val4 x)
{
    if (!r->in->options.norm)
        return x;
    val4 gamma = row_piece_weights(p, &r->pieces, &at, r->gamma);
    for (unsigned i = 0; i < PIECE; i++)
        x.v[i] = mul(p, x.v[i], gamma.v[i]);
    return x;
}

static void measure_piece(ptx *p, void *context, row_piece at)
{
    const row *r = context;
    val4 x = row_piece_weights(p, &r->pieces, &at, r->x);
    for (unsigned i = 0; r->in->options.norm && i < PIECE; i++)
        assign(p, r->squares, fma(p, x.v[i], x.v[i], r->squares));
    x = normed(p, r, at, x);
    assign(p, r->largest, q8_largest(p, get(p, r->largest), x.v, PIECE));
    row_piece_keep(p, &r->pieces, &at, x);
}

/* Largest value and squares of the block, in all threads; squares only with a norm. */
typedef struct row_stats {
    val largest, squares;
} row_stats;

static row_stats of_warp(ptx *p, const row *r, var largest, var squares)
{
    return (row_stats){ warp_max(p, get(p, largest)),
                        r->in->options.norm ? warp_sum(p, get(p, squares)) : imm(F32, 0) };
}

static void find_power(ptx *p, row *r)
{
    row_stats s = of_warp(p, r, r->largest, r->squares);
    if (r->pieces.warps > 1) {
        val parts = shared_array(p, "parts", F32, 2 * r->pieces.warps), lane = lane_id(p);
        var largest = var_u32(p, 0), squares = var_f32(p, 0.0f);
        PTX_IF (p, eq(p, lane, 0)) {
            val own = mad(p, warp_id(p), PAIR_BYTES, parts);
            st_shared(p, U32, own, 0, s.largest);
            st_shared(p, F32, own, F32_BYTES, s.squares);
        }
        barrier(p);
        PTX_IF (p, lt(p, lane, r->pieces.warps)) {
            val2 part = ld_shared_v2(p, F32, mad(p, lane, PAIR_BYTES, parts), 0);
            assign(p, largest, bits_as(p, U32, part.v[0]));
            assign(p, squares, part.v[1]);
        }
        s = of_warp(p, r, largest, squares);
    }
    val exponent = power_for_halves(p, s.largest), factor = inverse_of_power(p, exponent);
    if (r->in->options.norm) {
        val mean = div(p, s.squares, (float)r->in->shape.k);
        factor = mul(p, factor, norm_factor_or_nan(p, r->in, mean));
    }
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, ctaid_x(p), F32_BYTES, parameter(p, "factors")), 0, factor);
    r->power = named(p, "power", power_of_two(p, exponent));
}

static void store(ptx *p, void *context, row_piece at)
{
    const row *r = context;
    val4 x;
    if (row_pieces_are_few(&r->pieces))
        x = row_piece_kept(p, &r->pieces, &at);
    else
        x = normed(p, r, at, row_piece_weights(p, &r->pieces, &at, r->x));
    for (unsigned i = 0; i < PIECE; i++)
        x.v[i] = mul(p, x.v[i], r->power);
    st_global_v2(p, U32, row_piece_address(p, &at, r->to, HALF_BYTES),
                 row_piece_offset(&r->pieces, &at, HALF_BYTES),
                 ((val2){ { pack_halves(p, x.v[0], x.v[1]), pack_halves(p, x.v[2], x.v[3]) } }));
}

static void build(ptx *p, const instance *in)
{
    row r = { .in = in, .pieces = row_pieces_new(p, in) };
    unsigned k = (unsigned)in->shape.k;
    val column_offset = mul_wide(p, r.pieces.first, F32_BYTES);
    r.x = add(p, parameter(p, "x"), add(p, mul_wide(p, ctaid_x(p), k * F32_BYTES), column_offset));
    r.to = mad_wide(p, ctaid_x(p), k * HALF_BYTES, parameter(p, "rows"));
    r.to = mad_wide(p, r.pieces.first, HALF_BYTES, r.to);
    if (in->options.norm)
        r.gamma = add(p, parameter(p, "gamma"), column_offset);
    r.largest = var_u32(p, 0);
    r.squares = var_f32(p, 0.0f);
    row_pieces_make_room(p, &r.pieces);
    phase(p, "largest value and sum of squares");
    row_pieces_each(p, &r.pieces, measure_piece, &r);
    find_power(p, &r);
    phase(p, "store rows");
    row_pieces_each(p, &r.pieces, store, &r);
}

const family f16_rows = {
    .name = "f16_rows",
    .summary = "rows of x as f16 with a factor per row, with a norm if wanted: for mma_gemm_f16",
    .computes = "rows[m,k] = f16(x[m,k] 2^e[m]), factors[m] = 2^-e[m], with norm / rms(x[m])",
    F32_FAMILY(OP_F16_ROWS, build, ref_f16_rows, 1e-6),
    .sm = 80,
    .keys = KEYS(KEY_PIECE_COLUMNS, KEY_ROW_COUNT, KEYS_NORM),
    .params = PARAMS(OUT(F16, rows, "m*k", 8), OUT(F32, factors, "m", 4), IN(F32, x, "m*k", 16),
                     IN_WHERE(norm, F32, gamma, "k", 16)),
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "8*warps*min(1, warps - 1)",
                .terms = row_pieces_terms,
                .overlap = WAITS_FIRST,
                .registers = 64 },
};
