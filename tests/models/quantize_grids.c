/* Quantizers of the formats with a grid, where one index stands for 8 or 4 weights.
 * src/ref/decode_iq.c describes the layouts. */
#include <math.h>
#include <stddef.h>

#include "kernel/grid.h"
#include "quantize.h"
#include "ref/codec.h"

enum {
    SUPER_BLOCK = 256,
    EIGHT = 8,
    MOST_EIGHTS = 4 /* runs of eight in a group */,
    MOST_GROUPS = 16
};

/* The scales of a format with a grid. A group of values is the grid times d * (2 s + 1) * part. */
typedef struct grid_format {
    format format;
    const weight_grid *grid;
    unsigned group, most_s;
    float part;
    float most;      /* grid value that the largest weight gets; below the grid's maximum if few
                        entries reach it */
    bool even_signs; /* the number of minus signs in a run of eight is even */
    unsigned d;      /* offset of d; iq1_m spreads d over its scales instead */
} grid_format;

static const grid_format grid_formats[] = {
    { FORMAT_IQ2_XXS, &grid_iq2_xxs, 32, 15, 0.125f, 43, true, IQ2_XXS_D },
    { FORMAT_IQ2_XS, &grid_iq2_xs, 16, 15, 0.125f, 43, true, IQ2_XS_D },
    { FORMAT_IQ2_S, &grid_iq2_s, 16, 15, 0.125f, 43, false, IQ2_S_D },
    { FORMAT_IQ3_XXS, &grid_iq3_xxs, 32, 15, 0.25f, 62, true, IQ3_XXS_D },
    { FORMAT_IQ3_S, &grid_iq3_s, 32, 15, 1, 15, false, IQ3_S_D },
    { FORMAT_IQ1_S, &grid_iq1, 32, 7, 1, 1.7f, false, IQ1_S_D },
    { FORMAT_IQ1_M, &grid_iq1, 16, 7, 1, 1.7f, false, 0 },
};

/* The stored code of eight weights. */
typedef struct eight {
    unsigned index[2], signs, minus_delta;
} eight;

static float error_of(const weight_grid *g, unsigned entry, const float *target, float enough)
{
    uint64_t values = grid_values(g, entry);
    float error = 0;
    for (unsigned i = 0; i < g->run && error < enough; i++) {
        float off = target[i] - (float)(int8_t)(values >> (8 * i) & 0xff);
        error += off * off;
    }
    return error;
}

static unsigned nearest_entry(const weight_grid *g, const float *target, float *least)
{
    unsigned best = 0;
    *least = HUGE_VALF;
    for (unsigned i = 0; i < g->entries; i++) {
        float error = error_of(g, i, target, *least);
        if (error < *least) {
            best = i;
            *least = error;
        }
    }
    return best;
}

/* Returns the code of eight weights with signs. If the number of minus signs must be even, the
 * smallest weight may get the wrong sign: its magnitude then counts as negative. */
static eight with_signs(const grid_format *f, const float *x, float unit)
{
    float target[EIGHT], error;
    unsigned smallest = 0, count = 0;
    eight e = { 0 };
    for (unsigned i = 0; i < EIGHT; i++) {
        target[i] = fabsf(x[i]) / unit;
        if (target[i] < target[smallest])
            smallest = i;
        count += x[i] < 0;
        e.signs |= (unsigned)(x[i] < 0) << i;
    }
    if (f->even_signs && count % 2) {
        e.signs ^= 1u << smallest;
        target[smallest] = -target[smallest];
    }
    for (unsigned i = 0; i < EIGHT / f->grid->run; i++)
        e.index[i] = nearest_entry(f->grid, target + i * f->grid->run, &error);
    return e;
}

/* Codes `count` runs of eight with one sign of delta. Returns the sum of squared errors in units.
 */
static float with_delta(const float *x, unsigned count, float unit, unsigned minus, eight *eights)
{
    float sum = 0, error, target[EIGHT];
    for (unsigned r = 0; r < count; r++) {
        for (unsigned i = 0; i < EIGHT; i++)
            target[i] = x[EIGHT * r + i] / unit - (minus ? -0.125f : 0.125f);
        eights[r] = (eight){ .minus_delta = minus };
        eights[r].index[0] = nearest_entry(&grid_iq1, target, &error);
        sum += error;
    }
    return sum;
}

static void choose_delta(const float *x, unsigned count, float unit, eight *eights)
{
    eight other[MOST_EIGHTS];
    float plus = with_delta(x, count, unit, 0, eights);
    if (with_delta(x, count, unit, 1, other) < plus)
        for (unsigned r = 0; r < count; r++)
            eights[r] = other[r];
}

static void put(uint8_t *byte, unsigned from, unsigned code)
{
    *byte = (uint8_t)(*byte | code << from);
}

static void put_word(uint8_t *at, unsigned bytes, unsigned word)
{
    for (unsigned i = 0; i < bytes; i++)
        put(&at[i], 0, word >> (8 * i) & 0xff);
}

static void store_eight(format f, unsigned r, const eight *e, uint8_t *block)
{
    unsigned code = e->signs & 127, low = e->index[0] & 255, high = e->index[0] >> 8;
    switch (f) {
    case FORMAT_IQ2_XXS:
        block[IQ2_XXS_GROUPS + 8 * (r / 4) + r % 4] = (uint8_t)low;
        put_word(block + IQ2_XXS_GROUPS + 8 * (r / 4) + 4, 4, code << (7 * (r % 4)));
        break;
    case FORMAT_IQ2_XS:
        put_word(block + IQ2_XS_INDICES + 2 * r, 2, e->index[0] | code << 9);
        break;
    case FORMAT_IQ2_S:
        block[IQ2_S_INDICES + r] = (uint8_t)low;
        block[IQ2_S_SIGNS + r] = (uint8_t)e->signs;
        put(&block[IQ2_S_INDICES_HIGH + r / 4], 2 * (r % 4), high);
        break;
    case FORMAT_IQ3_XXS:
        for (unsigned i = 0; i < 2; i++)
            block[IQ3_XXS_INDICES + 2 * r + i] = (uint8_t)e->index[i];
        put_word(block + IQ3_XXS_SIGNS + 4 * (r / 4), 4, code << (7 * (r % 4)));
        break;
    case FORMAT_IQ3_S:
        for (unsigned i = 0; i < 2; i++) {
            block[IQ3_S_INDICES + 2 * r + i] = (uint8_t)(e->index[i] & 255);
            put(&block[IQ3_S_INDICES_HIGH + r / 4], (2 * r + i) % 8, e->index[i] >> 8);
        }
        block[IQ3_S_SIGNS + r] = (uint8_t)e->signs;
        break;
    case FORMAT_IQ1_S:
        block[IQ1_S_INDICES + r] = (uint8_t)low;
        put_word(block + IQ1_S_INDICES_HIGH + 2 * (r / 4), 2,
                 high << (3 * (r % 4)) | e->minus_delta << 15);
        break;
    default: /* iq1_m */
        block[IQ1_M_INDICES + r] = (uint8_t)low;
        put(&block[IQ1_M_INDICES_HIGH + r / 2], 4 * (r % 2), high | e->minus_delta << 3);
    }
}

static void store_scale(format f, unsigned group, unsigned s, uint8_t *block)
{
    unsigned byte = group / 2, from = 4 * (group % 2);
    switch (f) {
    case FORMAT_IQ2_XXS:
        put(&block[IQ2_XXS_GROUPS + 8 * group + 7], 4, s);
        break;
    case FORMAT_IQ2_XS:
        put(&block[IQ2_XS_SCALES + byte], from, s);
        break;
    case FORMAT_IQ2_S:
        put(&block[IQ2_S_SCALES + byte], from, s);
        break;
    case FORMAT_IQ3_XXS:
        put(&block[IQ3_XXS_SIGNS + 4 * group + 3], 4, s);
        break;
    case FORMAT_IQ3_S:
        put(&block[IQ3_S_SCALES + byte], from, s);
        break;
    case FORMAT_IQ1_S:
        put_word(block + IQ1_S_INDICES_HIGH + 2 * group, 2, s << 12);
        break;
    default:
        put_word(block + IQ1_M_SCALES + 2 * (group / 4), 2, s << (3 * (group % 4)));
    }
}

static float store_d(const grid_format *f, float d, uint8_t *block)
{
    uint8_t bytes[2];
    if (f->format != FORMAT_IQ1_M)
        return quantize_store_scale(block + f->d, d);
    d = quantize_store_scale(bytes, d);
    for (unsigned k = 0; k < 4; k++)
        put_word(block + IQ1_M_SCALES + 2 * k, 2, (load_u16(bytes) >> (4 * k) & 15) << 12);
    return d;
}

static void quantize_super_block(const grid_format *f, const float *x, uint8_t *block)
{
    float units[MOST_GROUPS], part = f->part, largest = 0;
    unsigned groups = SUPER_BLOCK / f->group, eights = f->group / EIGHT;
    for (unsigned j = 0; j < groups; j++) {
        units[j] = fabsf(quantize_extreme(x + f->group * j, f->group)) / f->most;
        largest = fmaxf(largest, units[j]);
    }
    float d = store_d(f, largest / (part * (float)(2 * f->most_s + 1)), block);
    for (unsigned j = 0; j < groups && d > 0; j++) {
        int s = quantize_nearest(units[j] / part - d, 2 * d, 0, (int)f->most_s);
        float unit = d * (float)(2 * s + 1) * part;
        const float *of_group = x + f->group * j;
        eight e[MOST_EIGHTS];
        store_scale(f->format, j, (unsigned)s, block);
        if (f->format == FORMAT_IQ1_S)
            choose_delta(of_group, eights, unit, e);
        for (unsigned r = 0; r < eights; r++) {
            if (f->format == FORMAT_IQ1_M)
                choose_delta(of_group + EIGHT * r, 1, unit, e + r);
            else if (f->format != FORMAT_IQ1_S)
                e[r] = with_signs(f, of_group + EIGHT * r, unit);
            store_eight(f->format, eights * j + r, &e[r], block);
        }
    }
}

bool quantize_by_grid(format f, const float *x, uint8_t *block)
{
    for (size_t i = 0; i < sizeof grid_formats / sizeof *grid_formats; i++)
        if (grid_formats[i].format == f) {
            quantize_super_block(&grid_formats[i], x, block);
            return true;
        }
    return false;
}
