/* Everything is +, -, * and / of doubles, in one order, so that a kernel has the same bits wherever
 * it is generated: pow and log of C libraries differ in the last place. */
#include "gen/rows/rope_table.h"

#include <math.h>
#include <string.h>

#define LN_2      0.693147180559945309417
#define TWO_PI    6.28318530717958647693
#define SQRT_HALF 0.70710678118654752440

/* 2 atanh((m - 1) / (m + 1)), where m is of [sqrt(1/2), sqrt(2)). */
static double natural_log(double x)
{
    enum { TERMS = 14 };
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < SQRT_HALF) {
        m *= 2;
        exponent--;
    }
    double t = (m - 1) / (m + 1);
    for (int i = TERMS; i >= 0; i--)
        sum = sum * t * t + 1.0 / (2 * i + 1);
    return exponent * LN_2 + 2 * t * sum;
}

static double exponential(double x)
{
    enum { TERMS = 18 };
    double whole = floor(x / LN_2 + 0.5), rest = x - whole * LN_2, sum = 1;
    for (int i = TERMS; i > 0; i--)
        sum = sum * rest / i + 1;
    return ldexp(sum, (int)whole);
}

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* The pair that turns b times over the original context. */
static double pair_of_turns(const rope_options *o, double b)
{
    return (double)o->dims * natural_log(o->original_context / (TWO_PI * b)) /
           (2 * natural_log(o->base));
}

/* What a pair's frequency is multiplied by. Of YaRN: those that turn often stay, those that turn
 * seldom are stretched by the factor, others are mixed. */
static double scaling_of(const rope_options *o, double pair)
{
    const double least_ramp = 0.001;
    if (o->scaling == ROPE_UNSCALED)
        return 1;
    if (o->scaling == ROPE_LINEAR)
        return 1 / o->factor;
    double low = floor(pair_of_turns(o, o->beta_fast)), high = ceil(pair_of_turns(o, o->beta_slow));
    low = low < 0 ? 0 : low;
    high = high > (double)o->dims - 1 ? (double)o->dims - 1 : high;
    double ramp = (pair - low) / (high - low < least_ramp ? least_ramp : high - low);
    double mix = (1 - clamp(ramp, 0, 1)) * o->extension;
    return (1 - mix) / o->factor + mix;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void rope_table(const rope_options *o, uint64_t words[ROPE_MOST_PAIRS])
{
    for (int64_t pair = 0; pair < o->dims / 2; pair++) {
        double turns =
            exponential(-2 * (double)pair / (double)o->dims * natural_log(o->base)) / TWO_PI;
        turns *= scaling_of(o, (double)pair);
        float high = (float)turns, low = (float)(turns - (double)high);
        words[pair] = o->factors ? bits_of(high) | (uint64_t)bits_of(low) << 32
                                 : (uint64_t)ldexp(turns - floor(turns), 64);
    }
}
