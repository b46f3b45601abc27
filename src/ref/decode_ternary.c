/* Super-blocks of 256 weights of three values, q - 1 being -1, 0 and 1.
 * Source: ggml, src/ggml-quants.c (dequantize_row_*).
 *
 *   tq1_0   w = d * (q - 1)
 *      0    32 x u8     byte i: weights i, 32 + i .. 128 + i, a trit each
 *     32    16 x u8     byte i: weights 160 + i, 176 + i .. 224 + i
 *     48    4 x u8      byte i: weights 240 + i, 244 + i .. 252 + i
 *     52    fp16 d
 *           A byte is the fraction 0.t0 t1 t2 t3 t4 in base 3, times 256: trit n is the integer
 * part of three times the fraction that is left when the byte is multiplied by 3^n.
 *
 *   tq2_0   w = d * (q - 1); q = 3 decodes too
 *      0    64 x u8     two-bit values (two_bits in codec.h)
 *     64    fp16 d
 */
#include "ref/codec.h"

static int trit(unsigned byte, int n)
{
    static const unsigned powers[] = { 1, 3, 9, 27, 81 };
    return (int)((byte * powers[n] & 255) * 3 >> 8);
}

static void decode_tq1_0(const uint8_t *block, float *w)
{
    /* The weights of bytes from first on: width of them to a trit. */
    static const struct {
        int first, width, trits;
    } parts[] = { { TQ1_0_QUANTS, 32, 5 },
                  { TQ1_0_QUANTS + 32, 16, 5 },
                  { TQ1_0_LAST_QUANTS, 4, 4 } };
    float d = load_half(block + TQ1_0_D);
    for (int part = 0; part < 3; part++)
        for (int n = 0; n < parts[part].trits; n++)
            for (int i = 0; i < parts[part].width; i++)
                *w++ = d * (float)(trit(block[parts[part].first + i], n) - 1);
}

static void decode_tq2_0(const uint8_t *block, float *w)
{
    float d = load_half(block + TQ2_0_D);
    for (int i = 0; i < TQ2_0_VALUES; i++)
        w[i] = d * (float)(two_bits(block + TQ2_0_QUANTS, i) - 1);
}

const codec codec_TQ1_0 = { decode_tq1_0, .scales = { { TQ1_0_D, 5e-2f, false } } };
const codec codec_TQ2_0 = { decode_tq2_0, .scales = { { TQ2_0_D, 4e-2f, false } } };
