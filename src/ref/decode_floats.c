/* Formats of single numbers: f32, f16 and bf16, the upper half of an f32. */
#include <string.h>

#include "ref/codec.h"

static void decode_f32(const uint8_t *value, float *w)
{
    memcpy(w, value, sizeof *w);
}

static void fill_f32(uint8_t *value, fill_kind kind, random_source *r)
{
    float x = random_float(kind, r);
    memcpy(value, &x, sizeof x);
}

static void decode_f16(const uint8_t *value, float *w)
{
    *w = load_half(value);
}

static void fill_f16(uint8_t *value, fill_kind kind, random_source *r)
{
    store_half(value, half_from_float(random_float(kind, r)));
}

static void decode_bf16(const uint8_t *value, float *w)
{
    *w = bfloat_to_float((uint16_t)load_u16(value));
}

static void fill_bf16(uint8_t *value, fill_kind kind, random_source *r)
{
    store_half(value, bfloat_from_float(random_float(kind, r)));
}

const codec codec_F32 = { .decode = decode_f32, .fill = fill_f32 };
const codec codec_F16 = { .decode = decode_f16, .fill = fill_f16 };
const codec codec_BF16 = { .decode = decode_bf16, .fill = fill_bf16 };
