/* Blocks: runs the warps of a block in turn.
 *
 * A warp runs until it waits at a barrier, ends, or has polled without success what others may
 * store. Then the next warp runs, so every run is the same. The race check finds what other orders
 * would show. A suspended block keeps its state in its machine. */
#include "emu/check/shared_race.h"
#include "emu/check/undefined.h"
#include "emu/run/async.h"

static bool watch_registers(warp *w, const op *o, lane_mask mask)
{
    const entry *e = w->machine->entry;
    if (w->machine->watched & WATCH_CARRIES)
        return undefined_step(w, o, mask);
    for (unsigned i = 0; o->watch & WATCH_READS && i < o->reads; i++) {
        const reg *r = op_register(e, o, i);
        lane_mask undefined = r->tracked ? ~w->defined[r->tracked - 1] : 0;
        undefined &= i < op_first_source(o) ? w->active : mask;
        if (undefined &&
            !WARP_CHECK(w, o, lowest_lane(undefined), EMU_CHECK_UNDEFINED, 0,
                        "register %s is read, but this thread has never written it", r->name))
            return false;
    }
    for (unsigned i = 0; o->watch & WATCH_WRITES && i < o->writes; i++) {
        const reg *r = op_register(e, o, o->reads + i);
        if (r->tracked)
            w->defined[r->tracked - 1] |= mask;
    }
    return true;
}

static void run_warp(warp *w)
{
    machine *m = w->machine;
    const op *ops = m->entry->ops.items;
    while (w->status == WARP_RUNS && !has_fault(m)) {
        const op *o = &ops[w->pc++];
        lane_mask mask = w->active & predicate(w, o->guard, o->guard_not);
        m->warp_instructions++;
        m->thread_instructions += w->active_count;
        if (o->watch & m->watched && !watch_registers(w, o, mask))
            return;
        if (mask)
            o->exec(w, o, mask);
        if (w->pc == w->reconverge)
            warp_resume(w);
    }
}

static u64 special_value(const machine *m, const warp *w, special which, unsigned lane)
{
    const unsigned *block = m->config->block, *grid = m->config->grid;
    unsigned thread = w->index * WARP_LANES + lane;
    u32 bit = UINT32_C(1) << lane;
    switch (which) {
#define REGISTER(name, text, type, value) \
    case SPECIAL_##name:                  \
        return (u64)(value);
#include "emu/specials.def"
    default:
        return 0;
    }
}

static void start_warp(machine *m, warp *w)
{
    static const u64 zeros[WARP_LANES];
    const entry *e = m->entry;
    unsigned first = w->index * WARP_LANES, count = m->threads - first;
    memset(w->recent, 0, sizeof w->recent);
    w->present = count >= WARP_LANES ? ALL_LANES : (UINT32_C(1) << count) - 1;
    w->alive = w->present;
    w->carry = 0;
    async_begin_block(m, w);
    if (m->wgmma)
        wgmma_begin_block(m, w);
    w->pc = 0;
    w->depth = w->waiting_frames = w->polls = 0;
    w->reconverge = NO_TARGET;
    w->status = WARP_RUNS;
    set_active(w, w->present);
    memset(w->defined, 0, (e->tracked_count + e->carried_count) * sizeof *w->defined);
    /* makes unwritten registers independent of earlier blocks */
    for (size_t i = 0; e->tracked_count && i < e->regs.count; i++) {
        const reg *r = &e->regs.items[i];
        if (r->tracked && r->type == TYPE_pred)
            w->predicates[r->place] = 0;
        else if (r->tracked)
            write_lanes(w->file + r->place, zeros, emu_type_bits(r->type) == 64, ALL_LANES);
    }
    for (size_t i = 0; i < e->specials.count; i++) {
        const special_place *s = &e->specials.items[i];
        u64 values[WARP_LANES];
        for (unsigned lane = 0; lane < WARP_LANES; lane++)
            values[lane] = special_value(m, w, s->which, lane);
        write_lanes(w->file + s->place, values, s->wide, ALL_LANES);
    }
}

/* Handles a block of waiting warps: a fault unless only ended warps are missing. */
static void report_stuck(machine *m)
{
    warp *stuck = NULL;
    const warp *absent = NULL;
    for (unsigned i = 0; i < m->warp_count && !stuck; i++)
        stuck = m->warps[i].status == WARP_WAITS ? &m->warps[i] : NULL;
    const barrier *b = &m->barriers[stuck->barrier];
    bool only_ended = b->expected == m->warp_count * WARP_LANES;
    for (unsigned i = 0; i < m->warp_count; i++)
        if (!(b->warps >> i & 1)) {
            absent = absent ? absent : &m->warps[i];
            only_ended &= m->warps[i].status == WARP_ENDED;
        }
    arena *a = m->messages;
    const char *why = arena_format(a, "the block has %u", m->threads);
    if (absent && absent->status == WARP_ENDED)
        why = arena_format(a, "only %u arrive: warp %u has ended", b->arrived, absent->index);
    else if (absent)
        why = arena_format(a, "only %u arrive: warp %u waits at barrier %u (line %u)", b->arrived,
                           absent->index, absent->barrier, absent->waits->line);
    static const char message[] = "barrier %u waits for %u threads, but %s";
    if (!absent || !only_ended)
        warp_fault(stuck, stuck->waits, 0, EMU_BARRIER, 0, message, stuck->barrier, b->expected,
                   why);
    else if (WARP_CHECK(stuck, stuck->waits, 0, EMU_CHECK_BARRIER, 0, message, stuck->barrier,
                        b->expected, why))
        machine_release_barrier(m, stuck->barrier);
}

void block_begin(machine *m)
{
    m->thread_instructions = m->warp_instructions = 0;
    memset(m->barriers, 0, sizeof m->barriers);
    shared_begin_block(&m->shared);
    if (m->local_bytes)
        memset(m->local_written, 0, m->threads * m->local_bytes);
    if (m->checks->actions[EMU_CHECK_UNINIT] != EMU_STOPS) { /* does the same for unwritten
                                                                memory */
        memset(m->shared.bytes, 0, m->shared.size);
        memset(m->local, 0, m->threads * m->local_bytes);
    }
    if (m->shared_undefined) {
        memset(m->shared_undefined, 0, m->shared.size);
        memset(m->local_undefined, 0, m->threads * m->local_bytes);
    }
    stack_begin_block(m);
    for (unsigned i = 0; i < m->warp_count; i++)
        start_warp(m, &m->warps[i]);
    m->dependence.triggered = false;
}

static bool has_warp(const machine *m, warp_status status)
{
    for (unsigned i = 0; i < m->warp_count; i++)
        if (m->warps[i].status == status)
            return true;
    return false;
}

/* Runs each warp until it waits, unless the block is suspended. */
static block_status run_warps(machine *m)
{
    dependence *d = &m->dependence;
    while (!has_fault(m)) {
        bool moved = false, yields = false;
        for (unsigned i = 0; i < m->warp_count; i++) {
            warp *w = &m->warps[i];
            if (w->status != WARP_RUNS)
                continue;
            moved = true;
            run_warp(w);
            if (w->status == WARP_YIELDS)
                w->status = WARP_RUNS;
            yields |= w->status == WARP_PAUSED && d->yields;
            if ((w->status == WARP_PAUSED && !d->yields) || (d->turns && --d->turns == 0))
                return BLOCK_PAUSED;
        }
        if (yields)
            return BLOCK_PAUSED;
        if (moved)
            continue;
        if (has_warp(m, WARP_DEPENDS))
            return BLOCK_DEPENDS;
        if (!has_warp(m, WARP_WAITS))
            break;
        report_stuck(m);
    }
    return BLOCK_ENDED;
}

block_status block_run(machine *m)
{
    for (unsigned i = 0; i < m->warp_count; i++) { /* resumes warps whose reason to wait is gone */
        warp *w = &m->warps[i];
        if (w->status == WARP_PAUSED || (w->status == WARP_DEPENDS && !m->dependence.waits))
            w->status = WARP_RUNS;
    }
    block_status status = run_warps(m);
    if (status == BLOCK_ENDED && m->stats) {
        m->stats->thread_instructions += m->thread_instructions;
        m->stats->warp_instructions += m->warp_instructions;
    }
    return status;
}
