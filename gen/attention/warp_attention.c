/* Decode attention: one query token per sequence against its KV cache, o = softmax(q K' scale) V.
 *
 * Layouts: q and o [m, num_heads, head_dim]; K and V [num_kv_heads, max_seq_len, head_dim], for
 * several sequences pools of pages [num_kv_heads, page or max_seq_len, head_dim]. Query head h reads
 * KV head h * num_kv_heads / num_heads (grouped-query attention). A group of lanes shares a
 * position's row, with up to 16 values per lane (see cache_row.h). Each group has its own positions
 * and its own online softmax; groups are merged at the end. Small groups need few shuffles per score
 * and keep several positions in flight. The families split the positions differently:
 *
 *   incremental     one warp per head
 *   multi_warp      one block per head; each warp has a stretch of the positions, and the partial
 *                   results are merged in shared memory
 *   batched         one warp per head and sequence, m sequences
 *   flash_decoding  one warp per chunk, head and sequence; a second kernel merges the chunks
 *                   (Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference")
 *
 * Chunks have partial rows [m, num_heads, chunks] with chunks = ceil(max_seq_len / chunk_size) for
 * any sequence lengths, so that a row's address never changes. A chunk without positions stores
 * nothing, and the merge does not read its row. Only the merge adds sinks. */
#include <math.h>

#include "gen/attention/attention.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

#define LEAST_SOFTCAP 1e-3
#define CHUNKS        "ceil_div(max_seq_len, chunk_size)"
#define PARTIALS      "m*num_heads*" CHUNKS

enum {
    MOST_CHUNKS = 65535, /* limit of a grid's z */
    MOST_USUAL_WARPS = 16,
    LANE_VALUES = MAX_LANE_VALUES,
    LEAST_GROUP = 2,       /* lanes per position */
    BYTES_IN_FLIGHT = 128, /* bytes of K per lane; the same of V */
    MAX_IN_FLIGHT = 4,     /* positions */
};

const choice sinks_choices[] = CHOICES({ "none", "" }, { "add", "_sinks" });
const choice gate_choices[] =
    CHOICES([GATE_NONE] = { "none", "" }, [GATE_SIGMOID] = { "sigmoid", "_gate" },
            [GATE_SIGMOID_HEAD] = { "sigmoid_head", "_headgate" },
            [GATE_SOFTPLUS] = { "softplus", "_softplus" },
            [GATE_SOFTPLUS_HEAD] = { "softplus_head", "_headsoftplus" });

const char *check_page(const instance *in, arena *a, const char **blamed)
{
    long long page = in->options.page;
    if (page & (page - 1))
        return blame_key(a, blamed, "page", "page = %lld is not 16, 32, 64, 128 or 256", page);
    if (!page || !in->options.ring)
        return NULL;
    return blame_key(a, blamed, "page",
                     "page = %lld with a ring; a ring is one page: leave out page", page);
}

const char *check_heads(const instance *in, arena *a, const char **blamed)
{
    const char *wrong_page = check_page(in, a, blamed);
    if (wrong_page)
        return wrong_page;
    if (in->options.softcap > 0 && in->options.softcap < LEAST_SOFTCAP)
        return blame_key(
            a, blamed, "softcap",
            "softcap = %g is less than %g, where scores overflow f32; use 0 for no cap",
            in->options.softcap, LEAST_SOFTCAP);
    if (in->kv_type == KV_Q8_0 && in->shape.head_dim % Q8_0_VALUES)
        return blame_key(
            a, blamed, "head_dim",
            "head_dim = %lld is not a multiple of %d, as kv_type = q8_0 needs; use %lld",
            (long long)in->shape.head_dim, Q8_0_VALUES,
            (long long)(in->shape.head_dim / Q8_0_VALUES + 1) * Q8_0_VALUES);
    if (in->shape.num_heads % in->shape.num_kv_heads == 0)
        return NULL;
    return blame_key(a, blamed, "num_kv_heads",
                     "num_heads = %lld is not a multiple of num_kv_heads = %lld",
                     (long long)in->shape.num_heads, (long long)in->shape.num_kv_heads);
}

const char *check_ring(const instance *in, arena *a, const char **blamed)
{
    long long ring = in->options.ring, window = in->options.window, dim = in->shape.head_dim;
    if (in->family->halves && dim > PROBLEM_SPLIT_HEAD_DIM && dim % (PROBLEM_SPLIT_HEAD_DIM / 2))
        return blame_key(a, blamed, "head_dim",
                         "head_dim = %lld is above %d and not a multiple of %d, as tensor cores "
                         "need; use %lld",
                         dim, PROBLEM_SPLIT_HEAD_DIM, PROBLEM_SPLIT_HEAD_DIM / 2,
                         (dim / (PROBLEM_SPLIT_HEAD_DIM / 2) + 1) * (PROBLEM_SPLIT_HEAD_DIM / 2));
    if (!ring || (window && ring >= window))
        return check_heads(in, a, blamed);
    *blamed = "ring";
    if (!window)
        return arena_format(a,
                            "ring = %lld needs a window of at most %lld positions; without one all "
                            "max_seq_len = %lld positions are read",
                            ring, ring, (long long)in->shape.max_seq_len);
    return arena_format(a,
                        "ring = %lld is less than window = %lld; use at least %lld rows, and m - 1 "
                        "more if a launch writes m positions of a sequence",
                        ring, window, window);
}

const char *check_flash_decoding(const instance *in, arena *a, const char **blamed)
{
    int64_t chunks = attention_most_chunks(in);
    if (chunks <= MOST_CHUNKS)
        return check_heads(in, a, blamed);
    return blame_key(a, blamed, "max_seq_len",
                     "max_seq_len = %lld makes %lld chunks of %lld; a grid has at most %d: "
                     "raise chunk_size",
                     (long long)in->shape.max_seq_len, (long long)chunks,
                     (long long)in->shape.chunk_size, MOST_CHUNKS);
}

/* A lane's two addresses in a row, for raw_row_load. */
typedef struct lane_rows {
    var first, last;
} lane_rows;

typedef struct attention {
    const instance *in;
    row_lane row;
    cache_pages pages;
    val q[LANE_VALUES];
    lane_rows kv[2]; /* K and V */
    softmax state;
} attention;

/* Returns the values or bytes per lane. Threads of largest blocks have 64 registers, so half. */
static unsigned share(const instance *in, unsigned usual)
{
    return in->num_warps > MOST_USUAL_WARPS ? usual / 2 : usual;
}

static attention attention_new(ptx *p, const instance *in, val query)
{
    attention a = { .in = in };
    a.row = row_lane_new(p, in, row_split_of(in, share(in, LANE_VALUES), LEAST_GROUP));
    row_lane_load(p, &a.row, attention_f32_row(p, in, "q", query), attention_query_scale(in), a.q);
    a.state = softmax_new(p, row_split_values(&a.row.split));
    return a;
}

static void point_at(ptx *p, const attention *a, val k, val v, val position)
{
    val row = mul_wide(p, cache_pages_row(p, &a->pages, position), cache_row_bytes(a->in));
    for (int i = 0; i < 2; i++) {
        assign(p, a->kv[i].first, add(p, i ? v : k, row));
        assign(p, a->kv[i].last, add(p, a->kv[i].first, a->row.last_offset));
    }
}

/* Loads `count` positions per group, `apart` positions from each other. Without pages they are at
 * equal distances from the group's pointers; else the pointers end up at the last one. */
static void load_positions(ptx *p, const attention *a, unsigned count, unsigned apart,
                           val starts[2], val position, raw_row rows[2][MAX_IN_FLIGHT])
{
    int64_t step = a->in->options.page ? 0 : apart * (int64_t)cache_row_bytes(a->in);
    for (unsigned i = 0; i < count; i++) {
        if (!step && count > 1)
            point_at(p, a, starts[0], starts[1], add(p, position, i * apart));
        for (unsigned j = 0; j < 2; j++)
            rows[j][i] = raw_row_load(p, &a->row, V(a->kv[j].first), V(a->kv[j].last), i * step);
    }
}

/* Adds loaded positions. *valid says if the group's position exists (NULL: it does); a missing one
 * gets weight 0. */
static void add_positions(ptx *p, const attention *a, unsigned count,
                          raw_row rows[2][MAX_IN_FLIGHT], const val *valid)
{
    val scores[MAX_IN_FLIGHT] = { { 0 } };
    for (unsigned i = 0; i < count; i++) {
        val values[LANE_VALUES];
        raw_row_unpack(p, &a->row, &rows[0][i], values);
        val sum = mul(p, a->q[0], values[0]);
        for (unsigned j = 1; j < row_split_values(&a->row.split); j++)
            sum = fma(p, a->q[j], values[j], sum);
        scores[i] = attention_score(p, a->in, group_sum(p, sum, a->row.split.group));
        if (valid)
            scores[i] = select(p, *valid, scores[i], -INFINITY);
    }
    softmax_raise(p, &a->state, scores, count);
    for (unsigned i = 0; i < count; i++) {
        val weight = softmax_weight(p, &a->state, scores[i]);
        val x[LANE_VALUES];
        raw_row_unpack(p, &a->row, &rows[1][i], x);
        for (unsigned l = 0; l < row_split_values(&a->row.split); l++)
            assign(p, a->state.values[l], fma(p, weight, x[l], a->state.values[l]));
    }
}

/* Adds a run of positions (first <= end) of a KV head's caches. It must be called once; afterwards
 * every lane has the sums of its pieces. A group processes several positions at once while all
 * groups have them, then one at a time. A group without one reads the last, with weight 0. */
static void attention_add(ptx *p, attention *a, val k, val v, positions run)
{
    unsigned count = share(a->in, BYTES_IN_FLIGHT) / (raw_row_words(&a->row.split) * F32_BYTES);
    unsigned groups = WARP / a->row.split.group,
             in_flight = count < MAX_IN_FLIGHT ? count : MAX_IN_FLIGHT;
    int64_t turn_bytes = in_flight * groups * (int64_t)cache_row_bytes(a->in);
    raw_row rows[2][MAX_IN_FLIGHT];
    val turns = div(p, sub(p, run.end, run.first), groups * in_flight);
    val offset = row_lane_offset(p, &a->row);
    for (int i = 0; i < 2; i++) {
        a->kv[i].first = var_u64(p, 0);
        a->kv[i].last = var_u64(p, 0);
    }
    k = add(p, k, offset);
    v = add(p, v, offset);
    val starts[2] = { k, v }, own = add(p, run.first, a->row.group);
    if (!a->in->options.page)
        point_at(p, a, k, v, own);
    phase(p, "attend: several positions per group of lanes");
    ptx_loop_work(p, 2 * in_flight * row_split_values(&a->row.split), "elements");
    PTX_FOR (p, turn, 0, turns, 1) {
        load_positions(p, a, in_flight, groups, starts,
                       mad(p, turn, imm(U32, in_flight * groups), own), rows);
        add_positions(p, a, in_flight, rows, NULL);
        for (int i = 0; i < 2 && !a->in->options.page; i++) {
            assign(p, a->kv[i].first, add(p, a->kv[i].first, turn_bytes));
            assign(p, a->kv[i].last, add(p, a->kv[i].last, turn_bytes));
        }
    }
    phase(p, "attend: the remaining positions, one per group");
    val rest_first = mad(p, turns, imm(U32, groups * in_flight), run.first);
    PTX_FOR (p, rest, rest_first, run.end, groups) {
        val position = add(p, rest, a->row.group), last = sub(p, run.end, 1);
        val valid = le(p, position, last);
        point_at(p, a, k, v, min(p, position, last));
        load_positions(p, a, 1, groups, starts, position, rows);
        add_positions(p, a, 1, rows, &valid);
    }
    phase(p, "merge the groups of lanes");
    for (unsigned mask = a->row.split.group; mask < WARP; mask *= 2)
        softmax_merge_lanes(p, &a->state, mask);
}

static val kv_head_of(ptx *p, const instance *in, val head)
{
    return named(p, "kv_head", div(p, head, in->shape.num_heads / in->shape.num_kv_heads));
}

static void attention_store_output(ptx *p, const attention *a, val query)
{
    val scale = attention_output_scale(p, a->in, &a->state, query);
    val at = row_lane_at(p, &a->row, attention_f32_row(p, a->in, "o", query));
    PTX_IF (p, eq(p, a->row.group, 0))
        row_lane_store(p, &a->row, at, a->state.values, &scale);
}

static void attention_store_partial(ptx *p, const attention *a, val row)
{
    val at = row_lane_at(p, &a->row, row);
    PTX_IF (p, eq(p, a->row.group, 0)) {
        row_lane_store(p, &a->row, at, a->state.values, NULL);
        PTX_IF (p, eq(p, a->row.lane, 0))
            partial_store_sums(p, a->in, row, get(p, a->state.max), get(p, a->state.sum));
    }
}

/* Returns the warp's stretch of the positions. Stretches have equal lengths of whole iterations of
 * the warp with the smallest groups. */
static positions stretch(ptx *p, unsigned warps, positions all)
{
    enum { TURN = 64 };
    val count = sub(p, all.end, all.first);
    val turns = div(p, add(p, count, warps * TURN - 1), warps * TURN);
    val length = mul(p, turns, TURN);
    positions own = { .first = mad(p, warp_id(p), length, all.first) };
    own.first = min(p, own.first, all.end);
    own.end = min(p, add(p, own.first, length), all.end);
    return own;
}

static void build_one_sequence(ptx *p, const instance *in)
{
    unsigned warps = (unsigned)in->num_warps; /* 0 for incremental_attention */
    phase(p, "load q");
    val head = named(p, "head", ctaid_x(p));
    attention a = attention_new(p, in, head);
    val seq_len = parameter(p, "seq_len");
    if (in->seq_len_mode == SEQ_LEN_INDIRECT)
        seq_len = ld_global(p, U32, seq_len, 0);
    positions all = attention_positions(p, in, seq_len);
    a.pages = (cache_pages){ .in = in, .number = imm(U32, 0) };
    val kv_head = kv_head_of(p, in, head);
    val k = cache_pages_start(p, &a.pages, parameter(p, "k"), kv_head);
    val v = cache_pages_start(p, &a.pages, parameter(p, "v"), kv_head);
    attention_add(p, &a, k, v, warps ? stretch(p, warps, all) : all);
    if (!warps) {
        phase(p, "store");
        attention_store_output(p, &a, head);
        return;
    }
    unsigned row_bytes = partial_bytes(in);
    val rows = shared_array(p, "partials", F32, warps * row_bytes / 4);
    attention_store_partial(p, &a, mad(p, warp_id(p), imm(U32, row_bytes), rows));
    barrier(p);
    phase(p, "merge the warps");
    PTX_IF (p, eq(p, warp_id(p), 0))
        partials_merge(p, in, ROWS_IN_SHARED, rows, imm(U32, warps), head);
}

/* A query row among those of all sequences, and the address of its first partial row. */
typedef struct query_row {
    val head, sequence, query, partials;
} query_row;

static query_row query_row_of_block(ptx *p, const instance *in)
{
    query_row r = { .head = named(p, "head", ctaid_x(p)),
                    .sequence = named(p, "sequence", ctaid_y(p)) };
    r.query = mad(p, r.sequence, imm(U32, in->shape.num_heads), r.head);
    if (in->shape.chunk_size)
        r.partials = partial_rows(p, in, r.query, imm(U32, attention_most_chunks(in)));
    return r;
}

static positions positions_of_row(ptx *p, const instance *in, const query_row *r)
{
    return attention_positions(p, in, attention_sequence_length(p, false, r->sequence));
}

static void add_positions_of_row(ptx *p, const query_row *r, attention *a, positions run)
{
    a->pages = cache_pages_of(p, a->in, false, r->sequence);
    val kv_head = kv_head_of(p, a->in, r->head);
    val k = cache_pages_start(p, &a->pages, parameter(p, "k"), kv_head);
    attention_add(p, a, k, cache_pages_start(p, &a->pages, parameter(p, "v"), kv_head), run);
}

static void build_batched(ptx *p, const instance *in)
{
    phase(p, "load q");
    query_row r = query_row_of_block(p, in);
    attention a = attention_new(p, in, r.query);
    add_positions_of_row(p, &r, &a, positions_of_row(p, in, &r));
    phase(p, "store");
    attention_store_output(p, &a, r.query);
}

static void build_chunk(ptx *p, const instance *in)
{
    query_row r = query_row_of_block(p, in);
    val chunk = named(p, "chunk", ctaid_z(p));
    positions all = positions_of_row(p, in, &r);
    val start = mul(p, chunk, in->shape.chunk_size);
    positions own = { .first = max(p, all.first, start) };
    own.end = min(p, all.end, add(p, start, in->shape.chunk_size));
    ret_if(p, ge(p, own.first, own.end));
    phase(p, "load q");
    attention a = attention_new(p, in, r.query);
    add_positions_of_row(p, &r, &a, own);
    phase(p, "store the partial row");
    attention_store_partial(p, &a, mad_wide(p, chunk, partial_bytes(in), r.partials));
}

static void build_reduce(ptx *p, const instance *in)
{
    query_row r = query_row_of_block(p, in);
    positions all = positions_of_row(p, in, &r);
    val first = div(p, all.first, in->shape.chunk_size);
    val end = div(p, add(p, all.end, in->shape.chunk_size - 1), in->shape.chunk_size);
    val rows = mad_wide(p, first, partial_bytes(in), r.partials);
    partials_merge(p, in, ROWS_OF_ANOTHER_GRID, rows, sub(p, end, first), r.query);
}

#define KEY_SEQ_LEN                                                                   \
    KEY_WORD("seq_len", "direct: a number; indirect: in device memory", seq_len_mode, \
             seq_len_choices)

static const param one_sequence[] = {
    OUT(F32, o, "num_heads*head_dim", 16),
    QUERIES("num_heads*head_dim"),
    KV_CACHE(k),
    KV_CACHE(v),
    SINKS,
    { .name = "seq_len", .kind = PARAM_SEQ_LEN },
    PARAM_END,
};

const family incremental_attention = {
    .name = "incremental_attention",
    .summary = "decode attention, one warp per head",
    .computes = "o[h] = softmax(q[h] K' scale) V",
    F32_FAMILY(OP_ATTENTION, build_one_sequence, ref_attention, 2e-6),
    .preference = 1,
    .keys = KEYS(ATTENTION_SHAPE, KEY_SEQ_LEN, ATTENTION_OPTIONS, KEY_SINKS),
    .params = one_sequence,
    .launch = { .block = "32", .grid = { "num_heads" }, .registers = 96 },
    .check = check_heads,
};

const family multi_warp_attention = {
    .name = "multi_warp_attention",
    .summary = "decode attention, several warps per head, merged in shared memory",
    .computes = "o[h] = softmax(q[h] K' scale) V",
    .op = OP_ATTENTION,
    .activations = FORMAT_F32,
    .preference = 2,
    .keys = KEYS(ATTENTION_SHAPE, KEY_NUM_WARPS(4), KEY_SEQ_LEN, ATTENTION_OPTIONS, KEY_SINKS),
    .params = one_sequence,
    .launch = { .block = "32*num_warps",
                .grid = { "num_heads" },
                .shared = "num_warps*(head_dim+4)*4",
                .registers = 96 },
    .check = check_heads,
    .build = build_one_sequence,
    .reference = ref_attention,
    .tolerance = 2e-6,
};

const family batched_incremental_attention = {
    .name = "batched_incremental_attention",
    .summary = "decode attention of m sequences, one warp per head and sequence",
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]",
    F32_FAMILY(OP_BATCHED_ATTENTION, build_batched, ref_attention, 2e-6),
    .keys = KEYS(ATTENTION_SHAPE, KEY_SEQUENCES, ATTENTION_OPTIONS, KEY_PAGE, KEY_SINKS, KEY_DIMS),
    .params = PARAMS(OUT(F32, o, "m*num_heads*head_dim", 16), QUERIES("m*num_heads*head_dim"),
                     KV_POOL(IN, k), KV_POOL(IN, v), SINKS, IN(U32, seq_lens, "m", 4),
                     ROW_SEQUENCES, PAGE_TABLE),
    .launch = { .block = "32",
                .grid = { "num_heads", "m" },
                .sizes = SIZES(CACHE_PAGES),
                .registers = 96 },
    .check = check_heads,
};

const family flash_decoding_chunk = {
    .name = "flash_decoding_chunk",
    .summary = "decode attention of m sequences, split in chunks: partial results",
    .computes = "partials[m,h,c] = sum over chunk c of exp(s-max) V[m], max, sum of exp(s-max)",
    F32_FAMILY(OP_ATTENTION_CHUNKS, build_chunk, ref_attention_chunks, 2e-6),
    .keys =
        KEYS(ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_OPTIONS, KEY_PAGE, KEY_DIMS),
    .params = PARAMS(PARTIAL_ROWS(OUT, PARTIALS), QUERIES("m*num_heads*head_dim"), KV_POOL(IN, k),
                     KV_POOL(IN, v), IN(U32, seq_lens, "m", 4), ROW_SEQUENCES, PAGE_TABLE),
    .launch = { .block = "32",
                .grid = { "num_heads", "m", CHUNKS },
                .sizes = SIZES(CACHE_PAGES),
                .registers = 96 },
    .check = check_flash_decoding,
};

const family flash_decoding_reduce = {
    .name = "flash_decoding_reduce",
    .summary = "decode attention of m sequences, split in chunks: merge of the partial results",
    .computes = "o[m,h] = sum over c of partials[m,h,c]",
    F32_FAMILY(OP_MERGE_CHUNKS, build_reduce, ref_merge_chunks, 2e-6),
    .keys =
        KEYS(ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_WINDOW, KEY_SINKS, KEY_DIMS),
    .params = PARAMS(OUT(F32, o, "m*num_heads*head_dim", 16), PARTIAL_ROWS(IN, PARTIALS), SINKS,
                     IN(U32, seq_lens, "m", 4)),
    .launch = { .block = "32", .grid = { "num_heads", "m" }, .registers = 96 },
    .check = check_flash_decoding,
    .fit = ref_fit_partials,
};
