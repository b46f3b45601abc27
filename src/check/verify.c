/* Each trial runs whole where that is little work, else on some blocks: see blocks.h. What those
 * write must be right; what a whole grid leaves unwritten is wrong as well.
 *
 * A kernel for any number of rows of X is run with one, with a group's, and with several groups of
 * which the last is not full.
 *
 * A sequence length only ever shrinks from one trial to the next, over one set of buffers: the
 * positions that stop being valid are made NaN, so that a kernel that uses one shows.
 */
#include "check/verify.h"

#include <math.h>
#include <string.h>

#include "check/blocks.h"
#include "emu/emu.h"
#include "kernel/formula.h"
#include "ref/reference.h"

enum {
    LARGE_OUTPUT = 64 << 20, /* bytes, of all its targets, of which room is made only for what is
                                written */
    JUDGED_BLOCKS = 1 << 12, /* of an output, at once, */
    NEAR_BLOCKS = 1 << 8,    /* and of one that is written here and there */
    HANGING = 20,            /* times the estimate of a block's work: it hangs, */
    HANGING_SMALL = 2000000, /* and that is at least so much */
    NAN_WORK = 30000000,     /* of blocks that run for one input with a NaN */
    USUAL_SM_COUNT = 132,    /* an H100's */
    TURNS_A_BLOCK = 3,       /* of a grid-stride kernel, in the trial that makes it loop */
    SOME_SEQ_LEN = 300,      /* a few chunks of flash decoding */
    SEVERAL_CHUNKS = 1100,   /* more than one SM has blocks at once */
    ODD_SEQ_LEN = 97,        /* one chunk, which all its warps share */
    FEW_POSITIONS = 4,       /* with fewer a state has inputs that are not there */
    MOST_LENGTHS = 16,       /* of a sequence, that are tried one behind the other, */
    MOST_BEYOND = 3,         /* and so that some rows of it are beyond its cache */
    LONG_SEQ_LEN = 1 << 15,  /* of inputs that are not the usual ones */
    TURNS_AT_MOST = 64,      /* of a grid-stride kernel, with the usual SM count */
    ROUTES = 8,              /* ordinary inputs of a router, */
    LARGE_ROUTES = 2,        /* with many rows: of usual logits, and of large ones; */
    LISTS = 4,               /* lists of experts; */
    PLACES = 32,             /* places of a NaN, */
    FEW_PLACES = 7,          /* and where each takes long, */
    PLACE_VALUES = 8192,     /* places lie within this many values, several turns of a loop */
    TENSOR_CORE_SHARE = 16,  /* of work that one product on tensor cores stands for */
};
#define MOST_WORK  (UINT64_C(4) * 1000 * 1000 * 1000) /* of a block that is run at all */
#define MOST_BYTES (UINT64_C(1) << 46)                /* of a buffer */

typedef struct verifier {
    arena *result_arena, *scratch;
    const kernel *kernel;
    const emu_module *module;
    uint64_t seed;
    verify_cores *cores; /* NULL: one */
    bool alike;          /* an alike kernel is proven in full */
    verify_result result;
} verifier;

/* The trial's buffers in the emulator's memory. */
typedef struct device_params {
    emu_memory *memory;
    uint64_t addresses[MAX_PARAMS];
    const void *pointers[MAX_PARAMS];
} device_params;

static bool reject(verifier *v, const trial *t, const char *what)
{
    v->result.right = false;
    v->result.message = arena_format(v->result_arena, "%s: %s (%s)", v->kernel->instance->name,
                                     what, trial_describe(v->scratch, t));
    return false;
}

/* Returns a line of the text without the blanks around it, cut where it is long. */
static const char *text_line(arena *a, const char *text, unsigned number)
{
    enum { MOST_SHOWN = 120 };
    for (unsigned i = 1; i < number && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (!text || !number)
        return "";
    text += strspn(text, " \t");
    size_t length = strcspn(text, "\n");
    return arena_format(a, ": %.*s%s", (int)(length < MOST_SHOWN ? length : MOST_SHOWN), text,
                        length > MOST_SHOWN ? " ..." : "");
}

/* The line with the kernel's name and what it requires of a launch. */
static unsigned entry_line(const char *text)
{
    const char *entry = strstr(text, ".entry");
    unsigned line = entry != NULL;
    for (; entry && text < entry; text++)
        line += *text == '\n';
    return line;
}

static const char *fault_message(verifier *v, const emu_report *r)
{
    arena *a = v->scratch;
    v->result.line = r->line ? r->line : entry_line(v->kernel->ptx);
    const char *what = arena_format(a, "%s [%s]", r->message, emu_fault_name(r->fault));
    if (!r->line)
        return what;
    return arena_format(a, "%s, at block (%u, %u, %u) thread %u, PTX line %u%s", what, r->block[0],
                        r->block[1], r->block[2], r->thread[0], r->line,
                        text_line(a, v->kernel->ptx, r->line));
}

static uint64_t map_buffer(emu_memory *memory, trial_buffer b)
{
    return b.stored == b.size ? emu_map(memory, b.bytes, b.readable, true)
                              : emu_map_pattern(memory, b.readable, b.bytes, b.stored, true);
}

static uint64_t room_for_output(emu_memory *memory, uint64_t size, uint64_t count)
{
    return size > LARGE_OUTPUT / count ? emu_alloc_sparse(memory, size) : emu_alloc(memory, size);
}

/* What is read of scratch memory has to have been written there. */
static uint64_t room_for(emu_memory *memory, const trial_param *p)
{
    return p->param.kind == PARAM_OUT ? room_for_output(memory, p->size, 1)
                                      : emu_alloc(memory, p->size);
}

/* What an array of addresses points to. */
static uint64_t map_target(emu_memory *memory, const trial_param *p, uint64_t number)
{
    const uint64_t *addresses = p->content.bytes;
    uint64_t alike = p->param.updated ? 1 : p->target_count; /* room for which is to be little */
    if (number >= p->target_count)
        return addresses[0];
    return p->param.kind == PARAM_OUT ? room_for_output(memory, p->targets[number].size, alike)
                                      : map_buffer(memory, p->targets[number]);
}

static device_params map_params(emu_memory *memory, const trial *t)
{
    device_params d = { .memory = memory };
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        uint64_t *addresses = p->content.bytes;
        for (uint64_t j = 0; p->targets && j < p->values; j++)
            addresses[j] = map_target(memory, p, j);
        if ((p->param.kind == PARAM_OUT && !p->targets) || p->param.kind == PARAM_SCRATCH)
            d.addresses[i] = room_for(memory, p);
        if (p->param.zeroed)
            emu_write(memory, d.addresses[i], arena_zalloc(t->arena, p->size), p->size);
        if (p->param.kind == PARAM_IN || p->targets)
            d.addresses[i] = map_buffer(memory, p->content);
    }
    return d;
}

/* What trial_shorten does not do for a cache that is too large to exist: the first position that is
 * not valid becomes NaN in each head. */
static void spoil_position(emu_memory *memory, uint64_t address, trial_buffer cache, uint64_t row,
                           const trial *t, size_t sequence, arena *scratch)
{
    uint64_t valid = (uint64_t)trial_valid_rows(t, sequence), rows = ref_cache_rows(&t->problem);
    if (valid >= rows || cache.stored == cache.size)
        return;
    void *not_a_number = memset(arena_alloc(scratch, row), 0xff, row);
    for (uint64_t at = row * valid; at < cache.size; at += row * rows)
        emu_write(memory, address + at, not_a_number, row);
}

static void spoil_next_positions(const device_params *d, const trial *t, arena *scratch)
{
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        const uint64_t *addresses = p->targets ? p->content.bytes : &d->addresses[i];
        uint64_t row = format_bytes(p->targets ? p->param.target : p->param.format,
                                    (uint64_t)problem_cache_values(&t->setup.shape));
        for (size_t j = 0; j < trial_cache_count(p); j++)
            spoil_position(d->memory, addresses[j], trial_cache(p, j), row, t, j, scratch);
    }
}

/* How many a kernel may use. */
static unsigned free_cores(verify_cores *c)
{
    size_t kernels = c ? atomic_load(&c->unfinished) : 0;
    return kernels && kernels < c->count ? c->count / (unsigned)kernels : 1;
}

/* What a block does at most, about: where inputs deal out results, those of all rows, and where a
 * last block goes on, what all of its partners do. */
static uint64_t work_of_block(const trial *t)
{
    uint64_t rows = t->instance->family->launch.dealt ? t->grid[1] : 1;
    return blocks_work(t) / blocks_of_grid(t) * rows * blocks_partners(t);
}

/* Marks what launches ahead may store to: all but weights, and what is settled. */
static void mark_changing(const trial *t, const device_params *d)
{
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        bool settled = p->param.settled && t->instance->state == STATE_SETTLED;
        bool constant = p->param.kind == PARAM_U32 || p->param.weights || p->param.fetched;
        if (constant)
            continue;
        emu_set_changing(d->memory, d->addresses[i], !settled);
        const uint64_t *addresses = p->content.bytes;
        for (uint64_t j = 0; p->targets && j < p->target_count; j++)
            emu_set_changing(d->memory, addresses[j], true);
    }
}

/* Runs a launch that may begin before launches ahead of it have ended, which touch anything. */
static bool launch_behind_others(const trial *t, const device_params *d,
                                 const emu_launch_config *config, emu_stats *stats,
                                 emu_report *report)
{
    emu_range ranges[MAX_PARAMS];
    for (size_t i = 0; i < t->param_count; i++)
        ranges[i] = (emu_range){ t->params[i].param.name, d->addresses[i], t->params[i].size };
    mark_changing(t, d);
    emu_stream *s = emu_stream_new(
        d->memory,
        &(emu_stream_config){ .ranges = ranges, .range_count = t->param_count, .behind = true });
    bool ended = emu_stream_launch(s, config, true, stats, report) && emu_stream_finish(s, report);
    emu_stream_free(s);
    if (ended && !stats->waited) {
        ended = false;
        *report = (emu_report){ .fault = EMU_RACE,
                                .message = "ends without griddepcontrol.wait: launches behind "
                                           "it do not wait for those ahead of it" };
    }
    return ended;
}

static bool launch_blocks(verifier *v, const trial *t, const device_params *d,
                          const block_choice *c, uint64_t watch, emu_stats *stats,
                          emu_report *report)
{
    uint64_t ahead = 0;
    emu_launch_config config = {
        .module = v->module,
        .entry = v->kernel->instance->name,
        .grid = { t->grid[0], t->grid[1], t->grid[2] },
        .block = { t->block, 1, 1 },
        .dynamic_shared = t->dynamic_shared,
        .params = d->pointers,
        .param_count = t->param_count,
        .blocks = c->count ? c->blocks : NULL,
        .block_count = c->count,
        .descending = c->descending,
        .instruction_limit = HANGING * work_of_block(t) + HANGING_SMALL,
        .watch = watch,
        .threads = free_cores(v->cores),
        .ahead = &ahead,
    };
    bool behind = v->kernel->overlaps && t->setup.kind == FILL_NORMAL && !t->spoiled && !watch &&
                  !c->descending;
    bool ended = behind ? launch_behind_others(t, d, &config, stats, report)
                        : emu_launch(d->memory, &config, stats, report);
    if (v->cores)
        atomic_fetch_add(&v->cores->ahead, ahead);
    return ended;
}

/* Runs the trial again to find which line of the PTX stores to an address. Says so, after a word or
 * two. */
static const char *find_store(verifier *v, const trial *t, const device_params *d,
                              const block_choice *c, const char *words, uint64_t address)
{
    emu_stats stats = { 0 };
    emu_report report;
    launch_blocks(v, t, d, c, address, &stats, &report);
    v->result.line = stats.watched_line;
    return arena_format(v->scratch, "%s PTX line %u%s", words, stats.watched_line,
                        text_line(v->scratch, v->kernel->ptx, stats.watched_line));
}

/* Where a block of an output lies. */
static uint64_t block_address(const device_params *d, const trial_param *p, size_t index,
                              uint64_t block)
{
    uint64_t blocks = trial_target_blocks(p), within = p->targets ? block % blocks : block;
    const uint64_t *starts = p->targets ? p->content.bytes : &d->addresses[index];
    uint64_t start = starts[p->targets ? block / blocks : 0];
    return start + within * formats[trial_output_format(&p->param)].block_bytes;
}

/* The first block from one on near which something may have been written, or the one behind the
 * last. */
static uint64_t next_written(const device_params *d, const trial_param *p, size_t index,
                             uint64_t block)
{
    uint64_t blocks = trial_target_blocks(p), end = trial_output_blocks(p);
    uint64_t block_bytes = formats[trial_output_format(&p->param)].block_bytes;
    while (block < end) {
        uint64_t within = block % blocks, start = block_address(d, p, index, block - within);
        uint64_t found = emu_next_written(d->memory, start, within * block_bytes) / block_bytes;
        block += found - within;
        if (found < blocks)
            break;
    }
    return block;
}

/* Reads blocks of one array, with which of them are written: most often all. */
static void read_blocks(const device_params *d, uint64_t address, uint64_t block_bytes,
                        uint64_t count, uint8_t *bytes, uint8_t *written)
{
    if (emu_written(d->memory, address, count * block_bytes)) {
        memset(written, 1, count);
        emu_read(d->memory, address, bytes, count * block_bytes);
        return;
    }
    for (uint64_t i = 0; i < count; i++, address += block_bytes, bytes += block_bytes) {
        written[i] = emu_written(d->memory, address, block_bytes);
        if (written[i])
            emu_read(d->memory, address, bytes, block_bytes);
    }
}

/* Blocks of an output from the first one on, with which of them are written. */
static trial_output read_output(arena *a, const device_params *d, const trial_param *p,
                                size_t index, uint64_t first, uint64_t count)
{
    uint64_t block_bytes = formats[trial_output_format(&p->param)].block_bytes;
    uint64_t of_target = trial_target_blocks(p);
    uint8_t *bytes = arena_zalloc(a, count * block_bytes);
    uint8_t *written = arena_alloc(a, count);
    for (uint64_t i = 0, run; i < count; i += run) {
        uint64_t left = p->targets ? of_target - (first + i) % of_target : count;
        run = left < count - i ? left : count - i;
        read_blocks(d, block_address(d, p, index, first + i), block_bytes, run,
                    bytes + i * block_bytes, written + i);
    }
    return (trial_output){ bytes, written, first, count };
}

static bool reject_missing(verifier *v, const trial *t, const device_params *d, size_t index,
                           const block_choice *c, uint64_t missing)
{
    const trial_param *p = &t->params[index];
    const format_info *f = &formats[trial_output_format(&p->param)];
    const char *words = arena_format(v->scratch, "%s[%llu] is never written", p->param.name,
                                     (unsigned long long)(missing * f->block_values));
    uint64_t block = 0, end = trial_output_blocks(p);
    while ((block = next_written(d, p, index, block)) < end &&
           !emu_written(d->memory, block_address(d, p, index, block), f->block_bytes))
        block++;
    if (block < end)
        words = arena_format(
            v->scratch, "%s; %s", words,
            find_store(v, t, d, c, "what is, is stored by", block_address(d, p, index, block)));
    return reject(v, t, words);
}

/* The first byte of a block that is written, or its size. */
static uint64_t first_written_byte(const device_params *d, uint64_t address, uint64_t size)
{
    uint64_t at = 0;
    while (at < size && !emu_written(d->memory, address + at, 1))
        at++;
    return at;
}

/* The rest of a cache keeps its content: nothing is written there, not even a part of a block. */
static bool judge_strays(verifier *v, const trial *t, const device_params *d, size_t index,
                         const block_choice *c, const trial_output *o)
{
    const trial_param *p = &t->params[index];
    const format_info *f = &formats[trial_output_format(&p->param)];
    uint64_t stray = trial_stray_block(t, index, o), end = o->first + o->count;
    for (uint64_t i = 0; p->targets && stray == end && i < o->count; i++)
        if (!o->written[i] && first_written_byte(d, block_address(d, p, index, o->first + i),
                                                 f->block_bytes) < f->block_bytes)
            stray = o->first + i;
    if (stray == end)
        return true;
    uint64_t address = block_address(d, p, index, stray);
    return reject(
        v, t,
        arena_format(v->scratch, "%s[%llu] is none of this launch, %s", p->param.name,
                     (unsigned long long)(stray * f->block_values),
                     find_store(v, t, d, c, "stored by",
                                address + first_written_byte(d, address, f->block_bytes))));
}

/* Of a grid that is run whole everything has to be written, of chosen blocks the first and the last
 * element by those of the grid, unless inputs say whose they are. */
static bool judge_missing(verifier *v, const trial *t, const device_params *d, size_t index,
                          const block_choice *c, uint64_t first, uint64_t count)
{
    const trial_output o = read_output(v->scratch, d, &t->params[index], index, first, count);
    uint64_t missing = trial_missing_block(t, index, &o);
    return missing == first + count || reject_missing(v, t, d, index, c, missing);
}

/* What rows have to write to their caches, by a grid that is run whole, or where one block apart
 * from all others does, by that: of groups of rows along y by the last one's. */
static bool judge_rows(verifier *v, const trial *t, const device_params *d, size_t index,
                       const block_choice *c)
{
    uint64_t last = blocks_of_grid(t) - 1;
    bool by_last = blocks_last_of_output(t) + 1 == last && blocks_chosen(c, last);
    size_t first = c->count ? (size_t)(t->grid[1] - 1) * MAX_VECTORS : 0;
    for (size_t row = first; (!c->count || by_last) && row < t->sequence_count; row++)
        for (int64_t head = 0; head < problem_cache_heads(&t->setup.shape); head++) {
            trial_blocks b = trial_row_blocks(t, &t->params[index], row, head);
            if (b.count && !judge_missing(v, t, d, index, c, b.first, b.count))
                return false;
        }
    return true;
}

/* The first and the last element of an output, by the blocks of the grid that have them. */
static bool judge_ends(verifier *v, const trial *t, const device_params *d, size_t index,
                       const block_choice *c)
{
    uint64_t blocks = trial_output_blocks(&t->params[index]);
    if (!c->count || !blocks || t->instance->family->launch.dealt)
        return true;
    bool of_others = t->params[index].param.of_others;
    uint64_t last = of_others ? blocks_of_grid(t) - 1 : blocks_last_of_output(t);
    return (of_others || !blocks_chosen(c, 0) || judge_missing(v, t, d, index, c, 0, 1)) &&
           (!blocks_chosen(c, last) || judge_missing(v, t, d, index, c, blocks - 1, 1));
}

/* All blocks of an output that is updated: what is not written is as it was. */
static trial_output read_updated(arena *a, const device_params *d, const trial_param *p,
                                 size_t index, uint64_t first, uint64_t count)
{
    uint64_t block_bytes = formats[trial_output_format(&p->param)].block_bytes;
    uint8_t *bytes = arena_alloc(a, count * block_bytes);
    for (uint64_t i = 0; i < count; i++)
        emu_read(d->memory, block_address(d, p, index, first + i), bytes + i * block_bytes,
                 block_bytes);
    return (trial_output){ .bytes = bytes, .first = first, .count = count };
}

/* Some blocks at a time; of a grid of which a part has run, and of caches, those near what is
 * written. */
static bool judge_output(verifier *v, const trial *t, const device_params *d, size_t index,
                         const block_choice *c, judgement *j)
{
    const trial_param *p = &t->params[index];
    uint64_t blocks = trial_output_blocks(p);
    bool updated = p->param.updated, parts = c->count || (p->targets && !updated);
    bool near = parts && !t->instance->family->reference_is_whole;
    const uint64_t most = near ? NEAR_BLOCKS : JUDGED_BLOCKS;
    if (!updated && (p->targets ? !judge_rows(v, t, d, index, c) : !judge_ends(v, t, d, index, c)))
        return false;
    arena *a = arena_new();
    uint64_t at = 0, missing = 0;
    bool right = true;
    while (right && at < blocks && missing == at) {
        if (parts)
            at = next_written(d, p, index, at);
        uint64_t count = blocks - at < most ? blocks - at : most;
        arena_reset(a);
        const trial_output o = updated && !parts ? read_updated(a, d, p, index, at, count)
                                                 : read_output(a, d, p, index, at, count);
        at += count;
        missing = parts ? at : trial_missing_block(t, index, &o);
        if (missing == at)
            trial_judge(t, index, &o, j);
        right = updated || judge_strays(v, t, d, index, c, &o);
    }
    arena_free(a);
    return right && (missing == at || reject_missing(v, t, d, index, c, missing));
}

/* Where the element lies in its block. */
static uint64_t offset_in_block(const trial_param *p, const judgement *j)
{
    format f = trial_output_format(&p->param);
    uint64_t within = j->element % formats[f].block_values;
    switch (*j->field) { /* a block is d, s where it is q8_1, and one byte a value */
    case 's':
        return Q8_1_S;
    case 'q':
        return trial_quants_at(f) + within;
    default:
        return 0;
    }
}

static const char *find_element(verifier *v, const trial *t, const device_params *d,
                                const block_choice *c, const judgement *j)
{
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.kind == PARAM_OUT && t->params[i].param.name == j->output) {
            const trial_param *p = &t->params[i];
            uint64_t block_values = formats[trial_output_format(&p->param)].block_values;
            return find_store(v, t, d, c, "stored by",
                              block_address(d, p, i, j->element / block_values) +
                                  offset_in_block(p, j));
        }
    return "";
}

/* A launch that does not leave zero what has to be makes the next one wrong. */
static bool judge_zeroed(verifier *v, const trial *t, const device_params *d)
{
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        if (!p->param.zeroed)
            continue;
        uint8_t *bytes = arena_alloc(v->scratch, p->size);
        emu_read(d->memory, d->addresses[i], bytes, p->size);
        uint64_t remains = trial_first_remains(p, bytes);
        if (remains < p->size)
            return reject(v, t,
                          arena_format(v->scratch, "%s is not zero behind the launch, at byte %llu",
                                       p->param.name, (unsigned long long)remains));
    }
    return true;
}

static bool judge_outputs(verifier *v, const trial *t, const device_params *d,
                          const block_choice *c)
{
    judgement j = { 0 };
    trial keeping = *t;
    arena *a = arena_new();
    bool right = true;
    keeping.problem.kept = ref_kept_new(a);
    for (size_t i = 0; i < t->param_count && right; i++)
        right = t->params[i].param.kind != PARAM_OUT || judge_output(v, &keeping, d, i, c, &j);
    arena_free(a);
    if (!right)
        return false;
    v->result.worst = fmax(v->result.worst, j.worst);
    if (j.worst <= 1)
        return true;
    return reject(v, t,
                  arena_format(v->scratch,
                               "%s%s[%llu] is %.9g, expected %.9g: %.3g of its bound, %s", j.field,
                               j.output, (unsigned long long)j.element, j.got, j.expected, j.worst,
                               find_element(v, t, d, c, &j)));
}

/* What the launch before has left in scratch memory must not serve this one; what is updated is as
 * it was ahead of it. */
static void clear(device_params *d, const trial *t)
{
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        const uint64_t *starts = p->targets ? p->content.bytes : &d->addresses[i];
        for (uint64_t j = 0; p->param.kind == PARAM_OUT && j < (p->targets ? p->target_count : 1);
             j++) {
            if (p->param.updated)
                emu_write(d->memory, starts[j], p->targets[j].bytes, p->targets[j].size);
            emu_clear_written(d->memory, starts[j]);
        }
        if (p->param.kind == PARAM_SCRATCH && !p->param.zeroed) {
            emu_free(d->memory, d->addresses[i]);
            d->addresses[i] = emu_alloc(d->memory, p->size);
        }
    }
}

static bool run_blocks(verifier *v, const trial *t, device_params *d, const block_choice *c)
{
    emu_stats stats = { 0 };
    emu_report report;
    clear(d, t);
    bool ended = launch_blocks(v, t, d, c, 0, &stats, &report);
    v->result.instructions += stats.thread_instructions;
    v->result.blocks += c->count ? c->count : blocks_of_grid(t);
    v->result.of_blocks += blocks_of_grid(t);
    if (!ended)
        return reject(v, t, fault_message(v, &report));
    return judge_outputs(v, t, d, c) && judge_zeroed(v, t, d);
}

/* Blocks that run together do so in two orders, with the inputs of which most is run: which one is
 * the last must not matter. */
static bool run(verifier *v, const trial *t, device_params *d, selection which)
{
    block_choice c = blocks_choose(v->scratch, t, which);
    for (size_t i = 0; i < t->param_count; i++)
        d->pointers[i] = t->params[i].param.kind == PARAM_U32 ? (const void *)&t->params[i].number
                                                              : &d->addresses[i];
    if (!run_blocks(v, t, d, &c))
        return false;
    c.descending = true;
    return blocks_partners(t) == 1 || which != SAMPLED_BLOCKS || v->alike ||
           run_blocks(v, t, d, &c);
}

/* Whether a family goes on with states, which it finds in memory. */
static bool updates(const instance *in)
{
    for (const param *p = in->family->params; p->name; p++)
        if (p->updated)
            return true;
    return false;
}

/* Whether the rows of a shape may be positions of one sequence, which the kernel writes to its
 * cache: no more than a ring has rows. */
static bool writes_one_cache(const instance *in, const problem_shape *s)
{
    for (const param *p = in->family->params; p->name; p++)
        if (p->kind == PARAM_OUT && (p->cache || p->updated))
            return !in->options.ring || s->m <= in->options.ring;
    return false;
}

/* Of caches longer than they are, also so that the rows of one sequence have the last position
 * among them, then shorter and shorter ones. Kernels that merge chunks by turns of several get
 * other rests of them, and one chunk alone. 0 ends the list. */
static size_t lengths_of(const instance *in, int64_t longest, int64_t lengths[MOST_LENGTHS])
{
    const int64_t few = updates(in) ? FEW_POSITIONS : 1, size = in->shape.chunk_size;
    const int64_t shorter[] = { size || in->chunks ? longest * 2 / 3 : 0,
                                size || in->chunks ? longest * 2 / 5 : 0,
                                size - size / 3,
                                SOME_SEQ_LEN,
                                ODD_SEQ_LEN,
                                few,
                                few - few / 4,
                                few - few / 2,
                                1 };
    size_t count = 0;
    for (int64_t beyond = writes_one_cache(in, &in->shape) ? in->shape.m - 1 : 1;
         beyond > 1 && count < MOST_BEYOND; beyond--)
        lengths[count++] = longest + beyond;
    lengths[count++] = longest + 1;
    lengths[count++] = UINT32_MAX;
    lengths[count++] = longest;
    while (lengths[count - 1]) {
        int64_t next = 0;
        for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++)
            if (shorter[i] < lengths[count - 1] && shorter[i] > next)
                next = shorter[i];
        lengths[count++] = next;
    }
    return count;
}

static bool run_lengths(verifier *v, trial *t, device_params *d)
{
    int64_t longest = t->setup.shape.max_seq_len, lengths[MOST_LENGTHS];
    size_t count = lengths_of(v->kernel->instance, longest, lengths);
    for (size_t i = 0; i < count; i++) {
        trial_shorten(t, lengths[i]);
        spoil_next_positions(d, t, v->scratch);
        if (!run(v, t, d, lengths[i] > longest ? LAST_BLOCK : SAMPLED_BLOCKS))
            return false;
    }
    return true;
}

/* Each row a position further than the one ahead of it, though they are of different sequences. */
static bool run_neighbours(verifier *v, trial *t, device_params *d)
{
    uint32_t *lengths = arena_alloc(v->scratch, t->sequence_count * sizeof *lengths);
    for (size_t i = 0; i < t->sequence_count; i++)
        lengths[i] = (uint32_t)(1 + i);
    trial_shorten_each(t, lengths);
    return run(v, t, d, SAMPLED_BLOCKS);
}

/* The first rows unused, more and more of them, the others of the same sequence all the same. */
static bool run_unused(verifier *v, trial *t, device_params *d)
{
    uint32_t *lengths = arena_alloc(v->scratch, t->sequence_count * sizeof *lengths);
    bool right = true;
    for (size_t unused = 1; right && unused < t->sequence_count; unused++) {
        for (size_t i = 0; i < t->sequence_count; i++)
            lengths[i] = i < unused ? 0 : (uint32_t)(FEW_POSITIONS + i - unused);
        trial_shorten_each(t, lengths);
        right = run(v, t, d, SAMPLED_BLOCKS);
    }
    return right;
}

static bool run_alone(verifier *v, trial *t, device_params *d)
{
    spoil_next_positions(d, t, v->scratch);
    return run(v, t, d, SAMPLED_BLOCKS);
}

/* Returns why a trial takes more time or addresses than one may; NULL: it does not. */
static const char *beyond_reach(arena *a, const trial *t)
{
    uint64_t at_once = t->instance->family->halves ? TENSOR_CORE_SHARE : 1;
    uint64_t work = blocks_work(t) / blocks_of_grid(t) / at_once;
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].size > MOST_BYTES)
            return arena_format(
                a, "%s has %.0e bytes, too many to verify: a smaller size has the same code",
                t->params[i].param.name, (double)t->params[i].size);
    if (work <= MOST_WORK)
        return NULL;
    return arena_format(a,
                        "a block takes some %.0e instructions, too many to verify: a smaller size "
                        "has the same code",
                        (double)work);
}

const char *verify_refusal(arena *a, const instance *in)
{
    arena *scratch = arena_new();
    trial_setup setup = { .shape = in->shape, .sm_count = USUAL_SM_COUNT };
    setup.shape.seq_len = in->shape.max_seq_len;
    if (in->rows_mode == ROWS_RUN_TIME)
        setup.shape.m = 1; /* the fewest blocks, with as much work each */
    trial t = trial_prepare(scratch, in, &setup);
    const char *refusal = beyond_reach(a, &t);
    arena_free(scratch);
    return refusal;
}

static bool run_setup(verifier *v, const trial_setup *setup,
                      bool (*runs)(verifier *, trial *, device_params *))
{
    if (v->alike && (setup->kind != FILL_NORMAL || setup->spoiled))
        return true;
    arena *a = arena_new();
    trial t = trial_prepare(a, v->kernel->instance, setup);
    const char *refusal = beyond_reach(v->scratch, &t);
    bool right = refusal ? reject(v, &t, refusal) : true;
    if (right) {
        emu_memory *memory = emu_memory_new();
        device_params d = map_params(memory, &t);
        right = runs(v, &t, &d);
        emu_memory_free(memory);
    }
    arena_free(a);
    return right;
}

static bool run_first(verifier *v, trial *t, device_params *d)
{
    return run(v, t, d, FIRST_BLOCK);
}

/* What a family's fit makes, as a list of experts, differs from trial to trial. */
static uint64_t seed_of(const verifier *v, uint64_t number)
{
    return v->kernel->instance->family->fit ? v->seed + number : v->seed;
}

/* Returns the first block of spoiled weights that a launch reads: of the first token's row, or of
 * the first expert in use. */
static uint64_t first_chosen(const trial *t)
{
    uint64_t rows = 1, row = 0;
    for (size_t i = 0; t->spoilt.weights && i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        const uint32_t *words = p->content.bytes;
        if (p->param.kind == PARAM_IN && strcmp(p->param.name, "tokens") == 0) {
            rows = (uint64_t)t->setup.shape.n;
            row = words[0];
        } else if (p->param.kind == PARAM_IN && strcmp(p->param.name, "list") == 0) {
            rows = (uint64_t)t->setup.shape.experts;
            row = words[EXPERT_LIST_HEAD + EXPERT_ID];
        }
    }
    return row < rows ? t->spoilt.blocks / rows * row : 0;
}

/* Returns the block of an input that has NaN number i. Four in turn are in different values of 16
 * bytes. Those behind one another are in different eighths of the input's beginning: an unrolled
 * loop has instructions of their own for each. */
static uint64_t place_of(const trial *t, uint64_t first, uint64_t i)
{
    enum { AT_ONCE = 4, PARTS = 8, PRIME = 129 };
    static const uint64_t parts[PARTS] = { 0, 4, 2, 6, 1, 5, 3, 7 };
    uint64_t blocks = t->spoilt.blocks,
             near = PLACE_VALUES / formats[t->spoilt.format].block_values;
    if (near > t->spoilt.of_row)
        near = t->spoilt.of_row;
    uint64_t at =
        near * parts[i / AT_ONCE % PARTS] / PARTS + (first + i * PRIME) % (near / PARTS + 1);
    return (first_chosen(t) + at / AT_ONCE * AT_ONCE + i % AT_ONCE) % blocks;
}

/* Runs the first block with a NaN at several places of an input, more of them where a block has
 * less work, then the last one with a NaN in the last value. References of attention and of tensor
 * cores take longer than the kernels. */
static bool run_places(verifier *v, trial *t, device_params *d)
{
    bool slow = t->instance->family->halves || t->setup.shape.max_seq_len;
    uint64_t first = t->spoilt.at, blocks = t->spoilt.blocks, before = v->result.instructions;
    bool right = run(v, t, d, FIRST_BLOCK);
    uint64_t work = slow ? work_of_block(t) : v->result.instructions - before;
    uint64_t possible = NAN_WORK / (work + 1), most = slow ? FEW_PLACES : PLACES;
    uint64_t places = possible < most ? possible : most;
    for (uint64_t i = 0; right && t->spoiled && i < places; i++) {
        trial_move_spoiled(t, place_of(t, first, i));
        right = run(v, t, d, FIRST_BLOCK);
    }
    if (!right || !t->spoiled)
        return right;
    trial_move_spoiled(t, blocks - 1);
    return run(v, t, d, LAST_BLOCK);
}

/* Runs the first block with an infinity in what it reads. */
static bool run_infinite(verifier *v, trial *t, device_params *d)
{
    if (t->spoiled)
        trial_move_spoiled(t, place_of(t, t->spoilt.at, 0));
    return run(v, t, d, FIRST_BLOCK);
}

/* With a NaN, then an infinity, in each input: it has to show in all that it has a part in. */
static bool run_spoiled(verifier *v, const problem_shape *shape, int64_t sm_count)
{
    trial_setup setup = { .shape = *shape, .sm_count = sm_count, .seed = v->seed };
    setup.shape.seq_len = shape->max_seq_len < SOME_SEQ_LEN ? shape->max_seq_len : SOME_SEQ_LEN;
    size_t inputs = trial_input_count(v->scratch, v->kernel->instance);
    bool right = true;
    for (size_t i = 0; right && i < inputs; i++) {
        setup.spoiled_input = (unsigned)i;
        for (setup.spoiled = WITH_NAN; right && setup.spoiled <= WITH_INFINITY; setup.spoiled++) {
            setup.seed = seed_of(v, 2 * i + setup.spoiled);
            right = run_setup(v, &setup, setup.spoiled == WITH_NAN ? run_places : run_infinite);
        }
    }
    return right;
}

/* Ordinary inputs that are tried: several where each makes few of many possible choices, a router's
 * or which experts rows use. */
static uint64_t ordinary_inputs(const instance *in)
{
    operation op = in->family->op;
    bool lists = in->shape.m > 1 && blocks_are_few(op, &in->shape) &&
                 (op == OP_EXPERT_GATE_UP || op == OP_EXPERT_DOWN);
    if (op == OP_SAMPLE)
        return ref_sampling_turns(&in->shape);
    if (op == OP_MOE_ROUTE)
        return in->shape.m < ROUTES ? ROUTES : LARGE_ROUTES;
    return lists ? LISTS : 1;
}

/* Returns true where weights of a softmax come of scores. */
static bool has_scores(const instance *in)
{
    operation op = in->family->op;
    bool has = op == OP_MOE_ROUTE || op == OP_SOFTMAX;
    for (const param *p = in->family->params; p->name; p++)
        has |= p->steep || p->partial_rows;
    return has;
}

/* With all scores of a softmax very negative, and sequences whose lengths no tile divides. */
static bool run_negative(verifier *v, trial *t, device_params *d)
{
    static const int64_t lengths[] = { SOME_SEQ_LEN - 1, ODD_SEQ_LEN, ODD_SEQ_LEN / 3 - 1,
                                       FEW_POSITIONS + 1, FEW_POSITIONS - 1 };
    int64_t longest = t->setup.shape.seq_len;
    bool right = run_alone(v, t, d);
    for (size_t i = 0; right && i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] < longest) {
            trial_shorten(t, lengths[i]);
            right = run_alone(v, t, d);
        }
    return right;
}

/* With ordinary inputs, with several of them where each makes few of many possible choices, and
 * again where the rows may share a cache; then with zeros, tiny and huge
 * ones, which divide by zero, lose bits or
 * overflow where a kernel does not take care; of these, a grid that is large runs one block. Of
 * what has a power of two for a row, a norm or a limit a few values decide: there are outliers. */
static bool run_sizes(verifier *v, const problem_shape *shape, int64_t sm_count)
{
    static const fill_kind others[] = { FILL_ZERO, FILL_TINY, FILL_HUGE };
    trial_setup setup = { .shape = *shape, .sm_count = sm_count, .seed = v->seed };
    setup.shape.seq_len = shape->max_seq_len;
    const uint64_t end = v->seed + ordinary_inputs(v->kernel->instance);
    bool right = run_setup(v, &setup, shape->max_seq_len ? run_lengths : run_alone);
    while (right && ++setup.seed < end) {
        setup.turn++;
        right = run_setup(v, &setup, run_alone);
    }
    setup.seed = v->seed;
    setup.turn = 0;
    if (right && updates(v->kernel->instance) && shape->m > 1)
        right = run_setup(v, &setup, run_neighbours);
    setup.one_cache = writes_one_cache(v->kernel->instance, shape);
    if (right && setup.one_cache)
        right = run_setup(v, &setup, run_lengths);
    if (right && setup.one_cache && updates(v->kernel->instance) &&
        shape->max_seq_len >= FEW_POSITIONS + shape->m)
        right = run_setup(v, &setup, run_unused);
    setup.one_cache = false;
    if (setup.shape.seq_len > LONG_SEQ_LEN)
        setup.shape.seq_len = LONG_SEQ_LEN;
    for (size_t i = 0; right && i < sizeof others / sizeof *others; i++) {
        setup.kind = others[i];
        setup.seed = seed_of(v, setup.kind);
        right = run_setup(v, &setup, run_first);
    }
    if (right && has_scores(v->kernel->instance)) {
        setup.kind = FILL_NEGATIVE;
        if (setup.shape.seq_len > SOME_SEQ_LEN)
            setup.shape.seq_len = SOME_SEQ_LEN;
        right = run_setup(v, &setup, run_negative);
    }
    const problem_options o = trial_options(v->kernel->instance);
    setup.kind = FILL_OUTLIERS;
    bool few_decide = o.halves || o.norm || o.activation == ACTIVATION_SWIGLU_OAI;
    return right && (!few_decide || !blocks_are_few(v->kernel->instance->family->op, shape) ||
                     run_setup(v, &setup, run_alone));
}

/* The SM count at which blocks of a grid-stride kernel compute several rows each; 0 where the grid
 * does not depend on it or is not smaller than the output even on one SM. */
static int64_t looping_sm_count(const instance *in, const problem_shape *s)
{
    run_values run = { s->k, s->n, s->m, 0 };
    if (formula_value(in->family->launch.grid[0], in, &run) >= 0)
        return 0;
    run.sm_count = 1;
    int64_t blocks = formula_value(in->family->launch.grid[0], in, &run);
    if (s->n <= blocks)
        return 0;
    int64_t sm_count = s->n / blocks / (int64_t)blocks_rows_a_turn(in) / TURNS_A_BLOCK;
    return sm_count > 1 ? sm_count : 1;
}

/* Where a smaller GPU has fewer blocks for a sequence's chunks, so that they take several. */
static bool run_fewer_blocks(verifier *v, const problem_shape *shape)
{
    const instance *in = v->kernel->instance;
    const char *blocks = in->family->launch.grid[2];
    trial_setup setup = { .shape = *shape, .sm_count = 1, .seed = v->seed };
    run_values one_sm = { .m = shape->m, .sm_count = 1 },
               usual = { .m = shape->m, .sm_count = USUAL_SM_COUNT };
    setup.shape.seq_len = shape->max_seq_len;
    if (formula_value(blocks, in, &one_sm) == formula_value(blocks, in, &usual))
        return true;
    bool right = run_setup(v, &setup, run_alone);
    if (!right || !has_scores(in))
        return right;
    setup.kind = FILL_NEGATIVE;
    if (setup.shape.seq_len > SEVERAL_CHUNKS)
        setup.shape.seq_len = SEVERAL_CHUNKS;
    return run_setup(v, &setup, run_alone);
}

static bool run_shape(verifier *v, const problem_shape *shape)
{
    int64_t looping = looping_sm_count(v->kernel->instance, shape);
    bool long_loops = looping > USUAL_SM_COUNT * TURNS_AT_MOST / TURNS_A_BLOCK;
    int64_t usual = long_loops ? looping : USUAL_SM_COUNT;
    return run_sizes(v, shape, usual) &&
           (!looping || looping == usual || run_sizes(v, shape, looping)) &&
           run_fewer_blocks(v, shape) && run_spoiled(v, shape, usual);
}

/* Rows that a kernel takes at once: those of one sequence have no more positions than a ring. */
static int64_t most_rows(const instance *in)
{
    const problem_options *o = &in->options;
    return in->family->one_sequence && o->ring ? o->ring - o->window + 1 : INT64_MAX;
}

/* With rows = run_time numbers of rows around that of a group, and some groups, whose last one may
 * be all that is run and lacks one row: all that is asked of a kernel with one row in the last
 * group, where most is missing. */
static bool run_shape_with_rows(verifier *v, const problem_shape *shape)
{
    int64_t group = v->kernel->instance->shape.m, most = most_rows(v->kernel->instance);
    const int64_t rows[] = { 1, group - 1, group, 3 * group - 1 };
    problem_shape other = *shape;
    if (v->kernel->instance->rows_mode == ROWS_FIXED)
        return run_shape(v, shape);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        trial_setup setup = { .shape = *shape, .sm_count = USUAL_SM_COUNT, .seed = v->seed };
        setup.shape.m = rows[i];
        if (rows[i] && rows[i] <= most && !run_setup(v, &setup, run_alone))
            return false;
    }
    other.m = group < most ? group + 1 : most;
    return run_shape(v, &other);
}

static bool fixes_all_sizes(const instance *in)
{
    for (const key *k = in->family->keys; k->name; k++)
        if (k->at_run_time && instance_value(in, k) == 0)
            return false;
    return true;
}

/* A size other than the built one: the smallest, then some that are odd multiples, and one that
 * leaves no rest. */
static int64_t other_size(const instance *in, const key *k, int64_t several)
{
    int64_t unit = key_multiple(in, k), least = k->min > unit ? k->min : unit;
    int64_t size = least + (several - 1) * unit;
    return size < k->max ? size : k->max;
}

static bool run_other_sizes(verifier *v)
{
    static const int64_t columns[] = { 1, 3, 5, 32 }, rows[] = { 1, 7, 33, 2 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        instance other = *v->kernel->instance;
        for (const key *k = other.family->keys; k->name; k++)
            if (k->at_run_time)
                *instance_field(&other, k) =
                    other_size(&other, k, key_multiple(&other, k) > 1 ? columns[i] : rows[i]);
        if (!run_shape_with_rows(v, &other.shape))
            return false;
    }
    return true;
}

/* What the text says of itself. One for a newer target than its kernel's would not run where the
 * header says it does. */
static bool note_head(verifier *v)
{
    const kernel *k = v->kernel;
    emu_module_info module;
    emu_entry_info entry;
    emu_module_describe(v->module, &module);
    v->result.isa = module.isa;
    if (emu_entry(v->module, k->instance->name, &entry))
        v->result.shared_bytes = entry.shared_bytes;
    v->result.right = !k->target || module.target <= k->target->sm;
    if (!v->result.right)
        v->result.message = arena_format(v->result_arena, "%s: .target sm_%u is too new",
                                         k->instance->name, module.target);
    return v->result.right;
}

/* Goes on with a message that a line of the PTX cannot be run. */
static void add_refusal(verifier *v, const emu_report *report)
{
    const kernel *k = v->kernel;
    const char *before = v->result.message;
    if (!before)
        v->result.line = report->line;
    v->result.message =
        arena_format(v->result_arena, "%s%s: PTX line %u%s: %s",
                     before ? arena_format(v->scratch, "%s\n", before) : "", k->instance->name,
                     report->line, text_line(v->scratch, k->ptx, report->line), report->message);
}

static bool load(verifier *v)
{
    const kernel *k = v->kernel;
    emu_report report;
    v->module = emu_load_any(v->scratch, k->ptx, k->ptx_length, &report);
    if (!v->module)
        add_refusal(v, &report);
    for (size_t i = 0; v->module && emu_unknown(v->module, i, &report); i++)
        add_refusal(v, &report);
    v->result.right = !v->result.message;
    return v->result.right && note_head(v);
}

/* Returns true if a mnemonic has one of some modifiers: "fma.rz.f32" has ".rz". */
static bool has_modifier(const char *mnemonic, const char *const *modifiers)
{
    for (; *modifiers; modifiers++) {
        size_t length = strlen(*modifiers);
        for (const char *at = mnemonic; (at = strstr(at, *modifiers)); at += length)
            if (at[length] == '.' || !at[length])
                return true;
    }
    return false;
}

/* Returns what is wrong with the rounding of a mnemonic; NULL: nothing. No kernel is generated with
 * such an instruction, and no bound of a sum tells its error from those of other instructions.
 * Approximations may make subnormal values 0. */
static const char *rounding_fault(const char *mnemonic)
{
    static const char *const directed[] = { ".rz", ".rm", ".rp", NULL };
    static const char *const flushing[] = { ".ftz", NULL }, *const inexact[] = { ".approx", NULL };
    if (has_modifier(mnemonic, directed))
        return "does not round to nearest (.rn does)";
    if (has_modifier(mnemonic, flushing) && !has_modifier(mnemonic, inexact))
        return "makes subnormal values 0 (.ftz does)";
    return NULL;
}

/* Refuses the first instruction that rounds as none of a generated kernel does. The text has been
 * parsed, so whatever begins with a letter and has a dot is a mnemonic. */
static void check_rounding(verifier *v)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char in_words[] = "abcdefghijklmnopqrstuvwxyz0123456789_.$%"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = arena_copy(v->scratch, v->kernel->ptx, v->kernel->ptx_length);
    for (unsigned line = 1; *at && v->result.right; at++) {
        size_t length = strspn(at, in_words);
        const char *fault = NULL, *word = "";
        if (strncmp(at, "//", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at + 2, "*/");
            for (; at < end; at++)
                line += *at == '\n';
        } else if (length) {
            word = arena_copy(v->scratch, at, length);
            fault = strspn(word, letters) ? rounding_fault(word) : NULL;
            at += length;
        }
        if (fault) {
            v->result.right = false;
            v->result.line = line;
            v->result.message =
                arena_format(v->result_arena, "%s: %s %s", v->kernel->instance->name, word, fault);
        }
        line += *at == '\n';
        if (!*at)
            break;
    }
}

static verifier verifier_new(arena *a, const kernel *k, uint64_t seed)
{
    return (verifier){ .result_arena = a, .scratch = arena_new(), .kernel = k, .seed = seed };
}

static verify_result verify_cases(arena *a, const kernel *k, uint64_t seed, verify_cores *cores,
                                  bool alike)
{
    const instance *in = k->instance;
    verifier v = verifier_new(a, k, seed);
    v.cores = cores;
    v.alike = alike;
    if (load(&v) && (!fixes_all_sizes(in) || run_shape_with_rows(&v, &in->shape)) &&
        in->dims == DIMS_DYNAMIC)
        run_other_sizes(&v);
    if (v.result.right)
        check_rounding(&v);
    arena_free(v.scratch);
    return v.result;
}

verify_result verify_kernel_on(arena *a, const kernel *k, uint64_t seed, verify_cores *cores)
{
    return verify_cases(a, k, seed, cores, false);
}

verify_result verify_alike_on(arena *a, const kernel *k, uint64_t seed, verify_cores *cores)
{
    return verify_cases(a, k, seed, cores, true);
}

verify_result verify_kernel(arena *a, const kernel *k, uint64_t seed)
{
    return verify_kernel_on(a, k, seed, NULL);
}

verify_result verify_setup(arena *a, const kernel *k, const trial_setup *setup)
{
    verifier v = verifier_new(a, k, setup->seed);
    if (load(&v))
        run_setup(&v, setup, run_alone);
    arena_free(v.scratch);
    return v.result;
}
