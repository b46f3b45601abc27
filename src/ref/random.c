#include "ref/random.h"

#include "ref/codec.h"

const char *const fill_kind_names[FILL_KINDS] = {
    [FILL_NORMAL] = "normal", [FILL_OUTLIERS] = "outliers", [FILL_ZERO] = "zero",
    [FILL_TINY] = "tiny",     [FILL_HUGE] = "huge",
};

uint64_t random_next(random_source *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t random_below(random_source *r, uint64_t limit)
{
    return random_next(r) % limit;
}

float random_normal(random_source *r)
{
    int32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t bits = random_next(r);
        for (int j = 0; j < 4; j++)
            sum += (int32_t)(bits >> 16 * j & 0xffff);
    }
    /* Eight uniform numbers of [0, 65536): mean 8 * 32767.5, variance 8 / 12 * 65536^2. */
    return ((float)sum - 262140.0f) * (1 / 53510.0f);
}

float random_float(fill_kind kind, random_source *r)
{
    float x = random_normal(r);
    switch (kind) {
    case FILL_OUTLIERS:
        return random_below(r, 200) ? 0.5f * x : 30 * x;
    case FILL_ZERO:
        return 0;
    case FILL_TINY:
        return 1e-6f * x;
    case FILL_HUGE:
        return 1e3f * x;
    default:
        return x;
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
