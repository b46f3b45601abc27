/* Formats of few bits a weight with one scale, neighbouring weights side by side in a byte.
 * Source: ggml, src/ggml-quants.c (dequantize_row_*).
 *
 *   q1_0    w = d where the bit is set, else -d
 *      0    fp16 d
 *      2    16 x u8     bit i % 8 of byte i / 8 is weight i's
 *
 *   q2_0    w = d * (q - 1); q = 3 decodes too
 *      0    fp16 d
 *      2    16 x u8     two bits of each weight: weight i's are bits 2 (i % 4) on of byte i / 4.
 *                       Not two_bits (codec.h), whose four weights of a byte stand 32 apart
 */
#include "ref/codec.h"

static void decode_q1_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q1_0_D);
    for (int i = 0; i < Q1_0_VALUES; i++)
        w[i] = block[Q1_0_BITS + i / 8] >> (i % 8) & 1 ? d : -d;
}

static void decode_q2_0(const uint8_t *block, float *w)
{
    float d = load_half(block + Q2_0_D);
    for (int i = 0; i < Q2_0_VALUES; i++)
        w[i] = d * (float)((block[Q2_0_QUANTS + i / 4] >> (2 * (i % 4)) & 3) - 1);
}

const codec codec_Q1_0 = { decode_q1_0, .scales = { { Q1_0_D, 5e-2f, false } } };
const codec codec_Q2_0 = { decode_q2_0, .scales = { { Q2_0_D, 4e-2f, false } } };
