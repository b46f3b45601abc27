#include "emit/manifest.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/os.h"
#include "emit/manifest_rows.h"
#include "kernel/formula.h"
#include "version.h"

/* Run-time values decide: null. */
static json_t *number_or_null(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static json_t *config_json(const instance *in)
{
    json_t *config = json_made(json_object());
    for (const key *k = in->family->keys; k->name; k++) {
        const char *word = config_word(in, k);
        int64_t value = instance_value(in, k);
        json_put(config, k->name,
                 word      ? json_string(word)
                 : k->real ? json_real(real_of_bits(value))
                           : json_integer(value));
    }
    return config;
}

static json_t *sizes_json(int64_t x, int64_t y, int64_t z)
{
    json_t *list = json_made(json_array());
    json_add(list, json_integer(x));
    json_add(list, json_integer(y));
    json_add(list, json_integer(z));
    return list;
}

static json_t *grid_expressions_json(arena *a, const instance *in)
{
    json_t *list = json_made(json_array());
    for (size_t i = 0; i < 3; i++)
        json_add(list, json_string(formula_names(a, in->family->launch.grid[i], in)));
    return list;
}

static json_t *chosen_for_json(const kernel_set *set, const kernel *k)
{
    json_t *list = json_made(json_array());
    for (size_t t = 0; t < set->target_count; t++)
        if (set->targets[t] >= k->target && set->targets[t] <= k->newest)
            json_add(list, json_string(set->targets[t]->name));
    return list;
}

static json_t *chosen_with_json(const kernel *k)
{
    json_t *list = json_made(json_array());
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (instance_chosen(k->instance, k->target) >> p & 1)
            json_add(list, json_string(precision_choices[p].word));
    return list;
}

/* For each parameter a buffer's name, or "workspace+256". */
static json_t *bind_json(arena *a, const pipeline_launch *taken, const pipeline_buffers *buffers)
{
    json_t *bind = json_made(json_object());
    param params[MAX_PARAMS];
    size_t count = instance_params(a, taken->kernel, params);
    for (size_t i = 0; i < count; i++) {
        const char *name = params[i].name;
        const pipeline_part *part = pipeline_place_of(buffers, taken->step, name).part;
        json_put_string(bind, name,
                        part ? arena_format(a, "workspace+%s%lld", buffers->by_row ? "m*" : "",
                                            (long long)part->offset)
                             : step_buffer(taken->step, name));
    }
    return bind;
}

#include "emit/manifest.def"

json_t *manifest_json(arena *a, const described_set *d)
{
    return root_json(a, d);
}

void emit_manifest(strbuf *out, const described_set *d)
{
    json_t *manifest = manifest_json(out->arena, d);
    char *text =
        json_dumps(manifest, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
    if (!text)
        arena_exhausted(out->arena, 0);
    strbuf_put(out, text);
    strbuf_char(out, '\n');
    free(text);
    json_decref(manifest);
}
