/* The router of a mixture of experts, in one launch: logits of all experts, the choice of a few for
 * each row of x, and the list of the experts in use. What is computed, and the outputs' layouts,
 * stand at ref_moe_route.
 *
 * A block has a row of W, all of it by all its threads, so that the weights come from memory at
 * once, by as many SMs as there are experts; of several rows of x it makes a logit each. Nothing is
 * rounded but sums. Logits wait in scratch memory, [m, rows of W], until the last block to finish
 * chooses. A counter tells it that it is the last, and it sets the counter back to zero. (As
 * gqa_flash_decoding's blocks do. Blocks stand in the grid's z, as partners of one result.)
 *
 * To choose, a warp takes a row of x. Lane i has the experts i, 32 + i, 64 + i and so on in
 * registers: of the scores their heights (see blocks/sampling.h), which compare as the order says,
 * a NaN as the largest; 0 is none. Turn after turn the warp finds the first and takes it out, and
 * lane i keeps the one of turn i. So there are at most 32 chosen ones.
 *
 * The list is made of pairs (row, slot), a thread each: a pair whose expert no row ahead has begins
 * the expert's entry, and as many entries stand ahead of it as there are such pairs of lower
 * experts.
 */
#include <math.h>

#include "gen/blocks/reduce.h"
#include "gen/blocks/sampling.h"
#include "gen/blocks/softmax.h"
#include "gen/blocks/stream.h"
#include "gen/blocks/unpack.h"
#include "gen/product_keys.h"
#include "family/formula.h"

enum {
    WARP = 32,
    WORD = 4,
    LINE = 16,        /* bytes */
    MOST_WARPS = 8,   /* of a block, */
    LEAST_PIECES = 2, /* each lane of which has so many, if there are fewer warps */
    IN_FLIGHT = 4,    /* loads of weights, of up to FEW_ROWS of x; of more half as many */
    FEW_ROWS = 4,
    MOST_EXPERTS = 512, /* 16 a lane */
    MOST_USED = WARP,
    MOST_GROUPS = WARP,
    HEAD_WORDS = 4,  /* of the list, */
    ENTRY_WORDS = 2, /* and of an entry, beside rows */
    LINE_IDS = LINE / WORD,
};
static const unsigned NONE = UINT32_MAX;

typedef struct route {
    const instance *in;
    const problem_options *options;
    unsigned k, m, experts, used, rows; /* rows of W, w_shared among them */
    unsigned threads, warps;
    unsigned room; /* of a row's ids, in words */
    val scratch;
    val scores; /* shared memory: [warps, experts], where there are groups; */
    val ids;    /* [m, room], behind the slots NONE; */
    val firsts; /* and the same of those that no row ahead has, else NONE */
} route;

static bool has_row_of_shared(const instance *in)
{
    return in->options.route.shared == SHARED_GATED;
}

/* Weights that a thread loads at once: 16 bytes of floats. */
static unsigned piece_values(format f)
{
    return formats[f].block_values == 1 ? LINE / formats[f].block_bytes : UNPACKED;
}

static int64_t block_warps(const instance *in)
{
    int64_t pieces = in->shape.k / piece_values(instance_weights(in));
    int64_t warps = (pieces + LEAST_PIECES * WARP - 1) / (LEAST_PIECES * WARP);
    return warps < 1 ? 1 : warps < MOST_WARPS ? warps : MOST_WARPS;
}

static int64_t rows_of_w(const instance *in)
{
    return in->shape.experts + has_row_of_shared(in);
}

/* Ids of a row that there is room for: whole lines. */
static unsigned room_of_row(const instance *in)
{
    return ((unsigned)in->shape.experts_used + LINE_IDS - 1) / LINE_IDS * LINE_IDS;
}

/* Sums of a row of W: with each row of x, and of its squares. */
static unsigned sum_count(const instance *in)
{
    return (unsigned)in->shape.m * (in->options.norm ? 2 : 1);
}

static int64_t shared_bytes(const instance *in)
{
    int64_t warps = block_warps(in), partial = warps > 1 ? sum_count(in) * warps * WORD : 0;
    int64_t bytes = (partial + LINE - 1) / LINE * LINE + LINE; /* and the ticket */
    if (in->options.route.groups)
        bytes += (warps * in->shape.experts * WORD + LINE - 1) / LINE * LINE;
    int64_t ids = in->shape.m * room_of_row(in) * WORD;
    return bytes + ids * (in->shape.m > 1 ? 2 : 1);
}

/* A row of W and what it is multiplied with. */
typedef struct products {
    const route *r;
    format f;
    val row, x, gamma;
    const var *dots, *squares;
} products;

static const stream_format *const formats_of_floats[FORMAT_COUNT] = {
    [FORMAT_F32] = &stream_F32,
    [FORMAT_F16] = &stream_F16,
    [FORMAT_BF16] = &stream_BF16,
};

static void load_weights(ptx *p, const products *s, val piece, unsigned turn, val *w)
{
    unsigned ahead = turn * s->r->threads;
    if (formats[s->f].block_values > 1) {
        unpack_piece(p, s->f, s->row, add(p, piece, ahead), w);
        return;
    }
    val4 words = ld_const_v4(p, U32, mad_wide(p, piece, LINE, s->row), (int64_t)ahead * LINE);
    formats_of_floats[s->f]->floats(p, &words, w);
}

static void load_floats(ptx *p, val at, int64_t offset, unsigned count, val *values)
{
    for (unsigned i = 0; i < count; i += LINE / F32_BYTES) {
        val4 four = ld_const_v4(p, F32, at, offset + i * F32_BYTES);
        for (unsigned j = 0; j < LINE / F32_BYTES; j++)
            values[i + j] = four.v[j];
    }
}

/* Adds the products of the thread's pieces from one on, a block's width apart. */
static void add_pieces(ptx *p, const products *s, val piece, unsigned turns)
{
    unsigned values = piece_values(s->f);
    val w[IN_FLIGHT][UNPACKED], x[UNPACKED], gamma[UNPACKED];
    val behind = mul_wide(p, piece, values * F32_BYTES), x_at = add(p, s->x, behind);
    for (unsigned t = 0; t < turns; t++)
        load_weights(p, s, piece, t, w[t]);
    for (unsigned t = 0; t < turns; t++) {
        int64_t ahead = (int64_t)t * s->r->threads * values * F32_BYTES;
        if (s->gamma.kind)
            load_floats(p, add(p, s->gamma, behind), ahead, values, gamma);
        for (unsigned v = 0; v < s->r->m; v++) {
            load_floats(p, x_at, ahead + (int64_t)v * s->r->k * F32_BYTES, values, x);
            for (unsigned i = 0; i < values; i++) {
                val scaled = s->gamma.kind ? mul(p, x[i], gamma[i]) : x[i];
                assign(p, s->dots[v], fma(p, w[t][i], scaled, s->dots[v]));
                if (s->gamma.kind)
                    assign(p, s->squares[v], fma(p, x[i], x[i], s->squares[v]));
            }
        }
    }
}

static void multiply(ptx *p, const products *s)
{
    unsigned pieces = s->r->k / piece_values(s->f), threads = s->r->threads;
    unsigned at_once = formats[s->f].block_values > 1 ? 1
                       : s->r->m > FEW_ROWS           ? IN_FLIGHT / 2
                                                      : IN_FLIGHT;
    unsigned turns = pieces / threads, rest = pieces % threads, looped = turns / at_once * at_once;
    val own = tid_x(p);
    if (looped > at_once) {
        ptx_loop_work(p, at_once * piece_values(s->f), "weights");
        PTX_FOR (p, piece, own, looped * threads, at_once * threads)
            add_pieces(p, s, piece, at_once);
    } else if (looped) {
        add_pieces(p, s, own, looped);
    }
    if (turns > looped)
        add_pieces(p, s, add(p, own, looped * threads), turns - looped);
    if (rest)
        PTX_IF (p, lt(p, own, rest))
            add_pieces(p, s, add(p, own, turns * threads), 1);
}

/* Stores a row's logits, a thread each. */
static void store_logits(ptx *p, const route *r, val row, const val *sums)
{
    const instance *in = r->in;
    spread_sums spread = block_sum_spread(p, sums, sum_count(in), r->warps);
    val logit = spread.sum;
    if (in->options.norm) {
        unsigned lanes = spread.lanes ? spread.lanes : 1;
        val squares = shuffle_from(p, spread.sum, add(p, lane_id(p), r->m * lanes));
        val mean = div(p, squares, (float)r->k);
        logit = mul(p, logit, rsqrt(p, add(p, mean, (float)in->options.epsilon)));
    }
    PTX_IF (p, lt(p, spread.number, r->m)) {
        var biased = var_like(p, logit);
        if (in->options.bias)
            PTX_IF (p, lt(p, row, r->experts))
                assign(p, biased,
                       add(p, logit,
                           ld_const(p, F32, mad_wide(p, row, WORD, parameter(p, "bias")), 0)));
        st_global(p, F32, mad_wide(p, mad(p, spread.number, r->rows, row), WORD, r->scratch), 0,
                  biased);
    }
}

static void multiply_row(ptx *p, const route *r, val row)
{
    const instance *in = r->in;
    val sums[2 * MAX_VECTORS];
    var dots[MAX_VECTORS], squares[MAX_VECTORS];
    for (unsigned v = 0; v < r->m; v++) {
        dots[v] = var_f32(p, 0.0f);
        if (in->options.norm)
            squares[v] = var_f32(p, 0.0f);
    }
    products s = { r, instance_weights(in), .x = parameter(p, "x"), .dots = dots,
                   .squares = squares };
    if (in->options.norm)
        s.gamma = parameter(p, "gamma");
    val row_bytes = imm(U32, (long long)format_bytes(s.f, r->k));
    s.row = mad_wide(p, row, row_bytes, parameter(p, "w"));
    if (has_row_of_shared(in)) {
        products of_shared = s;
        of_shared.f = FORMAT_F32;
        of_shared.row = parameter(p, "w_shared");
        PTX_IF (p, lt(p, row, r->experts))
            multiply(p, &s);
        PTX_ELSE (p)
            multiply(p, &of_shared);
    } else {
        multiply(p, &s);
    }
    for (unsigned v = 0; v < r->m; v++) {
        sums[v] = get(p, dots[v]);
        if (in->options.norm)
            sums[r->m + v] = get(p, squares[v]);
    }
    store_logits(p, r, row, sums);
}

/* Whether the logits of all rows of W are there. */
static val is_last_block(ptx *p, const route *r)
{
    val ticket = shared_array(p, "ticket", U32, 1), last = imm(U32, r->rows - 1);
    barrier(p);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        val number = atomic_inc(p, parameter(p, "counters"), last);
        st_shared(p, U32, ticket, 0, number);
    }
    barrier(p);
    return eq(p, ld_shared(p, U32, ticket, 0), last);
}

/* A row's experts, as its warp has them: those of the lane. */
typedef struct lane_experts {
    val lane;
    unsigned count;
    val logits[MOST_EXPERTS / WARP]; /* of what there is not -infinity */
    val max, inverse;                /* of softmax: of all logits, and 1 / the sum */
    var heights[MOST_EXPERTS / WARP];
} lane_experts;

static val expert_of(ptx *p, const lane_experts *e, unsigned number)
{
    return add(p, e->lane, number * WARP);
}

/* Whether the lane has an expert of that number. */
static val has_expert(ptx *p, const route *r, const lane_experts *e, unsigned number)
{
    return (number + 1) * WARP <= r->experts ? imm(PRED, 1)
                                             : lt(p, e->lane, r->experts - number * WARP);
}

static val exp_of(ptx *p, val x)
{
    return ex2(p, mul(p, x, (float)LOG2_E));
}

static val sigmoid(ptx *p, val x)
{
    return rcp(p, add(p, exp_of(p, neg(p, x)), 1.0f));
}

static void load_logits(ptx *p, const route *r, lane_experts *e, val row)
{
    val at = mad_wide(p, mad(p, row, r->rows, e->lane), WORD, r->scratch);
    const val none = val_of_f32(-INFINITY);
    for (unsigned i = 0; i < e->count; i++) {
        var logit = ptx_var(p, F32, none);
        PTX_IF (p, has_expert(p, r, e, i))
            assign(p, logit, ld_global(p, F32, at, i * WARP * WORD));
        e->logits[i] = get(p, logit);
    }
    if (r->options->route.gating != GATING_SOFTMAX)
        return;
    val max = none;
    for (unsigned i = 0; i < e->count; i++)
        max = max(p, max, e->logits[i]);
    e->max = warp_max(p, max);
    val sum = imm(F32, 0);
    for (unsigned i = 0; i < e->count; i++) {
        val part = exp_of(p, sub(p, e->logits[i], e->max));
        sum = add(p, sum, select(p, has_expert(p, r, e, i), part, imm(F32, 0)));
    }
    e->inverse = rcp(p, warp_sum(p, sum));
}

/* What a logit is by the gating. */
static val gated_logit(ptx *p, const route *r, const lane_experts *e, val logit)
{
    switch (r->options->route.gating) {
    case GATING_SOFTMAX:
        return mul(p, exp_of(p, sub(p, logit, e->max)), e->inverse);
    case GATING_SIGMOID:
        return sigmoid(p, logit);
    default:
        return logit;
    }
}

/* Without choice bias and groups the order is that of the logits. */
static void make_heights(ptx *p, const route *r, lane_experts *e)
{
    const route_options *o = &r->options->route;
    for (unsigned i = 0; i < e->count; i++) {
        val score = e->logits[i], exists = has_expert(p, r, e, i);
        if (o->choice_bias || o->groups)
            score = gated_logit(p, r, e, score);
        var biased = var_like(p, score);
        if (o->choice_bias)
            PTX_IF (p, exists) {
                val at = mad_wide(p, e->lane, WORD, parameter(p, "choice_bias"));
                assign(p, biased, add(p, score, ld_const(p, F32, at, i * WARP * WORD)));
            }
        val height = height_of_float(p, get(p, biased));
        e->heights[i] = var_like(p, select(p, exists, height, imm(U32, 0)));
    }
}

/* The sum of the two best scores of a group, as a height, in the first of the group's lanes. */
static val group_height(ptx *p, const route *r, const lane_experts *e, val scores, unsigned lanes)
{
    unsigned groups = (unsigned)r->options->route.groups, size = r->experts / groups;
    val group = div(p, e->lane, lanes), within = rem(p, e->lane, lanes);
    val exists = lt(p, group, groups);
    var best = var_u32(p, 0), second = var_u32(p, 0);
    val first = mad(p, group, size, within), end = mad(p, group, size, imm(U32, size));
    PTX_FOR (p, member, first, select(p, exists, end, imm(U32, 0)), lanes) {
        val height = ld_shared(p, U32, mad(p, member, WORD, scores), 0);
        assign(p, second, max(p, second, min(p, best, height)));
        assign(p, best, max(p, best, height));
    }
    for (unsigned mask = lanes / 2; mask; mask /= 2) {
        val other = shuffle_xor(p, best, mask), other_second = shuffle_xor(p, second, mask);
        val lower = min(p, best, other);
        assign(p, second, max(p, max(p, second, other_second), lower));
        assign(p, best, max(p, best, other));
    }
    val sum = add(p, float_of_height(p, get(p, best)), float_of_height(p, get(p, second)));
    val told = bit_and(p, exists, eq(p, within, 0));
    return select(p, told, height_of_float(p, sum), imm(U32, 0));
}

/* Takes the experts of all but the best groups out. */
static void choose_groups(ptx *p, const route *r, const lane_experts *e)
{
    unsigned groups = (unsigned)r->options->route.groups, lanes = WARP;
    while (WARP / lanes < groups)
        lanes /= 2;
    val scores = mad(p, warp_id(p), imm(U32, r->experts * WORD), r->scores);
    for (unsigned i = 0; i < e->count; i++)
        PTX_IF (p, has_expert(p, r, e, i))
            st_shared(p, U32, mad(p, e->lane, WORD, scores), i * WARP * WORD, e->heights[i]);
    warp_barrier(p);
    var height = var_like(p, group_height(p, r, e, scores, lanes)), chosen = var_u32(p, 0);
    val group = div(p, e->lane, lanes);
    PTX_FOR (p, turn, 0, r->options->route.groups_used, 1) {
        first_number best = { var_like(p, get(p, height)), var_like(p, group) };
        first_of_warp(p, &best);
        assign(p, chosen, bit_or(p, chosen, shl(p, imm(U32, 1), best.number)));
        assign(p, height, select(p, eq(p, group, best.number), imm(U32, 0), height));
    }
    for (unsigned i = 0; i < e->count; i++) {
        val own = div(p, expert_of(p, e, i), r->experts / groups);
        val kept = ne(p, bit_and(p, shr(p, chosen, own), 1), 0);
        assign(p, e->heights[i], select(p, kept, e->heights[i], imm(U32, 0)));
    }
    warp_barrier(p);
}

/* Lane i gets the expert of slot i; of lanes behind the slots 0. */
static val choose_experts(ptx *p, const route *r, const lane_experts *e)
{
    var id = var_u32(p, 0);
    PTX_FOR (p, slot, 0, r->used, 1) {
        first_number best = { var_like(p, get(p, e->heights[0])), var_like(p, e->lane) };
        for (unsigned i = 1; i < e->count; i++) {
            val ahead = gt(p, e->heights[i], best.height);
            assign(p, best.height, select(p, ahead, e->heights[i], best.height));
            assign(p, best.number, select(p, ahead, expert_of(p, e, i), best.number));
        }
        first_of_warp(p, &best);
        for (unsigned i = 0; i < e->count; i++) {
            val taken = eq(p, best.number, expert_of(p, e, i));
            assign(p, e->heights[i], select(p, taken, imm(U32, 0), e->heights[i]));
        }
        assign(p, id, select(p, eq(p, e->lane, slot), best.number, id));
    }
    return get(p, id);
}

/* The weights of a row's slots, those of lane i that of slot i. */
static val weigh(ptx *p, const route *r, const lane_experts *e, val id)
{
    const route_options *o = &r->options->route;
    val exists = lt(p, e->lane, r->used), owner = bit_and(p, id, WARP - 1), logit = { 0 };
    for (unsigned i = 0; i < e->count; i++) {
        val one = shuffle_from(p, e->logits[i], owner);
        logit = i ? select(p, eq(p, shr(p, id, 5), i), one, logit) : one;
    }
    val weight = gated_logit(p, r, e, logit);
    if (o->gating == GATING_SOFTMAX_OF_CHOSEN) {
        val max = warp_max(p, select(p, exists, logit, val_of_f32(-INFINITY)));
        weight = exp_of(p, sub(p, logit, max));
        weight = div(p, weight, warp_sum(p, select(p, exists, weight, imm(F32, 0))));
    }
    if (o->normed) {
        const float least = (float)ROUTE_LEAST_SUM;
        val sum = warp_sum(p, select(p, exists, weight, imm(F32, 0)));
        weight =
            div(p, weight, select(p, lt(p, sum, least), val_of_f32(least), sum)); /* NaN stays */
    }
    return r->options->scale > 0 ? mul(p, weight, (float)r->options->scale) : weight;
}

static void store_weights(ptx *p, const route *r, const lane_experts *e, val row, val weight)
{
    bool shared = r->options->route.shared;
    val of_row = mul(p, row, r->used + shared);
    val at = mad_wide(p, of_row, WORD, parameter(p, "weights"));
    PTX_IF (p, lt(p, e->lane, r->used))
        st_global(p, F32, mad_wide(p, e->lane, WORD, at), 0, weight);
    if (!shared)
        return;
    PTX_IF (p, eq(p, e->lane, 0)) {
        val logit = mad_wide(p, mul(p, row, r->rows), WORD, r->scratch);
        val of_shared = has_row_of_shared(r->in)
                            ? sigmoid(p, ld_global(p, F32, logit, (int64_t)r->experts * WORD))
                            : val_of_f32(1.0f);
        st_global(p, F32, at, r->used * WORD, of_shared);
    }
}

static void choose_of_row(ptx *p, const route *r, val row)
{
    lane_experts e = { .lane = lane_id(p), .count = (r->experts + WARP - 1) / WARP };
    load_logits(p, r, &e, row);
    make_heights(p, r, &e);
    if (r->options->route.groups)
        choose_groups(p, r, &e);
    val id = choose_experts(p, r, &e), chosen = lt(p, e.lane, r->used);
    PTX_IF (p, lt(p, e.lane, r->room)) {
        val at = mad(p, mad(p, row, r->room, e.lane), WORD, r->ids);
        st_shared(p, U32, at, 0, select(p, chosen, id, imm(U32, NONE)));
    }
    PTX_IF (p, chosen) {
        val at = mad_wide(p, mad(p, row, r->used, e.lane), WORD, parameter(p, "ids"));
        st_global(p, U32, at, 0, id);
    }
    store_weights(p, r, &e, row, weigh(p, r, &e, id));
}

/* The ids of a row, a word each, from an array of them in shared memory on. */
static void load_ids(ptx *p, const route *r, val array, val row, val ids[MOST_USED])
{
    val at = mad(p, row, imm(U32, r->room * WORD), array);
    for (unsigned i = 0; i < r->room; i += LINE_IDS) {
        val4 line = ld_shared_v4(p, U32, at, i * WORD);
        for (unsigned j = 0; j < LINE_IDS; j++)
            ids[i + j] = line.v[j];
    }
}

/* A place in the arrays of ids, and what there is. */
typedef struct place_of_id {
    val number, row, slot, id;
} place_of_id;

static place_of_id place_new(ptx *p, const route *r, val number)
{
    place_of_id at = { number, div(p, number, r->room), rem(p, number, r->room), { 0 } };
    at.id = ld_shared(p, U32, mad(p, number, WORD, r->ids), 0);
    return at;
}

/* Rows that have an expert, and those of them that are ahead of one. */
typedef struct row_count {
    var all, ahead;
} row_count;

static row_count count_rows(ptx *p, const route *r, const place_of_id *at)
{
    row_count rows = { var_u32(p, r->m > 1 ? 0 : 1), var_u32(p, 0) };
    if (r->m == 1)
        return rows;
    PTX_FOR (p, other, 0, r->m, 1) {
        val ids[MOST_USED], has_it = { 0 };
        load_ids(p, r, r->ids, other, ids);
        for (unsigned i = 0; i < r->used; i++)
            has_it = i ? bit_or(p, has_it, eq(p, ids[i], at->id)) : eq(p, ids[i], at->id);
        PTX_IF (p, has_it) {
            val is_ahead = lt(p, other, at->row);
            assign(p, rows.all, add(p, rows.all, 1));
            assign(p, rows.ahead, select(p, is_ahead, add(p, rows.ahead, 1), rows.ahead));
        }
    }
    return rows;
}

/* Keeps those ids that no row ahead has. */
static void find_firsts(ptx *p, const route *r)
{
    barrier(p);
    PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
        place_of_id at = place_new(p, r, number);
        row_count rows = count_rows(p, r, &at);
        val first = select(p, eq(p, rows.ahead, 0), at.id, imm(U32, NONE));
        st_shared(p, U32, mad(p, number, WORD, r->firsts), 0, first);
    }
}

/* Entries of experts lower than one. */
static val count_entries(ptx *p, const route *r, val id)
{
    var count = var_u32(p, 0);
    PTX_FOR (p, listed, 0, r->m, 1) {
        val ids[MOST_USED];
        load_ids(p, r, r->firsts, listed, ids);
        for (unsigned i = 0; i < r->used; i++)
            assign(p, count, select(p, lt(p, ids[i], id), add(p, count, 1), count));
    }
    return get(p, count);
}

static val entry_at(ptx *p, const route *r, val number)
{
    val words = mul(p, number, ENTRY_WORDS + r->m);
    return mad_wide(p, words, WORD, add(p, parameter(p, "list"), HEAD_WORDS * WORD));
}

/* Stores what a pair says of the list: of its expert the entry's head, if the entry begins with it,
 * and its own number. */
static void store_pair(ptx *p, const route *r, const place_of_id *pair)
{
    row_count rows = count_rows(p, r, pair);
    val at = entry_at(p, r, count_entries(p, r, pair->id));
    PTX_IF (p, eq(p, rows.ahead, 0)) {
        st_global(p, U32, at, 0, pair->id);
        st_global(p, U32, at, WORD, rows.all);
        for (unsigned i = 1; i < r->m; i++)
            PTX_IF (p, le(p, rows.all, i))
                st_global(p, U32, at, (ENTRY_WORDS + i) * WORD, imm(U32, NONE));
    }
    val number = mad(p, pair->row, r->used, pair->slot);
    st_global(p, U32, mad_wide(p, rows.ahead, WORD, at), ENTRY_WORDS * WORD, number);
}

/* Stores the list's head and the entries that are left. */
static void store_rest(ptx *p, const route *r)
{
    val entries = r->m > 1 ? count_entries(p, r, imm(U32, NONE)) : imm(U32, r->used);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        val4 head = { { entries, imm(U32, 0), imm(U32, 0), imm(U32, 0) } };
        st_global_v4(p, U32, parameter(p, "list"), 0, head);
    }
    unsigned pairs = r->m * r->used, most = pairs < r->experts ? pairs : r->experts;
    if (r->m > 1)
        PTX_FOR (p, left, add(p, tid_x(p), entries), most, r->threads) {
            val at = entry_at(p, r, left);
            for (unsigned i = 0; i < ENTRY_WORDS + r->m; i++)
                st_global(p, U32, at, i * WORD, imm(U32, i == 1 ? 0 : NONE));
        }
}

static void make_list(ptx *p, const route *r)
{
    if (r->m > 1)
        find_firsts(p, r);
    barrier(p);
    PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
        place_of_id at = place_new(p, r, number);
        PTX_IF (p, lt(p, at.slot, r->used))
            store_pair(p, r, &at);
    }
    store_rest(p, r);
}

static route route_new(ptx *p, const instance *in)
{
    route r = { .in = in,
                .options = &in->options,
                .k = (unsigned)in->shape.k,
                .m = (unsigned)in->shape.m,
                .experts = (unsigned)in->shape.experts,
                .used = (unsigned)in->shape.experts_used,
                .rows = (unsigned)rows_of_w(in),
                .warps = (unsigned)block_warps(in) };
    r.threads = r.warps * WARP;
    r.room = room_of_row(in);
    r.scratch = parameter(p, "scratch");
    return r;
}

static void build(ptx *p, const instance *in)
{
    route r = route_new(p, in);
    val row = named(p, "row", ctaid_z(p));
    phase(p, "a row of W");
    multiply_row(p, &r, row);
    phase(p, "whether this block is the last");
    ret_if(p, bit_not(p, is_last_block(p, &r)));
    if (in->options.route.groups)
        r.scores = shared_array(p, "scores", U32, r.warps * r.experts);
    r.ids = shared_array(p, "row_ids", U32, r.m * r.room);
    r.firsts = r.m > 1 ? shared_array(p, "first_ids", U32, r.m * r.room) : r.ids;
    phase(p, "choose");
    PTX_FOR (p, chooser, warp_id(p), r.m, r.warps)
        choose_of_row(p, &r, chooser);
    phase(p, "list");
    make_list(p, &r);
}

static const char *check(const instance *in, arena *a, const char **blamed)
{
    const problem_shape *s = &in->shape;
    const route_options *o = &in->options.route;
    long long experts = s->experts, used = s->experts_used, groups = o->groups;
    *blamed = "experts_used";
    if (used > experts)
        return arena_format(a, "experts_used = %lld is more than experts = %lld", used, experts);
    if (!groups)
        return NULL;
    *blamed = "groups";
    if (experts % groups || experts / groups < 2)
        return arena_format(a,
                            "groups = %lld do not split experts = %lld into groups of the same "
                            "size, 2 or more",
                            groups, experts);
    if (!o->groups_used)
        return arena_format(a, "groups = %lld needs groups_used: how many are chosen from", groups);
    *blamed = "groups_used";
    if (o->groups_used > groups)
        return arena_format(a, "groups_used = %lld is more than groups = %lld",
                            (long long)o->groups_used, groups);
    if (used > o->groups_used * (experts / groups))
        return arena_format(a,
                            "groups_used = %lld have %lld experts, fewer than experts_used = %lld; "
                            "%lld would do",
                            (long long)o->groups_used, o->groups_used * (experts / groups), used,
                            (used + experts / groups - 1) / (experts / groups));
    return NULL;
}

static const choice gating_choices[] = {
    [GATING_SOFTMAX] = { "softmax", "" },
    [GATING_SIGMOID] = { "sigmoid", "_sigmoid" },
    [GATING_SOFTMAX_OF_CHOSEN] = { "softmax_of_chosen", "_chosen" },
    { NULL, NULL },
};
static const choice normed_choices[] = { { "0", "" }, { "1", "_normed" }, { NULL, NULL } };
static const choice choice_bias_choices[] = { { "none", "" },
                                              { "add", "_choice" },
                                              { NULL, NULL } };
static const choice shared_choices[] = {
    [SHARED_NONE] = { "none", "" },
    [SHARED_PLAIN] = { "plain", "_shared" },
    [SHARED_GATED] = { "gated", "_gated" },
    { NULL, NULL },
};

#define KEY_ROUTE(id, said)                                                 \
    {                                                                       \
        .name = #id, .summary = said, .field = KEY_FIELD(options.route.id), \
        .choices = id##_choices                                             \
    }

static const key keys[] = {
    KEY_WEIGHTS,
    KEY_K_OF_WEIGHTS,
    { .name = "experts",
      .summary = "of the mixture: rows of W",
      .field = KEY_FIELD(shape.experts),
      .min = 1,
      .max = MOST_EXPERTS,
      .required = true,
      .tag = "e" },
    { .name = "experts_used",
      .summary = "chosen for each row of x",
      .field = KEY_FIELD(shape.experts_used),
      .min = 1,
      .max = MOST_USED,
      .required = true,
      .tag = "u" },
    KEY_M(1),
    KEY_ROUTE(gating, "probabilities of logits"),
    KEY_ROUTE(normed, "1: weights divided by their sum"),
    KEY_SCALE("of the weights"),
    KEY_ROUTE(choice_bias, "added for the choice alone"),
    { .name = "groups",
      .summary = "of neighbouring experts",
      .field = KEY_FIELD(options.route.groups),
      .max = MOST_GROUPS,
      .zero_is_none = true,
      .tag = "g" },
    { .name = "groups_used",
      .summary = "of these, by their two best",
      .field = KEY_FIELD(options.route.groups_used),
      .max = MOST_GROUPS,
      .only_with = KEY_FIELD(options.route.groups),
      .tag = "of" },
    KEY_ROUTE(shared, "an expert of all rows; gated: by w_shared"),
    KEY_OPTION(bias, "a vector [experts] of logits"),
    KEYS_NORM,
    KEY_END,
};

#define OF_GATED_SHARED .only_with = KEY_FIELD(options.route.shared), .only_of = 1 << SHARED_GATED

static const param params[] = {
    OUT(U32, ids, "m*experts_used", 4),
    OUT(F32, weights, "m*(experts_used+shared_weights)", 4),
    OUT(U32, list, "4 + min(experts, m*experts_used)*(2+m)", 16),
    { .name = "w",
      .kind = PARAM_IN,
      .weights = true,
      .values = "experts*k",
      .align = 16,
      .small = true },
    IN(F32, x, "m*k", 16),
    IN_WHERE(norm, F32, gamma, "k", 16),
    IN_WHERE(bias, F32, bias, "experts", 4),
    IN_WHERE(route.choice_bias, F32, choice_bias, "experts", 4),
    { .name = "w_shared",
      .kind = PARAM_IN,
      .format = FORMAT_F32,
      .values = "k",
      .align = 16,
      .small = true,
      OF_GATED_SHARED },
    SCRATCH(F32, scratch, "m*rows", 4),
    COUNTERS(counters, "1"),
    PARAM_END,
};

static int64_t shared_weights(const instance *in)
{
    return in->options.route.shared != SHARED_NONE;
}

static const derived_size sizes[] = {
    { "rows", rows_of_w, "of W: experts, and with shared = gated one more" },
    { "warps", block_warps, "of a block: up to 8, by k and the weights' format" },
    { "shared_weights", shared_weights, "1 with a shared expert, else 0" },
    { "shared_bytes", shared_bytes, "of shared memory: sums, scores of groups, ids" },
    { NULL, NULL, NULL },
};

const family moe_route = {
    .name = "moe_route",
    .summary = "the router of a mixture of experts: logits, choice, weights and the list in use",
    .computes = "ids, weights[m] = top experts_used of p(x[m,k] W[experts,k]^T)",
    .op = OP_MOE_ROUTE,
    .same_bits = true,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*warps",
                .grid = { "1", "1", "rows" },
                .shared = "shared_bytes",
                .sizes = sizes,
                .registers = 128 },
    .check = check,
    .build = build,
    .reference = ref_moe_route,
    .tolerance = REF_ROUTE_TOLERANCE,
};
