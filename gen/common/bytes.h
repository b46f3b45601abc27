/* Quants stored as bytes: loads from blocks aligned to only 2 bytes, and conversions to f32.
 *
 * Three exact conversions from a byte to f32:
 *   - cvt of a signed byte: one instruction, but at a quarter of full rate on sm_75 to sm_89
 *     (16 per clock and SM);
 *   - for at most seven bits, a prmt into the mantissa and a subtraction: two instructions at full
 *     rate. Better for narrow formats, which decode many weights per clock;
 *   - for a signed byte and its scale, a prmt and one fused multiply-add: scaled_signed_bytes.
 */
#pragma once

#include "ptx/ptx.h"

/* Truth tables for lop3: (a & b) | c, (a & b) ^ c, (a ^ b) & c, a ^ b ^ c, and bitwise a ? b : c.
 */
enum { AND_OR = 0xea, AND_XOR = 0x6a, XOR_AND = 0x28, XOR_XOR = 0x96, CHOOSE = 0xca };

/* Copies a byte to all four bytes of a word. */
#define IN_EACH_BYTE(byte) imm(U32, 0x01010101LL * (byte))

/* Loads a value from read-only memory. The type of base says which: U32 is shared, U64 is global.
 */
val ptx_load_packed(ptx *p, type t, val base, int64_t offset);
#define load_packed(p, t, base, offset) ptx_load_packed(p, t, V(base), offset)

/* Loads 32 bits from an address that is a multiple of 2: two 16-bit loads and a prmt. */
val ptx_load_word_by_halves(ptx *p, val base, int64_t offset);
#define load_word_by_halves(p, base, offset) ptx_load_word_by_halves(p, V(base), offset)

/* Return byte n (0 to 3) of a word as f32. */
val byte_as_f32(ptx *p, val word, unsigned n);
val signed_byte_as_f32(ptx *p, val word, unsigned n);

/* Decode the four e4m3 or e5m2 values of a word, to f32 or two f16 pairs. Exact; NaN stays NaN. */
void e4m3_as_f32(ptx *p, val word, val values[4]);
void e5m2_as_f32(ptx *p, val word, val values[4]);
val2 e5m2_as_halves(ptx *p, val word);

/* Computes each signed byte of words times scale. The result is exact if scale has at most 15
 * significant bits, as an f16 has. A byte with bit 7 flipped, in bits 8 to 15 of the float 2^15,
 * makes 2^15 + 2^7 + q. A fused multiply-add then subtracts (2^15 + 2^7) scale. Nine full-rate
 * instructions per word. */
void scaled_signed_bytes(ptx *p, const val *words, unsigned count, val scale, val *values);

/* Make floats of the lower seven bits b of each byte: 1 + b / 128, or b / 128 - 0.5. Bit 7 must be
 * set. The float's bytes are 0x3f, the byte and zeros; bit 7 becomes the exponent's lowest bit. */
void fractions_from_one(ptx *p, val bytes, val fraction[4]);
void centred_fractions(ptx *p, val bytes, val fraction[4]);
