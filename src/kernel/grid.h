/* The lookup tables of formats whose codes are no evenly spaced numbers. Where a block has its
 * codes and indices stands where the format is decoded, in src/ref/. */
#ifndef PTXGEN_KERNEL_GRID_H
#define PTXGEN_KERNEL_GRID_H

#include <stdint.h>

/* Weights of nf4 by code, as bitsandbytes has them: quantiles of the normal distribution, of QLoRA
 * (Dettmers and others, 2023). */
extern const float nf4_values[16];

/* Weights of iq4_nl and iq4_xs by code. None is 0. */
extern const int8_t iq4_values[16];

/* Weights of mxfp4 and nvfp4 by code: e2m1 numbers, doubled. The upper half is the lower one
 * negated; code 8 is 0. */
extern const int8_t fp4_values[16];

/* The runs of weights that an index may stand for, before scale and sign. ("Grid" is ggml's word,
 * from lattices; it has nothing to do with a kernel's grid of blocks.)
 *
 * An entry takes 16 bits, code_bits for each of its values, the first value's lowest; a value is
 * levels[code]. Entries ascend. A word has four of them, the first one lowest: in memory of a
 * little-endian machine, words are an array of 16-bit entries.
 *
 * A kernel's text that holds a grid is a copy of ggml's data: it keeps the notice. */
typedef struct weight_grid {
    const char *name; /* as a word of a program */
    unsigned entries;
    unsigned run;       /* values of an entry: 8 of 2 bits, or 4 of 3 bits */
    unsigned code_bits; /* of a value */
    int8_t levels[8];
    const uint64_t *words; /* entries / 4 */
} weight_grid;

extern const weight_grid grid_iq2_xxs, grid_iq2_xs, grid_iq2_s, grid_iq3_xxs, grid_iq3_s;
extern const weight_grid grid_iq1; /* of iq1_s and iq1_m: -1, 0 and 1 */

/* The notice in lines, up to NULL. */
extern const char *const grid_notice[];

/* The codes of an entry, in 16 bits. */
static inline unsigned grid_codes(const weight_grid *g, unsigned index)
{
    return (unsigned)(g->words[index / 4] >> (16 * (index % 4)) & 0xffff);
}

/* The values of an entry as bytes, the first one lowest; four of them leave the upper half 0. */
uint64_t grid_values(const weight_grid *g, unsigned index);

#endif
