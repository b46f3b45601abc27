/* What formats are made with: fields of blocks, the lines around a piece, and small integers as
 * pairs of f16. */
#ifndef PTXGEN_GEN_FORMATS_TOOLS_H
#define PTXGEN_GEN_FORMATS_TOOLS_H

#include "gen/formats/weight_format.h"

/* Four bytes of a table as a word, each larger by an offset. */
uint32_t word_of_bytes(const int8_t bytes[4], int offset);

/* The address so many bytes behind another; an fp16 as f32; of eight neighbouring bytes the field
 * of so many bits from bit shift on. */
val byte_behind(ptx *p, val block, val bytes);
val load_half_as_f32(ptx *p, val block, unsigned offset);
void load_fields(ptx *p, val at, unsigned offset, val shift, unsigned bits, val fields[UNPACKED]);

/* Eight of 32 nibbles: byte j has value j in its low one, j + 16 in its high one. */
void load_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* Eight of 256 two-bit values: with index = 128 h + 32 g + l, bits 2g and 2g + 1 of byte 32 h + l.
 */
void load_two_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* Adds the bit of each value in a field of 32 bytes, bit index / 32 of byte index % 32, as bit
 * number place of it. */
void add_one_bits(ptx *p, val block, unsigned offset, val first, unsigned place, val w[UNPACKED]);

/* d * (bits + offset) of eight small integers, and d * bits + m. */
void scale_integers(ptx *p, val d, int offset, val w[UNPACKED]);
void scale_and_add(ptx *p, val d, val m, val w[UNPACKED]);

/* The piece of a format whose parts have 16 bytes each, one behind the other. */
val stream_piece_of_sixteen(ptx *p, val part);

/* Of four parts of a super-block: which half of it a part is of, and which sixteen of 32 bytes. */
val part_half(ptx *p, val part);
val part_sixteen(ptx *p, val part);

/* The first of the lines around a piece: the second one is 16 bytes behind it. */
val stream_first_line(ptx *p, const stream_format *f, val piece);

/* The piece in the two lines of these words. */
void stream_join(ptx *p, const stream_shift *shift, const val *lines, val piece[STREAM_WORDS]);

/* For pieces start bytes behind a multiple of 16, a multiple of alignment, to be turned back by so
 * many bytes, a multiple of their alignment. */
stream_shift stream_shift_new(ptx *p, const stream_format *f, val start, unsigned alignment,
                              val back, unsigned back_alignment);

/* Sixteen bytes turned back: byte i becomes what byte (i + bytes) % 16 was. */
void stream_turn(ptx *p, val bytes, unsigned alignment, val words[STREAM_WORDS]);

/* Pairs of f16 by masks: bits below 10 of a half beside those of 1024 are 1024 + q, exactly, and
 * 1024 + 16 q where q is four bits further up, so that it needs no shift. Subtracted from that, in
 * f16 and exactly, is what makes of q a number of either sign, so that little is lost when it is
 * multiplied by a scale that was rounded to f16. Pairs are bytes 0 and 2, 1 and 3 of a word. */
#define PAIR_OF(half) imm(U32, 0x00010001LL * (half))
enum { HALF_1024 = 0x6400, GEMM_OWN_WORDS = GEMM_OWN / 4 };

/* q - center of pairs that are 1024 + 2^up q. */
val pair_centred(ptx *p, val pair, unsigned up, int center);

/* Both halves the same f16. */
val both_halves(ptx *p, val number);

/* The thread's 16 neighbouring bytes of 32 that are so many bytes behind the chunk's first. */
void gemm_load_words(ptx *p, const gemm_row *row, int64_t offset, val words[GEMM_OWN_WORDS]);

#endif
