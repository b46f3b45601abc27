/* The frequencies of RoPE, worked out while a kernel is generated. */
#ifndef PTXGEN_GEN_ROWS_ROPE_TABLE_H
#define PTXGEN_GEN_ROWS_ROPE_TABLE_H

#include <stdint.h>

#include "ref/reference.h"

enum { ROPE_MOST_PAIRS = 128 };

/* A word a pair: the turns that it makes from one position to the next, scaling included.
 *
 * Without factors the fraction of a turn times 2^64, so that the low 64 bits of its product with a
 * position are that position's fraction of a turn, right to 2^-32 up to position 2^23 and to
 * 2^-24 at any one of 32 bits. Whole turns do not count. With factors, by which the kernel divides,
 * two f32 whose sum it is, the larger one in the low half. */
void rope_table(const rope_options *o, uint64_t words[ROPE_MOST_PAIRS]);

#endif
