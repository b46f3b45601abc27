#include "ref/step_attention.h"

#include <math.h>

#include "ref/half.h"

/* ggml's reference quantizer of q8_0 divides in float and rounds half away from zero. */
static void round_q8_0(double *x)
{
    enum { LARGEST = 127 };
    double largest = 0;
    for (int i = 0; i < Q8_0_VALUES; i++)
        largest = fmax(largest, fabs(x[i]));
    float d = (float)largest / LARGEST;
    double stored = (double)half_to_float(half_from_float(d));
    for (int i = 0; i < Q8_0_VALUES; i++)
        x[i] = d > 0 ? round(x[i] / (double)d) * stored : x[i] * stored;
}

void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim)
{
    for (int64_t i = 0; i < head_dim; i++)
        switch (kv_type) {
        case KV_F16:
            row[i] = (double)half_to_float(half_from_float((float)row[i]));
            break;
        case KV_BF16:
            row[i] = (double)bfloat_to_float(bfloat_from_float((float)row[i]));
            break;
        case KV_Q8_0:
            if (i % Q8_0_VALUES == 0)
                round_q8_0(row + i);
            break;
        default:
            break;
        }
}

void ref_turns(const rope_options *o, const double *factors, uint64_t position, double *turns)
{
    for (int64_t i = 0; i < o->dims / 2; i++) {
        rope_angle by = ref_rope_angle(o, (uint64_t)i, factors ? factors[i] : 1, position);
        turns[2 * i] = by.cos;
        turns[2 * i + 1] = by.sin;
    }
}

void ref_rotate(const rope_options *o, const double *turns, double *head)
{
    for (int64_t i = 0; i < o->dims / 2 && o->style != ROPE_NONE; i++) {
        double *x = o->style == ROPE_NEOX ? &head[i] : &head[2 * i];
        double *y = o->style == ROPE_NEOX ? &head[i + o->dims / 2] : &head[2 * i + 1];
        double cosine = turns[2 * i], sine = turns[2 * i + 1], turned = *x * cosine - *y * sine;
        *y = *x * sine + *y * cosine;
        *x = turned;
    }
}

static double score_of(const ref_query *query, const double *q, const double *k)
{
    double sum = 0;
    for (int64_t d = 0; d < query->head_dim; d++)
        sum += q[d] * k[d];
    sum *= query->scale;
    return query->softcap > 0 ? query->softcap * tanh(sum / query->softcap) : sum;
}

/* exp of the scores, by the largest of them; a NaN stays one. Returns their sum. */
static double weigh(double *scores, uint64_t count)
{
    double largest = -HUGE_VAL, sum = 0;
    for (uint64_t t = 0; t < count; t++)
        largest = fmax(largest, scores[t]);
    for (uint64_t t = 0; t < count; t++)
        sum += scores[t] = exp(scores[t] - largest);
    return sum;
}

void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room)
{
    int64_t dim = query->head_dim;
    uint64_t count = query->end - query->begin, heads = (uint64_t)query->heads;
    double *row = room + heads * count;
    for (uint64_t t = 0; t < count; t++) {
        read(user, false, query->begin + t, row);
        for (uint64_t h = 0; h < heads; h++)
            room[h * count + t] = score_of(query, query->q + (int64_t)h * dim, row);
    }
    for (uint64_t h = 0; h < heads; h++) {
        double sum = weigh(room + h * count, count);
        for (uint64_t t = 0; t < count; t++)
            room[h * count + t] /= sum;
    }
    for (uint64_t i = 0; i < heads * (uint64_t)dim; i++)
        o[i] = 0;
    for (uint64_t t = 0; t < count; t++) {
        read(user, true, query->begin + t, row);
        for (uint64_t h = 0; h < heads; h++)
            for (int64_t d = 0; d < dim; d++)
                o[(int64_t)h * dim + d] += room[h * count + t] * row[d];
    }
}
