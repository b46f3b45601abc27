/* Prints pipelines as C data. A step names its kernel, since there may be one per target, and gives
 * the buffer of each parameter. */
#include "emit/header_parts.h"

#include <inttypes.h>
#include <string.h>

size_t kernel_place(const kernel_set *set, const char *name)
{
    size_t at = 0;
    while (strcmp(set->kernels[at].instance->name, name) != 0)
        at++;
    return at;
}

void print_pipeline_declarations(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    for (size_t i = 0; i < set->pipeline_count; i++) {
        const pipeline *p = &set->pipelines[i];
        const char *id = pipeline_identifier(out->arena, set, p);
        pipeline_buffers buffers = pipeline_buffers_of(out->arena, p);
        int64_t workspace = buffers.workspace;
        strbuf_format(out, "/* %s. Steps: ", p->instance->family->computes);
        for (size_t s = 0; s < p->step_count; s++)
            strbuf_format(out, "%s%s", s ? ", " : "", p->steps[s].kernel->name);
        strbuf_format(out, ". Workspace %" PRId64 " bytes%s. */\n", workspace,
                      buffers.by_row ? " per row" : "");
        strbuf_format(out, "extern const ptxgen_pipeline %s;\n#define ", id);
        strbuf_upper(out, id);
        strbuf_format(out, "_WORKSPACE%s%" PRId64 ")\n\n",
                      buffers.by_row ? "(rows) ((size_t)(rows) * " : " ((size_t)", workspace);
    }
}

/* Prints the arguments of a step in the order of its kernel's parameters. Returns their number. */
static size_t print_step_arguments(strbuf *out, const char *id, const pipeline *p, size_t index,
                                   const pipeline_buffers *buffers)
{
    const pipeline_launch *taken = &p->steps[index];
    param params[MAX_PARAMS];
    size_t count = instance_params(out->arena, taken->kernel, params);
    strbuf_format(out, "static const ptxgen_argument %s_step_%zu[] = {", id, index);
    for (size_t i = 0; i < count; i++) {
        pipeline_place place = pipeline_place_of(buffers, taken->step, params[i].name);
        if (place.part)
            strbuf_format(out, "%s { PTXGEN_WORKSPACE, %" PRId64 " }", i ? "," : "",
                          place.part->offset);
        else
            strbuf_format(out, "%s { %zu, 0 }", i ? "," : "", place.buffer);
    }
    strbuf_put(out, " };\n");
    return count;
}

static void print_pipeline(strbuf *out, const kernel_set *set, const pipeline *p)
{
    const char *id = pipeline_identifier(out->arena, set, p);
    pipeline_buffers buffers = pipeline_buffers_of(out->arena, p);
    size_t *counts = arena_alloc(out->arena, (p->step_count + 1) * sizeof *counts);
    strbuf_format(out, "static const ptxgen_param %s_buffers[] = {\n", id);
    for (size_t i = 0; i < buffers.count; i++)
        print_param(out, &buffers.params[i], buffers.bytes[i], buffers.sizes[i]);
    strbuf_put(out, "};\n");
    for (size_t s = 0; s < p->step_count; s++)
        counts[s] = print_step_arguments(out, id, p, s, &buffers);
    strbuf_format(out, "static const ptxgen_pipeline_step %s_steps[] = {\n", id);
    for (size_t s = 0; s < p->step_count; s++) {
        const char *name = p->steps[s].kernel->name;
        strbuf_format(out, "    { \"%s\", %zu, %s_step_%zu, %zu },\n", name,
                      kernel_place(set, name), id, s, counts[s]);
    }
    strbuf_put(out, "};\n");
    const instance *in = p->instance;
    size_t config_count = print_config(out, id, in);
    strbuf_format(out,
                  "const ptxgen_pipeline %s = {\n"
                  "    \"%s\", \"%s\", %s_buffers, %zu, %s_steps, %zu,\n"
                  "    %" PRId64 ", %d, /* workspace, rows_at_run_time */\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", /* k, n, n_kv, m */\n"
                  "    %s_config, %zu,\n"
                  "    ",
                  id, in->name, in->family->name, id, buffers.count, id, p->step_count,
                  buffers.workspace, buffers.by_row, in->shape.k, in->shape.n, in->shape.n_kv,
                  family_key(in->family, "m") ? in->shape.m : 1, id, config_count);
    const char *constants[] = { operations[in->family->op].name, formats[pipeline_weights(p)].name,
                                formats[pipeline_activations(&buffers)].name,
                                formats[pipeline_precision(p)].name };
    print_constants(out, constants, sizeof constants / sizeof *constants);
    strbuf_put(out, ", /* operation, weights, activations, precision */\n};\n\n");
}

void print_pipeline_definitions(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    for (size_t i = 0; i < set->pipeline_count; i++)
        print_pipeline(out, set, &set->pipelines[i]);
}

void print_pipeline_table(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    for (size_t i = 0; i < set->pipeline_count; i++)
        strbuf_format(out, "    &%s,\n", pipeline_identifier(out->arena, set, &set->pipelines[i]));
}
