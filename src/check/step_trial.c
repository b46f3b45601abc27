#include "check/step_trial.h"

#include <string.h>

#include "family/formula.h"

enum { USUAL_SM_COUNT = 132, SOME_BLOCKS = 16 };

bool step_reject(step_trial *t, const char *message)
{
    t->right = false;
    t->result.message = message;
    return false;
}

/* "blk.17", or what stands ahead of or behind the layers. */
const char *step_layer_name(const step_trial *t, int64_t layer)
{
    if (layer < 0 || layer >= t->v->plan->decoder->layers)
        return layer < 0 ? "ahead of the layers" : "behind the layers";
    return arena_format(t->arena, "layer %lld", (long long)t->v->names->numbers[layer]);
}

const char *step_name(const step_trial *t, const step_rows *r)
{
    const char *where = t->kind == FROM_THE_START ? "from the first position on"
                        : t->kind == AT_AN_EDGE   ? "behind earlier positions"
                                                  : "of several sequences";
    uint32_t position = r->positions[r->m - 1];
    return arena_format(t->arena, "step of %zu token%s %s, the last at position %u", r->m,
                        r->m == 1 ? "" : "s", where, position);
}

/* The address of an argument. Tensors and caches are allocations of their own, so that what leaves
 * one is found. 0: there is nothing. */
static uint64_t address_of(const step_trial *t, const plan_argument *argument)
{
    const plan *p = t->v->plan;
    switch (argument->memory) {
    case PLAN_STATE:
        return t->state + argument->offset;
    case PLAN_WORKSPACE:
        return t->workspace + argument->offset;
    default:
        break;
    }
    for (size_t i = 0; i < p->tensor_count; i++)
        if (argument->offset - p->tensors[i].offset < p->tensors[i].bytes)
            return t->tensors[i] + argument->offset - p->tensors[i].offset;
    return 0;
}

static void describe_launch(const step_trial *t, const plan_launch *l, const step_rows *r,
                            emu_launch_config *config, uint64_t *values)
{
    const step_kernel *k = &t->v->kernels[l->kernel];
    const instance *in = &t->v->plan->kernels[l->kernel];
    const launch *how = &in->family->launch;
    run_values run = { in->shape.k, in->shape.n, (int64_t)r->m, USUAL_SM_COUNT };
    const void **params = arena_alloc(t->scratch, MAX_PARAMS * sizeof *params);
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        values[i] = argument->is_number ? argument->number : address_of(t, argument);
        params[i] = &values[i];
        if (argument->is_number)
            run.m = argument->number;
    }
    *config = (emu_launch_config){
        .module = k->module,
        .entry = in->name,
        .block = { (unsigned)formula_value(how->block, in, &run), 1, 1 },
        .params = params,
        .param_count = l->argument_count,
        .no_race_check = true, /* each kernel by itself has it */
    };
    for (int i = 0; i < 3; i++)
        config->grid[i] = (unsigned)formula_value(how->grid[i], in, &run);
    if (how->dynamic_shared)
        config->dynamic_shared = (size_t)formula_value(how->dynamic_shared, in, &run);
}

static bool gives_logits(const plan *p, const plan_launch *l)
{
    return l->layer == p->decoder->layers && l->arguments[0].memory == PLAN_STATE &&
           l->arguments[0].offset == p->state.logits;
}

/* From the first block to the last. What they have written is known afterwards. */
static void choose_blocks(const step_trial *t, emu_launch_config *config, uint64_t *blocks)
{
    uint64_t grid = (uint64_t)config->grid[0] * config->grid[1] * config->grid[2];
    emu_clear_written(t->memory, t->state);
    if (grid <= SOME_BLOCKS)
        return;
    for (uint64_t i = 0; i < SOME_BLOCKS; i++)
        blocks[i] = i * (grid - 1) / (SOME_BLOCKS - 1);
    config->blocks = blocks;
    config->block_count = SOME_BLOCKS;
}

bool step_launch(step_trial *t, const plan_launch *l, const step_rows *r)
{
    uint64_t values[MAX_PARAMS], blocks[SOME_BLOCKS];
    emu_launch_config config;
    emu_stats stats = { 0 };
    emu_report report;
    describe_launch(t, l, r, &config, values);
    if (t->in_part && l->layer == t->v->plan->decoder->layers) {
        if (!gives_logits(t->v->plan, l))
            return true;
        choose_blocks(t, &config, blocks);
    }
    bool ended = emu_launch(t->memory, &config, &stats, &report);
    t->result.instructions += stats.thread_instructions;
    if (ended)
        return true;
    return step_reject(t, arena_format(t->arena, "%s, %s: %s (%s): %s [%s], PTX line %u",
                                       step_name(t, r), step_layer_name(t, l->layer), config.entry,
                                       l->said, report.message, emu_fault_name(report.fault),
                                       report.line));
}

void *step_read(const step_trial *t, uint64_t address, size_t size)
{
    void *bytes = arena_zalloc(t->scratch, size);
    if (!emu_read(t->memory, address, bytes, size))
        memset(bytes, 0xff, size); /* floats that are none */
    return bytes;
}

uint32_t step_read_word(const step_trial *t, uint64_t offset, size_t row)
{
    return *(uint32_t *)step_read(t, t->state + offset + row * sizeof(uint32_t), sizeof(uint32_t));
}

uint64_t step_cache_address(const step_trial *t, const ref_cached *which)
{
    const step_model *m = &t->v->model;
    uint64_t row = (uint64_t)(which->kv_head * m->d->max_seq_len) + which->position;
    size_t cache = 2 * (size_t)(which->sequence * m->d->layers + which->layer) + which->values;
    return t->caches[cache] + row * m->row_bytes;
}

void step_write_state(const step_trial *t, const step_rows *r)
{
    const plan *p = t->v->plan;
    const decoder *d = p->decoder;
    size_t words = r->m * sizeof(uint32_t);
    uint32_t tokens[DECODER_MOST_ROWS];
    for (size_t i = 0; i < r->m; i++)
        tokens[i] = r->rows[i].token;
    emu_write(t->memory, t->state + p->state.tokens, tokens, words);
    emu_write(t->memory, t->state + p->state.positions, r->positions, words);
    emu_write(t->memory, t->state + p->state.lengths, r->lengths, words);
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (size_t i = 0; i < 2 * (size_t)p->rows; i++) {
            size_t row = i % (size_t)p->rows, values = i / (size_t)p->rows;
            int64_t sequence = row < r->m ? r->rows[row].sequence : 0;
            emu_write(t->memory,
                      t->state + p->state.caches +
                          (2 * (size_t)layer * (size_t)p->rows + i) * sizeof(uint64_t),
                      &t->caches[2 * (size_t)(sequence * d->layers + layer) + values],
                      sizeof(uint64_t));
        }
}

/* Has a sequence start behind some positions. Those from there on are no numbers. */
void step_start(step_trial *t, int64_t sequence, uint64_t position)
{
    const decoder *d = t->v->plan->decoder;
    void *none = memset(arena_alloc(t->arena, t->v->model.row_bytes), 0xff, t->v->model.row_bytes);
    t->lengths[sequence] = position;
    ref_step_start(t->rounded, sequence, position, step_model_earlier, (void *)&t->v->model);
    ref_step_start(t->exact, sequence, position, step_model_earlier, (void *)&t->v->model);
    ref_cached at = { .sequence = sequence };
    for (at.layer = 0; at.layer < d->layers; at.layer++)
        for (at.kv_head = 0; at.kv_head < d->num_kv_heads; at.kv_head++)
            for (int values = 0; values < 2; values++) {
                at.values = values;
                for (at.position = 0;
                     at.position < MODEL_LARGE_POSITIONS && at.position < (uint64_t)d->max_seq_len;
                     at.position++)
                    emu_write(t->memory, step_cache_address(t, &at),
                              step_model_row(&t->v->model, &at), t->v->model.row_bytes);
                for (at.position = position; at.position < position + 3 * DECODER_MOST_ROWS &&
                                             at.position < (uint64_t)d->max_seq_len;
                     at.position++)
                    emu_write(t->memory, step_cache_address(t, &at), none, t->v->model.row_bytes);
            }
}

static uint64_t map_tensor(emu_memory *memory, const model_tensor *t, uint64_t bytes)
{
    return t->stored == bytes ? emu_map(memory, t->bytes, t->size, true)
                              : emu_map_pattern(memory, t->size, t->bytes, t->stored);
}

void step_map(step_trial *t)
{
    const step_verifier *v = t->v;
    const plan *p = v->plan;
    const decoder *d = p->decoder;
    t->memory = emu_memory_new_in(t->arena);
    t->tensors = arena_alloc(t->arena, p->tensor_count * sizeof *t->tensors);
    for (size_t i = 0; i < p->tensor_count; i++)
        t->tensors[i] = map_tensor(t->memory, &v->model.tensors[i], p->tensors[i].bytes);
    size_t caches = 2 * (size_t)(d->layers * d->sequences);
    t->caches = arena_zalloc(t->arena, caches * sizeof *t->caches);
    for (size_t i = 0; i < caches; i++)
        if (p->caches[i / 2 % (size_t)d->layers][i % 2].bytes)
            t->caches[i] =
                emu_map_pattern(t->memory, p->caches[i / 2 % (size_t)d->layers][i % 2].bytes,
                                v->model.rows[i % 2], MODEL_CACHE_ROWS * v->model.row_bytes);
    t->state = emu_alloc(t->memory, p->bytes[PLAN_STATE]);
    static const uint8_t zero = 0;
    emu_fill(t->memory, t->state, &zero, 1, p->bytes[PLAN_STATE]);
    t->workspace = emu_alloc(t->memory, p->bytes[PLAN_WORKSPACE]);
}
