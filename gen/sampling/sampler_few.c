/* Sampling from a few candidates in shared memory. Each thread has one, and adds up the weights of
 * the candidates before its own.
 *
 * All tokens above a bound are gathered. The bound is a height that the largest logits of top_k
 * threads reach, so the first top_k tokens of the row reach it, too. If these tokens are spread
 * evenly over the threads, few others reach it: about 250 of a part of 8192 for top_k = 200. */
#include "gen/common/reduce.h"
#include "gen/sampling/sampler.h"

/* The bound of a gathering as a height and as a float, and the function that stores a candidate. */
typedef struct gathering {
    val bound, limit;
    void (*store)(ptx *p, const sampler *s, val slot, val height, val number);
} gathering;

static void put(ptx *p, const sampler *s, const gathering *g, val height, val number)
{
    val slot = atomic_add_shared(p, add(p, s->found, FOUND_COUNT), 1);
    PTX_IF (p, lt(p, slot, s->threads))
        g->store(p, s, slot, height, number);
}

static void gather(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    const gathering *g = context;
    PTX_IF (p, bit_and(p, is_new, ge(p, logit, g->limit)))
        put(p, s, g, height_of_float(p, logit), number);
}

void store_candidate(ptx *p, const sampler *s, val slot, val height, val number)
{
    st_shared(p, U32, mad(p, slot, WORD, s->heights), 0, height);
    st_shared(p, U32, mad(p, slot, WORD, s->numbers), 0, number);
}

/* Resets the number of candidates to 0, or to s->threads + 1 if they cannot fit. */
static void begin_count(ptx *p, const sampler *s, val fits)
{
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared(p, U32, s->found, FOUND_COUNT,
                  select(p, fits, imm(U32, 0), imm(U32, s->threads + 1)));
}

static val count_of(ptx *p, const sampler *s)
{
    barrier(p);
    return named(p, "candidates", ld_shared(p, U32, s->found, FOUND_COUNT));
}

/* Returns the largest height that at least top_k threads reach, or minus infinity if fewer do. */
static val height_of_enough(ptx *p, const sampler *s, val own)
{
    var bound = var_u32(p, 0);
    PTX_FOR (p, bit, 0, HEIGHT_BITS, 1) {
        val higher = bit_or(p, bound, shr(p, imm(U32, 0x80000000), bit));
        val count = barrier_count(p, ge(p, own, higher));
        assign(p, bound, select(p, ge(p, count, s->top_k), higher, bound));
    }
    return max(p, bound, imm(U32, HEIGHT_MINUS_INFINITY));
}

/* Layout of a part's results in global memory: height and number of each warp's first token, the
 * number of candidates, then height and number of each candidate. */
static unsigned count_at(const sampler *s)
{
    return 2 * WORD * s->warps;
}

static unsigned candidates_at(const sampler *s)
{
    return count_at(s) + 4 * WORD;
}

static val told_of(ptx *p, const sampler *s, val part)
{
    return mad_wide(p, part, candidates_at(s) + 2 * WORD * s->threads, s->told);
}

static void store_told(ptx *p, const sampler *s, val slot, val height, val number)
{
    val at = mad_wide(p, slot, 2 * WORD, told_of(p, s, s->part));
    st_global_v2(p, U32, at, candidates_at(s), ((val2){ { height, number } }));
}

val gather_candidates(ptx *p, const sampler *s, val own)
{
    gathering g = { .store = s->parts > 1 ? store_told : store_candidate };
    val fits = le(p, s->top_k, s->threads);
    begin_count(p, s, fits);
    g.bound = height_of_enough(p, s, own);
    g.limit = float_of_height(p, g.bound);
    PTX_IF (p, fits)
        visit_tokens(p, s, s->first, s->end, 1, gather, &g); /* they are in the L1 */
    val count = count_of(p, s);
    if (s->parts > 1)
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_global(p, U32, told_of(p, s, s->part), count_at(s), count);
    return count;
}

void store_first(ptx *p, const sampler *s, const first_number *of_warp)
{
    val2 told = { { get(p, of_warp->height), get(p, of_warp->number) } };
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_global_v2(p, U32, mad_wide(p, warp_id(p), 2 * WORD, told_of(p, s, s->part)), 0, told);
}

/* Reduces the lane's share of the parts' first tokens to one. */
static void first_of_parts(ptx *p, const sampler *s, const first_number *first)
{
    PTX_FOR (p, each, lane_id(p), s->parts * s->warps / 2, WARP) {
        val at = told_of(p, s, div(p, each, s->warps / 2));
        val two = mad_wide(p, rem(p, each, s->warps / 2), 4 * WORD, at);
        val4 told = ld_global_v4(p, U32, two, 0);
        update_first(p, first, told.v[0], told.v[1]);
        update_first(p, first, told.v[2], told.v[3]);
    }
}

void first_of_all(ptx *p, sampler *s, const first_number *f, bool of_parts)
{
    val lane = lane_id(p);
    if (!of_parts) {
        PTX_IF (p, eq(p, lane, 0)) {
            val at = mad(p, warp_id(p), 2 * WORD, s->of_warps);
            st_shared(p, U32, at, 0, f->height);
            st_shared(p, U32, at, WORD, f->number);
        }
        barrier(p);
    }
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        assign(p, f->height, imm(U32, 0));
        if (of_parts)
            first_of_parts(p, s, f);
        else
            PTX_IF (p, lt(p, lane, s->warps)) {
                val2 told = ld_shared_v2(p, U32, mad(p, lane, 2 * WORD, s->of_warps), 0);
                assign(p, f->height, told.v[0]);
                assign(p, f->number, told.v[1]);
            }
        first_of_warp(p, f);
        PTX_IF (p, eq(p, lane, 0)) {
            st_shared(p, U32, s->found, 0, f->height);
            st_shared(p, U32, s->found, WORD, f->number);
        }
    }
    barrier(p);
    s->best = named(p, "best", ld_shared(p, U32, s->found, 0));
    s->number = ld_shared(p, U32, s->found, WORD);
}

/* Visits the candidates of all parts. With a bound it gathers those that reach it; without one it
 * raises highest to the thread's largest height. Warps visit 32 candidates of a part at a time,
 * interleaved, so that the candidates of one part are spread over the block. */
static void visit_told(ptx *p, const sampler *s, val most, const gathering *g, var highest)
{
    val turns = div(p, add(p, most, WARP - 1), WARP);
    PTX_FOR (p, turn, warp_id(p), mul(p, turns, s->parts), s->warps) {
        val part = div(p, turn, turns);
        val of_part = sub(p, turn, mul(p, part, turns));
        val slot = mad(p, of_part, WARP, lane_id(p)), at = told_of(p, s, part);
        PTX_IF (p, lt(p, slot, ld_global(p, U32, at, count_at(s)))) {
            val2 told = ld_global_v2(p, U32, mad_wide(p, slot, 2 * WORD, at), candidates_at(s));
            if (!g->bound.kind)
                assign(p, highest, max(p, highest, told.v[0]));
            else
                PTX_IF (p, ge(p, told.v[0], g->bound))
                    put(p, s, g, told.v[0], told.v[1]);
        }
    }
}

val gather_told(ptx *p, const sampler *s)
{
    gathering g = { .store = store_candidate };
    var own = var_u32(p, 0);
    var largest = var_u32(p, 0);
    PTX_FOR (p, part, lane_id(p), s->parts, WARP)
        assign(p, largest, max(p, largest, ld_global(p, U32, told_of(p, s, part), count_at(s))));
    val most = warp_max(p, get(p, largest));
    val fits = eq(p, barrier_count(p, gt(p, most, s->threads)), 0);
    begin_count(p, s, fits);
    PTX_IF (p, fits)
        visit_told(p, s, most, &g, own);
    g.bound = height_of_enough(p, s, get(p, own));
    PTX_IF (p, fits)
        visit_told(p, s, most, &g, own);
    return count_of(p, s);
}

static val place_of(ptx *p, val array)
{
    return mad(p, tid_x(p), WORD, array);
}

candidate own_candidate(ptx *p, const sampler *s, val count)
{
    val exists = lt(p, tid_x(p), count);
    candidate c = { .exists = exists, .count = select(p, exists, count, imm(U32, 0)) };
    var height = var_u32(p, 0), number = var_u32(p, 0);
    PTX_IF (p, c.exists) {
        assign(p, height, ld_shared(p, U32, place_of(p, s->heights), 0));
        assign(p, number, ld_shared(p, U32, place_of(p, s->numbers), 0));
    }
    c.height = get(p, height);
    c.number = get(p, number);
    return c;
}

weight_sums sum_weights(ptx *p, const sampler *s, const candidate *c, val weight)
{
    weight_sums sums = { var_u64(p, 0), var_u64(p, 0) };
    barrier(p); /* after the last read of earlier weights */
    PTX_IF (p, c->exists)
        st_shared(p, U32, place_of(p, s->weights), 0, weight);
    barrier(p);
    PTX_FOR (p, other, 0, c->count, 1) {
        val height = ld_shared(p, U32, mad(p, other, WORD, s->heights), 0);
        val number = ld_shared(p, U32, mad(p, other, WORD, s->numbers), 0);
        val of_other = convert(p, U64, ld_shared(p, U32, mad(p, other, WORD, s->weights), 0));
        val before = ranks_before(p, height, number, c->height, c->number);
        assign(p, sums.all, add(p, sums.all, of_other));
        assign(p, sums.before, add(p, sums.before, select(p, before, of_other, imm(U64, 0))));
    }
    return sums;
}

void draw_candidate(ptx *p, const sampler *s, val count)
{
    const val one = val_of_f32(1.0f), none = imm(U32, 0);
    candidate c = own_candidate(p, s, count);
    phase(p, "top_k");
    /* The number of candidates before the thread's. */
    var rank = var_u32(p, 0);
    PTX_FOR (p, ahead, 0, c.count, 1) {
        val height = ld_shared(p, U32, mad(p, ahead, WORD, s->heights), 0);
        val number = ld_shared(p, U32, mad(p, ahead, WORD, s->numbers), 0);
        val here = select(p, ranks_before(p, height, number, c.height, c.number), imm(U32, 1),
                          imm(U32, 0));
        assign(p, rank, add(p, rank, here));
    }
    val kept = bit_and(p, c.exists, lt(p, get(p, rank), s->top_k));
    phase(p, "top_p");
    val weight = select(p, kept, weight_of_height(p, s, c.height, one), none);
    weight_sums sums = sum_weights(p, s, &c, weight);
    val reached = ge(p, sums.before, top_p_goal(p, s, get(p, sums.all)));
    val cut = bit_and(p, reached, lt(p, s->top_p, 1.0f));
    phase(p, "min_p");
    kept = bit_and(p, kept, bit_not(p, bit_or(p, cut, lt(p, weight, least_weight(p, s)))));
    phase(p, "draw");
    weight = select(p, kept, weight_of_height(p, s, c.height, s->inverse), none);
    sums = sum_weights(p, s, &c, weight);
    val goal = fraction_of_sum(p, get(p, sums.all), s->chance);
    val upto = add(p, sums.before, convert(p, U64, weight));
    PTX_IF (p, bit_and(p, le(p, sums.before, goal), lt(p, goal, upto)))
        st_global(p, U32, s->token, 0, c.number);
}
