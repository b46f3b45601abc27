#include "model/check/step_trial.h"

#include <string.h>

/* Kinds of orders, as emu_stream numbers them. */
enum { AS_EARLY = 0, AT_RANDOM = 2, STYLES = 3 };

void step_load_dependent(arena *a, step_verifier *v, const kernel *kernels, size_t count)
{
    const plan *p = v->plan;
    const target *t = NULL; /* the oldest target with a kernel of the plan that waits */
    emu_report report;
    for (size_t i = 0; v->orders && i < count; i++) {
        const kernel *k = &kernels[i];
        bool older = !t || k->target->sm < t->sm;
        if (!older || !strstr(k->ptx, "griddepcontrol.wait"))
            continue;
        for (size_t j = 0; j < p->kernel_count && t != k->target; j++)
            if (strcmp(p->kernels[j].name, k->instance->name) == 0)
                t = k->target;
    }
    for (size_t i = 0; t && i < p->kernel_count; i++) {
        step_kernel *k = &v->kernels[i];
        const kernel *found = NULL; /* kernel for that target */
        for (size_t j = 0; j < count && !found; j++)
            if (kernels[j].target <= t && t <= kernels[j].newest &&
                strcmp(kernels[j].instance->name, p->kernels[i].name) == 0)
                found = &kernels[j];
        bool other = found && found != k->kernel;
        k->dependent_instance = other ? found->instance : k->kernel->instance;
        k->dependent = other ? emu_load(a, found->ptx, found->ptx_length, &report) : k->module;
        emu_entry_info info;
        k->overlaps = k->dependent && emu_entry(k->dependent, p->kernels[i].name, &info) &&
                      (info.triggers || info.waits);
    }
}

bool step_should_overlap(step_trial *t, const plan_step *step)
{
    uint32_t bit = UINT32_C(1) << (step - t->v->plan->steps);
    bool any = false;
    for (size_t i = 0; i < t->v->plan->kernel_count; i++)
        any |= t->v->kernels[i].overlaps;
    bool in_turn = t->kind == FROM_THE_START || (t->kind == AT_AN_EDGE && t->in_part);
    if (!any || !in_turn || t->overlapped & bit)
        return false;
    t->overlapped |= bit;
    return true;
}

typedef VEC(emu_range) range_list;

static void add_range(const step_trial *t, range_list *list, const char *name, uint64_t address,
                      uint64_t size)
{
    if (address)
        *VEC_PUSH(t->scratch, list) = (emu_range){ name, address, size };
}

static void add_caches(const step_trial *t, range_list *list)
{
    const decoder *d = t->v->plan->decoder;
    static const char *const parts[2][PLAN_CACHE_PARTS] = { { "K", "V" }, { "state", "input" } };
    for (int64_t slot = 0; slot < decoder_slots(d); slot++)
        for (size_t part = 0; part < PLAN_CACHE_PARTS; part++) {
            bool states = slot >= d->layers || !d->at[slot].attends;
            add_range(t, list,
                      arena_format(t->scratch, "%s cache of %s", parts[states][part],
                                   slot < d->layers ? step_layer_name(t, slot)
                                                    : "a layer with attention"),
                      t->caches[PLAN_CACHE_PARTS * (size_t)slot + part],
                      step_pool_bytes(t, &t->v->plan->caches[slot][part]));
        }
}

/* Adds the parts of the state under the launches' labels. Each part ends where the next begins. */
static void add_state(const step_trial *t, const plan_step *step, range_list *list)
{
    size_t first = list->count;
    for (size_t i = 0; i < step->launch_count; i++)
        for (size_t j = 0; j < step->launches[i].argument_count; j++) {
            const plan_argument *argument = &step->launches[i].arguments[j];
            bool known = argument->is_number || argument->memory != PLAN_STATE || !argument->said;
            for (size_t k = first; k < list->count && !known; k++)
                known = list->items[k].address == t->state + argument->offset;
            if (!known)
                add_range(t, list, argument->said, t->state + argument->offset, 0);
        }
    for (size_t i = first; i < list->count; i++) {
        uint64_t end = t->state + t->v->plan->bytes[PLAN_STATE];
        for (size_t j = first; j < list->count; j++)
            if (list->items[j].address > list->items[i].address && list->items[j].address < end)
                end = list->items[j].address;
        list->items[i].size = end - list->items[i].address;
    }
}

typedef struct step_stream {
    emu_stream *stream;
    const plan_step *steps[2]; /* steps[1] may be NULL */
    const step_rows *rows[2];
    size_t launch_count;
    range_list ranges;
} step_stream;

/* Runs the launches of steps[first] and later. in_order: without overlap. */
static bool run_from(step_trial *t, const step_stream *of, int first, bool in_order)
{
    emu_report report;
    const plan_launch **launches = arena_alloc(t->scratch, of->launch_count * sizeof *launches);
    size_t count = 0;
    for (int n = first; n < 2 && of->steps[n]; n++)
        for (size_t i = 0; i < of->steps[n]->launch_count; i++) {
            const plan_launch *l = &of->steps[n]->launches[i];
            bool behind_layers = l->layer >= t->v->plan->decoder->layers;
            bool programmatic = t->v->kernels[l->kernel].overlaps && !in_order;
            step_request request;
            if ((n && behind_layers) || !step_request_of(t, l, of->rows[n], true, &request))
                continue;
            if (!request.launch.blocks && step_product_repeats(t, l))
                step_product_run_first(t, l, &request.launch);
            launches[count++] = l;
            const emu_launch_config config = device_emu_config(&request.launch);
            if (!emu_stream_launch(of->stream, &config, programmatic, NULL, &report))
                return step_reject_launch(t, l, of->rows[n], &report);
        }
    return emu_stream_finish(of->stream, &report) ||
           step_reject_launch(t, launches[report.launch], of->rows[0], &report);
}

/* Returns the number of the i-th order: the most adverse, then random and adverse alternately. */
static uint64_t order_of(const step_verifier *v, unsigned i)
{
    return i ? STYLES * (v->seed + i) + (i % 2 ? AT_RANDOM : AS_EARLY) : AS_EARLY;
}

static bool run_orders(step_trial *t, const step_stream *s, const step_rows *r,
                       const emu_snapshot *before)
{
    uint64_t address;
    bool same = !step_any_launch(t, s->steps[0], step_product_repeats);
    for (size_t i = 0; i < t->v->plan->kernel_count; i++)
        same &= t->v->kernels[i].dependent == t->v->kernels[i].module;
    if (!same)
        emu_snapshot_restore(before, t->memory);
    /* with the same kernels, steps[0] has just run without overlap */
    if (!run_from(t, s, same ? 1 : 0, true))
        return false;
    const emu_snapshot *expected = emu_snapshot_new(t->scratch, t->memory);
    for (unsigned i = 0; i < t->v->orders; i++) {
        emu_snapshot_restore(before, t->memory);
        emu_stream_set_order(s->stream, order_of(t->v, i));
        if (!run_from(t, s, 0, false))
            return false;
        if (!emu_snapshot_differs(expected, t->memory, &address))
            continue;
        const char *place = "a byte outside all buffers";
        for (const emu_range *of = s->ranges.items; of < s->ranges.items + s->ranges.count; of++)
            if (address - of->address < of->size) {
                place = arena_format(t->arena, "byte %llu of '%s'",
                                     (unsigned long long)(address - of->address), of->name);
                break;
            }
        return step_reject(t, "%s: %s differs if launches overlap, in order %llu", step_name(t, r),
                           place, (unsigned long long)order_of(t->v, i));
    }
    return true;
}

bool step_overlap(step_trial *t, const plan_step *step, const step_rows *r,
                  const emu_snapshot *before)
{
    const emu_snapshot *now = emu_snapshot_new(t->scratch, t->memory);
    const plan *p = t->v->plan;
    const step_rows next = { .m = 1 };
    /* After a step of one token with room for another, the layers of the next step follow: work
     * before a launch's wait may race with the preceding step. */
    bool more = !t->in_part && step->m == 1 &&
                (int64_t)r->positions[r->m - 1] + 1 < p->decoder->max_seq_len;
    step_stream s = { .steps = { step, more ? step : NULL },
                      .rows = { r, &next },
                      .launch_count = (more ? 2 : 1) * step->launch_count };
    for (size_t i = 0; i < step->buffer_count; i++)
        add_range(t, &s.ranges, step->buffers[i].name, t->workspace + step->buffers[i].offset,
                  step->buffers[i].bytes);
    add_caches(t, &s.ranges);
    add_state(t, step, &s.ranges);
    s.stream = emu_stream_new(
        t->memory, &(emu_stream_config){ .ranges = s.ranges.items, .range_count = s.ranges.count });
    if (step_any_launch(t, step,
                        step_product_repeats)) { /* zero the output of blocks that do not run */
        static const uint8_t zero = 0;
        emu_snapshot_restore(before, t->memory);
        emu_fill(t->memory, t->workspace, &zero, 1, p->bytes[PLAN_WORKSPACE]);
        before = emu_snapshot_new(t->scratch, t->memory);
    }
    bool right = run_orders(t, &s, r, before);
    emu_stream_free(s.stream);
    emu_snapshot_restore(now, t->memory);
    return right;
}
