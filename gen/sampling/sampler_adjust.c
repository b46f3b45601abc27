/* Adjusts a row's logits before a token is drawn: penalties for tokens that the sequence has
 * already, biases, and a mask of allowed tokens, in this order. The model's logits remain as they
 * are: each block writes the adjusted logits of its part to a copy, scaled and capped.
 *
 * The block first counts its tokens among the last ones of the sequence, in shared memory. One
 * thread then adds a token's biases, in the order of the list, and applies the mask to it: thread
 * token % threads. So results do not depend on the order of threads. */
#include <math.h>

#include "gen/sampling/sampler.h"
#include "kernel/problem.h"

typedef struct penalties {
    val counts; /* counts of the part's tokens, in shared memory; no value: without penalties */
    val repetition, frequency, presence;
    val adjusted;
} penalties;

static val entries_of(ptx *p, const char *name, val owner, unsigned words)
{
    return add(p, parameter(p, name), mul_wide(p, owner, imm(U32, words * WORD)));
}

static val is_of_part(ptx *p, const sampler *s, val token)
{
    return bit_and(p, ge(p, token, s->first), lt(p, token, s->end));
}

static val at_token(ptx *p, val array, val token)
{
    return mad_wide(p, token, WORD, array);
}

static val count_at(ptx *p, const sampler *s, const penalties *of, val token)
{
    return mad(p, sub(p, token, s->first), WORD, of->counts);
}

/* Counts each of the part's tokens among the last ones up to a position. */
static void count_tokens(ptx *p, const sampler *s, const penalties *of, val last, val position)
{
    const unsigned history = (unsigned)s->in->options.history;
    val tokens = entries_of(p, "history", s->sequence, history);
    PTX_FOR (p, token, add(p, s->first, tid_x(p)), s->end, s->threads)
        st_shared(p, U32, count_at(p, s, of, token), 0, imm(U32, 0));
    barrier(p);
    PTX_FOR (p, back, tid_x(p), last, s->threads) {
        val slot = rem(p, sub(p, position, back), history);
        val token = ld_const(p, U32, at_token(p, tokens, slot), 0);
        PTX_IF (p, is_of_part(p, s, token))
            atomic_add_shared(p, count_at(p, s, of, token), 1);
    }
    barrier(p);
}

/* Stores a scaled and capped logit with its penalties. */
static void penalize(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    (void)is_new;
    const penalties *of = context;
    var adjusted = var_like(p, model_logit(p, s, logit));
    if (of->counts.kind) {
        val count = ld_shared(p, U32, count_at(p, s, of, number), 0), l = get(p, adjusted);
        PTX_IF (p, gt(p, count, 0)) {
            val less =
                select(p, gt(p, l, 0.0f), div(p, l, of->repetition), mul(p, l, of->repetition));
            val more = add(p, mul(p, convert(p, F32, count), of->frequency), of->presence);
            assign(p, adjusted, sub(p, less, more));
        }
    }
    st_global(p, F32, at_token(p, of->adjusted, number), 0, adjusted);
}

static void add_biases(ptx *p, const sampler *s, val adjusted, val count)
{
    val pairs = entries_of(p, "biases", s->sequence, 2 * (unsigned)s->in->options.biases);
    PTX_FOR (p, pair, 0, count, 1) {
        val2 bias = ld_const_v2(p, U32, mad_wide(p, pair, 2 * WORD, pairs), 0);
        val is_own = eq(p, rem(p, bias.v[0], s->threads), tid_x(p));
        PTX_IF (p, bit_and(p, is_own, is_of_part(p, s, bias.v[0]))) {
            val at = at_token(p, adjusted, bias.v[0]);
            st_global(p, F32, at, 0, add(p, ld_global(p, F32, at, 0), bits_as(p, F32, bias.v[1])));
        }
    }
}

/* Makes the logits of other tokens minus infinity. A NaN remains, and the row has no token. */
static void apply_mask(ptx *p, const sampler *s, val adjusted)
{
    val mask = entries_of(p, "mask", s->row, (s->n + WARP - 1) / WARP);
    PTX_FOR (p, token, add(p, s->first, tid_x(p)), s->end, s->threads) {
        val word = ld_const(p, U32, at_token(p, mask, div(p, token, WARP)), 0);
        PTX_IF (p, eq(p, bit_and(p, shr(p, word, rem(p, token, WARP)), 1), 0)) {
            val at = at_token(p, adjusted, token), logit = ld_global(p, F32, at, 0);
            PTX_IF (p, eq(p, logit, logit))
                st_global(p, F32, at, 0, val_of_f32(-INFINITY));
        }
    }
}

void adjust_logits(ptx *p, sampler *s, val4 high, val position)
{
    const problem_options *o = &s->in->options;
    const val none = imm(U32, 0);
    penalties of = { .adjusted = entries_of(p, "adjusted", s->row, s->n) };
    val last = none, count = none, masked = none;
    phase(p, "adjust the logits");
    if (o->history) {
        val at = mad_wide(p, s->sequence, PENALTY_WORDS * WORD, parameter(p, "penalties"));
        val4 words = ld_const_v4(p, U32, at, 0);
        of.repetition = bits_as(p, F32, words.v[PENALTY_REPETITION]);
        of.frequency = bits_as(p, F32, words.v[PENALTY_FREQUENCY]);
        of.presence = bits_as(p, F32, words.v[PENALTY_PRESENCE]);
        of.counts = shared_array(p, "counts", U32, s->n < PART ? (s->n + 3) / 4 * 4 : PART);
        last = min(p, min(p, words.v[PENALTY_LAST], add(p, position, 1)), (unsigned)o->history);
    }
    if (o->biases)
        count = min(p, high.v[SAMPLING_BIASES - 4], (unsigned)o->biases);
    if (o->mask)
        masked = high.v[SAMPLING_MASKED - 4];
    /* Other rows are read in place, unless their logits are to be scaled or capped. */
    val some = ne(p, bit_or(p, bit_or(p, last, count), masked), 0);
    val adjusts = o->scale > 0 || o->softcap > 0 ? imm(PRED, 1) : some;
    adjusts = bit_and(p, adjusts, ne(p, position, imm(U32, UINT32_MAX)));
    PTX_IF (p, adjusts) {
        if (o->history)
            count_tokens(p, s, &of, last, position);
        visit_tokens(p, s, s->first, s->end, 1, penalize, &of);
        barrier(p);
        if (o->biases)
            add_biases(p, s, of.adjusted, count);
        if (o->mask)
            PTX_IF (p, ne(p, masked, 0))
                apply_mask(p, s, of.adjusted);
        barrier(p);
    }
    s->logits = select(p, adjusts, of.adjusted, s->logits);
}
