#include "gen/sampling/sampler.h"

unsigned sampler_threads(const sampler *s)
{
    return s->warps * WARP;
}

unsigned sampler_most_candidates(const sampler *s)
{
    return sampler_threads(s);
}

stretch whole_row(const sampler *s)
{
    return (stretch){ imm(U32, 0), imm(U32, s->n) };
}

stretch own_part(const sampler *s)
{
    return (stretch){ s->first, s->end };
}

/* Sixteen bytes at a time where every row starts at a multiple of that. */
static void over_quads(ptx *p, const sampler *s, stretch of, unsigned at_once, visit *take,
                       void *context)
{
    unsigned threads = sampler_threads(s);
    val end = div(p, of.end, 4);
    PTX_FOR (p, first, add(p, div(p, of.first, 4), tid_x(p)), end, threads * at_once) {
        val4 logits[AT_ONCE];
        val is_new[AT_ONCE] = { imm(PRED, 1) };
        for (unsigned i = 0; i < at_once; i++) {
            val quad = i ? add(p, first, i * threads) : first;
            if (i) {
                is_new[i] = lt(p, quad, end);
                quad = select(p, is_new[i], quad, first);
            }
            logits[i] = ld_const_v4(p, F32, mad_wide(p, quad, 4 * WORD, s->logits), 0);
        }
        val number = mul(p, first, 4);
        for (unsigned i = 0; i < 4 * at_once; i++)
            take(p, s, context, is_new[i / 4], logits[i / 4].v[i % 4],
                 add(p, number, i / 4 * threads * 4 + i % 4));
    }
}

unsigned tokens_a_turn(const sampler *s, unsigned at_once)
{
    return s->n % 4 ? 1 : 4 * at_once;
}

void over_tokens(ptx *p, const sampler *s, stretch of, unsigned at_once, visit *take, void *context)
{
    if (s->n % 4 == 0) {
        over_quads(p, s, of, at_once, take, context);
        return;
    }
    PTX_FOR (p, number, add(p, of.first, tid_x(p)), of.end, sampler_threads(s)) {
        val logit = ld_const(p, F32, mad_wide(p, number, WORD, s->logits), 0);
        take(p, s, context, imm(PRED, 1), logit, number);
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
