#include "attention.h"

#include <math.h>

static void attend_head(const float *q, const float *keys, const float *values, unsigned seq_len,
                        float *out)
{
    double scores[LONGEST_SEQUENCE], largest = -INFINITY, total = 0, sums[HEAD_DIM] = { 0 };
    for (unsigned p = 0; p < seq_len; p++) {
        scores[p] = 0;
        for (unsigned i = 0; i < HEAD_DIM; i++)
            scores[p] += (double)q[i] * (double)keys[p * HEAD_DIM + i];
        scores[p] /= sqrt(HEAD_DIM);
        largest = fmax(largest, scores[p]);
    }
    for (unsigned p = 0; p < seq_len; p++) {
        double weight = exp(scores[p] - largest);
        total += weight;
        for (unsigned i = 0; i < HEAD_DIM; i++)
            sums[i] += weight * (double)values[p * HEAD_DIM + i];
    }
    for (unsigned i = 0; i < HEAD_DIM; i++)
        out[i] = seq_len > 0 ? (float)(sums[i] / total) : 0;
}

void attend(const float q[HIDDEN], const float *keys, const float *values, unsigned room,
            unsigned seq_len, float out[HIDDEN])
{
    for (unsigned head = 0; head < HEADS; head++) {
        unsigned first = head * KV_HEADS / HEADS * room * HEAD_DIM;
        attend_head(q + head * HEAD_DIM, keys + first, values + first, seq_len,
                    out + head * HEAD_DIM);
    }
}
