#include "emit/describe.h"

#include "gen/formula.h"

bool param_is_pointer(const param *p)
{
    return p->kind == PARAM_OUT || p->kind == PARAM_IN || p->kind == PARAM_SCRATCH;
}

format weights_of(const instance *in)
{
    return family_key(in->family, "kv_type") ? kv_format(in) : in->family->weights;
}

format pipeline_weights(const pipeline *p)
{
    format found = FORMAT_NONE;
    for (size_t i = 0; i < p->step_count && found == FORMAT_NONE; i++)
        found = weights_of(p->steps[i]);
    return found;
}

description describe_kernel(arena *a, const kernel *k)
{
    const instance *in = k->instance;
    const launch *how = &in->family->launch;
    description d = { .block = formula_value(how->block, in, NULL), .grid_fixed = true };

    d.param_count = instance_params(a, in, d.params);
    for (size_t i = 0; i < d.param_count; i++)
        d.param_bytes[i] = param_is_pointer(&d.params[i])
                               ? formula_value(d.params[i].bytes, in, NULL)
                               : (int64_t)sizeof(uint32_t);
    for (size_t i = 0; i < 3; i++) {
        d.grid[i] = formula_value(how->grid[i], in, NULL);
        d.grid_fixed = d.grid_fixed && d.grid[i] >= 0;
    }
    d.dynamic_shared = how->dynamic_shared ? formula_value(how->dynamic_shared, in, NULL) : 0;
    return d;
}

const char *config_word(const instance *in, const key *k)
{
    return k->choices ? k->choices[instance_value(in, k)].word : NULL;
}

bool kernel_is_chosen(const kernel *k)
{
    return instance_chosen(k->instance, k->target) != 0;
}

void print_choice(strbuf *out, const kernel *k)
{
    unsigned chosen = instance_chosen(k->instance, k->target);
    strbuf_format(out, "chosen by %s auto, precision", k->instance->chosen_by->name);
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (chosen >> p & 1)
            strbuf_format(out, " %s%s", precision_choices[p].word, chosen >> p > 1 ? " and" : "");
    strbuf_format(out, ", for %s", k->target->name);
    if (k->newest != k->target)
        strbuf_format(out, " to %s", k->newest->name);
}

const char *kernel_identifier(arena *a, const kernel_set *set, const kernel *k)
{
    bool newer = k > set->kernels && k[-1].instance == k->instance;
    return arena_format(a, "%s_%s%s%s", set->prefix, k->instance->name, newer ? "_" : "",
                        newer ? k->target->name : "");
}
