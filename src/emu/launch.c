/* A launch: blocks one after another, the warps of a block in turn.
 *
 * A warp runs until it waits at a barrier or ends, then the next one does, so that a run is the
 * same every time. What other orders would have shown, the race check finds.
 */
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

static bool check_reads(warp *w, const op *o, lane_mask mask)
{
    const entry *e = w->machine->entry;
    for (unsigned i = 0; i < o->reads; i++) {
        const reg *r = &e->regs.items[e->uses.items[o->uses + i]];
        bool is_guard = i == 0 && o->guard != PREDICATE_TRUE;
        lane_mask undefined = r->tracked ? ~w->defined[r->tracked - 1] : 0;
        undefined &= is_guard ? w->active : mask;
        if (undefined) {
            warp_fault(w, o, lowest_lane(undefined), EMU_UNDEFINED_REGISTER, 0,
                       "register %s is read and this thread has never written it", r->name);
            return false;
        }
    }
    return true;
}

static void mark_writes(warp *w, const op *o, lane_mask mask)
{
    const entry *e = w->machine->entry;
    for (unsigned i = 0; i < o->writes; i++) {
        const reg *r = &e->regs.items[e->uses.items[o->uses + o->reads + i]];
        if (r->tracked)
            w->defined[r->tracked - 1] |= mask;
    }
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
        if (o->check && !check_reads(w, o, mask))
            return;
        if (o->mark)
            mark_writes(w, o, mask);
        if (mask)
            o->exec(w, o, mask);
        if (w->pc == w->reconverge)
            warp_resume(w);
    }
}

static u32 special_value(const machine *m, const warp *w, special which, int lane)
{
    const unsigned *block = m->config->block, *grid = m->config->grid;
    unsigned thread = thread_of(w, lane);
    u32 bit = UINT32_C(1) << lane;
    switch (which) {
    case SPECIAL_TID_X:
        return thread % block[0];
    case SPECIAL_TID_Y:
        return thread / block[0] % block[1];
    case SPECIAL_TID_Z:
        return thread / block[0] / block[1];
    case SPECIAL_NTID_X:
    case SPECIAL_NTID_Y:
    case SPECIAL_NTID_Z:
        return block[which - SPECIAL_NTID_X];
    case SPECIAL_CTAID_X:
    case SPECIAL_CTAID_Y:
    case SPECIAL_CTAID_Z:
        return m->block[which - SPECIAL_CTAID_X];
    case SPECIAL_NCTAID_X:
    case SPECIAL_NCTAID_Y:
    case SPECIAL_NCTAID_Z:
        return grid[which - SPECIAL_NCTAID_X];
    case SPECIAL_LANEID:
        return (u32)lane;
    case SPECIAL_WARPID:
        return w->index;
    case SPECIAL_NWARPID:
        return MAX_WARPS;
    case SPECIAL_NSMID:
        return 1;
    case SPECIAL_LANEMASK_EQ:
        return bit;
    case SPECIAL_LANEMASK_LE:
        return bit | (bit - 1);
    case SPECIAL_LANEMASK_LT:
        return bit - 1;
    case SPECIAL_LANEMASK_GE:
        return ~(bit - 1);
    case SPECIAL_LANEMASK_GT:
        return ~(bit | (bit - 1));
    case SPECIAL_DYNAMIC_SMEM_SIZE:
        return (u32)m->config->dynamic_shared;
    case SPECIAL_TOTAL_SMEM_SIZE:
        return (u32)m->shared.size;
    default: /* SPECIAL_SMID, SPECIAL_GRIDID: there is one; clocks are read when asked for */
        return 0;
    }
}

static void start_warp(machine *m, warp *w)
{
    const entry *e = m->entry;
    unsigned first = w->index * WARP_LANES, count = m->threads - first;
    w->present = count >= WARP_LANES ? ALL_LANES : (UINT32_C(1) << count) - 1;
    w->alive = w->present;
    w->carry = 0;
    async_begin_block(m, w);
    w->pc = 0;
    w->depth = 0;
    w->reconverge = NO_TARGET;
    w->status = WARP_RUNS;
    set_active(w, w->present);
    memset(w->defined, 0, e->tracked_count * sizeof *w->defined);
    for (size_t i = 0; i < e->specials.count; i++) {
        const special_place *s = &e->specials.items[i];
        for (int lane = 0; lane < WARP_LANES; lane++) {
            u32 value = special_value(m, w, s->which, lane);
            if (s->which == SPECIAL_GRIDID)
                put_u64((lanes64 *)(void *)(w->file + s->place), lane, value);
            else
                put_u32((lanes32 *)(void *)(w->file + s->place), lane, value);
        }
    }
}

/* A block in which every warp that has not ended waits. */
static void report_stuck(machine *m)
{
    warp *stuck = NULL;
    const warp *absent = NULL;
    for (unsigned i = 0; i < m->warp_count; i++) {
        warp *w = &m->warps[i];
        if (w->status == WARP_WAITS && !stuck)
            stuck = w;
    }
    const barrier *b = &m->barriers[stuck->barrier];
    for (unsigned i = 0; i < m->warp_count && !absent; i++)
        if (!(b->warps >> i & 1))
            absent = &m->warps[i];
    if (absent && absent->status == WARP_ENDED)
        warp_fault(stuck, stuck->waits, 0, EMU_BARRIER, 0,
                   "barrier %u waits for %u threads and %u arrive: warp %u has ended",
                   stuck->barrier, b->expected, b->arrived, absent->index);
    else if (absent)
        warp_fault(
            stuck, stuck->waits, 0, EMU_BARRIER, 0,
            "barrier %u waits for %u threads and %u arrive: warp %u waits at barrier %u (line %u)",
            stuck->barrier, b->expected, b->arrived, absent->index, absent->barrier,
            absent->waits->line);
    else
        warp_fault(stuck, stuck->waits, 0, EMU_BARRIER, 0,
                   "barrier %u waits for %u threads and the block has %u", stuck->barrier,
                   b->expected, m->threads);
}

static void run_block(machine *m)
{
    m->thread_instructions = m->warp_instructions = 0;
    memset(m->barriers, 0, sizeof m->barriers);
    shared_begin_block(&m->shared);
    if (m->local_bytes)
        memset(m->local_written, 0, m->threads * m->local_bytes);
    for (unsigned i = 0; i < m->warp_count; i++)
        start_warp(m, &m->warps[i]);
    for (bool moved = true, waits = true; waits && !has_fault(m);) {
        if (!moved) {
            report_stuck(m);
            break;
        }
        moved = waits = false;
        for (unsigned i = 0; i < m->warp_count; i++) {
            moved |= m->warps[i].status == WARP_RUNS;
            run_warp(&m->warps[i]);
        }
        for (unsigned i = 0; i < m->warp_count; i++)
            waits |= m->warps[i].status != WARP_ENDED;
    }
    if (m->stats) {
        m->stats->thread_instructions += m->thread_instructions;
        m->stats->warp_instructions += m->warp_instructions;
    }
}

static void fill_constants(machine *m, warp *w)
{
    for (size_t i = 0; i < m->entry->constants.count; i++) {
        const constant *c = &m->entry->constants.items[i];
        uint64_t value = c->bits + (c->base ? m->globals[c->base->index] : 0);
        for (int lane = 0; lane < WARP_LANES; lane++)
            if (c->wide)
                put_u64((lanes64 *)(void *)(w->file + c->place), lane, value);
            else
                put_u32((lanes32 *)(void *)(w->file + c->place), lane, (u32)value);
    }
}

static void make_warps(machine *m)
{
    const entry *e = m->entry;
    /* One frame a branch for where its ways meet, and one for each group of lanes that waits. */
    m->frames = WARP_LANES + 1;
    for (size_t i = 0; i < e->ops.count; i++)
        m->frames += e->ops.items[i].is_branch;
    for (unsigned i = 0; i < m->warp_count; i++) {
        warp *w = &m->warps[i];
        w->machine = m;
        w->index = i;
        w->file = arena_zalloc(m->arena, e->file_bytes);
        w->predicates = arena_zalloc(m->arena, e->predicate_count * sizeof *w->predicates);
        w->predicates[PREDICATE_TRUE] = ALL_LANES;
        w->defined = arena_zalloc(m->arena, (e->tracked_count + 1) * sizeof *w->defined);
        w->frames = arena_alloc(m->arena, m->frames * sizeof *w->frames);
        fill_constants(m, w);
    }
}

static void make_params(machine *m)
{
    uint8_t *bytes = arena_zalloc(m->arena, m->entry->param_bytes + 1);
    for (size_t i = 0; i < m->entry->params.count; i++) {
        const param *p = &m->entry->params.items[i];
        memcpy(bytes + p->offset, m->config->params[i], p->size);
    }
    m->params = bytes;
}

static bool refuse(emu_memory *memory, emu_report *report, const char *format, ...)
    PRINTF_LIKE(3, 4);

static bool refuse(emu_memory *memory, emu_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *report = (emu_report){ .fault = EMU_BAD_LAUNCH,
                            .message = arena_vformat(memory_arena(memory), format, args) };
    va_end(args);
    return false;
}

static uint64_t extent(const unsigned size[3])
{
    return (uint64_t)size[0] * size[1] * size[2];
}

static bool check_launch(emu_memory *memory, const emu_launch_config *c, const entry *e,
                         emu_report *report)
{
    static const unsigned most_block[3] = { 1024, 1024, 64 };
    static const unsigned most_grid[3] = { INT32_MAX, 65535, 65535 };
    emu_entry_info info;
    if (!e || !emu_entry(c->module, c->entry, &info))
        return refuse(memory, report, "the module has no entry '%s'", c->entry);
    for (int i = 0; i < 3; i++) {
        if (c->block[i] == 0 || c->block[i] > most_block[i])
            return refuse(memory, report, "block dimension %c is %u and must be 1 to %u", "xyz"[i],
                          c -> block[i], most_block[i]);
        if (c->grid[i] == 0 || c->grid[i] > most_grid[i])
            return refuse(memory, report, "grid dimension %c is %u and must be 1 to %u", "xyz"[i],
                          c -> grid[i], most_grid[i]);
    }
    if (extent(c->block) > MAX_WARPS * WARP_LANES)
        return refuse(memory, report, "a block of %llu threads; at most %d are possible",
                      (unsigned long long)extent(c->block), MAX_WARPS * WARP_LANES);
    if (e->reqntid[0] && memcmp(e->reqntid, c->block, sizeof c->block) != 0)
        return refuse(memory, report, "block %u x %u x %u and '%s' requires %u x %u x %u",
                      c->block[0], c->block[1], c->block[2], e->name, e->reqntid[0], e->reqntid[1],
                      e->reqntid[2]);
    if (e->maxntid[0] && extent(c->block) > extent(e->maxntid))
        return refuse(memory, report, "a block of %llu threads and '%s' allows %llu",
                      (unsigned long long)extent(c->block), e->name,
                      (unsigned long long)extent(e->maxntid));
    if (c->param_count != e->params.count)
        return refuse(memory, report, "%zu parameters given and '%s' has %zu", c->param_count,
                      e->name, e->params.count);
    if (c->dynamic_shared > MAX_SHARED_BYTES ||
        info.shared_bytes + c->dynamic_shared > MAX_SHARED_BYTES)
        return refuse(memory, report, "%zu + %zu bytes of shared memory; a block has at most %d",
                      info.shared_bytes, c->dynamic_shared, MAX_SHARED_BYTES);
    for (size_t i = 0; c->blocks && i < c->block_count; i++)
        if (c->blocks[i] >= extent(c->grid))
            return refuse(memory, report, "block %llu is not in a grid of %llu",
                          (unsigned long long)c->blocks[i], (unsigned long long)extent(c->grid));
    return true;
}

static uint64_t block_count(const emu_launch_config *c)
{
    return c->blocks ? c->block_count : extent(c->grid);
}

void launch_block(const emu_launch_config *c, uint64_t number, unsigned block[3])
{
    uint64_t at = c->descending ? block_count(c) - 1 - number : number;
    uint64_t linear = c->blocks ? c->blocks[at] : at;
    block[0] = (unsigned)(linear % c->grid[0]);
    block[1] = (unsigned)(linear / c->grid[0] % c->grid[1]);
    block[2] = (unsigned)(linear / c->grid[0] / c->grid[1]);
}

static void run_grid(machine *m)
{
    uint64_t count = block_count(m->config);
    for (uint64_t i = 0; i < count && !has_fault(m); i++) {
        launch_block(m->config, i, m->block);
        order_begin_block(&m->grid.order, (uint32_t)(i + 1));
        run_block(m);
    }
}

bool emu_launch(emu_memory *memory, const emu_launch_config *config, emu_stats *stats,
                emu_report *report)
{
    emu_report unused;
    report = report ? report : &unused;
    *report = (emu_report){ .fault = EMU_OK, .message = "" };
    const entry *e = module_entry(config->module, config->entry);
    if (!check_launch(memory, config, e, report))
        return false;
    arena *a = arena_new();
    machine *m = arena_zalloc(a, sizeof *m);
    m->arena = a;
    m->memory = memory;
    m->entry = e;
    m->config = config;
    m->stats = stats;
    m->report = report;
    m->threads = (unsigned)extent(config->block);
    m->warp_count = (m->threads + WARP_LANES - 1) / WARP_LANES;
    m->limit = config->instruction_limit ? config->instruction_limit : UINT64_C(1) << 36;
    m->globals = memory_variables(memory, config->module);
    size_t shared_bytes = (size_t)(e->shared.end - SHARED_STATIC_BASE) + config->dynamic_shared;
    shared_start(&m->shared, a, shared_bytes, !config->no_race_check);
    m->grid.enabled = !config->no_race_check;
    m->grid.order = (grid_order){ .arena = a, .times = &m->shared };
    m->local_bytes = (size_t)(e->local.end - LOCAL_BASE);
    m->local = arena_zalloc(a, m->threads * m->local_bytes + 1);
    m->local_written = arena_zalloc(a, m->threads * m->local_bytes + 1);
    make_params(m);
    make_warps(m);
    run_grid(m);
    grid_race_end(&m->grid);
    arena_free(a);
    return report->fault == EMU_OK;
}
