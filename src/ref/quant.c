/* Source: ggml, src/ggml-quants.c (dequantize_row_*, quantize_row_q8_1_ref). */
#include "ref/quant.h"

#include <math.h>
#include <string.h>

#include "ref/half.h"

static float load_half(const uint8_t *bytes)
{
    return half_to_float((uint16_t)(bytes[0] | bytes[1] << 8));
}

static void store_half(uint8_t *bytes, float value)
{
    uint16_t half = half_from_float(value);
    bytes[0] = (uint8_t)half;
    bytes[1] = (uint8_t)(half >> 8);
}

static void decode_f16(const uint8_t *value, float *w)
{
    *w = load_half(value);
}

static void decode_bf16(const uint8_t *value, float *w)
{
    *w = bfloat_to_float((uint16_t)(value[0] | value[1] << 8));
}

static void decode_q4_0(const uint8_t *block, float *w)
{
    float d = load_half(block);
    const uint8_t *nibbles = block + 2;
    for (int i = 0; i < 16; i++) {
        w[i] = d * (float)((nibbles[i] & 15) - 8);
        w[i + 16] = d * (float)((nibbles[i] >> 4) - 8);
    }
}

static void decode_q5_0(const uint8_t *block, float *w)
{
    float d = load_half(block);
    const uint8_t *fifth = block + 2, *nibbles = block + 6;
    for (int i = 0; i < 32; i++) {
        int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
        int high = fifth[i / 8] >> (i % 8) & 1;
        w[i] = d * (float)((low | high << 4) - 16);
    }
}

static void decode_q8_0(const uint8_t *block, float *w)
{
    float d = load_half(block);
    for (int i = 0; i < 32; i++)
        w[i] = d * (float)(int8_t)block[2 + i];
}

static void decode_q8_1(const uint8_t *block, float *x)
{
    float d = load_half(block);
    for (int i = 0; i < Q8_1_VALUES; i++)
        x[i] = d * (float)(int8_t)block[4 + i];
}

static void decode_q4_k(const uint8_t *block, float *w)
{
    float d = load_half(block), dmin = load_half(block + 2);
    const uint8_t *packed = block + 4, *nibbles = block + 16;
    for (int j = 0; j < 8; j++) {
        int scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
        int min = j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | packed[j] >> 6 << 4;
        float sub_scale = d * (float)scale, sub_min = dmin * (float)min;
        for (int i = 0; i < 32; i++) {
            int q = nibbles[32 * (j / 2) + i] >> (4 * (j % 2)) & 15;
            w[32 * j + i] = sub_scale * (float)q - sub_min;
        }
    }
}

static void decode_q6_k(const uint8_t *block, float *w)
{
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    float d = load_half(block + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, group = i % 128 / 32, l = i % 32;
        int nibble = low[64 * half + 32 * (group & 1) + l] >> (group < 2 ? 0 : 4) & 15;
        int upper = high[32 * half + l] >> (2 * group) & 3;
        w[i] = d * (float)(int8_t)scales[i / 16] * (float)((nibble | upper << 4) - 32);
    }
}

void ref_decode(format f, const void *blocks, uint64_t values, float *decoded)
{
    static void (*const decoders[FORMAT_COUNT])(const uint8_t *, float *) = {
        [FORMAT_F16] = decode_f16,   [FORMAT_BF16] = decode_bf16, [FORMAT_Q4_0] = decode_q4_0,
        [FORMAT_Q5_0] = decode_q5_0, [FORMAT_Q8_0] = decode_q8_0, [FORMAT_Q8_1] = decode_q8_1,
        [FORMAT_Q4_K] = decode_q4_k, [FORMAT_Q6_K] = decode_q6_k,
    };
    if (f == FORMAT_F32) {
        memcpy(decoded, blocks, values * sizeof *decoded);
        return;
    }
    const uint8_t *block = blocks;
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        decoders[f](block, decoded + i);
        block += formats[f].block_bytes;
    }
}

q8_1_block q8_1_load(const void *block)
{
    const uint8_t *bytes = block;
    q8_1_block loaded = { .d = load_half(bytes), .s = load_half(bytes + 2) };
    memcpy(loaded.q, bytes + 4, sizeof loaded.q);
    return loaded;
}

static void quantize_block(const float *x, uint8_t *block)
{
    float largest = 0;
    for (int i = 0; i < Q8_1_VALUES; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    float d = largest / Q8_1_LARGEST;
    float inverse = d != 0 ? 1 / d : 0;
    int sum = 0;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        int q = (int)roundf(x[i] * inverse);
        sum += q;
        block[4 + i] = (uint8_t)q;
    }
    store_half(block, d);
    store_half(block + 2, (float)sum * d);
}

void ref_encode_q8_1(const float *x, uint64_t values, void *blocks)
{
    uint8_t *block = blocks;
    for (uint64_t i = 0; i < values; i += Q8_1_VALUES, block += Q8_1_BYTES)
        quantize_block(x + i, block);
}
