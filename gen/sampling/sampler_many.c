/* Draws from all tokens of a row: finds the shortest prefix of the order whose sum reaches a goal.
 * Bisection finds the prefix's last token: each pass over the row adds up the tokens with keys in
 * the upper half of the range. When the range's tokens fit, they are gathered in shared memory, and
 * each thread adds up the weights before its own.
 *
 * A token's key is its height, followed by n' - number in as many bits as numbers need (n' is all
 * ones). A larger key comes first. Example: of 100 tokens, token 3 with height 0xc0000000 has the
 * key 0xc0000000 << 7 | 127 - 3. */
#include "gen/common/reduce.h"
#include "gen/sampling/sampler.h"

/* The filters and the draw, in order. */
enum { TOP_K, TOP_P, DRAW, STAGES };

/* Sum of ones or weights over the tokens with keys from `from` to `to` - 1, and the number of these
 * tokens. */
typedef struct measure {
    val ones, inverse;             /* true to sum ones; 1 / temperature */
    val from, to, lowest, highest; /* keys, and the range of logits with these keys */
    var sum, count;                /* over the thread's tokens */
    bool gathers;                  /* gather the tokens instead */
} measure;

typedef struct totals {
    val sum, count;
} totals;

static unsigned number_bits(const sampler *s)
{
    unsigned bits = 0;
    while (bits < HEIGHT_BITS && s->n >> bits)
        bits++;
    return bits;
}

static val key_of(ptx *p, const sampler *s, val height, val number)
{
    unsigned bits = number_bits(s);
    val behind = sub(p, (1u << bits) - 1, number);
    return add(p, shl(p, convert(p, U64, height), bits), convert(p, U64, behind));
}

/* Sets the range. Comparing the logit rejects most tokens without computing their keys. */
static void measure_between(ptx *p, const sampler *s, measure *m, val from, val to)
{
    const val last = imm(U64, HEIGHT_INFINITY);
    val lowest = convert(p, U32, shr(p, from, number_bits(s)));
    val highest = convert(p, U32, min(p, shr(p, to, number_bits(s)), last));
    m->from = from;
    m->to = to;
    m->lowest = float_of_height(p, max(p, lowest, imm(U32, HEIGHT_MINUS_INFINITY)));
    m->highest = float_of_height(p, highest);
}

static val measured(ptx *p, const sampler *s, const measure *m, val height)
{
    return select(p, m->ones, imm(U32, 1), weight_of_height(p, s, height, m->inverse));
}

/* Adds a token in the range to the sum, or gathers it. */
static void take_between(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    const measure *m = context;
    val may_be = bit_and(p, ge(p, logit, m->lowest), le(p, logit, m->highest));
    PTX_IF (p, bit_and(p, is_new, may_be)) {
        val height = height_of_float(p, logit), at = key_of(p, s, height, number);
        PTX_IF (p, bit_and(p, ge(p, at, m->from), lt(p, at, m->to))) {
            if (m->gathers) {
                val slot = atomic_add_shared(p, add(p, s->found, FOUND_COUNT), 1);
                store_candidate(p, s, slot, height, number);
            } else {
                assign(p, m->sum, add(p, m->sum, convert(p, U64, measured(p, s, m, height))));
                assign(p, m->count, add(p, m->count, 1));
            }
        }
    }
}

val warp_sum_u64(ptx *p, val v)
{
    for (unsigned mask = WARP / 2; mask; mask /= 2) {
        val low = shuffle_xor(p, convert(p, U32, v), mask);
        val high = shuffle_xor(p, convert(p, U32, shr(p, v, 32)), mask);
        v = add(p, v, bit_or(p, shl(p, convert(p, U64, high), 32), convert(p, U64, low)));
    }
    return v;
}

/* Sums over the range. Uses s->weights for the warps' counts, since no weights are stored yet. */
static totals measure_range(ptx *p, const sampler *s, measure *m)
{
    enum { LOADS = 2 };
    val lane = lane_id(p), own = mul(p, warp_id(p), WORD);
    assign(p, m->sum, imm(U64, 0));
    assign(p, m->count, imm(U32, 0));
    visit_tokens(p, s, imm(U32, 0), imm(U32, s->n), LOADS, take_between, m);
    val sum = warp_sum_u64(p, get(p, m->sum)), count = warp_sum(p, get(p, m->count));
    PTX_IF (p, eq(p, lane, 0)) {
        st_shared(p, U64, mad(p, warp_id(p), 2 * WORD, s->of_warps), 0, sum);
        st_shared(p, U32, add(p, s->weights, own), 0, count);
    }
    barrier(p);
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        var part = var_u64(p, 0), of_part = var_u32(p, 0);
        PTX_IF (p, lt(p, lane, s->warps)) {
            assign(p, part, ld_shared(p, U64, mad(p, lane, 2 * WORD, s->of_warps), 0));
            assign(p, of_part, ld_shared(p, U32, mad(p, lane, WORD, s->weights), 0));
        }
        val all = warp_sum_u64(p, get(p, part)), in_all = warp_sum(p, get(p, of_part));
        PTX_IF (p, eq(p, lane, 0)) {
            st_shared(p, U64, s->found, 0, all);
            st_shared(p, U32, s->found, FOUND_COUNT, in_all);
        }
    }
    barrier(p);
    return (totals){ ld_shared(p, U64, s->found, 0), ld_shared(p, U32, s->found, FOUND_COUNT) };
}

/* The range of keys still in question, its number of tokens, and the sum over tokens before it. */
typedef struct range {
    var from, to, count, before;
} range;

/* Returns the key of the token with which the prefix reaches the goal, to all threads. */
static val last_of_range(ptx *p, const sampler *s, measure *m, val goal, const range *r)
{
    measure_between(p, s, m, get(p, r->from), get(p, r->to));
    barrier(p);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared(p, U32, s->found, FOUND_COUNT, imm(U32, 0));
    barrier(p);
    m->gathers = true;
    visit_tokens(p, s, imm(U32, 0), imm(U32, s->n), 1, take_between, m);
    barrier(p);
    candidate c = own_candidate(p, s, get(p, r->count));
    val weight = measured(p, s, m, c.height);
    weight_sums sums = sum_weights(p, s, &c, weight);
    val before = add(p, r->before, sums.before);
    val reaches = ge(p, add(p, before, convert(p, U64, weight)), goal);
    PTX_IF (p, bit_and(p, c.exists, bit_and(p, lt(p, before, goal), reaches)))
        st_shared(p, U64, s->found, 0, key_of(p, s, c.height, c.number));
    barrier(p);
    return ld_shared(p, U64, s->found, 0);
}

/* Shortens the prefix that ends with key *last to the shortest that reaches the stage's goal. */
static void reach(ptx *p, const sampler *s, val stage, const var *last)
{
    measure m = { .ones = eq(p, stage, TOP_K),
                  .inverse = select(p, eq(p, stage, DRAW), s->inverse, val_of_f32(1.0f)),
                  .sum = var_u64(p, 0),
                  .count = var_u32(p, 0) };
    measure_between(p, s, &m, get(p, *last), imm(U64, 1LL << (HEIGHT_BITS + number_bits(s))));
    /* The goal is derived from the sum over all remaining tokens. */
    val sum = measure_range(p, s, &m).sum;
    val drawn = add(p, fraction_of_sum(p, sum, s->chance), 1);
    val wanted = select(p, eq(p, stage, DRAW), drawn, top_p_goal(p, s, sum));
    val goal = select(p, eq(p, stage, TOP_K), convert(p, U64, s->top_k), wanted);
    range r = { var_u64(p, 0), var_like(p, imm(U64, 1LL << (HEIGHT_BITS + number_bits(s)))),
                var_u32(p, s->n), var_u64(p, 0) };
    unsigned bits = HEIGHT_BITS + number_bits(s);
    PTX_FOR (p, step, 0, bits, 1) /* halves the range until its tokens fit */
        PTX_IF (p, gt(p, r.count, s->threads)) {
            val middle = bit_or(p, r.from, shr(p, imm(U64, 1LL << (bits - 1)), step));
            measure_between(p, s, &m, middle, get(p, r.to));
            totals upper = measure_range(p, s, &m);
            val before = add(p, r.before, upper.sum), reached = ge(p, before, goal);
            val lower = sub(p, r.count, upper.count);
            assign(p, r.from, select(p, reached, middle, r.from));
            assign(p, r.to, select(p, reached, r.to, middle));
            assign(p, r.before, select(p, reached, r.before, before));
            assign(p, r.count, select(p, reached, upper.count, lower));
        }
    assign(p, *last, last_of_range(p, s, &m, goal, &r));
}

void draw_of_all(ptx *p, const sampler *s)
{
    var last = var_u64(p, 0);
    ptx_loop_seldom(p);
    PTX_FOR (p, stage, TOP_K, STAGES, 1) {
        val all_k = bit_and(p, eq(p, stage, TOP_K), ge(p, s->top_k, s->n));
        val all_p = bit_and(p, eq(p, stage, TOP_P), bit_not(p, lt(p, s->top_p, 1.0f)));
        PTX_IF (p, eq(p, stage, DRAW)) {
            /* min_p: ends the prefix above the largest height whose weight is too small. */
            val least = least_weight(p, s);
            var height = var_u32(p, 0);
            PTX_FOR (p, weight_bit, 0, HEIGHT_BITS, 1) {
                val higher = bit_or(p, height, shr(p, imm(U32, 0x80000000), weight_bit));
                val weight = weight_of_height(p, s, higher, val_of_f32(1.0f));
                assign(p, height, select(p, lt(p, weight, least), higher, height));
            }
            val above = shl(p, add(p, convert(p, U64, get(p, height)), 1), number_bits(s));
            assign(p, last, max(p, last, above));
        }
        PTX_IF (p, bit_not(p, bit_or(p, all_k, all_p)))
            reach(p, s, stage, &last);
    }
    unsigned mask = (1u << number_bits(s)) - 1;
    val behind = bit_and(p, convert(p, U32, get(p, last)), mask);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, U32, s->token, 0, sub(p, mask, behind));
}
