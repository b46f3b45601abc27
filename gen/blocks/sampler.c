#include "gen/blocks/sampler.h"

#include "family/formula.h"

unsigned sampler_threads(const sampler *s)
{
    return s->warps * WARP;
}

unsigned sampler_most_candidates(const sampler *s)
{
    return (unsigned)formula_value("candidates", s->in, NULL);
}

/* Sixteen bytes at a time where every row starts at a multiple of that. */
static void over_quads(ptx *p, const sampler *s, unsigned at_once, visit *take, void *context)
{
    unsigned threads = sampler_threads(s), quads = s->n / 4,
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

unsigned row_turn(const sampler *s, unsigned at_once)
{
    return s->n % 4 ? 1 : 4 * at_once;
}

void over_row(ptx *p, const sampler *s, unsigned at_once, visit *take, void *context)
{
    if (s->n % 4 == 0) {
        over_quads(p, s, at_once, take, context);
        return;
    }
    PTX_FOR (p, number, tid_x(p), s->n, sampler_threads(s)) {
        val logit = ld_const(p, F32, mad_wide(p, number, WORD, s->logits), 0);
        take(p, s, context, height_of_float(p, logit), number);
    }
}

val counts_as(ptx *p, const sampler *s, val height)
{
    const problem_options *o = &s->in->options;
    val logit = float_of_height(p, height);
    if (o->scale > 0)
        logit = mul_rn(p, logit, (float)o->scale);
    return o->softcap > 0 ? capped(p, logit, (float)o->softcap) : logit;
}

val weight_of_height(ptx *p, const sampler *s, val height, val inverse)
{
    return weight_of(p, sub(p, counts_as(p, s, height), s->most), inverse);
}

val top_p_goal(ptx *p, const sampler *s, val sum)
{
    return max(p, fraction_of_sum(p, sum, fraction_bits(p, s->top_p)), imm(U64, 1));
}

val least_weight(ptx *p, const sampler *s)
{
    return convert(p, U32, min(p, mul_rn(p, s->min_p, WEIGHT_ONE), WEIGHT_ONE));
}
