#include "kernel/problem.h"

const format kv_formats[KV_COUNT] = {
    [KV_F32] = FORMAT_F32,
    [KV_F16] = FORMAT_F16,
    [KV_BF16] = FORMAT_BF16,
    [KV_Q8_0] = FORMAT_Q8_0,
};

int64_t problem_cache_values(const problem_shape *s)
{
    return s->latent ? s->latent + s->n_rope : s->head_dim;
}

int64_t problem_cache_heads(const problem_shape *s)
{
    return s->latent ? 1 : s->num_kv_heads;
}

int64_t problem_experts_listed(const problem_shape *s)
{
    int64_t chosen = s->m * s->experts_used;
    return chosen < s->experts ? chosen : s->experts;
}
