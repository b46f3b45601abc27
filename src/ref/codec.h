/* What a format's file defines: how a block decodes, and which of its bits a random block may not
 * leave to chance. format.def has the rows; each names a codec here.
 *
 * Offsets are bytes inside one block; fp16 and words are little-endian. A row is always whole
 * blocks; blocks follow each other without padding.
 */
#ifndef PTXGEN_REF_CODEC_H
#define PTXGEN_REF_CODEC_H

#include "kernel/format.h"
#include "ref/half.h"
#include "ref/random.h"

/* A kind of float: bytes, bits of a NaN and of the infinity (0: there is none), conversions. */
typedef struct float_kind {
    unsigned bytes;
    uint32_t nan, infinity;
    float (*load)(const uint8_t *bytes);
    void (*store)(uint8_t *bytes, float value);
} float_kind;
extern const float_kind number_f32, number_f16;

enum { MAX_SCALE_FIELDS = 2 };

/* A scale of a block, or the value of a block that is one float. */
typedef struct scale_field {
    unsigned offset;
    float size; /* for weights of about 0.05; 0: the block has no such field */
    bool either_sign;
} scale_field;

typedef struct codec {
    /* One block, exactly as ggml's dequantize_row does it in float; NULL where there is
     * decode_many. */
    void (*decode)(const uint8_t *block, float *values);
    /* Many blocks at once, of formats whose blocks are so small that a call for each takes long; or
     * NULL. */
    void (*decode_many)(const uint8_t *blocks, uint64_t count, float *values);
    /* One block as products with x of 8 bits take it, where they round weights, too; NULL: they do
     * not. */
    void (*decode_rounded)(const uint8_t *block, float *values);

    /* Random blocks: bits are random but for these fields, */
    scale_field scales[MAX_SCALE_FIELDS];
    const float_kind *number; /* which are these; NULL: fp16 */
    /* and what scales that are no such fields need; NULL: there are none. */
    void (*set_scales)(uint8_t *block, fill_kind kind, random_source *r);

    /* In place of all that: so many blocks of values that make sense together; NULL: random bits.
     */
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

/* Two-bit values of a format of 256: the four of a byte stand 32 apart, those of the second half
 * in the second 32 bytes. */
static inline int two_bits(const uint8_t *bits, int index)
{
    return bits[32 * (index / 128) + index % 32] >> (2 * (index % 128 / 32)) & 3;
}

#endif
