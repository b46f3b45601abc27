#include "emu/machine.h"

static const char *const fault_names[] = {
    [EMU_OK] = "ok",
    [EMU_SYNTAX] = "syntax",
    [EMU_BAD_LAUNCH] = "bad launch",
    [EMU_OUT_OF_BOUNDS] = "out of bounds",
    [EMU_MISALIGNED] = "misaligned",
    [EMU_READ_ONLY] = "read-only",
    [EMU_UNDEFINED_REGISTER] = "undefined register",
    [EMU_UNINITIALISED] = "uninitialised",
    [EMU_RACE] = "race",
    [EMU_BARRIER] = "barrier",
    [EMU_INACTIVE_LANE] = "inactive lane",
    [EMU_TRAP] = "trap",
    [EMU_ASSERT] = "assertion",
    [EMU_UNKNOWN] = "unknown",
    [EMU_LIMIT] = "limit",
};

const char *emu_fault_name(emu_fault fault)
{
    return (size_t)fault < sizeof fault_names / sizeof *fault_names ? fault_names[fault] : "";
}

static const struct {
    const char *name;
    emu_fault fault;
} checks[] = {
    [EMU_CHECK_RACE] = { "race", EMU_RACE },
    [EMU_CHECK_UNINIT] = { "uninit", EMU_UNINITIALISED },
    [EMU_CHECK_UNDEFINED] = { "undefined", EMU_UNDEFINED_REGISTER },
    [EMU_CHECK_LANES] = { "lanes", EMU_INACTIVE_LANE },
    [EMU_CHECK_BARRIER] = { "barrier", EMU_BARRIER },
};

const char *emu_check_name(emu_check check)
{
    return check < EMU_CHECK_COUNT ? checks[check].name : "";
}

static emu_report make_report(const warp *w, const op *o, int lane, emu_fault fault,
                              uint64_t address, const char *format, va_list args)
{
    const machine *m = w->machine;
    const unsigned *size = m->config->block;
    unsigned thread = thread_of(w, lane);
    return (emu_report){
        .fault = fault,
        .message = arena_vformat(m->messages, format, args),
        .line = o->line,
        .block = { m->block[0], m->block[1], m->block[2] },
        .thread = { thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1] },
        .address = address,
    };
}

bool warp_fault(warp *w, const op *o, int lane, emu_fault fault, uint64_t address,
                const char *format, ...)
{
    va_list args;
    if (has_fault(w->machine))
        return false;
    va_start(args, format);
    *w->machine->report = make_report(w, o, lane, fault, address, format, args);
    va_end(args);
    return false;
}

bool warp_check(warp *w, const op *o, int lane, emu_check check, uint64_t address,
                const char *format, ...)
{
    machine *m = w->machine;
    va_list args;
    if (has_fault(m))
        return false;
    va_start(args, format);
    emu_report report = make_report(w, o, lane, checks[check].fault, address, format, args);
    va_end(args);
    if (m->checks->actions[check] == EMU_STOPS || m->speculation) {
        *m->report = report;
        return false;
    }
    m->warned[o->line] |= (uint8_t)(1 << check);
    m->checks->warn(m->checks->context, m->config, &report);
    return true;
}

void warp_check_limit(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    if (m->thread_instructions > m->limit)
        warp_fault(w, o, lowest_lane(mask), EMU_LIMIT, 0,
                   "the block has executed %llu thread instructions and does not end",
                   (ull)m->thread_instructions);
}

const char *warp_absence(const warp *w, int lane)
{
    return !(w->present >> lane & 1) ? "is not in the block"
           : !(w->alive >> lane & 1) ? "has ended"
                                     : "is inactive";
}

/* Returns the lanes that wait at the same instruction with the same member mask as a frame. */
static lane_mask lanes_waiting_with(const warp *w, const frame *f)
{
    lane_mask there = 0;
    for (uint32_t i = 0; i < w->depth; i++)
        if (w->frames[i].waits_at == f->waits_at && w->frames[i].members == f->members)
            there |= w->frames[i].mask;
    return there;
}

void warp_report_missing(warp *w, const op *now)
{
    arena *a = w->machine->messages;
    const frame *f = w->frames;
    while (!f->waits_at)
        f++;
    int absent = lowest_lane(f->members & w->alive & ~lanes_waiting_with(w, f));
    const char *why = warp_absence(w, absent);
    for (uint32_t i = 0; i < w->depth; i++)
        if (w->frames[i].waits_at && w->frames[i].mask >> absent & 1)
            why = arena_format(a, "waits at line %u", w->frames[i].waits_at->line);
    if (w->active >> absent & 1)
        why = arena_format(a, "is at line %u", now->line);
    warp_fault(w, f->waits_at, lowest_lane(f->mask), EMU_INACTIVE_LANE, 0,
               "member mask 0x%08x names lane %d, which does not participate: it %s", f->members,
               absent, why);
}

/* Resumes lanes whose missing members have all ended. Returns false if there are none. */
static bool resume_without_ended(warp *w)
{
    for (uint32_t i = 0; i < w->depth; i++) {
        const frame f = w->frames[i];
        if (!f.waits_at || f.members & w->alive & ~lanes_waiting_with(w, &f))
            continue;
        f.waits_at->exec(w, f.waits_at, f.mask);
        return true;
    }
    return false;
}

/* Resumes the topmost lanes that can run, or the lowest for fairness. Returns false: none. */
static bool resume_lanes(warp *w, bool lowest)
{
    lane_mask above = 0, lanes = 0;
    frame *found = NULL;
    for (uint32_t i = w->depth; i-- > 0 && (lowest || !found);) {
        frame *f = &w->frames[i];
        if (!f->waits_at && f->mask & w->alive & ~above) {
            found = f;
            lanes = f->mask & w->alive & ~above;
        }
        above |= f->mask;
    }
    if (!found)
        return false;
    w->pc = found->pc;
    w->reconverge = found->reconverge;
    set_active(w, lanes);
    found->mask &= ~lanes;
    if (!(found->mask & w->alive))
        memmove(found, found + 1, (size_t)(&w->frames[--w->depth] - found) * sizeof *found);
    return true;
}

void warp_yield(warp *w, bool may_wait_for_own)
{
    w->polls = 0;
    w->status = WARP_YIELDS;
    if (!w->depth ||
        (!may_wait_for_own && w->machine->checks->actions[EMU_CHECK_BARRIER] == EMU_STOPS))
        return;
    frame now = { .pc = w->pc, .reconverge = w->reconverge, .mask = w->active };
    w->frames[w->depth++] = now;
    resume_lanes(w, true);
}

void warp_resume(warp *w)
{
    do {
        if (w->waiting_frames) {
            set_active(w, 0);
            if (!resume_lanes(w, false) && !resume_without_ended(w)) {
                warp_report_missing(w, NULL);
                return;
            }
            continue;
        }
        if (w->depth == 0) {
            w->status = WARP_ENDED;
            set_active(w, 0);
            return;
        }
        const frame *f = &w->frames[--w->depth];
        w->pc = f->pc;
        w->reconverge = f->reconverge;
        set_active(w, f->mask & w->alive);
    } while (!w->active || w->pc == w->reconverge);
}

void machine_block(const machine *m, uint64_t number, unsigned block[3])
{
    const emu_launch_config *c = m->config;
    uint64_t at = (m->first + number * m->step) % m->block_count;
    at = c->descending ? m->block_count - 1 - at : at;
    uint64_t linear = c->blocks ? c->blocks[at] : at;
    block[0] = (unsigned)(linear % c->grid[0]);
    block[1] = (unsigned)(linear / c->grid[0] % c->grid[1]);
    block[2] = (unsigned)(linear / c->grid[0] / c->grid[1]);
}
