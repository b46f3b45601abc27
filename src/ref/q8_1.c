/* q8_1: the activations of dp4a kernels, and ggml's quantizer of them.
 * Source: ggml, src/ggml-quants.c (quantize_row_q8_1_ref).
 *
 *   q8_1    x = d * q
 *      0    fp16 d      amax / 127
 *      2    fp16 s      sum of q, times d before its rounding to fp16
 *      4    32 x s8
 *
 * q8_f32: those of streaming products, what q8_rows makes of x.
 *
 *   q8_f32  x = d * q
 *      0    f32 d       amax / 127
 *      4    32 x s8
 */
#include <math.h>
#include <string.h>

#include "ref/codec.h"
#include "ref/quant.h"

static void decode_q8_1(const uint8_t *block, float *x)
{
    float d = load_half(block + Q8_1_D);
    for (int i = 0; i < Q8_1_VALUES; i++)
        x[i] = d * (float)(int8_t)block[Q8_1_QUANTS + i];
}

static void fill_q8_1(uint8_t *block, uint64_t count, fill_kind kind, random_source *r)
{
    float x[Q8_1_VALUES];
    for (; count--; block += Q8_1_BYTES) {
        random_floats(kind, x, Q8_1_VALUES, r);
        ref_encode_q8_1(x, Q8_1_VALUES, block);
    }
}

const codec codec_Q8_1 = { decode_q8_1, .fill = fill_q8_1 };

q8_1_block q8_1_load(const void *block)
{
    const uint8_t *bytes = block;
    q8_1_block loaded = { .d = load_half(bytes + Q8_1_D), .s = load_half(bytes + Q8_1_S) };
    memcpy(loaded.q, bytes + Q8_1_QUANTS, sizeof loaded.q);
    return loaded;
}

/* As roundf, which is a call for each value. Magnitudes are below 2^31. */
static inline int round_away(float x)
{
    int whole = (int)x;
    float rest = x - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* d of 32 values, and each as a multiple of it, which add up to sum. */
static float quantize(const float *x, uint8_t *q, int *sum)
{
    float largest = 0;
    for (int i = 0; i < Q8_1_VALUES; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    float d = largest / Q8_1_LARGEST;
    float inverse = d != 0 ? 1 / d : 0;
    *sum = 0;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        int rounded = round_away(x[i] * inverse);
        *sum += rounded;
        q[i] = (uint8_t)rounded;
    }
    return d;
}

void ref_encode_q8_1(const float *x, uint64_t values, void *blocks)
{
    uint8_t *block = blocks;
    for (uint64_t i = 0; i < values; i += Q8_1_VALUES, block += Q8_1_BYTES) {
        int sum;
        float d = quantize(x + i, block + Q8_1_QUANTS, &sum);
        store_half(block + Q8_1_D, half_from_float(d));
        store_half(block + Q8_1_S, half_from_float((float)sum * d));
    }
}

static void decode_q8_f32(const uint8_t *block, float *x)
{
    float d;
    memcpy(&d, block + Q8_F32_D, sizeof d);
    for (int i = 0; i < Q8_F32_VALUES; i++)
        x[i] = d * (float)(int8_t)block[Q8_F32_QUANTS + i];
}

static void fill_q8_f32(uint8_t *block, uint64_t count, fill_kind kind, random_source *r)
{
    float x[Q8_F32_VALUES];
    for (; count--; block += Q8_F32_BYTES) {
        int sum;
        random_floats(kind, x, Q8_F32_VALUES, r);
        float d = quantize(x, block + Q8_F32_QUANTS, &sum);
        memcpy(block + Q8_F32_D, &d, sizeof d);
    }
}

const codec codec_Q8_F32 = { decode_q8_f32, .fill = fill_q8_f32 };
