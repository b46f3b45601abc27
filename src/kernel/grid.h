/* Lookup tables of formats with unevenly spaced values. The decoders in src/ref/ show where a block
 * has its codes and indices. */
#pragma once

#include <stdint.h>

/* Weights of nf4 by code, from bitsandbytes: quantiles of the normal distribution (QLoRA). */
extern const float nf4_values[16];

/* Weights of iq4_nl and iq4_xs by code. No value is 0. */
extern const int8_t iq4_values[16];

/* Weights of mxfp4 and nvfp4 by code: e2m1 numbers times two. Code 8 is 0. */
extern const int8_t fp4_values[16];

/* A table of runs of weights by index, before scale and sign. ("Grid" is ggml's word, from
 * lattices, and unrelated to a kernel's grid.)
 *
 * An entry has 16 bits: code_bits per value, the first value lowest; a value is levels[code].
 * Entries ascend. A word has four entries, the first lowest: on a little-endian machine words is an
 * array of 16-bit entries.
 *
 * A kernel's text with a grid is a copy of ggml's data and keeps the notice. */
typedef struct weight_grid {
    const char *name; /* name in PTX */
    unsigned entries;
    unsigned run;       /* values per entry: 8 of 2 bits, or 4 of 3 bits */
    unsigned code_bits; /* bits per value */
    int8_t levels[8];
    const uint64_t *words; /* entries / 4 */
} weight_grid;

extern const weight_grid grid_iq2_xxs, grid_iq2_xs, grid_iq2_s, grid_iq3_xxs, grid_iq3_s;
extern const weight_grid grid_iq1; /* iq1_s and iq1_m: -1, 0 and 1 */

/* The licence notice, one string per line, ends with NULL. */
extern const char *const grid_notice[];

/* Returns the codes of an entry in 16 bits. */
static inline unsigned grid_codes(const weight_grid *g, unsigned index)
{
    return (unsigned)(g->words[index / 4] >> (16 * (index % 4)) & 0xffff);
}

/* Returns an entry's values as bytes, the first lowest; with four values the upper half is 0. */
uint64_t grid_values(const weight_grid *g, unsigned index);
