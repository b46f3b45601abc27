/* Random inputs for kernels: the same for the same seed on every host, finite, and of the sizes
 * that real models have, or of sizes that break careless arithmetic.
 */
#ifndef PTXGEN_REF_RANDOM_H
#define PTXGEN_REF_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/format.h"

/* splitmix64: any seed is a good one. */
typedef struct random_source {
    uint64_t state;
} random_source;

static inline uint64_t random_next(random_source *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t random_below(random_source *r, uint64_t limit);

/* Normal(0, 1), of eight uniform numbers added up: never beyond 5. */
float random_normal(random_source *r);

typedef enum fill_kind {
    FILL_NORMAL,   /* floats normal(0, 1); weight blocks that decode to about 0.05 in size */
    FILL_OUTLIERS, /* smaller, but a few values (floats) or blocks (weights) very large */
    FILL_NEGATIVE, /* as normal; a trial makes all scores of a softmax very negative */
    FILL_ZERO,
    FILL_TINY, /* floats of 1e-6, block scales that are subnormal in fp16 */
    FILL_HUGE, /* floats of 1e3, block scales ten thousand times the usual */
    FILL_KINDS
} fill_kind;
extern const char *const fill_kind_names[FILL_KINDS];

/* Fills a buffer with values of a format, a multiple of its block. Quants and sub-scales of weight
 * blocks take all their values; q8_1 blocks are quantized floats. */
void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r);

/* Multiplies values that are there by a factor, each block by its negative as likely. Formats whose
 * scales are no fp16 stay as they are. */
void ref_resize(format f, void *bytes, uint64_t values, float factor, random_source *r);

/* Makes all values that are there positive, or negative; formats without a float or an fp16 scale
 * and signed bytes stay as they are. */
void ref_set_sign(format f, void *bytes, uint64_t values, bool negative);

/* Makes a value, or an fp16 scale of a block, a NaN or an infinity. Of a format with two scales,
 * odd numbers make it the second one. Returns false where no bits of the format are either. */
bool ref_spoil(format f, void *block, uint64_t number, bool infinite);

/* The same of floats, by themselves: which of them becomes what follows from the first. */
void ref_spoil_either(float *values, uint64_t count);

#endif
