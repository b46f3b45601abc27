/* The tests' quantizers: their error on normally distributed weights must be close to ggml's. */
#include <math.h>

#include "models/quantize.h"
#include "ref/quant.h"
#include "ref/random.h"
#include "test_arena.h"

/* Root mean square error relative to the weights' own, measured for ggml's quantizers on a normal
 * distribution (golden/README.md). For floats it is half a step. Our error may be 1.5 times as
 * large. ggml's ternary quantizers assume ternary weights and leave 0.8; a better scale leaves 0.5.
 */
static const struct {
    format format;
    double ggml;
} errors[] = {
    { FORMAT_F32, 0 },         { FORMAT_F16, 2.1e-4 },   { FORMAT_BF16, 1.7e-3 },
    { FORMAT_Q4_0, 8.6e-2 },   { FORMAT_Q4_1, 7.8e-2 },  { FORMAT_Q5_0, 4.3e-2 },
    { FORMAT_Q5_1, 3.7e-2 },   { FORMAT_Q8_0, 5.4e-3 },  { FORMAT_Q2_K, 0.29 },
    { FORMAT_Q3_K, 0.15 },     { FORMAT_Q4_K, 7.2e-2 },  { FORMAT_Q5_K, 3.5e-2 },
    { FORMAT_Q6_K, 1.8e-2 },   { FORMAT_IQ2_XXS, 0.35 }, { FORMAT_IQ2_XS, 0.30 },
    { FORMAT_IQ2_S, 0.26 },    { FORMAT_IQ3_XXS, 0.22 }, { FORMAT_IQ3_S, 0.17 },
    { FORMAT_IQ1_S, 0.50 },    { FORMAT_IQ1_M, 0.48 },   { FORMAT_IQ4_NL, 7.6e-2 },
    { FORMAT_IQ4_XS, 7.7e-2 }, { FORMAT_MXFP4, 0.11 },   { FORMAT_NVFP4, 9.7e-2 },
    { FORMAT_TQ1_0, 0.5 },     { FORMAT_TQ2_0, 0.5 },    { FORMAT_Q1_0, 0.60 },
    { FORMAT_Q2_0, 0.5 },
};
enum { FORMATS = sizeof errors / sizeof *errors, VALUES = 16 * 256 };

ARENA_TEST(quantized_weights_are_near_the_originals)
{
    float *x = arena_alloc(a, VALUES * sizeof *x), *back = arena_alloc(a, VALUES * sizeof *back);
    random_source r = { 5 };
    for (int i = 0; i < VALUES; i++)
        x[i] = 0.05f * random_normal(&r);
    for (int i = 0; i < FORMATS; i++) {
        format f = errors[i].format;
        double off = 0, all = 0;
        void *blocks = arena_alloc(a, format_bytes(f, VALUES));
        quantize(f, x, VALUES, blocks);
        ref_decode(f, blocks, VALUES, back);
        for (int j = 0; j < VALUES; j++) {
            double error = (double)back[j] - (double)x[j];
            off += error * error;
            all += (double)x[j] * (double)x[j];
        }
        print_message("%s %.3g of %.3g\n", formats[f].name, sqrt(off / all), errors[i].ggml);
        if (!(sqrt(off / all) <= 1.5 * errors[i].ggml))
            fail_msg("%s: error %.3g, ggml's is %.3g", formats[f].name, sqrt(off / all),
                     errors[i].ggml);
    }
}

ARENA_TEST(every_weight_format_has_a_quantizer_that_leaves_zeros)
{
    float zeros[256] = { 0 }, back[256];
    for (format f = 0; f < FORMAT_COUNT; f++) {
        if (formats[f].gguf_type == NO_GGUF_TYPE || f == FORMAT_Q8_1)
            continue;
        bool is_listed = false;
        for (int i = 0; i < FORMATS; i++)
            is_listed |= errors[i].format == f;
        assert_true(is_listed);
        void *blocks = arena_alloc(a, format_bytes(f, 256));
        quantize(f, zeros, 256, blocks);
        ref_decode(f, blocks, 256, back);
        for (int i = 0; i < 256; i++)
            assert_true(back[i] == 0);
    }
}
