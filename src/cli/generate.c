#include "cli/generate.h"

#include <stdatomic.h>
#include <string.h>

#include "base/os.h"
#include "emit/header.h"
#include "emit/manifest.h"
#include "kernel/formula.h"
#include "kernel/limits.h"
#include "ptx/ptx.h"
#include "check/alike.h"
#include "check/verify.h"

/* "f32_gemv  k=4096 n=4096  y[n] = W[n,k] x[k]" */
static const char *what_it_is(arena *a, const instance *in)
{
    const char *words[] = { in->family->name, instance_configuration(a, in), in->family->computes };
    strbuf line = strbuf_new(a);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        strbuf_put(&line, i && *words[i] ? "  " : "");
        strbuf_put(&line, words[i]);
    }
    return line.text;
}

/* Returns true if the grid's y is 1 here, and larger in configurations with more rows of X. */
static bool has_one_group(const instance *in)
{
    return family_key(in->family, "rows") &&
           formula_value(in->family->launch.grid[1], in, NULL) == 1;
}

/* Returns true if an axis of the grid is a derived size that is 1 here. With other rows it may be
 * larger. */
static bool is_derived_one(const instance *in, const char *axis)
{
    const derived_size *sizes = in->family->launch.sizes;
    for (const derived_size *s = sizes; s && s->name; s++)
        if (strcmp(s->name, axis) == 0)
            return s->value(in) == 1;
    return false;
}

/* Axes of the grid that are worth saying. */
static int axes_of(const instance *in)
{
    const launch *l = &in->family->launch;
    int axes = l->grid[2] ? 3 : l->grid[1] && !has_one_group(in) ? 2 : 1;
    return axes > 1 && is_derived_one(in, l->grid[axes - 1]) ? axes - 1 : axes;
}

/* "ptxgen 0.1.0  block 128  grid 4096" */
static const char *how_to_launch(arena *a, const instance *in, unsigned block)
{
    const launch *l = &in->family->launch;
    strbuf line = strbuf_new(a);
    strbuf_put(&line, "ptxgen " PTXGEN_VERSION "  block ");
    strbuf_unsigned(&line, block);
    strbuf_put(&line, "  grid ");
    for (int d = 0; d < axes_of(in); d++) {
        int64_t size = formula_value(l->grid[d], in, NULL);
        if (d)
            strbuf_put(&line, ", ");
        if (size < 0)
            formula_print(&line, l->grid[d], in, FORMULA_NUMBERS);
        else
            strbuf_signed(&line, size);
    }
    return line.text;
}

static bool overlaps(const instance *in, const target *t)
{
    return in->family->launch.overlap != NO_OVERLAP && ptx_can_overlap(t);
}

/* Returns true if the next launch starts when the blocks of this one end. The gate and up of few
 * rows keep the memory busy by themselves: on an H200 steps took up to 9 % longer where the next
 * launch started beside them. */
static bool triggers_at_its_end(const instance *in)
{
    operation op = in->family->op;
    return !in->family->halves &&
           (op == OP_GATE_UP || op == OP_GATE_UP_SWIGLU || op == OP_EXPERT_GATE_UP);
}

/* Families that wait themselves trigger at once, or at their end. */
static void begin_overlap(ptx *p, const instance *in, const target *t)
{
    bool first = in->family->launch.overlap == WAITS_FIRST, can = overlaps(in, t);
    bool waited = can && first && in->trigger == TRIGGER_WAITED;
    if (can)
        ptx_overlap(p);
    if (can && !waited && !triggers_at_its_end(in))
        let_next_start(p);
    if (first)
        wait_for_launches(p);
    if (waited)
        let_next_start(p);
}

/* The kernel as its family builds it, not finished. */
static ptx *build(arena *scratch, const instance *in, const target *t)
{
    unsigned block = (unsigned)formula_value(in->family->launch.block, in, NULL);
    ptx *p = ptx_new(scratch, in->name, t, block);
    ptx_max_registers(p, in->family->launch.registers);
    ptx_heading(p, what_it_is(scratch, in));
    ptx_heading(p, how_to_launch(scratch, in, block));
    param params[MAX_PARAMS];
    size_t count = instance_params(scratch, in, params);
    for (size_t i = 0; i < count; i++)
        if (params[i].weights && !params[i].written)
            ptx_constant_param(p, U64, params[i].name);
        else if (params[i].settled && in->state == STATE_SETTLED)
            ptx_settled_param(p, U64, params[i].name);
        else
            ptx_param(p, params[i].kind == PARAM_U32 ? U32 : U64, params[i].name);
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
        ptx *p = build(scratch, &s->instances[i], s->targets[0]);
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
    ptx *p = build(scratch, in, t);
    ptx_output output;
    if (!ptx_finish(p, a, &output, error)) {
        *error = arena_strdup(a, *error);
        return false;
    }
    int64_t shared =
        in->family->launch.shared ? formula_value(in->family->launch.shared, in, NULL) : 0;
    if (shared != (int64_t)output.shared_bytes) {
        *error = arena_format(a, "the kernel declares %zu bytes of shared memory, its family %lld",
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

/* Whether a kernel, or NULL, may serve one more of the spec's targets: the one behind its newest,
 * and chosen for it or not as for the others, since a host finds chosen kernels by their targets;
 * and not if it would overlap there and does not.
 */
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
        .plan = s->plan,
        .pipelines = s->pipelines,
        .pipeline_count = s->pipeline_count,
        .aliases = s->aliases,
        .alias_count = s->alias_count,
    };
    return d->errors == 0;
}

const char *generate_header_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.h", set->prefix));
}

const char *generate_manifest_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.json", set->prefix));
}

static void add_file(arena *a, output_files *files, const char *path, const char *bytes,
                     size_t size)
{
    *VEC_PUSH(a, files) = (output_file){ .path = path, .bytes = bytes, .size = size };
}

void generate_files(arena *a, const described_set *d, const char *folder, output_files *files)
{
    const kernel_set *set = d->set;
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    emit_header(&header, d);
    emit_manifest(&manifest, d);
    add_file(a, files, generate_header_path(a, set, folder), header.text, header.length);
    add_file(a, files, generate_manifest_path(a, set, folder), manifest.text, manifest.length);
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        add_file(a, files, path_in(a, folder, k->file), k->ptx, k->ptx_length);
    }
}

/* Work on all kernels at once: a result and an arena each, so that threads share nothing but the
 * counter. */
typedef struct shown_work {
    const progress *show;
    const char *what;
    size_t total;
    atomic_size_t done;
    atomic_flag busy;
} shown_work;

/* A thread that finds another one showing leaves its piece to that, which looks again when it has
 * shown: so the last piece is always shown. */
static void finished_one(shown_work *w)
{
    atomic_fetch_add(&w->done, 1);
    if (!w->show || !w->show->step)
        return;
    for (size_t shown = 0; shown != atomic_load(&w->done);) {
        if (atomic_flag_test_and_set(&w->busy))
            return;
        shown = atomic_load(&w->done);
        w->show->step(w->show->context, w->what, shown, w->total);
        atomic_flag_clear(&w->busy);
    }
}

typedef struct assembly {
    assembly_plan plan;
    arena *arena;
    ptxas_result result;
    const char *error;
    bool ran;
} assembly;

typedef struct assemblies {
    const ptxas *assembler;
    assembly *list;
    shown_work work;
} assemblies;

static void assemble(void *context, size_t i)
{
    assemblies *all = context;
    assembly *one = &all->list[i];
    const kernel *k = one->plan.kernel;
    one->ran = ptxas_run(one->arena, all->assembler, k->ptx, k->ptx_length, one->plan.target,
                         &one->result, &one->error);
    finished_one(&all->work);
}

/* Returns true if a kernel is made for one of the spec's targets. */
static bool is_made_for(const kernel_set *set, const kernel *k, const target *t)
{
    const kernel *next = k + 1 < set->kernels + set->kernel_count ? k + 1 : NULL;
    bool is_wanted = false;
    for (size_t i = 0; i < set->target_count; i++)
        is_wanted |= set->targets[i] == t;
    return is_wanted && t >= k->target && (!k->specific || t == k->target) &&
           !(next && next->instance->name == k->instance->name && t >= next->target);
}

void generate_assembly_plans(arena *a, const kernel_set *set, const ptxas *assembler,
                             assembly_plans *out)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        target_set gpus = kernel_gpus(set, k) & assembler->known;
        const target *last = NULL;
        for (const target *t = targets; t < targets + target_count; t++) {
            if (!is_made_for(set, k, t) && (k->specific || !(gpus & target_bit(t))))
                continue;
            const target *taken = t->sm < assembler->oldest->sm ? assembler->oldest : t;
            if (taken == last)
                continue;
            *VEC_PUSH(a, out) = (assembly_plan){ .kernel = k, .target = last = taken };
        }
    }
}

static void judge_assembly(const assembly *one, validation *out, diags *d)
{
    const instance *in = one->plan.kernel->instance;
    const target *t = one->plan.target;
    const ptxas_result *r = &one->result;
    if (r->unwritable) {
        diag_error(d, DIAG_UNWRITABLE, (location){ .file = r->unwritable },
                   "no temporary file can be written for ptxas: %s; TMPDIR names another folder",
                   one->error);
        return;
    }
    if (!one->ran) {
        diag_error(d, DIAG_NO_PTXAS, in->where, "ptxas could not be run on %s: %s", in->name,
                   one->error);
        return;
    }
    if (!r->accepted) {
        diag_error(d, DIAG_PTXAS_REJECTED, in->where, "ptxas rejects %s for %s:\n%s", in->name,
                   t->name, r->message);
        return;
    }
    if (r->spill_bytes || r->stack_bytes)
        diag_error(d, DIAG_PTXAS_REJECTED, in->where,
                   "%s for %s spills %u bytes of registers and has a stack of %u bytes", in->name,
                   t->name, r->spill_bytes, r->stack_bytes);
    out->spills += r->spill_bytes != 0;
    if (r->registers < out->least_registers || !out->least_registers)
        out->least_registers = r->registers;
    if (r->registers > out->most_registers)
        out->most_registers = r->registers;
}

static resources resources_of(const ptxas_result *r)
{
    return (resources){ .known = true,
                        .registers = r->registers,
                        .spill_bytes = r->spill_bytes,
                        .stack_bytes = r->stack_bytes };
}

/* runs: those for one kernel, the oldest target first. */
static void note_resources(arena *a, const kernel_set *set, kernel *k, const assembly *runs,
                           size_t count)
{
    resources *on_targets = arena_zalloc(a, set->target_count * sizeof *on_targets);
    for (size_t i = 0; i < count; i++) {
        if (!runs[i].ran || !runs[i].result.accepted)
            continue;
        if (i == 0)
            k->resources = resources_of(&runs[i].result);
        for (size_t t = 0; t < set->target_count; t++)
            if (set->targets[t] == runs[i].plan.target)
                on_targets[t] = resources_of(&runs[i].result);
    }
    k->on_targets = on_targets;
}

bool generate_validate(arena *a, kernel_set *set, const ptxas *assembler, unsigned jobs,
                       const progress *show, validation *out, diags *d)
{
    assembly_plans plans = { 0 };
    generate_assembly_plans(a, set, assembler, &plans);
    assemblies all = {
        .assembler = assembler,
        .list = arena_zalloc(a, plans.count * sizeof *all.list),
        .work = { .show = show, .what = "ptxas", .total = plans.count, .busy = ATOMIC_FLAG_INIT }
    };
    for (size_t i = 0; i < plans.count; i++)
        all.list[i] = (assembly){ .plan = plans.items[i], .arena = arena_new() };
    os_defer_signals(); /* each run of ptxas removes its files */
    os_parallel(jobs, plans.count, assemble, &all);
    os_deliver_signals();

    *out = (validation){ .checked = set->kernel_count };
    for (size_t i = 0, run = 0; i < set->kernel_count; i++) {
        const assembly *first = &all.list[run];
        size_t runs = 0;
        bool accepted = true;
        for (; run < plans.count && all.list[run].plan.kernel == &set->kernels[i]; run++, runs++) {
            judge_assembly(&all.list[run], out, d);
            accepted = accepted && all.list[run].ran && all.list[run].result.accepted;
        }
        out->accepted += accepted;
        note_resources(a, set, &set->kernels[i], first, runs);
    }
    for (size_t i = 0; i < plans.count; i++)
        arena_free(all.list[i].arena);
    return d->errors == 0;
}

/* Kernels to prove, a result and an arena each. */
typedef struct proof {
    const kernel *kernel;
    const struct proof *alike; /* of another target, proven in full; NULL: none, this one is */
    arena *arena;
    verify_result result;
} proof;

typedef struct proofs {
    uint64_t seed;
    unsigned jobs;
    proof *list;
    const kernel_set *with_step; /* NULL: there is none to prove */
    const kernel *step_kernels;  /* those of the set, edited files in place of generated ones */
    arena *step_arena;
    step_result step;
    verify_cores cores;
    shown_work work;
} proofs;

/* The step first: it takes longest. */
static void prove(void *context, size_t i)
{
    proofs *all = context;
    const kernel_set *set = all->with_step;
    if (set && i == 0) {
        all->step = verify_step(all->step_arena, set->plan, set->targets, set->target_count,
                                all->step_kernels, set->kernel_count, all->seed,
                                verify_orders(set->plan), all->jobs);
    } else {
        proof *one = &all->list[i - (set != NULL)];
        one->result = one->alike
                          ? verify_alike_on(one->arena, one->kernel, all->seed, &all->cores)
                          : verify_kernel_on(one->arena, one->kernel, all->seed, &all->cores);
    }
    atomic_fetch_sub(&all->cores.unfinished, 1);
    finished_one(&all->work);
}

/* A line of an edited file, without the blanks around it. */
static location place_in_file(arena *a, const kernel *k, unsigned line)
{
    const char *text = k->ptx, *end = k->ptx + k->ptx_length;
    for (unsigned i = 1; i < line && text < end; i++)
        text += strcspn(text, "\n") + 1;
    if (!line || text >= end)
        return (location){ .file = k->edited_file };
    size_t length = strcspn(text, "\r\n"), indent = strspn(text, " \t");
    return (location){
        .file = k->edited_file,
        .text = arena_copy(a, text, length),
        .line = line,
        .column = (unsigned)indent + 1,
        .length = (unsigned)strcspn(text + indent, ";\r\n"),
    };
}

/* A right kernel has to fit each GPU that takes it: an edited one may declare more shared memory
 * than the generated one. */
static void judge_room(arena *a, const kernel_set *set, proof *p)
{
    const kernel *k = p->kernel;
    const launch *how = &k->instance->family->launch;
    int64_t dynamic = launch_shared_bytes(how->dynamic_shared, k->instance);
    int64_t need = (int64_t)p->result.shared_bytes + dynamic;
    target_set gpus = kernel_gpus(set, k);
    strbuf lacking = strbuf_new(a);
    for (size_t g = 0; p->result.right && g < target_count; g++)
        if (gpus & target_bit(&targets[g]) && need > targets[g].shared_block)
            strbuf_format(&lacking, "%s%s (%u)", lacking.length ? ", " : "", targets[g].name,
                          targets[g].shared_block);
    if (!lacking.length)
        return;
    p->result.right = false;
    p->result.message =
        arena_format(a, "%s: %lld bytes of shared memory a block, more than there are on %s",
                     k->instance->name, (long long)need, lacking.text);
}

static void judge_proof(arena *a, const kernel_set *set, const proof *p, verified *out, diags *d)
{
    const kernel *k = p->kernel;
    const verify_result *r = &p->result;
    *out =
        (verified){ k, r->right, r->blocks, r->instructions, r->blocks < r->of_blocks, r->worst };
    if (!r->right)
        diag_error(d, DIAG_VERIFY_FAILED,
                   k->edited_file ? place_in_file(a, k, r->line) : k->instance->where, "%s for %s",
                   r->message, k->target->name);
    else if (k->edited_file)
        diag_warning(d, DIAG_EDITED, (location){ .file = k->edited_file },
                     "edited since ptxgen wrote it: verified and kept as it stands; the header %s",
                     set->embed == EMBED_STRING ? "has the generated kernel" : "embeds it");
}

static void note_proof(kernel *k, const verify_result *r)
{
    k->verified = r->right;
    k->error = r->worst;
    if (k->edited_file && r->right) {
        k->isa = r->isa;
        k->shared_bytes = r->shared_bytes;
    }
}

/* Returns true if a set has all kernels of its plan. That of a part of a spec has not. */
static bool has_step(const kernel_set *set)
{
    for (size_t i = 0; set->plan && i < set->plan->kernel_count; i++) {
        bool found = false;
        for (size_t k = 0; k < set->kernel_count && !found; k++)
            found = strcmp(set->kernels[k].instance->name, set->plan->kernels[i].name) == 0;
        if (!found)
            return false;
    }
    return set->plan != NULL;
}

/* Kernels that are wrong say more than the step that they are part of. */
static void judge_step(arena *a, const proofs *all, verification *out, diags *d)
{
    out->plan = all->with_step->plan;
    out->step = all->step;
    if (all->step.right)
        return;
    out->step.message = arena_strdup(a, all->step.message);
    diag_error(d, DIAG_VERIFY_FAILED, out->plan->kernels[0].where, "%s", out->step.message);
}

/* Returns the kernels of a set as the folder has them: with files that were edited. */
static const kernel *kernels_in_folder(arena *a, const kernel_set *set, const kernel_list *edited)
{
    kernel *found = arena_alloc(a, set->kernel_count * sizeof *found);
    memcpy(found, set->kernels, set->kernel_count * sizeof *found);
    for (size_t i = 0; i < edited->count; i++)
        for (size_t k = 0; k < set->kernel_count; k++)
            if (strcmp(found[k].file, edited->items[i].file) == 0)
                found[k] = edited->items[i];
    return found;
}

/* Finds an earlier proof that tells of a kernel's results. */
static const proof *find_alike(const proof *list, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (!list[i].alike && kernels_are_alike(list[i].kernel, list[number].kernel))
            return &list[i];
    return NULL;
}

/* Adds the results of alike kernels. */
static void add_alike(proof *p, uint64_t seed)
{
    if (!p->alike || !p->result.right)
        return;
    if (!p->alike->result.right)
        p->result = verify_kernel_on(p->arena, p->kernel, seed, NULL);
    else if (p->alike->result.worst > p->result.worst)
        p->result.worst = p->alike->result.worst;
}

bool generate_verify(arena *a, kernel_set *set, const kernel_list *edited, uint64_t seed,
                     unsigned jobs, const progress *show, verification *out, diags *d)
{
    size_t count = set->kernel_count + edited->count;
    bool step = has_step(set);
    proofs all = {
        .seed = seed,
        .jobs = jobs,
        .list = arena_zalloc(a, count * sizeof *all.list),
        .with_step = step ? set : NULL,
        .step_kernels = step ? kernels_in_folder(a, set, edited) : NULL,
        .step_arena = arena_new(),
        .cores = { .count = jobs, .unfinished = count + step },
        .work = { .show = show, .what = "verify", .total = count + step, .busy = ATOMIC_FLAG_INIT },
    };
    for (size_t i = 0; i < count; i++) {
        bool generated = i < set->kernel_count;
        all.list[i].kernel = generated ? &set->kernels[i] : &edited->items[i - set->kernel_count];
        all.list[i].alike = find_alike(all.list, i);
        all.list[i].arena = arena_new();
    }
    os_parallel(jobs, all.work.total, prove, &all);

    *out =
        (verification){ .kernels = arena_alloc(a, count * sizeof *out->kernels), .checked = count };
    for (size_t i = 0; i < count; i++) {
        add_alike(&all.list[i], seed);
        judge_room(a, set, &all.list[i]);
        judge_proof(a, set, &all.list[i], &out->kernels[i], d);
        if (i < set->kernel_count)
            note_proof(&set->kernels[i], &all.list[i].result);
        out->right += out->kernels[i].right;
        arena_free(all.list[i].arena);
    }
    if (step && out->right == count)
        judge_step(a, &all, out, d);
    arena_free(all.step_arena);
    return d->errors == 0;
}
