/* Formats of single numbers: f32, f16 and bf16, the upper half of an f32. */
#include <string.h>

#include "ref/codec.h"

enum { CHUNK = 256 };

/* Draws floats and has each become a value of a format. */
#define FILL(name, bytes, store_value)                                                         \
    static void fill_##name(uint8_t *values, uint64_t count, fill_kind kind, random_source *r) \
    {                                                                                          \
        float x[CHUNK];                                                                        \
        for (uint64_t part; count; count -= part) {                                            \
            part = count < CHUNK ? count : CHUNK;                                              \
            random_floats(kind, x, part, r);                                                   \
            for (uint64_t i = 0; i < part; i++, values += (bytes))                             \
                store_value;                                                                   \
        }                                                                                      \
    }
FILL(f32, 4, memcpy(values, &x[i], sizeof x[i]))
FILL(f16, 2, store_half(values, half_from_float(x[i])))
FILL(bf16, 2, store_half(values, bfloat_from_float(x[i])))

#define DECODE(name, bytes, value)                                             \
    static void decode_##name(const uint8_t *values, uint64_t count, float *w) \
    {                                                                          \
        for (uint64_t i = 0; i < count; i++, values += (bytes))                \
            w[i] = (value);                                                    \
    }
DECODE(f16, 2, load_half(values))
DECODE(bf16, 2, bfloat_to_float((uint16_t)load_u16(values)))

static void decode_f32(const uint8_t *values, uint64_t count, float *w)
{
    memcpy(w, values, count * sizeof *w);
}

const codec codec_F32 = { .decode_many = decode_f32, .fill = fill_f32 };
const codec codec_F16 = { .decode_many = decode_f16, .fill = fill_f16 };
const codec codec_BF16 = { .decode_many = decode_bf16, .fill = fill_bf16 };
