/* Log-probabilities of the drawn token and of the best tokens, from the model's logits: t - most -
 * ln(sum of exp(t - most)), where t is a scaled and capped logit and most the largest.
 *
 * The best tokens are found one after the other: each pass takes the first token of the order after
 * the previous one. Of a row in several parts, each block finds the best of its part (the logits
 * are in the L1), and the last block finds the row's among these. Sums are of integers in units of
 * 2^-31, as in a draw. */
#include <math.h>

#include "gen/sampling/sampler.h"

/* The first token that is not ranked yet comes after this one or is it. */
typedef struct ranking {
    var height, number;
    first_number first; /* of the tokens from there on */
    var sum;            /* of weights */
} ranking;

static unsigned ranked(const sampler *s)
{
    return (unsigned)s->in->options.logprobs;
}

/* A part's results in global memory: height and number of its best tokens, and its sum. */
static val ranked_of(ptx *p, const sampler *s, val part)
{
    val record = mad(p, s->row, s->parts, part);
    return mad_wide(p, record, (2 * ranked(s) + 2) * WORD, parameter(p, "ranked"));
}

static void update_ranking(ptx *p, const ranking *r, val height, val number)
{
    val done = ranks_before(p, height, number, get(p, r->height), get(p, r->number));
    PTX_IF (p, bit_not(p, done))
        update_first(p, &r->first, height, number);
}

static void rank_token(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    (void)s;
    (void)is_new;
    update_ranking(p, context, height_of_float(p, logit), number);
}

static void rank_told(ptx *p, const sampler *s, const ranking *r)
{
    PTX_FOR (p, told, tid_x(p), s->parts * ranked(s), s->threads) {
        val record = ranked_of(p, s, div(p, told, ranked(s)));
        val at = mad_wide(p, rem(p, told, ranked(s)), 2 * WORD, record);
        val2 token = ld_global_v2(p, U32, at, 0);
        update_ranking(p, r, token.v[0], token.v[1]);
    }
}

/* Stores height and number of the best tokens at `to`, of the part or of all parts. Missing tokens
 * have the height 0 and the number UINT32_MAX. Sets s->most. */
static void rank_tokens(ptx *p, sampler *s, val to, bool of_parts)
{
    ranking r = { .height = var_u32(p, UINT32_MAX),
                  .number = var_u32(p, 0),
                  .first = { var_u32(p, 0), var_u32(p, 0) } };
    var best = var_u32(p, 0);
    PTX_FOR (p, rank, 0, ranked(s), 1) {
        assign(p, r.first.height, imm(U32, 0));
        assign(p, r.first.number, imm(U32, UINT32_MAX));
        if (of_parts)
            rank_told(p, s, &r);
        else
            visit_tokens(p, s, s->first, s->end, 1, rank_token, &r);
        first_of_warp(p, &r.first);
        first_of_all(p, s, &r.first, false);
        assign(p, r.height, s->best);
        assign(p, r.number, add(p, s->number, 1));
        assign(p, best, max(p, best, s->best));
        val2 token = { { s->best, s->number } };
        PTX_IF (p, eq(p, tid_x(p), 0)) {
            if (to.type == U64)
                st_global_v2(p, U32, mad_wide(p, rank, 2 * WORD, to), 0, token);
            else
                st_shared_v2(p, U32, mad(p, rank, 2 * WORD, to), 0, token);
        }
    }
    s->best = get(p, best);
    s->most = model_logit(p, s, float_of_height(p, s->best));
}

static void add_weight(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    (void)is_new;
    (void)number;
    const ranking *r = context;
    val weight = weight_of_height(p, s, height_of_float(p, logit), val_of_f32(1.0f));
    assign(p, r->sum, add(p, r->sum, convert(p, U64, weight)));
}

/* Returns the sum of the weights of the part, or of the stored sums, to all threads. */
static val sum_of_weights(ptx *p, const sampler *s, bool of_parts)
{
    ranking r = { .sum = var_u64(p, 0) };
    if (of_parts)
        PTX_FOR (p, part, tid_x(p), s->parts, s->threads) {
            val record = ranked_of(p, s, part);
            val weight = weight_of_height(p, s, ld_global(p, U32, record, 0), val_of_f32(1.0f));
            val sum = ld_global(p, U64, record, 2 * ranked(s) * WORD);
            assign(p, r.sum, add(p, r.sum, shl(p, fraction_of_sum(p, sum, weight), 1)));
        }
    else
        visit_tokens(p, s, s->first, s->end, 1, add_weight, &r);
    val sum = warp_sum_u64(p, get(p, r.sum));
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_shared(p, U64, mad(p, warp_id(p), 2 * WORD, s->of_warps), 0, sum);
    barrier(p);
    var all = var_u64(p, 0);
    PTX_FOR (p, warp, 0, s->warps, 1)
        assign(p, all, add(p, all, ld_shared(p, U64, mad(p, warp, 2 * WORD, s->of_warps), 0)));
    return get(p, all);
}

/* Returns ln(sum / 2^31) with an error of about 1e-7 of the result, at least of 1. For a mantissa m
 * in [1, 2) and s = (m - 1) / (m + 1), ln m = 2 (s + s^3 / 3 + s^5 / 5 + ...). */
static val logarithm_of_sum(ptx *p, val sum)
{
    enum { MANTISSA = 23, BIAS = 127, SUM_BITS = 31, LAST_TERM = 15 };
    val bits = bits_as(p, U32, convert(p, F32, sum));
    val power = convert(p, F32, sub(p, shr(p, bits, MANTISSA), BIAS + SUM_BITS));
    val m = bit_or(p, bit_and(p, bits, (1 << MANTISSA) - 1), BIAS << MANTISSA);
    m = bits_as(p, F32, m);
    val ratio = div(p, sub(p, m, 1.0f), add(p, m, 1.0f)), square = mul(p, ratio, ratio);
    val series = val_of_f32(2.0f / LAST_TERM);
    for (int i = LAST_TERM - 2; i > 0; i -= 2)
        series = fma(p, series, square, 2 / (float)i);
    return fma(p, power, 0.693147181f, mul(p, ratio, series));
}

static sampler of_model(const sampler *s)
{
    sampler model = *s;
    model.logits = s->model_logits;
    model.adjusts = false;
    return model;
}

void rank_part(ptx *p, const sampler *s)
{
    sampler model = of_model(s);
    phase(p, "rank the part's tokens");
    val record = ranked_of(p, s, s->part);
    rank_tokens(p, &model, record, false);
    val sum = sum_of_weights(p, &model, false);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, U64, record, 2 * ranked(s) * WORD, sum);
}

/* Stores a thread's result: of the drawn token by thread 0, of the best ones by the next threads. */
static void store_result(ptx *p, const sampler *s, val logprob, val number)
{
    val index = tid_x(p), rank = sub(p, index, 1);
    PTX_IF (p, le(p, index, ranked(s))) {
        val at = mad(p, s->row, ranked(s) + 1, index);
        st_global(p, F32, mad_wide(p, at, WORD, parameter(p, "logprobs")), 0, logprob);
    }
    PTX_IF (p, lt(p, rank, ranked(s))) {
        val at = mad(p, s->row, ranked(s), rank);
        st_global(p, U32, mad_wide(p, at, WORD, parameter(p, "best")), 0, number);
    }
}

void store_logprobs(ptx *p, const sampler *s, bool used)
{
    if (!used) {
        store_result(p, s, val_of_f32(NAN), imm(U32, UINT32_MAX));
        return;
    }
    sampler model = of_model(s);
    val ranks = shared_array(p, "ranks", U64, ranked(s)), index = tid_x(p);
    phase(p, "rank the row's tokens");
    rank_tokens(p, &model, ranks, s->parts > 1);
    val log_sum = logarithm_of_sum(p, sum_of_weights(p, &model, s->parts > 1));
    val token = ld_global(p, U32, s->token, 0);
    val known = bit_and(
        p, ne(p, token, imm(U32, UINT32_MAX)),
        bit_and(p, gt(p, model.best, HEIGHT_MINUS_INFINITY), lt(p, model.best, HEIGHT_INFINITY)));
    var logit = var_f32(p, NAN), number = var_u32(p, UINT32_MAX);
    PTX_IF (p, bit_and(p, known, le(p, index, ranked(s)))) {
        PTX_IF (p, eq(p, index, 0))
            assign(p, logit, ld_const(p, F32, mad_wide(p, token, WORD, model.logits), 0));
        PTX_ELSE (p) {
            val2 best = ld_shared_v2(p, U32, mad(p, sub(p, index, 1), 2 * WORD, ranks), 0);
            assign(p, logit, float_of_height(p, best.v[0])); /* NaN of a missing token */
            assign(p, number, best.v[1]);
        }
    }
    val t = model_logit(p, &model, get(p, logit));
    store_result(p, s, sub(p, sub(p, t, model.most), log_sum), get(p, number));
}
