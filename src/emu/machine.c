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
    [EMU_STACK] = "stack",
    [EMU_LIMIT] = "limit",
};

const char *emu_fault_name(emu_fault fault)
{
    return (size_t)fault < sizeof fault_names / sizeof *fault_names ? fault_names[fault] : "";
}

void warp_fault(warp *w, const op *o, int lane, emu_fault fault, uint64_t address,
                const char *format, ...)
{
    machine *m = w->machine;
    const unsigned *size = m->config->block;
    unsigned thread = thread_of(w, lane);
    if (has_fault(m))
        return;
    va_list args;
    va_start(args, format);
    *m->report = (emu_report){
        .fault = fault,
        .message = arena_vformat(memory_arena(m->memory), format, args),
        .line = o->line,
        .block = { m->block[0], m->block[1], m->block[2] },
        .thread = { thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1] },
        .address = address,
    };
    va_end(args);
}

const char *warp_absence(const warp *w, int lane)
{
    return !(w->present >> lane & 1) ? "is not in the block"
           : !(w->alive >> lane & 1) ? "has ended"
                                     : "is inactive";
}

void warp_resume(warp *w)
{
    do {
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
