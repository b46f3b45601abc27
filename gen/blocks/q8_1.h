/* q8_1: 32 activations in 36 bytes, as ggml stores them (block_q8_1).
 *
 *   offset  0  f16  d        value = d * q
 *           2  f16  s        d * sum(q), before d was rounded
 *           4  32 x s8       q
 *
 * A block is a multiple of 4 bytes: quants can be read as aligned words from an aligned start.
 */
#ifndef PTXGEN_GEN_BLOCKS_Q8_1_H
#define PTXGEN_GEN_BLOCKS_Q8_1_H

enum { Q8_1_VALUES = 32, Q8_1_BYTES = 36, Q8_1_D = 0, Q8_1_S = 2, Q8_1_QUANTS = 4 };

#endif
