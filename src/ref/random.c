#include "ref/random.h"

#include "ref/half.h"

const char *const fill_kind_names[FILL_KINDS] = {
    [FILL_NORMAL] = "normal", [FILL_OUTLIERS] = "outliers", [FILL_NEGATIVE] = "negative",
    [FILL_ZERO] = "zero",     [FILL_TINY] = "tiny",         [FILL_HUGE] = "huge",
};

uint64_t random_below(random_source *r, uint64_t limit)
{
    return random_next(r) % limit;
}

float random_part(random_source *r)
{
    return (float)random_below(r, 1 << 20) / (1 << 20);
}

/* Adds the four 16-bit numbers of a word to two 32-bit sums. */
static inline uint64_t pair_sums(uint64_t word)
{
    const uint64_t even = 0x0000ffff0000ffff;
    return (word & even) + (word >> 16 & even);
}

float random_normal(random_source *r)
{
    uint64_t sums = pair_sums(random_next(r));
    sums += pair_sums(random_next(r));
    int32_t sum = (int32_t)((sums & UINT32_MAX) + (sums >> 32));
    /* Sum of eight uniform numbers of [0, 65536): mean 8 * 32767.5, variance 8 / 12 * 65536^2. */
    return ((float)sum - 262140.0f) * (1 / 53510.0f);
}

void random_floats(fill_kind kind, float *to, uint64_t count, random_source *r)
{
    const float factors[FILL_KINDS] = {
        [FILL_NORMAL] = 1, [FILL_NEGATIVE] = 1, [FILL_TINY] = 1e-6f, [FILL_HUGE] = 1e3f
    };
    for (uint64_t i = 0; i < count; i++) {
        float x = random_normal(r);
        if (kind == FILL_OUTLIERS)
            to[i] = random_below(r, 200) ? 0.5f * x : 30 * x;
        else
            to[i] = kind == FILL_ZERO ? 0 : factors[kind] * x;
    }
}

uint16_t random_scale(float size, bool either_sign, fill_kind kind, random_source *r)
{
    uint64_t bits = random_next(r);
    uint16_t sign = (uint16_t)(either_sign && bits >> 63 ? 0x8000 : 0);
    if (kind == FILL_TINY)
        return (uint16_t)(sign | (bits & 7));
    size *= (0.5f + (float)(bits & 0xffff) / 65536);
    if (kind == FILL_HUGE)
        size *= 1e4f;
    if (kind == FILL_OUTLIERS && (bits >> 16) % 50 == 0)
        size *= 20;
    return (uint16_t)(sign | half_from_float(size));
}
