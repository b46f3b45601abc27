/* Q4_K: 256 weights in 144 bytes, as ggml stores them (block_q4_K).
 *
 *   offset  0  f16  d          weight = d * scale[j] * q - dmin * min[j],  j = index / 32
 *           2  f16  dmin
 *           4  12 x u8         8 six-bit scales and 8 six-bit mins, packed (see q4k.c)
 *          16  128 x u8        nibbles: byte i of chunk c holds values 64c + i (low)
 *                              and 64c + 32 + i (high)
 *
 * A super-block is a multiple of 16 bytes, so aligned rows keep all super-blocks aligned. The 16
 * bytes before the nibbles are one load.
 *
 * A lane of chunk c needs only the scales and mins of sub-blocks 2c and 2c + 1. Their bytes and
 * bits in the packed words depend on c only, so selectors and masks are computed once, before the
 * loop. */
#pragma once

#include "kernel/format.h"
#include "ptx/ptx.h"

enum {
    Q4K_CHUNK_VALUES = 64,
    Q4K_CHUNK_BYTES = 32,
    Q4K_SUB_BLOCK = 32, /* values that share a scale and a min */
};

/* How to decode the scales of one chunk, for all super-blocks. */
typedef struct q4k_chunk {
    val selector; /* selects the chunk's two bytes of each word */
    val shift;    /* 2 for chunks 2 and 3, whose upper bits are in the first two words, else 0 */
    val mask_six, mask_last; /* bits of the first two words, and of the third */
} q4k_chunk;
q4k_chunk q4k_chunk_new(ptx *p, val chunk);

/* Header of a super-block for chunk c: d and dmin as f32; packed: scales 2c, 2c + 1, mins 2c, 2c +
 * 1. */
typedef struct q4k_header {
    val d, dmin;
    val packed;
} q4k_header;
q4k_header q4k_header_of(ptx *p, val4 word, const q4k_chunk *c); /* from the header's four words */
q4k_header q4k_header_at(ptx *p, val row, int64_t offset, const q4k_chunk *c);
#define q4k_load_header(p, row, offset, chunk) q4k_header_at(p, V(row), offset, chunk)
