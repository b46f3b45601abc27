#include "emit/describe.h"

#include <string.h>

#include "base/hash.h"
#include "kernel/formula.h"

bool param_is_pointer(const param *p)
{
    return p->kind == PARAM_OUT || p->kind == PARAM_IN || p->kind == PARAM_SCRATCH;
}

format weights_of(const instance *in)
{
    return family_key(in->family, "kv_type") ? kv_format(in) : instance_weights(in);
}

format pipeline_weights(const pipeline *p)
{
    format found = instance_weights(p->instance);
    for (size_t i = 0; i < p->step_count && found == FORMAT_NONE; i++)
        found = weights_of(p->steps[i].kernel);
    return found;
}

format pipeline_activations(const pipeline_buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++)
        if (buffers->params[i].kind == PARAM_IN && buffers->params[i].format == FORMAT_Q8_1)
            return FORMAT_Q8_1;
    return FORMAT_F32;
}

format pipeline_precision(const pipeline *p)
{
    for (size_t i = 0; i < p->step_count; i++) {
        format found = instance_precision(p->steps[i].kernel);
        if (found != FORMAT_NONE && found != FORMAT_F32)
            return found;
    }
    return FORMAT_F32;
}

/* Prints a line without comment, indentation and redundant blanks. The line remains, even if empty,
 * so that line numbers equal the file's. PTX lines have no strings with blanks. */
static void print_dense(strbuf *out, const char *line, const char *end)
{
    const char *comment = NULL;
    for (const char *at = line; at + 1 < end && !comment; at++)
        if (at[0] == '/' && at[1] == '/')
            comment = at;
    end = comment ? comment : end;
    while (end > line && end[-1] == ' ')
        end--;
    size_t before = out->length;
    for (const char *at = line; at < end; at++) {
        bool starts = out->length == before;
        if (*at != ' ' || (!starts && at[-1] != ' ' && at[-1] != ','))
            strbuf_char(out, *at);
    }
    strbuf_char(out, '\n');
}

static header_text text_of_header(arena *a, const kernel_set *set, const kernel *k)
{
    static const char entry[] = ".visible .entry ";
    header_text made = { k->ptx, k->ptx_length, 0, NULL, 0 };
    if (set->plan && set->embed == EMBED_STRING && !k->edited_file) {
        const char *end;
        strbuf out = strbuf_new(a);
        for (const char *line = k->ptx; *line; line = *end ? end + 1 : end) {
            end = line + strcspn(line, "\n");
            print_dense(&out, line, end);
        }
        const char *name = strstr(out.text, entry);
        made = (header_text){ .text = out.text, .length = out.length };
        made.before = (size_t)(name + strlen(entry) - out.text);
        made.behind = name + strlen(entry) + strlen(k->instance->name);
    }
    made.checksum = fnv1a64(made.text, made.length);
    return made;
}

described_set describe_set(arena *a, const kernel_set *set)
{
    description *kernels = arena_zalloc(a, set->kernel_count * sizeof *kernels);
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        const instance *in = k->instance;
        const launch *how = &in->family->launch;
        bool newer = i && k[-1].instance->name == in->name;
        param params[MAX_PARAMS];
        description *d = &kernels[i];
        d->kernel = k;
        d->id = arena_format(a, "%s_%s%s%s", set->prefix, in->name, newer ? "_" : "",
                             newer ? k->target->name : "");
        d->param_count = instance_params(a, in, params);
        d->params = memcpy(arena_alloc(a, d->param_count * sizeof *params), params,
                           d->param_count * sizeof *params);
        int64_t *bytes = arena_alloc(a, d->param_count * sizeof *bytes);
        for (size_t p = 0; p < d->param_count; p++)
            bytes[p] = param_is_pointer(&params[p]) ? formula_value(params[p].bytes, in, NULL)
                                                    : (int64_t)sizeof(uint32_t);
        d->param_bytes = bytes;
        d->block = formula_value(how->block, in, NULL);
        d->grid_fixed = true;
        for (size_t axis = 0; axis < 3; axis++) {
            d->grid[axis] = formula_value(how->grid[axis], in, NULL);
            d->grid_fixed = d->grid_fixed && d->grid[axis] >= 0;
        }
        d->dynamic_shared = how->dynamic_shared ? formula_value(how->dynamic_shared, in, NULL) : 0;
        d->checksum = fnv1a64(k->ptx, k->ptx_length);
        d->text = text_of_header(a, set, k);
    }
    /* Find for each kernel the first with the same text except for the name. */
    for (size_t i = 0; i < set->kernel_count; i++) {
        kernels[i].like = &kernels[i];
        for (size_t j = 0; j < i && set->plan && kernels[i].like == &kernels[i]; j++) {
            const header_text *x = &kernels[i].text, *y = &kernels[j].text;
            if (x->behind && y->behind && x->before == y->before &&
                memcmp(x->text, y->text, x->before) == 0 && strcmp(x->behind, y->behind) == 0)
                kernels[i].like = kernels[j].like;
        }
    }

    return (described_set){ .set = set, .kernels = kernels };
}

const char *config_word(const instance *in, const key *k)
{
    return k->choices ? k->choices[instance_value(in, k)].word : NULL;
}

bool kernel_is_chosen(const kernel *k)
{
    return instance_chosen(k->instance, k->target) != 0;
}

const char *kernel_target_name(const kernel *k)
{
    const target *t = k->target;
    while (t > targets && t[-1].sm == t->sm && !k->specific)
        t--;
    return t->name;
}

void print_choice(strbuf *out, const kernel *k)
{
    unsigned chosen = instance_chosen(k->instance, k->target);
    strbuf_format(out, "chosen by %s auto, precision", k->instance->chosen_by->name);
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (chosen >> p & 1)
            strbuf_format(out, " %s%s", precision_choices[p].word, chosen >> p > 1 ? " and" : "");
    strbuf_format(out, ", for %s", k->target->name);
    if (k->newest != k->target)
        strbuf_format(out, " to %s", k->newest->name);
}

const char *pipeline_identifier(arena *a, const kernel_set *set, const pipeline *p)
{
    return arena_format(a, "%s_%s", set->prefix, p->instance->name);
}
