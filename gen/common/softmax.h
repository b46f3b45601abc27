/* Online softmax: weighted sums with weights exp(score), in one pass over the scores.
 *
 * State (Milakov and Gimelshein, "Online normalizer calculation for softmax"): the largest score so
 * far, the sum of exp(score - max), and the sums of exp(score - max) * value. When a larger score
 * comes, what was summed up is scaled down. Scores are in units of log 2, so that exp is one ex2:
 * callers multiply by log2(e) beforehand.
 *
 * The maximum starts at the lowest finite number, not at minus infinity: a score of minus infinity
 * then weighs exactly 0 and never makes NaN of a difference of infinities.
 */
#ifndef PTXGEN_GEN_COMMON_SOFTMAX_H
#define PTXGEN_GEN_COMMON_SOFTMAX_H

#include "gen/common/functions.h"

enum { SOFTMAX_MAX_VALUES = 32 };

typedef struct softmax {
    var max, sum;
    unsigned count; /* of values a thread sums up */
    var values[SOFTMAX_MAX_VALUES];
} softmax;

softmax softmax_new(ptx *p, unsigned count);

/* Raises a maximum to the largest score of a tile, and returns the factor by which what was summed
 * up before is scaled down. */
val softmax_raise_max(ptx *p, var max, val largest);

/* Makes room for new scores: raises the maximum and scales the state. Then each score's weight,
 * once, which also goes into the sum; the caller adds weight * value to values. */
void softmax_raise(ptx *p, const softmax *s, const val *scores, unsigned count);
val softmax_weight(ptx *p, const softmax *s, val score);

/* Adds what another state summed up, where softmax_raise knows its max; the caller adds the weight
 * times its values. */
val softmax_add_sum(ptx *p, const softmax *s, val max, val sum);

/* Merges the states of lanes that differ in the bits of mask; all of them get the result. */
void softmax_merge_lanes(ptx *p, const softmax *s, unsigned mask);

/* 1 / sum, or 0 where nothing weighed anything: what values are to be multiplied by. */
val softmax_scale(ptx *p, const softmax *s);

#endif
