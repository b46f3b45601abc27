/* A plain launch. Its blocks run one after another, or on several threads in rounds.
 *
 * In a round, threads run blocks speculatively, before the blocks that precede them have finished.
 * Then the blocks commit in order (speculation.h). While blocks are independent, all threads
 * commit, each the pages of its own share of memory. From the first dependent block on, one thread
 * commits. A block that cannot commit runs again there, and the next round begins after it.
 *
 * The size of a round depends on the work per block and on the success of the rounds before. If
 * there is little work, or blocks depend on each other, one thread runs them one by one. */
#include "base/os_process.h"
#include "emu/check/grid_order.h"
#include "emu/launch/launch.h"
#include "emu/run/access.h"

typedef struct rounds rounds;

enum {
    LEAST_WORK = 1 << 22,     /* minimum remaining instructions for the first round */
    LEAST_MORE = 1 << 19,     /* and for a later round */
    LEAST_PAGES = 64,         /* minimum pages to commit on several threads */
    FIRST_WORK = 1 << 21,     /* instructions per thread of the first round */
    MOST_WORK = 1 << 26,      /* and at most of any round */
    GROWTH = 4,               /* factor from a successful round to the next */
    BLOCKS_A_THREAD = 2,      /* minimum */
    MOST_BLOCKS = 1 << 16,    /* maximum per round */
    MOST_LOG_BYTES = 4 << 20, /* per thread; ends a round, so that logs stay in caches */
    MOST_STRIKES = 4,         /* consecutive unsuccessful rounds */
    HANGING = 64,             /* limit of a speculative block: this times the largest block */
    HANGING_SMALL = 1 << 26,  /* plus this: the block may wait for another one */
    SHARE_BYTES = 4 * GRID_PAGE_BYTES,
};

typedef struct committed_page {
    uint64_t block;
    const block_page *page;
} committed_page;

/* Runs blocks speculatively. Used by one thread at a time. */
typedef struct worker {
    rounds *of;
    unsigned index;
    arena *arena, *logs; /* logs: of a round; a child of arena */
    machine machine;
    speculation speculation;
    grid_race grid; /* order: of the running block; shadows: the launch's */
    emu_report report;
    bool failed; /* out of memory */
    /* In this worker's share of a round's pages: bytes stored so far (as loaded sets), pages to
     * commit in block order, and the number of leading blocks that are independent there. */
    page_table stored;
    VEC(committed_page) pages;
    uint64_t independent;
} worker;

struct rounds {
    arena *arena;
    emu_memory *memory;
    const entry *entry;
    launch_job job;               /* its grid: NULL until run_launch */
    machine *machine;             /* runs blocks in order */
    void (*work_of_all)(void *k); /* function that each worker runs */
    uint32_t launch;              /* number of the launch, see allocation.tracked */
    page_table stored; /* bytes of tracked allocations that this round stored, as loaded sets */
    worker *workers[EMU_MOST_THREADS];
    unsigned threads, count; /* count: workers that exist, created on demand */
    uint64_t next;           /* the next block in order */
    uint64_t work, largest;  /* instructions of all blocks so far, and of the largest */
    uint64_t blocks;         /* size of the next round; 0 = choose */
    unsigned strikes;
    bool in_order; /* no more rounds */
    /* the current round: logs of its blocks, from next on; next block to run, and the end */
    block_log *logs;
    atomic_uint_fast64_t taken, end;
    uint64_t independent; /* leading blocks to commit on all threads */
};

/* Returns false if an instruction of the kernel may depend on the order of blocks. */
static bool may_speculate(const entry *e)
{
    for (size_t i = 0; i < e->ops.count; i++) {
        const op *o = &e->ops.items[i];
        bool global = o->space == SPACE_GLOBAL;
        if ((o->exec == exec_atom && global && !op_may_wait(o)) || o->exec == exec_heap_alloc ||
            o->exec == exec_heap_free || (o->exec == exec_fence && o->order) ||
            ((o->exec == exec_ld || o->exec == exec_st) && o->order && global))
            return false;
    }
    return true;
}

/* Lets a round begin no block from a number on. */
static void end_round(rounds *r, uint64_t number)
{
    uint64_t end = atomic_load(&r->end);
    while (number < end && !atomic_compare_exchange_weak(&r->end, &end, number))
        continue;
}

static void run_blocks(void *context)
{
    worker *k = context;
    rounds *r = k->of;
    machine *m = &k->machine;
    arena_reset(k->logs);
    speculation_begin_round(&k->speculation);
    for (uint64_t i; (i = atomic_fetch_add(&r->taken, 1)) < atomic_load(&r->end);) {
        block_log *log = &r->logs[i - r->next];
        k->report.fault = EMU_OK;
        k->grid.order.block = (uint32_t)(i + 1);
        log->fate = BLOCK_ABANDONED;
        m->stats = r->job.stats ? &log->stats : NULL;
        speculation_begin_block(&k->speculation, log);
        machine_block(m, i, m->block);
        block_begin(m);
        block_run(m);
        log->instructions = m->thread_instructions;
        if (k->report.fault)
            end_round(r, i + 1);
        else
            log->fate = BLOCK_SPECULATED;
        if (k->speculation.bytes > MOST_LOG_BYTES)
            end_round(r, atomic_load(&r->taken));
    }
}

static void run_worker(void *context, size_t i)
{
    worker *k = ((rounds *)context)->workers[i];
    k->failed = !arena_try(k->arena, k->of->work_of_all, k);
    if (k->failed)
        end_round(k->of, 0);
}

/* Runs a function in every worker. Returns false if one runs out of memory. */
static bool run_all(rounds *r, void (*does)(void *k))
{
    bool failed = false;
    r->work_of_all = does;
    os_parallel(r->threads, r->threads, run_worker, r);
    for (unsigned i = 0; i < r->threads; i++)
        failed |= r->workers[i]->failed;
    return !failed;
}

static void build_worker(void *context)
{
    worker *k = context;
    const rounds *r = k->of;
    machine *m = &k->machine;
    k->logs = arena_new_in(k->arena);
    k->grid = (grid_race){ .enabled = r->machine->grid->enabled,
                           .order = { .arena = k->arena, .times = &m->shared } };
    launch_build(m, k->arena, r->machine->memory, r->machine->entry, r->job.config);
    launch_job job = r->job;
    job.report = &k->report;
    job.grid = &k->grid;
    launch_assign(m, &job);
    m->messages = k->logs;
    k->speculation =
        (speculation){ .arena = k->logs,
                       .launch = r->launch,
                       .pages = { .arena = k->logs, .slots_arena = k->arena, .generation = 1 } };
    m->speculation = &k->speculation;
    k->stored = (page_table){ .arena = k->logs, .slots_arena = k->arena, .generation = 1 };
}

/* Creates workers up to r->threads. Returns false if memory does not suffice for two. */
static bool make_workers(rounds *r)
{
    for (bool fails = false; r->count < r->threads && !fails;) {
        arena *a = arena_try_new(NULL);
        worker *k = a ? arena_try_alloc(a, sizeof *k) : NULL;
        fails = !k;
        if (k) {
            *k = (worker){ .of = r, .index = r->count, .arena = a };
            fails = !arena_try(a, build_worker, k);
        }
        if (!fails)
            r->workers[r->count++] = k;
        else if (a)
            arena_free(a);
    }
    r->threads = r->count;
    return r->count >= 2;
}

static void note_work(rounds *r, uint64_t instructions)
{
    r->next++;
    r->work += instructions;
    r->largest = instructions > r->largest ? instructions : r->largest;
}

static void run_next(rounds *r)
{
    machine *m = r->machine;
    machine_block(m, r->next, m->block);
    order_begin_block(&m->grid->order, (uint32_t)(r->next + 1));
    block_begin(m);
    block_run(m);
    note_work(r, m->thread_instructions);
}

/* Returns the number of blocks of the next round, or 0 if a round is not worthwhile. */
static uint64_t choose_blocks(const rounds *r)
{
    uint64_t left = r->machine->block_count - r->next;
    uint64_t least = (uint64_t)BLOCKS_A_THREAD * r->threads,
             most = (uint64_t)MOST_WORK * r->threads;
    uint64_t average = r->next ? r->work / r->next + 1 : 1; /* instructions per block */
    if (!r->next || r->in_order || left < 2 ||
        left * average < (uint64_t)(r->count ? LEAST_MORE : LEAST_WORK))
        return 0;
    uint64_t count = r->blocks ? r->blocks : (uint64_t)FIRST_WORK * r->threads / average;
    most = most / average < MOST_BLOCKS ? most / average : MOST_BLOCKS;
    count = count < most ? count : most;
    count = count > least ? count : least;
    return count < left ? count : left;
}

static bool have_common(const byte_set *a, const byte_set *b)
{
    uint64_t any = 0;
    for (int i = 0; i < BLOCK_PAGE_WORDS; i++)
        any |= a->bits[i] & b->bits[i];
    return any;
}

/* Returns true if a block has loaded bytes that earlier blocks of the round stored. */
static bool is_outdated(const page_table *t, const block_page *p)
{
    if (!have_common(&p->loaded, &p->loaded))
        return false;
    const block_page *stored = page_table_find(t, p->of, p->index);
    return stored && have_common(&stored->loaded, &p->loaded);
}

/* Returns false if speculative blocks may have loaded from an untracked allocation; tracks it. */
static bool may_change(const rounds *r, allocation *a)
{
    if (a->tracked == r->launch || a->loaded_in != r->launch)
        return true;
    a->tracked = r->launch;
    return false;
}

static void add_stored(page_table *t, const block_page *p)
{
    block_page *known = page_table_get(t, p->of, p->index);
    for (int i = 0; i < BLOCK_PAGE_WORDS; i++)
        known->loaded.bits[i] |=
            (p->stores ? p->stores->bytes.bits[i] : 0) | (p->updates ? p->updates->bits[i] : 0);
}

/* Writes a page's stored bytes to memory, in contiguous runs. */
static void store_page(grid_race *g, const block_page *p)
{
    const page_stores *t = p->stores;
    const uint64_t *bits = t->bytes.bits, address = p->of->address + p->index * BLOCK_PAGE_BYTES;
    for (unsigned from = 0, to; from < BLOCK_PAGE_BYTES; from = to) {
        bool in = byte_set_has(&t->bytes, from);
        for (to = from + 1; to < BLOCK_PAGE_BYTES && in == byte_set_has(&t->bytes, to);)
            to += to % 64 == 0 && bits[to / 64] == (in ? UINT64_MAX : 0) ? 64 : 1;
        if (in)
            allocation_write(p->of, address + from, t->values + from, to - from);
    }
    grid_race_store_page(g, p);
}

/* Commits the statistics and output of a block. */
static void commit_others(const rounds *r, const block_log *log)
{
    const emu_launch_config *config = r->job.config;
    emu_stats *to = r->machine->stats;
    const emu_stats *from = &log->stats;
    for (size_t i = 0; i < log->loaded.count; i++)
        log->loaded.items[i].of->loaded += log->loaded.items[i].bytes;
    for (size_t i = 0; i < log->prints.count; i++)
        config->print(config->print_context, log->prints.items[i].text,
                      log->prints.items[i].length);
    if (!to)
        return;
    to->thread_instructions += from->thread_instructions;
    to->warp_instructions += from->warp_instructions;
    to->global_load_bytes += from->global_load_bytes;
    to->global_store_bytes += from->global_store_bytes;
    to->global_load_sectors += from->global_load_sectors;
    to->global_load_passes += from->global_load_passes;
    to->global_prefetches += from->global_prefetches;
    to->shared_bank_conflicts += from->shared_bank_conflicts;
    to->watched_line = from->watched_line ? from->watched_line : to->watched_line;
}

static void note_stored(rounds *r, const block_log *log)
{
    for (size_t i = 0; i < log->pages.count; i++) {
        const block_page *p = log->pages.items[i];
        if ((p->stores || p->updates) && p->of->tracked == r->launch)
            add_stored(&r->stored, p);
    }
}

/* Commits a block after all before it. Returns false, without effect, if it must run again. */
static bool commit_block(rounds *r, const block_log *log)
{
    grid_race *g = r->machine->grid;
    for (size_t i = 0; i < log->pages.count; i++) {
        const block_page *p = log->pages.items[i];
        if (is_outdated(&r->stored, p) ||
            (p->stores && (!may_change(r, p->of) || !grid_race_may_store_page(g, p))))
            return false;
    }
    for (size_t i = 0; i < log->updates.count; i++) {
        const atomic_update *u = &log->updates.items[i];
        if (!may_change(r, u->of) || !grid_race_may_update(g, u))
            return false;
    }
    for (size_t i = 0; i < log->pages.count; i++)
        if (log->pages.items[i]->stores)
            store_page(g, log->pages.items[i]);
    for (size_t i = 0; i < log->updates.count; i++) {
        atomic_commit(&log->updates.items[i]);
        grid_race_update(g, &log->updates.items[i]);
    }
    note_stored(r, log);
    commit_others(r, log);
    return true;
}

/* Returns true if a page is independent of earlier stores, and its allocation is plain memory. */
static bool is_plain(worker *k, const block_page *p)
{
    uint32_t launch = k->of->launch;
    if (is_outdated(&k->stored, p))
        return false;
    if (!p->stores)
        return true;
    const block_page *stored = page_table_find(&k->stored, p->of, p->index);
    return p->of->bytes && (p->of->tracked == launch || p->of->loaded_in != launch) &&
           !(stored && have_common(&stored->loaded, &p->stores->bytes)) &&
           grid_race_may_store_page(&k->grid, p);
}

/* Checks a worker's share of a round's pages without changing memory. */
static void check_share(void *context)
{
    worker *k = context;
    k->pages.count = 0;
    page_table_clear(&k->stored);
    for (k->independent = 0; k->independent < k->of->independent; k->independent++) {
        const block_log *log = &k->of->logs[k->independent];
        if (log->updates.count)
            return;
        for (size_t i = 0; i < log->pages.count; i++) {
            const block_page *p = log->pages.items[i];
            if (p->index * BLOCK_PAGE_BYTES / SHARE_BYTES % k->of->threads != k->index)
                continue;
            if (!is_plain(k, p))
                return;
            if (!p->stores)
                continue;
            add_stored(&k->stored, p);
            *VEC_PUSH(k->arena, &k->pages) = (committed_page){ k->independent, p };
        }
    }
}

/* Stores the share's pages of the leading blocks that are independent in all shares. */
static void store_share(void *context)
{
    worker *k = context;
    for (size_t i = 0; i < k->pages.count && k->pages.items[i].block < k->of->independent; i++)
        store_page(&k->grid, k->pages.items[i].page);
}

/* Commits the leading independent blocks of a round on all threads. Returns their number. */
static uint64_t commit_independent(rounds *r, uint64_t count)
{
    uint64_t pages = 0;
    for (uint64_t i = 0; i < count; i++)
        pages += r->logs[i].pages.count;
    if (pages < LEAST_PAGES)
        return 0;
    for (unsigned i = 0; i < r->threads; i++) {
        const speculation *s = &r->workers[i]->speculation;
        for (size_t j = 0; j < s->regions.count; j++)
            if (allocation_share(s->regions.items[j].of))
                grid_race_share(r->machine->grid, s->regions.items[j].of,
                                s->regions.items[j].offset);
    }
    r->independent = count;
    if (!run_all(r, check_share))
        return 0;
    for (unsigned i = 0; i < r->threads; i++)
        r->independent = r->workers[i]->independent < r->independent ? r->workers[i]->independent
                                                                     : r->independent;
    if (!run_all(r, store_share))
        arena_exhausted(r->machine->arena, 0);
    for (uint64_t i = 0; i < r->independent; i++)
        commit_others(r, &r->logs[i]);
    return r->independent;
}

/* Commits the blocks of a round up to the first that fails. Returns their number. */
static uint64_t commit_round(rounds *r, uint64_t count)
{
    uint64_t ran = 0;
    while (ran < count && r->logs[ran].fate == BLOCK_SPECULATED)
        ran++;
    uint64_t done = commit_independent(r, ran);
    for (uint64_t i = 0; done < ran && i < done; i++)
        note_stored(r, &r->logs[i]);
    while (done < ran && commit_block(r, &r->logs[done]))
        done++;
    for (uint64_t i = 0; i < done; i++)
        note_work(r, r->logs[i].instructions);
    return done;
}

static void run_round(rounds *r, uint64_t count)
{
    uint64_t ran = 0;
    arena *a = arena_new_in(r->machine->arena);
    r->logs = arena_zalloc(a, count * sizeof *r->logs);
    r->stored = (page_table){ .arena = a, .slots_arena = a, .generation = 1 };
    uint64_t limit = HANGING * r->largest + HANGING_SMALL;
    for (unsigned i = 0; i < r->threads; i++)
        r->workers[i]->machine.limit = limit < r->machine->limit ? limit : r->machine->limit;
    grid_race_track(r->machine->grid, r->launch);
    atomic_store(&r->taken, r->next);
    atomic_store(&r->end, r->next + count);
    bool failed = !run_all(r, run_blocks);
    for (uint64_t i = 0; i < count; i++)
        ran += r->logs[i].fate == BLOCK_SPECULATED;
    uint64_t done = failed ? 0 : commit_round(r, count);
    bool whole = done == ran && (done == count || r->logs[done].fate == BLOCK_NOT_BEGUN);
    bool ordered = !whole && r->logs[done].ordered;
    r->strikes = 2 * done >= ran + !whole ? 0 : r->strikes + 1;
    if (r->job.config->speculated_blocks)
        *r->job.config->speculated_blocks += done;
    r->in_order = failed || ordered || r->strikes == MOST_STRIKES;
    r->blocks = whole ? GROWTH * count : 0;
    arena_free(a);
    if (!whole)
        run_next(r);
}

static void run_launch(void *context)
{
    rounds *r = context;
    const emu_launch_config *config = r->job.config;
    machine *m = r->machine = arena_zalloc(r->arena, sizeof *m);
    r->job.grid = grid_race_new(r->arena, !config->no_race_check);
    r->job.grid->order.times = &m->shared;
    launch_build(m, r->arena, r->memory, r->entry, config);
    r->job.params = launch_params(r->arena, config, r->entry);
    launch_assign(m, &r->job);
    r->launch = memory_begin_launch(r->memory);
    while (r->next < m->block_count && !has_fault(m)) {
        uint64_t count = choose_blocks(r);
        if (count && !r->count && !make_workers(r)) {
            r->in_order = true;
            count = 0;
        }
        if (count)
            run_round(r, count);
        else
            run_next(r);
    }
}

bool emu_launch(emu_memory *memory, const emu_launch_config *config, emu_stats *stats,
                emu_report *report)
{
    emu_report unused;
    report = report ? report : &unused;
    *report = (emu_report){ .fault = EMU_OK, .message = "" };
    const entry *e = launch_entry(memory, config, report);
    if (!e)
        return false;
    if (config->grid_workspace) {
        *report = (emu_report){ .fault = EMU_BAD_LAUNCH,
                                .message = "a cooperative launch needs a stream" };
        return false;
    }
    const emu_launch_config complete = launch_complete_config(config);
    unsigned threads = config->threads;
    rounds r = { .arena = arena_new_in(memory_arena(memory)),
                 .memory = memory,
                 .entry = e,
                 .job = { .config = &complete, .stats = stats, .report = report },
                 .threads = threads < EMU_MOST_THREADS ? threads : EMU_MOST_THREADS,
                 .in_order = threads < 2 || !may_speculate(e) };
    bool had_memory = arena_try(memory_arena(memory), run_launch, &r);
    if (r.job.grid)
        grid_race_attach(r.job.grid, false);
    for (unsigned i = 0; i < r.count; i++)
        arena_free(r.workers[i]->arena);
    arena_free(r.arena);
    if (!had_memory)
        arena_exhausted(memory_arena(memory), 0);
    return report->fault == EMU_OK;
}
