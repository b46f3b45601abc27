#include "emu/launch/launch.h"
#include "emu/check/shared_race.h"
#include "emu/memory/allocation.h"

enum { USUAL_STACK = 1 << 10, MOST_STACK = 512 << 10 };

static void make_warps(machine *m)
{
    const entry *e = m->entry;
    /* one frame per branch for its reconvergence point, and one per group of waiting lanes */
    m->frames = WARP_LANES + 1;
    for (size_t i = 0; i < e->ops.count; i++)
        m->frames += e->ops.items[i].is_branch;
    m->own_frames = m->frames;
    for (unsigned i = 0; i < m->warp_count; i++) {
        warp *w = &m->warps[i];
        w->machine = m;
        w->index = i;
        w->file = arena_zalloc(m->arena, e->file_bytes);
        w->predicates = arena_zalloc(m->arena, e->predicate_count * sizeof *w->predicates);
        w->predicates[PREDICATE_TRUE] = ALL_LANES;
        w->defined =
            arena_zalloc(m->arena, (e->tracked_count + e->carried_count + 1) * sizeof *w->defined);
        w->frames = arena_alloc(m->arena, m->frames * sizeof *w->frames);
        for (size_t j = 0; j < e->constants.count; j++) {
            const constant *c = &e->constants.items[j];
            u64 values[WARP_LANES];
            for (int lane = 0; lane < WARP_LANES; lane++)
                values[lane] = c->bits + (c->base ? m->globals[c->base->index] : 0);
            write_lanes(w->file + c->place, values, c->wide, ALL_LANES);
        }
    }
}

const uint8_t *launch_params(arena *a, const emu_launch_config *config, const entry *e)
{
    uint8_t *bytes = arena_zalloc(a, e->info.param_bytes + 1);
    for (size_t i = 0; i < e->params.count; i++) {
        const param *p = &e->params.items[i];
        memcpy(bytes + p->offset, config->params[i], p->size);
    }
    return bytes;
}

/* Reports an invalid launch and returns NULL. */
PRINTF_LIKE(3, 4)
static const entry *refuse(emu_memory *memory, emu_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *report = (emu_report){ .fault = EMU_BAD_LAUNCH,
                            .message = arena_vformat(memory_arena(memory), format, args) };
    va_end(args);
    return NULL;
}

static uint64_t extent(const unsigned size[3])
{
    return (uint64_t)size[0] * size[1] * size[2];
}

const entry *launch_entry(emu_memory *memory, const emu_launch_config *c, emu_report *report)
{
    const entry *e = module_entry(c->module, c->entry);
    static const unsigned most_block[3] = { 1024, 1024, 64 };
    static const unsigned most_grid[3] = { INT32_MAX, 65535, 65535 };
    emu_entry_info info;
    if (!e || !emu_entry(c->module, c->entry, &info))
        return refuse(memory, report, "the module has no entry '%s'", c->entry);
    for (int i = 0; i < 3; i++) {
        if (c->block[i] == 0 || c->block[i] > most_block[i])
            return refuse(memory, report, "block dimension %c is %u; it must be 1 to %u", "xyz"[i],
                          c -> block[i], most_block[i]);
        if (c->grid[i] == 0 || c->grid[i] > most_grid[i])
            return refuse(memory, report, "grid dimension %c is %u; it must be 1 to %u", "xyz"[i],
                          c -> grid[i], most_grid[i]);
    }
    if (extent(c->block) > MAX_WARPS * WARP_LANES)
        return refuse(memory, report, "the block has %llu threads; the maximum is %d",
                      (ull)extent(c->block), MAX_WARPS * WARP_LANES);
    if (e->info.reqntid[0] && memcmp(e->info.reqntid, c->block, sizeof c->block) != 0)
        return refuse(memory, report,
                      "the block is %u x %u x %u; '%s' requires %u x %u x %u (.reqntid)",
                      c->block[0], c->block[1], c->block[2], e->name, e->info.reqntid[0],
                      e->info.reqntid[1], e->info.reqntid[2]);
    if (e->info.maxntid[0] && extent(c->block) > extent(e->info.maxntid))
        return refuse(memory, report, "the block has %llu threads; '%s' allows %llu (.maxntid)",
                      (ull)extent(c->block), e->name, (ull)extent(e->info.maxntid));
    if (c->param_count != e->params.count)
        return refuse(memory, report, "%zu parameters given; '%s' has %zu", c->param_count, e->name,
                      e->params.count);
    if (c->dynamic_shared > MAX_SHARED_BYTES ||
        info.shared_bytes + c->dynamic_shared > MAX_SHARED_BYTES)
        return refuse(memory, report,
                      "%zu static + %zu dynamic bytes of shared memory; the maximum is %d",
                      info.shared_bytes, c->dynamic_shared, MAX_SHARED_BYTES);
    for (size_t i = 0; c->blocks && i < c->block_count; i++)
        if (c->blocks[i] >= extent(c->grid))
            return refuse(memory, report, "block %llu is not in the grid of %llu blocks",
                          (ull)c->blocks[i], (ull)extent(c->grid));
    return e;
}

emu_launch_config launch_complete_config(const emu_launch_config *config)
{
    emu_launch_config complete = *config;
    if (config->checks && config->checks->actions[EMU_CHECK_RACE] == EMU_PASSES)
        complete.no_race_check = true;
    return complete;
}

uint64_t launch_blocks(const emu_launch_config *config)
{
    return config->blocks ? config->block_count : extent(config->grid);
}

void launch_build(machine *m, arena *a, emu_memory *memory, const entry *e,
                  const emu_launch_config *config)
{
    m->arena = a;
    m->messages = memory_arena(memory);
    m->memory = memory;
    m->entry = e;
    m->threads = (unsigned)extent(config->block);
    m->warp_count = (m->threads + WARP_LANES - 1) / WARP_LANES;
    m->globals = memory_variables(m->memory, config->module);
    size_t shared_bytes = (size_t)(e->shared.end - SHARED_STATIC_BASE) + config->dynamic_shared;
    shared_start(&m->shared, m->arena, shared_bytes, m->warp_count, !config->no_race_check);
    m->local_bytes = (size_t)(e->local.end - LOCAL_BASE);
    if (e->stack) {
        m->stack_size = config->stack_size ? config->stack_size : USUAL_STACK;
        m->stack_size = m->stack_size < MOST_STACK ? m->stack_size : MOST_STACK;
        m->stack_used = arena_zalloc(m->arena, m->threads * sizeof *m->stack_used);
        m->local_bytes = (size_t)(e->stack->offset - LOCAL_BASE) + m->stack_size;
    }
    m->local = arena_zalloc(m->arena, m->threads * m->local_bytes + 1);
    m->local_written = arena_zalloc(m->arena, m->threads * m->local_bytes + 1);
    if (e->undefined_memory && config->checks && config->checks->carries) {
        m->shared_undefined = arena_zalloc(m->arena, shared_bytes + 1);
        m->local_undefined = arena_zalloc(m->arena, m->threads * m->local_bytes + 1);
    }
    make_warps(m);
}

void launch_assign(machine *m, const launch_job *job)
{
    uint64_t limit = job->config->instruction_limit;
    static const emu_checks strict = { 0 };
    m->config = job->config;
    m->checks = job->config->checks ? job->config->checks : &strict;
    m->watched = m->checks->actions[EMU_CHECK_UNDEFINED] == EMU_PASSES ? 0
                 : m->checks->carries                                  ? WATCH_CARRIES
                                                                       : WATCH_READS | WATCH_WRITES;
    m->warned = m->checks->warn ? memory_warned(m->memory, m->entry) : NULL;
    m->params = job->params;
    m->stats = job->stats;
    m->report = job->report;
    m->grid = job->grid;
    m->block_count = launch_blocks(job->config);
    m->first = 0;
    m->step = 1;
    m->limit = limit ? limit : UINT64_C(1) << 36;
}
