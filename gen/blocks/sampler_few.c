/* A few tokens, in shared memory: each thread has one, and adds up for itself what stands ahead of
 * it.
 *
 * What is gathered is all from a height on that top_k of the threads reach with their largest
 * logits: the first top_k tokens of the row reach it as well, and where they are spread over the
 * threads by chance hardly more do, 222 of 128 000 for a top_k of 200.
 */
#include "gen/blocks/sampler.h"

typedef struct gathering {
    val bound;
} gathering;

static void gather(ptx *p, const sampler *s, void *context, val height, val number)
{
    const gathering *g = context;
    PTX_IF (p, ge(p, height, g->bound)) {
        val slot = atomic_add_shared(p, add(p, s->found, FOUND_COUNT), 1);
        PTX_IF (p, lt(p, slot, sampler_most_candidates(s))) {
            st_shared(p, U32, mad(p, slot, WORD, s->heights), 0, height);
            st_shared(p, U32, mad(p, slot, WORD, s->numbers), 0, number);
        }
    }
}

val gather_candidates(ptx *p, const sampler *s, val own)
{
    unsigned most = sampler_most_candidates(s);
    var bound = var_u32(p, 0);
    val fits = le(p, s->top_k, most);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared(p, U32, s->found, FOUND_COUNT, select(p, fits, imm(U32, 0), imm(U32, most + 1)));
    PTX_FOR (p, bit, 0, HEIGHT_BITS, 1) {
        val higher = bit_or(p, bound, shr(p, imm(U32, 0x80000000), bit));
        val count = barrier_count(p, ge(p, own, higher));
        assign(p, bound, select(p, ge(p, count, s->top_k), higher, bound));
    }
    gathering g = { get(p, bound) };
    PTX_IF (p, fits)
        over_row(p, s, AT_ONCE, gather, &g);
    barrier(p);
    return named(p, "candidates", ld_shared(p, U32, s->found, FOUND_COUNT));
}

/* A thread's candidate; count is how many there are in all, 0 where the thread has none. */
typedef struct candidate {
    val exists, height, number, count;
} candidate;

static val place_of(ptx *p, val array)
{
    return mad(p, tid_x(p), WORD, array);
}

static candidate own_candidate(ptx *p, const sampler *s, val count)
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

/* How many candidates stand ahead of a thread's. */
static val rank_of(ptx *p, const sampler *s, const candidate *c)
{
    var rank = var_u32(p, 0);
    PTX_FOR (p, ahead, 0, c->count, 1) {
        val height = ld_shared(p, U32, mad(p, ahead, WORD, s->heights), 0);
        val number = ld_shared(p, U32, mad(p, ahead, WORD, s->numbers), 0);
        val one =
            select(p, is_ahead(p, height, number, c->height, c->number), imm(U32, 1), imm(U32, 0));
        assign(p, rank, add(p, rank, one));
    }
    return get(p, rank);
}

/* Sums of weights: of all candidates, and of those ahead of a thread's. */
typedef struct weight_sums {
    var all, ahead;
} weight_sums;

static weight_sums sum_weights(ptx *p, const sampler *s, const candidate *c, val weight)
{
    weight_sums sums = { var_u64(p, 0), var_u64(p, 0) };
    barrier(p); /* the weights that were there are no longer read */
    PTX_IF (p, c->exists)
        st_shared(p, U32, place_of(p, s->weights), 0, weight);
    barrier(p);
    PTX_FOR (p, other, 0, c->count, 1) {
        val height = ld_shared(p, U32, mad(p, other, WORD, s->heights), 0);
        val number = ld_shared(p, U32, mad(p, other, WORD, s->numbers), 0);
        val of_other = convert(p, U64, ld_shared(p, U32, mad(p, other, WORD, s->weights), 0));
        val ahead = is_ahead(p, height, number, c->height, c->number);
        assign(p, sums.all, add(p, sums.all, of_other));
        assign(p, sums.ahead, add(p, sums.ahead, select(p, ahead, of_other, imm(U64, 0))));
    }
    return sums;
}

void draw_candidate(ptx *p, const sampler *s, val count)
{
    const val one = val_of_f32(1.0f), none = imm(U32, 0);
    candidate c = own_candidate(p, s, count);
    phase(p, "top_k");
    val kept = bit_and(p, c.exists, lt(p, rank_of(p, s, &c), s->top_k));
    phase(p, "top_p");
    val weight = select(p, kept, weight_of_height(p, s, c.height, one), none);
    weight_sums sums = sum_weights(p, s, &c, weight);
    val reached = ge(p, sums.ahead, top_p_goal(p, s, get(p, sums.all)));
    val cut = bit_and(p, reached, lt(p, s->top_p, 1.0f));
    phase(p, "min_p");
    kept = bit_and(p, kept, bit_not(p, bit_or(p, cut, lt(p, weight, least_weight(p, s)))));
    phase(p, "draw");
    weight = select(p, kept, weight_of_height(p, s, c.height, s->inverse), none);
    sums = sum_weights(p, s, &c, weight);
    val goal = fraction_of_sum(p, get(p, sums.all), s->chance);
    val upto = add(p, sums.ahead, convert(p, U64, weight));
    PTX_IF (p, bit_and(p, le(p, sums.ahead, goal), lt(p, goal, upto)))
        st_global(p, U32, s->token, 0, c.number);
}
