/* Four-bit codes of weights, looked up in a table of sixteen signed bytes by byte permutations.
 *
 * A permutation looks up four codes in eight bytes: a selector's nibble is the number of a byte,
 * and where its bit 3 is set, the result is the sign of that byte, 0 or -1. So the table's halves
 * are looked up by the codes, and by the codes with bit 3 flipped, and the sum of both is the
 * code's value in one half and a sign in the other. The halves are made so that this adds up: of
 * -127 and 1, by codes 0 and 8, they hold -127 and 2. (They can, but where code i < 8 has a
 * negative value and i + 8 has -1.)
 */
#ifndef PTXGEN_GEN_FORMATS_CODES_H
#define PTXGEN_GEN_FORMATS_CODES_H

#include "ptx/ptx.h"

/* The halves as words of four bytes. A permutation takes one immediate. */
typedef struct code_table {
    val low[2], high[2];
} code_table;
code_table code_table_new(ptx *p, const int8_t values[16]);

/* Of the eight codes in a word those in its lower (0) and upper (1) half, in their order:
 * parts[half] are two words of signed bytes whose sums are the values. */
void look_up_codes(ptx *p, const code_table *table, val codes, val parts[2][2]);

#endif
