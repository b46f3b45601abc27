/* A short convolution instead of attention: with [b, c, u] = W_in h', the output is c conv(b u). */
#include <string.h>

#include "model/reference/step_call.h"

double *call_convolve(const call *c, size_t token, const double *own, decoder_tensor weights,
                      decoder_tensor bias)
{
    const ref_matrix w = call_matrix(c, weights, 0);
    const double *b = call_row(c, bias, 0);
    uint64_t position = c->positions[token];
    double *x = arena_zalloc(c->a, w.rows * sizeof *x), taps[DELTA_CONV];
    memcpy(call_inputs(c, token, position), own, w.rows * sizeof *own);
    for (uint64_t channel = 0; channel < w.rows; channel++) {
        ref_matrix_row(&w, channel, taps);
        x[channel] = b ? b[channel] : 0;
        for (uint64_t back = 0; back < w.columns && back <= position; back++)
            x[channel] +=
                taps[w.columns - 1 - back] * call_inputs(c, token, position - back)[channel];
    }
    return x;
}

void call_add_short_conv(const call *c, const double *from, double *h)
{
    int64_t size = c->s->d->hidden;
    const operand o = call_normed(c, from, size, TENSOR_ATTN_NORM);
    const double *in = call_product(c, &o, TENSOR_SHORTCONV_IN);
    double *y = call_vectors(c, size), *own = arena_alloc(c->a, (size_t)size * sizeof *own);
    for (size_t token = 0; token < c->count; token++, in += 3 * size) {
        double *row = y + (int64_t)token * size;
        for (int64_t i = 0; i < size; i++)
            own[i] = in[i] * in[2 * size + i];
        memcpy(row, call_convolve(c, token, own, TENSOR_SHORTCONV_CONV, TENSOR_COUNT),
               (size_t)size * sizeof *row);
        for (int64_t i = 0; i < size; i++)
            row[i] *= in[size + i];
    }
    call_add_output(c, h, y, size, TENSOR_SHORTCONV_OUT);
}
