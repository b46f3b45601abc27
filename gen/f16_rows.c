/* Rows of x as f16, with what each is to be multiplied by: what products on the tensor cores take
 * (blocks/gemm.h), once for all their blocks.
 *
 *   rows[m] = x[m] gamma 2^e    factors[m] = 2^-e / sqrt(mean(x[m]^2) + epsilon)
 *
 * or without a norm x[m] 2^e and 2^-e. e is 0 where the largest value of x[m] gamma is at least 1
 * and less than 2^15; else it brings that to 2^14 .. 2^15, so that nothing finite overflows.
 *
 * A block has a row, a thread pieces of four columns, a block's width apart. It keeps them in
 * registers where they are few, else reads them again. The order in which squares are added up
 * depends on k alone. A mean square that is infinite makes the factor NaN.
 */
#include "gen/blocks/norm.h"
#include "gen/blocks/powers.h"
#include "gen/blocks/q8_1.h"
#include "gen/blocks/reduce.h"
#include "gen/product_keys.h"
#include "family/formula.h"

enum { PIECE = 4, MOST_KEPT = 4, WARP = 32, HALF_BYTES = 2, PAIR_BYTES = 2 * F32_BYTES };

typedef struct row {
    const instance *in;
    unsigned warps, pieces; /* of the block, and of a thread */
    val column;             /* the thread's first */
    val x, gamma, to;       /* from there on: in the row, and in that of the result */
    var largest, squares;   /* the bits of the largest value, and a sum */
    val power;              /* that the row is multiplied by */
    var kept[MOST_KEPT][PIECE];
} row;

/* A piece of a thread: its number, or where pieces are not kept how many columns it is behind the
 * first one. */
typedef struct piece {
    unsigned number;
    val behind;
} piece;

typedef void pass(ptx *p, const row *r, piece at);

static bool keeps(const row *r)
{
    return r->pieces <= MOST_KEPT;
}

static unsigned columns_of_piece(const row *r)
{
    return r->warps * WARP * PIECE;
}

static val place(ptx *p, const piece *at, val base, unsigned bytes)
{
    return at->behind.kind ? add(p, base, mul_wide(p, at->behind, bytes)) : base;
}

static int64_t offset(const row *r, const piece *at, unsigned bytes)
{
    return (int64_t)at->number * columns_of_piece(r) * bytes;
}

static val4 load(ptx *p, const row *r, piece at, val base)
{
    return ld_const_v4(p, F32, place(p, &at, base, F32_BYTES), offset(r, &at, F32_BYTES));
}

static void over_pieces(ptx *p, const row *r, const char *what, pass *take)
{
    unsigned k = (unsigned)r->in->shape.k, step = columns_of_piece(r);
    phase(p, what);
    if (!keeps(r)) {
        PTX_FOR (p, column, r->column, k, step)
            take(p, r, (piece){ .behind = sub(p, column, r->column) });
        return;
    }
    for (unsigned i = 0; i < r->pieces; i++)
        PTX_IF (p, (i + 1) * step <= k ? imm(PRED, 1) : lt(p, r->column, k - i * step))
            take(p, r, (piece){ .number = i });
}

static val4 normed(ptx *p, const row *r, piece at, val4 x)
{
    if (!r->in->options.norm)
        return x;
    val4 gamma = load(p, r, at, r->gamma);
    for (unsigned i = 0; i < PIECE; i++)
        x.v[i] = mul(p, x.v[i], gamma.v[i]);
    return x;
}

static void see(ptx *p, const row *r, piece at)
{
    val4 x = load(p, r, at, r->x);
    for (unsigned i = 0; r->in->options.norm && i < PIECE; i++)
        assign(p, r->squares, fma(p, x.v[i], x.v[i], r->squares));
    x = normed(p, r, at, x);
    assign(p, r->largest, q8_largest(p, get(p, r->largest), x.v, PIECE));
    for (unsigned i = 0; keeps(r) && i < PIECE; i++)
        assign(p, r->kept[at.number][i], x.v[i]);
}

/* Those of the block, in all threads; squares only where there is a norm. */
typedef struct seen {
    val largest, squares;
} seen;

static seen of_warp(ptx *p, const row *r, var largest, var squares)
{
    return (seen){ warp_max(p, get(p, largest)),
                   r->in->options.norm ? warp_sum(p, get(p, squares)) : imm(F32, 0) };
}

static seen combine(ptx *p, const row *r)
{
    seen s = of_warp(p, r, r->largest, r->squares);
    if (r->warps == 1)
        return s;
    val parts = shared_array(p, "parts", F32, 2 * r->warps), lane = lane_id(p);
    var largest = var_u32(p, 0), squares = var_f32(p, 0.0f);
    PTX_IF (p, eq(p, lane, 0)) {
        val own = mad(p, warp_id(p), PAIR_BYTES, parts);
        st_shared(p, U32, own, 0, s.largest);
        st_shared(p, F32, own, F32_BYTES, s.squares);
    }
    barrier(p);
    PTX_IF (p, lt(p, lane, r->warps)) {
        val2 part = ld_shared_v2(p, F32, mad(p, lane, PAIR_BYTES, parts), 0);
        assign(p, largest, bits_as(p, U32, part.v[0]));
        assign(p, squares, part.v[1]);
    }
    return of_warp(p, r, largest, squares);
}

static void find_power(ptx *p, row *r)
{
    seen s = combine(p, r);
    val exponent = power_for_halves(p, s.largest), factor = inverse_of_power(p, exponent);
    if (r->in->options.norm) {
        val mean = div(p, s.squares, (float)r->in->shape.k);
        factor = mul(p, factor, norm_factor_or_nan(p, r->in, mean));
    }
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, ctaid_x(p), F32_BYTES, parameter(p, "factors")), 0, factor);
    r->power = named(p, "power", power_of_two(p, exponent));
}

static void store(ptx *p, const row *r, piece at)
{
    val4 x;
    for (unsigned i = 0; keeps(r) && i < PIECE; i++)
        x.v[i] = get(p, r->kept[at.number][i]);
    if (!keeps(r))
        x = normed(p, r, at, load(p, r, at, r->x));
    for (unsigned i = 0; i < PIECE; i++)
        x.v[i] = mul(p, x.v[i], r->power);
    st_global_v2(p, U32, place(p, &at, r->to, HALF_BYTES), offset(r, &at, HALF_BYTES),
                 ((val2){ { pack_halves(p, x.v[0], x.v[1]), pack_halves(p, x.v[2], x.v[3]) } }));
}

static row row_new(ptx *p, const instance *in)
{
    row r = { .in = in, .warps = (unsigned)formula_value("warps", in, NULL) };
    unsigned k = (unsigned)in->shape.k;
    r.pieces = (k + columns_of_piece(&r) - 1) / columns_of_piece(&r);
    r.column = named(p, "column", mul(p, tid_x(p), PIECE));
    val behind = mul_wide(p, r.column, F32_BYTES);
    r.x = add(p, parameter(p, "x"), add(p, mul_wide(p, ctaid_x(p), k * F32_BYTES), behind));
    r.to = mad_wide(p, ctaid_x(p), k * HALF_BYTES, parameter(p, "rows"));
    r.to = mad_wide(p, r.column, HALF_BYTES, r.to);
    if (in->options.norm)
        r.gamma = add(p, parameter(p, "gamma"), behind);
    r.largest = var_u32(p, 0);
    r.squares = var_f32(p, 0.0f);
    for (unsigned i = 0; i < r.pieces && keeps(&r); i++)
        for (int j = 0; j < PIECE; j++)
            r.kept[i][j] = var_f32(p, 0.0f);
    return r;
}

static void build(ptx *p, const instance *in)
{
    row r = row_new(p, in);
    over_pieces(p, &r, "largest value", see);
    find_power(p, &r);
    over_pieces(p, &r, "store rows", store);
}

static const key keys[] = {
    { .name = "k",
      .summary = "columns of x",
      .field = KEY_FIELD(shape.k),
      .min = PIECE,
      .max = 1 << 24,
      .multiple_of = PIECE,
      .required = true,
      .tag = "k" },
    KEY_ROW_COUNT,
    KEYS_NORM,
    KEY_END,
};
static const param params[] = { OUT(F16, rows, "m*k", 8), OUT(F32, factors, "m", 4),
                                IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16),
                                PARAM_END };
static const term terms[] = { { "warps", "min(32, ceil_div(k, 128))" }, { NULL, NULL } };

const family f16_rows = {
    .name = "f16_rows",
    .summary = "rows of x as f16 and what they are multiplied by, with a norm: see mma_gemm_f16",
    .computes = "rows[m,k] = f16(x[m,k] 2^e[m]), factors[m] = 2^-e[m], with norm / rms(x[m])",
    .op = OP_F16_ROWS,
    .sm = 80,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "8*warps*min(1, warps - 1)",
                .terms = terms,
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .build = build,
    .reference = ref_f16_rows,
    .tolerance = 1e-6,
};
