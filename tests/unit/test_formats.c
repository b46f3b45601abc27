/* The table of formats against the values that headers and files promise, decoders against ggml's
 * data, and randomized blocks. */
#include <math.h>

#include "test_arena.h"
#include "golden/golden.h"
#include "kernel/grid.h"
#include "ref/codec.h"
#include "ref/quant.h"
#include "ref/reference.h"

/* Codecs by format; NULL = not a number format. */
static const codec *const codecs[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = &codec_##id,
#define CODED           FORMAT
#include "kernel/format.def"
};

/* The enumeration's order in generated headers. Programs may have stored these values, so formats
 * may only be appended. */
static const format_info promised[] = {
    { "none", NO_GGUF_TYPE, 1, 0, 1 },
    { "f32", 0, 1, 4, 4 },
    { "f16", 1, 1, 2, 2 },
    { "bf16", 30, 1, 2, 2 },
    { "u32", NO_GGUF_TYPE, 1, 4, 4 },
    { "address", NO_GGUF_TYPE, 1, 8, 8 },
    { "q4_0", 2, 32, 18, 2 },
    { "q5_0", 6, 32, 22, 2 },
    { "q8_0", 8, 32, 34, 2 },
    { "q8_1", 9, 32, 36, 4 },
    { "q4_k", 12, 256, 144, 16 },
    { "q6_k", 14, 256, 210, 2 },
    { "q5_k", 13, 256, 176, 16 },
    { "q4_1", 3, 32, 20, 4 },
    { "q5_1", 7, 32, 24, 8 },
    { "q3_k", 11, 256, 110, 2 },
    { "q2_k", 10, 256, 84, 4 },
    { "iq4_nl", 20, 32, 18, 2 },
    { "iq4_xs", 23, 256, 136, 8 },
    { "mxfp4", 39, 32, 17, 1 },
    { "iq2_xxs", 16, 256, 66, 2 },
    { "iq2_xs", 17, 256, 74, 2 },
    { "iq2_s", 22, 256, 82, 2 },
    { "iq3_xxs", 18, 256, 98, 2 },
    { "iq3_s", 21, 256, 110, 2 },
    { "iq1_s", 19, 256, 50, 2 },
    { "iq1_m", 29, 256, 56, 8 },
    { "tq1_0", 34, 256, 54, 2 },
    { "tq2_0", 35, 256, 66, 2 },
    { "nvfp4", 40, 64, 36, 4 },
    { "q1_0", 41, 128, 18, 2 },
    { "q2_0", 42, 64, 18, 2 },
    { "q8_f32", NO_GGUF_TYPE, 32, 36, 4 },
    { "e4m3", NO_GGUF_TYPE, 1, 1, 1 },
    { "e5m2", NO_GGUF_TYPE, 1, 1, 1 },
    { "nf4", NO_GGUF_TYPE, 64, 36, 4 },
    { "nf4_h", NO_GGUF_TYPE, 64, 34, 2 },
};

TEST(formats_keep_their_numbers_names_and_blocks)
{
    assert_int_equal(FORMAT_COUNT, sizeof promised / sizeof *promised);
    for (int f = 0; f < FORMAT_COUNT; f++) {
        assert_string_equal(formats[f].name, promised[f].name);
        assert_int_equal(formats[f].gguf_type, promised[f].gguf_type);
        assert_int_equal(formats[f].block_values, promised[f].block_values);
        assert_int_equal(formats[f].block_bytes, promised[f].block_bytes);
        assert_int_equal(formats[f].alignment, promised[f].alignment);
    }
}

static bool is_of_activations(format f)
{
    return f == FORMAT_Q8_1 || f == FORMAT_Q8_F32;
}

/* Returns true for formats that files may contain: all decodable formats except the activations. */
static bool is_tensor_format(format f)
{
    return formats[f].gguf_type != NO_GGUF_TYPE && !is_of_activations(f);
}

static bool same_float(float a, float b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void check_decoder(arena *a, format f, bool random)
{
    golden_matrix g = golden_matrix_of(a, f, random);
    size_t values = g.rows * (size_t)((const golden_dims *)golden(a, "dims.i32", 0))->k;
    static const float beyond = 12345;
    float *decoded = arena_alloc(a, (values + 1) * sizeof *decoded);
    decoded[values] = beyond;
    ref_decode(f, g.weights, values, decoded);
    assert_true(decoded[values] == beyond);
    for (size_t i = 0; i < values; i++)
        if (!same_float(decoded[i], g.decoded[i]))
            fail_msg("%s: value %zu of the %s matrix is %a, expected %a", formats[f].name, i,
                     random ? "random" : "quantized", (double)decoded[i], (double)g.decoded[i]);
}

ARENA_TEST(decoded_weights_equal_ggml_s)
{
    for (format f = 0; f < FORMAT_COUNT; f++)
        if (is_tensor_format(f)) {
            check_decoder(a, f, false);
            if (f != FORMAT_F32)
                check_decoder(a, f, true);
        }
}

/* Returns the value of a byte with sign, exponent and mantissa, by the definition of such floats.
 */
static double value_of_byte(unsigned byte, unsigned mantissa_bits, int bias)
{
    unsigned exponent = (byte & 0x7f) >> mantissa_bits;
    double mantissa = (byte & ((1u << mantissa_bits) - 1)) / (double)(1u << mantissa_bits);
    double magnitude =
        exponent ? ldexp(1 + mantissa, (int)exponent - bias) : ldexp(mantissa, 1 - bias);
    return byte & 0x80 ? -magnitude : magnitude;
}

TEST(all_8_bit_codes_decode_to_their_values)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t code = (uint8_t)byte;
        float e4m3, e5m2;
        ref_decode(FORMAT_E4M3, &code, 1, &e4m3);
        ref_decode(FORMAT_E5M2, &code, 1, &e5m2);
        double large = value_of_byte(byte, 2, 15);
        if ((byte & 0x7f) == 0x7f)
            assert_true(isnan(e4m3));
        else
            assert_true(same_float(e4m3, (float)value_of_byte(byte, 3, 7)));
        if ((byte & 0x7f) > 0x7c)
            assert_true(isnan(e5m2));
        else if ((byte & 0x7f) == 0x7c)
            assert_true(isinf(e5m2) && (e5m2 < 0) == (byte > 0x7f));
        else
            assert_true(same_float(e5m2, (float)large));
        assert_true(isnan(e4m3) || e4m3_from_float(e4m3) == byte);
        assert_true(!isfinite(e5m2) || e5m2_from_float(e5m2) == byte);
    }
    assert_int_equal(e4m3_from_float(1e6f), 0x7e);
    assert_int_equal(e4m3_from_float(-1e6f), 0xfe);
    assert_int_equal(e5m2_from_float(1e9f), 0x7b);
    assert_int_equal(e4m3_from_float(NAN) & 0x7f, 0x7f);
    assert_int_equal(e5m2_from_float(NAN) & 0x7f, 0x7f);
    assert_int_equal(e4m3_from_float(17), 0x58); /* between 16 and 18: ties to even */
    assert_int_equal(e4m3_from_float(19), 0x5a); /* between 18 and 20 */
    assert_int_equal(e5m2_from_float(9), 0x48);  /* between 8 and 10 */
}

static bool has_half_scale(format f)
{
    return f == FORMAT_IQ1_M || (codecs[f]->scales[0].size > 0 && !codecs[f]->number);
}

static void store_scale(format f, uint8_t *block, unsigned scale, unsigned bits)
{
    if (f == FORMAT_IQ1_M)
        for (int i = 0; i < 4; i++) {
            uint8_t *byte = block + IQ1_M_SCALES + 2 * i + 1;
            *byte = (uint8_t)((*byte & 15) | (bits >> (4 * i) & 15) << 4);
        }
    else
        store_half(block + codecs[f]->scales[scale].offset, (uint16_t)bits);
}

/* Checks a format with scales d and min: it decodes to d * a + min * b, with each product exact or
 * rounded by itself. NaN and infinite scales propagate, and give NaN if a or b is 0. */
static void check_special_scales(format f, uint8_t *block)
{
    static const uint16_t zero = 0, one = 0x3c00,
                          special[] = { 0x3c00, 0x7c00, 0xfc00, 0x7e00, 0xfdff };
    enum { SPECIAL = sizeof special / sizeof *special, LARGEST_BLOCK = 256 };
    bool has_min = codecs[f]->scales[1].size > 0;
    float a[LARGEST_BLOCK], b[LARGEST_BLOCK] = { 0 }, w[LARGEST_BLOCK];
    unsigned values = formats[f].block_values;
    store_scale(f, block, 0, one);
    if (has_min)
        store_scale(f, block, 1, zero);
    ref_decode(f, block, values, a);
    if (has_min) {
        store_scale(f, block, 0, zero);
        store_scale(f, block, 1, one);
        ref_decode(f, block, values, b);
    }
    for (int i = 1; i < (has_min ? SPECIAL * SPECIAL : SPECIAL); i++) {
        uint16_t d_bits = special[i % SPECIAL], min_bits = special[i / SPECIAL];
        store_scale(f, block, 0, d_bits);
        if (has_min)
            store_scale(f, block, 1, min_bits);
        ref_decode(f, block, values, w);
        for (unsigned j = 0; j < values; j++) {
            float expected = half_to_float(d_bits) * a[j];
            if (has_min)
                expected += half_to_float(min_bits) * b[j];
            if (!same_float(w[j], expected))
                fail_msg("%s: weight %u is %g with scales of %04x and %04x, expected %g",
                         formats[f].name, j, (double)w[j], d_bits, min_bits, (double)expected);
        }
    }
}

ARENA_TEST(infinite_and_nan_scales_propagate_to_every_weight)
{
    random_source r = { 3 };
    for (format f = 0; f < FORMAT_COUNT; f++)
        for (int i = 0; is_tensor_format(f) && has_half_scale(f) && i < 20; i++) {
            uint8_t *block = arena_alloc(a, formats[f].block_bytes);
            ref_fill(f, block, formats[f].block_values, FILL_NORMAL, &r);
            check_special_scales(f, block);
        }
}

ARENA_TEST(every_scale_of_mxfp4_is_a_power_of_two)
{
    static const int doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    uint8_t block[MXFP4_BYTES];
    float w[MXFP4_VALUES];
    for (unsigned i = 0; i < 16; i++)
        block[MXFP4_QUANTS + i] = (uint8_t)(i | (15 - i) << 4);
    for (int e = 0; e < 256; e++) {
        block[MXFP4_E] = (uint8_t)e;
        ref_decode(FORMAT_MXFP4, block, MXFP4_VALUES, w);
        for (int i = 0; i < 16; i++) {
            /* With a scale of 2^127 most products overflow to infinity, as in ggml. */
            assert_true(w[i] == ldexpf((float)doubled[i], e - 128));
            assert_true(w[i + 16] == ldexpf((float)doubled[15 - i], e - 128));
        }
    }
}

TEST(every_scale_of_nvfp4_is_half_a_ue4m3)
{
    uint8_t block[NVFP4_BYTES];
    float w[NVFP4_VALUES];
    for (unsigned i = 4; i < NVFP4_BYTES; i++)
        block[i] = 0x22; /* code of 1; the table has doubled values */
    for (int code = 0; code < 256; code++) {
        int exponent = code >> 3 & 15, fraction = code & 7;
        double scale = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        for (int j = 0; j < 4; j++)
            block[NVFP4_SCALES + j] = (uint8_t)(code + j);
        ref_decode(FORMAT_NVFP4, block, NVFP4_VALUES, w);
        for (int i = 0; i < 16; i++) {
            assert_true(w[i] == (code == 0x7f ? 0 : (float)scale));
            /* Each scale applies to the 16 weights of its sub-block. */
            assert_true(code != 0x38 || w[16 + i] == 1.125f);
        }
    }
}

/* bitsandbytes' values by code, for a block with absmax = 2. Byte j holds weight 2j in its high
 * nibble. Products with 8-bit x use multiples of absmax / 914. */
TEST(codes_of_nf4_are_bitsandbytes_s)
{
    static const float values[16] = {
        -1.0f,
        -0.6961928009986877f,
        -0.5250730514526367f,
        -0.39491748809814453f,
        -0.28444138169288635f,
        -0.18477343022823334f,
        -0.09105003625154495f,
        0.0f,
        0.07958029955625534f,
        0.16093020141124725f,
        0.24611230194568634f,
        0.33791524171829224f,
        0.44070982933044434f,
        0.5626170039176941f,
        0.7229568362236023f,
        1.0f,
    };
    static const format both[] = { FORMAT_NF4, FORMAT_NF4_H };
    for (unsigned f = 0; f < 2; f++) {
        uint8_t block[NF4_BYTES] = { 0, 0, 0, 0x40 }; /* 2.0f */
        float w[NF4_VALUES], rounded[NF4_VALUES];
        if (both[f] == FORMAT_NF4_H)
            block[NF4_H_ABSMAX + 1] = 0x40; /* 2 as f16 */
        unsigned quants = both[f] == FORMAT_NF4 ? NF4_QUANTS : NF4_H_QUANTS;
        for (unsigned j = 0; j < NF4_VALUES / 2; j++)
            block[quants + j] = (uint8_t)((j % 16) << 4 | (15 - j % 16));
        ref_decode(both[f], block, NF4_VALUES, w);
        ref_decode_rounded(both[f], block, NF4_VALUES, rounded);
        for (unsigned i = 0; i < NF4_VALUES; i++) {
            unsigned code = i % 2 ? 15 - i / 2 % 16 : i / 2 % 16;
            float unit = 2.0f / 914;
            assert_true(w[i] == 2 * values[code]);
            assert_true(rounded[i] == unit * nearbyintf(914 * values[code]));
            assert_true(fabsf(rounded[i] - w[i]) <= 2 * 3.6e-4f);
        }
    }
}

TEST(weights_of_most_formats_are_not_rounded)
{
    uint8_t block[Q4_K_BYTES] = { 1, 0x2c, 3, 0x24, 5, 77 };
    float w[Q4_K_VALUES], rounded[Q4_K_VALUES];
    ref_decode(FORMAT_Q4_K, block, Q4_K_VALUES, w);
    ref_decode_rounded(FORMAT_Q4_K, block, Q4_K_VALUES, rounded);
    assert_memory_equal(w, rounded, sizeof w);
}

ARENA_TEST(grids_equal_ggml_s)
{
    static const struct {
        const char *name;
        const weight_grid *grid;
        unsigned entries, bytes;
    } grids[] = {
        { "iq2_xxs.u64", &grid_iq2_xxs, 256, 8 }, { "iq2_xs.u64", &grid_iq2_xs, 512, 8 },
        { "iq2_s.u64", &grid_iq2_s, 1024, 8 },    { "iq3_xxs.u32", &grid_iq3_xxs, 256, 4 },
        { "iq3_s.u32", &grid_iq3_s, 512, 4 },     { "iq1.u64", &grid_iq1, 2048, 8 },
    };
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const weight_grid *g = grids[i].grid;
        unsigned bytes = grids[i].bytes;
        const uint8_t *expected =
            golden(a, arena_format(a, "formats/grids/grid.%s.bin", grids[i].name),
                   grids[i].entries * bytes);
        assert_int_equal(g->entries, grids[i].entries);
        assert_int_equal(g->run, bytes);
        for (unsigned entry = 0; entry < g->entries; entry++) {
            uint64_t values = 0;
            for (unsigned j = 0; j < bytes; j++)
                values |= (uint64_t)expected[entry * bytes + j] << (8 * j);
            assert_int_equal(grid_values(g, entry), values);
        }
    }
    assert_memory_equal(iq4_values, golden(a, "formats/grids/values.iq4_nl.i8.bin", 16), 16);
    assert_memory_equal(fp4_values, golden(a, "formats/grids/values.fp4.i8.bin", 16), 16);
}

typedef struct filled {
    const uint8_t *bytes;
    const float *values;
    double size; /* root mean square */
} filled;

enum { FILLED_VALUES = 256 * 256 };

static filled fill(arena *a, format f, fill_kind kind, uint64_t seed)
{
    uint8_t *bytes = arena_zalloc(a, format_bytes(f, FILLED_VALUES));
    float *x = arena_alloc(a, FILLED_VALUES * sizeof *x);
    random_source r = { seed };
    double square = 0;
    ref_fill(f, bytes, FILLED_VALUES, kind, &r);
    ref_decode(f, bytes, FILLED_VALUES, x);
    for (int i = 0; i < FILLED_VALUES; i++) {
        if (!isfinite(x[i]))
            fail_msg("%s: %s value %d is %g", formats[f].name, fill_kind_names[kind], i,
                     (double)x[i]);
        square += (double)x[i] * (double)x[i] / FILLED_VALUES;
    }
    return (filled){ bytes, x, sqrt(square) };
}

ARENA_TEST(random_data_is_finite_and_reproducible)
{
    for (format f = 0; f < FORMAT_COUNT; f++)
        for (fill_kind kind = 0; codecs[f] && kind < FILL_KINDS; kind++) {
            size_t size = format_bytes(f, FILLED_VALUES);
            filled first = fill(a, f, kind, 42), again = fill(a, f, kind, 42);
            assert_memory_equal(first.bytes, again.bytes, size);
            if (kind != FILL_ZERO)
                assert_memory_not_equal(first.bytes, fill(a, f, kind, 43).bytes, size);
        }
}

ARENA_TEST(random_data_has_the_magnitude_of_its_kind)
{
    for (format f = 0; f < FORMAT_COUNT; f++) {
        if (!codecs[f])
            continue;
        bool weights = formats[f].block_values > 1 && !is_of_activations(f);
        double size = weights ? 0.05 : 1, normal = fill(a, f, FILL_NORMAL, 42).size;
        if (!(fabs(normal / size - 1) < (weights ? 0.4 : 0.03)))
            fail_msg("%s has magnitude %g", formats[f].name, normal);
        assert_true(fill(a, f, FILL_OUTLIERS, 42).size > 1.5 * normal);
        assert_true(fill(a, f, FILL_ZERO, 42).size == 0);
        /* Subnormals of ue4m3 and e4m3 are not tiny; q8_1 rounds values of 1e-6 to 0. */
        double tiny = fill(a, f, FILL_TINY, 42).size;
        bool has_large = f == FORMAT_NVFP4 || f == FORMAT_E4M3;
        assert_true(tiny < (has_large ? 0.03 : 1e-3) && (tiny > 0) == (f != FORMAT_Q8_1));
        double huge = fill(a, f, FILL_HUGE, 42).size / normal / (weights ? 1e4 : 1e3);
        assert_true(huge > (f == FORMAT_E4M3 ? 0.3 : 0.7) && huge < 1.8); /* the maximum is 448 */
    }
}

/* Returns the bits of a byte that take both values over all blocks. */
static unsigned varying_bits(format f, const uint8_t *blocks, unsigned byte)
{
    unsigned set = 0, clear = 0;
    for (unsigned i = 0; i < FILLED_VALUES / formats[f].block_values; i++) {
        set |= blocks[i * formats[f].block_bytes + byte];
        clear |= 0xffu ^ blocks[i * formats[f].block_bytes + byte];
    }
    return set & clear;
}

static unsigned scale_bytes(format f)
{
    return codecs[f]->number ? codecs[f]->number->bytes : F16_BYTES;
}

/* Returns the bits of a byte that must be random: all bits outside of the scales that a randomizer
 * sets. */
static unsigned random_bits_of(format f, unsigned byte)
{
    for (const scale_field *s = codecs[f]->scales; s < codecs[f]->scales + MAX_SCALE_FIELDS; s++)
        if (s->size > 0 && byte >= s->offset && byte < s->offset + scale_bytes(f))
            return 0;
    switch (f) {
    case FORMAT_MXFP4:
        return byte == MXFP4_E ? 0 : 0xff;
    case FORMAT_NVFP4:
        return byte < NVFP4_SCALES + 4 ? 0 : 0xff;
    case FORMAT_IQ1_M: /* d is in bits 12 to 15 of the last four words */
        return byte >= IQ1_M_SCALES && byte % 2 ? 0x0f : 0xff;
    default:
        return 0xff;
    }
}

ARENA_TEST(random_blocks_take_all_bits_and_signs)
{
    for (format f = 0; f < FORMAT_COUNT; f++) {
        if (!codecs[f] || codecs[f]->fill)
            continue;
        for (fill_kind kind = 0; kind < FILL_KINDS; kind++) {
            if (kind == FILL_ZERO)
                continue;
            const uint8_t *blocks = fill(a, f, kind, 42).bytes;
            for (unsigned byte = 0; byte < formats[f].block_bytes; byte++) {
                unsigned random = random_bits_of(f, byte);
                if ((varying_bits(f, blocks, byte) & random) != random)
                    fail_msg("%s: byte %u of %s blocks is not random", formats[f].name, byte,
                             fill_kind_names[kind]);
            }
            for (int i = 0; i < MAX_SCALE_FIELDS; i++) {
                const scale_field *s = &codecs[f]->scales[i];
                unsigned top = s->offset + scale_bytes(f) - 1;
                if (s->size > 0)
                    assert_int_equal(varying_bits(f, blocks, top) >> 7, s->either_sign);
            }
        }
    }
}

ARENA_TEST(tiny_scales_are_subnormal)
{
    for (format f = 0; f < FORMAT_COUNT; f++) {
        if (!codecs[f] || codecs[f]->fill)
            continue;
        const uint8_t *block = fill(a, f, FILL_TINY, 42).bytes;
        for (unsigned i = 0; i < FILLED_VALUES / formats[f].block_values; i++)
            for (const scale_field *s = codecs[f]->scales; s < codecs[f]->scales + MAX_SCALE_FIELDS;
                 s++)
                if (s->size > 0 && scale_bytes(f) == F16_BYTES)
                    assert_int_equal(block[i * formats[f].block_bytes + s->offset + 1] & 0x7c, 0);
    }
}

/* Checks the smallest and largest code that a randomizer gives to the 8-bit scale in the first byte
 * of a block. */
static void check_scale_codes(arena *a, format f, fill_kind kind, int least, int most)
{
    const uint8_t *block = fill(a, f, kind, 42).bytes;
    int low = 255, high = 0;
    for (unsigned i = 0; i < FILLED_VALUES / formats[f].block_values; i++) {
        int code = block[i * formats[f].block_bytes];
        low = code < low ? code : low;
        high = code > high ? code : high;
    }
    assert_int_equal(low, least);
    assert_int_equal(high, most);
}

ARENA_TEST(scales_of_eight_bits_take_the_codes_of_their_kind)
{
    check_scale_codes(a, FORMAT_MXFP4, FILL_NORMAL, 119, 122);
    check_scale_codes(a, FORMAT_MXFP4, FILL_OUTLIERS, 119, 126);
    check_scale_codes(a, FORMAT_MXFP4, FILL_TINY, 0, 107);
    check_scale_codes(a, FORMAT_MXFP4, FILL_HUGE, 132, 135);
    check_scale_codes(a, FORMAT_NVFP4, FILL_NORMAL, 4, 11);
    check_scale_codes(a, FORMAT_NVFP4, FILL_OUTLIERS, 4, 45);
    check_scale_codes(a, FORMAT_NVFP4, FILL_TINY, 0, 7);
    check_scale_codes(a, FORMAT_NVFP4, FILL_HUGE, 0x70, 0x7f);
}
