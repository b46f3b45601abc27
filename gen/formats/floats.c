/* Formats of single floats: F32, F16, BF16, E4M3 and E5M2. A bf16 is the upper half of an f32. */
#include "gen/formats/tools.h"

enum { LINE = 16, LINE_WORDS = 4 };

static void unpack_f32(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i++)
        w[i] = load_packed(p, F32, block, i * F32_BYTES);
}

static void unpack_f16(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (unsigned i = 0; i < UNPACKED; i++)
        w[i] = load_half_as_f32(p, block, i * F16_BYTES);
}

static void unpack_bf16(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i++)
        w[i] = bits_as(p, F32, shl(p, load_packed(p, U16, block, i * BF16_BYTES), 16));
}

/* Unpacks eight E4M3 values from two aligned words: rows are multiples of 16 bytes. */
static void unpack_e4m3(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i += 4)
        e4m3_as_f32(p, load_packed(p, U32, block, i), w + i);
}

static void unpack_e5m2(ptx *p, val block, val first, val w[UNPACKED])
{
    (void)first;
    for (int i = 0; i < UNPACKED; i += 4)
        e5m2_as_f32(p, load_packed(p, U32, block, i), w + i);
}

static void stream_f32(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        values[i] = bits_as(p, F32, words->v[i]);
}

static void stream_f16(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 8; i++)
        values[i] = convert(p, F32, halves(p, words->v[i / 2]).v[i % 2]);
}

static void stream_bf16(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 8; i++)
        values[i] = bits_as(
            p, F32, i % 2 ? bit_and(p, words->v[i / 2], 0xffff0000) : shl(p, words->v[i / 2], 16));
}

static void stream_e4m3(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        e4m3_as_f32(p, words->v[i], values + (size_t)4 * i);
}

static void stream_e5m2(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        e5m2_as_f32(p, words->v[i], values + (size_t)4 * i);
}

/* Loads the thread's part of a step, values of `bytes` bytes. Values beyond a row's end are 0,
 * which has the same bit pattern in every format. */
static void gemm_load_values(ptx *p, const gemm_row *row, unsigned bytes, unsigned step,
                             unsigned valid, val *words)
{
    unsigned lines = GEMM_OWN * bytes / LINE, line_values = LINE / bytes;
    val at = mad(p, row->half, GEMM_OWN * bytes, row->at);
    for (unsigned line = 0; line < lines; line++) {
        int64_t offset = (int64_t)step * GEMM_STEP * bytes + line * LINE;
        if (valid == GEMM_STEP) {
            val4 loaded = ld_shared_v4(p, U32, at, offset);
            for (unsigned i = 0; i < LINE_WORDS; i++)
                words[line * LINE_WORDS + i] = loaded.v[i];
            continue;
        }
        var parts[LINE_WORDS];
        for (unsigned i = 0; i < LINE_WORDS; i++)
            parts[i] = var_u32(p, 0);
        val first = mad(p, row->half, GEMM_OWN, imm(U32, line * line_values));
        PTX_IF (p, lt(p, first, valid)) {
            val4 loaded = ld_shared_v4(p, U32, at, offset);
            for (unsigned i = 0; i < LINE_WORDS; i++)
                assign(p, parts[i], loaded.v[i]);
        }
        for (unsigned i = 0; i < LINE_WORDS; i++)
            words[line * LINE_WORDS + i] = get(p, parts[i]);
    }
}

static void gemm_f32(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    val values[GEMM_OWN];
    gemm_load_values(p, row, F32_BYTES, step, valid, values);
    for (unsigned i = 0; i < GEMM_OWN / 2; i++)
        words[i] = pack_halves(p, mul(p, bits_as(p, F32, values[2 * i]), row->scale),
                               mul(p, bits_as(p, F32, values[2 * i + 1]), row->scale));
}

static void gemm_f16(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    gemm_load_values(p, row, F16_BYTES, step, valid, words);
}

static void gemm_bf16(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    val pairs[GEMM_OWN / 2];
    gemm_load_values(p, row, BF16_BYTES, step, valid, pairs);
    for (unsigned i = 0; i < GEMM_OWN / 2; i++) {
        val low = bits_as(p, F32, shl(p, pairs[i], 16));
        val high = bits_as(p, F32, bit_and(p, pairs[i], imm(U32, 0xffff0000)));
        words[i] = pack_halves(p, mul(p, low, row->scale), mul(p, high, row->scale));
    }
}

/* E4M3 and E5M2 need no row scale: their range is within that of f16. */
static void gemm_e4m3(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    val fours[GEMM_OWN / 4], values[4];
    gemm_load_values(p, row, E4M3_BYTES, step, valid, fours);
    for (unsigned i = 0; i < GEMM_OWN / 4; i++) {
        e4m3_as_f32(p, fours[i], values);
        words[2 * i] = pack_halves(p, values[0], values[1]);
        words[2 * i + 1] = pack_halves(p, values[2], values[3]);
    }
}

static void gemm_e5m2(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    val fours[GEMM_OWN / 4];
    gemm_load_values(p, row, E5M2_BYTES, step, valid, fours);
    for (unsigned i = 0; i < GEMM_OWN / 4; i++) {
        val2 pairs = e5m2_as_halves(p, fours[i]);
        words[2 * i] = pairs.v[0];
        words[2 * i + 1] = pairs.v[1];
    }
}

const weight_format weight_format_F32 = {
    .unpack = unpack_f32, .stream.floats = stream_f32, .gemm.step = gemm_f32, .beyond_f16 = true
};
const weight_format weight_format_F16 = { .unpack = unpack_f16,
                                          .stream.floats = stream_f16,
                                          .gemm.step = gemm_f16 };
const weight_format weight_format_BF16 = {
    .unpack = unpack_bf16, .stream.floats = stream_bf16, .gemm.step = gemm_bf16, .beyond_f16 = true
};
const weight_format weight_format_E4M3 = { .unpack = unpack_e4m3,
                                           .stream.floats = stream_e4m3,
                                           .gemm.step = gemm_e4m3 };
const weight_format weight_format_E5M2 = { .unpack = unpack_e5m2,
                                           .stream.floats = stream_e5m2,
                                           .gemm.step = gemm_e5m2 };
