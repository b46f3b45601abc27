/* A launch by itself: its blocks one after another, or in rounds on several threads. */
#include "emu/check/grid_order.h"
#include "emu/launch/launch.h"
#include "emu/memory/allocation.h"

/* What may run out of memory: all of a launch. */
typedef struct single_launch {
    arena *arena;
    emu_memory *memory;
    const entry *entry;
    launch_job job; /* grid: NULL, not yet there */
    rounds *rounds; /* the same */
} single_launch;

static void run_single(void *context)
{
    single_launch *l = context;
    const emu_launch_config *config = l->job.config;
    machine *m = arena_zalloc(l->arena, sizeof *m);
    l->job.grid = grid_race_new(l->arena, !config->no_race_check);
    l->job.grid->order.times = &m->shared;
    launch_build(m, l->arena, l->memory, l->entry, config);
    l->job.params = launch_params(l->arena, config, l->entry);
    launch_take(m, &l->job);
    if (config->threads > 1 && rounds_suit(l->entry))
        rounds_run(m, &l->job, &l->rounds);
    else
        for (uint64_t i = 0; i < m->block_count && !has_fault(m); i++)
            launch_run_block(m, i);
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
    arena *a = arena_new_in(memory_arena(memory));
    single_launch l = {
        a, memory, e, { .config = &settled, .stats = stats, .report = report }, NULL
    };
    bool had_memory = arena_try(memory_arena(memory), run_single, &l);
    if (l.job.grid)
        grid_race_put(l.job.grid, false);
    rounds_free(l.rounds);
    arena_free(a);
    if (!had_memory)
        arena_exhausted(memory_arena(memory), 0);
    return report->fault == EMU_OK;
}
