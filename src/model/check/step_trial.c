#include "model/check/step_trial.h"

#include <string.h>

#include "kernel/formula.h"

enum { USUAL_SM_COUNT = 132 };

bool step_reject(step_trial *t, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    t->right = false;
    t->result.message = arena_vformat(t->arena, text, args);
    va_end(args);
    return false;
}

const char *step_layer_name(const step_trial *t, int64_t layer)
{
    if (layer < 0 || layer >= t->v->plan->decoder->layers)
        return layer < 0 ? "before the layers" : "after the layers";
    return arena_format(t->arena, "layer %lld", (long long)t->v->names->numbers[layer]);
}

const char *step_name(const step_trial *t, const step_rows *r)
{
    static const char *const where[TRIALS] = {
        [FROM_THE_START] = "from the first position on",
        [AT_AN_EDGE] = "after earlier positions",
        [SEVERAL_SEQUENCES] = "of several sequences",
        [AROUND_A_RING] = "across the end of a ring",
    };
    uint32_t position = r->positions[r->m - 1];
    return arena_format(t->arena, "step of %zu token%s %s, the last at position %u", r->m,
                        r->m == 1 ? "" : "s", where[t->kind], position);
}

uint64_t step_address(const step_trial *t, const plan_argument *argument)
{
    const plan *p = t->v->plan;
    if (argument->memory == PLAN_STATE || argument->memory == PLAN_WORKSPACE)
        return (argument->memory == PLAN_STATE ? t->state : t->workspace) + argument->offset;
    int64_t cache = plan_part_of(p, argument);
    if (cache >= 0)
        return t->caches[cache];
    const plan_tensor *of = plan_tensor_of(p, argument);
    return of ? t->tensors[of - p->tensors] + argument->offset - of->offset : 0;
}

static void describe_launch(const step_trial *t, const plan_launch *l, const step_rows *r,
                            bool dependent, step_request *request)
{
    const step_kernel *k = &t->v->kernels[l->kernel];
    const instance *in = dependent ? k->dependent_instance : k->kernel->instance;
    const launch *how = &in->family->launch;
    run_values run = { in->shape.k, in->shape.n, (int64_t)r->m, USUAL_SM_COUNT };
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        request->values[i] = argument->is_number ? argument->number : step_address(t, argument);
        request->params[i] = &request->values[i];
        if (i + 1 == l->argument_count && argument->is_number && in->rows_mode == ROWS_RUN_TIME)
            run.m = argument->number;
    }
    request->launch = (device_launch){
        .module = dependent ? k->dependent : k->module,
        .entry = in->name,
        .block = (unsigned)formula_value(how->block, in, &run),
        .params = request->params,
        .param_count = l->argument_count,
        .no_race_check = true, /* checked for each kernel separately */
    };
    for (int i = 0; i < 3; i++)
        request->launch.grid[i] = (unsigned)formula_value(how->grid[i], in, &run);
    if (how->dynamic_shared)
        request->launch.dynamic_shared = (size_t)formula_value(how->dynamic_shared, in, &run);
}

bool step_request_of(const step_trial *t, const plan_launch *l, const step_rows *r, bool dependent,
                     step_request *request)
{
    device_launch *to = &request->launch;
    const plan *p = t->v->plan;
    const plan_argument *y = &l->arguments[0];
    describe_launch(t, l, r, dependent, request);
    if (!t->in_part || l->layer != p->decoder->layers)
        return true;
    if (y->memory == PLAN_WORKSPACE) /* a norm, or rows for the logits' product */
        return true;
    if (y->offset != p->state.logits)
        return false;
    /* Choose blocks evenly from first to last. emu_written tells later what they have written. */
    uint64_t grid = (uint64_t)to->grid[0] * to->grid[1] * to->grid[2];
    emu_clear_written(t->memory, t->state);
    if (grid <= STEP_SOME_BLOCKS)
        return true;
    for (uint64_t i = 0; i < STEP_SOME_BLOCKS; i++)
        request->blocks[i] = i * (grid - 1) / (STEP_SOME_BLOCKS - 1);
    to->blocks = request->blocks;
    to->block_count = STEP_SOME_BLOCKS;
    return true;
}

bool step_reject_launch(step_trial *t, const plan_launch *l, const step_rows *r,
                        const emu_report *report)
{
    return step_reject(t, "%s, %s: %s (%s): %s [%s], PTX line %u", step_name(t, r),
                       step_layer_name(t, l->layer), t->v->plan->kernels[l->kernel].name, l->said,
                       report->message, emu_fault_name(report->fault), report->line);
}

bool step_run(step_trial *t, const plan_launch *l, const step_rows *r, const step_request *request)
{
    bool ended = t->device.launch(&t->device, &request->launch);
    t->result.instructions += t->device.stats.thread_instructions;
    return ended || step_reject_launch(t, l, r, &t->device.report);
}

bool step_launch(step_trial *t, const plan_launch *l, const step_rows *r)
{
    step_request request;
    return !step_request_of(t, l, r, false, &request) || step_run(t, l, r, &request);
}

void *step_read(const step_trial *t, uint64_t address, size_t size)
{
    void *bytes = arena_zalloc(t->scratch, size);
    if (!emu_read(t->memory, address, bytes, size))
        memset(bytes, 0xff, size); /* NaN */
    return bytes;
}

uint32_t step_read_word(const step_trial *t, uint64_t offset, size_t row)
{
    return *(uint32_t *)step_read(t, t->state + offset + row * sizeof(uint32_t), sizeof(uint32_t));
}

uint64_t step_cache_address(const step_trial *t, const ref_cached *which)
{
    const step_model *m = &t->v->model;
    int64_t slot =
        which->recurrent ? decoder_states_slot(m->d, which->layer) : m->d->at[which->layer].cache;
    return t->caches[PLAN_CACHE_PARTS * slot + which->values] + step_model_offset(m, which);
}

uint64_t step_pool_bytes(const step_trial *t, const plan_cache *part)
{
    const decoder *d = t->v->plan->decoder;
    int64_t pages = part->memory == PLAN_PAGES ? plan_pages(d) : 1;
    return (uint64_t)(d->sequences * pages) * part->bytes;
}

void step_write_state(const step_trial *t, const step_rows *r)
{
    const plan *p = t->v->plan;
    size_t words = r->m * sizeof(uint32_t);
    uint32_t tokens[PROBLEM_MOST_ROWS], sequences[PROBLEM_MOST_ROWS];
    uint32_t run_positions[PROBLEM_MOST_ROWS];
    size_t unused = 0; /* rows before the first used one; later ones continue a run */
    for (size_t i = 0; i < r->m; i++) {
        tokens[i] = r->rows[i].token;
        unused += unused == i && !r->is_row[i];
        bool goes_on = !r->is_row[i] && i >= unused;
        sequences[i] = goes_on ? sequences[i - 1] : (uint32_t)r->rows[i].sequence;
        run_positions[i] = goes_on ? 0 : r->positions[i];
    }
    emu_write(t->memory, t->state + p->state.tokens, tokens, words);
    emu_write(t->memory, t->state + p->state.positions, r->positions, words);
    emu_write(t->memory, t->state + p->state.lengths, r->lengths, words);
    emu_write(t->memory, t->state + p->state.sequences, sequences, words);
    for (const plan_tiles *tiles = p->tiles; tiles < p->tiles + p->tile_count; tiles++) {
        uint32_t list[PROBLEM_MOST_ROWS];
        plan_list_tiles(tiles, sequences, run_positions, r->m, list);
        emu_write(t->memory, t->state + tiles->offset, list, words);
    }
    if (p->state.chosen) { /* the last rows */
        size_t count = (size_t)decoder_logits_rows(p->decoder, (int64_t)r->m);
        for (size_t i = 0; i < count; i++) {
            uint32_t row = (uint32_t)(r->m - count + i), none = UINT32_MAX;
            uint64_t at = t->state + i * sizeof row;
            emu_write(t->memory, at + p->state.chosen, r->is_row[row] ? &row : &none, sizeof row);
            emu_write(t->memory, at + p->state.chosen_positions, &r->positions[row], sizeof row);
        }
    }
}

/* Writes an item of the model to a cache, or NaN if none is set. */
static void put(const step_trial *t, const ref_cached *at, bool none)
{
    const step_model *m = &t->v->model;
    size_t size = (size_t)step_model_row_bytes(m, at);
    uint64_t address = step_cache_address(t, at);
    if (none)
        emu_fill(t->memory, address, &(const uint8_t){ 0xff }, 1, size);
    else
        emu_write(t->memory, address, step_model_row(m, at), size);
}

/* Writes a head's rows before a position, except rows that the mapped pattern has. Writes NaN to as
 * many rows after it as steps may write. Writes all rows of a ring. */
static void start_rows(const step_trial *t, ref_cached at, uint64_t position)
{
    const decoder *d = t->v->plan->decoder;
    uint64_t longest = (uint64_t)d->max_seq_len, ring = (uint64_t)plan_ring(d, at.layer);
    uint64_t first = ring && position > ring ? position - ring : 0;
    uint64_t end = ring                              ? position
                   : MODEL_LARGE_POSITIONS < longest ? MODEL_LARGE_POSITIONS
                                                     : longest;
    uint64_t none = position + (uint64_t)(ring ? 1 : 3) * (uint64_t)t->v->plan->rows;
    for (at.position = first; at.position < end; at.position++)
        put(t, &at, false);
    for (at.position = position; at.position < none && at.position < longest; at.position++)
        put(t, &at, true);
}

/* Writes a recurrence's states and the last inputs before a position. All else is NaN: at the start
 * the state must not be read, nor inputs beyond the convolution's reach. */
static void start_states(const step_trial *t, int64_t sequence, int64_t layer, uint64_t position)
{
    ref_cached at = { .sequence = sequence, .layer = layer, .recurrent = true };
    const decoder *d = t->v->plan->decoder;
    uint64_t heads = decoder_state_heads(d), taps = (uint64_t)decoder_taps(d);
    for (uint64_t head = 0; head < heads; head++) {
        at.kv_head = (int64_t)head;
        put(t, &at, !position);
    }
    at.kv_head = 0;
    at.values = true;
    for (; at.position < DELTA_RING; at.position++)
        put(t, &at, true);
    for (uint64_t back = 1; back < taps && back <= position; back++) {
        at.position = position - back;
        put(t, &at, false);
    }
}

void step_start(step_trial *t, int64_t sequence, uint64_t position)
{
    const decoder *d = t->v->plan->decoder;
    ref_cached at = { .sequence = sequence };
    t->lengths[sequence] = position;
    ref_step_start(t->rounded, sequence, position, step_model_earlier, (void *)&t->v->model);
    ref_step_start(t->exact, sequence, position, step_model_earlier, (void *)&t->v->model);
    for (at.layer = 0; at.layer < d->layers; at.layer++) {
        if (d->at[at.layer].recurs)
            start_states(t, sequence, at.layer, position);
        int64_t heads = d->latent ? 1 : d->at[at.layer].num_kv_heads;
        bool writes = decoder_has_part(d, PART_KV, at.layer);
        for (at.kv_head = 0; writes && at.kv_head < heads; at.kv_head++)
            for (int values = 0; values < (d->latent ? 1 : 2); values++) {
                at.values = values;
                start_rows(t, at, position);
            }
    }
}

void step_map(step_trial *t)
{
    const step_verifier *v = t->v;
    const plan *p = v->plan;
    const decoder *d = p->decoder;
    device *on = &t->device;
    *on = device_emulator(t->arena);
    t->memory = on->memory;
    t->tensors = arena_alloc(t->arena, p->tensor_count * sizeof *t->tensors);
    t->skipped = arena_zalloc(t->arena, p->tensor_count * sizeof *t->skipped);
    for (size_t i = 0; i < p->tensor_count; i++) {
        const model_tensor *have = &v->model.tensors[i];
        const device_buffer content = { p->tensors[i].bytes, have->size, have->stored,
                                        have->bytes };
        on->map(on, &content, true, &t->tensors[i]);
    }
    size_t caches = PLAN_CACHE_PARTS * (size_t)decoder_slots(d);
    t->caches = arena_zalloc(t->arena, caches * sizeof *t->caches);
    for (size_t i = 0; i < caches; i++) {
        size_t slot = i / PLAN_CACHE_PARTS;
        uint64_t bytes = step_pool_bytes(t, &p->caches[slot][i % PLAN_CACHE_PARTS]);
        bool states = (int64_t)slot >= d->layers || !d->at[slot].attends;
        const device_buffer content = { bytes, bytes,
                                        states ? 0 : step_model_pattern(&v->model, (int64_t)slot),
                                        v->model.rows[i % 2] };
        if (bytes && states)
            on->alloc(on, bytes, false, &t->caches[i]);
        else if (bytes)
            on->map(on, &content, false, &t->caches[i]);
    }
    static const uint8_t zero = 0;
    on->alloc(on, p->bytes[PLAN_STATE], false, &t->state);
    emu_fill(t->memory, t->state, &zero, 1, p->bytes[PLAN_STATE]);
    on->alloc(on, p->bytes[PLAN_WORKSPACE], false, &t->workspace);
    uint64_t pages = (uint64_t)plan_pages(d);
    for (uint64_t i = 0; i < pages * (uint64_t)d->sequences; i++) {
        uint32_t page = (uint32_t)step_model_page(&v->model, (int64_t)(i / pages), i % pages);
        emu_write(t->memory, t->state + p->state.pages + i * sizeof page, &page, sizeof page);
    }
}
