/* Random numbers, the same every time, and numbers of half precision. */
#ifndef DECODE_VALUES_H
#define DECODE_VALUES_H

#include <stdint.h>

uint32_t random_bits(uint64_t *state); /* 31 */

float random_value(uint64_t *state); /* -1 to 1 */

/* The number that the 16 bits of a half are, other than 0, subnormal ones, infinities and NaN. */
float half_value(unsigned bits);

float round_to_half(float x);

#endif
