/* A launch function packs its arguments for cuLaunchKernel and says which place among the loaded
 * kernels is its own; ptxgen_launch finds all else in the kernel's descriptor. An instance that has
 * kernels for several targets has one place, that of the first of them in the table.
 *
 * A load function names its kernels, and a launch function of a kernel names none: so a linker that
 * leaves out what is not used leaves out what is not loaded.
 */
#include "emit/header_parts.h"

#include <inttypes.h>

#include "kernel/formula.h"

/* What a function is for: a kernel of this instance, or a pipeline. The instance gives the sizes.
 */
typedef struct callee {
    const instance *in;
    const char *id;
    const param *params;
    size_t count;
    const char **sizes; /* of a pipeline's buffers, in bytes */
    int64_t workspace;
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
    AS_ROLE,      /* "y out f32[4096]", "n_dim in u32" */
    AS_BUFFER     /* "q out f32 (16384 bytes)" */
} style;

static void print_one(strbuf *out, const callee *c, const param *p, style how)
{
    bool pointer = param_is_pointer(p);
    switch (how) {
    case AS_PARAMETER:
        strbuf_format(out, "%s %s",
                      !pointer              ? "uint32_t"
                      : p->kind == PARAM_IN ? "ptxgen_const_deviceptr"
                                            : "ptxgen_deviceptr",
                      p->name);
        break;
    case AS_NAME:
    case AS_ADDRESS:
        strbuf_format(out, "%s%s", how == AS_NAME ? "" : "&", p->name);
        break;
    case AS_ROLE:
    case AS_BUFFER:
        strbuf_format(out, "%s %s %s", p->name, pointer ? param_direction(p) : "in",
                      pointer ? formats[p->format].name : "u32");
        if (pointer && how == AS_BUFFER) {
            strbuf_format(out, " (%s bytes)", c->sizes[p - c->params]);
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

/* Prints parameters one after the other, with a comma between them. */
static void print_each(strbuf *out, const callee *c, style how)
{
    size_t line_start = out->length;
    for (size_t i = 0; i < c->count; i++) {
        if (i && out->length - line_start > FULL_LINE) {
            strbuf_put(out, ",\n");
            line_start = out->length;
            strbuf_put(out, "    ");
        } else if (i) {
            strbuf_put(out, ", ");
        }
        print_one(out, c, &c->params[i], how);
    }
}

void print_arguments(strbuf *out, const description *d)
{
    callee c = callee_of(d);
    print_each(out, &c, AS_NAME);
}

/* Prints the head of a function that launches, or does what else a word says. Parameters are
 * outputs, weights, inputs, workspace, numbers. */
static void print_signature(strbuf *out, const kernel_set *set, const callee *c, const char *word,
                            const char *where)
{
    callee pointers = *c, numbers = *c;
    pointers.count = 0;
    while (pointers.count < c->count && param_is_pointer(&c->params[pointers.count]))
        pointers.count++;
    numbers.params += pointers.count;
    numbers.count -= pointers.count;
    strbuf_format(out,
                  "static inline ptxgen_result %s_%s(\n"
                  "    const %s_cuda *cuda, %s,\n"
                  "    ",
                  c->id, word, set->prefix, where);
    print_each(out, &pointers, AS_PARAMETER);
    strbuf_put(out,
               c->workspace ? ",\n    ptxgen_deviceptr workspace, size_t workspace_bytes" : "");
    strbuf_put(out, numbers.count ? ", " : "");
    print_each(out, &numbers, AS_PARAMETER);
    strbuf_put(out, ")\n{\n");
}

/* Prints the same and the array of its arguments. */
static void print_head(strbuf *out, const kernel_set *set, const callee *c, const char *word,
                       const char *where)
{
    print_signature(out, set, c, word, where);
    strbuf_put(out, "    void *arguments[] = { ");
    print_each(out, c, AS_ADDRESS);
    strbuf_put(out, " };\n");
}

/* count kernels of one instance, the first of which stands at a place of the table. */
static void print_kernel_functions(strbuf *out, const described_set *d, size_t place, size_t count)
{
    callee c = callee_of(&d->kernels[place]);
    strbuf_format(out,
                  "\nstatic inline ptxgen_result %s_load(%s_cuda *cuda, ptxgen_load_error *error)\n"
                  "{\n"
                  "    static const ptxgen_kernel *const kernels[] = { ",
                  c.id, d->set->prefix);
    for (size_t i = 0; i < count; i++)
        strbuf_format(out, "%s&%s", i ? ", " : "", d->kernels[place + i].id);
    strbuf_format(out,
                  " };\n"
                  "    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[%zu], kernels, %zu, "
                  "error);\n"
                  "}\n\n/* ",
                  place, count);
    print_each(out, &c, AS_ROLE);
    strbuf_put(out, " */\n");
    print_head(out, d->set, &c, "launch", "ptxgen_stream stream");
    strbuf_format(out,
                  "    return ptxgen_launch(&cuda->driver, &cuda->kernels[%zu], stream, "
                  "arguments, %zu);\n"
                  "}\n\n",
                  place, c.count);
    print_head(out, d->set, &c, "node", "ptxgen_node *node");
    strbuf_format(out,
                  "    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[%zu], node, "
                  "arguments, %zu);\n"
                  "}\n",
                  place, c.count);
}

void print_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    for (size_t i = 0, count; i < set->kernel_count; i += count) {
        count = 1;
        while (i + count < set->kernel_count &&
               set->kernels[i + count].instance->name == set->kernels[i].instance->name)
            count++;
        print_kernel_functions(out, d, i, count);
    }
}

static void print_pipeline_functions(strbuf *out, const kernel_set *set, const pipeline *p)
{
    pipeline_buffers buffers = pipeline_buffers_of(out->arena, p);
    callee c = { .in = p->instance,
                 .id = pipeline_identifier(out->arena, set, p),
                 .params = buffers.params,
                 .count = buffers.count,
                 .sizes = buffers.sizes,
                 .workspace = buffers.workspace };
    const char *memory = c.workspace ? "workspace, workspace_bytes" : "0, 0";

    strbuf_format(out,
                  "\nstatic inline ptxgen_result %s_load(%s_cuda *cuda, ptxgen_load_error *error)\n"
                  "{\n"
                  "    ptxgen_result result = PTXGEN_CUDA_SUCCESS;\n",
                  c.id, set->prefix);
    for (size_t s = 0; s < p->step_count; s++)
        strbuf_format(out,
                      "    if (result == PTXGEN_CUDA_SUCCESS)\n"
                      "        result = %s_%s_load(cuda, error);\n",
                      set->prefix, p->steps[s].kernel->name);
    strbuf_put(out, "    return result;\n}\n\n/* ");
    print_each(out, &c, AS_BUFFER);
    if (c.workspace)
        strbuf_format(out, ", workspace (%s%" PRId64 " bytes)", buffers.by_row ? "m_val*" : "",
                      c.workspace);
    strbuf_put(out, " */\n");
    print_head(out, set, &c, "launch", "ptxgen_stream stream");
    strbuf_format(out,
                  "    return ptxgen_launch_pipeline_in(&cuda->driver, cuda->kernels, &%s,\n"
                  "                                     stream, arguments, %zu, %s);\n"
                  "}\n\n",
                  c.id, c.count, memory);
    print_head(out, set, &c, "node", "ptxgen_node *nodes");
    strbuf_format(out,
                  "    return ptxgen_fill_pipeline_nodes(&cuda->driver, cuda->kernels, &%s,\n"
                  "                                      nodes, arguments, %zu, %s);\n"
                  "}\n",
                  c.id, c.count, memory);
}

void print_pipeline_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    if (set->pipeline_count)
        strbuf_put(
            out, "\n/* For each pipeline a function that loads the kernels of its steps, one that "
                 "launches them in\n * their order, see ptxgen_launch_pipeline_in, and one that "
                 "fills a node of a graph for each of\n * them, see "
                 "ptxgen_fill_pipeline_nodes. */\n");
    for (size_t i = 0; i < set->pipeline_count; i++)
        print_pipeline_functions(out, set, &set->pipelines[i]);
}

static const description *description_of(const described_set *d, const instance *in)
{
    const description *first = d->kernels;
    while (first->kernel->instance->name != in->name)
        first++;
    return first;
}

/* "if (cuda->driver.sm >= 90) return a(cuda); ... return c(cuda);": the newest of the spec's
 * targets that the device runs says what is called. Of neighbouring targets with one kernel the
 * oldest is asked for. */
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
        strbuf_format(out, "    return %s_%s(cuda, %s);\n", description_of(d, of->chosen[t])->id,
                      what, arguments);
    }
    strbuf_put(out, "}\n");
}

/* A function of the alias that passes what it got to that of the chosen kernel. */
static void print_passed_on(strbuf *out, const described_set *d, const alias *of, const callee *c,
                            const char *word, const char *where, const char *name)
{
    strbuf arguments = strbuf_new(out->arena);
    strbuf_put(&arguments, name);
    for (size_t i = 0; i < c->count; i++)
        strbuf_format(&arguments, ", %s", c->params[i].name);
    print_signature(out, d->set, c, word, where);
    print_choices(out, d, of, word, arguments.text);
}

static void print_alias_functions(strbuf *out, const described_set *d, const alias *of)
{
    const kernel_set *set = d->set;
    callee c = callee_of(description_of(d, of->chosen[0]));
    c.id = arena_format(out->arena, "%s_%s", set->prefix, of->name);
    strbuf_format(out,
                  "\nstatic inline ptxgen_result %s_load(%s_cuda *cuda, ptxgen_load_error *error)\n"
                  "{\n",
                  c.id, set->prefix);
    print_choices(out, d, of, "load", "error");
    strbuf_put(out, "\n/* ");
    print_each(out, &c, AS_ROLE);
    strbuf_put(out, " */\n");
    print_passed_on(out, d, of, &c, "launch", "ptxgen_stream stream", "stream");
    strbuf_char(out, '\n');
    print_passed_on(out, d, of, &c, "node", "ptxgen_node *node", "node");
}

void print_alias_launches(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    if (set->alias_count)
        strbuf_put(out, "\n/* For what variant = auto chose, functions whose names don't depend on "
                        "the choice: they load and\n * launch the kernel that was chosen for the "
                        "device. */\n");
    for (size_t i = 0; i < set->alias_count; i++)
        print_alias_functions(out, d, &set->aliases[i]);
}
