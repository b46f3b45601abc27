/* Helpers of the formats: fields of blocks, pieces in two lines, small integers as pairs of f16. */
#pragma once

#include "gen/formats/weight_format.h"

/* Returns four table entries as the bytes of a word, each plus an offset. */
uint32_t word_of_bytes(const int8_t bytes[4], int offset);

/* Returns the address `bytes` past block. */
val byte_at(ptx *p, val block, val bytes);
/* Loads an f16 and converts it to f32. */
val load_half_as_f32(ptx *p, val block, unsigned offset);
/* Loads eight bytes and extracts from each the field of `bits` bits from bit `shift` on. */
void load_fields(ptx *p, val at, unsigned offset, val shift, unsigned bits, val fields[UNPACKED]);

/* Loads eight of 32 nibbles: byte j holds value j in its low nibble, j + 16 in the high one. */
void load_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* Loads eight of 256 two-bit values: index 128h + 32g + l is bits 2g and 2g + 1 of byte 32h + l. */
void load_two_bits(ptx *p, val block, unsigned offset, val first, val w[UNPACKED]);

/* Sets bit `place` of eight values from a 32-byte field: bit index / 32 of byte index % 32. */
void add_one_bits(ptx *p, val block, unsigned offset, val first, unsigned place, val w[UNPACKED]);

/* Computes d * (w + offset) of eight small integers. */
void scale_integers(ptx *p, val d, int offset, val w[UNPACKED]);
/* Computes d * w + m of eight small integers. */
void scale_and_add(ptx *p, val d, val m, val w[UNPACKED]);

/* Returns 16 * part: the offset of a lane's piece where pieces are consecutive. */
val stream_piece_of_sixteen(ptx *p, val part);

/* Return which half of a super-block a lane has of four, and which 16 of each 32 bytes. */
val part_half(ptx *p, val part);
val part_sixteen(ptx *p, val part);

/* Returns the address of the first line around a piece; the second is 16 bytes further. If the
 * format swaps, it is the second in odd lanes, and stream_other_line returns the other. */
val stream_first_line(ptx *p, const stream_format *f, val piece);
val stream_other_line(ptx *p, val line);

/* Joins the two lines in eight words to the piece that they hold. */
void stream_join(ptx *p, const stream_shift *shift, const val *lines, val piece[STREAM_WORDS]);

/* Returns the shift of pieces that start `start` bytes past a multiple of 16, a multiple of
 * alignment. They are rotated back by `back` bytes, a multiple of back_alignment. */
stream_shift stream_shift_new(ptx *p, const stream_format *f, val start, unsigned alignment,
                              val back, unsigned back_alignment);

/* Rotates sixteen bytes: byte i becomes the old byte (i + bytes) % 16. */
void stream_rotate(ptx *p, val bytes, unsigned alignment, val words[STREAM_WORDS]);

/* Pairs of f16 by masks: q below 2^10, or'ed into the bits of 1024, is exactly 1024 + q. q << 4
 * gives 1024 + 16 q, without a shift. Subtracting 1024 plus a centre is exact in f16 and leaves a
 * signed number, so little is lost when it is multiplied by a scale rounded to f16. A pair is bytes
 * 0 and 2, or 1 and 3, of a word. */
#define PAIR_OF(half) imm(U32, 0x00010001LL * (half))
enum { HALF_1024 = 0x6400, GEMM_OWN_WORDS = GEMM_OWN / 4 };

/* Returns q - center of a pair that is 1024 + 2^up q. */
val pair_centred(ptx *p, val pair, unsigned up, int center);

/* Returns an f32 as an f16 in both halves of a word. */
val both_halves(ptx *p, val number);

/* Loads the thread's 16 of the 32 bytes at `offset` in the chunk. */
void gemm_load_words(ptx *p, const gemm_row *row, int64_t offset, val words[GEMM_OWN_WORDS]);
