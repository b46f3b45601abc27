/* Decode attention: one query token against a KV cache, o = softmax(q K' / sqrt(head_dim)) V.
 *
 * Layouts: q and o [num_heads, head_dim], K and V [num_kv_heads, max_seq_len, head_dim], all f32;
 * query head h reads KV head h * num_kv_heads / num_heads (grouped-query attention).
 *
 * A position's row is shared by a group of lanes, each holding up to four 16-byte pieces of it,
 * every group-size-th piece, so that neighbouring lanes read neighbouring bytes. A warp has several
 * groups, each with its own positions and its own online softmax; they are merged at the end. Few
 * lanes a position means few shuffles a score, and several positions in flight.
 */
#include <math.h>

#include "gen/blocks/reduce.h"
#include "gen/blocks/softmax.h"
#include "gen/family.h"
#include "ptx/ptx.h"

enum {
    PIECE = 4, /* values that a lane loads at once */
    MAX_PIECES = 4,
    VALUE_BYTES = 4,
    PIECE_BYTES = PIECE * VALUE_BYTES,
    LOADS_IN_FLIGHT = 8, /* pieces of K, and as many of V */
    MAX_IN_FLIGHT = 4,   /* positions */
};

/* How lanes share a row of head_dim values. */
typedef struct row_split {
    unsigned group;  /* lanes a position, a power of two */
    unsigned pieces; /* a lane has at most */
    bool ragged;     /* some lanes have no last piece */
} row_split;

static row_split split_row(int64_t head_dim)
{
    unsigned pieces = (unsigned)head_dim / PIECE;
    row_split s = { .group = 2 };
    while (s.group * MAX_PIECES < pieces)
        s.group *= 2;
    s.pieces = (pieces + s.group - 1) / s.group;
    s.ragged = pieces % s.group != 0;
    return s;
}

/* Pointers to a lane's pieces of a row: constant offsets apart, but for a last piece beyond the
 * row's end, in whose place the lane reads its first piece again and gives it no weight. */
typedef struct lane_rows {
    var first, last;
} lane_rows;

typedef struct attention {
    const instance *in;
    row_split split;
    val has_last;    /* predicate: the lane's last piece exists */
    val last_offset; /* u64, from the first piece */
    val lane, group; /* of the lane: its number in its group, its group's number */
    val seq_len;     /* clamped */
    val4 q[MAX_PIECES];
    lane_rows k, v;
    softmax state;
} attention;

static val sequence_length(ptx *p, const instance *in)
{
    val seq_len = parameter(p, "seq_len");
    if (in->seq_len_mode == SEQ_LEN_INDIRECT)
        seq_len = ld_global(p, U32, seq_len, 0);
    return named(p, "seq_len", min(p, seq_len, in->shape.max_seq_len));
}

/* The query's pieces, multiplied by what turns q.k into a score in units of log 2. */
static void load_query(ptx *p, attention *a, val head)
{
    float scale = (float)(LOG2_E / sqrt((double)a->in->shape.head_dim));
    val row = mad_wide(p, head, a->in->shape.head_dim * VALUE_BYTES, parameter(p, "q"));
    val q = mad_wide(p, a->lane, PIECE_BYTES, row);
    for (unsigned i = 0; i < a->split.pieces; i++) {
        bool last = i + 1 == a->split.pieces && a->split.ragged;
        val4 piece = last ? ld_const_v4(p, F32, add(p, q, a->last_offset), 0)
                          : ld_const_v4(p, F32, q, i * a->split.group * PIECE_BYTES);
        for (unsigned j = 0; j < PIECE; j++) {
            val scaled = mul(p, piece.v[j], scale);
            a->q[i].v[j] = last ? select(p, a->has_last, scaled, imm(F32, 0)) : scaled;
        }
    }
}

static attention attention_new(ptx *p, const instance *in, val head)
{
    attention a = { .in = in, .split = split_row(in->shape.head_dim) };
    val lane = lane_id(p);
    unsigned last = (a.split.pieces - 1) * a.split.group;
    a.lane = named(p, "piece", bit_and(p, lane, a.split.group - 1));
    a.group = named(p, "group", div(p, lane, a.split.group));
    a.has_last = lt(p, a.lane, in->shape.head_dim / PIECE - last);
    a.last_offset = select(p, a.has_last, imm(U64, last * PIECE_BYTES), imm(U64, 0));
    a.seq_len = sequence_length(p, in);
    load_query(p, &a, head);
    a.state = softmax_new(p, a.split.pieces * PIECE);
    return a;
}

/* A lane's pieces of the row at a pointer, offset bytes behind it. */
static void load_row(ptx *p, const attention *a, const lane_rows *rows, int64_t offset,
                     val4 pieces[MAX_PIECES])
{
    for (unsigned i = 0; i < a->split.pieces; i++) {
        bool last = i + 1 == a->split.pieces && a->split.ragged;
        pieces[i] =
            last ? ld_const_v4(p, F32, rows->last, offset)
                 : ld_const_v4(p, F32, rows->first, offset + i * a->split.group * PIECE_BYTES);
    }
}

static val score(ptx *p, const attention *a, const val4 k[MAX_PIECES])
{
    val sum = mul(p, a->q[0].v[0], k[0].v[0]);
    for (unsigned i = 0; i < a->split.pieces; i++)
        for (unsigned j = i == 0; j < PIECE; j++)
            sum = fma(p, a->q[i].v[j], k[i].v[j], sum);
    return group_sum(p, sum, a->split.group);
}

static void add_row(ptx *p, const attention *a, val weight, const val4 v[MAX_PIECES])
{
    for (unsigned i = 0; i < a->split.pieces; i++)
        for (unsigned j = 0; j < PIECE; j++) {
            var sum = a->state.values[PIECE * i + j];
            assign(p, sum, fma(p, weight, v[i].v[j], sum));
        }
}

/* One position for every group, count times: position i of a group lies i * stride bytes behind its
 * pointers. valid, a predicate or none, says whether a group's position exists; one that does not
 * weighs nothing. */
static void add_positions(ptx *p, const attention *a, unsigned count, int64_t stride,
                          const val *valid)
{
    val scores[MAX_IN_FLIGHT] = { { 0 } };
    val4 k[MAX_IN_FLIGHT][MAX_PIECES], v[MAX_IN_FLIGHT][MAX_PIECES];
    for (unsigned i = 0; i < count; i++) {
        load_row(p, a, &a->k, i * stride, k[i]);
        load_row(p, a, &a->v, i * stride, v[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        scores[i] = score(p, a, k[i]);
        if (valid)
            scores[i] = select(p, *valid, scores[i], -INFINITY);
    }
    softmax_raise(p, &a->state, scores, count);
    for (unsigned i = 0; i < count; i++)
        add_row(p, a, softmax_weight(p, &a->state, scores[i]), v[i]);
}

static void point_at(ptx *p, const attention *a, val k, val v, val position)
{
    val row = mul_wide(p, position, a->in->shape.head_dim * VALUE_BYTES);
    const val starts[] = { k, v };
    const lane_rows *rows[] = { &a->k, &a->v };
    for (int i = 0; i < 2; i++) {
        assign(p, rows[i]->first, add(p, starts[i], row));
        assign(p, rows[i]->last, add(p, rows[i]->first, a->last_offset));
    }
}

static void advance(ptx *p, const attention *a, int64_t bytes)
{
    const lane_rows *rows[] = { &a->k, &a->v };
    for (int i = 0; i < 2; i++) {
        assign(p, rows[i]->first, add(p, rows[i]->first, bytes));
        assign(p, rows[i]->last, add(p, rows[i]->last, bytes));
    }
}

/* All positions of the sequence, several a group at once as long as they all exist; the rest one a
 * group, where a group without one takes the last position and gives it no weight. */
static void add_sequence(ptx *p, attention *a, val k, val v)
{
    unsigned groups = 32 / a->split.group, in_flight = LOADS_IN_FLIGHT / a->split.pieces;
    if (in_flight > MAX_IN_FLIGHT)
        in_flight = MAX_IN_FLIGHT;
    int64_t row_bytes = a->in->shape.head_dim * VALUE_BYTES, stride = groups * row_bytes;
    val turns = div(p, a->seq_len, groups * in_flight);
    var *pointers[] = { &a->k.first, &a->k.last, &a->v.first, &a->v.last };
    for (int i = 0; i < 4; i++)
        *pointers[i] = var_u64(p, 0);
    point_at(p, a, k, v, a->group);
    ptx_loop_work(p, 2 * in_flight * a->split.pieces * PIECE, "elements");
    PTX_FOR (p, turn, 0, turns, 1) {
        add_positions(p, a, in_flight, stride, NULL);
        advance(p, a, in_flight * stride);
    }
    PTX_FOR (p, rest, mul(p, turns, groups * in_flight), a->seq_len, groups) {
        val position = add(p, rest, a->group), last = sub(p, a->seq_len, 1);
        val valid = le(p, position, last);
        point_at(p, a, k, v, min(p, position, last));
        add_positions(p, a, 1, 0, &valid);
    }
    for (unsigned mask = a->split.group; mask < 32; mask *= 2)
        softmax_merge_lanes(p, &a->state, mask);
}

static void store_output(ptx *p, const attention *a, val head)
{
    val scale = softmax_scale(p, &a->state);
    val row = mad_wide(p, head, a->in->shape.head_dim * VALUE_BYTES, parameter(p, "o"));
    val o = mad_wide(p, a->lane, PIECE_BYTES, row);
    PTX_IF (p, eq(p, a->group, 0)) {
        for (unsigned i = 0; i < a->split.pieces; i++) {
            bool last = i + 1 == a->split.pieces && a->split.ragged;
            val4 piece;
            for (unsigned j = 0; j < PIECE; j++)
                piece.v[j] = mul(p, a->state.values[PIECE * i + j], scale);
            PTX_IF (p, last ? a->has_last : imm(PRED, 1))
                st_global_v4(p, F32, o, i * a->split.group * PIECE_BYTES, piece);
        }
    }
}

static void build_incremental(ptx *p, const instance *in)
{
    val head = named(p, "head", ctaid_x(p));
    attention a = attention_new(p, in, head);
    val kv_head = named(p, "kv_head", div(p, head, in->shape.num_heads / in->shape.num_kv_heads));
    val row = mul_wide(p, kv_head, in->shape.max_seq_len); /* may pass 2^32 */
    val cache = mad(p, row, in->shape.head_dim * VALUE_BYTES, mul_wide(p, a.lane, PIECE_BYTES));
    add_sequence(p, &a, add(p, parameter(p, "k"), cache), add(p, parameter(p, "v"), cache));
    store_output(p, &a, head);
}

static const char *check_heads(const instance *in, arena *a, const char **blamed)
{
    if (in->shape.num_heads % in->shape.num_kv_heads == 0)
        return NULL;
    *blamed = "num_kv_heads";
    return arena_format(a, "num_heads = %lld is not a multiple of num_kv_heads = %lld",
                        (long long)in->shape.num_heads, (long long)in->shape.num_kv_heads);
}

static const key incremental_keys[] = {
    { .name = "head_dim",
      .summary = "values a head",
      .field = KEY_FIELD(shape.head_dim),
      .min = 8,
      .max = 256,
      .multiple_of = 8,
      .required = true,
      .tag = "d" },
    { .name = "num_heads",
      .summary = "query heads",
      .field = KEY_FIELD(shape.num_heads),
      .min = 1,
      .max = 65535,
      .required = true,
      .tag = "h" },
    { .name = "num_kv_heads",
      .summary = "key and value heads",
      .field = KEY_FIELD(shape.num_kv_heads),
      .min = 1,
      .max = 65535,
      .required = true,
      .tag = "kv" },
    { .name = "max_seq_len",
      .summary = "positions the cache has room for",
      .field = KEY_FIELD(shape.max_seq_len),
      .min = 1,
      .max = INT32_MAX,
      .required = true,
      .tag = "s" },
    { .name = "seq_len",
      .summary = "a number, or read from device memory",
      .field = KEY_FIELD(seq_len_mode),
      .choices = seq_len_choices },
    KEY_END,
};
static const param incremental_params[] = {
    OUT(F32, o, "num_heads*head_dim", 16),
    IN(F32, q, "num_heads*head_dim", 16),
    IN(F32, k, "num_kv_heads*max_seq_len*head_dim", 16),
    IN(F32, v, "num_kv_heads*max_seq_len*head_dim", 16),
    { .name = "seq_len", .kind = PARAM_SEQ_LEN },
    PARAM_END,
};

const family incremental_attention = {
    .name = "incremental_attention",
    .summary = "decode attention, one warp a head, online softmax, GQA",
    .computes = "o[h] = softmax(q[h] K' / sqrt(head_dim)) V",
    .op = OP_ATTENTION,
    .weights = FORMAT_NONE,
    .activations = FORMAT_F32,
    .keys = incremental_keys,
    .params = incremental_params,
    .launch = { .block = "32", .grid = { "num_heads" }, .registers = 96 },
    .check = check_heads,
    .build = build_incremental,
    .reference = ref_attention,
    .tolerance = 2e-6,
};
