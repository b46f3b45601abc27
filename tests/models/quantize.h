/* Quantizes floats to the blocks of every weight format, for tests. Scales are found in one pass,
 * and each value gets its nearest code. ggml's quantizers search longer, and their errors are about
 * a fifth smaller. Grids are searched exhaustively, which is slow for grids of 2048 entries. */
#ifndef PTXGEN_TESTS_QUANTIZE_H
#define PTXGEN_TESTS_QUANTIZE_H

#include <stdbool.h>

#include "kernel/format.h"

/* Quantizes values. Their number is a multiple of the format's block. */
void quantize(format f, const float *x, uint64_t values, void *blocks);

/* Quantizes one block of a format with a grid. The block must be zeroed. Returns false if the
 * format has no grid. */
bool quantize_by_grid(format f, const float *x, uint8_t *block);

/* Returns the value of the largest magnitude. */
float quantize_extreme(const float *x, unsigned count);

/* Stores a scale as fp16 and returns the rounded scale. */
float quantize_store_scale(uint8_t *at, float scale);

/* Returns x / scale rounded to the nearest integer in low..high. If scale is 0, x / scale counts as
 * 0. */
int quantize_nearest(float x, float scale, int low, int high);

#endif
