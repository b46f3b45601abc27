#include <jansson.h>
#include <stdlib.h>

#include "base/os.h"
#include "emit/describe.h"
#include "emit/edited.h"
#include "emit/emit.h"
#include "gen/formula.h"

static json_t *made(json_t *value)
{
    if (!value)
        os_out_of_memory(sizeof *value);
    return value;
}

static void set_value(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, made(value)) != 0)
        os_out_of_memory(sizeof *value);
}

static void append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, made(value)) != 0)
        os_out_of_memory(sizeof *value);
}

static void set_string(json_t *object, const char *name, const char *text)
{
    set_value(object, name, json_string(text));
}

static void set_number(json_t *object, const char *name, int64_t number)
{
    set_value(object, name, json_integer(number));
}

/* Run-time values decide: null. */
static json_t *number_or_null(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static json_t *config_json(const instance *in)
{
    json_t *config = made(json_object());
    for (const key *k = in->family->keys; k->name; k++) {
        const char *word = config_word(in, k);
        int64_t value = instance_value(in, k);
        set_value(config, k->name,
                  word      ? json_string(word)
                  : k->real ? json_real(real_of_bits(value))
                            : json_integer(value));
    }
    return config;
}

/* What each address of an array of addresses points to. */
static json_t *target_json(const instance *in, const param *p)
{
    json_t *item = made(json_object());
    int64_t values = formula_value(p->target_values, in, NULL);
    set_string(item, "element", formats[p->target].name);
    set_value(
        item, "bytes",
        number_or_null(values < 0 ? values : (int64_t)format_bytes(p->target, (uint64_t)values)));
    set_string(item, "values", p->target_values);
    return item;
}

static json_t *params_json(const instance *in, const description *d)
{
    json_t *params = made(json_array());
    for (size_t i = 0; i < d->param_count; i++) {
        const param *p = &d->params[i];
        json_t *item = made(json_object());
        set_string(item, "name", p->name);
        set_string(item, "kind", param_is_pointer(p) ? "pointer" : "u32");
        set_string(item, "dir", p->kind == PARAM_OUT ? "out" : "in");
        if (param_is_pointer(p)) {
            set_string(item, "element", formats[p->format].name);
            set_value(item, "bytes", number_or_null(d->param_bytes[i]));
            set_string(item, "size", p->bytes);
            set_number(item, "align", p->align);
            if (p->target_values)
                set_value(item, "target", target_json(in, p));
        } else {
            set_string(item, "size", p->size);
        }
        append(params, item);
    }
    return params;
}

static json_t *block_json(const description *d)
{
    json_t *block = made(json_array());
    append(block, json_integer(d->block));
    append(block, json_integer(1));
    append(block, json_integer(1));
    return block;
}

static void set_grid(json_t *object, const description *d, const launch *how)
{
    json_t *grid = made(json_array());
    for (size_t i = 0; i < 3; i++)
        append(grid,
               d->grid_fixed ? json_integer(d->grid[i]) : json_string(formula_text(how->grid[i])));
    set_value(object, "grid", d->grid_fixed ? grid : json_null());
    if (!d->grid_fixed)
        set_value(object, "grid_expr", grid);
}

static json_t *resources_json(const resources *r)
{
    if (!r->known)
        return json_null();
    json_t *figures = made(json_object());
    set_number(figures, "registers", r->registers);
    set_number(figures, "spill_bytes", r->spill_bytes);
    set_number(figures, "stack_bytes", r->stack_bytes);
    return figures;
}

static void set_choice(json_t *object, const kernel_set *set, const kernel *k)
{
    json_t *chosen_for = made(json_array());
    for (size_t t = 0; t < set->target_count; t++)
        if (set->targets[t]->sm >= k->target->sm && set->targets[t]->sm <= k->newest->sm)
            append(chosen_for, json_string(set->targets[t]->name));
    set_string(object, "chosen_by", k->instance->chosen_by->name);
    set_value(object, "chosen_for", chosen_for);
}

static json_t *kernel_json(arena *a, const kernel_set *set, const kernel *k)
{
    const instance *in = k->instance;
    description d = describe_kernel(a, k);

    json_t *shared = made(json_object());
    set_number(shared, "static", (int64_t)k->shared_bytes);
    set_value(shared, "dynamic", number_or_null(d.dynamic_shared));
    if (d.dynamic_shared < 0)
        set_string(shared, "dynamic_expr", in->family->launch.dynamic_shared);

    json_t *item = made(json_object());
    set_string(item, "name", in->name);
    set_string(item, "family", in->family->name);
    set_string(item, "entry", in->name);
    set_string(item, "file", k->file);
    set_string(item, "target", k->target->name);
    set_string(item, "isa", arena_format(a, "%u.%u", k->isa / 10, k->isa % 10));
    if (kernel_is_chosen(k))
        set_choice(item, set, k);
    set_value(item, "config", config_json(in));
    set_value(item, "params", params_json(in, &d));
    set_value(item, "block", block_json(&d));
    set_grid(item, &d, &in->family->launch);
    set_value(item, "smem", shared);
    set_number(item, "workspace", 0);
    set_value(item, "ptxas", resources_json(&k->resources));
    set_string(item, "fnv1a64", ptx_checksum(a, k->ptx, k->ptx_length));
    return item;
}

static json_t *buffers_json(const pipeline_buffers *buffers)
{
    json_t *list = made(json_array());
    for (size_t i = 0; i < buffers->count; i++) {
        const param *p = &buffers->params[i];
        json_t *item = made(json_object());
        set_string(item, "name", p->name);
        set_string(item, "dir", p->kind == PARAM_OUT ? "out" : "in");
        set_string(item, "element", formats[p->format].name);
        set_number(item, "bytes", buffers->bytes[i]);
        set_number(item, "align", p->align);
        append(list, item);
    }
    return list;
}

static json_t *step_json(const pipeline *p, size_t index)
{
    json_t *bind = made(json_object());
    for (const binding *b = p->instance->family->steps[index].bind; b->param; b++)
        set_string(bind, b->param, b->buffer == WORKSPACE ? "workspace+0" : b->buffer);
    json_t *item = made(json_object());
    set_string(item, "kernel", p->steps[index]->name);
    set_value(item, "bind", bind);
    return item;
}

static json_t *pipeline_json(arena *a, const pipeline *p)
{
    pipeline_buffers buffers = pipeline_buffers_of(a, p);
    json_t *steps = made(json_array());
    for (size_t i = 0; i < p->step_count; i++)
        append(steps, step_json(p, i));
    json_t *item = made(json_object());
    set_string(item, "name", p->instance->name);
    set_string(item, "pipeline", p->instance->family->name);
    set_value(item, "config", config_json(p->instance));
    set_value(item, "buffers", buffers_json(&buffers));
    set_value(item, "steps", steps);
    set_number(item, "workspace", buffers.workspace);
    return item;
}

void emit_manifest(strbuf *out, const kernel_set *set)
{
    json_t *kernels = made(json_array());
    for (size_t i = 0; i < set->kernel_count; i++)
        append(kernels, kernel_json(out->arena, set, &set->kernels[i]));

    json_t *manifest = made(json_object());
    set_string(manifest, "ptxgen", PTXGEN_VERSION);
    set_number(manifest, "abi", PTXGEN_HEADER_ABI);
    set_string(manifest, "prefix", set->prefix);
    set_value(manifest, "kernels", kernels);
    json_t *list = made(json_array());
    for (size_t i = 0; i < set->pipeline_count; i++)
        append(list, pipeline_json(out->arena, &set->pipelines[i]));
    set_value(manifest, "pipelines", list);

    char *text =
        json_dumps(manifest, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
    if (!text)
        os_out_of_memory(0);
    strbuf_put(out, text);
    strbuf_char(out, '\n');
    free(text);
    json_decref(manifest);
}
