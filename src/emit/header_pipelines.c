/* Pipelines as C data: each step names its kernel, since there may be one for several targets, and
 * says for every parameter which buffer it gets. */
#include "emit/header_data.h"

#include <inttypes.h>
#include <string.h>

static const char *identifier(strbuf *out, const kernel_set *set, const pipeline *p)
{
    return arena_format(out->arena, "%s_%s", set->prefix, p->instance->name);
}

void print_pipeline_declarations(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->pipeline_count; i++) {
        const pipeline *p = &set->pipelines[i];
        strbuf_format(out, "/* %s. Steps: ", p->instance->family->computes);
        for (size_t s = 0; s < p->step_count; s++)
            strbuf_format(out, "%s%s", s ? ", " : "", p->steps[s]->name);
        strbuf_format(out,
                      ". Workspace %" PRId64 " bytes. */\nextern const ptxgen_pipeline %s;\n\n",
                      pipeline_buffers_of(out->arena, p).workspace, identifier(out, set, p));
    }
}

static void print_buffers(strbuf *out, const char *id, const pipeline_buffers *buffers)
{
    strbuf_format(out, "static const ptxgen_param %s_buffers[] = {\n", id);
    for (size_t i = 0; i < buffers->count; i++) {
        const param *p = &buffers->params[i];
        strbuf_format(out, "    { \"%s\", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_%s, PTXGEN_", p->name,
                      p->kind == PARAM_OUT ? "OUT" : "IN");
        print_upper(out, formats[p->format].name);
        strbuf_format(out, ", %" PRId64 ", \"%" PRId64 "\", %u },\n", buffers->bytes[i],
                      buffers->bytes[i], p->align);
    }
    strbuf_put(out, "};\n");
}

static size_t buffer_number(const pipeline_buffers *buffers, const char *name)
{
    size_t at = 0;
    while (strcmp(buffers->params[at].name, name) != 0)
        at++;
    return at;
}

/* The arguments of a step, in the order of its kernel's parameters. */
static size_t print_arguments(strbuf *out, const char *id, const pipeline *p, size_t index,
                              const pipeline_buffers *buffers)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(out->arena, p->steps[index], params);
    strbuf_format(out, "static const ptxgen_argument %s_step_%zu[] = {", id, index);
    for (size_t i = 0; i < count; i++) {
        const char *buffer = step_buffer(&p->instance->family->steps[index], params[i].name);
        if (buffer == WORKSPACE)
            strbuf_format(out, "%s { PTXGEN_WORKSPACE, 0 }", i ? "," : "");
        else
            strbuf_format(out, "%s { %zu, 0 }", i ? "," : "", buffer_number(buffers, buffer));
    }
    strbuf_put(out, " };\n");
    return count;
}

static void print_pipeline(strbuf *out, const kernel_set *set, const pipeline *p)
{
    const char *id = identifier(out, set, p);
    pipeline_buffers buffers = pipeline_buffers_of(out->arena, p);
    size_t counts[MAX_STEPS];
    print_buffers(out, id, &buffers);
    for (size_t s = 0; s < p->step_count; s++)
        counts[s] = print_arguments(out, id, p, s, &buffers);
    strbuf_format(out, "static const ptxgen_step %s_steps[] = {\n", id);
    for (size_t s = 0; s < p->step_count; s++)
        strbuf_format(out, "    { \"%s\", %s_step_%zu, %zu },\n", p->steps[s]->name, id, s,
                      counts[s]);
    const instance *in = p->instance;
    strbuf_format(out,
                  "};\nconst ptxgen_pipeline %s = {\n"
                  "    \"%s\", \"%s\", %s_buffers, %zu, %s_steps, %zu,\n"
                  "    %" PRId64 ", /* workspace */\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", /* k, n, n_kv, m */\n"
                  "};\n\n",
                  id, in->name, in->family->name, id, buffers.count, id, p->step_count,
                  buffers.workspace, in->shape.k, in->shape.n, in->n_kv,
                  family_key(in->family, "m") ? in->shape.m : 1);
}

void print_pipeline_definitions(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->pipeline_count; i++)
        print_pipeline(out, set, &set->pipelines[i]);
}

void print_pipeline_table(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->pipeline_count; i++)
        strbuf_format(out, "    &%s,\n", identifier(out, set, &set->pipelines[i]));
}
