#include "check/validate.h"

#include <string.h>

#include "base/os_process.h"

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
    progress_finished_one(&all->work);
}

static void judge_assembly(const assembly *one, validation *out, diags *d)
{
    const instance *in = one->plan.kernel->instance;
    const target *t = one->plan.target;
    const ptxas_result *r = &one->result;
    if (r->unwritable) {
        diag_error(d, DIAG_UNWRITABLE, (location){ .file = r->unwritable },
                   "cannot write a temporary file for ptxas: %s; set TMPDIR to another folder",
                   one->error);
        return;
    }
    if (!one->ran) {
        diag_error(d, DIAG_NO_PTXAS, in->where, "cannot run ptxas on %s: %s", in->name, one->error);
        return;
    }
    if (!r->accepted) {
        size_t length = strlen(r->message);
        length -= length && r->message[length - 1] == '\n';
        diag_error(d, DIAG_PTXAS_REJECTED, in->where, "ptxas rejects %s for %s:\n%.*s", in->name,
                   t->name, (int)length, r->message);
        return;
    }
    bool is_lean = ptxas_is_lean(r, one->plan.kernel->ptx, t);
    if (!is_lean)
        diag_error(d, DIAG_PTXAS_REJECTED, in->where,
                   "%s for %s spills %u bytes of registers and uses %u bytes of stack", in->name,
                   t->name, r->spill_bytes, r->stack_bytes);
    out->spills += !is_lean && r->spill_bytes;
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

/* Records the resources of a kernel. runs: its count assemblies, oldest target first. */
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

bool validate_set(arena *a, kernel_set *set, const ptxas *assembler, unsigned jobs,
                  const progress *show, validation *out, diags *d)
{
    assembly_plans plans = { 0 };
    kernel_plan_assemblies(a, set, assembler->known, assembler->oldest, &plans);
    assemblies all = {
        .assembler = assembler,
        .list = arena_zalloc(a, plans.count * sizeof *all.list),
        .work = { .show = show, .what = "ptxas", .total = plans.count, .busy = ATOMIC_FLAG_INIT }
    };
    for (size_t i = 0; i < plans.count; i++)
        all.list[i] = (assembly){ .plan = plans.items[i], .arena = arena_new() };
    os_defer_signals(); /* so that each run of ptxas can remove its files */
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
