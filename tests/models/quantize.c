/* Quantizers of the formats without a grid. src/ref/decode_*.c describe the layouts. */
#include "quantize.h"

#include <math.h>
#include <string.h>

#include "kernel/grid.h"
#include "ref/codec.h"

enum { SUPER_BLOCK = 256, MOST_SUBS = 16, FP4_LARGEST = 12 };

float quantize_extreme(const float *x, unsigned count)
{
    float extreme = 0;
    for (unsigned i = 0; i < count; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    return extreme;
}

float quantize_store_scale(uint8_t *at, float scale)
{
    store_half(at, half_from_float(scale));
    return load_half(at);
}

int quantize_nearest(float x, float scale, int low, int high)
{
    float q = scale == 0 ? 0 : roundf(x / scale);
    return (int)fminf(fmaxf(q, (float)low), (float)high);
}

/* Puts a code into a byte, starting at a bit. The bits must be 0. */
static void put(uint8_t *byte, int from, unsigned code)
{
    *byte = (uint8_t)(*byte | code << from);
}

/* Puts the code of weight i into nibbles. The second half of `count` weights is in the high
 * nibbles. */
static void put_nibble(uint8_t *nibbles, int count, int i, unsigned code)
{
    put(&nibbles[i % (count / 2)], 4 * (i / (count / 2)), code);
}

static void put_two_bits(uint8_t *bits, int i, unsigned code)
{
    put(&bits[32 * (i / 128) + i % 32], 2 * (i % 128 / 32), code);
}

/* Puts 32 codes of four bits, or of five bits if `fifth` is not NULL. */
static void put_codes(const float *x, float d, float min, int low, int high, uint8_t *fifth,
                      uint8_t *nibbles)
{
    for (int i = 0; i < 32; i++) {
        unsigned code = (unsigned)(quantize_nearest(x[i] - min, d, low, high) - low);
        put_nibble(nibbles, 32, i, code & 15);
        if (fifth)
            put(&fifth[i / 8], i % 8, code >> 4);
    }
}

static void signed_codes(const float *x, int levels, uint8_t *d_at, uint8_t *fifth,
                         uint8_t *nibbles)
{
    float d = quantize_store_scale(d_at, quantize_extreme(x, 32) / (float)-levels);
    put_codes(x, d, 0, -levels, levels - 1, fifth, nibbles);
}

typedef struct range {
    float low, high;
} range;

static range range_of(const float *x, int count)
{
    range r = { x[0], x[0] };
    for (int i = 1; i < count; i++) {
        r.low = fminf(r.low, x[i]);
        r.high = fmaxf(r.high, x[i]);
    }
    return r;
}

static void codes_with_min(const float *x, int most, uint8_t *d_and_min, uint8_t *fifth,
                           uint8_t *nibbles)
{
    range r = range_of(x, 32);
    float d = quantize_store_scale(d_and_min, (r.high - r.low) / (float)most);
    put_codes(x, d, quantize_store_scale(d_and_min + 2, r.low), 0, most, fifth, nibbles);
}

static void q8_0(const float *x, uint8_t *block)
{
    float d = quantize_store_scale(block + Q8_0_D, fabsf(quantize_extreme(x, 32)) / 127);
    for (int i = 0; i < Q8_0_VALUES; i++)
        block[Q8_0_QUANTS + i] = (uint8_t)quantize_nearest(x[i], d, -127, 127);
}

/* A super-block whose sub-blocks each have a scale and a min. Both are integers times an fp16. */
typedef struct minima {
    int scale[MOST_SUBS], min[MOST_SUBS], q[SUPER_BLOCK];
} minima;

static minima with_minima(const float *x, int subs, int most_scale, int most, uint8_t *d_and_dmin)
{
    float scales[MOST_SUBS], mins[MOST_SUBS], d = 0, dmin = 0;
    int values = SUPER_BLOCK / subs;
    minima m;
    for (int j = 0; j < subs; j++) {
        range r = range_of(x + values * j, values);
        mins[j] = fmaxf(-r.low, 0);
        scales[j] = (fmaxf(r.high, -mins[j]) + mins[j]) / (float)most;
        d = fmaxf(d, scales[j] / (float)most_scale);
        dmin = fmaxf(dmin, mins[j] / (float)most_scale);
    }
    d = quantize_store_scale(d_and_dmin, d);
    dmin = quantize_store_scale(d_and_dmin + 2, dmin);
    for (int i = 0; i < SUPER_BLOCK; i++) {
        int j = i / values;
        m.scale[j] = quantize_nearest(scales[j], d, 0, most_scale);
        m.min[j] = quantize_nearest(mins[j], dmin, 0, most_scale);
        m.q[i] = quantize_nearest(x[i] + dmin * (float)m.min[j], d * (float)m.scale[j], 0, most);
    }
    return m;
}

static void q2_k(const float *x, uint8_t *block)
{
    minima m = with_minima(x, 16, 15, 3, block + Q2_K_D);
    for (int i = 0; i < Q2_K_VALUES; i++) {
        block[Q2_K_SCALES + i / 16] = (uint8_t)(m.scale[i / 16] | m.min[i / 16] << 4);
        put_two_bits(block + Q2_K_QUANTS, i, (unsigned)m.q[i]);
    }
}

static void q4_k_or_q5_k(const float *x, uint8_t *block, uint8_t *fifth, uint8_t *nibbles)
{
    minima m = with_minima(x, 8, 63, fifth ? 31 : 15, block + Q4_K_D);
    uint8_t *packed = block + Q4_K_SCALES;
    for (int j = 0; j < 8; j++) {
        unsigned scale = (unsigned)m.scale[j], min = (unsigned)m.min[j];
        if (j < 4) {
            put(&packed[j], 0, scale);
            put(&packed[j + 4], 0, min);
            continue;
        }
        put(&packed[j + 4], 0, (scale & 15) | (min & 15) << 4);
        put(&packed[j - 4], 6, scale >> 4);
        put(&packed[j], 6, min >> 4);
    }
    for (int i = 0; i < SUPER_BLOCK; i++) {
        put(&nibbles[32 * (i / 64) + i % 32], 4 * (i / 32 % 2), (unsigned)m.q[i] & 15);
        if (fifth)
            put(&fifth[i % 32], i / 32, (unsigned)m.q[i] >> 4);
    }
}

/* A super-block whose sub-blocks each have a signed scale: d times an integer. */
typedef struct signed_scales {
    float d;
    int scale[MOST_SUBS];
} signed_scales;

static signed_scales with_scales(const float *x, int subs, float levels, int most, uint8_t *d_at)
{
    float scales[MOST_SUBS] = { 0 };
    int values = SUPER_BLOCK / subs;
    signed_scales s;
    for (int j = 0; j < subs; j++)
        scales[j] = quantize_extreme(x + values * j, (unsigned)values) / levels;
    float largest = fabsf(quantize_extreme(scales, (unsigned)subs));
    s.d = quantize_store_scale(d_at, largest / (float)most);
    for (int j = 0; j < subs; j++)
        s.scale[j] = quantize_nearest(scales[j], s.d, -most, most);
    return s;
}

static void q3_k(const float *x, uint8_t *block)
{
    signed_scales s = with_scales(x, 16, -4, 31, block + Q3_K_D);
    uint8_t *packed = block + Q3_K_SCALES;
    for (int k = 0; k < 16; k++) {
        unsigned scale = (unsigned)(s.scale[k] + 32);
        put(&packed[k % 8], 4 * (k / 8), scale & 15);
        put(&packed[8 + k % 4], 2 * (k / 4), scale >> 4);
    }
    for (int i = 0; i < Q3_K_VALUES; i++) {
        float scale = s.d * (float)s.scale[i / 16];
        unsigned q = (unsigned)(quantize_nearest(x[i], scale, -4, 3) + 4);
        put_two_bits(block + Q3_K_QUANTS, i, q & 3);
        put(&block[Q3_K_HIGH_BITS + i % 32], i / 32, q >> 2);
    }
}

static void q6_k(const float *x, uint8_t *block)
{
    signed_scales s = with_scales(x, 16, -32, 127, block + Q6_K_D);
    for (int i = 0; i < Q6_K_VALUES; i++) {
        float scale = s.d * (float)s.scale[i / 16];
        unsigned q = (unsigned)(quantize_nearest(x[i], scale, -32, 31) + 32);
        int half = i / 128, group = i % 128 / 32;
        block[Q6_K_SCALES + i / 16] = (uint8_t)s.scale[i / 16];
        put(&block[Q6_K_QUANTS + 64 * half + 32 * (group & 1) + i % 32], 4 * (group / 2), q & 15);
        put_two_bits(block + Q6_K_HIGH_BITS, i, q >> 4);
    }
}

static unsigned nearest_of_table(float x, float scale, const int8_t table[16])
{
    unsigned best = 0;
    for (unsigned i = 1; i < 16; i++)
        if (fabsf(x - scale * (float)table[i]) < fabsf(x - scale * (float)table[best]))
            best = i;
    return best;
}

static void table_codes(const float *x, int count, float scale, const int8_t table[16],
                        uint8_t *nibbles)
{
    for (int i = 0; i < count; i++)
        put_nibble(nibbles, count, i, nearest_of_table(x[i], scale, table));
}

static void iq4_nl(const float *x, uint8_t *block)
{
    float d = quantize_store_scale(block + IQ4_NL_D, quantize_extreme(x, 32) / iq4_values[0]);
    table_codes(x, 32, d, iq4_values, block + IQ4_NL_QUANTS);
}

static void iq4_xs(const float *x, uint8_t *block)
{
    signed_scales s = with_scales(x, 8, iq4_values[0], 31, block + IQ4_XS_D);
    for (int j = 0; j < 8; j++) {
        unsigned scale = (unsigned)(s.scale[j] + 32);
        put(&block[IQ4_XS_SCALES_LOW + j / 2], 4 * (j % 2), scale & 15);
        put(&block[IQ4_XS_SCALES_HIGH + j / 4], 2 * (j % 4), scale >> 4);
        table_codes(x + 32 * j, 32, s.d * (float)s.scale[j], iq4_values,
                    block + IQ4_XS_QUANTS + 16 * j);
    }
}

/* Uses the least power of two that clips nothing. */
static void mxfp4(const float *x, uint8_t *block)
{
    float most = fabsf(quantize_extreme(x, 32)) / FP4_LARGEST;
    if (most == 0)
        return;
    int e = (int)fmaxf(ceilf(log2f(most)) + 128, 0);
    block[MXFP4_E] = (uint8_t)e;
    table_codes(x, 32, ldexpf(1, e - 128), fp4_values, block + MXFP4_QUANTS);
}

/* Returns half the value of a ue4m3 code: 128 times the fp16 with the same bits. */
static float nvfp4_scale(unsigned code)
{
    return 128 * half_to_float((uint16_t)(code << 7));
}

static void nvfp4(const float *x, uint8_t *block)
{
    enum { LARGEST_CODE = 0x7e };
    for (int j = 0; j < 4; j++) {
        float scale = fabsf(quantize_extreme(x + 16 * j, 16)) / FP4_LARGEST;
        unsigned code = 0;
        while (code < LARGEST_CODE &&
               fabsf(nvfp4_scale(code + 1) - scale) < fabsf(nvfp4_scale(code) - scale))
            code++;
        block[NVFP4_SCALES + j] = (uint8_t)code;
        table_codes(x + 16 * j, 16, nvfp4_scale(code), fp4_values, block + NVFP4_QUANTS + 8 * j);
    }
}

/* Stores and returns the scale of a ternary block: 0.6 of the largest magnitude. For bell-shaped
 * weights this gives about the least error. */
static float ternary_scale(const float *x, unsigned count, uint8_t *d_at)
{
    return quantize_store_scale(d_at, 0.6f * fabsf(quantize_extreme(x, count)));
}

/* Returns the byte that encodes five trits as a fraction in base 3, the first trit highest. */
static uint8_t byte_of_trits(const unsigned trits[5])
{
    unsigned number = 0;
    for (int n = 0; n < 5; n++)
        number = 3 * number + trits[n];
    return (uint8_t)((number * 256 + 242) / 243);
}

static void tq1_0(const float *x, uint8_t *block)
{
    static const struct {
        int byte, weight, width, trits;
    } parts[] = { { 0, 0, 32, 5 }, { 32, 160, 16, 5 }, { TQ1_0_LAST_QUANTS, 240, 4, 4 } };
    float d = ternary_scale(x, TQ1_0_VALUES, block + TQ1_0_D);
    for (int part = 0; part < 3; part++)
        for (int i = 0; i < parts[part].width; i++) {
            unsigned trits[5] = { 0 };
            for (int n = 0; n < parts[part].trits; n++) {
                int at = parts[part].weight + n * parts[part].width + i;
                trits[n] = (unsigned)(quantize_nearest(x[at], d, -1, 1) + 1);
            }
            block[parts[part].byte + i] = byte_of_trits(trits);
        }
}

static void tq2_0(const float *x, uint8_t *block)
{
    float d = ternary_scale(x, TQ2_0_VALUES, block + TQ2_0_D);
    for (int i = 0; i < TQ2_0_VALUES; i++)
        put_two_bits(block + TQ2_0_QUANTS, i, (unsigned)(quantize_nearest(x[i], d, -1, 1) + 1));
}

static void q2_0(const float *x, uint8_t *block)
{
    float d = ternary_scale(x, Q2_0_VALUES, block + Q2_0_D);
    for (int i = 0; i < Q2_0_VALUES; i++)
        put(&block[Q2_0_QUANTS + i / 4], 2 * (i % 4),
            (unsigned)(quantize_nearest(x[i], d, -1, 2) + 1));
}

static void q1_0(const float *x, uint8_t *block)
{
    float sum = 0;
    for (int i = 0; i < Q1_0_VALUES; i++) {
        sum += fabsf(x[i]);
        put(&block[Q1_0_BITS + i / 8], i % 8, x[i] >= 0);
    }
    quantize_store_scale(block + Q1_0_D, sum / Q1_0_VALUES);
}

static void quantize_block(format f, const float *x, uint8_t *block)
{
    switch (f) {
    case FORMAT_F32:
        memcpy(block, x, sizeof *x);
        break;
    case FORMAT_F16:
        store_half(block, half_from_float(*x));
        break;
    case FORMAT_BF16:
        store_half(block, bfloat_from_float(*x));
        break;
    case FORMAT_Q4_0:
        signed_codes(x, 8, block, NULL, block + Q4_0_QUANTS);
        break;
    case FORMAT_Q5_0:
        signed_codes(x, 16, block, block + Q5_0_FIFTH_BITS, block + Q5_0_QUANTS);
        break;
    case FORMAT_Q4_1:
        codes_with_min(x, 15, block, NULL, block + Q4_1_QUANTS);
        break;
    case FORMAT_Q5_1:
        codes_with_min(x, 31, block, block + Q5_1_FIFTH_BITS, block + Q5_1_QUANTS);
        break;
    case FORMAT_Q8_0:
        q8_0(x, block);
        break;
    case FORMAT_Q2_K:
        q2_k(x, block);
        break;
    case FORMAT_Q3_K:
        q3_k(x, block);
        break;
    case FORMAT_Q4_K:
        q4_k_or_q5_k(x, block, NULL, block + Q4_K_QUANTS);
        break;
    case FORMAT_Q5_K:
        q4_k_or_q5_k(x, block, block + Q5_K_FIFTH_BITS, block + Q5_K_QUANTS);
        break;
    case FORMAT_Q6_K:
        q6_k(x, block);
        break;
    case FORMAT_IQ4_NL:
        iq4_nl(x, block);
        break;
    case FORMAT_IQ4_XS:
        iq4_xs(x, block);
        break;
    case FORMAT_MXFP4:
        mxfp4(x, block);
        break;
    case FORMAT_NVFP4:
        nvfp4(x, block);
        break;
    case FORMAT_TQ1_0:
        tq1_0(x, block);
        break;
    case FORMAT_TQ2_0:
        tq2_0(x, block);
        break;
    case FORMAT_Q1_0:
        q1_0(x, block);
        break;
    case FORMAT_Q2_0:
        q2_0(x, block);
        break;
    default:
        quantize_by_grid(f, x, block);
    }
}

void quantize(format f, const float *x, uint64_t values, void *blocks)
{
    uint8_t *block = blocks;
    memset(blocks, 0, format_bytes(f, values));
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        quantize_block(f, x + i, block);
        block += formats[f].block_bytes;
    }
}
