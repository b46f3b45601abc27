#include "emit/emit.h"
#include "emit/json.h"
#include "kernel/formula.h"
#include "version.h"

/* Returns null for a number that depends on run-time values (-1). */
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
    return json_pack("[III]", (json_int_t)x, (json_int_t)y, (json_int_t)z);
}

static json_t *grid_expressions_json(arena *a, const instance *in)
{
    const char *const *grid = in->family->launch.grid;
    return json_pack("[sss]", formula_names(a, grid[0], in), formula_names(a, grid[1], in),
                     formula_names(a, grid[2], in));
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

/* Returns the buffer's name, or "workspace+256", for each parameter. */
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
    strbuf_put(out, json_text(out->arena, root_json(out->arena, d),
                              JSON_INDENT(2) | JSON_REAL_PRECISION(15)));
    strbuf_char(out, '\n');
}

const char *emit_header_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.h", set->prefix));
}

const char *emit_manifest_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.json", set->prefix));
}

static void add_file(arena *a, output_files *files, const char *path, const char *bytes,
                     size_t size)
{
    *VEC_PUSH(a, files) = (output_file){ .path = path, .bytes = bytes, .size = size };
}

void emit_files(arena *a, const described_set *d, const char *folder, output_files *files)
{
    const kernel_set *set = d->set;
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    emit_header(&header, d);
    emit_manifest(&manifest, d);
    add_file(a, files, emit_header_path(a, set, folder), header.text, header.length);
    add_file(a, files, emit_manifest_path(a, set, folder), manifest.text, manifest.length);
    for (const kernel *k = set->kernels; k < set->kernels + set->kernel_count; k++)
        add_file(a, files, path_in(a, folder, k->file), k->ptx, k->ptx_length);
}
