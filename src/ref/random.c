/* Weight blocks are random bits in every quant and sub-scale, with fp16 scales put in that bring
 * the weights to a realistic size. The table says where the scales are and how large.
 */
#include "ref/random.h"

#include <stdbool.h>
#include <string.h>

#include "ref/half.h"
#include "ref/quant.h"

const char *const fill_kind_names[FILL_KINDS] = {
    [FILL_NORMAL] = "normal", [FILL_OUTLIERS] = "outliers", [FILL_ZERO] = "zero",
    [FILL_TINY] = "tiny",     [FILL_HUGE] = "huge",
};

typedef struct scale_field {
    unsigned offset; /* bytes in the block */
    float size;      /* for weights of about 0.05; 0: the block has no such field */
    bool either_sign;
} scale_field;

static const scale_field scale_fields[FORMAT_COUNT][2] = {
    [FORMAT_Q4_0] = { { 0, 1e-2f, true } },
    [FORMAT_Q5_0] = { { 0, 5e-3f, true } },
    [FORMAT_Q8_0] = { { 0, 7e-4f, false } },
    [FORMAT_Q4_K] = { { 0, 2e-4f, false }, { 2, 1.5e-3f, false } },
    [FORMAT_Q6_K] = { { 208, 4e-5f, true } },
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

static float random_float(fill_kind kind, random_source *r)
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

static uint16_t random_scale(const scale_field *field, fill_kind kind, random_source *r)
{
    uint64_t bits = random_next(r);
    uint16_t sign = (uint16_t)(field->either_sign && bits >> 63 ? 0x8000 : 0);
    if (kind == FILL_TINY)
        return (uint16_t)(sign | (bits & 7));
    float size = field->size * (0.5f + (float)(bits & 0xffff) / 65536);
    if (kind == FILL_HUGE)
        size *= 1e4f;
    if (kind == FILL_OUTLIERS && (bits >> 16) % 50 == 0)
        size *= 20;
    return (uint16_t)(sign | half_from_float(size));
}

static void fill_floats(float *x, uint64_t values, fill_kind kind, random_source *r)
{
    for (uint64_t i = 0; i < values; i++)
        x[i] = random_float(kind, r);
}

static void fill_random_bits(uint8_t *bytes, uint64_t size, random_source *r)
{
    uint64_t bits;
    for (; size >= sizeof bits; bytes += sizeof bits, size -= sizeof bits) {
        bits = random_next(r);
        memcpy(bytes, &bits, sizeof bits);
    }
    bits = random_next(r);
    memcpy(bytes, &bits, size);
}

static void fill_weights(format f, uint8_t *block, uint64_t blocks, fill_kind kind,
                         random_source *r)
{
    unsigned block_bytes = formats[f].block_bytes;
    if (kind == FILL_ZERO) {
        memset(block, 0, blocks * block_bytes);
        return;
    }
    fill_random_bits(block, blocks * block_bytes, r);
    for (uint64_t i = 0; i < blocks; i++, block += block_bytes)
        for (int j = 0; j < 2 && scale_fields[f][j].size > 0; j++) {
            uint16_t scale = random_scale(&scale_fields[f][j], kind, r);
            block[scale_fields[f][j].offset] = (uint8_t)scale;
            block[scale_fields[f][j].offset + 1] = (uint8_t)(scale >> 8);
        }
}

void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r)
{
    uint8_t *next = bytes;
    float x[Q8_1_VALUES];
    switch (f) {
    case FORMAT_F32:
        fill_floats(bytes, values, kind, r);
        break;
    case FORMAT_F16:
    case FORMAT_BF16:
        for (uint64_t i = 0; i < values; i++, next += 2) {
            float value = random_float(kind, r);
            uint16_t half = f == FORMAT_F16 ? half_from_float(value) : bfloat_from_float(value);
            memcpy(next, &half, sizeof half);
        }
        break;
    case FORMAT_Q8_1:
        for (uint64_t i = 0; i < values; i += Q8_1_VALUES, next += Q8_1_BYTES) {
            fill_floats(x, Q8_1_VALUES, kind, r);
            ref_encode_q8_1(x, Q8_1_VALUES, next);
        }
        break;
    case FORMAT_U32:
        fill_random_bits(next, values * sizeof(uint32_t), r);
        break;
    default:
        fill_weights(f, next, values / formats[f].block_values, kind, r);
    }
}
