#include "bench/gpu/timing.h"

#include <stdlib.h>
#include <string.h>

#include "check/trial.h"

enum {
    L2_TIMES = 3,
    SPANS = 4,
    SPAN_VALUES = 128,
    UNWRITTEN = 0xff,
    UNWRITTEN_TOO = 0x5a, /* second fill value, for results that happen to equal UNWRITTEN */
    COPY_RUNS = 10,
};

/* One copy of the buffers, and the parameters of a launch that uses it. */
typedef struct launch_copy {
    gpu_address addresses[MAX_PARAMS];
    void *params[MAX_PARAMS + MAX_PEER_SIZES];
} launch_copy;

typedef struct bench {
    arena *arena;
    gpu *gpu;
    trial trial;
    launch_copy *copies;
    size_t copy_count;
    VEC(gpu_address) allocations;
    size_t launched;
    gpu_grid grid;
    uint32_t peer_sizes[MAX_PEER_SIZES];
} bench;

static bool allocate(bench *b, size_t size, gpu_address *address)
{
    if (!gpu_alloc(b->gpu, size, address))
        return false;
    *VEC_PUSH(b->arena, &b->allocations) = *address;
    return true;
}

/* Copies an input to the device. An input that is larger than its content on the host repeats it.
 */
static bool put_content(bench *b, device_buffer content, gpu_address *address)
{
    return allocate(b, content.size, address) &&
           gpu_copy_in_repeated(b->gpu, *address, content.size, content.bytes, content.stored);
}

static bool put_param(bench *b, trial_param *p, gpu_address *address)
{
    if (p->content.bytes)
        return put_content(b, p->content, address);
    return allocate(b, p->size, address) &&
           gpu_fill(b->gpu, *address, p->param.data == DATA_ZEROED ? 0 : UNWRITTEN, p->size);
}

static bool put_copies(bench *b)
{
    trial *t = &b->trial;
    for (size_t c = 0; c < b->copy_count; c++) {
        for (size_t i = 0; i < t->param_count; i++) {
            trial_param *p = &t->params[i];
            launch_copy *copy = &b->copies[c];
            bool number = p->param.kind == PARAM_U32;
            copy->params[i] = number ? (void *)&p->number : (void *)&copy->addresses[i];
            if (!number && !put_param(b, p, &copy->addresses[i]))
                return false;
        }
        for (size_t i = 0; i < MAX_PEER_SIZES; i++)
            b->copies[c].params[t->param_count + i] = &b->peer_sizes[i];
    }
    return true;
}

static uint64_t bytes_of(const trial *t)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < t->param_count; i++)
        bytes += t->params[i].size;
    return bytes;
}

/* Returns a trial in which all sequences of caches are full. */
static trial prepare(arena *a, const instance *in, trial_setup setup)
{
    param params[MAX_PARAMS];
    bool many = false;
    for (size_t i = 0, count = instance_params(a, in, params); i < count; i++)
        many |= params[i].data == DATA_SEQUENCES;
    if (!many)
        return trial_prepare(a, in, &setup);
    uint32_t *lengths = arena_alloc(a, (size_t)setup.shape.m * sizeof *lengths);
    for (int64_t i = 0; i < setup.shape.m; i++)
        lengths[i] = (uint32_t)setup.shape.max_seq_len;
    setup.shape.seq_len++; /* a length beyond the caches is that of all sequences */
    trial t = trial_prepare(a, in, &setup);
    t.setup.shape.seq_len = t.problem.shape.seq_len = setup.shape.max_seq_len;
    trial_shorten_each(&t, lengths);
    return t;
}

static bool launch_next(bench *b)
{
    return gpu_launch(b->gpu, &b->grid, b->copies[b->launched++ % b->copy_count].params);
}

/* Marks the blocks with a byte that differs from the fill value. */
static void mark_written(const unsigned char *bytes, unsigned char filled, uint64_t blocks,
                         format f, uint8_t *written)
{
    size_t size = formats[f].block_bytes;
    for (uint64_t i = 0; i < blocks; i++)
        for (size_t j = 0; j < size; j++)
            written[i] |= bytes[i * size + j] != filled;
}

/* Marks some spans of the written blocks. */
static void sample(uint64_t blocks, format f, const uint8_t *written, uint8_t *sampled)
{
    uint64_t span = SPAN_VALUES / formats[f].block_values, step = blocks / SPANS + 1;
    for (uint64_t i = 0; i < blocks; i++)
        sampled[i] = written[i] && (i + span >= blocks || i % step < span);
}

static bool judge(bench *b, timing *out)
{
    const trial *t = &b->trial;
    if (!launch_next(b) || !gpu_wait(b->gpu))
        return false;
    out->written = true;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        if (p->param.kind != PARAM_OUT || p->param.data == DATA_CACHE ||
            p->param.data == DATA_UPDATED) /* caches are judged only by tests */
            continue;
        uint64_t blocks = p->size / formats[p->param.format].block_bytes;
        unsigned char *bytes = arena_alloc(b->arena, p->size);
        uint8_t *written = arena_zalloc(b->arena, blocks), *sampled = arena_alloc(b->arena, blocks);
        const trial_output all = { bytes, written, 0, blocks },
                           some = { bytes, sampled, 0, blocks };
        gpu_address at = b->copies[0].addresses[i];
        if (!gpu_copy_out(b->gpu, bytes, at, p->size))
            return false;
        mark_written(bytes, UNWRITTEN, blocks, p->param.format, written);
        if (trial_missing_block(t, i, &all) != blocks) {
            unsigned char *again = arena_alloc(b->arena, p->size);
            b->launched = 0;
            if (!gpu_fill(b->gpu, at, UNWRITTEN_TOO, p->size) || !launch_next(b) ||
                !gpu_wait(b->gpu) || !gpu_copy_out(b->gpu, again, at, p->size))
                return false;
            mark_written(again, UNWRITTEN_TOO, blocks, p->param.format, written);
        }
        sample(blocks, p->param.format, written, sampled);
        out->written &= trial_missing_block(t, i, &all) == blocks;
        trial_judge(t, i, &some, &out->wrong);
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Records a graph in which every copy is used `turns` times. */
static bool record(bench *b, size_t turns)
{
    if (!gpu_begin_graph(b->gpu))
        return false;
    for (size_t i = 0; i < turns * b->copy_count; i++)
        if (!launch_next(b))
            return false;
    return gpu_end_graph(b->gpu);
}

/* Times a replay of the graph. A first replay keeps the device busy when the clock starts, so that
 * the host's launch time is not measured. */
static bool replay(bench *b, const effort *e, double *seconds)
{
    return (e->batch_seconds <= 0 || gpu_replay(b->gpu)) && gpu_start(b->gpu) &&
           gpu_replay(b->gpu) && gpu_stop(b->gpu, seconds);
}

static bool measure(bench *b, const effort *e, timing *out)
{
    double *seconds = arena_alloc(b->arena, e->batches * sizeof *seconds), one_turn;
    if (!record(b, 1) || !replay(b, e, &one_turn))
        return false;
    out->seconds = one_turn / (double)b->copy_count;
    if (e->batch_seconds <= 0)
        return true;
    double wanted = one_turn > 0 ? e->batch_seconds / one_turn : 1;
    size_t most = e->most_launches / b->copy_count;
    size_t turns = wanted > (double)most ? most : (size_t)wanted;
    if (turns > 1 && !record(b, turns))
        return false;
    turns = turns ? turns : 1;
    for (unsigned i = 0; i < e->batches; i++) {
        if (!replay(b, e, &seconds[i]))
            return false;
        seconds[i] /= (double)(turns * b->copy_count);
    }
    qsort(seconds, e->batches, sizeof *seconds, by_size);
    out->seconds = seconds[e->batches / 2];
    return true;
}

static void set_grid(bench *b, const instance *in, const peer *by)
{
    const trial *t = &b->trial;
    b->grid = (gpu_grid){ .blocks = { t->grid[0], t->grid[1], t->grid[2] },
                          .threads = t->block,
                          .dynamic_shared = t->dynamic_shared };
    if (by && by->regrid)
        by->regrid(in, &b->grid);
    for (size_t i = 0; by && i < MAX_PEER_SIZES; i++) {
        const int64_t *size = (const void *)((const char *)in + by->sizes[i]);
        b->peer_sizes[i] = (uint32_t)*size;
    }
}

bool time_kernel(arena *a, gpu *g, const kernel *k, const peer *by, const effort *e, timing *out)
{
    bench b = { .arena = a, .gpu = g };
    trial_setup setup = { .shape = k->instance->shape, .sm_count = g->sm_count, .seed = 1 };
    setup.shape.seq_len = setup.shape.max_seq_len;
    if (k->instance->rows_mode == ROWS_RUN_TIME)
        setup.shape.m = out->rows;
    out->rows = setup.shape.m;
    b.trial = prepare(a, k->instance, setup);
    set_grid(&b, k->instance, by);
    uint64_t bytes = bytes_of(&b.trial), beyond = L2_TIMES * g->l2_bytes;
    uint64_t copies = beyond / bytes + 2;
    b.copy_count = copies < e->most_copies ? (size_t)copies : e->most_copies;
    out->in_l2 = b.copy_count * bytes < beyond;
    b.copies = arena_zalloc(a, b.copy_count * sizeof *b.copies);
    out->loaded = gpu_load(g, by ? by->ptx : k->ptx);
    bool ran = out->loaded &&
               gpu_select(g, by ? by->entry : k->instance->name, b.grid.dynamic_shared) &&
               put_copies(&b) && judge(&b, out) && measure(&b, e, out);
    out->blocks = b.grid.blocks[0] * b.grid.blocks[1] * b.grid.blocks[2];
    out->blocks_sm = ran ? gpu_blocks_sm(g, b.grid.threads, b.grid.dynamic_shared) : 0;
    for (size_t i = 0; i < b.allocations.count; i++)
        gpu_free(g, b.allocations.items[i]);
    return ran;
}

bool time_copy(gpu *g, const effort *e, double *bandwidth)
{
    gpu_address from, to;
    double best = 0;
    if (!gpu_alloc(g, e->copy_bytes, &from) || !gpu_alloc(g, e->copy_bytes, &to) ||
        !gpu_fill(g, from, 1, e->copy_bytes))
        return false;
    for (int i = 0; i < COPY_RUNS; i++) {
        double seconds;
        if (!gpu_start(g) || !gpu_copy(g, to, from, e->copy_bytes) || !gpu_stop(g, &seconds))
            return false;
        double speed = seconds > 0 ? 2 * (double)e->copy_bytes / seconds : 0;
        best = speed > best ? speed : best;
    }
    gpu_free(g, from);
    gpu_free(g, to);
    *bandwidth = best;
    return true;
}
