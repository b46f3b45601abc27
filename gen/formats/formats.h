/* All weight formats, by their number, and their exact way from a block to its weights. */
#ifndef PTXGEN_GEN_FORMATS_FORMATS_H
#define PTXGEN_GEN_FORMATS_FORMATS_H

#include "gen/formats/weight_format.h"

/* Returns what products need to know of a format that W may have (a FORMAT of format.def). */
const weight_format *weight_format_of(format f);

/* Unpack eight weights: 16 half + known .. + 7 of a block, for a thread that has a half of each 32;
 * and of a row, weights 8 piece .. 8 piece + 7. */
void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED]);
void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED]);

#endif
