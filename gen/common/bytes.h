/* Quants in bytes: loading them from blocks that are only 2-byte aligned, making floats of them.
 *
 * Ways from a byte to a float, all exact:
 *   - the hardware's conversion of a signed byte, one instruction, but at a quarter of the usual
 *     rate on several GPUs (sm_75 to sm_89: 16 a clock and SM);
 *   - for at most seven bits, a byte permutation into the mantissa and a subtraction: two
 *     instructions at full rate. Better where a weight is few bytes, so that many of them come per
 *     clock;
 *   - for a signed byte and its scale, the same with a fused multiply-add: scaled_signed_bytes.
 */
#ifndef PTXGEN_GEN_COMMON_BYTES_H
#define PTXGEN_GEN_COMMON_BYTES_H

#include "ptx/ptx.h"

/* lop3 tables: (a & b) | c, (a & b) ^ c, (a ^ b) & c, a ^ b ^ c, and bits of b where a has ones, of
 * c where it has none. */
enum { AND_OR = 0xea, AND_XOR = 0x6a, XOR_AND = 0x28, XOR_XOR = 0x96, CHOOSE = 0xca };

/* A byte in all four bytes of a word. */
#define IN_EACH_BYTE(byte) imm(U32, 0x01010101LL * (byte))

/* A load of what no thread writes, from global or from shared memory by the address's type. */
val ptx_load_packed(ptx *p, type t, val base, int64_t offset);
#define load_packed(p, t, base, offset) ptx_load_packed(p, t, V(base), offset)

/* The 32 bits at such an address that is a multiple of 2: two loads and a permutation. */
val ptx_load_word_by_halves(ptx *p, val base, int64_t offset);
#define load_word_by_halves(p, base, offset) ptx_load_word_by_halves(p, V(base), offset)

/* Byte 0..3 of a word as f32, unsigned or signed. */
val byte_as_f32(ptx *p, val word, unsigned n);
val signed_byte_as_f32(ptx *p, val word, unsigned n);

/* The four e4m3 or e5m2 values of a word as f32, or as two words of two f16; exact, a NaN stays
 * one.
 */
void e4m3_as_f32(ptx *p, val word, val values[4]);
void e5m2_as_f32(ptx *p, val word, val values[4]);
val2 e5m2_as_halves(ptx *p, val word);

/* The signed bytes of words times a scale of at most 15 significant bits, as an f16 has, all exact:
 * a byte with its bit 7 flipped, in bits 8 to 15 of the float 2^15, makes 2^15 + 2^7 + q of it, and
 * a fused multiply-add takes (2^15 + 2^7) scale off. Nine instructions at full rate a word. */
void scaled_signed_bytes(ptx *p, const val *words, unsigned count, val scale, val *values);

/* Floats 1 + b / 128 of the lower seven bits b of each byte, or b / 128 - 0.5; bit 7 must be set:
 * 0x3f, the byte and zeros are that float, the byte's own bit 7 being the exponent's lowest. */
void fractions_from_one(ptx *p, val bytes, val fraction[4]);
void centred_fractions(ptx *p, val bytes, val fraction[4]);

#endif
