#include "ref/quant.h"

#include <math.h>

/* Independent sums, which the compiler vectorizes. */
enum { LANES = 8 };

static double dot(const double *w, const double *x, uint64_t count)
{
    double sums[LANES] = { 0 }, sum = 0;
    uint64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int i = 0; i < LANES; i++)
            sums[i] += w[at + (uint64_t)i] * x[at + (uint64_t)i];
    for (; at < count; at++)
        sum += w[at] * x[at];
    for (int i = 0; i < LANES; i++)
        sum += sums[i];
    return sum;
}

double ref_round_to_half(double value)
{
    static const double more = (1LL << 42) + 1; /* 2^42 drops the low 42 bits of a double */
    double split = value * more;
    return split - (split - value);
}

/* Rounds weights d q - m like a kernel in f16. m is about the largest of 32 weights. */
static void round_parts(double *values, uint64_t count)
{
    enum { SEGMENT = 32 };
    for (uint64_t at = 0; at < count; at += SEGMENT) {
        double largest = 0;
        for (uint64_t i = at; i < at + SEGMENT && i < count; i++)
            largest = fmax(largest, fabs(values[i]));
        double m = ref_round_to_half(largest);
        for (uint64_t i = at; i < at + SEGMENT && i < count; i++)
            values[i] = ref_round_to_half(ref_round_to_half(values[i] + m) - m);
    }
}

void ref_matrix_row(const ref_matrix *w, uint64_t row, double *values)
{
    enum { CHUNK = 256 }; /* whole blocks of every format */
    float room[CHUNK];
    const uint8_t *blocks = w->blocks;
    uint64_t number = (w->first + row) % w->repeat;
    bool minima = ref_has_minima(w->format);
    blocks += number * format_bytes(w->format, w->columns);
    for (uint64_t at = 0; at < w->columns; at += CHUNK) {
        uint64_t count = w->columns - at < CHUNK ? w->columns - at : CHUNK;
        const float *decoded = w->values ? w->values + number * w->columns + at : room;
        if (!w->values)
            ref_decode(w->format, blocks + format_bytes(w->format, at), count, room);
        for (uint64_t i = 0; i < count; i++)
            values[at + i] = (double)decoded[i];
        if (w->halves && minima)
            round_parts(values + at, count);
        for (uint64_t i = 0; w->halves && !minima && i < count; i++)
            values[at + i] = ref_round_to_half(values[at + i]);
    }
}

void ref_matrix_times(const ref_matrix *w, const double *x, size_t count, double *y, size_t stride,
                      double *room)
{
    for (uint64_t row = 0; row < w->rows; row++) {
        if (row < w->repeat)
            ref_matrix_row(w, row, room);
        for (size_t v = 0; v < count; v++)
            y[v * stride + row] = row < w->repeat ? dot(room, x + v * w->columns, w->columns)
                                                  : y[v * stride + row - w->repeat];
    }
}
