/* Prefetch (see KEY_NEXT). A launch prefetches the first matrix of the next launch with weights.
 * All launches between them must read little: no weights, and only short caches, as with a window.
 * Weights of experts are not prefetched, since inputs choose them. If the prefetch is late, that
 * launch reads the matrix itself, at no loss. */
#include <string.h>

#include "kernel/formula.h"
#include "kernel/limits.h"
#include "model/plan/planner.h"

/* Returns true if a launch reads weights, or caches that are large beside the prefetched data in
 * the L2. tensor gets the weights that the launch starts with and reads whole, or NULL. */
static bool reads_much(const planner *p, const placed_launch *l, const plan_argument **tensor)
{
    const instance *in = &l->kernel;
    param params[MAX_PARAMS];
    size_t count = instance_params(p->arena, in, params);
    bool much = false;
    *tensor = NULL;
    for (size_t i = 0; i < count; i++) {
        const param *of = &params[i];
        much |= of->weights;
        if (!*tensor && of->weights && !of->touched)
            *tensor = &l->launch.arguments[i];
        if (of->data != DATA_CACHE || of->kind != PARAM_IN)
            continue;
        int64_t rows = kv_pages(in) * kv_page_rows(in), window = in->options.window;
        if (window && window < rows)
            rows = window;
        int64_t values = rows * problem_cache_heads(&in->shape) * problem_cache_values(&in->shape);
        much |= (int64_t)format_bytes(of->format, (uint64_t)values) > NEXT_OF_STEPS / 4;
    }
    return much;
}

/* A launch's prefetch: the least that equal launches of the step prefetch. */
typedef struct fetched {
    const plan_argument *tensor; /* NULL = no prefetch */
    uint64_t bytes;
} fetched;

void planner_fetch_ahead(planner *p)
{
    size_t count = p->d->next == NEXT_FETCHED ? p->launches.count : 0;
    fetched *all = arena_zalloc(p->arena, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        size_t next = i + 1;
        if (!family_key(p->launches.items[i].kernel.family, "next"))
            continue;
        while (next < count && !reads_much(p, &p->launches.items[next], &all[i].tensor))
            next++;
        uint64_t bytes = all[i].tensor ? plan_bytes_from(p->plan, all[i].tensor) : 0;
        bytes = bytes / NEXT_MULTIPLE * NEXT_MULTIPLE;
        all[i].bytes = bytes < NEXT_OF_STEPS ? bytes : NEXT_OF_STEPS;
    }
    for (size_t i = 0; i < count; i++) {
        placed_launch *l = &p->launches.items[i];
        uint64_t bytes = all[i].bytes;
        for (size_t j = 0; j < count && bytes; j++)
            if (all[j].bytes && all[j].bytes < bytes &&
                strcmp(p->launches.items[j].launch.said, l->launch.said) == 0)
                bytes = all[j].bytes;
        if (!bytes)
            continue;
        planner_set(&l->kernel, "next", (int64_t)bytes);
        size_t number = next_param(p->arena, &l->kernel); /* the new parameter's number */
        for (size_t j = l->launch.argument_count; j > number; j--)
            l->buffers[j] = l->buffers[j - 1];
        l->buffers[number] = BUFFERS;
        plan_insert_argument(&l->launch, number, *all[i].tensor);
    }
}
