/* A launch by itself: its blocks one after another, or in rounds on several threads. */
#include "emu/check/grid_race.h"
#include "emu/launch/launch.h"
#include "emu/memory/memory.h"

static void run_block_at_turn(machine *m, uint64_t number)
{
    machine_block(m, number, m->block);
    order_begin_block(&m->grid->order, (uint32_t)(number + 1));
    block_begin(m);
    block_run(m);
}

/* What may run out of memory: all of a launch. */
typedef struct single_launch {
    arena *arena;
    emu_memory *memory;
    const entry *entry;
    const emu_launch_config *config;
    emu_stats *stats;
    emu_report *report;
    grid_race *grid; /* NULL: not yet there */
    rounds *rounds;  /* the same */
} single_launch;

static void run_single(void *context)
{
    single_launch *l = context;
    machine *m = arena_zalloc(l->arena, sizeof *m);
    l->grid = grid_race_new(l->arena, !l->config->no_race_check);
    l->grid->order.times = &m->shared;
    launch_build(m, l->arena, l->memory, l->entry, l->config);
    const launch_job job = { .config = l->config,
                             .params = launch_params(l->arena, l->config, l->entry),
                             .stats = l->stats,
                             .report = l->report,
                             .grid = l->grid };
    launch_take(m, &job);
    if (l->config->threads > 1 && rounds_suit(l->entry))
        rounds_run(l->arena, m, &job, run_block_at_turn, l->config->threads, &l->rounds);
    else
        for (uint64_t i = 0; i < m->block_count && !has_fault(m); i++)
            run_block_at_turn(m, i);
}

bool emu_launch(emu_memory *memory, const emu_launch_config *config, emu_stats *stats,
                emu_report *report)
{
    emu_report unused;
    report = report ? report : &unused;
    *report = (emu_report){ .fault = EMU_OK, .message = "" };
    const entry *e = module_entry(config->module, config->entry);
    if (!launch_is_valid(memory, config, e, report))
        return false;
    if (config->grid_workspace) {
        *report = (emu_report){ .fault = EMU_BAD_LAUNCH,
                                .message = "blocks that wait for one another need a stream" };
        return false;
    }
    const emu_launch_config settled = launch_settle(config);
    config = &settled;
    arena *a = arena_new_in(memory_arena(memory));
    single_launch l = { a, memory, e, config, stats, report, NULL, NULL };
    bool had_memory = arena_try(memory_arena(memory), run_single, &l);
    if (l.grid)
        grid_race_leave(l.grid);
    rounds_free(l.rounds);
    arena_free(a);
    if (!had_memory)
        arena_exhausted(memory_arena(memory), 0);
    return report->fault == EMU_OK;
}
