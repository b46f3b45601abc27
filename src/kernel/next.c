#include "kernel/next.h"

#include "kernel/formula.h"

static int64_t weights_bytes(const instance *in)
{
    int64_t bytes = 0;
    unsigned matrices = 0;
    for (const param *p = in->family->params; p->name; p++) {
        if (!p->weights)
            continue;
        instance one = instance_matrix(in, matrices++);
        format f = p->matrix ? instance_weights(&one) : instance_weights(in);
        bytes += (int64_t)format_bytes(f, (uint64_t)formula_value(p->values, in, NULL));
    }
    return bytes;
}

bool next_is_early(const instance *in)
{
    return in->family->launch.weights_first && weights_bytes(in) <= NEXT_OF_STEPS;
}

size_t next_param(arena *a, const instance *in)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params), i = 0;
    while (i < count && params[i].order != ORDER_FETCHED)
        i++;
    return i < count ? i : MAX_PARAMS;
}
