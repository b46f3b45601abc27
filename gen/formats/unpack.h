/* The plain way from a block to its weights: bytes are loaded one by one, and each weight is
 * computed as ggml's decoder does it, in the same order of operations. Slow, and the one to compare
 * with.
 */
#ifndef PTXGEN_GEN_FORMATS_UNPACK_H
#define PTXGEN_GEN_FORMATS_UNPACK_H

#include "kernel/format.h"
#include "gen/common/bytes.h"
#include "ptx/ptx.h"

enum { UNPACKED = 8 }; /* neighbouring weights at once */

/* Weights first .. first + 7 of the block at an address, of global or shared memory; first, a u32,
 * is a multiple of 8. Of a format of single values the block is the eight, and first 0. */
typedef void unpack(ptx *p, val block, val first, val w[UNPACKED]);

#define FORMAT(id, ...) extern unpack unpack_##id;
#define CODED           FORMAT
#include "kernel/format.def"

/* By the format; weights 16 half + known .. + 7, of a thread that has a half of each 32: half is 0
 * or 1, known a multiple of 8 whose bit of 16 is 0; and of a row, weights 8 piece .. 8 piece + 7.
 */
void unpack_block(ptx *p, format f, val block, val first, val w[UNPACKED]);
void unpack_half(ptx *p, format f, val block, val half, unsigned known, val w[UNPACKED]);
void unpack_piece(ptx *p, format f, val row, val piece, val w[UNPACKED]);

/* What the unpackers share: the address so many bytes behind another; an fp16 as f32; of eight
 * neighbouring bytes the field of so many bits from bit shift on. */
val byte_behind(ptx *p, val block, val bytes);
val load_half_as_f32(ptx *p, val block, unsigned offset);
void load_fields(ptx *p, val at, unsigned offset, val shift, unsigned bits, val fields[UNPACKED]);

/* Eight of 32 nibbles: byte j has value j in its low one, j + 16 in its high one. */
void load_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* Eight of 256 two-bit values: with index = 128 h + 32 g + l, bits 2g and 2g + 1 of byte 32 h + l.
 */
void load_two_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* d * (bits + offset) of eight small integers, and d * bits + m. */
void scale_integers(ptx *p, val d, int offset, val w[UNPACKED]);
void scale_and_add(ptx *p, val d, val m, val w[UNPACKED]);

#endif
