/* Codecs: how a format's blocks decode, and which fields of a random block need valid values. The
 * rows of format.def name the codecs.
 *
 * Offsets are bytes in a block. fp16 and words are little-endian. A row consists of whole blocks
 * without padding. */
#pragma once

#include "kernel/format.h"
#include "ref/half.h"
#include "ref/random.h"

/* A float type: size in bytes, bit patterns of a NaN and of infinity (0 = none), conversions. */
typedef struct float_kind {
    unsigned bytes;
    uint32_t nan, infinity;
    float (*load)(const uint8_t *bytes);
    void (*store)(uint8_t *bytes, float value);
} float_kind;
extern const float_kind number_f32, number_f16;

enum { MAX_SCALE_FIELDS = 2 };

/* A scale of a block, or the value of a block that is a float. */
typedef struct scale_field {
    unsigned offset;
    float size; /* for weights of about 0.05; 0 = no such field */
    bool either_sign;
} scale_field;

typedef struct codec {
    /* Decodes a block exactly like ggml's dequantize_row, in float; NULL if decode_many is set. */
    void (*decode)(const uint8_t *block, float *values);
    /* Decodes many blocks, for formats with very small blocks; or NULL. */
    void (*decode_many)(const uint8_t *blocks, uint64_t count, float *values);
    /* Decodes a block with weights rounded as for 8-bit x; NULL: not rounded. */
    void (*decode_rounded)(const uint8_t *block, float *values);

    /* Scales in random blocks; all other bits are random. */
    scale_field scales[MAX_SCALE_FIELDS];
    const float_kind *number; /* type of the scales; NULL: fp16 */
    /* Sets scales of other kinds; NULL if there are none. */
    void (*set_scales)(uint8_t *block, fill_kind kind, random_source *r);

    /* Fills count blocks with consistent values, in place of random bits; or NULL. */
    void (*fill)(uint8_t *blocks, uint64_t count, fill_kind kind, random_source *r);
} codec;

#define FORMAT(id, ...) extern const codec codec_##id;
#define CODED           FORMAT
#include "kernel/format.def"

static inline unsigned load_u16(const uint8_t *bytes)
{
    return bytes[0] | (unsigned)bytes[1] << 8;
}

static inline float load_half(const uint8_t *bytes)
{
    return half_to_float((uint16_t)load_u16(bytes));
}

static inline void store_half(uint8_t *bytes, uint16_t half)
{
    bytes[0] = (uint8_t)half;
    bytes[1] = (uint8_t)(half >> 8);
}

/* Returns a two-bit value of 256: a byte's four are 32 apart; each half has 32 bytes. */
static inline int two_bits(const uint8_t *bits, int index)
{
    return bits[32 * (index / 128) + index % 32] >> (2 * (index % 128 / 32)) & 3;
}
