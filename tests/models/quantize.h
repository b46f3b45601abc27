/* Floats to the blocks of every weight format, for tests: each value to its nearest code under
 * scales that are found in one pass. ggml's quantizers search longer and err less, by a fifth or
 * so. Grids are searched whole, so that 2048 entries take time. */
#ifndef PTXGEN_TESTS_QUANTIZE_H
#define PTXGEN_TESTS_QUANTIZE_H

#include <stdbool.h>

#include "kernel/format.h"

/* A number of values that is a multiple of the format's block. */
void quantize(format f, const float *x, uint64_t values, void *blocks);

/* One block of a format that is looked up in a grid; zeros where it comes in. False: it is none. */
bool quantize_by_grid(format f, const float *x, uint8_t *block);

/* The value of the largest magnitude. */
float quantize_extreme(const float *x, unsigned count);

/* Stores a scale as fp16, and says what is left of it. */
float quantize_store_scale(uint8_t *at, float scale);

/* x / scale to the nearest integer of a range; 0, or what is nearest to it, where scale is 0. */
int quantize_nearest(float x, float scale, int low, int high);

#endif
