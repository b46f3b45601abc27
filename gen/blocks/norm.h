/* What an RMS norm multiplies values by, beside their weights. */
#ifndef PTXGEN_GEN_BLOCKS_NORM_H
#define PTXGEN_GEN_BLOCKS_NORM_H

#include "family/family.h"
#include "ptx/ptx.h"

/* 1 / sqrt(mean + epsilon), of the mean of their squares; 0 where that is infinite. */
val norm_factor(ptx *p, const instance *in, val mean);

/* The same, but of an infinite mean NaN. */
val norm_factor_or_nan(ptx *p, const instance *in, val mean);

#endif
