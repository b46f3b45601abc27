/* What src/ref knows of a format: how a block decodes, and which of its bits a random block may not
 * leave to chance. format.def has the rows; each names a codec here.
 *
 * Offsets are bytes inside one block; fp16 and words are little-endian. A row is always whole
 * blocks; blocks follow each other without padding.
 */
#ifndef PTXGEN_REF_CODEC_H
#define PTXGEN_REF_CODEC_H

#include <stdbool.h>

#include "ref/half.h"
#include "ref/random.h"

enum { MAX_SCALE_FIELDS = 2 };

/* An fp16 scale of a block. */
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

    /* Random blocks: bits are random but for these fields, */
    scale_field scales[MAX_SCALE_FIELDS];
    /* and what scales that are no fp16 fields need; NULL: there are none. */
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

/* The nearest values of 8 bits, ties to even; what is too large becomes the largest finite one. */
uint8_t e4m3_from_float(float value);
uint8_t e5m2_from_float(float value);

/* Two-bit values of a format of 256: the four of a byte stand 32 apart, those of the second half
 * in the second 32 bytes. */
static inline int two_bits(const uint8_t *bits, int index)
{
    return bits[32 * (index / 128) + index % 32] >> (2 * (index % 128 / 32)) & 3;
}

/* Floats, and an fp16 scale of about a size, as a kind of fill has them. */
void random_floats(fill_kind kind, float *to, uint64_t count, random_source *r);
uint16_t random_scale(float size, bool either_sign, fill_kind kind, random_source *r);

#endif
