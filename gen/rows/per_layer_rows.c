/* Per-layer embeddings of Gemma's E models: for each token, P = per_layer values for each of k / P
 * layers,
 *
 *   y[layer, m, P] = (a / sqrt(mean(a^2) + epsilon) gamma + scale W[token[m]]) factor
 *
 * with the layer's P values of a and of a row of W. The layers are outermost in y, so that a
 * layer's rows are contiguous.
 *
 * A warp computes a layer of a token; a lane has pieces of eight values. The block first copies its
 * part of the row of W to shared memory in lines of 16 bytes, and unpacks it there, so that each
 * byte is loaded once: W may be host memory that is mapped into the device's address space.
 *
 * Tokens are read from device memory. For a token >= n nothing of W is read, and its values are
 * NaN. They are also NaN where the mean square is infinite or NaN. */
#include "gen/common/next.h"
#include "gen/common/reduce.h"
#include "gen/formats/weight_format.h"
#include "kernel/family.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { WARPS = 4, THREADS = WARPS * WARP, LINE = 16, LINE_VALUES = 4, UNIT = 32 };
enum { MOST_OF_LAYER = 1024, MOST_PIECES = MOST_OF_LAYER / (WARP * UNPACKED) };

typedef struct layer_rows {
    const instance *in;
    unsigned values, pieces; /* values of a layer; pieces of a lane */
    val row, layer, lane;
    val known;  /* the token has a row */
    val staged; /* address of the warp's part of the row in shared memory */
    val piece;  /* index of the layer's first piece there */
    var a[MOST_PIECES * UNPACKED];
} layer_rows;

/* Blocks of a row of W that a block of threads may have to copy. */
static int64_t most_blocks(const instance *in)
{
    int64_t size = formats[instance_weights(in)].block_values, values = in->shape.per_layer * WARPS;
    int64_t blocks = (values + size - 1) / size + (values % size != 0);
    return blocks < in->shape.k / size ? blocks : in->shape.k / size;
}

/* Bytes of shared memory: with unaligned blocks, the first line starts before the first block. */
static int64_t staged_bytes(const instance *in)
{
    const format_info *f = &formats[instance_weights(in)];
    int64_t bytes = most_blocks(in) * f->block_bytes;
    bool aligned = f->block_values == 1 || f->block_bytes % LINE == 0;
    return (bytes + LINE - 1 + (aligned ? 0 : LINE - 1)) / LINE * LINE;
}

/* Copies the block's part of the row of W to shared memory. */
static void stage_row(ptx *p, layer_rows *r)
{
    const format_info *f = &formats[instance_weights(r->in)];
    unsigned columns = (unsigned)r->in->shape.k, size = f->block_values;
    val token_at = mad_wide(p, r->row, sizeof(uint32_t), parameter(p, "tokens"));
    val token = named(p, "token", load_state(p, is_settled(r->in), U32, token_at));
    r->known = lt(p, token, imm(U32, r->in->shape.n));
    val first = mul(p, ctaid_x(p), WARPS * r->values);
    val end = min(p, add(p, first, WARPS * r->values), columns);
    val block = div(p, first, size), end_block = div(p, add(p, end, size - 1), size);
    val row = mad_wide(p, token, columns / size * f->block_bytes, parameter(p, "w"));
    val at = mad_wide(p, block, f->block_bytes, row);
    val start = bit_and(p, convert(p, U32, at), LINE - 1); /* offset in the first line */
    val shared = shared_array(p, "blocks", U32, (unsigned)staged_bytes(r->in) / sizeof(uint32_t));
    val bytes = mad(p, sub(p, end_block, block), f->block_bytes, add(p, start, LINE - 1));
    val lines = select(p, r->known, div(p, bytes, LINE), imm(U32, 0));
    val from = sub(p, at, convert(p, U64, start));
    PTX_FOR (p, line, tid_x(p), lines, THREADS)
        st_shared_v4(p, U32, mad(p, line, LINE, shared), 0,
                     ld_const_v4(p, U32, mad_wide(p, line, LINE, from), 0));
    r->staged = add(p, shared, start);
    r->piece = div(p, sub(p, mul(p, r->layer, r->values), mul(p, block, size)), UNPACKED);
}

/* Returns the index in the layer of a lane's piece, and true if the layer has it. */
static val piece_of(ptx *p, const layer_rows *r, unsigned number)
{
    return add(p, r->lane, number * WARP);
}

static val has_piece(ptx *p, const layer_rows *r, unsigned number)
{
    unsigned end = r->values / UNPACKED;
    return (number + 1) * WARP <= end ? imm(PRED, 1) : lt(p, piece_of(p, r, number), end);
}

/* Loads the lane's values of a. Returns the sum of their squares. */
static val load_a(ptx *p, layer_rows *r)
{
    val group = mad(p, r->row, (unsigned)(r->in->shape.k / r->values), r->layer);
    val from = mad_wide(p, group, r->values * F32_BYTES, parameter(p, "a"));
    var squares = var_f32(p, 0.0f);
    for (unsigned i = 0; i < r->pieces * UNPACKED; i++)
        r->a[i] = var_f32(p, 0.0f);
    for (unsigned i = 0; i < r->pieces; i++)
        PTX_IF (p, has_piece(p, r, i)) {
            val at = mad_wide(p, piece_of(p, r, i), UNPACKED * F32_BYTES, from);
            for (unsigned j = 0; j < UNPACKED; j += LINE_VALUES) {
                val4 four = ld_const_v4(p, F32, at, j * F32_BYTES);
                for (unsigned l = 0; l < LINE_VALUES; l++) {
                    assign(p, r->a[i * UNPACKED + j + l], four.v[l]);
                    assign(p, squares, fma(p, four.v[l], four.v[l], squares));
                }
            }
        }
    return get(p, squares);
}

/* Stores a piece of y: x plus the scaled weights, times the factor of both. */
static void store_piece(ptx *p, const layer_rows *r, val to, const val *x, const val *w)
{
    const problem_options *o = &r->in->options;
    val4 four;
    for (unsigned i = 0; i < UNPACKED; i++) {
        val y = o->scale > 0 ? fma(p, w[i], (float)o->scale, x[i]) : add(p, w[i], x[i]);
        four.v[i % LINE_VALUES] = o->factor > 0 ? mul(p, y, (float)o->factor) : y;
        if (i % LINE_VALUES == LINE_VALUES - 1)
            st_global_v4(p, F32, to, i / LINE_VALUES * LINE, four);
    }
}

static void compute_piece(ptx *p, const layer_rows *r, unsigned number, val factor, val y)
{
    val x[UNPACKED], w[UNPACKED], piece = piece_of(p, r, number);
    val to = mad_wide(p, piece, UNPACKED * F32_BYTES, y);
    val gamma = mad_wide(p, piece, UNPACKED * F32_BYTES, parameter(p, "gamma"));
    for (unsigned i = 0; i < UNPACKED; i += LINE_VALUES) {
        val4 weights = ld_const_v4(p, F32, gamma, i * F32_BYTES);
        for (unsigned j = 0; j < LINE_VALUES; j++)
            x[i + j] =
                mul(p, mul(p, get(p, r->a[number * UNPACKED + i + j]), factor), weights.v[j]);
    }
    PTX_IF (p, r->known) {
        unpack_piece(p, instance_weights(r->in), r->staged, add(p, r->piece, piece), w);
        store_piece(p, r, to, x, w);
    }
    PTX_ELSE (p) {
        for (unsigned i = 0; i < UNPACKED; i++)
            w[i] = bits_as(p, F32, imm(U32, 0x7fffffff));
        store_piece(p, r, to, w, w);
    }
}

static void per_layer_rows_build(ptx *p, const instance *in)
{
    bool early = is_settled(in) && ptx_overlaps(p);
    layer_rows r = { .in = in, .values = (unsigned)in->shape.per_layer };
    r.pieces = (r.values + WARP * UNPACKED - 1) / (WARP * UNPACKED);
    if (!early)
        wait_for_launches(p);
    r.row = named(p, "row", ctaid_y(p));
    r.layer = named(p, "layer", mad(p, ctaid_x(p), WARPS, warp_id(p)));
    r.lane = lane_id(p);
    phase(p, "copy a part of the row of W");
    stage_row(p, &r);
    if (early)
        wait_for_launches(p);
    barrier(p);
    ret_if(p, ge(p, r.layer, (unsigned)(in->shape.k / r.values)));
    phase(p, "norm");
    val sum = warp_sum(p, load_a(p, &r));
    val factor = norm_factor_or_nan(p, in, div(p, sum, (float)r.values));
    phase(p, "add and store");
    val number = mad(p, r.layer, imm(U32, in->shape.m), r.row);
    val y = mad_wide(p, number, r.values * F32_BYTES, parameter(p, "y"));
    for (unsigned i = 0; i < r.pieces; i++)
        PTX_IF (p, has_piece(p, &r, i))
            compute_piece(p, &r, i, factor, y);
}

static const char *check_per_layer_rows(const instance *in, arena *a, const char **blamed)
{
    long long k = in->shape.k, values = in->shape.per_layer;
    *blamed = "k";
    if (k % values)
        return arena_format(a, "k = %lld is not a multiple of per_layer = %lld; use %lld", k,
                            values, (k / values + 1) * values);
    return NULL;
}

const family per_layer_rows = {
    .name = "per_layer_rows",
    .summary = "embedding rows of all layers, plus normed rows of a projection",
    .computes = "y[k/P,m,P] = (rmsnorm(a[m,k]) * gamma[P] + scale W[token[m],k]) * factor",
    .op = OP_PER_LAYER_ROWS,
    .same_bits = true,
    .whole_lines = true,
    .keys = KEYS(
        KEY_WEIGHTS,
        KEY_NUMBER("k", "columns of W: per_layer times the layers", shape.k, UNIT, 1 << 24,
                   .of_weights = true, .multiple_of = UNIT, .required = true, .tag = "k"),
        KEY_NUMBER("per_layer", "values per layer, e.g. 256", shape.per_layer, UNIT, MOST_OF_LAYER,
                   .multiple_of = UNIT, .required = true, .tag = "p"),
        KEY_NUMBER("n", "rows of W", shape.n, 1, PROBLEM_MOST_VOCAB, .required = true, .tag = "n"),
        KEY_ROW_COUNT, KEY_SCALE("factor of W's values, e.g. 16"),
        KEY_REAL("factor", "factor of the sum, e.g. 0.7071", options.factor, "factor",
                 factor_range),
        KEY_EPSILON, KEY_STATE("settled: tokens and W read early")),
    .params = PARAMS(OUT(F32, y, "m*k", 16), WEIGHTS(w, "n*k", .touched = "k"),
                     IN(F32, a, "m*k", 16), IN(F32, gamma, "per_layer", 16),
                     IN(U32, tokens, "m", 4, .random = RANDOM_FITTED, .order = ORDER_SETTLED)),
    .launch = { .block = "128",
                .grid = { "ceil_div(k, 4*per_layer)", "m" },
                .sizes = SIZES({ "staged", staged_bytes, "bytes of the part of a row of W" }),
                .shared = "staged",
                .overlap = WAITS_ITSELF,
                .registers = 64 },
    .check = check_per_layer_rows,
    .build = per_layer_rows_build,
    .fit = ref_fit_tokens,
    .reference = ref_per_layer_rows,
    .tolerance = 2e-7,
};
