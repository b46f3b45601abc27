/* Formats of single numbers: f32, and those of half.h. */
#include <string.h>

#include "ref/codec.h"

enum { CHUNK = 256 };

static inline float load_f32(const uint8_t *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline void store_f32(uint8_t *bytes, float value)
{
    memcpy(bytes, &value, sizeof value);
}

static inline float load_f16(const uint8_t *bytes)
{
    return load_half(bytes);
}

static inline void store_f16(uint8_t *bytes, float value)
{
    store_half(bytes, half_from_float(value));
}

static inline float load_bf16(const uint8_t *bytes)
{
    return bfloat_to_float((uint16_t)load_u16(bytes));
}

static inline void store_bf16(uint8_t *bytes, float value)
{
    store_half(bytes, bfloat_from_float(value));
}

static inline float load_e4m3(const uint8_t *bytes)
{
    return e4m3_to_float(*bytes);
}

static inline void store_e4m3(uint8_t *bytes, float value)
{
    *bytes = e4m3_from_float(value);
}

static inline float load_e5m2(const uint8_t *bytes)
{
    return half_to_float((uint16_t)(*bytes << 8));
}

static inline void store_e5m2(uint8_t *bytes, float value)
{
    *bytes = e5m2_from_float(value);
}

/* Defines the codec and the number of a format. FILL_TINY multiplies floats by tiny once more. */
#define FLOATS(ID, name, size, tiny, nan_bits, infinity_bits)                                      \
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
FLOATS(F32, f32, 4, 1, 0x7fff8000, 0x7f800000) /* its NaN is -0 if rounded to bf16 */
FLOATS(F16, f16, 2, 1, 0x7e00, 0x7c00)
FLOATS(BF16, bf16, 2, 1, 0x7fff, 0x7f80)
/* Tiny ones are subnormal, as 1e-6 is for f16. */
FLOATS(E4M3, e4m3, 1, 2000, 0x7f, 0)
FLOATS(E5M2, e5m2, 1, 20, 0x7e, 0x7c)
