/* Decodes a few words on whatever libcuda there is, a GPU's or the emulated one, and compares each
 * step with the CPU's. Exits with 77 (skipped) where there is no driver or no device. */
#include <math.h>
#include <stdio.h>

#include "engine.h"

enum { STEPS = 6, SKIPPED = 77 };

/* The length of the difference as a part of the length of what is right. A value that lies between
 * two steps of q8_1 may fall to either side: one part in 127 of one of 256 terms. */
static const double BOUND = 2e-3;

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

static int decode(engine *e, model *m)
{
    for (unsigned position = 0; position < STEPS; position++) {
        float x[HIDDEN], right_x[HIDDEN], logits[WORDS], right_logits[WORDS];
        model_embedding(position, x);
        model_embedding(position, right_x);
        CUresult result = engine_step(e, position, x, logits);
        if (result != CUDA_SUCCESS) {
            const char *name = "unknown";
            e->cuda.cuGetErrorName(result, &name);
            printf("position %u: %s\n", position, name);
            return 1;
        }
        model_step(m, position, right_x, right_logits);
        double off_x = difference(x, right_x, HIDDEN);
        double off_logits = difference(logits, right_logits, WORDS);
        printf("position %u: x differs by %.1e, logits by %.1e\n", position, off_x, off_logits);
        if (!(off_x < BOUND && off_logits < BOUND)) /* also where it is no number */
            return 1;
    }
    return 0;
}

int main(void)
{
    static engine e;
    static model m;
    char name[128];
    const char *missing = driver_open(&e.cuda);
    if (missing) {
        printf("no %s: skipped\n", missing);
        return SKIPPED;
    }
    if (!model_make(&m))
        return 1;
    CUresult result = engine_open(&e, &m, name, sizeof name);
    if (result == CUDA_ERROR_NO_DEVICE) {
        puts("no device: skipped");
        return SKIPPED;
    }
    if (result != CUDA_SUCCESS) {
        const char *text = "unknown";
        e.cuda.cuGetErrorName(result, &text);
        printf("starting: %s\n", text);
        return 1;
    }
    printf("%s\n", name);
    int status = decode(&e, &m);
    engine_close(&e);
    model_free(&m);
    return status;
}
