#include "kernel/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/formula.h"
#include "kernel/memory_plan.h"

const family *const *families_and_pipelines(arena *a)
{
    size_t kernels = 0, others = 0;
    while (families[kernels])
        kernels++;
    while (pipelines[others])
        others++;
    const family **all = arena_alloc(a, (kernels + others + 1) * sizeof *all);
    memcpy(all, families, kernels * sizeof *all);
    memcpy(all + kernels, pipelines, (others + 1) * sizeof *all);
    return all;
}

size_t pipeline_step_count(const family *f)
{
    size_t count = 0;
    while (f->steps[count].family)
        count++;
    return count;
}

_Noreturn static void wrong_table(const char *pipeline_name, const char *wrong, const char *name)
{
    fprintf(stderr, "ptxgen: pipeline %s %s %s\n", pipeline_name, wrong, name);
    abort();
}

static const family *step_family(const instance *in, const pipeline_step *s)
{
    const family *f = family_find(families, s->family);
    if (!f)
        wrong_table(in->family->name, "has a step of unknown family", s->family);
    return f;
}

static bool conditions_hold(const instance *in, const pipeline_step *s)
{
    for (const condition *c = s->when; c->key; c++) {
        const key *k = family_key(in->family, c->key);
        if (!k)
            wrong_table(in->family->name, "has a condition on unknown key", c->key);
        if (instance_value(in, k) != c->value)
            return false;
    }
    return true;
}

/* Returns true if a step has a parameter of a kind that is bound to a buffer. */
static bool has_buffer(const instance *in, const pipeline_step *s, const char *buffer,
                       param_kind kind)
{
    for (const param *p = step_family(in, s)->params; p->name; p++) {
        const char *bound = p->kind == kind ? step_buffer(s, p->name) : NULL;
        if (bound && strcmp(bound, buffer) == 0)
            return true;
    }
    return false;
}

/* Returns true if one of count other steps has an output of s as a parameter of a kind. */
static bool meets_output(const instance *in, const pipeline_step *s, const pipeline_step **others,
                         size_t count, param_kind kind)
{
    for (const param *p = step_family(in, s)->params; p->name; p++)
        for (size_t i = 0; p->kind == PARAM_OUT && i < count; i++)
            if (has_buffer(in, others[i], step_buffer(s, p->name), kind))
                return true;
    return false;
}

size_t pipeline_take_steps(const instance *in, const pipeline_step **taken)
{
    size_t count = 0, kept = 0;
    for (const pipeline_step *s = in->family->steps; s->family; s++)
        if (conditions_hold(in, s) && !meets_output(in, s, taken, count, PARAM_OUT))
            taken[count++] = s;
    for (size_t i = 0; i < count; i++) {
        const pipeline_step *s = taken[i];
        if (!s->for_later || meets_output(in, s, &taken[i + 1], count - i - 1, PARAM_IN))
            taken[kept++] = s;
    }
    return kept;
}

/* Makes a step's instance: the step's own values, then the pipeline's value for every key that both
 * have, else the key's default. A pipeline's value that means "none" counts as missing. */
instance step_instance(arena *a, const instance *in, const pipeline_step *s)
{
    instance made = { .family = step_family(in, s), .where = in->where };
    for (const key *k = made.family->keys; k->name; k++) {
        const char *name = s->n && strcmp(k->name, "n") == 0   ? s->n
                           : s->k && strcmp(k->name, "k") == 0 ? s->k
                                                               : k->name;
        const key *given = family_key(in->family, name);
        bool left =
            !given || (given->zero_is_none && !k->zero_is_none && !instance_value(in, given));
        instance_set(&made, k, left ? key_default(k) : instance_value(in, given));
        for (const condition *own = s->set; own->key; own++)
            if (strcmp(own->key, k->name) == 0)
                instance_set(&made, k, own->value);
    }
    made.name = instance_make_name(a, &made);
    return made;
}

const char *step_buffer(const pipeline_step *s, const char *param_name)
{
    static const char rows[] = "m_val";
    for (const binding *b = s->bind; b->param; b++)
        if (strcmp(b->param, param_name) == 0)
            return b->buffer;
    return strcmp(param_name, rows) == 0 ? rows : NULL;
}

enum { OUTPUTS, WEIGHTS, INPUTS, NUMBERS, ROLES };

static int role(const param *p)
{
    if (p->kind == PARAM_U32)
        return NUMBERS;
    bool blocks = formats[p->format].block_values > 1 && p->format != FORMAT_Q8_1;
    return p->kind == PARAM_OUT ? OUTPUTS : blocks ? WEIGHTS : INPUTS;
}

/* Uses of a buffer by the steps. */
typedef struct buffer_use {
    param param; /* first parameter bound to it, with the buffer's name */
    int64_t bytes;
    const char *size;   /* formula over m */
    bool by_row;        /* bytes are per row; the launch gives the rows */
    size_t first, last; /* first and last step that use it */
    bool read_later;    /* read by a step after the first */
} buffer_use;

typedef VEC(buffer_use) buffer_uses;

static void add_use(arena *a, const pipeline *p, size_t step, const param *used, buffer_uses *uses)
{
    const pipeline_launch *taken = &p->steps[step];
    const char *name = step_buffer(taken->step, used->name);
    if (!name)
        wrong_table(p->instance->family->name, "has no binding for", used->name);
    static const run_values one_row = { .m = 1 };
    bool is_number = used->kind == PARAM_U32;
    int64_t bytes =
        is_number ? (int64_t)sizeof(uint32_t) : formula_value(used->bytes, taken->kernel, NULL);
    bool by_row = bytes < 0;
    if (by_row)
        bytes = formula_value(used->bytes, taken->kernel, &one_row);
    size_t at = 0;
    while (at < uses->count && strcmp(uses->items[at].param.name, name) != 0)
        at++;
    bool is_first = at == uses->count;
    buffer_use *use = is_first ? VEC_PUSH(a, uses) : &uses->items[at];
    if (is_first) {
        *use = (buffer_use){ .param = *used, .first = step, .by_row = by_row };
        use->param.name = name;
    }
    if (bytes > use->bytes && !is_number) {
        strbuf size = strbuf_new(a);
        formula_print(&size, used->bytes, taken->kernel, FORMULA_NUMBERS);
        use->size = size.text;
    }
    use->last = step;
    use->read_later |= used->kind == PARAM_IN && step > use->first;
    use->bytes = bytes > use->bytes ? bytes : use->bytes;
    use->param.align = used->align > use->param.align ? used->align : use->param.align;
}

static bool is_between(const buffer_use *use)
{
    const param *p = &use->param;
    return (p->kind == PARAM_OUT && use->read_later) ||
           (p->kind == PARAM_SCRATCH && p->data != DATA_ZEROED);
}

pipeline_buffers pipeline_buffers_of(arena *a, const pipeline *p)
{
    buffer_uses uses = { 0 };
    for (size_t i = 0; i < p->step_count; i++) {
        param params[MAX_PARAMS];
        size_t count = instance_params(a, p->steps[i].kernel, params);
        for (size_t j = 0; j < count; j++)
            add_use(a, p, i, &params[j], &uses);
    }
    pipeline_buffers list = { .params = arena_alloc(a, (uses.count + 1) * sizeof *list.params),
                              .bytes = arena_alloc(a, (uses.count + 1) * sizeof *list.bytes),
                              .sizes = arena_alloc(a, (uses.count + 1) * sizeof *list.sizes),
                              .by_row = p->instance->rows_mode == ROWS_RUN_TIME,
                              .parts = arena_zalloc(a, (uses.count + 1) * sizeof *list.parts) };
    memory_part *parts = arena_alloc(a, (uses.count + 1) * sizeof *parts);
    for (size_t i = 0; i < uses.count; i++) {
        const buffer_use *use = &uses.items[i];
        if (!is_between(use))
            continue;
        parts[list.part_count] = (memory_part){ use->bytes, use->first, use->last, 0 };
        list.parts[list.part_count++].name = use->param.name;
    }
    list.workspace = memory_plan(a, parts, list.part_count);
    for (size_t i = 0; i < list.part_count; i++) {
        list.parts[i].bytes = parts[i].bytes;
        list.parts[i].offset = parts[i].offset;
    }
    for (int wanted = 0; wanted < ROLES; wanted++)
        for (size_t i = 0; i < uses.count; i++) {
            const buffer_use *use = &uses.items[i];
            if (is_between(use) || role(&use->param) != wanted)
                continue;
            list.bytes[list.count] = use->by_row ? -1 : use->bytes;
            list.sizes[list.count] = use->size ? use->size : use->param.size;
            list.params[list.count++] = use->param;
        }
    return list;
}

pipeline_place pipeline_place_of(const pipeline_buffers *buffers, const pipeline_step *s,
                                 const char *param_name)
{
    const char *name = step_buffer(s, param_name);
    for (size_t i = 0; i < buffers->part_count; i++)
        if (strcmp(buffers->parts[i].name, name) == 0)
            return (pipeline_place){ .part = &buffers->parts[i] };
    size_t at = 0;
    while (strcmp(buffers->params[at].name, name) != 0)
        at++;
    return (pipeline_place){ .buffer = at };
}
