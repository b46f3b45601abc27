/* One pass over the positions with a running maximum, in double: a later, larger score rescales
 * what was added up before it.
 */
#include <math.h>

#include "ref/reference.h"

enum { QUERY, KEYS, VALUES, MAX_HEAD_DIM = 1024 };

typedef struct head_result {
    double sum[MAX_HEAD_DIM], magnitude[MAX_HEAD_DIM];
    double weight; /* sum of the softmax numerators */
} head_result;

static uint64_t valid_positions(const problem_shape *s)
{
    return (uint64_t)(s->seq_len < s->max_seq_len ? s->seq_len : s->max_seq_len);
}

static void attend(const problem *p, uint64_t head, head_result *result)
{
    uint64_t dim = (uint64_t)p->shape.head_dim, positions = valid_positions(&p->shape);
    uint64_t heads = (uint64_t)p->shape.num_heads, kv_heads = (uint64_t)p->shape.num_kv_heads;
    uint64_t kv_head = head % heads * kv_heads / heads + head / heads * kv_heads;
    uint64_t cache = kv_head * (uint64_t)p->shape.max_seq_len * dim;
    double scale = 1 / sqrt((double)dim), largest = -HUGE_VAL;
    float q[MAX_HEAD_DIM], k[MAX_HEAD_DIM], v[MAX_HEAD_DIM];

    *result = (head_result){ 0 };
    problem_read(p, QUERY, head * dim, dim, q);
    for (uint64_t t = 0; t < positions; t++) {
        problem_read(p, KEYS, cache + t * dim, dim, k);
        problem_read(p, VALUES, cache + t * dim, dim, v);
        double score = 0;
        for (uint64_t d = 0; d < dim; d++)
            score += (double)q[d] * (double)k[d];
        score *= scale;

        double correction = 1;
        if (score > largest) {
            correction = exp(largest - score);
            largest = score;
        }
        double weight = exp(score - largest);
        result->weight = result->weight * correction + weight;
        for (uint64_t d = 0; d < dim; d++) {
            double term = weight * (double)v[d];
            result->sum[d] = result->sum[d] * correction + term;
            result->magnitude[d] = result->magnitude[d] * correction + fabs(term);
        }
    }
}

void ref_attention(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    (void)output;
    uint64_t dim = (uint64_t)p->shape.head_dim, end = first + count;
    head_result result;
    while (first < end) {
        attend(p, first / dim, &result);
        uint64_t head_end = (first / dim + 1) * dim;
        for (; first < end && first < head_end; first++, values++) {
            uint64_t d = first % dim;
            *values = result.weight > 0 ? (ref_value){ result.sum[d] / result.weight,
                                                       result.magnitude[d] / result.weight }
                                        : (ref_value){ 0, 0 };
        }
    }
}
