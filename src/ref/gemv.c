#include <math.h>

#include "ref/reference.h"

enum { CHUNK = 256 }; /* a whole number of blocks in every format */

static ref_value dot(const problem *p, uint64_t row, uint64_t vector)
{
    uint64_t k = (uint64_t)p->shape.k;
    float w[CHUNK], x[CHUNK];
    ref_value sum = { 0, 0 };
    for (uint64_t at = 0; at < k; at += CHUNK) {
        uint64_t count = k - at < CHUNK ? k - at : CHUNK;
        problem_read(p, 0, row * k + at, count, w);
        problem_read(p, 1, vector * k + at, count, x);
        for (uint64_t i = 0; i < count; i++) {
            double term = (double)w[i] * (double)x[i];
            sum.value += term;
            sum.magnitude += fabs(term);
        }
    }
    return sum;
}

void ref_gemv(const problem *p, unsigned output, uint64_t first, uint64_t count, ref_value *values)
{
    (void)output;
    uint64_t n = (uint64_t)p->shape.n;
    for (uint64_t i = 0; i < count; i++)
        values[i] = dot(p, (first + i) % n, (first + i) / n);
}

void ref_q8_1_quantize(const problem *p, unsigned output, uint64_t first, uint64_t count,
                       ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++) {
        float x;
        problem_read(p, 0, first + i, 1, &x);
        values[i] = (ref_value){ (double)x, fabs((double)x) };
    }
}
