/* Random inputs for kernels: the same for the same seed on every host, finite, and of the sizes
 * that real models have, or of sizes that break careless arithmetic.
 */
#ifndef PTXGEN_REF_RANDOM_H
#define PTXGEN_REF_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

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

/* From 0 to below 1, in steps of 2^-20. */
float random_part(random_source *r);

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

/* Floats, and an fp16 scale of about a size, as a kind of fill has them. */
void random_floats(fill_kind kind, float *to, uint64_t count, random_source *r);
uint16_t random_scale(float size, bool either_sign, fill_kind kind, random_source *r);

#endif
