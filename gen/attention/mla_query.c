/* The query of latent attention (DeepSeek-AI, "DeepSeek-V2", 2.1, with the keys' matrix absorbed by
 * q): q in the latent space with RoPE and the rows of the cache, in one launch.
 *
 * H = num_heads, P = nope, R = n_rope, L = latent. Layouts:
 *
 *   qc   [m, H (P + R) + L + R], a row of the previous product; each head starts with its P values
 *        without RoPE. With q_rank [m, q_rank + L + R]: a head's q is Wq[h] [P + R, q_rank] times
 *        the RMS norm of the q_rank values. With inputs = apart qc is [m, H (P + R)] and
 *        kv is [m, L + R]
 *   q    [m, H, L + R]: per head W[h] [L, P] times the P values, then the R rotated values
 *   c    pool of pages [page or max_seq_len, L + R]: at a row's position the RMS norm of the L
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
 * With plane_rows W is a file's attn_kv_b: per head plane_rows rows of L weights, of which the
 * first P are W[h] transposed. A block then sums rows of W, each times a value of q: half a warp
 * owns 128 columns of every 16th row. */
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
    HALF_WARP = WARP / 2,   /* lanes that own a row's PART_LATENTS columns */
    SLICE_ROWS = 2 * WARPS, /* rows of attn_kv_b that a block multiplies at once */
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
    cache_pages pages = cache_pages_of(p, in, false, row);
    val start = cache_pages_start(p, &pages, parameter(p, "c"), imm(U32, 0));
    val has_room = lt(p, position, s->max_seq_len);
    val number = cache_pages_row(p, &pages, cache_pages_existing(p, in, position));
    val at = mad_wide(p, number, cache_row_bytes(in), start);
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

/* Returns the bytes of a row of q. */
static unsigned q_bytes(const instance *in)
{
    const problem_shape *s = &in->shape;
    return (unsigned)(s->num_heads * (s->latent + s->n_rope)) * F32_BYTES;
}

/* Returns the address of a latent of the head in q of the group's first row. */
static val latent_at(ptx *p, const head_work *w, val latent)
{
    const problem_shape *s = &w->in->shape;
    val place = mad(p, w->head, imm(U32, s->latent + s->n_rope), latent);
    return mad_wide(p, place, F32_BYTES,
                    row_group_start(p, &w->group, parameter(p, "q"), q_bytes(w->in)));
}

static void temperatures_of_rows(ptx *p, const head_work *w, val *temperatures)
{
    for (unsigned v = 0; v < w->rows; v++)
        temperatures[v] = with_temperature(p, w->in, V(1.0f),
                                           position_of(p, row_of_group(p, &w->group, imm(U32, v))));
}

/* Computes the block's part of the latents; each warp computes a few rows of W per iteration. */
static void make_latents(ptx *p, const head_work *w, unsigned part_latents)
{
    const instance *in = w->in;
    const problem_shape *s = &in->shape;
    format f = instance_weights(in);
    val temperatures[MAX_VECTORS];
    temperatures_of_rows(p, w, temperatures);
    unsigned values = head_values(in);
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
        val at = latent_at(p, w, latent);
        PTX_IF (p, bit_and(p, lt(p, latent, end), row_products_first(p, &r)))
            for (unsigned v = 0; v < w->rows; v++)
                PTX_IF (p, row_is_own(p, &w->group, row_of_group(p, &w->group, imm(U32, v))))
                    st_global(p, F32, at, (int64_t)v * q_bytes(in),
                              mul(p, sums[v], temperatures[v]));
    }
}

/* Adds the lane's eight columns of its rows of attn_kv_b, times each row of q. */
static void add_rows(ptx *p, const head_work *w, val piece, var added[][UNPACKED])
{
    const problem_shape *s = &w->in->shape;
    format f = instance_weights(w->in);
    unsigned bytes = (unsigned)format_bytes(f, (uint64_t)s->latent);
    val plane = mad_wide(p, mul(p, w->head, s->plane_rows), bytes, parameter(p, "w"));
    val slice = mad(p, warp_id(p), imm(U32, 2), div(p, lane_id(p), HALF_WARP));
    ptx_loop_work(p, UNPACKED, "weights");
    PTX_FOR (p, row, slice, s->nope, SLICE_ROWS) {
        val weights[UNPACKED], x = mad(p, row, imm(U32, F32_BYTES), w->q);
        unpack_piece(p, f, mad_wide(p, row, bytes, plane), piece, weights);
        for (unsigned v = 0; v < w->rows; v++) {
            val factor = ld_shared(p, F32, x, (int64_t)v * head_values(w->in) * F32_BYTES);
            for (unsigned i = 0; i < UNPACKED; i++)
                assign(p, added[v][i], fma(p, weights[i], factor, added[v][i]));
        }
    }
}

/* Stores the block's sums of a row of q: each warp its own to shared memory, then a thread per
 * latent their sum. The two buffers alternate, so that one barrier per row is enough. A thread has
 * four columns, so that lanes store neighbouring words. */
static void store_latents(ptx *p, const head_work *w, val sums, unsigned v, val latents, var *added,
                          val temperature)
{
    enum { OWN = 4, WARP_BYTES = PART_LATENTS * F32_BYTES };
    val buffer = add(p, sums, v % 2 * WARPS * WARP_BYTES), upper = ge(p, lane_id(p), HALF_WARP);
    val4 own;
    for (unsigned i = 0; i < OWN; i++) {
        val low = lanes_sum(p, get(p, added[i]), HALF_WARP, WARP);
        own.v[i] = select(p, upper, lanes_sum(p, get(p, added[OWN + i]), HALF_WARP, WARP), low);
    }
    val at = mad(p, lane_id(p), imm(U32, OWN * F32_BYTES), buffer);
    st_shared_v4(p, F32, mad(p, warp_id(p), imm(U32, WARP_BYTES), at), 0, own);
    barrier(p);
    val row = row_of_group(p, &w->group, imm(U32, v)), thread = tid_x(p);
    val piece = bit_and(p, div(p, thread, OWN), HALF_WARP - 1);
    val half = div(p, thread, OWN * HALF_WARP), in_half = bit_and(p, thread, OWN - 1);
    val column = mad(p, piece, imm(U32, UNPACKED), mad(p, half, imm(U32, OWN), in_half));
    val latent = add(p, latents, column);
    val exists = bit_and(p, lt(p, thread, PART_LATENTS), lt(p, latent, w->in->shape.latent));
    PTX_IF (p, bit_and(p, exists, row_is_own(p, &w->group, row))) {
        val from = mad(p, thread, imm(U32, F32_BYTES), buffer), sum = ld_shared(p, F32, from, 0);
        for (unsigned i = 1; i < WARPS; i++)
            sum = add(p, sum, ld_shared(p, F32, from, i * WARP_BYTES));
        st_global(p, F32, latent_at(p, w, latent), (int64_t)v * q_bytes(w->in),
                  mul(p, sum, temperature));
    }
}

/* Computes the block's part of the latents from attn_kv_b. */
static void sum_latents(ptx *p, const head_work *w, unsigned part_latents)
{
    unsigned latent = (unsigned)w->in->shape.latent;
    val temperatures[MAX_VECTORS];
    var added[MAX_VECTORS][UNPACKED];
    temperatures_of_rows(p, w, temperatures);
    val sums = shared_array(p, "sums", F32, 2 * WARPS * PART_LATENTS);
    val first = mul(p, w->part, part_latents);
    val end = min(p, add(p, first, part_latents), imm(U32, latent));
    PTX_FOR (p, latents, first, end, PART_LATENTS) {
        val piece = add(p, div(p, latents, UNPACKED), bit_and(p, lane_id(p), HALF_WARP - 1));
        for (unsigned v = 0; v < w->rows; v++)
            for (unsigned i = 0; i < UNPACKED; i++)
                added[v][i] = var_f32(p, 0.0f);
        add_rows(p, w, min(p, piece, latent / UNPACKED - 1), added);
        for (unsigned v = 0; v < w->rows; v++)
            store_latents(p, w, sums, v, latents, added[v], temperatures[v]);
        barrier(p);
    }
}

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
    (in->shape.plane_rows ? sum_latents : make_latents)(
        p, &w, parts == 1 ? (unsigned)in->shape.latent : PART_LATENTS);
}

static const char *check_mla_query(const instance *in, arena *a, const char **blamed)
{
    if (in->shape.q_rank && in->options.apart)
        return blame_key(a, blamed, "q_rank",
                         "q_rank cannot be combined with inputs = apart; leave q_rank out");
    if (in->shape.plane_rows && in->shape.plane_rows <= in->shape.nope)
        return blame_key(a, blamed, "plane_rows",
                         "plane_rows = %lld is not more than nope = %lld; use nope + value_dim",
                         (long long)in->shape.plane_rows, (long long)in->shape.nope);
    return check_rope(in, a, blamed);
}

static const choice inputs_choices[] = CHOICES({ "joined", "" }, { "apart", "_apart" });

const family mla_query = {
    .name = "mla_query",
    .summary = "q of latent attention with the keys' matrix absorbed, RoPE, and rows of the cache",
    .computes =
        "q[m,h] = (W[h] nope[m,h], rope(q[m,h])), c[m][pos] = (norm(latent[m]), rope(k[m]))",
    F32_FAMILY(OP_MLA_QUERY, mla_query_build, ref_mla_query, 6e-7),
    .keys = KEYS(
        KEY_WEIGHTS, KEY_MLA_HEADS,
        KEY_MLA_LATENT(.of_weights = true, .of_weights_in = KEY_FIELD(weights),
                       .of_weights_with = KEY_FIELD(shape.plane_rows), ),
        KEY_MLA_ROPE,
        KEY_NUMBER("nope", "head values without RoPE, columns of W, e.g. 128", shape.nope, 8, 1024,
                   .multiple_of = UNPACKED, .of_weights = true, .of_weights_in = KEY_FIELD(weights),
                   .of_weights_without = KEY_FIELD(shape.plane_rows), .required = true, .tag = "p"),
        KEY_MLA_PLANE_ROWS("rows per head of attn_kv_b as W; 0: attn_k_b"),
        KEY_NUMBER("q_rank", "columns of Wq, e.g. 1536; 0 = no Wq", shape.q_rank, 0,
                   PROBLEM_MOST_Q_RANK, .multiple_of = UNPACKED, .of_weights = true,
                   .of_weights_in = KEY_FIELD(weights_of[0]), .zero_is_none = true, .tag = "rank"),
        KEY_WORD("weights_q", "format of Wq", weights_of[0], weights_choices, .def = WEIGHTS_Q8_0,
                 .only_with = KEY_FIELD(shape.q_rank), .tag = "q"),
        KEY_WORD("inputs", "joined: q and latents from one product", options.apart, inputs_choices),
        KEY_MAX_SEQ_LEN, KEY_MLA_ROWS, KEY_MLA_KV_TYPE, KEY_PAGE, KEY_EPSILON,
        KEY_ROPE_STYLE("pairs: norm (2i, 2i+1), neox (i, i+n_rope/2)"), KEYS_ROPE("n_rope")),
    .params = PARAMS(
        OUT(F32, q, "m*num_heads*(latent+n_rope)", 16), MLA_POOL(OUT),
        WEIGHTS(w, "num_heads*latent*nope", MLA_WHOLE),
        WEIGHTS(w, "num_heads*plane_rows*latent", MLA_PART("num_heads*nope*latent")),
        WEIGHTS(wq, "num_heads*(nope+n_rope)*q_rank", .matrix = 1,
                .only_with = KEY_FIELD(shape.q_rank)),
        IN(F32, qc, "m*(ahead+behind)", 16), IN_WHERE(apart, F32, kv, "m*(latent+n_rope)", 16),
        IN(F32, gamma, "latent", 16),
        IN(F32, gamma_q, "q_rank", 16, .only_with = KEY_FIELD(shape.q_rank)),
        IN_FITTED(U32, positions, "m", 4), ROPE_FACTORS("n_rope/2"), ROW_SEQUENCES, PAGE_TABLE),
    .launch = { .block = "256",
                .grid = { "num_heads*parts+1", "groups" },
                .shared = "min(m, 8)*(nope+n_rope)*4 + 32*min(q_rank, 1) + 8192*min(plane_rows, 1)",
                .sizes = SIZES(
                    CACHE_PAGES,
                    { "parts", part_count, "blocks per head: one per 128 latents; 1 with q_rank" },
                    { "ahead", values_ahead,
                      "values of qc before the latents: q_rank, or num_heads*(nope+n_rope)" },
                    { "behind", values_behind, "values of qc after them: latent+n_rope, or 0" },
                    { "groups", row_group_count, "groups of up to 8 rows" }),
                .others = "1",
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_mla_query,
    .fit = ref_fit_rope,
};
