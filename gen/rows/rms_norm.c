/* RMS norm of rows, with an optional residual addition before or after it:
 *
 *   residual = none                y = norm(x) gamma
 *   residual = add                 h_out = h + scale x, y = norm(h_out) gamma
 *   residual = post_norm           h_out = h + scale norm(x) gamma
 *   residual = post_and_pre_norm   h_out = h + scale norm(x) gamma, y = norm(h_out) next_gamma
 *
 * where norm(x) = x / sqrt(mean(x^2) + epsilon). With gamma = none, gamma counts as 1. With
 * num_groups = g, row r has the weights of row r % g of gamma [g,k]: m / g rows of g groups, each
 * with a norm of its own. With out_scale = input, h_out is multiplied by out_scale[0]; y is then the
 * norm of the product.
 *
 * A block normalizes one row. A thread has pieces of four columns, one block width apart. If there
 * are few, it keeps them in registers between passes, else it loads them again. No thread reads
 * what another thread writes, and each reads an element before it writes that index: h_out may
 * alias h, and y may alias x.
 *
 * The order of additions depends only on k. If the mean square is infinite or NaN, the whole row is
 * NaN. */
#include "gen/common/reduce.h"
#include "gen/common/row_pieces.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { PIECE = PIECE_COLUMNS, PIECE_BYTES = PIECE * F32_BYTES, MOST_EARLY = 2 };

/* Operands of the passes after the first. For at most MOST_EARLY pieces they are loaded before all
 * passes, so that no load is waited for after the barrier. */
typedef enum addend { GAMMA, NEXT_GAMMA, H, ADDENDS } addend;

typedef struct norm {
    const instance *in;
    row_pieces row;
    val y, h_out, x;      /* addresses of the thread's first column; no kind if unused */
    val addends[ADDENDS]; /* addresses of the operands, likewise */
    val out_scale;        /* factor of h_out; no kind if unused */
    val factor;           /* factor of the last norm */
    var squares;          /* the thread's sum of squares */
    val sums;             /* warps' sums in shared memory, [norms, warps] */
    var early[ADDENDS][MOST_EARLY][PIECE];
} norm;

static bool has_gamma(const instance *in)
{
    return in->options.gamma == GAMMA_INPUT;
}

/* Loads an operand. This kernel may write h; it does not write the weights. */
static val4 load_addend(ptx *p, const norm *n, row_piece at, addend a)
{
    return (a == H ? row_piece_load : row_piece_weights)(p, &n->row, &at, n->addends[a]);
}

static void load_early(ptx *p, void *context, row_piece at)
{
    const norm *n = context;
    for (int a = 0; a < ADDENDS; a++) {
        if (!n->addends[a].kind)
            continue;
        val4 values = load_addend(p, n, at, (addend)a);
        for (int i = 0; i < PIECE; i++)
            assign(p, n->early[a][at.number][i], values.v[i]);
    }
}

/* Returns an operand's piece; nothing if the operand is unused. */
static val4 addend_of(ptx *p, const norm *n, row_piece at, addend a)
{
    val4 values = { { { 0 } } };
    if (!n->addends[a].kind)
        return values;
    if (n->row.count > MOST_EARLY)
        return load_addend(p, n, at, a);
    for (int i = 0; i < PIECE; i++)
        values.v[i] = get(p, n->early[a][at.number][i]);
    return values;
}

/* Stores h_out, multiplied by its factor. Returns what it stores. */
static val4 store_h_out(ptx *p, const norm *n, row_piece at, val4 values)
{
    for (int i = 0; i < PIECE && n->out_scale.kind; i++)
        values.v[i] = mul(p, values.v[i], n->out_scale);
    row_piece_store(p, &n->row, &at, n->h_out, values);
    return values;
}

static void keep(ptx *p, const norm *n, row_piece at, val4 values)
{
    for (int i = 0; i < PIECE; i++)
        assign(p, n->squares, fma(p, values.v[i], values.v[i], n->squares));
    row_piece_keep(p, &n->row, &at, values);
}

static void take_x(ptx *p, void *context, row_piece at)
{
    const norm *n = context;
    val4 values = row_piece_load(p, &n->row, &at, n->x);
    if (n->in->options.residual == RESIDUAL_ADD) {
        val4 h = addend_of(p, n, at, H);
        float scale = (float)n->in->options.scale;
        for (int i = 0; i < PIECE; i++)
            values.v[i] =
                scale > 0 ? fma(p, values.v[i], scale, h.v[i]) : add(p, h.v[i], values.v[i]);
        values = store_h_out(p, n, at, values);
    }
    keep(p, n, at, values);
}

static void add_normed(ptx *p, void *context, row_piece at)
{
    const norm *n = context;
    val4 values = row_piece_again(p, &n->row, &at, n->x), h = addend_of(p, n, at, H);
    val4 gamma = addend_of(p, n, at, GAMMA);
    for (int i = 0; i < PIECE; i++)
        values.v[i] = has_gamma(n->in) ? fma(p, mul(p, values.v[i], n->factor), gamma.v[i], h.v[i])
                                       : fma(p, values.v[i], n->factor, h.v[i]);
    keep(p, n, at, store_h_out(p, n, at, values));
}

static void store_normed(ptx *p, void *context, row_piece at)
{
    const norm *n = context;
    bool second = n->in->options.residual == RESIDUAL_POST_AND_PRE_NORM;
    val4 values = row_piece_again(p, &n->row, &at, n->h_out.kind ? n->h_out : n->x);
    val4 gamma = addend_of(p, n, at, second ? NEXT_GAMMA : GAMMA);
    for (int i = 0; i < PIECE; i++) {
        values.v[i] = mul(p, values.v[i], n->factor);
        if (second || has_gamma(n->in))
            values.v[i] = mul(p, values.v[i], gamma.v[i]);
    }
    row_piece_store(p, &n->row, &at, n->y, values);
}

/* Computes the norm's factor and resets the sum of squares. The factor of a post-norm includes
 * scale. */
static void finish_norm(ptx *p, norm *n, unsigned number)
{
    val sum = row_pieces_sum(p, &n->row, n->sums, number, get(p, n->squares));
    val mean = div(p, sum, (float)n->in->shape.k);
    val factor = norm_factor_or_nan(p, n->in, mean);
    if (!number && n->in->options.residual >= RESIDUAL_POST_NORM && n->in->options.scale > 0)
        factor = mul(p, factor, (float)n->in->options.scale);
    n->factor = named(p, "factor", factor);
    assign(p, n->squares, 0.0f);
}

static int64_t norm_count(const instance *in)
{
    return in->options.residual == RESIDUAL_POST_AND_PRE_NORM ? 2 : 1;
}

static norm norm_new(ptx *p, const instance *in)
{
    int64_t residual = in->options.residual;
    norm n = { .in = in, .row = row_pieces_new(p, in) };
    val behind = mul_wide(p, tid_x(p), PIECE_BYTES);
    val row = add(p, mul_wide(p, ctaid_x(p), n.row.columns * F32_BYTES), behind);
    n.x = add(p, parameter(p, "x"), row);
    if (has_gamma(in))
        n.addends[GAMMA] = add(p, parameter(p, "gamma"), behind);
    if (has_gamma(in) && in->shape.num_groups > 1)
        n.addends[GAMMA] = mad_wide(p, rem(p, ctaid_x(p), (unsigned)in->shape.num_groups),
                                    n.row.columns * F32_BYTES, n.addends[GAMMA]);
    if (residual != RESIDUAL_POST_NORM)
        n.y = add(p, parameter(p, "y"), row);
    if (residual == RESIDUAL_POST_AND_PRE_NORM)
        n.addends[NEXT_GAMMA] = add(p, parameter(p, "next_gamma"), behind);
    if (residual != RESIDUAL_NONE) {
        n.addends[H] = add(p, parameter(p, "h"), row);
        n.h_out = add(p, parameter(p, "h_out"), row);
    }
    if (residual != RESIDUAL_NONE && in->options.out_scale)
        n.out_scale = named(p, "out_scale", ld_const(p, F32, parameter(p, "out_scale"), 0));
    n.squares = var_f32(p, 0.0f);
    if (n.row.warps > 1)
        n.sums = shared_array(p, "sums", F32, (unsigned)norm_count(in) * n.row.warps);
    row_pieces_make_room(p, &n.row);
    for (unsigned i = 0; i < n.row.count && n.row.count <= MOST_EARLY; i++)
        for (int j = 0; j < ADDENDS * PIECE; j++)
            if (n.addends[j / PIECE].kind)
                n.early[j / PIECE][i][j % PIECE] = var_f32(p, 0.0f);
    return n;
}

static void over_pieces(ptx *p, norm *n, const char *what, row_pass *pass)
{
    phase(p, what);
    row_pieces_each(p, &n->row, pass, n);
}

static void rms_norm_build(ptx *p, const instance *in)
{
    norm n = norm_new(p, in);
    if (n.row.count <= MOST_EARLY)
        over_pieces(p, &n, "load weights and h", load_early);
    over_pieces(p, &n, "sum of squares", take_x);
    finish_norm(p, &n, 0);
    if (in->options.residual >= RESIDUAL_POST_NORM)
        over_pieces(p, &n, "add to h", add_normed);
    if (in->options.residual == RESIDUAL_POST_NORM)
        return;
    if (in->options.residual == RESIDUAL_POST_AND_PRE_NORM)
        finish_norm(p, &n, 1);
    over_pieces(p, &n, "store y", store_normed);
}

static const choice residual_forms[] =
    CHOICES([RESIDUAL_NONE] = { "none", "" }, [RESIDUAL_ADD] = { "add", "_residual" },
            [RESIDUAL_POST_NORM] = { "post_norm", "_post" },
            [RESIDUAL_POST_AND_PRE_NORM] = { "post_and_pre_norm", "_post_pre" });

#define OF_RESIDUALS(values) .only_with = KEY_FIELD(options.residual), .only_of = (values)
#define BIT_OF(form)         (UINT64_C(1) << RESIDUAL_##form)

const family rms_norm = {
    .name = "rms_norm",
    .summary = "RMS norm of rows, with an addition to h before or after it",
    .computes = "y[m,k] = rmsnorm(x[m,k]) * gamma[k], with residual also h_out = h + ...",
    F32_FAMILY(OP_RMS_NORM, rms_norm_build, ref_rms_norm, 2e-7),
    .keys =
        KEYS(KEY_PIECE_COLUMNS, KEY_ROW_COUNT,
             KEY_WORD("residual", "addition to h, before or after the norm", options.residual,
                      residual_forms),
             KEY_EPSILON,
             KEY_REAL("scale", "factor of the addend of h", options.scale, "scale", factor_range,
                      .only_with = KEY_FIELD(options.residual)),
             KEY_OPTION(gamma, "none: the first norm has no weights"),
             KEY_WORD("out_scale", "input: h_out is multiplied by out_scale[0]", options.out_scale,
                      out_scale_choices, .only_with = KEY_FIELD(options.residual)),
             KEY_NUMBER("num_groups", "rows of gamma, in turn; 0: one", shape.num_groups, 0, 65535,
                        .zero_is_none = true, .tag = "g")),
    .params = PARAMS(
        OUT(F32, y, "m*k", 16,
            OF_RESIDUALS(BIT_OF(NONE) | BIT_OF(ADD) | BIT_OF(POST_AND_PRE_NORM))),
        OUT(F32, h_out, "m*k", 16, .only_with = KEY_FIELD(options.residual)),
        IN(F32, gamma, "k*max(1, num_groups)", 16, .only_with = KEY_FIELD(options.gamma),
           .only_of = UINT64_C(1) << GAMMA_INPUT),
        IN(F32, next_gamma, "k", 16, OF_RESIDUALS(BIT_OF(POST_AND_PRE_NORM))),
        IN(F32, x, "m*k", 16), IN_WHERE(residual, F32, h, "m*k", 16),
        IN_WHERE(out_scale, F32, out_scale, "1", 4, .also_with = KEY_FIELD(options.residual))),
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "4*norms*warps*min(1, warps - 1)",
                .terms = row_pieces_terms,
                .sizes =
                    SIZES({ "norms", norm_count, "2 with residual = post_and_pre_norm, else 1" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
};
