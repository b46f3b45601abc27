/* A warp processes a row of X. Lane i has experts i, 32 + i, 64 + i, ... in registers, as heights
 * of their scores (see common/reduce.h): a NaN is the largest, and 0 marks a missing expert. In
 * each iteration the warp finds and removes the first expert, and lane i keeps the expert of
 * iteration i. So at most 32 experts can be chosen. */
#include <math.h>

#include "gen/common/reduce.h"
#include "gen/experts/route.h"
#include "gen/common/softmax.h"
#include "ref/reference.h"

/* The lane's experts of a row. */
typedef struct lane_experts {
    val lane;
    unsigned count;
    val logits[ROUTE_EXPERTS / WARP]; /* minus infinity if the lane has no such expert */
    val max, inverse;                 /* maximum of all logits; 1 / sum of the softmax */
    var heights[ROUTE_EXPERTS / WARP];
} lane_experts;

static val expert_of(ptx *p, const lane_experts *e, unsigned number)
{
    return add(p, e->lane, number * WARP);
}

val route_of_expert(ptx *p, const char *name, val expert)
{
    return ld_const(p, F32, mad_wide(p, expert, ROUTE_WORD, parameter(p, name)), 0);
}

/* Returns true if the lane has an expert with this index. */
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
    val at = mad_wide(p, mad(p, row, r->rows, e->lane), ROUTE_WORD, r->scratch);
    const val none = val_of_f32(-INFINITY);
    for (unsigned i = 0; i < e->count; i++) {
        var logit = ptx_var(p, F32, none);
        PTX_IF (p, has_expert(p, r, e, i))
            assign(p, logit, ld_global(p, F32, at, i * WARP * ROUTE_WORD));
        e->logits[i] = get(p, logit);
    }
    if (r->in->options.route.gating != GATING_SOFTMAX)
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

static val gated_logit(ptx *p, const route *r, const lane_experts *e, val logit)
{
    int64_t gating = r->in->options.route.gating;
    return gating == GATING_SOFTMAX   ? mul(p, exp_of(p, sub(p, logit, e->max)), e->inverse)
           : gating == GATING_SIGMOID ? sigmoid(p, logit)
                                      : logit;
}

/* Without choice_bias and groups, the logits themselves give the order. */
static void make_heights(ptx *p, const route *r, lane_experts *e)
{
    const route_options *o = &r->in->options.route;
    for (unsigned i = 0; i < e->count; i++) {
        val score = e->logits[i], exists = has_expert(p, r, e, i);
        if (o->choice_bias || o->groups)
            score = gated_logit(p, r, e, score);
        var biased = var_like(p, score);
        if (o->choice_bias)
            PTX_IF (p, exists) {
                val at = mad_wide(p, e->lane, ROUTE_WORD, parameter(p, "choice_bias"));
                assign(p, biased, add(p, score, ld_const(p, F32, at, i * WARP * ROUTE_WORD)));
            }
        val height = height_of_float(p, get(p, biased));
        e->heights[i] = var_like(p, select(p, exists, height, imm(U32, 0)));
    }
}

/* Returns the sum of a group's two best scores as a height, in the group's first lane; 0 in the
 * others. */
static val group_height(ptx *p, const route *r, const lane_experts *e, val scores, unsigned lanes)
{
    unsigned groups = (unsigned)r->in->options.route.groups, size = r->experts / groups;
    val group = div(p, e->lane, lanes), within = rem(p, e->lane, lanes);
    val exists = lt(p, group, groups);
    var best = var_u32(p, 0), second = var_u32(p, 0);
    val first = mad(p, group, size, within), end = mad(p, group, size, imm(U32, size));
    PTX_FOR (p, member, first, select(p, exists, end, imm(U32, 0)), lanes) {
        val height = ld_shared(p, U32, mad(p, member, ROUTE_WORD, scores), 0);
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

/* Removes the experts outside the best groups. */
static void choose_groups(ptx *p, const route *r, const lane_experts *e)
{
    unsigned groups = (unsigned)r->in->options.route.groups, lanes = WARP;
    while (WARP / lanes < groups)
        lanes /= 2;
    val scores = mad(p, warp_id(p), imm(U32, r->experts * ROUTE_WORD), r->scores);
    for (unsigned i = 0; i < e->count; i++)
        PTX_IF (p, has_expert(p, r, e, i))
            st_shared(p, U32, mad(p, e->lane, ROUTE_WORD, scores), i * WARP * ROUTE_WORD,
                      e->heights[i]);
    warp_barrier(p);
    var height = var_like(p, group_height(p, r, e, scores, lanes)), chosen = var_u32(p, 0);
    val group = div(p, e->lane, lanes);
    PTX_FOR (p, turn, 0, r->in->options.route.groups_used, 1) {
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

/* Returns the expert of slot i in lane i; 0 in lanes without a slot. */
static val choose_experts(ptx *p, const route *r, const lane_experts *e)
{
    var id = var_u32(p, 0);
    PTX_FOR (p, slot, 0, r->used, 1) {
        first_number best = { var_like(p, get(p, e->heights[0])), var_like(p, e->lane) };
        for (unsigned i = 1; i < e->count; i++) {
            val before = gt(p, e->heights[i], best.height);
            assign(p, best.height, select(p, before, e->heights[i], best.height));
            assign(p, best.number, select(p, before, expert_of(p, e, i), best.number));
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

/* Returns the weight of slot i in lane i. */
static val weigh(ptx *p, const route *r, const lane_experts *e, val id)
{
    const route_options *o = &r->in->options.route;
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
            div(p, weight, select(p, lt(p, sum, least), val_of_f32(least), sum)); /* keeps NaN */
    }
    if (r->in->options.scale > 0)
        weight = mul(p, weight, (float)r->in->options.scale);
    return o->expert_scale ? mul(p, weight, route_of_expert(p, "expert_scale", id)) : weight;
}

void route_choose(ptx *p, const route *r, val row)
{
    lane_experts e = { .lane = lane_id(p), .count = (r->experts + WARP - 1) / WARP };
    load_logits(p, r, &e, row);
    make_heights(p, r, &e);
    if (r->in->options.route.groups)
        choose_groups(p, r, &e);
    val id = choose_experts(p, r, &e), chosen = lt(p, e.lane, r->used);
    PTX_IF (p, lt(p, e.lane, r->room)) {
        val at = mad(p, mad(p, row, r->room, e.lane), ROUTE_WORD, r->ids);
        st_shared(p, U32, at, 0, select(p, chosen, id, imm(U32, ROUTE_NO_ID)));
    }
    PTX_IF (p, chosen) {
        val at = mad_wide(p, mad(p, row, r->used, e.lane), ROUTE_WORD, parameter(p, "ids"));
        st_global(p, U32, at, 0, id);
    }
    val weight = weigh(p, r, &e, id);
    int64_t shared = r->in->options.route.shared;
    val of_row = mul(p, row, r->used + (shared != SHARED_NONE));
    val at = mad_wide(p, of_row, ROUTE_WORD, parameter(p, "weights"));
    PTX_IF (p, lt(p, e.lane, r->used))
        st_global(p, F32, mad_wide(p, e.lane, ROUTE_WORD, at), 0, weight);
    if (shared)
        PTX_IF (p, eq(p, e.lane, 0)) {
            const float scale = (float)r->in->options.route.shared_scale;
            val of_shared = val_of_f32(scale > 0 && shared == SHARED_PLAIN ? scale : 1.0f);
            if (shared == SHARED_GATED) {
                val logits = mad_wide(p, mul(p, row, r->rows), ROUTE_WORD, r->scratch);
                of_shared = sigmoid(p, ld_global(p, F32, logits, r->experts * ROUTE_WORD));
                if (scale > 0)
                    of_shared = mul(p, of_shared, scale);
            }
            st_global(p, F32, at, r->used * ROUTE_WORD, of_shared);
        }
}
