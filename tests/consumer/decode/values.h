/* Reproducible pseudo-random numbers, and conversions to and from f16. */
#ifndef DECODE_VALUES_H
#define DECODE_VALUES_H

#include <stdint.h>

uint32_t random_bits(uint64_t *state); /* 31 bits */

float random_value(uint64_t *state); /* -1 to 1 */

/* Returns the value of a normal f16; 0, subnormals, infinities and NaN are not supported. */
float half_value(unsigned bits);

float round_to_half(float x);

#endif
