/* What launches fetch for those behind them (see KEY_NEXT): the matrix that the next launch with
 * weights begins with, where all launches in between read little, no weights and no caches but
 * short ones, as of a window. Those of experts, which inputs choose, nobody knows ahead. What is
 * fetched and not yet there when that launch reads it itself is no loss.
 */
#include <string.h>

#include "kernel/formula.h"
#include "kernel/limits.h"
#include "model/plan/planner.h"

/* Whether caches that a launch reads are large beside what is fetched through it, which the L2 has
 * to keep. */
static bool is_large_cache(const instance *in, const param *p)
{
    int64_t values = formula_value(p->target_values, in, NULL), rows = kv_rows(in);
    if (in->options.window && in->options.window < rows)
        values = values / rows * in->options.window;
    return (int64_t)format_bytes(p->target, (uint64_t)values) > NEXT_OF_STEPS / 4;
}

/* Whether it reads weights or large caches; and the tensor that it begins with and reads all of, or
 * NULL. */
static bool reads_much(const planner *p, const placed_launch *l, const plan_argument **tensor)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(p->arena, &l->kernel, params);
    bool much = false;
    *tensor = NULL;
    for (size_t i = 0; i < count; i++) {
        bool cache = params[i].data == DATA_CACHE && params[i].kind == PARAM_IN;
        much |= params[i].weights || (cache && is_large_cache(&l->kernel, &params[i]));
        if (!*tensor && params[i].weights && !params[i].touched)
            *tensor = &l->launch.arguments[i];
    }
    return much;
}

static const plan_argument *read_next(const planner *p, size_t behind)
{
    const plan_argument *tensor = NULL;
    for (size_t i = behind + 1; i < p->launches.count; i++)
        if (reads_much(p, &p->launches.items[i], &tensor))
            break;
    return tensor;
}

/* Where the kernel, which now has the parameter, expects it. */
static void insert_argument(const planner *p, placed_launch *l, const plan_argument *argument)
{
    size_t number = next_param(p->arena, &l->kernel);
    for (size_t i = l->launch.argument_count; i > number; i--)
        l->buffers[i] = l->buffers[i - 1];
    l->buffers[number] = BUFFERS;
    plan_insert_argument(&l->launch, number, *argument);
}

/* What a launch fetches: as much as all launches of the step that do the same can, so that layers
 * which are alike have the same kernels whatever comes behind them. */
typedef struct fetched {
    const plan_argument *tensor; /* NULL: it fetches nothing */
    uint64_t bytes;
} fetched;

static fetched fetched_by(const planner *p, size_t number)
{
    fetched f = { 0 };
    if (!family_key(p->launches.items[number].kernel.family, "next"))
        return f;
    f.tensor = read_next(p, number);
    if (f.tensor)
        f.bytes = plan_bytes_from(p->plan, f.tensor) / NEXT_MULTIPLE * NEXT_MULTIPLE;
    f.bytes = f.bytes < NEXT_OF_STEPS ? f.bytes : NEXT_OF_STEPS;
    return f;
}

void planner_fetch_ahead(planner *p)
{
    size_t count = p->d->next == NEXT_FETCHED ? p->launches.count : 0;
    fetched *all = arena_alloc(p->arena, count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = fetched_by(p, i);
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
        insert_argument(p, l, all[i].tensor);
    }
}
