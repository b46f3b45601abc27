/* Prepares q, k and v for attention in one launch: RMS norm of q and k (optional), RoPE, and stores
 * of K and V to the caches.
 *
 * Layouts: qkv [m, num_heads + 2 num_kv_heads, head_dim], per row the heads of q, of K, then of V;
 * q [m, num_heads, head_dim]; k and v are pools of pages [num_kv_heads, page or max_seq_len,
 * head_dim]. K is rounded after RoPE, V directly. With ring = R pages are [num_kv_heads, R,
 * head_dim], and position t is written to row t % R; a launch writes at most R positions of a
 * sequence.
 *
 * With gated = copy each head of q is followed by its gate of head_dim values: a row of qkv is [2
 * num_heads + 2 num_kv_heads, head_dim]. The gates are copied to gate [m, num_heads, head_dim].
 *
 * With qk_norm = rms_row all heads of q in a row share one norm, and so do all heads of K. With
 * v_norm = rms each head of V is divided by its root mean square. With v_from = k rows of qkv have
 * no V: it is made from K before norm and RoPE. With kv = none they have q only, and the kernel
 * has no parameters of K and V.
 *
 * A row with a position >= max_seq_len leaves the caches unchanged: its sequence is full, or (2^32
 * - 1) it has none.
 *
 * A block is one warp and processes a head of a row. A lane has every 32nd value and also loads its
 * partner: pairs are 1 apart or any distance (NEOX with part of a head), and a second load costs
 * less than shuffles. With qk_norm = rms_row a block has ROW_WARPS warps and as many heads of q, K
 * or V. It adds up the squares of all heads of the row, in an order that depends on their number
 * only; the last block's warps without a head only help with that.
 *
 * With state = settled positions and pages do not change after the launch begins. A
 * kernel that overlaps with its predecessors reads them and computes cos and sin before it waits.
 *
 * kv_write does the same for K and V only (num_heads = 0). Their rows are two arrays [m,
 * num_kv_heads, head_dim] in place of qkv. Angles are counted in turns, in fixed point: see
 * rows/rope.c. */
#include "gen/attention/attention.h"
#include "gen/common/reduce.h"
#include "gen/common/next.h"
#include "gen/common/row_pieces.h"
#include "ref/reference.h"

enum { ROW_WARPS = 8 };
/* Registers per thread if a head has more than USUAL_PARTS parts; rms_row needs more of them. */
enum { USUAL_PARTS = 8, WIDE_REGISTERS = 128, WIDE_ROW_REGISTERS = 168 };

typedef struct head_work {
    const instance *in;
    unsigned parts;
    val row, head; /* indices in qkv */
    val is_spare;  /* rms_row: the warp has no head, and row, head and number are of the last one */
    val position;
    val source;     /* address of the head's values */
    val is_q, is_k; /* is_k is true for q, too */
    val rows;       /* the input, whose rows have `heads` heads */
    int64_t heads;
    val number;        /* rms_row: index among the heads of q, of K or of V */
    cache_pages pages; /* of the row's sequence */
    rope_pair pairs[MOST_HEAD_PARTS];
    rope_turn turns[MOST_HEAD_PARTS]; /* computed before the wait if the state is settled */
} head_work;

/* Returns true if K and V are separate inputs and there is no q. */
static bool has_kv_alone(const instance *in)
{
    return in->family->op == OP_KV_WRITE;
}

/* Returns the number of KV heads that the kernel stores. */
static int64_t stored_heads(const instance *in)
{
    return in->options.q_alone ? 0 : in->shape.num_kv_heads;
}

static int64_t warps_per_block(const instance *in)
{
    return in->options.qk_norm == HEADS_NORM_ROW ? ROW_WARPS : 1;
}

static int64_t q_heads_normed(const instance *in)
{
    return in->options.qk_norm == HEADS_NORM_ROW ? in->shape.num_heads : 1;
}

static int64_t k_heads_normed(const instance *in)
{
    return in->options.qk_norm == HEADS_NORM_ROW ? in->shape.num_kv_heads : 1;
}

/* Returns the warp's head in a block of several warps, whose heads are all of q, of K or of V. */
static val head_of_warp(ptx *p, head_work *w)
{
    int64_t q = w->in->shape.num_heads, kv = stored_heads(w->in);
    int64_t q_blocks = (q + ROW_WARPS - 1) / ROW_WARPS;
    int64_t kv_blocks = (kv + ROW_WARPS - 1) / ROW_WARPS;
    val block = ctaid_x(p), zero = imm(U32, 0);
    w->is_q = q && kv ? lt(p, block, q_blocks) : imm(PRED, q > 0);
    w->is_k = kv ? lt(p, block, q_blocks + kv_blocks) : imm(PRED, 1);
    val first = select(p, w->is_k, imm(U32, q_blocks), imm(U32, q_blocks + kv_blocks));
    val number = sub(p, block, select(p, w->is_q, zero, first));
    number = mad(p, number, ROW_WARPS, warp_id(p));
    val count = select(p, w->is_q, imm(U32, q), imm(U32, kv));
    w->is_spare = ge(p, number, count);
    val before = select(p, w->is_k, imm(U32, q), imm(U32, q + kv));
    w->number = min(p, number, sub(p, count, 1));
    return add(p, w->number, select(p, w->is_q, zero, before));
}

static head_work work_new(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    const problem_options *o = &in->options;
    int64_t kv = stored_heads(in);
    head_work w = { .in = in, .parts = head_parts(in) };
    bool one_warp = warps_per_block(in) == 1;
    w.head = named(p, "head", one_warp ? ctaid_x(p) : head_of_warp(p, &w));
    w.row = named(p, "row", ctaid_y(p));
    val position_at = mad_wide(p, w.row, 4, parameter(p, "positions"));
    w.position = load_state(p, is_settled(in), U32, position_at);
    if (one_warp) {
        if (!has_kv_alone(in))
            w.is_q = kv ? lt(p, w.head, s->num_heads) : imm(PRED, 1);
        w.is_k = kv ? lt(p, w.head, s->num_heads + kv) : imm(PRED, 1);
    }
    int64_t gates = o->gated ? s->num_heads : 0;
    val place = w.head;
    if (gates) /* each head of q is followed by its gate */
        place = add(p, w.head, min(p, w.head, gates));
    w.heads = s->num_heads + gates + 2 * kv;
    if (has_kv_alone(in)) {
        w.heads = kv;
        place = select(p, w.is_k, w.head, sub(p, w.head, kv));
        w.rows = o->v_from_k ? parameter(p, "k_rows")
                             : select(p, w.is_k, parameter(p, "k_rows"), parameter(p, "v_rows"));
    } else {
        w.rows = parameter(p, "qkv");
    }
    if (o->v_from_k && !has_kv_alone(in)) {
        w.heads -= kv;
        place = select(p, w.is_k, place, sub(p, place, kv));
    }
    val number = mad(p, w.row, imm(U32, w.heads), place);
    w.source = mad_wide(p, number, s->head_dim * F32_BYTES, w.rows);
    if (!kv)
        return w;
    w.pages = cache_pages_of(p, in, is_settled(in), w.row);
    return w;
}

static val load_at(ptx *p, val base, val place)
{
    return ld_const(p, F32, mad_wide(p, place, F32_BYTES, base), 0);
}

/* Returns the head's mean square. */
static val head_mean(ptx *p, const head_work *w, const val *x)
{
    val squares = imm(F32, 0);
    for (unsigned i = 0; i < w->parts; i++) {
        val x_own = select(p, head_has(p, w->in, i), x[i], imm(F32, 0));
        squares = i ? fma(p, x_own, x_own, squares) : mul(p, x_own, x_own);
    }
    return mul(p, warp_sum(p, squares), 1.0f / (float)w->in->shape.head_dim);
}

/* Returns the mean square of all heads of q, or of K, in the row. The block's threads have
 * pieces of four values. */
static val row_mean(ptx *p, const head_work *w)
{
    enum { PIECE = 4, AT_ONCE = 4, THREADS = ROW_WARPS * WARP };
    const problem_shape *s = &w->in->shape;
    int64_t gates = w->in->options.gated ? s->num_heads : 0, of_head = s->head_dim / PIECE;
    val zero = imm(U32, 0);
    val place = select(p, w->is_q, zero, imm(U32, s->num_heads + gates));
    val first = mad(p, w->row, imm(U32, w->heads), has_kv_alone(w->in) ? zero : place);
    first = mad_wide(p, first, s->head_dim * F32_BYTES, w->rows);
    val pieces =
        select(p, w->is_q, imm(U32, s->num_heads * of_head), imm(U32, s->num_kv_heads * of_head));
    var squares = var_f32(p, 0.0f);
    PTX_FOR (p, piece, tid_x(p), pieces, AT_ONCE * THREADS) {
        val4 x[AT_ONCE];
        val is_in[AT_ONCE];
        for (unsigned i = 0; i < AT_ONCE; i++) {
            val number = add(p, piece, i * THREADS);
            is_in[i] = lt(p, number, pieces);
            number = min(p, number, sub(p, pieces, 1));
            if (gates) /* a gate follows each head of q */
                number = mad(p, select(p, w->is_q, div(p, number, of_head), zero),
                             imm(U32, of_head), number);
            x[i] = ld_const_v4(p, F32, mad_wide(p, number, PIECE * F32_BYTES, first), 0);
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            val sum = mul(p, x[i].v[0], x[i].v[0]);
            for (unsigned j = 1; j < PIECE; j++)
                sum = fma(p, x[i].v[j], x[i].v[j], sum);
            assign(p, squares, add(p, squares, select(p, is_in[i], sum, imm(F32, 0))));
        }
    }
    const row_pieces block = { .warps = ROW_WARPS };
    val sums = shared_array(p, "squares", F32, ROW_WARPS);
    val sum = row_pieces_sum(p, &block, sums, 0, get(p, squares));
    val values = convert(p, F32, mul(p, pieces, PIECE));
    return div(p, sum, values);
}

/* Applies the norm to the lane's values and their partners in pairs. After RoPE partners is NULL. An
 * infinity then makes the whole head NaN, since a pair that has one may be infinite or NaN. */
static void norm_head(ptx *p, const head_work *w, const rope_pair *pairs, val *x, val *partners)
{
    bool of_row = w->in->options.qk_norm == HEADS_NORM_ROW;
    val weights = parameter(p, stored_heads(w->in) ? "k_norm" : "q_norm");
    if (stored_heads(w->in) && !has_kv_alone(w->in))
        weights = select(p, w->is_q, parameter(p, "q_norm"), weights);
    if (of_row)
        weights = mad_wide(p, w->number, w->in->shape.head_dim * F32_BYTES, weights);
    val own[MOST_HEAD_PARTS], others[MOST_HEAD_PARTS];
    for (unsigned i = 0; i < w->parts; i++) {
        own[i] = load_at(p, weights, head_place(p, w->in, i));
        if (partners)
            others[i] = load_at(p, weights, pairs[i].partner);
    }
    val mean = of_row ? row_mean(p, w) : head_mean(p, w, x);
    val factor = partners ? norm_factor(p, w->in, mean) : norm_factor_or_nan(p, w->in, mean);
    for (unsigned i = 0; i < w->parts; i++) {
        x[i] = mul(p, mul(p, x[i], factor), own[i]);
        if (partners)
            partners[i] = mul(p, mul(p, partners[i], factor), others[i]);
    }
}

static bool has_turns(const instance *in, unsigned part)
{
    const rope_options *o = &in->options.rope;
    return o->style != ROPE_NONE && (int64_t)part * HEAD_PART < o->dims;
}

static void turn_head(ptx *p, const head_work *w, const val *loaded, const var *values)
{
    val x[MOST_HEAD_PARTS], partners[MOST_HEAD_PARTS];
    rope_pair pairs[MOST_HEAD_PARTS];
    for (unsigned i = 0; i < w->parts; i++) {
        x[i] = partners[i] = loaded[i];
        pairs[i].partner = head_place(p, w->in, i);
        if (has_turns(w->in, i)) {
            pairs[i] = w->turns[i].cos.kind ? w->pairs[i] : rope_pair_of(p, w->in, i);
            partners[i] = load_at(p, w->source, pairs[i].partner);
        }
    }
    bool normed_after = w->in->options.qk_norm == HEADS_NORM_AFTER;
    if (w->in->options.qk_norm && !normed_after)
        norm_head(p, w, pairs, x, partners);
    for (unsigned i = 0; i < w->parts; i++) {
        const rope_turn *turn = &w->turns[i];
        if (turn->cos.kind)
            x[i] = rope_turned_by(p, &pairs[i], turn, x[i], partners[i]);
        else if (has_turns(w->in, i))
            x[i] = rope_turned(p, w->in, &pairs[i], w->position, x[i], partners[i]);
        if (!normed_after)
            assign(p, values[i], x[i]);
    }
    if (!normed_after)
        return;
    norm_head(p, w, pairs, x, NULL);
    for (unsigned i = 0; i < w->parts; i++)
        assign(p, values[i], x[i]);
}

static void store_q(ptx *p, const head_work *w, const var *values)
{
    const problem_shape *s = &w->in->shape;
    val number = mad(p, w->row, imm(U32, s->num_heads), w->head);
    val q = mad_wide(p, number, s->head_dim * F32_BYTES, parameter(p, "q"));
    bool warm = w->in->options.rope.temperature_length > 0;
    val temperature = warm ? rope_temperature(p, w->in, w->position) : imm(F32, 0);
    for (unsigned i = 0; i < w->parts; i++) {
        val value = get(p, values[i]);
        val at = mad_wide(p, head_place(p, w->in, i), F32_BYTES, q);
        PTX_IF (p, head_has(p, w->in, i))
            st_global(p, F32, at, 0, warm ? mul(p, value, temperature) : value);
    }
    if (w->in->options.gated) {
        int64_t head_bytes = w->in->shape.head_dim * F32_BYTES;
        val from = add(p, w->source, head_bytes);
        val to = mad_wide(p, number, head_bytes, parameter(p, "gate"));
        for (unsigned i = 0; i < w->parts; i++) {
            val place = head_place(p, w->in, i), gate = load_at(p, from, place);
            PTX_IF (p, head_has(p, w->in, i))
                st_global(p, F32, mad_wide(p, place, F32_BYTES, to), 0, gate);
        }
    }
}

static void store_kv(ptx *p, const head_work *w, const var *values)
{
    const problem_shape *s = &w->in->shape;
    val first =
        select(p, w->is_k, imm(U32, s->num_heads), imm(U32, s->num_heads + s->num_kv_heads));
    val pool = select(p, w->is_k, parameter(p, "k"), parameter(p, "v"));
    val start = cache_pages_start(p, &w->pages, pool, sub(p, w->head, first));
    int64_t ring = w->in->options.ring;
    val number =
        ring ? rem(p, w->position, imm(U32, ring)) : cache_pages_existing(p, w->in, w->position);
    number = cache_pages_row(p, &w->pages, number);
    val row = mad_wide(p, number, cache_row_bytes(w->in), start);
    val has_room = lt(p, w->position, s->max_seq_len);
    for (unsigned i = 0; i < w->parts; i++)
        cache_store(p, w->in, row, i, get(p, values[i]), has_room);
}

static void rope_kv_write_build(ptx *p, const instance *in)
{
    const problem_options *o = &in->options;
    bool early = is_settled(in) && ptx_overlaps(p), alone = has_kv_alone(in);
    if (head_parts(in) > USUAL_PARTS)
        ptx_max_registers(p, o->qk_norm == HEADS_NORM_ROW ? WIDE_ROW_REGISTERS : WIDE_REGISTERS);
    if (!early)
        wait_for_launches(p);
    phase(p, "load a head");
    head_work w = work_new(p, in);
    if (early) {
        phase(p, "compute cos and sin");
        for (unsigned i = 0; i < w.parts; i++)
            if (has_turns(w.in, i)) {
                w.pairs[i] = rope_pair_of(p, w.in, i);
                w.turns[i] = rope_turn_at(p, w.in, w.pairs[i].pair, w.position);
            }
        wait_for_launches(p);
        phase(p, "load the head's values");
    }
    val loaded[MOST_HEAD_PARTS];
    var values[MOST_HEAD_PARTS];
    for (unsigned i = 0; i < w.parts; i++) {
        loaded[i] = load_at(p, w.source, head_place(p, in, i));
        values[i] = var_like(p, loaded[i]);
    }
    if (!alone || o->qk_norm || o->v_norm || o->rope.style != ROPE_NONE) {
        phase(p, alone ? "norm and RoPE of k" : "norm and RoPE of q and k");
        PTX_IF (p, w.is_k)
            turn_head(p, &w, loaded, values);
        if (o->v_norm && stored_heads(in))
            PTX_ELSE (p) {
                val factor = norm_factor(p, in, head_mean(p, &w, loaded));
                for (unsigned i = 0; i < w.parts; i++)
                    assign(p, values[i], mul(p, loaded[i], factor));
            }
    }
    phase(p, "store");
    if (w.is_spare.kind)
        ret_if(p, w.is_spare);
    if (alone) {
        store_kv(p, &w, values);
    } else if (!stored_heads(in)) {
        store_q(p, &w, values);
    } else {
        PTX_IF (p, w.is_q)
            store_q(p, &w, values);
        PTX_ELSE (p)
            store_kv(p, &w, values);
    }
}

static const choice gated_choices[] = CHOICES({ "none", "" }, { "copy", "_gated" });
static const choice qk_norm_choices[] =
    CHOICES([HEADS_NORM_NONE] = { "none", "" }, [HEADS_NORM_BEFORE] = { "rms", "_qknorm" },
            [HEADS_NORM_AFTER] = { "rms_after", "_qknorm_after" },
            [HEADS_NORM_ROW] = { "rms_row", "_qknorm_row" });
static const choice k_norm_choices[] =
    CHOICES([HEADS_NORM_NONE] = { "none", "" }, [HEADS_NORM_BEFORE] = { "rms", "_knorm" },
            [HEADS_NORM_AFTER] = { "rms_after", "_knorm_after" },
            [HEADS_NORM_ROW] = { "rms_row", "_knorm_row" });
static const choice v_norm_choices[] = CHOICES({ "none", "" }, { "rms", "_vnorm" });
static const choice v_from_choices[] = CHOICES({ "own", "" }, { "k", "_vfromk" });
static const choice kv_write_choices[] = CHOICES({ "write", "" }, { "none", "_qonly" });

static const char *check_rope_kv_write(const instance *in, arena *a, const char **blamed)
{
    const rope_options *o = &in->options.rope;
    long long dim = in->shape.head_dim, dims = o->dims;
    if (in->kv_type == KV_Q8_0 && dim % Q8_0_VALUES)
        return blame_key(a, blamed, "head_dim",
                         "head_dim = %lld is not a multiple of %d, as kv_type = q8_0 needs; use "
                         "%lld",
                         dim, Q8_0_VALUES, (dim / Q8_0_VALUES + 1) * Q8_0_VALUES);
    if (dims > dim)
        return blame_key(a, blamed, "n_rot",
                         "n_rot = %lld is more than head_dim = %lld; use at most %lld", dims, dim,
                         dim);
    const char *wrong_page = check_page(in, a, blamed);
    return wrong_page ? wrong_page : check_rope(in, a, blamed);
}

#define KEYS_OF_ROWS                                                                               \
    KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .at_run_time = true, .tag = "m"),         \
        KEY_WORD("kv_type", "type of the cache; q8_0: head_dim in 32s", kv_type, kv_type_choices), \
        KEY_PAGE, KEY_RING
#define KEYS_V_AND_EPSILON                                                                   \
    KEY_REAL("epsilon", "epsilon of these norms, e.g. 1e-6", options.epsilon, "eps",         \
             epsilon_range, .only_with = KEY_FIELD(options.qk_norm),                         \
             .or_with = KEY_FIELD(options.v_norm)),                                          \
        KEY_WORD("v_norm", "norm of each head of V, without weights", options.v_norm,        \
                 v_norm_choices),                                                            \
        KEY_WORD("v_from", "k: V is made from K before its norm and RoPE", options.v_from_k, \
                 v_from_choices)

/* Fields of both rope_kv_write and kv_write. */
#define KV_WRITE_FAMILY                                                         \
    .same_bits = true, .activations = FORMAT_F32, .check = check_rope_kv_write, \
    .build = rope_kv_write_build, .fit = ref_fit_rope, .tolerance = 6e-7
#define KV_WRITE_LAUNCH                                                                            \
    .block = "32*warps", .shared = "4*warps*min(1, warps-1)",                                      \
    .sizes = SIZES(CACHE_PAGES, { "warps", warps_per_block, "per block: 8 with rms_row, else 1" }, \
                   { "q_normed", q_heads_normed,                                                   \
                     "heads with norm weights of their own: all of q with rms_row, else 1" },      \
                   { "k_normed", k_heads_normed, "the same of k" }),                               \
    .loads_at_once = true, .overlap = WAITS_ITSELF, .registers = 64
/* Conditions of parameters that a kernel of q alone lacks. */
#define STORES_KV    .only_with = KEY_FIELD(options.q_alone), .only_of = 1
#define STORES_PAGES .unless = KEY_FIELD(options.q_alone)
#define KV_BLOCKS    "2*ceil_div(num_kv_heads, warps)"

const family rope_kv_write = {
    KV_WRITE_FAMILY,
    .name = "rope_kv_write",
    .summary = "head norms and RoPE of q and k, and stores of K and V to their caches",
    .computes = "q[m,h] = rope(norm(qkv[m,h])), K[m][h,pos] = rope(norm(..)), V[m][h,pos] = ..",
    .op = OP_ROPE_KV_WRITE,
    .keys = KEYS(KEY_HEAD_DIM(4, PROBLEM_MOST_HEAD_DIM), KEY_NUM_HEADS, KEYS_OF_CACHE, KEYS_OF_ROWS,
                 KEY_WORD("kv", "none: q only; keys of K and V have no effect", options.q_alone,
                          kv_write_choices),
                 KEY_WORD("gated", "copy: each head of q has a gate, copied to gate", options.gated,
                          gated_choices),
                 KEY_WORD("qk_norm", "norm of q and k by head before or after RoPE, or by row",
                          options.qk_norm, qk_norm_choices),
                 KEYS_V_AND_EPSILON, KEY_ROPE_STYLE("pairs: norm (2i, 2i+1), neox (i, i+n_rot/2)"),
                 KEY_N_ROT, KEYS_ROPE("n_rot"), KEYS_ROPE_SECTIONS,
                 KEY_STATE("settled: positions and pages read early"), KEY_DIMS),
    .params = PARAMS(
        OUT(F32, q, "m*num_heads*head_dim", 16),
        KV_POOL_WITH(OUT, k, .unit = "head_dim", STORES_KV),
        KV_POOL_WITH(OUT, v, .unit = "head_dim", STORES_KV),
        OUT(F32, gate, "m*num_heads*head_dim", 16, .only_with = KEY_FIELD(options.gated)),
        IN(F32, qkv, "m*(num_heads+gated*num_heads+(1-kv)*(2-v_from)*num_kv_heads)*head_dim", 16),
        ROW_POSITIONS, IN_WHERE(qk_norm, F32, q_norm, "q_normed*head_dim", 4),
        IN(F32, k_norm, "k_normed*head_dim", 4, .also_with = KEY_FIELD(options.qk_norm),
           .only_with = KEY_FIELD(options.q_alone), .only_of = 1),
        ROPE_FACTORS("n_rot/2"), ROW_SEQUENCES_WITH(.order = ORDER_SETTLED, STORES_KV),
        PAGE_TABLE_WITH(.order = ORDER_SETTLED, STORES_PAGES)),
    .launch = { KV_WRITE_LAUNCH, .grid = { "ceil_div(num_heads, warps)+(1-kv)*" KV_BLOCKS, "m" },
                .others = "(1-kv)*" KV_BLOCKS },
    .reference = ref_rope_kv_write,
};

const family kv_write = {
    KV_WRITE_FAMILY,
    .name = "kv_write",
    .summary = "stores of K and V to their caches, with the norm and RoPE of K",
    .computes = "K[m][h,pos] = rope(norm(k_rows[m,h])), V[m][h,pos] = v_rows[m,h]",
    .op = OP_KV_WRITE,
    .keys = KEYS(KEY_HEAD_DIM(4, PROBLEM_MOST_HEAD_DIM), KEYS_OF_CACHE, KEYS_OF_ROWS,
                 KEY_WORD("k_norm", "norm of K by head before or after RoPE, or by row",
                          options.qk_norm, k_norm_choices),
                 KEYS_V_AND_EPSILON,
                 KEY_WORD("rope", "pairs: norm (2i, 2i+1), neox (i, i+n_rot/2)", options.rope.style,
                          rope_style_choices, .def = ROPE_NONE),
                 KEY_N_ROT, KEYS_ROPE_ANGLES("n_rot"), KEYS_ROPE_SECTIONS,
                 KEY_STATE("settled: positions and pages read early"), KEY_DIMS),
    .params =
        PARAMS(KV_POOL(OUT, k), KV_POOL(OUT, v), IN(F32, k_rows, "m*num_kv_heads*head_dim", 16),
               IN(F32, v_rows, "m*num_kv_heads*head_dim", 16,
                  .only_with = KEY_FIELD(options.v_from_k), .only_of = 1),
               ROW_POSITIONS, IN_WHERE(qk_norm, F32, k_norm, "k_normed*head_dim", 4),
               ROPE_FACTORS("n_rot/2"), ROW_SEQUENCES, PAGE_TABLE),
    .launch = { KV_WRITE_LAUNCH, .grid = { KV_BLOCKS, "m" } },
    .reference = ref_kv_write,
};
