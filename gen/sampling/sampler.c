#include <math.h>

#include "gen/sampling/sampler.h"

enum { MANTISSA = 23, BIAS = 127 };

/* The factors of exp(x) = 2^n exp(r), where x = n ln 2 + r. */
typedef struct exponential {
    val fraction, power;
} exponential;

/* Computes exp of x, clamped to [-40, 0]; NaN is clamped, too. The power is 2^(n + more). exp(r) is
 * a Taylor polynomial, exact to one rounding for |r| <= ln 2 / 2. n is in the lowest bits of x / ln
 * 2 + 1.5 2^23. */
static exponential exponential_of(ptx *p, val x, unsigned more)
{
    static const float terms[] = { 1 / 120.0f, 1 / 24.0f, 1 / 6.0f, 0.5f, 1, 1 };
    const float magic = 12582912.0f, log2_e = 1.44269504f;
    const float ln_2_high = 0.693359375f, ln_2_low = -2.12194440e-4f;
    x = min(p, max(p, x, -40.0f), 0.0f);
    val shifted = fma(p, x, log2_e, magic), n = sub(p, shifted, magic);
    val r = fma(p, n, -ln_2_low, fma(p, n, -ln_2_high, x));
    val sum = fma(p, r, 1 / 720.0f, terms[0]);
    for (unsigned i = 1; i < sizeof terms / sizeof *terms; i++)
        sum = fma(p, sum, r, terms[i]);
    val exponent = add(p, shl(p, bits_as(p, U32, shifted), MANTISSA), (BIAS + more) << MANTISSA);
    return (exponential){ sum, bits_as(p, F32, exponent) };
}

/* Returns c tanh(x / c), with an error of about 2e-7 c: tanh |y| = (1 - e) / (1 + e) with e =
 * exp(-2 |y|). */
static val capped(ptx *p, val x, float c)
{
    exponential e = exponential_of(p, mul(p, div(p, abs(p, x), c), -2.0f), 0);
    val small = mul(p, e.fraction, e.power);
    val size = mul(p, div(p, sub(p, 1.0f, small), add(p, 1.0f, small)), c);
    val sign = bit_and(p, bits_as(p, U32, x), 0x80000000);
    return bits_as(p, F32, bit_or(p, bits_as(p, U32, size), sign));
}

val fraction_of_sum(ptx *p, val sum, val fraction)
{
    val high = convert(p, U32, shr(p, sum, 32)), low = convert(p, U32, sum);
    return add(p, mul_wide(p, high, fraction), shr(p, mul_wide(p, low, fraction), 32));
}

val philox(ptx *p, val counter, val key_low, val key_high)
{
    enum { ROUNDS = 10 };
    static const unsigned factors[] = { 0xd2511f53, 0xcd9e8d57 };
    static const unsigned steps[] = { 0x9e3779b9, 0xbb67ae85 };
    val c[4] = { counter, imm(U32, 0), imm(U32, 0), imm(U32, 0) }, k[2] = { key_low, key_high };
    for (int round = 0; round < ROUNDS; round++) {
        val products[2];
        for (int i = 0; i < 2; i++)
            products[i] = mul_wide(p, c[2 * i], factors[i]);
        val high[2], low[2];
        for (int i = 0; i < 2; i++) {
            high[i] = convert(p, U32, shr(p, products[i], 32));
            low[i] = convert(p, U32, products[i]);
        }
        c[0] = bit_xor(p, bit_xor(p, high[1], c[1]), k[0]);
        c[1] = low[1];
        c[2] = bit_xor(p, bit_xor(p, high[0], c[3]), k[1]);
        c[3] = low[0];
        for (int i = 0; i < 2; i++)
            k[i] = add(p, k[i], steps[i]);
    }
    return c[0];
}

/* Loads 16 bytes at a time if n is a multiple of 4, so that every row is aligned. */
void visit_tokens(ptx *p, const sampler *s, val start, val end, unsigned at_once, visit *take,
                  void *context)
{
    const ptx_op load = s->adjusts ? INST_LD_GLOBAL : INST_LD_CONST;
    if (s->n % 4) {
        PTX_FOR (p, number, add(p, start, tid_x(p)), end, s->threads) {
            val logit = ptx_load(p, load, F32, mad_wide(p, number, WORD, s->logits), 0);
            take(p, s, context, imm(PRED, 1), logit, number);
        }
        return;
    }
    val quads = div(p, end, 4);
    PTX_FOR (p, first, add(p, div(p, start, 4), tid_x(p)), quads, s->threads * at_once) {
        val4 logits[AT_ONCE];
        val is_new[AT_ONCE] = { imm(PRED, 1) };
        for (unsigned i = 0; i < at_once; i++) {
            val quad = i ? add(p, first, i * s->threads) : first;
            if (i) {
                is_new[i] = lt(p, quad, quads);
                quad = select(p, is_new[i], quad, first);
            }
            logits[i] = ptx_load_v4(p, load, F32, mad_wide(p, quad, 4 * WORD, s->logits), 0);
        }
        val number = mul(p, first, 4);
        for (unsigned i = 0; i < 4 * at_once; i++)
            take(p, s, context, is_new[i / 4], logits[i / 4].v[i % 4],
                 add(p, number, i / 4 * s->threads * 4 + i % 4));
    }
}

static val transformed_logit(ptx *p, const sampler *s, val logit)
{
    const problem_options *o = &s->in->options;
    if (o->scale > 0)
        logit = mul(p, logit, (float)o->scale);
    return o->softcap > 0 ? capped(p, logit, (float)o->softcap) : logit;
}

val model_logit(ptx *p, const sampler *s, val logit)
{
    val transformed = transformed_logit(p, s, logit);
    return s->in->options.softcap > 0
               ? select(p, lt(p, abs(p, logit), val_of_f32(INFINITY)), transformed, logit)
               : transformed;
}

val scaled_logit(ptx *p, const sampler *s, val height)
{
    val logit = float_of_height(p, height);
    return s->adjusts ? logit : transformed_logit(p, s, logit);
}

val weight_of_height(ptx *p, const sampler *s, val height, val inverse)
{
    val x = sub(p, scaled_logit(p, s, height), s->most);
    exponential e = exponential_of(p, mul(p, x, inverse), 31);
    return convert(p, U32, fma(p, e.fraction, e.power, 0.5f));
}

val top_p_goal(ptx *p, const sampler *s, val sum)
{
    val fraction = convert(p, U32, mul(p, s->top_p, 0x1p32f)); /* NaN becomes 0 */
    return max(p, fraction_of_sum(p, sum, fraction), imm(U64, 1));
}

val least_weight(ptx *p, const sampler *s)
{
    return convert(p, U32, min(p, mul(p, s->min_p, WEIGHT_ONE), WEIGHT_ONE));
}
