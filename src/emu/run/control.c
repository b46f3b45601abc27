/* Branches, exits, barriers, and the control of dependent launches.
 *
 * When the lanes of a warp diverge at a branch, the warp runs one path and keeps the other path in
 * a frame. A frame below resumes all these lanes at the reconvergence point. Lanes that arrive
 * there stop. When the lower frame is at the top, all of them continue together. So a loop whose
 * lanes exit at different times needs no frame per iteration: they wait in the lower frame. */
#include "emu/check/overlap_order.h"
#include "emu/check/shared_race.h"
#include "emu/machine.h"
#include "emu/run/async.h"

/* Strong accesses in a loop after which the warp yields to the others. */
enum { MOST_POLLS = 1000 };

static bool check_uniform(warp *w, const op *o, lane_mask others)
{
    return !o->uniform || !others ||
           WARP_CHECK(w, o, lowest_lane(others), EMU_CHECK_BARRIER, 0,
                      "marked .uni, but the active lanes 0x%08x do not take it", others);
}

static void take_branch(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    lane_mask others = w->active & ~mask;
    if (o->target < w->pc)
        warp_check_limit(w, o, mask);
    if (!others) {
        w->pc = o->target;
        return;
    }
    if (!check_uniform(w, o, others))
        return;
    /* Groups of suspended lanes are disjoint, so this leaves a frame for each. Without room for a
     * new reconvergence point, the lanes reconverge at the enclosing one. */
    bool room = w->depth + WARP_LANES < m->frames;
    uint32_t reconverge = room && o->reconverge != NO_TARGET ? o->reconverge : w->reconverge;
    if (reconverge != w->reconverge) {
        w->frames[w->depth++] =
            (frame){ .pc = reconverge, .reconverge = w->reconverge, .mask = w->active };
        w->reconverge = reconverge;
    }
    if (w->pc == reconverge) {
        w->pc = o->target;
        set_active(w, mask);
        return;
    }
    if (o->target != reconverge)
        w->frames[w->depth++] = (frame){ .pc = o->target, .reconverge = reconverge, .mask = mask };
    set_active(w, others);
}

void exec_bra(warp *w, const op *o, lane_mask mask)
{
    bool back = o->target < w->pc;
    take_branch(w, o, mask);
    if (back && w->polls > MOST_POLLS && !has_fault(w->machine))
        warp_yield(w, false);
}

void exec_table_miss(warp *w, const op *o, lane_mask mask)
{
    int lane = lowest_lane(mask);
    warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, 0, "brx.idx: index %u is past the end of its table",
               get_u32(source(w, o, 0), lane));
}

void exec_call_miss(warp *w, const op *o, lane_mask mask)
{
    int lane = lowest_lane(mask);
    u64 address = get_u64(source(w, o, 0), lane);
    warp_fault(
        w, o, lane, EMU_OUT_OF_BOUNDS, address,
        "a call through pointer 0x%llx, which is no function with these parameters and results",
        (ull)address);
}

void exec_exit(warp *w, const op *o, lane_mask mask)
{
    if (!check_uniform(w, o, w->active & ~mask))
        return;
    if (w->machine->async)
        bulk_exit(w, o, mask);
    if (w->machine->wgmma)
        wgmma_exit(w, o, mask);
    w->alive &= ~mask;
    set_active(w, w->active & ~mask);
    if (!w->active)
        warp_resume(w);
}

void exec_trap(warp *w, const op *o, lane_mask mask)
{
    warp_fault(w, o, lowest_lane(mask), EMU_TRAP, 0, "the kernel executed trap");
}

void exec_unknown(warp *w, const op *o, lane_mask mask)
{
    const emu_module *m = w->machine->config->module;
    warp_fault(w, o, lowest_lane(mask), EMU_UNKNOWN, 0, "%s", m->unknown.items[o->dst[0]].message);
}

void machine_release_barrier(machine *m, unsigned id)
{
    barrier *b = &m->barriers[id];
    shared_barrier(&m->shared, b->warps);
    for (unsigned i = 0; i < m->warp_count; i++) {
        warp *w = &m->warps[i];
        const op *o = w->waits;
        if (w->status != WARP_WAITS || w->barrier != id)
            continue;
        u64 counts[WARP_LANES];
        for (int lane = 0; lane < WARP_LANES; lane++)
            counts[lane] = b->popc;
        if (o->combine == COMBINE_POPC)
            write_lanes(w->file + o->dst[0], counts, false, w->present);
        else if (o->combine != COMBINE_NONE)
            write_predicate(w, o->dst[0], o->combine == COMBINE_AND ? b->all : b->any, w->present);
        w->status = WARP_RUNS;
    }
    *b = (barrier){ 0 };
}

static bool check_barrier(warp *w, const op *o, lane_mask mask, unsigned id, unsigned expected)
{
    const barrier *b = &w->machine->barriers[id % BARRIERS];
    int lane = lowest_lane(mask);
    if (id >= BARRIERS)
        warp_fault(w, o, lane, EMU_BARRIER, 0, "barrier %u does not exist; a block has %d", id,
                   BARRIERS);
    else if (w->alive != w->present &&
             !WARP_CHECK(w, o, lowest_lane(w->present & ~w->alive), EMU_CHECK_BARRIER, 0,
                         "this thread has ended and never reaches barrier %u, where other threads "
                         "of its warp are",
                         id))
        return false;
    else if (mask != w->alive)
        warp_fault(w, o, lowest_lane(w->alive & ~mask), EMU_BARRIER, 0,
                   "barrier %u is reached by only lanes 0x%08x of the warp's 0x%08x; the warp must "
                   "be converged",
                   id, mask, w->present);
    else if (expected % WARP_LANES)
        warp_fault(w, o, lane, EMU_BARRIER, 0,
                   "barrier %u waits for %u threads, which is not a multiple of %d", id, expected,
                   WARP_LANES);
    else if (b->arrived && b->expected != expected)
        warp_fault(w, o, lane, EMU_BARRIER, 0,
                   "barrier %u waits for %u threads here, but for %u in a warp that has arrived",
                   id, expected, b->expected);
    else
        return true;
    return false;
}

static void arrive_at_barrier(warp *w, const op *o, lane_mask mask, bool waits)
{
    machine *m = w->machine;
    /* a barrier for live threads only: wait for lanes that may still exit */
    if (m->checks->actions[EMU_CHECK_BARRIER] != EMU_STOPS)
        mask = warp_converge(w, o, mask);
    else if (w->waiting_frames)
        warp_report_missing(w, o);
    if (!mask || has_fault(m))
        return;
    int lane = lowest_lane(mask);
    unsigned id = get_u32(source(w, o, 0), lane), expected = get_u32(source(w, o, 1), lane);
    if (!expected)
        expected = m->warp_count * WARP_LANES;
    if (!check_barrier(w, o, mask, id, expected))
        return;
    barrier *b = &m->barriers[id];
    if (!b->arrived)
        b->all = ALL_LANES;
    b->expected = expected;
    b->arrived += WARP_LANES;
    b->warps |= UINT32_C(1) << w->index;
    if (o->combine != COMBINE_NONE) {
        lane_mask holds = predicate(w, o->src[2], o->pred_not) & mask;
        b->popc += count_lanes(holds);
        b->any = holds ? ALL_LANES : b->any;
        b->all = holds == mask ? b->all : 0;
    }
    if (waits) {
        w->status = WARP_WAITS;
        w->barrier = id;
        w->waits = o;
    }
    if (b->arrived == expected)
        machine_release_barrier(m, id);
}

void exec_bar(warp *w, const op *o, lane_mask mask)
{
    arrive_at_barrier(w, o, mask, true);
}

void exec_bar_arrive(warp *w, const op *o, lane_mask mask)
{
    arrive_at_barrier(w, o, mask, false);
}

/* Only the first trigger of a block counts. */
void exec_launch_dependents(warp *w, const op *o, lane_mask mask)
{
    dependence *d = &w->machine->dependence;
    (void)o;
    if (d->overlap)
        overlap_trigger(w, mask);
    if (!d->triggered && d->pauses)
        w->status = WARP_PAUSED;
    d->triggered = true;
}

void exec_grid_wait(warp *w, const op *o, lane_mask mask)
{
    const dependence *d = &w->machine->dependence;
    (void)o;
    if (d->overlap)
        overlap_wait(w, mask);
    if (d->waits)
        w->status = WARP_DEPENDS;
}
