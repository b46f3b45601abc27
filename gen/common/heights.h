/* The order of floats, and the first of several by it. */
#ifndef PTXGEN_GEN_COMMON_HEIGHTS_H
#define PTXGEN_GEN_COMMON_HEIGHTS_H

#include "ptx/ptx.h"

/* A float as a u32 that compares as floats do; -0 is 0, every NaN the largest number. 0 is none. */
enum { HEIGHT_BITS = 32 };
#define HEIGHT_NAN            0xffffffff
#define HEIGHT_INFINITY       0xff800000
#define HEIGHT_MINUS_INFINITY 0x007fffff
val height_of_float(ptx *p, val number);
val float_of_height(ptx *p, val height);

/* Returns true if a number comes before another one: the larger height first, then the lower
 * number. */
val is_ahead(ptx *p, val height, val number, val other_height, val other_number);

/* The first so far, and the first of what the lanes of a warp have, told to all of them. */
typedef struct first_number {
    var height, number;
} first_number;
void take_if_ahead(ptx *p, const first_number *f, val height, val number);
void first_of_warp(ptx *p, const first_number *f);

#endif
