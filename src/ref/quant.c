/* Decodes and fills blocks with the codecs, defines the activation formats, and has ggml's
 * quantizer. Source: ggml, src/ggml-quants.c (quantize_row_q8_1_ref).
 *
 *   q8_1    x = d * q, activations of dp4a kernels
 *      0    fp16 d      amax / 127
 *      2    fp16 s      sum of q, times d before rounding to fp16
 *      4    32 x s8
 *
 *   q8_f32  x = d * q, activations of streaming products, made by q8_rows
 *      0    f32 d       amax / 127
 *      4    32 x s8 */
#include "ref/quant.h"

#include <math.h>
#include <string.h>

#include "ref/codec.h"

/* Indexed by format; NULL: not a tensor format. */
static const codec *const codecs[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = &codec_##id,
#define CODED           FORMAT
#include "kernel/format.def"
};

void ref_decode(format f, const void *blocks, uint64_t values, float *decoded)
{
    const uint8_t *block = blocks;
    if (codecs[f]->decode_many) {
        codecs[f]->decode_many(block, values / formats[f].block_values, decoded);
        return;
    }
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        codecs[f]->decode(block, decoded + i);
        block += formats[f].block_bytes;
    }
}

void ref_decode_rounded(format f, const void *blocks, uint64_t values, float *decoded)
{
    const uint8_t *block = blocks;
    if (!codecs[f]->decode_rounded) {
        ref_decode(f, blocks, values, decoded);
        return;
    }
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        codecs[f]->decode_rounded(block, decoded + i);
        block += formats[f].block_bytes;
    }
}

bool ref_has_minima(format f)
{
    return codecs[f]->scales[1].size > 0;
}

static const float_kind *kind_of(const codec *c)
{
    return c->number ? c->number : &number_f16;
}

void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r)
{
    const codec *c = codecs[f];
    uint64_t blocks = values / formats[f].block_values;
    unsigned block_bytes = formats[f].block_bytes;
    uint8_t *block = bytes;
    if (c && c->fill) {
        c->fill(bytes, blocks, kind, r);
        return;
    }
    if (c && kind == FILL_ZERO) {
        memset(bytes, 0, blocks * block_bytes);
        return;
    }
    const uint64_t size = blocks * block_bytes;
    for (uint64_t at = 0; at <= size; at += sizeof(uint64_t)) {
        uint64_t bits = random_next(r), left = size - at;
        memcpy(block + at, &bits, left < sizeof bits ? left : sizeof bits);
    }
    for (uint64_t i = 0; c && i < blocks; i++, block += block_bytes) {
        for (const scale_field *s = c->scales; s < c->scales + MAX_SCALE_FIELDS; s++)
            if (s->size > 0) {
                uint16_t scale = random_scale(s->size, s->either_sign, kind, r);
                if (c->number)
                    c->number->store(block + s->offset, half_to_float(scale));
                else
                    store_half(block + s->offset, scale);
            }
        if (c->set_scales)
            c->set_scales(block, kind, r);
    }
}

void ref_store(format f, void *bytes, float value)
{
    kind_of(codecs[f])->store(bytes, value);
}

/* The factor has a random sign, so that sums of blocks of one sign do not grow. */
void ref_resize(format f, void *bytes, uint64_t values, float factor, random_source *r)
{
    const codec *c = codecs[f];
    const float_kind *n = kind_of(c);
    uint8_t *block = bytes;
    for (uint64_t i = 0; i < values;
         i += formats[f].block_values, block += formats[f].block_bytes) {
        float by = random_below(r, 2) ? factor : -factor;
        for (const scale_field *s = c->scales; s < c->scales + MAX_SCALE_FIELDS; s++)
            if (s->size > 0)
                n->store(block + s->offset, n->load(block + s->offset) * by);
    }
}

void ref_set_sign(format f, void *bytes, uint64_t values, bool negative)
{
    uint8_t *block = bytes, sign = negative ? 0x80 : 0;
    bool floats = formats[f].block_values == 1;
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        uint8_t *top = block + (floats ? formats[f].block_bytes : sizeof(uint16_t)) - 1;
        if (floats || f == FORMAT_Q8_0)
            *top = (*top & 0x7f) | sign;
        for (unsigned q = Q8_0_QUANTS; f == FORMAT_Q8_0 && q < Q8_0_BYTES; q++)
            block[q] = block[q] > 0x80 ? (uint8_t)-block[q] : block[q] & 0x7f;
        block += formats[f].block_bytes;
    }
}

bool ref_spoil(format f, void *block, uint64_t which, bool infinite)
{
    const codec *c = codecs[f];
    if (!c || c->scales[0].size <= 0)
        return false;
    const float_kind *n = kind_of(c);
    uint32_t bits = infinite ? n->infinity : n->nan;
    if (!bits)
        return false;
    which = c->scales[1].size > 0 ? which % MAX_SCALE_FIELDS : 0;
    memcpy((uint8_t *)block + c->scales[which].offset, &bits, n->bytes);
    return true;
}

void ref_spoil_either(float *values, uint64_t count)
{
    random_source r = { 0 };
    memcpy(&r.state, values, sizeof *values);
    bool infinite = random_below(&r, 2);
    ref_spoil(FORMAT_F32, values + random_below(&r, count), 0, infinite);
}

static void decode_q8_1(const uint8_t *block, float *x)
{
    float d = load_half(block + Q8_1_D);
    for (int i = 0; i < Q8_1_VALUES; i++)
        x[i] = d * (float)(int8_t)block[Q8_1_QUANTS + i];
}

static void fill_q8_1(uint8_t *block, uint64_t count, fill_kind kind, random_source *r)
{
    float x[Q8_1_VALUES];
    for (; count--; block += Q8_1_BYTES) {
        random_floats(kind, x, Q8_1_VALUES, r);
        ref_encode_q8_1(x, Q8_1_VALUES, block);
    }
}

const codec codec_Q8_1 = { decode_q8_1, .scales = { { Q8_1_D, 1, false } }, .fill = fill_q8_1 };

q8_1_block q8_1_load(const void *block)
{
    const uint8_t *bytes = block;
    q8_1_block loaded = { .d = load_half(bytes + Q8_1_D), .s = load_half(bytes + Q8_1_S) };
    memcpy(loaded.q, bytes + Q8_1_QUANTS, sizeof loaded.q);
    return loaded;
}

/* Quantizes 32 values. Returns d, and the sum of q. */
static float quantize(const float *x, uint8_t *q, int *sum)
{
    float largest = 0;
    for (int i = 0; i < Q8_1_VALUES; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    float d = largest / Q8_1_LARGEST;
    float inverse = d != 0 ? 1 / d : 0;
    *sum = 0;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        float scaled = x[i] * inverse; /* below 2^31 */
        int whole = (int)scaled;
        float rest = scaled - (float)whole;
        int rounded = whole + (rest >= 0.5f) - (rest <= -0.5f); /* like roundf, without a call */
        *sum += rounded;
        q[i] = (uint8_t)rounded;
    }
    return d;
}

void ref_encode_q8_1(const float *x, uint64_t values, void *blocks)
{
    uint8_t *block = blocks;
    for (uint64_t i = 0; i < values; i += Q8_1_VALUES, block += Q8_1_BYTES) {
        int sum;
        float d = quantize(x + i, block + Q8_1_QUANTS, &sum);
        store_half(block + Q8_1_D, half_from_float(d));
        store_half(block + Q8_1_S, half_from_float((float)sum * d));
    }
}

static void decode_q8_f32(const uint8_t *block, float *x)
{
    float d = number_f32.load(block + Q8_F32_D);
    for (int i = 0; i < Q8_F32_VALUES; i++)
        x[i] = d * (float)(int8_t)block[Q8_F32_QUANTS + i];
}

static void fill_q8_f32(uint8_t *block, uint64_t count, fill_kind kind, random_source *r)
{
    float x[Q8_F32_VALUES];
    for (; count--; block += Q8_F32_BYTES) {
        int sum;
        random_floats(kind, x, Q8_F32_VALUES, r);
        number_f32.store(block + Q8_F32_D, quantize(x, block + Q8_F32_QUANTS, &sum));
    }
}

const codec codec_Q8_F32 = { decode_q8_f32, .scales = { { Q8_F32_D, 1, false } },
                             .number = &number_f32, .fill = fill_q8_f32 };
