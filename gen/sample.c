/* The token that comes next in each of m sequences: the largest logit's, or one by chance, as
 * ref_sample says. The order of filters, top_k, top_p, min_p, temperature, is that of llama.cpp.
 *
 * All that changes from step to step, or from sequence to sequence, is in device memory, so that a
 * captured graph never needs an update: positions, and for each row how to choose, SAMPLING_WORDS
 * words (see ref/reference.h). What the next step needs comes out: its token, its position (that of
 * the logits plus 1), and the positions that its attention is over (plus 2, its own being in the
 * cache by then). Outputs may be positions itself.
 *
 * A block of 1024 threads has a row, fewer of a short one. It looks for the largest logit, and with
 * temperature 0 that is all. Else it gathers candidates in shared memory: with top_k, a bound that
 * k of the threads' largest logits reach is one that the k largest of all reach, and hardly more
 * do. Each thread then has a candidate and adds up, for itself, what stands ahead of it.
 *
 * More candidates than threads, as without top_k, stay where they are: what reaches a sum is found
 * bit by bit, 32 of its logit and then those of its number among equal ones, by as many passes over
 * the row. That gives the same token, and takes some 10 times as long.
 *
 * Sums are of whole numbers, and everything that leads to them is rounded in one way: the same seed
 * gives the same tokens on every GPU.
 */
#include "gen/attention_keys.h"
#include "gen/blocks/sampling.h"
#include "family/family.h"
#include "family/formula.h"

enum { WORD = 4, AT_ONCE = 4, WARP = 32 };

/* Tokens up to a place in the order: those of larger heights, and of height those of numbers below
 * end.
 */
typedef struct prefix {
    var height, end;
} prefix;

typedef struct sampler {
    const instance *in;
    unsigned n, warps;
    val row, logits, token; /* the row's logits; where its token goes */
    val temperature, top_k, top_p, min_p, chance;
    val inverse;      /* of the temperature */
    val best, number; /* height and number of the first token, and what that counts as */
    val most;
    val heights, numbers, weights; /* shared memory: candidates; [warps] for what warps find, */
    val parts;
    val found; /* and what is told to all */
} sampler;

enum { FOUND_WORDS = 4, FOUND_COUNT = 8 }; /* two words, or a u64; a number of candidates */

/* What is asked of a token: its height is no NaN's. */
typedef void visit(ptx *p, const sampler *s, void *context, val height, val number);

static unsigned threads_of(const sampler *s)
{
    return s->warps * WARP;
}

/* There is room for. */
static unsigned most_candidates(const sampler *s)
{
    return (unsigned)formula_value("candidates", s->in, NULL);
}

/* Sixteen bytes at a time where every row starts at a multiple of that. */
static void over_quads(ptx *p, const sampler *s, unsigned at_once, visit *take, void *context)
{
    unsigned threads = threads_of(s), quads = s->n / 4,
             turns = at_once > 1 ? quads / (threads * at_once) : 0;
    val own = add(p, s->logits, mul_wide(p, tid_x(p), 4 * WORD));
    PTX_FOR (p, turn, 0, turns, 1) {
        val4 logits[AT_ONCE];
        val first = mad(p, turn, threads * at_once, tid_x(p));
        val at = mad_wide(p, turn, imm(U32, threads * at_once * 4 * WORD), own);
        for (unsigned i = 0; i < at_once; i++)
            logits[i] = ld_const_v4(p, F32, at, i * threads * 4 * WORD);
        for (unsigned i = 0; i < 4 * at_once; i++) {
            val number = mad(p, first, 4, i / 4 * threads * 4 + i % 4);
            take(p, s, context, height_of_float(p, logits[i / 4].v[i % 4]), number);
        }
    }
    val rest = add(p, tid_x(p), turns * at_once * threads);
    PTX_FOR (p, quad, rest, quads, threads) {
        val4 logits = ld_const_v4(p, F32, mad_wide(p, quad, 4 * WORD, s->logits), 0);
        for (unsigned i = 0; i < 4; i++)
            take(p, s, context, height_of_float(p, logits.v[i]), mad(p, quad, 4, i));
    }
}

/* Visits the tokens of the row; each thread some of them, in ascending order, so many loads in
 * flight. */
static void over_row(ptx *p, const sampler *s, unsigned at_once, visit *take, void *context)
{
    if (s->n % 4 == 0) {
        over_quads(p, s, at_once, take, context);
        return;
    }
    PTX_FOR (p, number, tid_x(p), s->n, threads_of(s)) {
        val logit = ld_const(p, F32, mad_wide(p, number, WORD, s->logits), 0);
        take(p, s, context, height_of_float(p, logit), number);
    }
}

/* Whether a token stands ahead of another one in the order. */
static val is_ahead(ptx *p, val height, val number, val other_height, val other_number)
{
    val equal = bit_and(p, eq(p, height, other_height), lt(p, number, other_number));
    return bit_or(p, gt(p, height, other_height), equal);
}

typedef struct first_token {
    var height, number;
} first_token;

static void take_if_ahead(ptx *p, const first_token *f, val height, val number)
{
    val ahead = is_ahead(p, height, number, get(p, f->height), get(p, f->number));
    assign(p, f->height, select(p, ahead, height, f->height));
    assign(p, f->number, select(p, ahead, number, f->number));
}

static void take_first(ptx *p, const sampler *s, void *context, val height, val number)
{
    (void)s;
    const first_token *f = context; /* numbers ascend: of equal heights the one there stays */
    val ahead = gt(p, height, f->height);
    assign(p, f->height, select(p, ahead, height, f->height));
    assign(p, f->number, select(p, ahead, number, f->number));
}

static void first_of_warp(ptx *p, const first_token *f)
{
    for (unsigned mask = WARP / 2; mask; mask /= 2) {
        val height = shuffle_xor(p, f->height, mask), number = shuffle_xor(p, f->number, mask);
        take_if_ahead(p, f, height, number);
    }
}

/* Finds the first token of the row, told to all, and leaves each thread's own height in f. */
static val find_first(ptx *p, sampler *s)
{
    first_token f = { var_u32(p, 0), var_u32(p, UINT32_MAX) };
    over_row(p, s, AT_ONCE, take_first, &f);
    val own = get(p, f.height), lane = lane_id(p);
    first_of_warp(p, &f);
    PTX_IF (p, eq(p, lane, 0)) {
        val at = mad(p, warp_id(p), 2 * WORD, s->parts);
        st_shared(p, U32, at, 0, f.height);
        st_shared(p, U32, at, WORD, f.number);
    }
    barrier(p);
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        assign(p, f.height, imm(U32, 0));
        PTX_IF (p, lt(p, lane, s->warps)) {
            val at = mad(p, lane, 2 * WORD, s->parts);
            assign(p, f.height, ld_shared(p, U32, at, 0));
            assign(p, f.number, ld_shared(p, U32, at, WORD));
        }
        first_of_warp(p, &f);
        PTX_IF (p, eq(p, lane, 0)) {
            st_shared(p, U32, s->found, 0, f.height);
            st_shared(p, U32, s->found, WORD, f.number);
        }
    }
    barrier(p);
    s->best = named(p, "best", ld_shared(p, U32, s->found, 0));
    s->number = ld_shared(p, U32, s->found, WORD);
    return own;
}

/* What a logit counts as. */
static val counts_as(ptx *p, const sampler *s, val height)
{
    const problem_options *o = &s->in->options;
    val logit = float_of_height(p, height);
    if (o->scale > 0)
        logit = mul_rn(p, logit, (float)o->scale);
    return o->softcap > 0 ? capped(p, logit, (float)o->softcap) : logit;
}

static val weight_of_height(ptx *p, const sampler *s, val height, val inverse)
{
    return weight_of(p, sub(p, counts_as(p, s, height), s->most), inverse);
}

/* A sum that top_p of reaches a part of a sum: at least 1. */
static val goal_of(ptx *p, const sampler *s, val sum)
{
    return max(p, fraction_of_sum(p, sum, fraction_bits(p, s->top_p)), imm(U64, 1));
}

/* The weight that min_p lets pass. */
static val least_weight(ptx *p, const sampler *s)
{
    return convert(p, U32, min(p, mul_rn(p, s->min_p, WEIGHT_ONE), WEIGHT_ONE));
}

typedef struct gathering {
    val bound;
} gathering;

static void gather(ptx *p, const sampler *s, void *context, val height, val number)
{
    const gathering *g = context;
    PTX_IF (p, ge(p, height, g->bound)) {
        val slot = atomic_add_shared(p, add(p, s->found, FOUND_COUNT), 1);
        PTX_IF (p, lt(p, slot, most_candidates(s))) {
            st_shared(p, U32, mad(p, slot, WORD, s->heights), 0, height);
            st_shared(p, U32, mad(p, slot, WORD, s->numbers), 0, number);
        }
    }
}

/* Gathers the first top_k tokens and some more, and gives their number, told to all: more than
 * threads where they don't fit. own is the largest height of the thread. */
static val gather_candidates(ptx *p, const sampler *s, val own)
{
    unsigned most = most_candidates(s);
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

static void draw_candidate(ptx *p, const sampler *s, val count)
{
    const val one = val_of_f32(1.0f), none = imm(U32, 0);
    candidate c = own_candidate(p, s, count);
    phase(p, "top_k");
    val kept = bit_and(p, c.exists, lt(p, rank_of(p, s, &c), s->top_k));
    phase(p, "top_p");
    val weight = select(p, kept, weight_of_height(p, s, c.height, one), none);
    weight_sums sums = sum_weights(p, s, &c, weight);
    val reached = ge(p, sums.ahead, goal_of(p, s, get(p, sums.all)));
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

/* Filters, and the choice, in their order: each is about a sum over tokens. */
enum { TOP_K, TOP_P, DRAW, STAGES };

/* What is summed up over a prefix of the order: ones, or weights. */
typedef struct measure {
    val ones, inverse; /* whether it is ones; of the temperature */
    val height, end;
    var sum;
} measure;

static void add_measure(ptx *p, const sampler *s, void *context, val height, val number)
{
    const measure *m = context;
    PTX_IF (p, is_ahead(p, height, number, m->height, m->end)) {
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
    over_row(p, s, 1, add_measure, &m);
    val sum = warp_sum_u64(p, get(p, m.sum));
    PTX_IF (p, eq(p, lane, 0))
        st_shared(p, U64, mad(p, warp_id(p), 2 * WORD, s->parts), 0, sum);
    barrier(p);
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        var part = var_u64(p, 0);
        PTX_IF (p, lt(p, lane, s->warps))
            assign(p, part, ld_shared(p, U64, mad(p, lane, 2 * WORD, s->parts), 0));
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
    val goal = select(p, eq(p, stage, DRAW), drawn, goal_of(p, s, sum));
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

static void draw_of_all(ptx *p, const sampler *s)
{
    prefix at = { var_u32(p, 0), var_u32(p, 0) };
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

static val at_row(ptx *p, const sampler *s, const char *name)
{
    return mad_wide(p, s->row, WORD, parameter(p, name));
}

static void store_row(ptx *p, const sampler *s, val token, val position, val length)
{
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        if (token.kind)
            st_global(p, U32, s->token, 0, token);
        st_global(p, U32, at_row(p, s, "next_position"), 0, position);
        st_global(p, U32, at_row(p, s, "length"), 0, length);
    }
}

static sampler sampler_new(ptx *p, const instance *in)
{
    sampler s = { .in = in,
                  .n = (unsigned)in->shape.n,
                  .warps = (unsigned)formula_value("warps", in, NULL) };
    s.row = named(p, "row", ctaid_x(p));
    s.logits = add(p, parameter(p, "logits"), mul_wide(p, s.row, imm(U32, s.n * WORD)));
    s.token = at_row(p, &s, "token");
    s.heights = shared_array(p, "heights", U32, most_candidates(&s));
    s.numbers = shared_array(p, "numbers", U32, most_candidates(&s));
    s.weights = shared_array(p, "weights", U32, most_candidates(&s));
    s.parts = shared_array(p, "parts", U64, s.warps + s.warps % 2);
    s.found = shared_array(p, "found", U32, FOUND_WORDS);
    return s;
}

/* How the row's token is chosen. */
static void load_way(ptx *p, sampler *s, val position)
{
    val at = mad_wide(p, s->row, SAMPLING_WORDS * WORD, parameter(p, "sampling"));
    val4 first = ld_const_v4(p, U32, at, 0), second = ld_const_v4(p, U32, at, 4 * WORD);
    val k = first.v[SAMPLING_TOP_K];
    s->temperature = bits_as(p, F32, first.v[SAMPLING_TEMPERATURE]);
    s->top_k = named(p, "top_k", select(p, eq(p, k, 0), imm(U32, s->n), min(p, k, s->n)));
    s->top_p = bits_as(p, F32, first.v[SAMPLING_TOP_P]);
    s->min_p = bits_as(p, F32, first.v[SAMPLING_MIN_P]);
    s->chance = named(
        p, "chance",
        philox(p, position, second.v[SAMPLING_SEED_LOW - 4], second.v[SAMPLING_SEED_HIGH - 4]));
    s->inverse = min(p, rcp(p, s->temperature), 0x1.fffffep127f);
}

static void build(ptx *p, const instance *in)
{
    const val unused = imm(U32, UINT32_MAX);
    sampler s = sampler_new(p, in);
    val position = named(p, "position", ld_global(p, U32, at_row(p, &s, "positions"), 0));
    val idle = eq(p, position, unused);
    PTX_IF (p, idle)
        store_row(p, &s, unused, unused, imm(U32, 0));
    ret_if(p, idle);
    load_way(p, &s, position);
    phase(p, "the largest logit");
    val own = find_first(p, &s);
    val drawn = bit_and(p, gt(p, s.best, HEIGHT_MINUS_INFINITY), lt(p, s.best, HEIGHT_INFINITY));
    PTX_IF (p, bit_and(p, drawn, gt(p, s.temperature, 0.0f))) {
        s.most = counts_as(p, &s, s.best);
        phase(p, "candidates");
        val count = gather_candidates(p, &s, own);
        bool all_fit = s.n <= most_candidates(&s);
        PTX_IF (p, all_fit ? imm(PRED, 1) : le(p, count, most_candidates(&s)))
            draw_candidate(p, &s, count);
        PTX_ELSE (p) {
            phase(p, "the same of more candidates");
            draw_of_all(p, &s);
        }
    }
    PTX_ELSE (p) {
        val none =
            bit_or(p, eq(p, s.best, imm(U32, HEIGHT_NAN)), le(p, s.best, HEIGHT_MINUS_INFINITY));
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_global(p, U32, s.token, 0, select(p, none, unused, s.number));
    }
    store_row(p, &s, (val){ 0 }, add(p, position, 1), add(p, position, 2));
}

static const key keys[] = {
    { .name = "n",
      .summary = "tokens",
      .field = KEY_FIELD(shape.n),
      .min = 1,
      .max = 1 << 28,
      .required = true,
      .tag = "n" },
    KEY_M(1),
    KEY_SCALE("of logits"),
    { .name = "softcap",
      .summary = "c of c tanh(logit/c)",
      .field = KEY_FIELD(options.softcap),
      .tag = "cap",
      .real = &softcap_range },
    KEY_END,
};

static const param params[] = {
    OUT(U32, token, "m", 4),
    OUT(U32, next_position, "m", 4),
    OUT(U32, length, "m", 4),
    IN(F32, logits, "m*n", 16),
    IN_FITTED(U32, positions, "m", 4),
    IN_FITTED(U32, sampling, "m*8", 16),
    PARAM_END,
};

/* Three words a candidate; two words a warp, in pairs; and what is told to all. */
static const term terms[] = {
    { "warps", "min(32, ceil_div(n, 32))" },
    { "candidates", "min(512, 32*warps)" }, /* more take longer than to look through the row */
    { NULL, NULL },
};

const family sample = {
    .name = "sample",
    .summary = "the next token of m rows of logits: the largest or drawn, and its position",
    .computes =
        "token[m] = one of n by logits[m,n], next_position = positions+1, length = positions+2",
    .op = OP_SAMPLE,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "12*candidates + 16*ceil_div(warps, 2) + 16",
                .terms = terms,
                .registers = 64 },
    .build = build,
    .fit = ref_fit_sampling,
    .reference = ref_sample,
    .tolerance = 0,
};
