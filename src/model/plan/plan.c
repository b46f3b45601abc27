#include "model/plan/plan.h"

const char *const plan_memory_names[PLAN_MEMORIES] = {
    [PLAN_WEIGHTS] = "weights",
    [PLAN_CACHE] = "cache",
    [PLAN_STATE] = "state",
    [PLAN_WORKSPACE] = "workspace",
};

int64_t plan_ring(const decoder *d, int64_t layer)
{
    if (!d->window || !d->windowed[layer] || d->window_cache == WINDOW_CACHE_FULL)
        return 0;
    int64_t positions = d->window + d->m[d->m_count - 1] - 1;
    return positions < d->max_seq_len ? positions : 0;
}

uint64_t plan_bytes_from(const plan *p, const plan_argument *argument)
{
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *t = &p->tensors[i];
        if (argument->offset >= t->offset && argument->offset - t->offset < t->bytes)
            return t->offset + t->bytes - argument->offset;
    }
    return 0;
}

void plan_insert_argument(plan_launch *l, size_t number, plan_argument argument)
{
    for (size_t i = l->argument_count++; i > number; i--)
        l->arguments[i] = l->arguments[i - 1];
    l->arguments[number] = argument;
}

void plan_remove_argument(plan_launch *l, size_t number)
{
    for (size_t i = number; i + 1 < l->argument_count; i++)
        l->arguments[i] = l->arguments[i + 1];
    l->argument_count--;
}
