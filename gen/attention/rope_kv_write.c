/* Prepares q, k and v for attention in one launch: RMS norm of each head of q and k (optional),
 * RoPE, and stores of K and V to the caches.
 *
 * Layouts: qkv [m, num_heads + 2 num_kv_heads, head_dim], per row the heads of q, of K, then of V;
 * q [m, num_heads, head_dim]; k and v are arrays of m addresses of caches [num_kv_heads,
 * max_seq_len, head_dim]. Rows of one sequence have the same address and different positions. K is
 * rounded after RoPE, V directly. With ring = R caches are [num_kv_heads, R, head_dim], and
 * position t is written to row t % R; a launch writes at most R positions of a sequence.
 *
 * With gated = copy each head of q is followed by its gate of head_dim values: a row of qkv is [2
 * num_heads + 2 num_kv_heads, head_dim]. The gates are copied to gate [m, num_heads, head_dim].
 *
 * A row with a position >= max_seq_len leaves the caches unchanged: its sequence is full, or (2^32
 * - 1) it has none.
 *
 * A block is one warp and processes a head of a row. A lane has every 32nd value and also loads its
 * partner: pairs are 1 apart or any distance (NEOX with part of a head), and a second load costs
 * less than shuffles.
 *
 * With state = settled positions and addresses of caches do not change after the launch begins. A
 * kernel that overlaps with its predecessors reads them and computes cos and sin before it waits.
 *
 * kv_write does the same for K and V only (num_heads = 0). Their rows are two arrays [m,
 * num_kv_heads, head_dim] in place of qkv. Angles are counted in turns, in fixed point: see
 * rows/rope.c.
 */
#include "gen/attention/attention.h"
#include "gen/common/reduce.h"
#include "gen/common/next.h"
#include "ref/reference.h"

enum { ADDRESS_BYTES = 8 };

typedef struct head_work {
    const instance *in;
    unsigned parts;
    val row, head; /* indices in qkv */
    val position;
    val source; /* address of the head's values */
    val is_q, is_k;
    val cache; /* the row's cache of K or V; loaded with the first loads */
    rope_pair pairs[MOST_HEAD_PARTS];
    rope_turn turns[MOST_HEAD_PARTS]; /* computed before the wait if the state is settled */
} head_work;

/* Returns true if K and V are separate inputs and there is no q. */
static bool has_kv_alone(const instance *in)
{
    return in->family->op == OP_KV_WRITE;
}

static head_work work_new(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    head_work w = { .in = in, .parts = head_parts(in) };
    w.head = named(p, "head", ctaid_x(p));
    w.row = named(p, "row", ctaid_y(p));
    val position_at = mad_wide(p, w.row, 4, parameter(p, "positions"));
    w.position = load_state(p, is_settled(in), U32, position_at);
    if (!has_kv_alone(in))
        w.is_q = lt(p, w.head, s->num_heads);
    w.is_k = lt(p, w.head, s->num_heads + s->num_kv_heads);
    int64_t gates = in->options.gated ? s->num_heads : 0;
    val place = w.head;
    if (gates) /* each head of q is followed by its gate */
        place = add(p, w.head, min(p, w.head, gates));
    int64_t heads = s->num_heads + gates + 2 * s->num_kv_heads;
    val rows;
    if (has_kv_alone(in)) {
        heads = s->num_kv_heads;
        place = select(p, w.is_k, w.head, sub(p, w.head, heads));
        rows = select(p, w.is_k, parameter(p, "k_rows"), parameter(p, "v_rows"));
    } else {
        rows = parameter(p, "qkv");
    }
    val number = mad(p, w.row, imm(U32, heads), place);
    w.source = mad_wide(p, number, s->head_dim * F32_BYTES, rows);
    val array = select(p, w.is_k, parameter(p, "k"), parameter(p, "v"));
    val cache_at = mad_wide(p, w.row, ADDRESS_BYTES, array);
    w.cache = load_state(p, is_settled(in), U64, cache_at);
    return w;
}

static val load_at(ptx *p, val base, val place)
{
    return ld_const(p, F32, mad_wide(p, place, F32_BYTES, base), 0);
}

/* Applies the head's norm to the lane's values and their partners. */
static void norm_head(ptx *p, const head_work *w, const rope_pair *pairs, val *x, val *partners)
{
    val weights = parameter(p, "k_norm");
    if (!has_kv_alone(w->in))
        weights = select(p, w->is_q, parameter(p, "q_norm"), weights);
    val own[MOST_HEAD_PARTS], others[MOST_HEAD_PARTS];
    for (unsigned i = 0; i < w->parts; i++) {
        own[i] = load_at(p, weights, head_place(p, w->in, i));
        others[i] = load_at(p, weights, pairs[i].partner);
    }
    val squares = imm(F32, 0);
    for (unsigned i = 0; i < w->parts; i++) {
        val x_own = select(p, head_has(p, w->in, i), x[i], imm(F32, 0));
        squares = i ? fma(p, x_own, x_own, squares) : mul(p, x_own, x_own);
    }
    val mean = mul(p, warp_sum(p, squares), 1.0f / (float)w->in->shape.head_dim);
    val factor = norm_factor(p, w->in, mean);
    for (unsigned i = 0; i < w->parts; i++) {
        x[i] = mul(p, mul(p, x[i], factor), own[i]);
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
    if (w->in->options.qk_norm)
        norm_head(p, w, pairs, x, partners);
    for (unsigned i = 0; i < w->parts; i++) {
        const rope_turn *turn = &w->turns[i];
        if (turn->cos.kind)
            x[i] = rope_turned_by(p, &pairs[i], turn, x[i], partners[i]);
        else if (has_turns(w->in, i))
            x[i] = rope_turned(p, w->in, &pairs[i], w->position, x[i], partners[i]);
        assign(p, values[i], x[i]);
    }
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
    val offset = attention_kv_head_offset(p, w->in, sub(p, w->head, first));
    int64_t ring = w->in->options.ring;
    val number = ring ? rem(p, w->position, imm(U32, ring)) : w->position;
    val row = mad_wide(p, number, cache_row_bytes(w->in), add(p, w->cache, offset));
    val has_room = lt(p, w->position, s->max_seq_len);
    for (unsigned i = 0; i < w->parts; i++)
        cache_store(p, w->in, row, i, get(p, values[i]), has_room);
}

static void rope_kv_write_build(ptx *p, const instance *in)
{
    bool early = is_settled(in) && ptx_overlaps(p);
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
    if (!has_kv_alone(in) || in->options.qk_norm || in->options.rope.style != ROPE_NONE) {
        phase(p, has_kv_alone(in) ? "norm and RoPE of k" : "norm and RoPE of q and k");
        PTX_IF (p, w.is_k)
            turn_head(p, &w, loaded, values);
    }
    phase(p, "store");
    if (has_kv_alone(in)) {
        store_kv(p, &w, values);
        return;
    }
    PTX_IF (p, w.is_q)
        store_q(p, &w, values);
    PTX_ELSE (p)
        store_kv(p, &w, values);
}

static const choice gated_choices[] = { { "none", "" }, { "copy", "_gated" }, { NULL, NULL } };
static const choice qk_norm_choices[] = { { "none", "" }, { "rms", "_qknorm" }, { NULL, NULL } };
static const choice k_norm_choices[] = { { "none", "" }, { "rms", "_knorm" }, { NULL, NULL } };

static const char *check_rope_kv_write(const instance *in, arena *a, const char **blamed)
{
    const rope_options *o = &in->options.rope;
    long long dim = in->shape.head_dim, dims = o->dims;
    if (in->kv_type == KV_Q8_0 && dim % Q8_0_VALUES) {
        *blamed = "head_dim";
        return arena_format(a,
                            "head_dim = %lld is not a multiple of %d, as kv_type = q8_0 needs; use "
                            "%lld",
                            dim, Q8_0_VALUES, (dim / Q8_0_VALUES + 1) * Q8_0_VALUES);
    }
    if (dims > dim) {
        *blamed = "n_rot";
        return arena_format(a, "n_rot = %lld is more than head_dim = %lld; use at most %lld", dims,
                            dim, dim);
    }
    return check_rope(in, a, blamed);
}

#define KEYS_OF_ROWS                                                                               \
    KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .at_run_time = true, .tag = "m"),         \
        KEY_WORD("kv_type", "type of the cache; q8_0: head_dim in 32s", kv_type, kv_type_choices), \
        KEY_RING
#define KEY_NORM_EPSILON                                                                          \
    KEY_REAL("epsilon", "epsilon of that norm, e.g. 1e-6", options.epsilon, "eps", epsilon_range, \
             .only_with = KEY_FIELD(options.qk_norm))

/* Fields of both rope_kv_write and kv_write. */
#define KV_WRITE_FAMILY                                                         \
    .same_bits = true, .activations = FORMAT_F32, .check = check_rope_kv_write, \
    .build = rope_kv_write_build, .fit = ref_fit_rope, .tolerance = 6e-7
#define KV_WRITE_LAUNCH                                                                 \
    .block = "32", .sizes = (const derived_size[]){ CACHE_ROWS, { NULL, NULL, NULL } }, \
    .loads_at_once = true, .overlap = WAITS_ITSELF, .registers = 64

const family rope_kv_write = {
    KV_WRITE_FAMILY,
    .name = "rope_kv_write",
    .summary = "head norms and RoPE of q and k, and stores of K and V to their caches",
    .computes = "q[m,h] = rope(norm(qkv[m,h])), K[m][h,pos] = rope(norm(..)), V[m][h,pos] = ..",
    .op = OP_ROPE_KV_WRITE,
    .keys =
        (const key[]){
            KEY_HEAD_DIM(4, PROBLEM_MOST_HEAD_DIM),
            KEY_NUM_HEADS,
            KEYS_OF_CACHE,
            KEYS_OF_ROWS,
            KEY_WORD("gated", "copy: each head of q has a gate, copied to gate", options.gated,
                     gated_choices),
            KEY_WORD("qk_norm", "norm of each head of q and k, before RoPE", options.qk_norm,
                     qk_norm_choices),
            KEY_NORM_EPSILON,
            KEY_ROPE_STYLE("pairs: norm (2i, 2i+1), neox (i, i+n_rot/2)"),
            KEY_N_ROT,
            KEYS_ROPE("n_rot"),
            KEY_STATE("settled: positions and addresses read early"),
            KEY_DIMS,
            KEY_END,
        },
    .params =
        (const param[]){
            OUT(F32, q, "m*num_heads*head_dim", 16),
            KV_RINGS_OUT(k),
            KV_RINGS_OUT(v),
            OUT(F32, gate, "m*num_heads*head_dim", 16, .only_with = KEY_FIELD(options.gated)),
            IN(F32, qkv, "m*(num_heads+gated*num_heads+2*num_kv_heads)*head_dim", 16),
            ROW_POSITIONS,
            IN_WHERE(qk_norm, F32, q_norm, "head_dim", 4),
            IN_WHERE(qk_norm, F32, k_norm, "head_dim", 4),
            ROPE_FACTORS("n_rot/2"),
            PARAM_END,
        },
    .launch = { KV_WRITE_LAUNCH, .grid = { "num_heads+2*num_kv_heads", "m" },
                .others = "2*num_kv_heads" },
    .reference = ref_rope_kv_write,
};

const family kv_write = {
    KV_WRITE_FAMILY,
    .name = "kv_write",
    .summary = "stores of K and V to their caches, with the norm and RoPE of K",
    .computes = "K[m][h,pos] = rope(norm(k_rows[m,h])), V[m][h,pos] = v_rows[m,h]",
    .op = OP_KV_WRITE,
    .keys =
        (const key[]){
            KEY_HEAD_DIM(4, PROBLEM_MOST_HEAD_DIM),
            KEYS_OF_CACHE,
            KEYS_OF_ROWS,
            KEY_WORD("k_norm", "norm of each head of K, before RoPE", options.qk_norm,
                     k_norm_choices),
            KEY_NORM_EPSILON,
            KEY_WORD("rope", "pairs: norm (2i, 2i+1), neox (i, i+n_rot/2)", options.rope.style,
                     rope_style_choices, .def = ROPE_NONE),
            KEY_N_ROT,
            KEYS_ROPE_ANGLES("n_rot"),
            KEY_STATE("settled: positions and addresses read early"),
            KEY_DIMS,
            KEY_END,
        },
    .params =
        (const param[]){
            KV_RINGS_OUT(k),
            KV_RINGS_OUT(v),
            IN(F32, k_rows, "m*num_kv_heads*head_dim", 16),
            IN(F32, v_rows, "m*num_kv_heads*head_dim", 16),
            ROW_POSITIONS,
            IN_WHERE(qk_norm, F32, k_norm, "head_dim", 4),
            ROPE_FACTORS("n_rot/2"),
            PARAM_END,
        },
    .launch = { KV_WRITE_LAUNCH, .grid = { "2*num_kv_heads", "m" } },
    .reference = ref_kv_write,
};
