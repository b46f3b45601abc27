#include "kernel/generate.h"

#include <string.h>

#include "base/os.h"
#include "kernel/formula.h"
#include "kernel/limits.h"
#include "ptx/ptx.h"

/* Returns the number of grid axes in the head. Omits a last axis that is 1 here and larger with
 * more rows: y by its formula, others by a derived size. */
static int axes_of(const instance *in)
{
    const launch *l = &in->family->launch;
    bool one_group = family_key(in->family, "rows") && formula_value(l->grid[1], in, NULL) == 1;
    int axes = l->grid[2] ? 3 : l->grid[1] && !one_group ? 2 : 1;
    const derived_size *s = axes > 1 ? l->sizes : NULL;
    while (s && s->name && strcmp(s->name, l->grid[axes - 1]) != 0)
        s++;
    return s && s->name && s->value(in) == 1 ? axes - 1 : axes;
}

static bool overlaps(const instance *in, const target *t)
{
    return in->family->launch.overlap != NO_OVERLAP && target_overlaps(t);
}

/* Starts the overlap of launches. Families that wait themselves trigger at once, or at their end.
 * Gate and up of few rows saturate the memory and trigger at their end: on an H200, steps took up
 * to 9 % longer if the next launch started beside them. */
static void begin_overlap(ptx *p, const instance *in, const target *t)
{
    operation op = in->family->op;
    bool first = in->family->launch.overlap == WAITS_FIRST, can = overlaps(in, t);
    bool waited = can && first && in->trigger == TRIGGER_WAITED;
    bool at_its_end = !in->family->halves &&
                      (op == OP_GATE_UP || op == OP_GATE_UP_SWIGLU || op == OP_EXPERT_GATE_UP);
    if (can)
        ptx_overlap(p);
    if (can && !waited && !at_its_end)
        let_next_start(p);
    if (first)
        wait_for_launches(p);
    if (waited)
        let_next_start(p);
}

/* Writes "from kernels.ini:24 [stream_gemv:down]" into the head: the section that the instance comes
 * from. The file has no folder, so that the same spec gives the same PTX anywhere. */
static void name_section(ptx *p, arena *scratch, location where)
{
    const char *open = where.text ? strchr(where.text, '[') : NULL;
    const char *close = open ? strchr(open, ']') : NULL;
    if (!close || !where.file)
        return;
    ptx_heading(p, arena_format(scratch, "from %s:%u %.*s", os_name_of(where.file), where.line,
                                (int)(close + 1 - open), open));
}

/* Builds the kernel of an instance, unfinished. Its head has the configuration, "f32_gemv  k=4096
 * n=4096  y[n] = W[n,k] x[k]", the launch, and the section of the spec. */
static ptx *build_kernel(arena *scratch, const instance *in, const target *t)
{
    const launch *l = &in->family->launch;
    unsigned block = formula_unsigned(l->block, in);
    ptx *p = ptx_new(scratch, in->name, t, block);
    ptx_max_registers(p, l->registers);
    const char *keys = instance_configuration(scratch, in);
    ptx_heading(p, arena_format(scratch, "%s%s%s  %s", in->family->name, *keys ? "  " : "", keys,
                                in->family->computes));
    strbuf line = strbuf_new(scratch);
    strbuf_format(&line, "ptxgen " PTXGEN_VERSION "  block %u  grid ", block);
    for (int d = 0; d < axes_of(in); d++) {
        int64_t size = formula_value(l->grid[d], in, NULL);
        strbuf_put(&line, d ? ", " : "");
        if (size < 0)
            formula_print(&line, l->grid[d], in, FORMULA_NUMBERS);
        else
            strbuf_signed(&line, size);
    }
    ptx_heading(p, line.text);
    name_section(p, scratch, in->where);
    param params[MAX_PARAMS];
    size_t count = instance_params(scratch, in, params);
    for (size_t i = 0; i < count; i++)
        if (params[i].weights && params[i].order != ORDER_WRITTEN)
            ptx_steady_param(p, U64, params[i].name, CHANGES_NEVER);
        else if (params[i].order == ORDER_SETTLED && in->state == STATE_SETTLED)
            ptx_steady_param(p, U64, params[i].name, CHANGES_SETTLED);
        else
            ptx_param(p,
                      params[i].kind != PARAM_U32      ? U64
                      : params[i].format == FORMAT_F32 ? F32
                                                       : U32,
                      params[i].name);
    begin_overlap(p, in, t);
    in->family->build(p, in);
    return p;
}

unsigned generate_stage(const char *word, size_t length)
{
    static const struct {
        const char *name;
        ptx_stage stage;
    } stages[] = { { "build", PTX_STAGE_BUILD },
                   { "fold", PTX_STAGE_FOLD },
                   { "print", PTX_STAGE_PRINT } };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strlen(stages[i].name) == length && memcmp(stages[i].name, word, length) == 0)
            return stages[i].stage;
    return 0;
}

void generate_dump(const spec *s, unsigned stages, strbuf *out)
{
    arena *scratch = arena_new();
    for (size_t i = 0; i < s->instance_count; i++) {
        ptx_output output;
        const char *error;
        arena_reset(scratch);
        ptx *p = build_kernel(scratch, &s->instances[i], s->targets[0]);
        ptx_set_dump(p, stages, out);
        if (!ptx_finish(p, scratch, &output, &error))
            strbuf_format(out, "// refused: %s\n", error);
    }
    arena_free(scratch);
}

bool generate_ptx(arena *a, arena *scratch, const instance *in, const target *t, kernel *out,
                  const char **error)
{
    arena_reset(scratch);
    ptx *p = build_kernel(scratch, in, t);
    ptx_output output;
    if (!ptx_finish(p, a, &output, error)) {
        *error = arena_strdup(a, *error);
        return false;
    }
    int64_t shared =
        in->family->launch.shared ? formula_value(in->family->launch.shared, in, NULL) : 0;
    if (shared != (int64_t)output.shared_bytes) {
        *error =
            arena_format(a, "the kernel declares %zu bytes of shared memory, but its family %lld",
                         output.shared_bytes, (long long)shared);
        return false;
    }
    *out = (kernel){
        .instance = in,
        .target = t,
        .newest = t,
        .specific = output.specific,
        .overlaps = overlaps(in, t),
        .isa = output.isa,
        .ptx = output.text,
        .ptx_length = output.length,
        .shared_bytes = output.shared_bytes,
    };
    return true;
}

/* Returns true if a kernel (may be NULL) can serve the next target of the spec, too. Both targets
 * must have the same choices of variant = auto, since hosts find chosen kernels by target. The
 * kernel must not miss the overlap that the target offers. */
static bool may_serve(const kernel *k, const instance *in, const spec *s, size_t t)
{
    return k && !k->specific && k->newest == s->targets[t - 1] &&
           k->instance->passes == in->passes &&
           k->overlaps == overlaps(k->instance, s->targets[t]) &&
           instance_chosen(k->instance, k->target) == instance_chosen(k->instance, s->targets[t]);
}

bool generate_kernels(arena *a, const spec *s, kernel_set *out, diags *d)
{
    arena *scratch = arena_new();
    VEC(kernel) kernels = { 0 };
    for (size_t i = 0; i < s->instance_count; i++) {
        instance *made = arena_alloc(a, s->target_count * sizeof *made);
        size_t first = kernels.count;
        launch_fit(&s->instances[i], s->targets, s->target_count, made);
        for (size_t t = 0; t < s->target_count; t++) {
            kernel k, *last = kernels.count > first ? &kernels.items[kernels.count - 1] : NULL;
            const char *error = NULL;
            const instance *in = &made[t];
            if (!in->family)
                continue;
            bool serves = may_serve(last, in, s, t), own = !serves || s->targets[t]->specific;
            if (own && !generate_ptx(a, scratch, in, s->targets[t], &k, &error)) {
                diag_error(d, DIAG_INTERNAL, in->where, "%s for %s: %s", in->name,
                           s->targets[t]->name, error);
                continue;
            }
            if (serves && !(own && k.specific)) {
                last->newest = s->targets[t];
                continue;
            }
            k.file = arena_format(a, "%s.%s.%s.ptx", s->prefix, in->name, s->targets[t]->name);
            *VEC_PUSH(a, &kernels) = k;
        }
    }
    arena_free(scratch);
    *out = (kernel_set){
        .prefix = s->prefix,
        .targets = s->targets,
        .target_count = s->target_count,
        .embed = s->embed,
        .kernels = kernels.items,
        .kernel_count = kernels.count,
        .upper = s->upper,
        .plan = s->plan,
        .pipelines = s->pipelines,
        .pipeline_count = s->pipeline_count,
        .aliases = s->aliases,
        .alias_count = s->alias_count,
    };
    return d->errors == 0;
}
