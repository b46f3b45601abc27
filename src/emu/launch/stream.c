/* Streams: launches in order, which overlap if they are programmatic.
 *
 * A launch in flight has a machine for each block that has begun and not ended. One block runs at a
 * time. It stops at its end, at a griddepcontrol.wait while the predecessor has not ended, or where
 * the order suspends it. Then another block of any launch in flight begins or resumes. The oldest
 * launch in flight waits for no other, so there is always a block to run.
 *
 * A launch goes into flight when each block of its predecessor has triggered or ended, at most
 * IN_FLIGHT launches at a time. */
#include "base/arena.h"
#include "emu/check/grid_order.h"
#include "emu/check/overlap_order.h"
#include "emu/launch/launch.h"
#include "emu/memory/allocation.h"

enum {
    IN_FLIGHT = 3,
    HELD_BYTES = 4 << 20, /* a step begins some 80 kernels: more would be cleared than computed */
    POOLED_BYTES = 256 << 20,
    LEAST_HELD = 2,
    MOST_HELD = 1024,
    MOST_TURNS = 8,
};

typedef enum order_style { EARLY, LATE, AT_RANDOM, ORDER_STYLES } order_style;

typedef struct held_block {
    machine machine;
    grid_order order; /* saved while another block runs */
    overlap_block overlap;
    bool depends;   /* waits at griddepcontrol.wait */
    bool triggered; /* counted in flight.triggered */
} held_block;

/* Machines of ended blocks, for reuse by the same and later launches. */
typedef struct block_pool {
    struct block_pool *next;
    arena *arena; /* of the pool and its blocks */
    const entry *entry;
    emu_launch_config config; /* of one of the launches that share the pool */
    size_t users, bytes;      /* number of launches in flight; approximate bytes of all blocks */
    VEC(held_block *) spare;
} block_pool;

typedef struct flight {
    struct flight *next;
    arena *arena; /* of the whole flight */
    emu_launch_config config;
    const entry *entry;
    launch_job job; /* its grid: NULL until in flight */
    size_t number;  /* in the stream */
    bool programmatic;
    /* valid once in flight */
    bool flies;
    overlap_launch *overlap;
    uint64_t block_count, begun, triggered, ended; /* block counts; triggered includes ended */
    uint64_t first, step;                          /* as in machine */
    size_t most_held;
    VEC(held_block *) held;
    block_pool *pool;
} flight;

struct emu_stream {
    arena *arena;
    emu_memory *memory;
    overlap overlap;
    flight *flights, *last;
    block_pool *pools;
    size_t pooled;         /* bytes of all pools */
    const flight *running; /* launch whose shadows are attached, or NULL */
    size_t launched;
    bool has_predecessors; /* unknown launches precede the first */
    order_style style;
    bool shuffled;
    uint64_t random;
    emu_report *report; /* of the current emu_stream_finish */
};

/* splitmix64 */
static uint64_t draw(emu_stream *s, uint64_t below)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

void emu_stream_set_order(emu_stream *s, uint64_t order)
{
    s->style = (order_style)(order % ORDER_STYLES);
    s->shuffled = order >= ORDER_STYLES;
    s->random = order;
}

emu_stream *emu_stream_new(emu_memory *m, const emu_stream_config *config)
{
    arena *a = arena_new_in(memory_arena(m));
    emu_stream *s = arena_try_alloc(a, sizeof *s);
    if (!s) {
        arena_free(a);
        arena_exhausted(memory_arena(m), sizeof *s);
    }
    *s = (emu_stream){
        .arena = a,
        .memory = m,
        .has_predecessors = config->has_predecessors,
        .overlap = { .arena = memory_arena(m),
                     .ranges = config->ranges,
                     .range_count = config->range_count },
    };
    emu_stream_set_order(s, config->order);
    return s;
}

/* Detaches the shadows of the launch that ran last and attaches those of another launch. */
static void switch_to(emu_stream *s, const flight *f)
{
    if (s->running == f)
        return;
    if (s->running)
        grid_race_attach(s->running->job.grid, false);
    if (f)
        grid_race_attach(f->job.grid, true);
    s->running = f;
}

static void drop_first(emu_stream *s)
{
    flight *f = s->flights;
    if (s->running == f)
        switch_to(s, NULL);
    s->flights = f->next;
    s->last = s->flights ? s->last : NULL;
    if (f->pool)
        f->pool->users--;
    arena_free(f->arena);
}

/* Drops all launches, so that later launches do not overlap with them. */
static void forget_all(emu_stream *s)
{
    while (s->flights)
        drop_first(s);
    s->overlap.newest = NULL;
    s->launched = 0;
    overlap_forget(&s->overlap, 0);
}

void emu_stream_free(emu_stream *s)
{
    if (!s)
        return;
    forget_all(s);
    arena_free(s->arena);
}

/* Estimates the bytes of a machine, which are mostly records of shared memory. */
static size_t held_bytes(const flight *f)
{
    const unsigned *block = f->config.block;
    size_t threads = (size_t)block[0] * block[1] * block[2];
    size_t warps = (threads + WARP_LANES - 1) / WARP_LANES;
    size_t shared = (size_t)(f->entry->shared.end - SHARED_STATIC_BASE) + f->config.dynamic_shared;
    size_t local = (size_t)(f->entry->local.end - LOCAL_BASE);
    return sizeof(held_block) + warps * f->entry->file_bytes +
           shared * (1 + sizeof(shared_record)) + 2 * threads * local;
}

static block_pool *find_pool(emu_stream *s, const flight *f)
{
    const emu_launch_config *c = &f->config;
    block_pool *p = s->pools;
    for (; p; p = p->next)
        if (p->entry == f->entry && memcmp(p->config.block, c->block, sizeof c->block) == 0 &&
            p->config.dynamic_shared == c->dynamic_shared &&
            p->config.stack_size == c->stack_size && p->config.no_race_check == c->no_race_check)
            return p;
    /* frees unused pools if all pools together are large */
    for (block_pool **at = &s->pools; s->pooled > POOLED_BYTES && *at;) {
        block_pool *unused = (*at)->users ? NULL : *at;
        if (!unused) {
            at = &(*at)->next;
            continue;
        }
        *at = unused->next;
        s->pooled -= unused->bytes;
        arena_free(unused->arena);
    }
    arena *a = arena_new_in(s->arena);
    p = arena_zalloc(a, sizeof *p);
    *p = (block_pool){ .next = s->pools, .arena = a, .entry = f->entry, .config = *c };
    return s->pools = p;
}

static void begin_flight(emu_stream *s, flight *f)
{
    size_t held = HELD_BYTES / held_bytes(f);
    bool shuffled = s->shuffled && f->block_count >= 2 && f->block_count <= INT32_MAX;
    f->flies = true;
    f->most_held = f->config.grid_workspace ? f->block_count
                   : held < LEAST_HELD      ? LEAST_HELD
                   : held < MOST_HELD       ? held
                                            : MOST_HELD;
    f->step = 1;
    if (shuffled)
        f->first = draw(s, f->block_count);
    for (uint64_t divisor = 0; shuffled && divisor != 1;) {
        f->step = 1 + draw(s, f->block_count - 1);
        divisor = f->block_count;
        for (uint64_t rest, b = f->step; b; divisor = b, b = rest) /* Euclid's algorithm */
            rest = divisor % b;
    }
    f->pool = find_pool(s, f);
    f->pool->users++;
    f->job.grid = grid_race_new(f->arena, !f->config.no_race_check);
    f->overlap = overlap_begin(&s->overlap, s->arena, f->entry->name, f->number, f->programmatic,
                               f->next && f->next->programmatic);
}

/* Drops launches that have ended, and begins launches that may go into flight. */
static void move_flights(emu_stream *s)
{
    overlap_set kept = 0;
    while (s->flights && (!s->flights->flies || s->flights->ended == s->flights->block_count))
        if (!s->flights->flies)
            begin_flight(s, s->flights);
        else
            drop_first(s);
    flight *f = s->flights;
    for (int count = 1; f && count < IN_FLIGHT && f->next && f->next->programmatic;
         count++, f = f->next)
        if (!f->next->flies) {
            if (f->triggered < f->block_count)
                break;
            begin_flight(s, f->next);
        }
    for (f = s->flights; f && f->flies; f = f->next)
        kept |= overlap_set_of(f->overlap);
    overlap_forget(&s->overlap, kept);
}

static void begin_block(emu_stream *s, flight *f)
{
    block_pool *p = f->pool;
    held_block *h = p->spare.count ? p->spare.items[--p->spare.count] : NULL;
    if (!h) {
        h = arena_zalloc(p->arena, sizeof *h);
        launch_build(&h->machine, p->arena, s->memory, f->entry, &f->config);
        p->bytes += held_bytes(f);
        s->pooled += held_bytes(f);
    }
    f->job.report = s->report;
    launch_assign(&h->machine, &f->job);
    h->machine.first = f->first;
    h->machine.step = f->step;
    h->order = (grid_order){ .arena = f->arena, .times = &h->machine.shared, .interleaved = true };
    h->overlap = (overlap_block){ .launch = f->overlap, .arena = f->arena };
    h->machine.dependence.overlap = f->overlap ? &h->overlap : NULL;
    h->depends = h->triggered = false;
    machine_block(&h->machine, f->begun++, h->machine.block);
    block_begin(&h->machine);
    *VEC_PUSH(f->arena, &f->held) = h;
}

static void run_held(emu_stream *s, flight *f, size_t index, bool begins,
                     bool predecessor_has_ended)
{
    held_block *h = f->held.items[index];
    machine *m = &h->machine;
    switch_to(s, f);
    order_switch(&f->job.grid->order, &h->order);
    if (begins)
        order_begin_block(&f->job.grid->order, (uint32_t)f->begun);
    dependence *d = &m->dependence; /* where the block is suspended */
    d->waits = !predecessor_has_ended;
    d->yields = f->config.grid_workspace;
    d->pauses = f->next && f->next->programmatic &&
                (s->style == EARLY || (s->style == AT_RANDOM && draw(s, 2)));
    d->turns =
        f->overlap && s->style == AT_RANDOM && draw(s, 2) ? 1 + (unsigned)draw(s, MOST_TURNS) : 0;
    block_status status = block_run(m);
    order_switch(&f->job.grid->order, &h->order);
    h->depends = status == BLOCK_DEPENDS;
    if (!h->triggered && (d->triggered || status == BLOCK_ENDED)) {
        h->triggered = true;
        f->triggered++;
    }
    if (status == BLOCK_ENDED) {
        if (f->overlap && !d->triggered && h->overlap.waits.count)
            f->overlap->late_triggers++;
        f->held.items[index] = f->held.items[--f->held.count];
        *VEC_PUSH(f->pool->arena, &f->pool->spare) = h;
        f->ended++;
        if (f->overlap && f->job.stats)
            f->job.stats->waited = f->overlap->waited;
        if (f->ended == f->block_count && f->overlap)
            overlap_end(f->overlap, f->next && f->next->flies ? f->next->overlap : NULL);
    }
    if (s->report->fault)
        s->report->launch = f->number;
}

static bool may_begin(const flight *f)
{
    return f->begun < f->block_count && f->held.count < f->most_held;
}

/* Counts blocks that can resume, at most nth, and sets index to the last one counted. */
static size_t find_ready(const flight *f, bool predecessor_has_ended, size_t nth, size_t *index)
{
    size_t count = 0;
    for (size_t i = 0; i < f->held.count && count < nth; i++)
        if (!f->held.items[i]->depends || predecessor_has_ended) {
            *index = i;
            count++;
        }
    return count;
}

/* Runs a block of a launch. Returns false if none can run. */
static bool run_some(emu_stream *s, flight *f, bool predecessor_has_ended)
{
    size_t index = 0, ready = find_ready(f, predecessor_has_ended, SIZE_MAX, &index);
    if (!ready && !may_begin(f))
        return false;
    bool begins = !ready || (may_begin(f) && (s->style == EARLY || draw(s, 2)));
    if (begins) {
        begin_block(s, f);
        index = f->held.count - 1;
    } else {
        find_ready(f, predecessor_has_ended, 1 + (size_t)draw(s, ready), &index);
    }
    run_held(s, f, index, begins, predecessor_has_ended);
    return true;
}

static void run_all(void *context)
{
    emu_stream *s = context;
    overlap *all = &s->overlap;
    if (s->has_predecessors) {
        all->unknown = overlap_begin(all, s->arena, "a preceding launch", 0, false, true);
        overlap_end(all->unknown, NULL);
    }
    for (move_flights(s); s->flights && !s->report->fault; move_flights(s)) {
        flight *flights[IN_FLIGHT];
        bool predecessor_has_ended[IN_FLIGHT];
        size_t count = 0;
        for (flight *f = s->flights; f && f->flies; f = f->next, count++) {
            flights[count] = f;
            predecessor_has_ended[count] =
                !count || flights[count - 1]->ended == flights[count - 1]->block_count;
        }
        size_t chosen = s->style == EARLY ? count - 1 : s->style == LATE ? 0 : draw(s, count);
        while (!run_some(s, flights[chosen], predecessor_has_ended[chosen]))
            chosen = chosen ? chosen - 1 : count - 1;
    }
}

bool emu_stream_finish(emu_stream *s, emu_report *report)
{
    emu_report unused;
    s->report = report ? report : &unused;
    *s->report = (emu_report){ .fault = EMU_OK, .message = "" };
    bool had_memory = arena_try(memory_arena(s->memory), run_all, s);
    /* an uninitialised read may have led to any fault; report the read unless the race was found */
    if (s->overlap.doubt.fault && s->report->fault != EMU_RACE)
        *s->report = s->overlap.doubt;
    s->overlap.doubt.fault = EMU_OK;
    forget_all(s);
    if (!had_memory)
        arena_exhausted(memory_arena(s->memory), 0);
    return s->report->fault == EMU_OK;
}

bool emu_stream_launch(emu_stream *s, const emu_launch_config *config, bool programmatic,
                       emu_stats *stats, emu_report *report)
{
    emu_report unused;
    report = report ? report : &unused;
    *report = (emu_report){ .fault = EMU_OK, .message = "", .launch = s->launched };
    const entry *e = launch_entry(s->memory, config, report);
    if (!e)
        return false;
    arena *a = arena_new_in(s->arena);
    flight *f = arena_zalloc(a, sizeof *f);
    *f = (flight){ .arena = a,
                   .config = launch_complete_config(config),
                   .entry = e,
                   .job = { .params = launch_params(a, config, e), .stats = stats },
                   .number = s->launched++,
                   .programmatic = programmatic,
                   .block_count = launch_blocks(config) };
    f->job.config = &f->config;
    f->config.entry = e->name;
    f->config.params = NULL;
    if (config->blocks)
        f->config.blocks = (const uint64_t *)(const void *)arena_copy(
            a, config->blocks, config->block_count * sizeof *config->blocks);
    *(s->last ? &s->last->next : &s->flights) = f;
    s->last = f;
    return true;
}
