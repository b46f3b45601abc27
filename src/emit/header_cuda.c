/* Prints the load, launch and node functions. A launch function packs its arguments for
 * cuLaunchKernel and passes its index among the loaded kernels; ptxgen_launch reads the rest from
 * the kernel's descriptor. An instance with kernels for several targets has one index, that of the
 * first of them in the table.
 *
 * Only load functions refer to kernels. So the linker can drop kernels that are never loaded. */
#include "emit/header_parts.h"

#include <inttypes.h>

#include "kernel/formula.h"

/* Subject of the functions: an instance, a pipeline or an alias. */
typedef struct callee {
    const instance *in; /* source of the sizes */
    const char *id;
    const param *params;
    size_t count;
    size_t place, kernel_count; /* of an instance: index of its first kernel, number of kernels */
    const pipeline *pipeline;   /* NULL: not a pipeline */
    pipeline_buffers buffers;
    const alias *alias; /* NULL: not an alias */
} callee;

enum { FULL_LINE = 60 };

static callee callee_of(const description *d)
{
    return (callee){
        .in = d->kernel->instance, .id = d->id, .params = d->params, .count = d->param_count
    };
}

typedef enum style {
    AS_PARAMETER, /* "ptxgen_deviceptr y" */
    AS_NAME,      /* "y" */
    AS_ADDRESS,   /* "&y" */
    AS_ROLE,      /* "y out f32[4096]", "n_dim in u32"; in a pipeline "q out f32 (16384 bytes)" */
} style;

static void print_one(strbuf *out, const callee *c, const param *p, style how)
{
    bool pointer = param_is_pointer(p);
    switch (how) {
    case AS_PARAMETER:
        strbuf_format(out, "%s %s",
                      !pointer              ? p->format == FORMAT_F32 ? "float" : "uint32_t"
                      : p->kind == PARAM_IN ? "ptxgen_const_deviceptr"
                                            : "ptxgen_deviceptr",
                      p->name);
        break;
    case AS_NAME:
    case AS_ADDRESS:
        strbuf_format(out, "%s%s", how == AS_NAME ? "" : "&", p->name);
        break;
    case AS_ROLE:
        strbuf_format(out, "%s %s %s", p->name, pointer ? param_direction(p) : "in",
                      formats[pointer || p->format == FORMAT_F32 ? p->format : FORMAT_U32].name);
        if (pointer && c->pipeline) {
            strbuf_format(out, " (%s bytes)", c->buffers.sizes[p - c->params]);
        } else if (pointer) {
            int64_t values = formula_value(p->values, c->in, NULL);
            const char *formula = formula_names(out->arena, p->values, c->in);
            strbuf_format(out, "[%s]",
                          values < 0 ? formula
                                     : arena_format(out->arena, "%lld", (long long)values));
        }
        break;
    }
}

/* Prints parameters first to end - 1, separated by commas. */
static void print_each(strbuf *out, const callee *c, size_t first, size_t end, style how)
{
    size_t line_start = out->length;
    for (size_t i = first; i < end; i++) {
        if (i > first && out->length - line_start > FULL_LINE) {
            strbuf_put(out, ",\n");
            line_start = out->length;
            strbuf_put(out, "    ");
        } else if (i > first) {
            strbuf_put(out, ", ");
        }
        print_one(out, c, &c->params[i], how);
    }
}

void print_first_arguments(strbuf *out, const described_set *d)
{
    callee c = callee_of(d->kernels);
    print_each(out, &c, 0, c.count, AS_NAME);
}

/* A function in addition to the load function: launch, or fill graph nodes. */
typedef struct action {
    const char *word, *type, *name, *pipeline_name; /* of the function and its parameter */
    const char *launches, *launches_pipeline;       /* called functions */
} action;
static const action actions[] = {
    { "launch", "ptxgen_stream ", "stream", "stream", "ptxgen_launch",
      "ptxgen_launch_pipeline_in" },
    { "node", "ptxgen_node *", "node", "nodes", "ptxgen_fill_node", "ptxgen_fill_pipeline_nodes" },
};

/* Prints a function's head. The parameters are outputs, weights, inputs, workspace, numbers. */
static void print_signature(strbuf *out, const kernel_set *set, const callee *c, const action *does)
{
    size_t pointers = 0;
    while (pointers < c->count && param_is_pointer(&c->params[pointers]))
        pointers++;
    strbuf_format(out,
                  "static inline ptxgen_result %s_%s(\n"
                  "    const %s_cuda *cuda, %s%s,\n"
                  "    ",
                  c->id, does->word, set->prefix, does->type,
                  c->pipeline ? does->pipeline_name : does->name);
    print_each(out, c, 0, pointers, AS_PARAMETER);
    if (c->buffers.workspace)
        strbuf_put(out, ",\n    ptxgen_deviceptr workspace, size_t workspace_bytes");
    strbuf_put(out, pointers < c->count ? ", " : "");
    print_each(out, c, pointers, c->count, AS_PARAMETER);
    strbuf_put(out, ")\n{\n");
}

/* Prints "if (cuda->driver.sm >= 90) return a(cuda); ... return c(cuda);": a call by the newest
 * target that the device runs. Neighbouring targets with the same kernel share a condition. */
static void print_choices(strbuf *out, const described_set *d, const alias *of, const char *what,
                          const char *arguments)
{
    const kernel_set *set = d->set;
    for (size_t t = set->target_count; t-- > 0;) {
        if (t && of->chosen[t] == of->chosen[t - 1] && !set->targets[t - 1]->specific)
            continue;
        if (t)
            strbuf_format(out, "    if (cuda->driver.sm %s %u)\n    ",
                          set->targets[t]->specific ? "==" : ">=", set->targets[t]->sm);
        strbuf_format(out, "    return %s_%s(cuda, %s);\n",
                      d->kernels[kernel_place(d->set, of->chosen[t]->name)].id, what, arguments);
    }
}

static void print_load(strbuf *out, const described_set *d, const callee *c)
{
    strbuf_format(out,
                  "\nstatic inline ptxgen_result %s_load(%s_cuda *cuda, ptxgen_load_error *error)\n"
                  "{\n",
                  c->id, d->set->prefix);
    if (c->alias) {
        print_choices(out, d, c->alias, "load", "error");
    } else if (c->pipeline) {
        strbuf_put(out, "    ptxgen_result result = PTXGEN_CUDA_SUCCESS;\n");
        for (size_t s = 0; s < c->pipeline->step_count; s++)
            strbuf_format(out,
                          "    if (result == PTXGEN_CUDA_SUCCESS)\n"
                          "        result = %s_%s_load(cuda, error);\n",
                          d->set->prefix, c->pipeline->steps[s].kernel->name);
        strbuf_put(out, "    return result;\n");
    } else {
        strbuf_put(out, "    static const ptxgen_kernel *const kernels[] = { ");
        for (size_t i = 0; i < c->kernel_count; i++)
            strbuf_format(out, "%s&%s", i ? ", " : "", d->kernels[c->place + i].id);
        strbuf_format(out,
                      " };\n"
                      "    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[%zu], kernels, "
                      "%zu, error);\n",
                      c->place, c->kernel_count);
    }
    strbuf_put(out, "}\n");
}

static void print_action(strbuf *out, const described_set *d, const callee *c, const action *does)
{
    print_signature(out, d->set, c, does);
    if (c->alias) { /* forwards the arguments to the chosen kernel's function */
        strbuf arguments = strbuf_new(out->arena);
        strbuf_put(&arguments, does->name);
        for (size_t i = 0; i < c->count; i++)
            strbuf_format(&arguments, ", %s", c->params[i].name);
        print_choices(out, d, c->alias, does->word, arguments.text);
        strbuf_put(out, "}\n");
        return;
    }
    strbuf_put(out, "    void *arguments[] = { ");
    print_each(out, c, 0, c->count, AS_ADDRESS);
    strbuf_put(out, " };\n    return ");
    if (c->pipeline)
        strbuf_format(out,
                      "%s(&cuda->driver, cuda->kernels, &%s,\n"
                      "           %*s %s, arguments, %zu, %s);\n}\n",
                      does->launches_pipeline, c->id, (int)strlen(does->launches_pipeline), "",
                      does->pipeline_name, c->count,
                      c->buffers.workspace ? "workspace, workspace_bytes" : "0, 0");
    else
        strbuf_format(out, "%s(&cuda->driver, &cuda->kernels[%zu], %s, arguments, %zu);\n}\n",
                      does->launches, c->place, does->name, c->count);
}

static void print_functions(strbuf *out, const described_set *d, const callee *c)
{
    print_load(out, d, c);
    strbuf_put(out, "\n/* ");
    print_each(out, c, 0, c->count, AS_ROLE);
    if (c->buffers.workspace)
        strbuf_format(out, ", workspace (%s%" PRId64 " bytes)", c->buffers.by_row ? "m_val*" : "",
                      c->buffers.workspace);
    strbuf_put(out, " */\n");
    print_action(out, d, c, &actions[0]);
    strbuf_char(out, '\n');
    print_action(out, d, c, &actions[1]);
}

void print_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    for (size_t i = 0, count; i < set->kernel_count; i += count) {
        count = 1;
        while (i + count < set->kernel_count &&
               set->kernels[i + count].instance->name == set->kernels[i].instance->name)
            count++;
        callee c = callee_of(&d->kernels[i]);
        c.place = i;
        c.kernel_count = count;
        print_functions(out, d, &c);
    }
}

void print_pipeline_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    if (set->pipeline_count)
        strbuf_put(out, "\n/* Functions of each pipeline:\n"
                        " *  - NAME_load loads the kernels of its steps.\n"
                        " *  - NAME_launch launches them in order, see ptxgen_launch_pipeline_in.\n"
                        " *  - NAME_node fills one graph node per step, see "
                        "ptxgen_fill_pipeline_nodes.\n */\n");
    for (size_t i = 0; i < set->pipeline_count; i++) {
        const pipeline *p = &set->pipelines[i];
        pipeline_buffers buffers = pipeline_buffers_of(out->arena, p);
        print_functions(out, d,
                        &(callee){ .in = p->instance,
                                   .id = pipeline_identifier(out->arena, set, p),
                                   .params = buffers.params,
                                   .count = buffers.count,
                                   .pipeline = p,
                                   .buffers = buffers });
    }
}

void print_alias_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    if (set->alias_count)
        strbuf_put(out,
                   "\n/* Functions for variant = auto, whose names do not depend on the choice: "
                   "they load and launch\n * the kernel that was chosen for the device. */\n");
    for (size_t i = 0; i < set->alias_count; i++) {
        const alias *of = &set->aliases[i];
        callee c = callee_of(&d->kernels[kernel_place(d->set, of->chosen[0]->name)]);
        c.id = arena_format(out->arena, "%s_%s", set->prefix, of->name);
        c.alias = of;
        print_functions(out, d, &c);
    }
}
