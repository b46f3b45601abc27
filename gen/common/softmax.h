/* Online softmax: sums weighted by exp(score), in one pass over the scores (Milakov and Gimelshein,
 * "Online normalizer calculation for softmax").
 *
 * When a score exceeds the maximum so far, the sums are scaled down. Scores are in units of log 2,
 * so that exp is a single ex2: callers multiply by log2(e) beforehand.
 *
 * The maximum starts at the lowest finite number, not at minus infinity. A score of minus infinity
 * then has weight 0, and no difference of infinities gives NaN. */
#pragma once

#include "gen/common/functions.h"

enum { SOFTMAX_MAX_VALUES = 32 };

typedef struct softmax {
    var max, sum;                   /* max of the scores; sum of exp(score - max) */
    unsigned count;                 /* values per thread */
    var values[SOFTMAX_MAX_VALUES]; /* sums of exp(score - max) * value */
} softmax;

softmax softmax_new(ptx *p, unsigned count);

/* Raises max to the largest score of a tile. Returns the factor that rescales earlier sums. */
val softmax_raise_max(ptx *p, var max, val largest);

/* Raises the maximum for new scores and rescales the state. */
void softmax_raise(ptx *p, const softmax *s, const val *scores, unsigned count);
/* Adds a score's weight to the sum and returns it. The caller adds weight * value to values. */
val softmax_weight(ptx *p, const softmax *s, val score);

/* Merges the states of lanes whose index differs in the bits of mask. All of them get the result.
 */
void softmax_merge_lanes(ptx *p, const softmax *s, unsigned mask);
