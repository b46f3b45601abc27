/* Decodes a few words, then runs attention of a batch, and compares each step with the CPU. It uses
 * the available libcuda, a GPU's or the emulated one. Exits with status 77 (skipped) if there is no
 * driver or no device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

enum { STEPS = 6, SKIPPED = 77 };

/* Bounds of |got - expected| / |expected|. A value between two steps of 8-bit quantization may be
 * rounded either way: that changes one of 256 terms by 1/127. */
static const double STEP_BOUND = 2e-3, ATTENTION_BOUND = 1e-5;

static double difference(const float *got, const float *right, int count)
{
    double wrong = 0, length = 0;
    for (int i = 0; i < count; i++) {
        double d = (double)got[i] - (double)right[i];
        wrong += d * d;
        length += (double)right[i] * (double)right[i];
    }
    return sqrt(wrong / length);
}

static int failed(const engine *e, const char *what, CUresult result)
{
    const char *name = "unknown";
    e->cuda.cuGetErrorName(result, &name);
    printf("%s: %s\n", what, name);
    return 1;
}

static int decode(engine *e, model *m)
{
    for (unsigned position = 0; position < STEPS; position++) {
        float x[HIDDEN], right_x[HIDDEN], logits[WORDS], right_logits[WORDS];
        model_embedding(position, x);
        model_embedding(position, right_x);
        CUresult result = engine_step(e, position, x, logits);
        if (result != CUDA_SUCCESS)
            return failed(e, "decoding", result);
        model_step(m, position, right_x, right_logits);
        double off_x = difference(x, right_x, HIDDEN);
        double off_logits = difference(logits, right_logits, WORDS);
        printf("position %u: x differs by %.1e, logits by %.1e\n", position, off_x, off_logits);
        if (!(off_x < STEP_BOUND && off_logits < STEP_BOUND)) /* false for NaN, too */
            return 1;
    }
    return 0;
}

/* The lengths cover several chunks, one chunk, an empty sequence, and a last position alone. */
static int attend_batch(engine *e, batch *b)
{
    static const uint32_t lengths[][SEQUENCES] = { { 300, 1, 0, 128 },
                                                   { 301, 2, 1, 129 },
                                                   { 320, 64, 0, 257 } };
    float o[SEQUENCES][HIDDEN], right[SEQUENCES][HIDDEN];
    CUresult result = engine_open_batch(e, b);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && result == CUDA_SUCCESS; i++) {
        memcpy(b->seq_lens, lengths[i], sizeof lengths[i]);
        result = engine_attend(e, b->seq_lens, o);
        batch_attend(b, right);
        double off = difference(o[0], right[0], SEQUENCES * HIDDEN);
        printf("%u, %u, %u and %u positions: attention differs by %.1e\n", b->seq_lens[0],
               b->seq_lens[1], b->seq_lens[2], b->seq_lens[3], off);
        if (!(off < ATTENTION_BOUND))
            return 1;
    }
    return result == CUDA_SUCCESS ? 0 : failed(e, "attention", result);
}

int main(void)
{
    static engine e;
    static model m;
    static batch b;
    char name[128];
    const char *missing = driver_open(&e.cuda);
    if (missing) {
        printf("no %s: skipped\n", missing);
        return SKIPPED;
    }
    if (!model_make(&m))
        return 1;
    batch_make(&b);
    CUresult result = engine_open(&e, &m, name, sizeof name);
    if (result == CUDA_ERROR_NO_DEVICE) {
        puts("no device: skipped");
        return SKIPPED;
    }
    if (result != CUDA_SUCCESS)
        return failed(&e, "starting", result);
    printf("%s\n", name);
    int status = decode(&e, &m);
    if (status == 0)
        status = attend_batch(&e, &b);
    engine_close(&e);
    model_free(&m);
    return status;
}
