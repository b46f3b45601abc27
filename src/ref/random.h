/* Random inputs for kernels: finite, the same on every host for the same seed, of realistic sizes
 * or of sizes that break careless arithmetic. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* State of splitmix64. Any seed is valid. */
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

/* Returns a number in [0, 1), a multiple of 2^-20. */
float random_part(random_source *r);

/* Returns about a normal(0, 1) number, below 5 in magnitude: a sum of eight uniform ones. */
float random_normal(random_source *r);

typedef enum fill_kind {
    FILL_NORMAL,   /* floats normal(0, 1); weight blocks of about 0.05 */
    FILL_OUTLIERS, /* smaller, with a few very large floats or weight blocks */
    FILL_NEGATIVE, /* like normal; trials make all softmax scores very negative */
    FILL_ZERO,
    FILL_TINY, /* floats of 1e-6, subnormal fp16 block scales */
    FILL_HUGE, /* floats of 1e3, block scales of 10^4 times the normal */
    FILL_KINDS
} fill_kind;
extern const char *const fill_kind_names[FILL_KINDS];

/* Return floats, or an fp16 scale of about `size`, of a fill kind. */
void random_floats(fill_kind kind, float *to, uint64_t count, random_source *r);
uint16_t random_scale(float size, bool either_sign, fill_kind kind, random_source *r);
