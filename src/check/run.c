#include "check/run.h"

#include <string.h>

#include "ref/reference.h"

enum {
    LARGE_OUTPUT = 64 << 20, /* bytes of all targets; larger outputs are allocated sparsely */
    JUDGED_BLOCKS = 1 << 12, /* blocks of an output that are judged at once */
    NEAR_BLOCKS = 1 << 8,    /* the same for a sparsely written output */
};

static bool is_named(const trial_param *p, const char *name)
{
    return name && strcmp(p->param.name, name) == 0;
}

/* Places a parameter. Scratch memory has no content: a kernel must write it before it reads it. */
static bool place_param(const trial_run *r, const trial_param *p, uint64_t *address)
{
    device *d = r->device;
    bool in_place = is_named(p, r->in_place_of);
    if (p->param.kind == PARAM_IN && !in_place)
        return d->map(d, &p->content, true, address);
    if (p->param.kind == PARAM_U32)
        return true;
    const void *bytes = in_place || p->content.bytes   ? p->content.bytes
                        : p->param.data == DATA_ZEROED ? arena_zalloc(r->trial->arena, p->size)
                                                       : NULL;
    bool sparse = p->param.kind == PARAM_OUT && !bytes && p->size > LARGE_OUTPUT;
    return d->alloc(d, p->size, sparse, address) && (!bytes || d->put(d, *address, bytes, p->size));
}

bool run_place(trial_run *r)
{
    const trial *t = r->trial;
    size_t output = 0, input = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        r->pointers[i] = p->param.kind == PARAM_U32 ? (const void *)&p->number : &r->addresses[i];
        if (!place_param(r, p, &r->addresses[i]))
            return false;
        output = is_named(p, r->output) ? i : output;
        input = is_named(p, r->in_place_of) ? i : input;
    }
    if (r->output)
        r->addresses[output] = r->addresses[input];
    return true;
}

bool run_clear(trial_run *r)
{
    const trial *t = r->trial;
    device *d = r->device;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        bool updated = p->param.data == DATA_UPDATED;
        if (p->param.kind == PARAM_OUT &&
            !d->put(d, r->addresses[i], p->content.bytes, updated ? p->size : 0))
            return false;
        if (p->param.kind == PARAM_SCRATCH && p->param.data != DATA_ZEROED && d->memory) {
            emu_free(d->memory, r->addresses[i]);
            r->addresses[i] = emu_alloc(d->memory, p->size);
        }
    }
    return true;
}

device_launch run_launch(const trial_run *r, const block_choice *c)
{
    const trial *t = r->trial;
    return (device_launch){
        .entry = t->instance->name,
        .grid = { t->grid[0], t->grid[1], t->grid[2] },
        .block = t->block,
        .dynamic_shared = t->dynamic_shared,
        .params = r->pointers,
        .param_count = t->param_count,
        .blocks = c->count ? c->blocks : NULL,
        .block_count = c->count,
        .descending = c->descending,
    };
}

bool run_after_unknown(const trial_run *r, const device_launch *l)
{
    const trial *t = r->trial;
    device *d = r->device;
    const emu_launch_config config = device_emu_config(l);
    emu_range ranges[MAX_PARAMS];
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        ranges[i] = (emu_range){ p->param.name, r->addresses[i], p->size };
        if (p->param.kind == PARAM_U32 || p->param.weights || p->param.order == ORDER_FETCHED)
            continue;
        /* predecessor launches may still store to it */
        emu_set_changing(d->memory, r->addresses[i],
                         p->param.order != ORDER_SETTLED || t->instance->state != STATE_SETTLED);
    }
    d->stats = (emu_stats){ 0 };
    emu_stream *s = emu_stream_new(d->memory, &(emu_stream_config){ .ranges = ranges,
                                                                    .range_count = t->param_count,
                                                                    .has_predecessors = true });
    bool ended = emu_stream_launch(s, &config, true, &d->stats, &d->report) &&
                 emu_stream_finish(s, &d->report);
    emu_stream_free(s);
    if (ended && !d->stats.waited) {
        ended = false;
        d->report = (emu_report){ .fault = EMU_RACE,
                                  .message = "ends without griddepcontrol.wait: successor launches "
                                             "do not wait for its predecessors" };
    }
    return ended;
}

static uint64_t block_address(const trial_run *r, size_t index, uint64_t block)
{
    const trial_param *p = &r->trial->params[index];
    return r->addresses[index] + block * formats[p->param.format].block_bytes;
}

/* Returns the next block, from `block` on, that may be written, or the number of blocks. */
static uint64_t next_written(const trial_run *r, size_t index, uint64_t block)
{
    const trial_param *p = &r->trial->params[index];
    uint64_t block_bytes = formats[p->param.format].block_bytes;
    if (!r->device->memory)
        return block;
    return emu_next_written(r->device->memory, r->addresses[index], block * block_bytes) /
           block_bytes;
}

trial_output run_read(arena *a, const trial_run *r, size_t index, uint64_t first, uint64_t count)
{
    device *d = r->device;
    const trial_param *p = &r->trial->params[index];
    const format_info *f = &formats[p->param.format];
    uint8_t *bytes = memset(arena_alloc(a, count * f->block_bytes), 0xff, count * f->block_bytes);
    uint8_t *written = arena_alloc(a, count);
    if (p->param.data == DATA_UPDATED)
        memcpy(bytes, (const char *)p->content.bytes + first * f->block_bytes,
               count * f->block_bytes);
    d->read(d, block_address(r, index, first), bytes, count, f->block_bytes, written);
    /* A GPU cannot distinguish the value of all ones, or updated content, from unwritten memory. */
    if (!d->memory && (p->param.data == DATA_UPDATED || p->param.format == FORMAT_U32))
        memset(written, 1, count);
    return (trial_output){ bytes, written, first, count };
}

typedef struct judging {
    arena *arena;
    const trial_run *run;
    const trial *trial; /* copy of the run's trial, with values that references cache */
    const block_choice *blocks;
    judgement *worst;
    run_verdict verdict;
} judging;

/* Rejects an output with a missing element; names the store of the first written one. */
static bool reject_missing(judging *g, size_t index, uint64_t missing)
{
    const trial_param *p = &g->trial->params[index];
    const format_info *f = &formats[p->param.format];
    uint64_t block = 0, end = g->run->device->memory ? trial_output_blocks(p) : 0;
    while (
        (block = next_written(g->run, index, block)) < end &&
        !emu_written(g->run->device->memory, block_address(g->run, index, block), f->block_bytes))
        block++;
    g->verdict = (run_verdict){ arena_format(g->arena, "%s[%llu] is never written", p->param.name,
                                             (unsigned long long)(missing * f->block_values)),
                                "; the first element that is written is stored by",
                                block < end ? block_address(g->run, index, block) : 0 };
    return false;
}

/* Returns the offset of the first written byte in a block, or size if there is none. */
static uint64_t first_written_byte(const judging *g, uint64_t address, uint64_t size)
{
    uint64_t at = 0;
    while (at < size && g->run->device->memory &&
           !emu_written(g->run->device->memory, address + at, 1))
        at++;
    return at;
}

/* Checks that the kernel wrote nothing, not even part of a block, to the rest of a cache. */
static bool judge_strays(judging *g, size_t index, const trial_output *o)
{
    const trial_param *p = &g->trial->params[index];
    const format_info *f = &formats[p->param.format];
    uint64_t stray = trial_stray_block(g->trial, index, o), end = o->first + o->count;
    bool is_cache = p->param.data == DATA_CACHE && g->run->device->memory;
    for (uint64_t i = 0; is_cache && stray == end && i < o->count; i++)
        if (!o->written[i] && first_written_byte(g, block_address(g->run, index, o->first + i),
                                                 f->block_bytes) < f->block_bytes)
            stray = o->first + i;
    if (stray == end)
        return true;
    uint64_t address = block_address(g->run, index, stray);
    g->verdict =
        (run_verdict){ arena_format(g->arena, "%s[%llu] does not belong to this launch",
                                    p->param.name, (unsigned long long)(stray * f->block_values)),
                       ", stored by", address + first_written_byte(g, address, f->block_bytes) };
    return false;
}

static bool judge_missing(judging *g, size_t index, uint64_t first, uint64_t count)
{
    const trial_output o = run_read(g->arena, g->run, index, first, count);
    uint64_t missing = trial_missing_block(g->trial, index, &o);
    return missing == first + count || reject_missing(g, index, missing);
}

/* Checks that rows are written to their caches: all rows after a whole grid; otherwise the rows of
 * the last group along y, if the one block that writes caches ran. */
static bool judge_rows(judging *g, size_t index)
{
    const trial *t = g->trial;
    const block_choice *c = g->blocks;
    uint64_t last = blocks_of_grid(t) - 1;
    bool by_last = blocks_last_of_output(t) + 1 == last && blocks_chosen(c, last);
    size_t first = c->count ? (size_t)(t->grid[1] - 1) * MAX_VECTORS : 0;
    for (size_t row = first; (!c->count || by_last) && row < t->row_count; row++)
        for (int64_t head = 0; head < problem_cache_heads(&t->setup.shape); head++) {
            trial_blocks b = trial_row_blocks(t, &t->params[index], row, head);
            if (b.count && !judge_missing(g, index, b.first, b.count))
                return false;
        }
    return true;
}

/* Checks that the first and the last element of an output are written if their blocks ran. */
static bool judge_ends(judging *g, size_t index)
{
    const trial *t = g->trial;
    const block_choice *c = g->blocks;
    uint64_t blocks = trial_output_blocks(&t->params[index]);
    if (!c->count || !blocks || t->instance->family->launch.dealt)
        return true;
    bool of_others = t->params[index].param.of_others;
    uint64_t last = of_others ? blocks_of_grid(t) - 1 : blocks_last_of_output(t);
    return (of_others || !blocks_chosen(c, 0) || judge_missing(g, index, 0, 1)) &&
           (!blocks_chosen(c, last) || judge_missing(g, index, blocks - 1, 1));
}

/* Compares an output with the reference by blocks; after a partial grid only near written ones. */
static bool judge_output(judging *g, size_t index)
{
    const trial_param *p = &g->trial->params[index];
    uint64_t blocks = trial_output_blocks(p);
    bool updated = p->param.data == DATA_UPDATED, is_cache = p->param.data == DATA_CACHE;
    bool parts = g->blocks->count || is_cache;
    bool near = parts && !g->trial->instance->family->reference_is_whole;
    const uint64_t most = near ? NEAR_BLOCKS : JUDGED_BLOCKS;
    if (!updated && (is_cache ? !judge_rows(g, index) : !judge_ends(g, index)))
        return false;
    arena *a = arena_new();
    uint64_t at = 0, missing = 0;
    bool right = true;
    while (right && at < blocks && missing == at) {
        if (parts)
            at = next_written(g->run, index, at);
        uint64_t count = blocks - at < most ? blocks - at : most;
        arena_reset(a);
        trial_output o = run_read(a, g->run, index, at, count);
        if (updated && !parts)
            o.written = NULL;
        at += count;
        missing = parts ? at : trial_missing_block(g->trial, index, &o);
        if (missing == at)
            trial_judge(g->trial, index, &o, g->worst);
        right = updated || judge_strays(g, index, &o);
    }
    arena_free(a);
    return right && (missing == at || reject_missing(g, index, missing));
}

static uint64_t address_of_worst(const judging *g)
{
    const judgement *j = g->worst;
    size_t index = 0;
    while (g->trial->params[index].param.name != j->output)
        index++;
    format f = g->trial->params[index].param.format;
    unsigned values = formats[f].block_values;
    uint64_t address = block_address(g->run, index, j->element / values);
    /* A block has d, s if it is q8_1, and one byte per value. */
    return *j->field == 's'   ? address + Q8_1_S
           : *j->field == 'q' ? address + trial_quants_at(f) + j->element % values
                              : address;
}

run_verdict run_judge(arena *a, const trial_run *r, const block_choice *c, judgement *j)
{
    arena *kept = arena_new();
    trial keeping = *r->trial;
    judging g = { .arena = a, .run = r, .trial = &keeping, .blocks = c, .worst = j };
    bool right = true;
    keeping.problem.kept = ref_kept_new(kept);
    for (size_t i = 0; i < keeping.param_count && right; i++)
        right = keeping.params[i].param.kind != PARAM_OUT || judge_output(&g, i);
    arena_free(kept);
    if (right && j->worst > 1)
        g.verdict =
            (run_verdict){ arena_format(a, "%s%s[%llu] is %.9g, expected %.9g: %.3g of its bound",
                                        j->field, j->output, (unsigned long long)j->element, j->got,
                                        j->expected, j->worst),
                           ", stored by", address_of_worst(&g) };
    for (size_t i = 0; i < keeping.param_count && !g.verdict.what; i++) {
        const trial_param *p = &keeping.params[i];
        if (p->param.data != DATA_ZEROED)
            continue;
        uint8_t *bytes = arena_alloc(a, p->size);
        r->device->read(r->device, r->addresses[i], bytes, p->size, 1, NULL);
        uint64_t remains = 0;
        while (remains < p->size && !bytes[remains])
            remains++;
        if (remains < p->size)
            g.verdict.what = arena_format(a, "%s is not zero after the launch, at byte %llu",
                                          p->param.name, (unsigned long long)remains);
    }
    return g.verdict;
}
