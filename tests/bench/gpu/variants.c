#include "bench/gpu/variants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/device.h"
#include "model/plan/plan.h"

bool number_list_parse(const char *text, number_list *list)
{
    char *end;
    list->count = 0;
    do {
        errno = 0;
        int64_t value = strtoll(text, &end, 10);
        if (end == text || errno || value < 1 || list->count == MOST_NUMBERS)
            return false;
        list->values[list->count++] = value;
        text = end + 1;
    } while (*end == ',');
    return !*end;
}

bool plan_uses(const plan *p, size_t number, int64_t rows)
{
    for (size_t s = 0; s < p->step_count && p->steps[s].m <= rows; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++)
            if (p->steps[s].launches[i].kernel == number)
                return true;
    return false;
}

const kernel *kernel_named(const kernel_set *set, const char *name)
{
    for (size_t i = 0; i < set->kernel_count; i++)
        if (strcmp(set->kernels[i].instance->name, name) == 0)
            return &set->kernels[i];
    return NULL;
}

/* Generates only the kernels of a plan, without the rest of the spec. */
static const char *generate_plan(arena *a, const spec *of, const plan *p, kernel_set *set)
{
    spec s = *of;
    s.plan = p;
    s.instances = p->kernels;
    s.instance_count = p->kernel_count;
    s.pipeline_count = s.alias_count = 0;
    return generate_set(a, &s, set) ? NULL : "the kernels have errors";
}

static const char *problem_of(arena *a, const diags *d)
{
    strbuf message = strbuf_new(a);
    diags_render(d, &message, false);
    return message.text;
}

static const char *make_plan(arena *a, const spec *s, const decoder *d, kernel_set *set)
{
    diags problems = diags_new(a);
    const plan *p = plan_make(a, d, s->plan->kernels[0].where, s->targets, s->target_count,
                              s->plan->model, &problems);
    return p ? generate_plan(a, s, p, set) : problem_of(a, &problems);
}

/* Generates the kernels of the plan. A list of rows that is not empty replaces its m. */
static const char *make_usual(arena *a, const spec *s, decoder *d, const number_list *rows,
                              kernel_set *set)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->values[i] > PROBLEM_MOST_ROWS || (i && rows->values[i] <= rows->values[i - 1]))
            return arena_format(a, "m = %lld: values must ascend and be at most %d",
                                (long long)rows->values[i], PROBLEM_MOST_ROWS);
    if (!rows->count)
        return generate_plan(a, s, s->plan, set);
    const char *lacking = decoder_lacks_prompts(d);
    if (decoder_is_prompt(rows->values[rows->count - 1]) && lacking)
        return arena_format(a, "steps with %s have at most %d rows", lacking, DECODER_FEW_ROWS);
    memcpy(d->m, rows->values, rows->count * sizeof *d->m);
    d->m_count = (int64_t)rows->count;
    return make_plan(a, s, d, set);
}

static bool accepts_warps(arena *a, instance *in, int64_t warps, const target *t)
{
    const key *k = family_key(in->family, "num_warps");
    const char *blamed;
    if (!k || warps < k->min || warps > k->max || warps % key_multiple(in, k))
        return false;
    instance_set(in, k, warps);
    return instance_suits(in, t) && !(in->family->check && in->family->check(in, a, &blamed));
}

static const char *make_warps(arena *a, const spec *s, const plan *of, const char *word,
                              int64_t warps, kernel_set *set)
{
    plan changed = *of, *p = arena_alloc(a, sizeof *p);
    bool any = false;
    changed.kernels = arena_alloc(a, of->kernel_count * sizeof *of->kernels);
    *p = changed;
    for (size_t i = 0; i < p->kernel_count; i++) {
        instance *in = &p->kernels[i], other = *in = of->kernels[i];
        if (!plan_uses(of, i, DECODER_FEW_ROWS) || !strstr(in->family->name, word))
            continue;
        if (!accepts_warps(a, &other, warps, s->targets[0]))
            return arena_format(a, "%s does not accept num_warps = %lld", in->name,
                                (long long)warps);
        other.name = instance_make_name(a, &other);
        any |= strcmp(other.name, in->name) != 0;
        *in = other;
    }
    return any ? generate_plan(a, s, p, set)
               : arena_format(a, "no kernel of '%s' gets another number of warps", word);
}

/* Changes the kernels of a family that let the next launch start when they end: they let it start
 * at once. */
static const char *make_early(arena *a, const kernel_set *of, const char *word, kernel_set *set)
{
    static const char params[] = "\n    ld.param", trigger[] = "griddepcontrol.launch_dependents;";
    bool any = false;
    *set = *of;
    set->kernels = arena_alloc(a, of->kernel_count * sizeof *of->kernels);
    for (size_t i = 0; i < of->kernel_count; i++) {
        kernel *k = &set->kernels[i];
        *k = of->kernels[i];
        const char *at = strstr(k->ptx, params);
        if (!strstr(k->instance->family->name, word) || !k->overlaps || !at ||
            strstr(k->ptx, trigger))
            continue;
        k->ptx = arena_format(a, "%.*s\n    %s%s", (int)(at - k->ptx), k->ptx, trigger, at);
        k->ptx_length = strlen(k->ptx);
        any = true;
    }
    return any ? NULL
               : arena_format(a, "no kernel of '%s' triggers the next launch at its end", word);
}

static void add_early(arena *a, const variant *of, const char *word, variants *out)
{
    variant v = { .name = of->name ? arena_format(a, "%s, early", of->name)
                                   : arena_format(a, "%s early", word),
                  .wrong = of->wrong,
                  .early = true };
    if (!v.wrong)
        v.wrong = make_early(a, &of->set, word, &v.set);
    *VEC_PUSH(a, out) = v;
}

const char *make_variants(arena *a, const char *path, const target *t, const variant_options *o,
                          variants *out)
{
    spec s;
    variant usual = { 0 };
    if (!read_spec(a, path, t->name, &s))
        return "the spec has errors";
    if (!s.plan)
        return "the spec has no [decoder]";
    decoder *d = arena_alloc(a, sizeof *d), *other = arena_alloc(a, sizeof *d);
    *d = *s.plan->decoder;
    const char *wrong = make_usual(a, &s, d, &o->rows, &usual.set);
    if (wrong)
        return wrong;
    *VEC_PUSH(a, out) = usual;
    if (o->next) {
        *other = *d;
        other->next = d->next == NEXT_NONE ? NEXT_FETCHED : NEXT_NONE;
        variant v = { .name = other->next == NEXT_NONE ? "next none" : "next fetched" };
        v.wrong = make_plan(a, &s, other, &v.set);
        *VEC_PUSH(a, out) = v;
    }
    if (o->early && o->family)
        add_early(a, &usual, o->family, out);
    for (size_t i = 0; o->family && i < o->warps.count; i++) {
        variant v = { .name = arena_format(a, "%s of %lld warps", o->family,
                                           (long long)o->warps.values[i]) };
        v.wrong = make_warps(a, &s, usual.set.plan, o->family, o->warps.values[i], &v.set);
        *VEC_PUSH(a, out) = v;
        if (o->early)
            add_early(a, &v, o->family, out);
    }
    return NULL;
}
