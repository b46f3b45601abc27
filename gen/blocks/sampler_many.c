/* All tokens of a row, where they are: the shortest prefix of the order whose sum reaches a goal is
 * found bit by bit, 32 of the last token's height and then those of its number, by as many passes
 * over the row.
 */
#include "gen/blocks/sampler.h"

/* Tokens up to a place in the order: those of larger heights, and of height those of numbers below
 * end.
 */
typedef struct prefix {
    var height, end;
} prefix;

/* Filters, and the choice, in their order: each is about a sum over tokens. */
enum { TOP_K, TOP_P, DRAW, STAGES };

/* What is summed up over a prefix of the order: ones, or weights. */
typedef struct measure {
    val ones, inverse; /* whether it is ones; of the temperature */
    val height, end;
    var sum;
} measure;

static void add_measure(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    const measure *m = context;
    val height = height_of_float(p, logit);
    PTX_IF (p, bit_and(p, is_new, is_ahead(p, height, number, m->height, m->end))) {
        val weight = weight_of_height(p, s, height, m->inverse);
        weight = select(p, m->ones, imm(U32, 1), weight);
        assign(p, m->sum, add(p, m->sum, convert(p, U64, weight)));
    }
}

static val warp_sum_u64(ptx *p, val v)
{
    for (unsigned mask = WARP / 2; mask; mask /= 2) {
        val low = shuffle_xor(p, convert(p, U32, v), mask);
        val high = shuffle_xor(p, convert(p, U32, shr(p, v, 32)), mask);
        v = add(p, v, bit_or(p, shl(p, convert(p, U64, high), 32), convert(p, U64, low)));
    }
    return v;
}

/* The sum that a stage is about, over a prefix of the order, told to all. */
static val measure_prefix(ptx *p, const sampler *s, val stage, val height, val end)
{
    measure m = { .ones = eq(p, stage, TOP_K),
                  .inverse = select(p, eq(p, stage, DRAW), s->inverse, val_of_f32(1.0f)),
                  .height = height,
                  .end = end,
                  .sum = var_u64(p, 0) };
    val lane = lane_id(p);
    over_tokens(p, s, whole_row(s), 1, add_measure, &m);
    val sum = warp_sum_u64(p, get(p, m.sum));
    PTX_IF (p, eq(p, lane, 0))
        st_shared(p, U64, mad(p, warp_id(p), 2 * WORD, s->of_warps), 0, sum);
    barrier(p);
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        var part = var_u64(p, 0);
        PTX_IF (p, lt(p, lane, s->warps))
            assign(p, part, ld_shared(p, U64, mad(p, lane, 2 * WORD, s->of_warps), 0));
        val all = warp_sum_u64(p, get(p, part));
        PTX_IF (p, eq(p, lane, 0))
            st_shared(p, U64, s->found, 0, all);
    }
    barrier(p);
    return ld_shared(p, U64, s->found, 0);
}

static unsigned bits_of(unsigned n)
{
    unsigned bits = 0;
    while (bits < HEIGHT_BITS && n >> bits)
        bits++;
    return bits;
}

/* What the shortest prefix that a stage leaves has to reach, of the sum over all that there is. */
static val goal_of_stage(ptx *p, const sampler *s, val stage, val sum)
{
    val drawn = add(p, fraction_of_sum(p, sum, s->chance), 1);
    val goal = select(p, eq(p, stage, DRAW), drawn, top_p_goal(p, s, sum));
    return select(p, eq(p, stage, TOP_K), convert(p, U64, s->top_k), goal);
}

/* Makes a prefix the shortest one whose sum reaches the stage's goal: its last token has its
 * height, and the number ahead of its end. The first step sums up what is there, the next ones find
 * the largest height from which on tokens reach the goal, from its highest bit on, and then the
 * largest end with which tokens of that height do not. */
static void reach(ptx *p, const sampler *s, val stage, const prefix *at)
{
    unsigned bits = bits_of(s->n);
    val height = get(p, at->height), end = get(p, at->end);
    var goal = var_u64(p, 0);
    assign(p, at->height, imm(U32, 0));
    assign(p, at->end, imm(U32, 0));
    PTX_FOR (p, step, 0, 1 + HEIGHT_BITS + bits, 1) {
        val is_first = eq(p, step, 0), of_end = gt(p, step, HEIGHT_BITS);
        val height_bit = shr(p, imm(U32, 0x80000000), sub(p, step, 1)); /* of the first step: 0 */
        val end_bit = shr(p, imm(U32, 1 << bits), sub(p, step, HEIGHT_BITS));
        val higher = bit_or(p, at->height, height_bit), farther = bit_or(p, at->end, end_bit);
        val below = select(p, of_end, at->height, sub(p, higher, 1));
        val sum = measure_prefix(p, s, stage, select(p, is_first, height, below),
                                 select(p, is_first, end, select(p, of_end, farther, imm(U32, 0))));
        PTX_IF (p, is_first)
            assign(p, goal, goal_of_stage(p, s, stage, sum));
        val reached = ge(p, sum, goal);
        val raised = bit_and(p, reached, bit_not(p, of_end));
        assign(p, at->height, select(p, raised, higher, at->height));
        val moved = bit_and(p, of_end, bit_not(p, reached));
        assign(p, at->end, select(p, moved, farther, at->end));
    }
    assign(p, at->end, add(p, at->end, 1));
}

/* Shortens a prefix to the tokens that min_p lets pass: behind the largest height that it does not.
 */
static void shorten(ptx *p, const sampler *s, const prefix *at)
{
    val least = least_weight(p, s);
    var height = var_u32(p, 0);
    PTX_FOR (p, weight_bit, 0, HEIGHT_BITS, 1) {
        val higher = bit_or(p, height, shr(p, imm(U32, 0x80000000), weight_bit));
        val weight = weight_of_height(p, s, higher, val_of_f32(1.0f));
        assign(p, height, select(p, lt(p, weight, least), higher, height));
    }
    PTX_IF (p, ge(p, height, at->height)) {
        assign(p, at->height, height);
        assign(p, at->end, imm(U32, 0));
    }
}

void draw_of_all(ptx *p, const sampler *s)
{
    prefix at = { var_u32(p, 0), var_u32(p, 0) };
    ptx_loop_seldom(p);
    PTX_FOR (p, stage, TOP_K, STAGES, 1) {
        val all_k = bit_and(p, eq(p, stage, TOP_K), ge(p, s->top_k, s->n));
        val all_p = bit_and(p, eq(p, stage, TOP_P), bit_not(p, lt(p, s->top_p, 1.0f)));
        PTX_IF (p, eq(p, stage, DRAW))
            shorten(p, s, &at);
        PTX_IF (p, bit_not(p, bit_or(p, all_k, all_p)))
            reach(p, s, stage, &at);
    }
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, U32, s->token, 0, sub(p, at.end, 1));
}
