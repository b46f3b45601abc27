/* Fragments of tensor cores, mma.m16n8k16 of f16 with sums of f32. */
#ifndef PTXGEN_GEN_COMMON_FRAGMENTS_H
#define PTXGEN_GEN_COMMON_FRAGMENTS_H

#include "ptx/ptx.h"

/* Adds a product of fragments to a fragment of sums. */
void fragment_add(ptx *p, const var sums[4], val4 a, val2 b);

#endif
