/* The router of a mixture of experts in one launch: logits of all experts, the choice of experts
 * for each row of x, and the list of the experts in use. ref_moe_route documents the formulas and
 * the layouts of the outputs.
 *
 * A block multiplies one row of W with up to 8 rows of x, so that as many SMs as there are experts
 * load the weights at once. Only sums are rounded. The logits go to scratch memory, [m, rows of W].
 * The last block to finish makes the choice: a counter tells it that it is the last, and it resets
 * the counter, as in gqa_flash_decoding. Blocks are in the grid's z, since they share one result.
 *
 * More than 8 rows of x form groups of 8. Each row of W then has one block per group. The last
 * block of a group chooses for its rows, and the last of these blocks writes the list.
 *
 * experts/route_choice.c makes the choice, experts/route_list.c the list. */
#include "gen/common/reduce.h"
#include "gen/experts/route.h"
#include "gen/common/row_groups.h"
#include "gen/formats/weight_format.h"
#include "gen/products/experts.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum {
    LINE = 16,        /* bytes */
    MOST_WARPS = 8,   /* warps per block */
    LEAST_PIECES = 2, /* pieces per lane, if there are fewer warps */
    IN_FLIGHT = 4,    /* loads of weights; half of it for more than FEW_ROWS rows */
    FEW_ROWS = 4,
};

/* Returns the decoder of a float format whose values a thread loads 16 bytes at a time, 8 values at
 * most. Returns NULL for other formats. */
static const stream_format *wide_floats(format f)
{
    bool wide = formats[f].block_values == 1 && formats[f].block_bytes >= F16_BYTES;
    return wide ? &weight_format_of(f)->stream : NULL;
}

static unsigned piece_values(format f)
{
    return wide_floats(f) ? LINE / formats[f].block_bytes : UNPACKED;
}

static int64_t block_warps(const instance *in)
{
    int64_t pieces = in->shape.k / piece_values(instance_weights(in));
    int64_t warps = (pieces + LEAST_PIECES * WARP - 1) / (LEAST_PIECES * WARP);
    return warps < 1 ? 1 : warps < MOST_WARPS ? warps : MOST_WARPS;
}

static int64_t rows_of_w(const instance *in)
{
    return in->shape.experts + (in->options.route.shared == SHARED_GATED);
}

/* Returns the ids of a row in shared memory, padded to whole lines. */
static unsigned room_of_row(const instance *in)
{
    return ((unsigned)in->shape.experts_used + ROUTE_LINE_IDS - 1) / ROUTE_LINE_IDS *
           ROUTE_LINE_IDS;
}

/* Returns the sums per row of W: one product per row of x and, with a norm, one sum of squares. */
static unsigned sum_count(const instance *in)
{
    return row_group_rows(in) * (in->options.norm ? 2 : 1);
}

static int64_t shared_bytes(const instance *in)
{
    int64_t warps = block_warps(in), partial = warps > 1 ? sum_count(in) * warps * ROUTE_WORD : 0;
    int64_t bytes = (partial + LINE - 1) / LINE * LINE + LINE; /* and the ticket */
    if (in->options.route.groups)
        bytes += (warps * in->shape.experts * ROUTE_WORD + LINE - 1) / LINE * LINE;
    int64_t ids = row_group_rows(in) * room_of_row(in) * ROUTE_WORD;
    if (row_group_count(in) > 1)
        return bytes + ids + route_bytes_of_many(in);
    return bytes + ids * (in->shape.m > 1 ? 2 : 1);
}

/* A row of W and its factors. */
typedef struct products {
    const route *r;
    format f;
    val row, x, gamma;
    const var *dots, *squares;
} products;

/* Adds the products of `turns` pieces of the thread from piece on, one block width apart. */
static void add_pieces(ptx *p, const products *s, val piece, unsigned turns)
{
    unsigned values = piece_values(s->f);
    val w[IN_FLIGHT][UNPACKED], x[UNPACKED], gamma[UNPACKED];
    val behind = mul_wide(p, piece, values * F32_BYTES), x_at = add(p, s->x, behind);
    for (unsigned t = 0; t < turns; t++) {
        unsigned ahead = t * s->r->threads;
        if (wide_floats(s->f)) {
            val at = mad_wide(p, piece, LINE, s->row);
            val4 words = ld_const_v4(p, U32, at, (int64_t)ahead * LINE);
            wide_floats(s->f)->floats(p, &words, w[t]);
        } else {
            unpack_piece(p, s->f, s->row, add(p, piece, ahead), w[t]);
        }
    }
    for (unsigned t = 0; t < turns; t++) {
        int64_t ahead = (int64_t)t * s->r->threads * values * F32_BYTES;
        if (s->gamma.kind)
            load_floats(p, add(p, s->gamma, behind), ahead, values, gamma);
        for (unsigned v = 0; v < s->r->group; v++) {
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
    unsigned at_once = !wide_floats(s->f) ? 1 : s->r->group > FEW_ROWS ? IN_FLIGHT / 2 : IN_FLIGHT;
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

static void store_logits(ptx *p, const route *r, val row, const row_group *x, const val *sums)
{
    const instance *in = r->in;
    spread_sums spread = block_sum_spread(p, sums, sum_count(in), r->warps);
    val logit = spread.sum;
    if (in->options.norm) {
        unsigned lanes = spread.lanes ? spread.lanes : 1;
        val squares = shuffle_from(p, spread.sum, add(p, lane_id(p), r->group * lanes));
        val mean = div(p, squares, (float)r->k);
        logit = mul(p, logit, norm_factor(p, in, mean));
    }
    val row_of_x = row_of_group(p, x, spread.number), stored = lt(p, spread.number, r->group);
    PTX_IF (p, bit_and(p, stored, row_is_own(p, x, row_of_x))) {
        var biased = var_like(p, logit);
        float scale = (float)in->options.route.logit_scale;
        if (in->options.bias || scale > 0)
            PTX_IF (p, lt(p, row, r->experts)) { /* w_shared has neither */
                val own = scale > 0 ? mul(p, logit, scale) : logit;
                if (in->options.bias)
                    own = add(p, own, route_of_expert(p, "bias", row));
                assign(p, biased, own);
            }
        st_global(p, F32, mad_wide(p, mad(p, row_of_x, r->rows, row), ROUTE_WORD, r->scratch), 0,
                  biased);
    }
}

static void multiply_row(ptx *p, const route *r, val row, const row_group *x)
{
    const instance *in = r->in;
    val sums[2 * MAX_VECTORS];
    var dots[MAX_VECTORS], squares[MAX_VECTORS];
    for (unsigned v = 0; v < r->group; v++) {
        dots[v] = var_f32(p, 0.0f);
        if (in->options.norm)
            squares[v] = var_f32(p, 0.0f);
    }
    products s = { r, instance_weights(in), .dots = dots, .squares = squares };
    s.x = row_group_start(p, x, parameter(p, "x"), r->k * F32_BYTES);
    if (in->options.norm)
        s.gamma = parameter(p, "gamma");
    val row_bytes = imm(U32, (long long)format_bytes(s.f, r->k));
    s.row = mad_wide(p, row, row_bytes, parameter(p, "w"));
    if (r->rows > r->experts) {
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
    for (unsigned v = 0; v < r->group; v++) {
        sums[v] = get(p, dots[v]);
        if (in->options.norm)
            sums[r->group + v] = get(p, squares[v]);
    }
    store_logits(p, r, row, x, sums);
}

/* Blocks of the same row of W are adjacent, so that they find it in the L2. */
static void moe_route_build(ptx *p, const instance *in)
{
    route r = { .in = in,
                .k = (unsigned)in->shape.k,
                .m = (unsigned)in->shape.m,
                .group = row_group_rows(in),
                .experts = (unsigned)in->shape.experts,
                .used = (unsigned)in->shape.experts_used,
                .rows = (unsigned)rows_of_w(in),
                .warps = (unsigned)block_warps(in),
                .threads = (unsigned)block_warps(in) * WARP,
                .room = room_of_row(in) };
    r.scratch = parameter(p, "scratch");
    unsigned groups = (unsigned)row_group_count(in);
    val group = groups > 1 ? rem(p, ctaid_z(p), groups) : imm(U32, 0);
    val row = named(p, "row", div(p, ctaid_z(p), groups)), counter = parameter(p, "counters");
    row_group x = row_group_new(p, in, group);
    val end = add(p, x.first, x.count);
    phase(p, "multiply a row of W");
    multiply_row(p, &r, row, &x);
    phase(p, "check for the last block");
    val ticket = shared_array(p, "ticket", U32, 1), of_group = counter;
    if (groups > 1)
        of_group = mad_wide(p, add(p, group, 1), ROUTE_WORD, counter);
    ret_if(p, bit_not(p, block_is_last(p, of_group, imm(U32, r.rows), ticket)));
    if (in->options.route.groups)
        r.scores = shared_array(p, "scores", U32, r.warps * r.experts);
    r.ids = shared_array(p, "row_ids", U32, r.group * r.room);
    r.firsts = r.ids;
    if (r.m > 1 && groups == 1)
        r.firsts = shared_array(p, "first_ids", U32, r.group * r.room);
    phase(p, "choose experts");
    if (groups > 1) /* the group's first row uses the first ids */
        r.ids = sub(p, r.ids, mul(p, x.own, r.room * ROUTE_WORD));
    PTX_FOR (p, chooser, add(p, x.own, warp_id(p)), end, r.warps)
        route_choose(p, &r, chooser);
    if (groups > 1)
        ret_if(p, bit_not(p, block_is_last(p, counter, imm(U32, groups), ticket)));
    phase(p, "write the list");
    route_make_list(p, &r);
}

static const char *check_moe_route(const instance *in, arena *a, const char **blamed)
{
    const problem_shape *s = &in->shape;
    const route_options *o = &in->options.route;
    long long experts = s->experts, used = s->experts_used, groups = o->groups;
    *blamed = "experts_used";
    if (used > experts)
        return arena_format(a, "experts_used = %lld is more than experts = %lld; use at most %lld",
                            used, experts, experts);
    if (!groups)
        return NULL;
    *blamed = "groups";
    if (experts % groups || experts / groups < 2)
        return arena_format(a,
                            "groups = %lld does not divide experts = %lld into equal groups of 2 "
                            "experts or more",
                            groups, experts);
    if (!o->groups_used)
        return arena_format(
            a, "groups = %lld needs groups_used, the number of groups to choose from", groups);
    *blamed = "groups_used";
    if (o->groups_used > groups)
        return arena_format(a, "groups_used = %lld is more than groups = %lld",
                            (long long)o->groups_used, groups);
    if (used > o->groups_used * (experts / groups))
        return arena_format(
            a,
            "groups_used = %lld gives %lld experts, fewer than experts_used = %lld; "
            "use groups_used = %lld",
            (long long)o->groups_used, o->groups_used * (experts / groups), used,
            (used + experts / groups - 1) / (experts / groups));
    return NULL;
}

static const choice gating_choices[] =
    CHOICES([GATING_SOFTMAX] = { "softmax", "" }, [GATING_SIGMOID] = { "sigmoid", "_sigmoid" },
            [GATING_SOFTMAX_OF_CHOSEN] = { "softmax_of_chosen", "_chosen" });
static const choice normed_choices[] = CHOICES({ "0", "" }, { "1", "_normed" });
static const choice choice_bias_choices[] = CHOICES({ "none", "" }, { "add", "_choice" });
static const choice shared_choices[] =
    CHOICES([SHARED_NONE] = { "none", "" }, [SHARED_PLAIN] = { "plain", "_shared" },
            [SHARED_GATED] = { "gated", "_gated" });

static const choice expert_scale_choices[] = CHOICES({ "none", "" }, { "input", "_expertscale" });

#define KEY_ROUTE(id, said) KEY_WORD(#id, said, options.route.id, id##_choices)

#define OF_GATED_SHARED     .only_with = KEY_FIELD(options.route.shared), .only_of = 1 << SHARED_GATED

static int64_t counter_count(const instance *in)
{
    return row_group_count(in) > 1 ? 1 + row_group_count(in) : 1;
}

static const derived_size sizes[] = {
    { "rows", rows_of_w, "rows of W: experts, plus 1 with shared = gated" },
    { "groups", row_group_count, "groups of up to 8 rows of x, with separate blocks" },
    { "counters", counter_count, "1, plus one per group if there are several" },
    { "warps", block_warps, "warps per block: up to 8, by k and the weight format" },
    { "shared_weights", experts_shared_weights, "1 with a shared expert, else 0" },
    { "shared_bytes", shared_bytes, "bytes of shared memory: sums, scores of groups, ids" },
    { NULL, NULL, NULL },
};

const family moe_route = {
    .name = "moe_route",
    .summary = "router of a mixture of experts: logits, choice, weights, list of experts in use",
    .computes = "ids, weights[m] = top experts_used of p(x[m,k] W[experts,k]^T)",
    .op = OP_MOE_ROUTE,
    .same_bits = true,
    .keys = KEYS(
        KEY_WEIGHTS, KEY_K_OF_WEIGHTS,
        KEY_NUMBER("experts", "experts: rows of W, e.g. 128", shape.experts, 1, ROUTE_EXPERTS,
                   .required = true, .tag = "e"),
        KEY_NUMBER("experts_used", "experts per row of x, e.g. 8", shape.experts_used, 1,
                   ROUTE_USED, .required = true, .tag = "u"),
        KEY_NUMBER("m", "rows of X", shape.m, 1, EXPERT_MOST_ROWS, .def = 1, .tag = "m"),
        KEY_ROUTE(gating, "function from logits to weights"),
        KEY_ROUTE(normed, "1: divide the weights by their sum"), KEY_SCALE("factor of the weights"),
        KEY_ROUTE(expert_scale, "input: factor of each expert's weight, in memory"),
        KEY_ROUTE(choice_bias, "add: choice_bias, for the choice only"),
        KEY_NUMBER("groups", "groups of neighbouring experts, e.g. 8", options.route.groups, 0,
                   ROUTE_GROUPS, .zero_is_none = true, .tag = "g"),
        KEY_NUMBER("groups_used", "groups to choose from, by their two best",
                   options.route.groups_used, 0, ROUTE_GROUPS,
                   .only_with = KEY_FIELD(options.route.groups), .tag = "of"),
        KEY_ROUTE(shared, "shared expert; gated: weight from w_shared"),
        KEY_REAL("shared_scale", "factor of the shared expert's weight, e.g. 0.5",
                 options.route.shared_scale, "sharedscale", factor_range,
                 .only_with = KEY_FIELD(options.route.shared)),
        KEY_REAL("logit_scale", "factor of the logits, before the bias", options.route.logit_scale,
                 "logitscale", factor_range),
        KEY_OPTION(bias, "add: bias[experts] is added to the logits"), KEYS_NORM),
    .params = PARAMS(OUT(U32, ids, "m*experts_used", 4),
                     OUT(F32, weights, "m*(experts_used+shared_weights)", 4),
                     OUT(U32, list, "4 + min(experts, m*experts_used)*(2+m)", 16),
                     WEIGHTS(w, "experts*k", .random = RANDOM_SMALL), IN(F32, x, "m*k", 16),
                     IN_WHERE(norm, F32, gamma, "k", 16), IN_WHERE(bias, F32, bias, "experts", 4),
                     IN_WHERE(route.choice_bias, F32, choice_bias, "experts", 4),
                     IN_WHERE(route.expert_scale, F32, expert_scale, "experts", 4),
                     IN(F32, w_shared, "k", 16, .random = RANDOM_SMALL, OF_GATED_SHARED),
                     SCRATCH(F32, scratch, "m*rows", 4), COUNTERS(counters, "counters")),
    .launch = { .block = "32*warps",
                .grid = { "1", "1", "rows*groups" },
                .shared = "shared_bytes",
                .sizes = sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_moe_route,
    .build = moe_route_build,
    .reference = ref_moe_route,
    .reference_is_whole = true,
    .tolerance = REF_ROUTE_TOLERANCE,
};
