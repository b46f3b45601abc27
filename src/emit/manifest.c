#include "emit/manifest.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/os.h"
#include "emit/json.h"
#include "kernel/formula.h"

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

/* What each address of an array of addresses points to. */
static json_t *target_json(arena *a, const instance *in, const param *p)
{
    json_t *item = json_made(json_object());
    int64_t values = formula_value(p->target_values, in, NULL);
    json_put_string(item, "element", formats[p->target].name);
    json_put(
        item, "bytes",
        number_or_null(values < 0 ? values : (int64_t)format_bytes(p->target, (uint64_t)values)));
    json_put_string(item, "values", formula_names(a, p->target_values, in));
    return item;
}

/* Where things stand in a partial row, in values of the buffer's element. */
static json_t *partial_row_json(const instance *in)
{
    enum { LARGEST, SUM };
    json_t *row = json_made(json_object());
    json_put_number(row, "row_values", in->shape.head_dim + PARTIAL_EXTRA);
    json_put_number(row, "sums", 0);
    json_put_number(row, "max", in->shape.head_dim + LARGEST);
    json_put_number(row, "weight", in->shape.head_dim + SUM);
    json_put_string(row, "max_unit", "log 2");
    return row;
}

static json_t *params_json(arena *a, const instance *in, const description *d)
{
    json_t *params = json_made(json_array());
    for (size_t i = 0; i < d->param_count; i++) {
        const param *p = &d->params[i];
        json_t *item = json_made(json_object());
        json_put_string(item, "name", p->name);
        json_put_string(item, "kind", param_is_pointer(p) ? "pointer" : "u32");
        json_put_string(item, "dir", param_direction(p));
        if (param_is_pointer(p)) {
            json_put_string(item, "element", formats[p->format].name);
            json_put(item, "bytes", number_or_null(d->param_bytes[i]));
            json_put_string(item, "size", formula_names(a, p->bytes, in));
            json_put_number(item, "align", p->align);
            if (p->holds)
                json_put_string(item, "holds", p->holds);
            if (p->target_values)
                json_put(item, "target", target_json(a, in, p));
            if (p->partial_rows)
                json_put(item, "layout", partial_row_json(in));
        } else {
            json_put_string(item, "size", p->size);
        }
        json_add(params, item);
    }
    return params;
}

static json_t *block_json(const description *d)
{
    json_t *block = json_made(json_array());
    json_add(block, json_integer(d->block));
    json_add(block, json_integer(1));
    json_add(block, json_integer(1));
    return block;
}

static void set_grid(arena *a, json_t *object, const description *d, const instance *in)
{
    json_t *grid = json_made(json_array());
    for (size_t i = 0; i < 3; i++) {
        const char *formula = formula_names(a, in->family->launch.grid[i], in);
        json_add(grid, d->grid_fixed ? json_integer(d->grid[i]) : json_string(formula));
    }
    json_put(object, "grid", d->grid_fixed ? grid : json_null());
    if (!d->grid_fixed)
        json_put(object, "grid_expr", grid);
}

static json_t *resources_json(const resources *r)
{
    if (!r->known)
        return json_null();
    json_t *figures = json_made(json_object());
    json_put_number(figures, "registers", r->registers);
    json_put_number(figures, "spill_bytes", r->spill_bytes);
    json_put_number(figures, "stack_bytes", r->stack_bytes);
    return figures;
}

static void set_choice(json_t *object, const kernel_set *set, const kernel *k)
{
    json_t *chosen_for = json_made(json_array());
    for (size_t t = 0; t < set->target_count; t++)
        if (set->targets[t] >= k->target && set->targets[t] <= k->newest)
            json_add(chosen_for, json_string(set->targets[t]->name));
    json_t *chosen_with = json_made(json_array());
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (instance_chosen(k->instance, k->target) >> p & 1)
            json_add(chosen_with, json_string(precision_choices[p].word));
    json_put_string(object, "chosen_by", k->instance->chosen_by->name);
    json_put(object, "chosen_for", chosen_for);
    json_put(object, "chosen_with", chosen_with);
}

static json_t *kernel_json(arena *a, const kernel_set *set, const description *d)
{
    const kernel *k = d->kernel;
    const instance *in = k->instance;

    json_t *shared = json_made(json_object());
    json_put_number(shared, "static", (int64_t)k->shared_bytes);
    json_put(shared, "dynamic", number_or_null(d->dynamic_shared));
    if (d->dynamic_shared < 0)
        json_put_string(shared, "dynamic_expr",
                        formula_names(a, in->family->launch.dynamic_shared, in));

    json_t *item = json_made(json_object());
    json_put_string(item, "name", in->name);
    json_put_string(item, "family", in->family->name);
    json_put_string(item, "operation", operations[in->family->op].name);
    json_put_string(item, "entry", in->name);
    json_put_string(item, "file", k->file);
    json_put_string(item, "target", kernel_target_name(k));
    json_put_string(item, "isa", arena_format(a, "%u.%u", k->isa / 10, k->isa % 10));
    json_put(item, "overlaps", json_made(json_boolean(k->overlaps)));
    if (kernel_is_chosen(k))
        set_choice(item, set, k);
    json_put(item, "config", config_json(in));
    json_put(item, "params", params_json(a, in, d));
    json_put(item, "block", block_json(d));
    set_grid(a, item, d, in);
    json_put(item, "smem", shared);
    json_put_number(item, "workspace", 0);
    json_put(item, "ptxas", resources_json(&k->resources));
    json_put_string(item, "fnv1a64", fnv1a64_text(a, k->edited_file ? k->generated : d->checksum));
    if (k->edited_file)
        json_put_string(item, "edited_fnv1a64", fnv1a64_text(a, d->checksum));
    if (instance_activations(in) != FORMAT_NONE)
        json_put_string(item, "precision", formats[instance_precision(in)].name);
    if (instance_same_bits(in))
        json_put(item, "same_bits", json_true());
    return item;
}

static json_t *buffers_json(const pipeline_buffers *buffers)
{
    json_t *list = json_made(json_array());
    for (size_t i = 0; i < buffers->count; i++) {
        const param *p = &buffers->params[i];
        json_t *item = json_made(json_object());
        json_put_string(item, "name", p->name);
        json_put_string(item, "kind", param_is_pointer(p) ? "pointer" : "u32");
        json_put_string(item, "dir", param_direction(p));
        if (param_is_pointer(p)) {
            json_put_string(item, "element", formats[p->format].name);
            json_put(item, "bytes", number_or_null(buffers->bytes[i]));
        }
        json_put_string(item, "size", buffers->sizes[i]);
        if (param_is_pointer(p))
            json_put_number(item, "align", p->align);
        json_add(list, item);
    }
    return list;
}

static json_t *step_json(arena *a, const pipeline_launch *taken, const pipeline_buffers *buffers)
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
    json_t *item = json_made(json_object());
    json_put_string(item, "kernel", taken->kernel->name);
    json_put(item, "bind", bind);
    return item;
}

static json_t *pipeline_json(arena *a, const pipeline *p)
{
    pipeline_buffers buffers = pipeline_buffers_of(a, p);
    json_t *steps = json_made(json_array());
    for (size_t i = 0; i < p->step_count; i++)
        json_add(steps, step_json(a, &p->steps[i], &buffers));
    json_t *item = json_made(json_object());
    json_put_string(item, "name", p->instance->name);
    json_put_string(item, "pipeline", p->instance->family->name);
    json_put_string(item, "operation", operations[p->instance->family->op].name);
    json_put_string(item, "activations", formats[pipeline_activations(&buffers)].name);
    json_put_string(item, "precision", formats[pipeline_precision(p)].name);
    json_put(item, "config", config_json(p->instance));
    json_put(item, "buffers", buffers_json(&buffers));
    json_put(item, "steps", steps);
    json_put(item, "workspace", number_or_null(buffers.by_row ? -1 : buffers.workspace));
    json_put_string(
        item, "workspace_size",
        arena_format(a, "%s%lld", buffers.by_row ? "m*" : "", (long long)buffers.workspace));
    return item;
}

static json_t *alias_json(const kernel_set *set, const alias *of)
{
    json_t *chosen = json_made(json_array());
    for (size_t t = 0; t < set->target_count; t++) {
        json_t *one = json_made(json_object());
        json_put_string(one, "target", set->targets[t]->name);
        json_put_string(one, "kernel", of->chosen[t]->name);
        json_add(chosen, one);
    }
    json_t *item = json_made(json_object());
    json_put_string(item, "name", of->name);
    json_put(item, "chosen", chosen);
    return item;
}

/* What a program must know that launches by this file alone, and no number says. */
static json_t *conventions_json(const char *of_plan)
{
    static const struct {
        const char *of, *said;
    } conventions[] = {
        { "expressions", "size, grid_expr, dynamic_expr: whole numbers over the numbers of config, "
                         "k, n, m, seq_len as given at the launch, and sm_count; / drops the rest; "
                         "ceil_div(a, b) is (a + b - 1) / b" },
        { "config",
          "keys as the spec says them; those with words are strings; with dims dynamic k, n "
          "and m are what the kernel was made for, 0 where nothing is, and parameters say "
          "them; with rows run_time m is how many rows of X a block takes at once, and in "
          "expressions m is m_val, any number up to 65535 times that" },
        { "workspace", "of a pipeline: bytes, or null where workspace_size says them for m rows; "
                       "workspace+m*OFFSET is so far from its start for each row" },
        { "params",
          "in the order of the entry's; pointers are 64 bits, u32 is the number that size "
          "names" },
        { "dir", "scratch: belongs to one launch at a time; zeroed: 0 before the first launch, and "
                 "again after each" },
        { "target", "runs there and on newer GPUs, or with a letter behind it there alone; of "
                    "kernels of one name take the newest that the GPU runs" },
        { "overlaps",
          "may be launched with programmatic stream serialization (cuLaunchKernelEx): it "
          "waits for the launch ahead of it, which has to do the same or to start when "
          "all ahead of it has finished; with config.state settled it reads positions, lengths and "
          "addresses ahead of that: what wrote them has to have finished before it starts" },
        { "weights", "blocks as ggml stores them, row-major: n rows of k" },
        { "caches", "K and V are [num_kv_heads, max_seq_len, head_dim]; with config.ring "
                    "[num_kv_heads, ring, head_dim], position t in row t % ring; address: an array "
                    "of addresses of such, one a sequence" },
        { "seq_len", "config.seq_len says how the length is given: direct, a number, or indirect, "
                     "the address of one; in size it is the length itself" },
        { "scale", "0 stands for 1 / sqrt(head_dim)" },
        { "softcap", "0 stands for none" },
        { "window", "0 stands for none" },
        { "holds", "what the values are, in words" },
        { "layout", "a row of partial results: at sums head_dim sums of 2^(s - max) v, at max the "
                    "largest s, at weight the sum of 2^(s - max); s is log2(e) times what the "
                    "softmax is of; a row of a chunk without positions is not written" },
    };
    json_t *object = json_made(json_object());
    for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++)
        json_put_string(object, conventions[i].of, conventions[i].said);
    if (of_plan)
        json_put_string(object, "decoder", of_plan);
    return object;
}

json_t *manifest_json(arena *a, const described_set *d)
{
    const kernel_set *set = d->set;
    json_t *kernels = json_made(json_array());
    for (size_t i = 0; i < set->kernel_count; i++)
        json_add(kernels, kernel_json(a, set, &d->kernels[i]));

    json_t *manifest = json_made(json_object());
    json_put_string(manifest, "ptxgen", PTXGEN_VERSION);
    json_put_number(manifest, "abi", PTXGEN_HEADER_ABI);
    json_put_string(manifest, "prefix", set->prefix);
    json_put(manifest, "kernels", kernels);
    json_t *list = json_made(json_array());
    for (size_t i = 0; i < set->pipeline_count; i++)
        json_add(list, pipeline_json(a, &set->pipelines[i]));
    json_put(manifest, "pipelines", list);
    json_t *aliases = json_made(json_array());
    for (size_t i = 0; i < set->alias_count; i++)
        json_add(aliases, alias_json(set, &set->aliases[i]));
    json_put(manifest, "aliases", aliases);
    if (set->plan)
        json_put(manifest, "decoder", set->upper->manifest(a, set->plan));
    json_put(manifest, "conventions",
             conventions_json(set->plan ? set->upper->manifest_convention : NULL));
    return manifest;
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
