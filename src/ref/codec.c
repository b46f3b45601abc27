#include "ref/codec.h"

#include <string.h>

#include "ref/quant.h"

/* Indexed by format; NULL: not numbers of a tensor. */
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

bool ref_has_minima(format f)
{
    static const struct field {
        format of;
        const char *name;
    } fields[] = {
#define FIELD(id, field, offset) { FORMAT_##id, #field },
#include "kernel/format.def"
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].of == f &&
            (strcmp(fields[i].name, "MIN") == 0 || strcmp(fields[i].name, "DMIN") == 0))
            return true;
    return false;
}

static void fill_random_bits(uint8_t *bytes, uint64_t size, random_source *r)
{
    uint64_t bits;
    for (; size >= sizeof bits; bytes += sizeof bits, size -= sizeof bits) {
        bits = random_next(r);
        memcpy(bytes, &bits, sizeof bits);
    }
    bits = random_next(r);
    memcpy(bytes, &bits, size);
}

static void fill_weights(const codec *c, uint8_t *block, uint64_t blocks, unsigned block_bytes,
                         fill_kind kind, random_source *r)
{
    if (kind == FILL_ZERO) {
        memset(block, 0, blocks * block_bytes);
        return;
    }
    fill_random_bits(block, blocks * block_bytes, r);
    for (uint64_t i = 0; i < blocks; i++, block += block_bytes) {
        for (const scale_field *s = c->scales; s < c->scales + MAX_SCALE_FIELDS; s++)
            if (s->size > 0)
                store_half(block + s->offset, random_scale(s->size, s->either_sign, kind, r));
        if (c->set_scales)
            c->set_scales(block, kind, r);
    }
}

void ref_fill(format f, void *bytes, uint64_t values, fill_kind kind, random_source *r)
{
    const codec *c = codecs[f];
    uint64_t blocks = values / formats[f].block_values;
    unsigned block_bytes = formats[f].block_bytes;
    if (!c)
        fill_random_bits(bytes, blocks * block_bytes, r);
    else if (!c->fill)
        fill_weights(c, bytes, blocks, block_bytes, kind, r);
    else
        c->fill(bytes, blocks, kind, r);
}

/* The factor, or what is the same with the other sign, so that blocks whose values are all of one
 * sign don't add up to more than others do. */
static float either(float factor, random_source *r)
{
    return random_below(r, 2) ? factor : -factor;
}

void ref_resize(format f, void *bytes, uint64_t values, float factor, random_source *r)
{
    const codec *c = codecs[f];
    uint8_t *block = bytes;
    float x;
    for (uint64_t i = 0; i < values; i += formats[f].block_values) {
        float by = either(factor, r);
        switch (f) {
        case FORMAT_F32:
        case FORMAT_Q8_F32:
            memcpy(&x, block, sizeof x);
            x *= by;
            memcpy(block, &x, sizeof x);
            break;
        case FORMAT_F16:
            store_half(block, half_from_float(load_half(block) * by));
            break;
        case FORMAT_BF16:
            x = bfloat_to_float((uint16_t)load_u16(block)) * by;
            store_half(block, bfloat_from_float(x));
            break;
        case FORMAT_E4M3:
            ref_decode(f, block, 1, &x);
            *block = e4m3_from_float(x * by);
            break;
        case FORMAT_E5M2:
            ref_decode(f, block, 1, &x);
            *block = e5m2_from_float(x * by);
            break;
        default:
            for (const scale_field *s = c->scales; s < c->scales + MAX_SCALE_FIELDS; s++)
                if (s->size > 0)
                    store_half(block + s->offset,
                               half_from_float(load_half(block + s->offset) * by));
        }
        block += formats[f].block_bytes;
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

bool ref_spoil(format f, void *bytes, uint64_t number, bool infinite)
{
    enum { HALF_NAN = 0x7e00, HALF_INFINITY = 0x7c00 };
    const codec *c = codecs[f];
    uint8_t *block = bytes;
    uint16_t half = infinite ? HALF_INFINITY : HALF_NAN;
    uint32_t word = infinite ? 0x7f800000 : 0x7fff8000; /* -0 if rounded to bf16 */
    switch (f) {
    case FORMAT_F32:
    case FORMAT_Q8_F32: /* of which d is the first */
        memcpy(block, &word, sizeof word);
        return true;
    case FORMAT_BF16:
        store_half(block, (uint16_t)(word >> 16));
        return true;
    case FORMAT_F16:
        store_half(block, half);
        return true;
    case FORMAT_E4M3:
        if (infinite) /* it has none */
            return false;
        *block = 0x7f;
        return true;
    case FORMAT_E5M2:
        *block = (uint8_t)(half >> 8);
        return true;
    case FORMAT_Q8_1:
        store_half(block + Q8_1_D, half);
        return true;
    default:
        if (!c || c->scales[0].size <= 0)
            return false;
        number = c->scales[1].size > 0 ? number % MAX_SCALE_FIELDS : 0;
        store_half(block + c->scales[number].offset, half);
        return true;
    }
}

void ref_spoil_either(float *values, uint64_t count)
{
    random_source r = { 0 };
    memcpy(&r.state, values, sizeof *values);
    bool infinite = random_below(&r, 2);
    ref_spoil(FORMAT_F32, values + random_below(&r, count), 0, infinite);
}
