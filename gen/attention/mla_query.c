/* The products around latent attention (DeepSeek-AI, "DeepSeek-V2", 2.1, with the keys' matrix
 * absorbed by q). mla_query computes q in the latent space with RoPE and the rows of the cache, in
 * one launch. mla_values computes values from the attention's result.
 *
 * H = num_heads, P = nope, R = n_rope, L = latent. Layouts:
 *
 *   qc   [m, H (P + R) + L + R], a row of the previous product; each head starts with its P values
 *        without RoPE. With q_rank [m, q_rank + L + R]: a head's q is Wq[h] [P + R, q_rank] times
 *        the RMS norm of the q_rank values. With inputs = apart qc is [m, H (P + R)] and
 *        kv is [m, L + R]
 *   q    [m, H, L + R]: per head W[h] [L, P] times the P values, then the R rotated values
 *   c    m addresses of caches [max_seq_len, L + R]: at a row's position the RMS norm of the L
 *        values, then the R rotated values, rounded last
 *
 * A row with a position >= max_seq_len leaves the cache unchanged: its sequence is full, or (2^32 -
 * 1) it has none.
 *
 * A block computes a part of a head's latents for up to 8 rows, so that a weight is unpacked once
 * for them. With q_rank it computes all latents of a head, since it first computes the head's q.
 * The last block of each group of 8 rows writes the rows of the cache, one per warp. Only sums are
 * rounded, to f32.
 *
 * mla_values multiplies o [m, H, L] by W [H * value_dim, L] to y [m, H, value_dim], one or several
 * rows per warp, without quantization.
 */
#include "gen/common/next.h"
#include "gen/common/reduce.h"
#include "gen/rows/rope.h"
#include "gen/products/row_products.h"
#include "gen/formats/weight_format.h"
#include "gen/attention/mla.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum {
    WARPS = 8,
    ADDRESS_BYTES = 8,
    PART_LATENTS = 128, /* latents per block, without q_rank */
    MOST_LATENT_PARTS = MLA_MOST_LATENT / HEAD_PART,
};

/* Returns an instance with heads of n_rope values, all rotated. */
static instance of_rope(const instance *in)
{
    instance head = *in;
    head.shape.head_dim = head.options.rope.dims = in->shape.n_rope;
    return head;
}

static unsigned head_values(const instance *in)
{
    return (unsigned)(in->shape.nope + in->shape.n_rope);
}

/* Returns the values of a row of qc before its latents. */
static int64_t values_ahead(const instance *in)
{
    const problem_shape *s = &in->shape;
    return s->q_rank ? s->q_rank : s->num_heads * head_values(in);
}

/* Returns the values of a row of qc from its latents on. */
static int64_t values_behind(const instance *in)
{
    return in->options.apart ? 0 : in->shape.latent + in->shape.n_rope;
}

static unsigned row_bytes(const instance *in)
{
    return (unsigned)(values_ahead(in) + values_behind(in)) * F32_BYTES;
}

static val row_of_qc(ptx *p, const instance *in, val row)
{
    return mad_wide(p, row, row_bytes(in), parameter(p, "qc"));
}

static val position_of(ptx *p, val row)
{
    return ld_const(p, U32, mad_wide(p, row, sizeof(uint32_t), parameter(p, "positions")), 0);
}

static val load_at(ptx *p, val base, val place)
{
    return base.type == U64 ? ld_const(p, F32, mad_wide(p, place, F32_BYTES, base), 0)
                            : ld_shared(p, F32, mad(p, place, imm(U32, F32_BYTES), base), 0);
}

static val rotated_part(ptx *p, const instance *rope, val base, val position, unsigned part)
{
    val x = load_at(p, base, head_place(p, rope, part));
    if (rope->options.rope.style == ROPE_NONE)
        return x;
    rope_pair pair = rope_pair_of(p, rope, part);
    return rope_turned(p, rope, &pair, position, x, load_at(p, base, pair.partner));
}

static void write_cache_row(ptx *p, const instance *in, val row)
{
    const problem_shape *s = &in->shape;
    instance rope = of_rope(in), whole = *in;
    whole.shape.head_dim = s->latent + s->n_rope;
    unsigned parts = (unsigned)s->latent / HEAD_PART;
    val x = in->options.apart
                ? mad_wide(p, row, whole.shape.head_dim * F32_BYTES, parameter(p, "kv"))
                : add(p, row_of_qc(p, in, row), values_ahead(in) * F32_BYTES);
    val position = position_of(p, row);
    val cache = ld_const(p, U64, mad_wide(p, row, ADDRESS_BYTES, parameter(p, "c")), 0);
    unsigned bytes = (unsigned)format_bytes(kv_format(in), (uint64_t)whole.shape.head_dim);
    val at = mad_wide(p, position, bytes, cache);
    val has_room = lt(p, position, s->max_seq_len);
    val latents[MOST_LATENT_PARTS], squares = imm(F32, 0);
    for (unsigned i = 0; i < parts; i++) {
        latents[i] = load_at(p, x, head_place(p, &whole, i));
        squares = i ? fma(p, latents[i], latents[i], squares) : mul(p, latents[i], latents[i]);
    }
    val mean = mul(p, warp_sum(p, squares), 1.0f / (float)s->latent);
    val factor = norm_factor(p, in, mean);
    for (unsigned i = 0; i < parts; i++) {
        val gamma = load_at(p, parameter(p, "gamma"), head_place(p, &whole, i));
        cache_store(p, &whole, at, i, mul(p, mul(p, latents[i], factor), gamma), has_room);
    }
    val last = add(p, x, s->latent * F32_BYTES);
    for (unsigned i = 0; i < head_parts(&rope); i++)
        cache_store(p, &whole, at, parts + i, rotated_part(p, &rope, last, position, i), has_room);
}

/* A block's head, and its q of a group's rows in shared memory, [rows, P + R]. */
typedef struct head_work {
    const instance *in;
    row_group group;
    val head, part, q;
    unsigned rows;
} head_work;

/* Multiplies Wq[h] by the normed values. The norm's factor is applied to the product. */
static void make_q(ptx *p, const head_work *w)
{
    const instance *in = w->in;
    unsigned values = head_values(in), rank = (unsigned)in->shape.q_rank;
    val factors = shared_array(p, "factors", F32, MAX_VECTORS);
    PTX_IF (p, lt(p, warp_id(p), w->rows)) {
        val row = row_of_group(p, &w->group, warp_id(p));
        val x = row_of_qc(p, in, row);
        var squares = var_f32(p, 0.0f);
        PTX_FOR (p, i, lane_id(p), rank, WARP) {
            val own = ld_const(p, F32, mad_wide(p, i, F32_BYTES, x), 0);
            assign(p, squares, fma(p, own, own, squares));
        }
        val mean = mul(p, warp_sum(p, get(p, squares)), 1.0f / (float)rank);
        val factor = norm_factor(p, in, mean);
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, mad(p, warp_id(p), imm(U32, F32_BYTES), factors), 0, factor);
    }
    barrier(p);
    instance of_q = instance_matrix(in, 0);
    format f = instance_weights(&of_q);
    val qc = row_group_start(p, &w->group, parameter(p, "qc"), row_bytes(in));
    row_products r = row_products_new(f, rank, w->rows, qc, row_bytes(in));
    r.gamma = parameter(p, "gamma_q");
    val first = mad(p, warp_id(p), imm(U32, r.rows), row_products_own(p, &r));
    PTX_FOR (p, turn, 0, values, WARPS * r.rows) {
        val sums[MAX_VECTORS], place = add(p, turn, first), exists = lt(p, place, values);
        val number = mad(p, w->head, imm(U32, values), min(p, place, values - 1));
        val row = mad_wide(p, number, (unsigned)format_bytes(f, rank), parameter(p, "wq"));
        row_products_of(p, &r, row, sums);
        val at = mad(p, place, imm(U32, F32_BYTES), w->q);
        PTX_IF (p, bit_and(p, exists, row_products_first(p, &r)))
            for (unsigned v = 0; v < w->rows; v++)
                st_shared(p, F32, at, v * values * F32_BYTES,
                          mul(p, sums[v], ld_shared(p, F32, factors, v * F32_BYTES)));
    }
    barrier(p);
}

static val with_temperature(ptx *p, const instance *in, val x, val position)
{
    return in->options.rope.temperature_length > 0 ? mul(p, x, rope_temperature(p, in, position))
                                                   : x;
}

/* Computes the block's part of the latents; each warp computes a few rows of W per iteration. */
static void make_latents(ptx *p, const head_work *w, unsigned part_latents)
{
    const instance *in = w->in;
    const problem_shape *s = &in->shape;
    format f = instance_weights(in);
    unsigned width = (unsigned)(s->latent + s->n_rope), values = head_values(in);
    val temperatures[MAX_VECTORS];
    for (unsigned v = 0; v < w->rows; v++)
        temperatures[v] = with_temperature(p, in, V(1.0f),
                                           position_of(p, row_of_group(p, &w->group, imm(U32, v))));
    row_products r = row_products_new(f, (unsigned)s->nope, w->rows, w->q, values * F32_BYTES);
    val own = mad(p, warp_id(p), imm(U32, r.rows), row_products_own(p, &r));
    val first = mul(p, w->part, part_latents);
    val end = min(p, add(p, first, part_latents), imm(U32, s->latent));
    PTX_FOR (p, turn, first, end, WARPS * r.rows) {
        val sums[MAX_VECTORS], latent = add(p, turn, own);
        val number = mad(p, w->head, imm(U32, s->latent), min(p, latent, sub(p, end, 1)));
        val row =
            mad_wide(p, number, (unsigned)format_bytes(f, (uint64_t)s->nope), parameter(p, "w"));
        row_products_of(p, &r, row, sums);
        val place = mad(p, w->head, imm(U32, width), latent);
        unsigned q_bytes = (unsigned)s->num_heads * width * F32_BYTES;
        val at = mad_wide(p, place, F32_BYTES,
                          row_group_start(p, &w->group, parameter(p, "q"), q_bytes));
        PTX_IF (p, bit_and(p, lt(p, latent, end), row_products_first(p, &r)))
            for (unsigned v = 0; v < w->rows; v++)
                PTX_IF (p, row_is_own(p, &w->group, row_of_group(p, &w->group, imm(U32, v))))
                    st_global(p, F32, at, (int64_t)v * q_bytes, mul(p, sums[v], temperatures[v]));
    }
}

/* Applies RoPE to q of a row with one warp. */
static void rotate_q(ptx *p, const head_work *w)
{
    const instance *in = w->in;
    const problem_shape *s = &in->shape;
    instance rope = of_rope(in);
    val number_of_row = warp_id(p), row = row_of_group(p, &w->group, number_of_row);
    val position = position_of(p, row);
    val number = mad(p, row, imm(U32, s->num_heads), w->head);
    unsigned width = (unsigned)(s->latent + s->n_rope);
    val to = mad_wide(p, number, width * F32_BYTES, parameter(p, "q"));
    val from = add(p, mad(p, number_of_row, imm(U32, head_values(w->in) * F32_BYTES), w->q),
                   (unsigned)s->nope * F32_BYTES);
    for (unsigned i = 0; i < head_parts(&rope); i++) {
        val x = with_temperature(p, in, rotated_part(p, &rope, from, position, i), position);
        st_global(p, F32, mad_wide(p, head_place(p, &rope, i), F32_BYTES, to),
                  s->latent * F32_BYTES, x);
    }
}

static val has_row(ptx *p, const head_work *w)
{
    return bit_and(p, lt(p, warp_id(p), w->rows),
                   row_is_own(p, &w->group, row_of_group(p, &w->group, warp_id(p))));
}

static int64_t part_count(const instance *in)
{
    return in->shape.q_rank ? 1 : (in->shape.latent + PART_LATENTS - 1) / PART_LATENTS;
}

static void mla_query_build(ptx *p, const instance *in)
{
    unsigned parts = (unsigned)part_count(in);
    head_work w = { .in = in, .group = row_group_new(p, in, ctaid_y(p)) };
    w.rows = w.group.count;
    val block = named(p, "block", ctaid_x(p));
    val is_cache = eq(p, block, imm(U32, in->shape.num_heads * parts));
    phase(p, "the last block: write rows of the cache");
    PTX_IF (p, is_cache)
        PTX_IF (p, has_row(p, &w))
            write_cache_row(p, in, row_of_group(p, &w.group, warp_id(p)));
    ret_if(p, is_cache);
    w.head = named(p, "head", div(p, block, parts));
    w.part = named(p, "part", rem(p, block, parts));
    w.q = shared_array(p, "q_heads", F32, w.rows * head_values(in));
    phase(p, "q of the head");
    if (in->shape.q_rank)
        make_q(p, &w);
    else {
        unsigned values = head_values(w.in);
        PTX_FOR (p, i, tid_x(p), w.rows * values, WARPS * WARP) {
            val row = div(p, i, values), place = rem(p, i, values);
            val from = mad(p, w.head, imm(U32, values), place);
            val qc = row_of_qc(p, w.in, row_of_group(p, &w.group, row));
            val x = ld_const(p, F32, mad_wide(p, from, F32_BYTES, qc), 0);
            st_shared(p, F32, mad(p, i, imm(U32, F32_BYTES), w.q), 0, x);
        }
        barrier(p);
    }
    phase(p, "apply RoPE to q");
    PTX_IF (p, bit_and(p, eq(p, w.part, parts - 1), has_row(p, &w)))
        rotate_q(p, &w);
    phase(p, "multiply q by W");
    make_latents(p, &w, parts == 1 ? (unsigned)in->shape.latent : PART_LATENTS);
}

static const char *check_mla_query(const instance *in, arena *a, const char **blamed)
{
    if (in->shape.q_rank && in->options.apart) {
        *blamed = "q_rank";
        return "q_rank cannot be combined with inputs = apart; leave q_rank out";
    }
    return check_rope(in, a, blamed);
}

static const choice inputs_choices[] = { { "joined", "" }, { "apart", "_apart" }, { NULL, NULL } };

static const derived_size sizes[] = {
    { "parts", part_count, "blocks per head: one per 128 latents; 1 with q_rank" },
    { "ahead", values_ahead,
      "values of qc before the latents: q_rank, or num_heads*(nope+n_rope)" },
    { "behind", values_behind, "values of qc after them: latent+n_rope, or 0" },
    { "groups", row_group_count, "groups of up to 8 rows" },
    { NULL, NULL, NULL },
};

const family mla_query = {
    .name = "mla_query",
    .summary = "q of latent attention with the keys' matrix absorbed, RoPE, and rows of the cache",
    .computes =
        "q[m,h] = (W[h] nope[m,h], rope(q[m,h])), c[m][pos] = (norm(latent[m]), rope(k[m]))",
    .op = OP_MLA_QUERY,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys =
        (const key[]){
            KEY_WEIGHTS,
            KEY_MLA_HEADS,
            KEY_MLA_LATENT,
            KEY_MLA_ROPE,
            KEY_NUMBER("nope", "head values without RoPE, columns of W, e.g. 128", shape.nope, 8,
                       1024, .multiple_of = UNPACKED, .of_weights = true,
                       .of_weights_in = KEY_FIELD(weights), .required = true, .tag = "p"),
            KEY_NUMBER("q_rank", "columns of Wq, e.g. 1536; 0 = no Wq", shape.q_rank, 0,
                       PROBLEM_MOST_Q_RANK, .multiple_of = UNPACKED, .of_weights = true,
                       .of_weights_in = KEY_FIELD(weights_of[0]), .zero_is_none = true,
                       .tag = "rank"),
            KEY_WORD("weights_q", "format of Wq", weights_of[0], weights_choices,
                     .def = WEIGHTS_Q8_0, .only_with = KEY_FIELD(shape.q_rank), .tag = "q"),
            KEY_WORD("inputs", "joined: q and latents from one product", options.apart,
                     inputs_choices),
            KEY_MAX_SEQ_LEN,
            KEY_MLA_ROWS,
            KEY_MLA_KV_TYPE,
            KEY_EPSILON,
            KEY_ROPE_STYLE("pairs: norm (2i, 2i+1), neox (i, i+n_rope/2)"),
            KEYS_ROPE("n_rope"),
            KEY_END,
        },
    .params =
        (const param[]){
            OUT(F32, q, "m*num_heads*(latent+n_rope)", 16),
            MLA_CACHES(PARAM_OUT),
            WEIGHTS(w, "num_heads*latent*nope"),
            WEIGHTS(wq, "num_heads*(nope+n_rope)*q_rank", .matrix = 1,
                    .only_with = KEY_FIELD(shape.q_rank)),
            IN(F32, qc, "m*(ahead+behind)", 16),
            IN_WHERE(apart, F32, kv, "m*(latent+n_rope)", 16),
            IN(F32, gamma, "latent", 16),
            IN(F32, gamma_q, "q_rank", 16, .only_with = KEY_FIELD(shape.q_rank)),
            IN_FITTED(U32, positions, "m", 4),
            ROPE_FACTORS("n_rope/2"),
            PARAM_END,
        },
    .launch = { .block = "256",
                .grid = { "num_heads*parts+1", "groups" },
                .shared = "min(m, 8)*(nope+n_rope)*4 + 32*min(q_rank, 1)",
                .sizes = sizes,
                .others = "1",
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_mla_query,
    .build = mla_query_build,
    .fit = ref_fit_rope,
    .reference = ref_mla_query,
    .tolerance = 6e-7,
};

static void mla_values_build(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    format f = instance_weights(in);
    unsigned rows = (unsigned)(s->num_heads * s->value_dim);
    unsigned latent_bytes = (unsigned)s->latent * F32_BYTES;
    unsigned row_bytes = (unsigned)s->num_heads * latent_bytes;
    row_group group = row_group_new(p, in, ctaid_y(p));
    row_products r = row_products_new(f, (unsigned)s->latent, group.count, imm(U64, 0), row_bytes);
    val warp = mad(p, ctaid_x(p), imm(U32, WARPS), warp_id(p));
    val row = named(p, "row", mad(p, warp, imm(U32, r.rows), row_products_own(p, &r)));
    val own = min(p, row, rows - 1), head = named(p, "head", div(p, own, s->value_dim));
    val sums[MAX_VECTORS];
    r.x = mad_wide(p, head, latent_bytes, row_group_start(p, &group, parameter(p, "o"), row_bytes));
    row_products_of(
        p, &r, mad_wide(p, own, (unsigned)format_bytes(f, (uint64_t)s->latent), parameter(p, "w")),
        sums);
    val y = row_group_start(p, &group, parameter(p, "y"), rows * F32_BYTES);
    val at = mad_wide(p, row, F32_BYTES, y);
    PTX_IF (p, bit_and(p, lt(p, row, rows), row_products_first(p, &r)))
        for (unsigned v = 0; v < group.count; v++)
            PTX_IF (p, row_is_own(p, &group, row_of_group(p, &group, imm(U32, v))))
                st_global(p, F32, at, (int64_t)v * rows * F32_BYTES, sums[v]);
    fetch_next(p, in);
}

static int64_t block_rows(const instance *in)
{
    row_products r =
        row_products_new(instance_weights(in), (unsigned)in->shape.latent, 1, (val){ 0 }, 0);
    return WARPS * r.rows;
}

static const derived_size values_sizes[] = {
    { "block_rows", block_rows, "rows per block; a warp has one row, or several short rows" },
    { "groups", row_group_count, "groups of up to 8 rows of o" },
    { NULL, NULL, NULL },
};

const family mla_values = {
    .name = "mla_values",
    .summary = "product of the values' matrix with the result of latent attention",
    .computes = "y[m,h] = W[h] o[m,h]",
    .op = OP_MLA_VALUES,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys =
        (const key[]){
            KEY_WEIGHTS,
            KEY_MLA_HEADS,
            KEY_NUMBER("latent", "columns of W, e.g. 512", shape.latent, 32, MLA_MOST_LATENT,
                       .multiple_of = 32, .of_weights = true, .required = true, .tag = "l"),
            KEY_NUMBER("value_dim", "rows of W per head, e.g. 128", shape.value_dim, 1, 1024,
                       .required = true, .tag = "d"),
            KEY_MLA_ROWS,
            KEY_NEXT,
            KEY_END,
        },
    .params = (const param[]){ OUT(F32, y, "m*num_heads*value_dim", 4),
                               WEIGHTS(w, "num_heads*value_dim*latent"),
                               IN(F32, o, "m*num_heads*latent", 16), NEXT_WEIGHTS, PARAM_END },
    .launch = { .block = "256",
                .grid = { "ceil_div(num_heads*value_dim, block_rows)", "groups" },
                .sizes = values_sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .build = mla_values_build,
    .reference = ref_mla_values,
    .tolerance = 5e-7,
};
