/* Formats of single floats: f32, and the types of half.h. */
#include <string.h>

#include "ref/codec.h"

enum { CHUNK = 256 };

static inline float float_of(const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Defines the codec and the float_kind of a format, given expressions that load and store a value.
 * FILL_TINY multiplies floats by tiny once more. */
#define FLOATS(ID, name, size, tiny, nan_bits, infinity_bits, loaded, stored)                      \
    static inline float load_##name(const uint8_t *bytes)                                          \
    {                                                                                              \
        return loaded;                                                                             \
    }                                                                                              \
    static inline void store_##name(uint8_t *bytes, float value)                                   \
    {                                                                                              \
        stored;                                                                                    \
    }                                                                                              \
    static void decode_##name(const uint8_t *values, uint64_t count, float *w)                     \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++, values += (size))                                     \
            w[i] = load_##name(values);                                                            \
    }                                                                                              \
    static void fill_##name(uint8_t *values, uint64_t count, fill_kind kind, random_source *r)     \
    {                                                                                              \
        float x[CHUNK];                                                                            \
        for (uint64_t part; count; count -= part) {                                                \
            part = count < CHUNK ? count : CHUNK;                                                  \
            random_floats(kind, x, part, r);                                                       \
            for (uint64_t i = 0; i < part; i++, values += (size))                                  \
                store_##name(values, kind == FILL_TINY ? (tiny)*x[i] : x[i]);                      \
        }                                                                                          \
    }                                                                                              \
    const float_kind number_##name = { size, nan_bits, infinity_bits, load_##name, store_##name }; \
    const codec codec_##ID = { .decode_many = decode_##name,                                       \
                               .scales = { { 0, 1, true } },                                       \
                               .number = &number_##name,                                           \
                               .fill = fill_##name };
FLOATS(F32, f32, 4, 1, 0x7fff8000, 0x7f800000, float_of(bytes),
       memcpy(bytes, &value, sizeof value)) /* without a NaN check, this NaN rounds to -0 in bf16 */
FLOATS(F16, f16, 2, 1, 0x7e00, 0x7c00, load_half(bytes), store_half(bytes, half_from_float(value)))
FLOATS(BF16, bf16, 2, 1, 0x7fff, 0x7f80, bfloat_to_float((uint16_t)load_u16(bytes)),
       store_half(bytes, bfloat_from_float(value)))
/* tiny makes FILL_TINY subnormal, as 1e-6 is in f16. */
FLOATS(E4M3, e4m3, 1, 2000, 0x7f, 0, e4m3_to_float(*bytes), *bytes = e4m3_from_float(value))
FLOATS(E5M2, e5m2, 1, 20, 0x7e, 0x7c, half_to_float((uint16_t)(*bytes << 8)),
       *bytes = e5m2_from_float(value))
