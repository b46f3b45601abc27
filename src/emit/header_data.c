/* Prints tables and descriptors. Descriptors use positional initializers, since C++ before C++20
 * has no designated ones. The order is that of ptxgen_kernel in templates/header.h.in.
 *
 * Grids and dynamic shared memory that depend on run-time values become C functions. They treat k
 * and n as run-time values even if the configuration fixes them (ptxgen_run_of fills them in), so
 * that kernels of different shapes share a function. One function per kernel would dominate the
 * header's compile time. */
#include "emit/header_parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "kernel/formula.h"

void print_constant(strbuf *out, const char *name)
{
    strbuf_put(out, "PTXGEN_");
    strbuf_upper(out, name);
}

void print_constants(strbuf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_put(out, i ? ", " : "");
        print_constant(out, names[i]);
    }
}

void print_param(strbuf *out, const param *p, int64_t bytes, const char *size)
{
    bool pointer = param_is_pointer(p);
    strbuf_format(out, "    { \"%s\", PTXGEN_PARAM_%s, PTXGEN_PARAM_", p->name,
                  pointer ? "POINTER" : "U32");
    strbuf_upper(out, param_direction(p));
    strbuf_put(out, ", ");
    print_constant(out, formats[pointer || p->format == FORMAT_F32 ? p->format : FORMAT_U32].name);
    strbuf_format(out, ", %" PRId64 ", \"%s\", %u },\n", bytes < 0 ? 0 : bytes, size,
                  pointer ? p->align : (unsigned)sizeof(uint32_t));
}

size_t print_config(strbuf *out, const char *id, const instance *in)
{
    const key *first = in->family->keys, *k = first;
    strbuf_format(out, "static const ptxgen_config %s_config[] = {\n", id);
    for (; k->name; k++) {
        const char *word = config_word(in, k), *quote = word ? "\"" : "";
        strbuf_format(out, "    { \"%s\", %" PRId64 ", %s, %s%s%s, ", k->name,
                      k->real ? 0 : instance_value(in, k),
                      k->real ? instance_value_text(out->arena, in, k) : "0", quote,
                      word ? word : "NULL", quote);
        if (key_is_passed(in, k))
            strbuf_format(out, "1, %" PRId64 ", %" PRId64 ", %" PRId64 " },\n", key_least(in, k),
                          key_most(in, k), key_multiple(in, k));
        else
            strbuf_put(out, "0, 0, 0, 1 },\n");
    }
    strbuf_put(out, "};\n");
    return (size_t)(k - first);
}

/* Names of C functions that compute a kernel's grid and dynamic shared memory; "NULL" if fixed. */
typedef struct run_functions {
    const char *grid, *shared;
} run_functions;

/* Returns the name of the function with a body, e.g. "llama_grid_1". Defines it on first use. */
static const char *define_function(strbuf *out, name_map *known, const char *type, const char *stem,
                                   const char *parameters, const char *body)
{
    size_t next = known->count, number = name_map_find_or_add(out->arena, known, body, next);
    const char *name = arena_format(out->arena, "%s_%zu", stem, number);
    if (number == next)
        strbuf_format(out, "static %s %s(%s)\n{\n%s}\n\n", type, name, parameters, body);
    return name;
}

static void print_formula(strbuf *body, const char *formula, const instance *in)
{
    instance any_size = *in;
    any_size.dims = DIMS_DYNAMIC;
    formula_print(body, formula, &any_size, FORMULA_C);
}

/* Returns a grid function's body. The grid is 0 without a run-time value or above limits. */
static const char *grid_body(arena *a, const instance *in)
{
    static const char *const values[] = { "run->k", "run->n", "run->m", "run->sm_count" };
    strbuf grids = strbuf_new(a), body = strbuf_new(a);
    for (size_t i = 0; i < 3; i++) {
        strbuf_format(&grids, "    grid[%zu] = ptxgen_extent(", i);
        print_formula(&grids, in->family->launch.grid[i], in);
        strbuf_format(&grids, ", %d);\n", i ? TARGET_MOST_GRID_YZ : TARGET_MOST_GRID_X);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strstr(grids.text, values[i]))
            strbuf_format(&body, "    if (%s <= 0)\n        return;\n", values[i]);
    strbuf_put(&body, grids.text);
    return body.text;
}

static void print_sizes(strbuf *out, const description *d)
{
    const instance *in = d->kernel->instance;
    const problem_shape *s = &in->shape;
    const key *warps = family_key(in->family, "num_warps");
    strbuf_format(out,
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", /* k, n, m */\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                  ", /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */\n"
                  "    %d, %d, /* dynamic_dims, seq_len_indirect */\n",
                  s->k, s->n, family_key(in->family, "m") ? s->m : 1,
                  warps ? instance_value(in, warps) : d->block / WARP, s->head_dim, s->num_heads,
                  s->num_kv_heads, s->max_seq_len, in->dims == DIMS_DYNAMIC,
                  in->seq_len_mode == SEQ_LEN_INDIRECT);
}

static void print_definitions(strbuf *out, const kernel_set *set, const description *d,
                              const run_functions *at_run_time)
{
    const kernel *k = d->kernel;
    const instance *in = k->instance;
    const family *f = in->family;

    strbuf_format(out, "static const ptxgen_param %s_params[] = {\n", d->id);
    for (size_t i = 0; i < d->param_count; i++) {
        const param *p = &d->params[i];
        print_param(out, p, d->param_bytes[i],
                    param_is_pointer(p) ? formula_names(out->arena, p->bytes, in) : p->size);
    }
    strbuf_put(out, "};\n");
    size_t config_count = print_config(out, d->id, in);

    strbuf_format(out,
                  "const ptxgen_kernel %s = {\n"
                  "    \"%s\", \"%s\",\n"
                  "    %s%s_ptx, %zu, UINT64_C(0x%016" PRIx64 "),\n"
                  "    \"%s\", ",
                  d->id, in->name, d->like->kernel->instance->name,
                  is_printed_as_words(set, d->like) ? "(const char *)" : "", d->like->id,
                  d->like->text.length, d->like->text.checksum, f->name);
    const char *constants[] = { operations[f->op].name, formats[weights_of(in)].name,
                                formats[instance_activations(in)].name,
                                formats[instance_precision(in)].name };
    print_constants(out, constants, sizeof constants / sizeof *constants);
    strbuf_format(out,
                  ",\n    %u, %u, %d, %d, /* sm, isa, overlaps, specific */\n"
                  "    %s_params, %zu,\n",
                  k->target->sm, k->isa, k->overlaps, k->specific, d->id, d->param_count);
    strbuf_format(out,
                  "    { %" PRId64 ", 1, 1 }, { %" PRId64 ", %" PRId64 ", %" PRId64
                  " }, %s, /* block, grid, grid_at */\n"
                  "    %zu, %" PRId64
                  ", %s, 0, /* shared_static, shared_dynamic, shared_at, workspace */\n",
                  d->block, d->grid_fixed ? d->grid[0] : 0, d->grid_fixed ? d->grid[1] : 0,
                  d->grid_fixed ? d->grid[2] : 0, at_run_time->grid, d->kernel->shared_bytes,
                  d->dynamic_shared < 0 ? 0 : d->dynamic_shared, at_run_time->shared);
    print_sizes(out, d);
    unsigned chosen = instance_chosen(in, k->target), registers = 0, blocks = 0;
    const char *quote = chosen ? "\"" : "";
    if (k->resources.known)
        registers = k->resources.registers;
    if (k->resources.known && d->dynamic_shared >= 0)
        blocks = target_blocks_per_sm(k->target, (unsigned)d->block, registers,
                                      k->shared_bytes + (size_t)d->dynamic_shared);
    strbuf_format(out,
                  "    %s_config, %zu,\n"
                  "    %u, %u, /* registers, blocks_per_sm */\n"
                  "    %d, /* preference */\n"
                  "    %s%s%s, %u, %u, /* chosen_by, chosen_f32, chosen_q8 */\n};\n\n",
                  d->id, config_count, registers, blocks, f->preference, quote,
                  chosen ? in->chosen_by->name : "NULL", quote, chosen >> PRECISION_F32 & 1,
                  chosen >> PRECISION_Q8 & 1);
}

void print_kernel_definitions(strbuf *out, const described_set *d)
{
    arena *a = out->arena;
    const kernel_set *set = d->set;
    run_functions *at_run_time = arena_alloc(a, set->kernel_count * sizeof *at_run_time);
    name_map grids = { 0 }, shareds = { 0 };
    const char *grid = arena_format(a, "%s_grid", set->prefix);
    const char *shared = arena_format(a, "%s_shared", set->prefix);
    for (size_t i = 0; i < set->kernel_count; i++) {
        const instance *in = set->kernels[i].instance;
        at_run_time[i] = (run_functions){ "NULL", "NULL" };
        if (!d->kernels[i].grid_fixed)
            at_run_time[i].grid =
                define_function(out, &grids, "void", grid,
                                "const ptxgen_run *run, unsigned grid[3]", grid_body(a, in));
        if (d->kernels[i].dynamic_shared >= 0)
            continue;
        strbuf body = strbuf_new(a);
        strbuf_put(&body, "    return (unsigned)PTXGEN_MIN(");
        print_formula(&body, in->family->launch.dynamic_shared, in);
        strbuf_put(&body, ", UINT32_MAX);\n");
        at_run_time[i].shared =
            define_function(out, &shareds, "unsigned", shared, "const ptxgen_run *run", body.text);
    }
    for (size_t i = 0; i < set->kernel_count; i++) {
        if (d->kernels[i].like == &d->kernels[i])
            print_ptx(out, set, &d->kernels[i]);
        print_definitions(out, set, &d->kernels[i], &at_run_time[i]);
    }
}
