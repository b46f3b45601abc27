/* Weights that are floats: see gemm_weights.h. Beyond the end of a row, which may come anywhere in
 * a step, they are zeros. */
#include "gen/products/gemm_weights.h"
#include "kernel/format.h"
#include "gen/common/bytes.h"

enum { LINE = 16, LINE_WORDS = 4 };

/* Lines of the thread's part of a step, as far as they are there: zeros are as good a bit pattern
 * in every format. */
static void load_lines(ptx *p, const gemm_weights *w, unsigned step, unsigned there, val *words)
{
    unsigned bytes = formats[w->format].block_bytes, lines = GEMM_OWN * bytes / LINE;
    unsigned line_values = LINE / bytes;
    val at = mad(p, w->half, GEMM_OWN * bytes, w->at);
    for (unsigned line = 0; line < lines; line++) {
        int64_t offset = (int64_t)step * GEMM_STEP * bytes + line * LINE;
        if (there == GEMM_STEP) {
            val4 loaded = ld_shared_v4(p, U32, at, offset);
            for (unsigned i = 0; i < LINE_WORDS; i++)
                words[line * LINE_WORDS + i] = loaded.v[i];
            continue;
        }
        var parts[LINE_WORDS];
        for (unsigned i = 0; i < LINE_WORDS; i++)
            parts[i] = var_u32(p, 0);
        val first = mad(p, w->half, GEMM_OWN, imm(U32, line * line_values));
        PTX_IF (p, lt(p, first, there)) {
            val4 loaded = ld_shared_v4(p, U32, at, offset);
            for (unsigned i = 0; i < LINE_WORDS; i++)
                assign(p, parts[i], loaded.v[i]);
        }
        for (unsigned i = 0; i < LINE_WORDS; i++)
            words[line * LINE_WORDS + i] = get(p, parts[i]);
    }
}

static void step_of_f16(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                        val words[GEMM_OWN / 2])
{
    load_lines(p, w, step, there, words);
}

static void step_of_bf16(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                         val words[GEMM_OWN / 2])
{
    val pairs[GEMM_OWN / 2];
    load_lines(p, w, step, there, pairs);
    for (unsigned i = 0; i < GEMM_OWN / 2; i++) {
        val low = bits_as(p, F32, shl(p, pairs[i], 16));
        val high = bits_as(p, F32, bit_and(p, pairs[i], imm(U32, 0xffff0000)));
        words[i] = pack_halves(p, mul(p, low, w->scale), mul(p, high, w->scale));
    }
}

static void step_of_f32(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                        val words[GEMM_OWN / 2])
{
    val values[GEMM_OWN];
    load_lines(p, w, step, there, values);
    for (unsigned i = 0; i < GEMM_OWN / 2; i++)
        words[i] = pack_halves(p, mul(p, bits_as(p, F32, values[2 * i]), w->scale),
                               mul(p, bits_as(p, F32, values[2 * i + 1]), w->scale));
}

/* Both formats of 8 bits have less range than f16. */
static void step_of_e4m3(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                         val words[GEMM_OWN / 2])
{
    val fours[GEMM_OWN / 4], values[4];
    load_lines(p, w, step, there, fours);
    for (unsigned i = 0; i < GEMM_OWN / 4; i++) {
        e4m3_as_f32(p, fours[i], values);
        words[2 * i] = pack_halves(p, values[0], values[1]);
        words[2 * i + 1] = pack_halves(p, values[2], values[3]);
    }
}

static void step_of_e5m2(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                         val words[GEMM_OWN / 2])
{
    val fours[GEMM_OWN / 4];
    load_lines(p, w, step, there, fours);
    for (unsigned i = 0; i < GEMM_OWN / 4; i++) {
        val2 pairs = e5m2_as_halves(p, fours[i]);
        words[2 * i] = pairs.v[0];
        words[2 * i + 1] = pairs.v[1];
    }
}

const gemm_decoder gemm_f16 = { .step = step_of_f16 };
const gemm_decoder gemm_bf16 = { .step = step_of_bf16 };
const gemm_decoder gemm_f32 = { .step = step_of_f32 };
const gemm_decoder gemm_e4m3 = { .step = step_of_e4m3 };
const gemm_decoder gemm_e5m2 = { .step = step_of_e5m2 };
