/* What the references of kernels that turn heads and write caches share. */
#ifndef PTXGEN_REF_ROPE_H
#define PTXGEN_REF_ROPE_H

#include "ref/reference.h"

/* The row of m that is written to this one of a cache, by the input that has the positions: whether
 * there is one. */
bool ref_row_at(const problem *p, unsigned positions, uint64_t cache, uint64_t cache_row,
                uint64_t *row);

/* Turns a pair of a head's values in place. */
void ref_turn_pair(const rope_options *o, uint64_t pair, double divisor, uint64_t position,
                   ref_value *values);

#endif
