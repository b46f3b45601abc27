/* Online softmax: weighted sums with weights exp(score), in one pass over the scores (Milakov and
 * Gimelshein, "Online normalizer calculation for softmax").
 *
 * When a score above the maximum so far comes, earlier sums are scaled down. Scores are in units of
 * log 2, so that exp is one ex2: callers multiply by log2(e) beforehand.
 *
 * The maximum starts at the lowest finite number, not at minus infinity: a score of minus infinity
 * then weighs exactly 0 and never makes NaN of a difference of infinities.
 */
#ifndef PTXGEN_GEN_COMMON_SOFTMAX_H
#define PTXGEN_GEN_COMMON_SOFTMAX_H

#include "gen/common/functions.h"

enum { SOFTMAX_MAX_VALUES = 32 };

typedef struct softmax {
    var max, sum;                   /* of scores; of exp(score - max) */
    unsigned count;                 /* of values a thread sums up */
    var values[SOFTMAX_MAX_VALUES]; /* sums of exp(score - max) value */
} softmax;

softmax softmax_new(ptx *p, unsigned count);

/* Raises a maximum to the largest score of a tile, and returns the factor that scales earlier sums.
 */
val softmax_raise_max(ptx *p, var max, val largest);

/* Raises the maximum for new scores and scales the state. softmax_weight then adds a score to the
 * sum, and returns its weight; the caller adds weight * value to values. */
void softmax_raise(ptx *p, const softmax *s, const val *scores, unsigned count);
val softmax_weight(ptx *p, const softmax *s, val score);

/* Merges the states of lanes that differ in the bits of mask; all of them get the result. */
void softmax_merge_lanes(ptx *p, const softmax *s, unsigned mask);

#endif
