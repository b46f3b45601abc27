/* Grids and dynamic shared memory that run-time values decide, as C functions. k and n are run-time
 * values here also where the configuration fixes them (ptxgen_run_of fills them in): so kernels
 * that differ in their shape alone share one function. A function each would cost the compiler of
 * the header more than all the rest.
 */
#include "emit/header_functions.h"

#include <string.h>

#include "kernel/formula.h"

typedef VEC(const char *) bodies;

/* The name of the function with this body, defined where it is the first: "llama_grid_1". */
static const char *define(strbuf *out, bodies *known, const char *type, const char *stem,
                          const char *parameters, const char *body)
{
    size_t number = 0;
    while (number < known->count && strcmp(known->items[number], body) != 0)
        number++;
    const char *name = arena_format(out->arena, "%s_%zu", stem, number);
    if (number == known->count) {
        *VEC_PUSH(out->arena, known) = body;
        strbuf_format(out, "static %s %s(%s)\n{\n%s}\n\n", type, name, parameters, body);
    }
    return name;
}

static void print_formula(strbuf *body, const char *formula, const instance *in)
{
    instance any_size = *in;
    any_size.dims = DIMS_DYNAMIC;
    formula_print(body, formula, &any_size, FORMULA_C);
}

/* Grids divide by run-time values: without one that they need they are left 0. So are extents that
 * CUDA does not allow. */
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

static const char *shared_body(arena *a, const instance *in)
{
    strbuf body = strbuf_new(a);
    strbuf_put(&body, "    return (unsigned)PTXGEN_MIN(");
    print_formula(&body, in->family->launch.dynamic_shared, in);
    strbuf_put(&body, ", UINT32_MAX);\n");
    return body.text;
}

const run_functions *print_run_functions(strbuf *out, const described_set *d)
{
    arena *a = out->arena;
    const kernel_set *set = d->set;
    run_functions *functions = arena_zalloc(a, set->kernel_count * sizeof *functions);
    bodies grids = { 0 }, shareds = { 0 };
    const char *grid = arena_format(a, "%s_grid", set->prefix);
    const char *shared = arena_format(a, "%s_shared", set->prefix);
    for (size_t i = 0; i < set->kernel_count; i++) {
        const instance *in = set->kernels[i].instance;
        if (!d->kernels[i].grid_fixed)
            functions[i].grid = define(out, &grids, "void", grid,
                                       "const ptxgen_run *run, unsigned grid[3]", grid_body(a, in));
        if (d->kernels[i].dynamic_shared < 0)
            functions[i].shared = define(out, &shareds, "unsigned", shared, "const ptxgen_run *run",
                                         shared_body(a, in));
    }
    return functions;
}
