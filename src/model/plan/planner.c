#include "model/plan/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/formula.h"
#include "kernel/limits.h"
#include "kernel/memory_plan.h"

const char *const plan_memory_names[PLAN_MEMORIES] = {
    [PLAN_WEIGHTS] = "weights", [PLAN_CACHE] = "cache",         [PLAN_PAGES] = "pages",
    [PLAN_STATE] = "state",     [PLAN_WORKSPACE] = "workspace", [PLAN_HOST] = "host",
};

int64_t plan_ring(const decoder *d, int64_t layer)
{
    if (!decoder_window(d, layer) || d->window_cache == WINDOW_CACHE_FULL)
        return 0;
    int64_t positions = d->window + d->m[d->m_count - 1] - 1;
    return positions < d->max_seq_len ? positions : 0;
}

int64_t plan_history(const decoder *d)
{
    return d->penalties && !d->caller_samples ? d->penalties + d->m[d->m_count - 1] - 1 : 0;
}

uint64_t plan_mask_words(const decoder *d)
{
    enum { WORD_BITS = 32 };
    return d->token_mask ? ((uint64_t)d->vocab + WORD_BITS - 1) / WORD_BITS : 0;
}

int64_t plan_pages(const decoder *d)
{
    return d->page ? (d->max_seq_len + d->page - 1) / d->page : 0;
}

const plan_tensor *plan_tensor_of(const plan *p, const plan_argument *argument)
{
    for (const plan_tensor *t = p->tensors; t < p->tensors + p->tensor_count; t++)
        if (!argument->is_number && argument->memory == t->memory &&
            argument->offset - t->offset < t->bytes)
            return t;
    return NULL;
}

void plan_list_tiles(const plan_tiles *of, const uint32_t *sequences, const uint32_t *positions,
                     size_t rows, uint32_t *list)
{
    memset(list, 0, rows * sizeof *list);
    for (size_t row = 0, count; row < rows; row += count) {
        bool used = positions[row] != UINT32_MAX;
        for (count = 1; (int64_t)count < of->rows && row + count < rows &&
                        (positions[row + count] != UINT32_MAX) == used &&
                        sequences[row + count] == sequences[row];)
            count++;
        *list++ = (uint32_t)(row | count << 16);
    }
}

int64_t plan_part_of(const plan *p, const plan_argument *argument)
{
    for (int64_t i = 0; i < PLAN_CACHE_PARTS * decoder_slots(p->decoder); i++) {
        const plan_cache *part = &p->caches[i / PLAN_CACHE_PARTS][i % PLAN_CACHE_PARTS];
        if (!argument->is_number && part->bytes && part->memory == argument->memory &&
            part->offset == argument->offset)
            return i;
    }
    return -1;
}

uint64_t plan_bytes_from(const plan *p, const plan_argument *argument)
{
    const plan_tensor *t = plan_tensor_of(p, argument);
    return t ? t->offset + t->bytes - argument->offset : 0;
}

void plan_insert_argument(plan_launch *l, size_t number, plan_argument argument)
{
    for (size_t i = l->argument_count++; i > number; i--)
        l->arguments[i] = l->arguments[i - 1];
    l->arguments[number] = argument;
}

void plan_remove_argument(plan_launch *l, size_t number)
{
    for (size_t i = number; i + 1 < l->argument_count; i++)
        l->arguments[i] = l->arguments[i + 1];
    l->argument_count--;
}

const struct buffer_life buffer_lives[BUFFERS] = {
#define BUFFER(id, name, first, last, values) { name, PHASE_##first, PHASE_##last },
#include "model/plan/buffers.def"
#undef BUFFER
};

const plan_tensor *planner_tensor(const planner *p, decoder_tensor t)
{
    return &p->tensors.items[p->numbers[t][tensor_infos[t].by_layer ? p->layer : 0]];
}

int64_t planner_layer(const planner *p)
{
    return p->layer < 0 || p->layer >= p->d->layers ? 0 : p->layer;
}

bool planner_has(const planner *p, decoder_tensor t)
{
    return decoder_has(p->d, t, planner_layer(p));
}

static bound *bind_name(launch_draft *l, const char *name, plan_argument argument)
{
    size_t at = 0;
    while (at < l->bound_count && strcmp(l->bound[at].param, name) != 0)
        at++;
    l->bound_count += at == l->bound_count;
    l->bound[at] = (bound){ name, argument, BUFFERS };
    return &l->bound[at];
}

void planner_bind_rows(const planner *p, launch_draft *l, const char *name, decoder_tensor t,
                       uint64_t row)
{
    const plan_tensor *tensor = planner_tensor(p, t);
    uint64_t before = row * format_bytes(tensor->format, tensor->columns);
    bind_name(l, name,
              (plan_argument){ .memory = tensor->memory,
                               .offset = tensor->offset + before,
                               .said = tensor->name });
}

void planner_bind_tensor(const planner *p, launch_draft *l, const char *name, decoder_tensor t)
{
    if (planner_has(p, t))
        planner_bind_rows(p, l, name, t, 0);
}

void planner_bind_state(launch_draft *l, const char *name, uint64_t offset, const char *said)
{
    bind_name(l, name, (plan_argument){ .memory = PLAN_STATE, .offset = offset, .said = said });
}

buffer_id planner_stream(const planner *p)
{
    return p->branches % 2 ? BUFFER_MIDDLE : BUFFER_H;
}

void planner_bind_buffer(const planner *p, launch_draft *l, const char *name, buffer_id buffer,
                         uint64_t offset)
{
    plan_argument argument = { .memory = PLAN_WORKSPACE,
                               .offset = offset,
                               .said = buffer_lives[buffer].name };
    if (p->exchanged && (buffer == BUFFER_H || buffer == BUFFER_MIDDLE))
        buffer = buffer == BUFFER_H ? BUFFER_MIDDLE : BUFFER_H;
    bind_name(l, name, argument)->buffer = buffer;
}

void planner_bind_number(launch_draft *l, const char *name, int64_t number, const char *said)
{
    bind_name(l, name,
              (plan_argument){ .is_number = true, .number = (uint32_t)number, .said = said });
}

static void bind_rows_of_table(const planner *p, launch_draft *l, const plan_bind *binds)
{
    static const char *const cache_said[2][2] = { { "K", "V" }, { "states", "inputs" } };
    const plan_state *s = &p->plan->state;
    const struct {
        uint64_t offset;
        const char *said;
    } parts[] = {
        [AT_TOKENS] = { s->tokens, "tokens" },
        [AT_POSITIONS] = { s->positions, "positions" },
        [AT_LENGTHS] = { s->lengths, "lengths" },
        [AT_SAMPLING] = { s->sampling, "sampling" },
        [AT_CHOSEN] = { s->chosen, "chosen rows" },
        [AT_CHOSEN_POSITIONS] = { s->chosen_positions, "their positions" },
        [AT_CHOSEN_TOKENS] = { s->chosen_tokens, "their tokens" },
        [AT_HISTORY] = { s->history, "last tokens" },
        [AT_PENALTIES] = { s->penalties, "penalties" },
        [AT_BIASES] = { s->biases, "biases" },
        [AT_MASK] = { s->mask, "mask" },
        [AT_LOGPROBS] = { s->logprobs, "logprobs" },
        [AT_BEST] = { s->best, "best tokens" },
    };
    const decoder_layer *at = &p->d->at[planner_layer(p)];
    for (; binds && binds->param; binds++) {
        unsigned id = binds->id;
        switch (binds->kind) {
        case BIND_BUFFER:
            planner_bind_buffer(p, l, binds->param, (buffer_id)id, 0);
            break;
        case BIND_TENSOR:
            planner_bind_tensor(p, l, binds->param, (decoder_tensor)id);
            break;
        case BIND_STATE:
            planner_bind_state(l, binds->param, parts[id].offset, parts[id].said);
            break;
        case BIND_CACHE:
        case BIND_STATES: {
            bool states = binds->kind == BIND_STATES;
            uint64_t slot = (uint64_t)(states ? decoder_states_slot(p->d, p->layer) : at->cache);
            const plan_cache *part = &p->plan->caches[slot][id];
            bind_name(l, binds->param,
                      (plan_argument){ .memory = part->memory,
                                       .offset = part->offset,
                                       .said = cache_said[states][id] });
            break;
        }
        }
    }
    for (const param *of = l->in.family->params; of->name; of++)
        if (of->data == DATA_SEQUENCES || of->data == DATA_PAGES) {
            bool pages = of->data == DATA_PAGES;
            planner_bind_state(l, of->name, pages ? s->pages : s->sequences,
                               pages ? "page table" : "sequences");
        }
}

/* Aborts after a bug in a plan: a key that the family lacks, or an unbound parameter. */
_Noreturn static void wrong_plan(const char *asked, const char *wrong, const char *name)
{
    fprintf(stderr, "ptxgen: bug in the plan of a step: %s %s %s\n", asked, wrong, name);
    abort();
}

static const key *key_of(const instance *in, const char *name)
{
    const key *k = family_key(in->family, name);
    if (!k)
        wrong_plan(in->family->name, "has no key", name);
    return k;
}

void planner_set(instance *in, const char *name, int64_t value)
{
    instance_set(in, key_of(in, name), value);
}

void planner_set_all(instance *in, const plan_key *keys)
{
    for (; keys->name; keys++)
        if (keys->value || !key_of(in, keys->name)->real)
            planner_set(in, keys->name, keys->value);
}

launch_draft planner_draft(const planner *p, family_id of, const plan_key *keys,
                           const plan_bind *binds)
{
#define SIZE(name)        \
    {                     \
#name, p->d->name \
    }
    const decoder_layer *at = &p->d->at[planner_layer(p)];
    const plan_key sizes[] = { { "head_dim", at->head_dim },
                               { "num_heads", at->num_heads },
                               { "num_kv_heads", at->num_kv_heads },
                               SIZE(max_seq_len),
                               SIZE(kv_type),
                               SIZE(latent),
                               SIZE(value_dim),
                               SIZE(experts),
                               SIZE(experts_used),
                               SIZE(gating),
                               SIZE(activation),
                               { "m", p->m },
                               { "page", plan_ring(p->d, planner_layer(p)) ? 0 : p->d->page },
                               { "state", p->settled ? STATE_SETTLED : STATE_CHANGING } };
#undef SIZE
    launch_draft l = { .in = { .family = families[of], .where = p->where } };
    for (const key *k = l.in.family->keys; k->name; k++)
        instance_set(&l.in, k, instance_default(&l.in, k));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (family_key(l.in.family, sizes[i].name))
            planner_set(&l.in, sizes[i].name, sizes[i].value);
    planner_set_all(&l.in, keys);
    bind_rows_of_table(p, &l, binds);
    return l;
}

static bool suits_all(const planner *p, const instance *in)
{
    bool suits = instance_takes_all(in);
    for (size_t i = 0; suits && i < p->target_count; i++)
        suits = instance_suits(in, p->targets[i]);
    return suits;
}

bool planner_prefers(const planner *p, const instance *in, const instance *to)
{
    return p->plan->model && suits_all(p, in) &&
           p->plan->model->is_faster(in, to, p->targets, p->target_count);
}

/* Tunes a kernel by the cost model, once for equal kernels. */
static void tune(planner *p, instance *in, int64_t rows)
{
    if (!p->plan->model)
        return;
    const char *asked =
        arena_format(p->arena, "%s of %lld", instance_make_name(p->arena, in), (long long)rows);
    size_t number = name_map_find_or_add(p->arena, &p->asked, asked, p->tuned.count);
    if (number == p->tuned.count) {
        p->plan->model->tune(in, rows, p->targets, p->target_count);
        *VEC_PUSH(p->arena, &p->tuned) = *in;
    }
    *in = p->tuned.items[number];
}

bool planner_prefers_rows(planner *p, const instance *ahead, instance *in, instance *to,
                          int64_t rows)
{
    const plan_model *model = p->plan->model;
    if (!model || !suits_all(p, in))
        return false;
    tune(p, in, rows);
    tune(p, to, rows);
    return model->is_worth(ahead, in, to, rows, p->targets, p->target_count);
}

int64_t planner_format(const planner *p, decoder_tensor t)
{
    return instance_weights_index(decoder_format(p->d, t, planner_layer(p)));
}

void planner_set_rows(const planner *p, launch_draft *l, int64_t rows)
{
    instance *in = &l->in;
    bool may_loop = family_key(in->family, "rows");
    if (may_loop)
        planner_set(in, "rows", ROWS_FIXED);
    const key *m = key_of(in, "m");
    int64_t most = m->max;
    for (size_t i = 0; i < p->target_count; i++)
        if (key_most_for(m, p->targets[i]) < most)
            most = key_most_for(m, p->targets[i]);
    int64_t at_once = rows < most ? rows : most;
    planner_set(in, "m", at_once);
    bool fits = launch_fit_stages(in, p->targets, p->target_count);
    bool tiles = in->family->halves; /* the tuner chooses rows of tiles */
    if ((fits && rows <= most && !tiles) || !may_loop)
        return;
    planner_set(in, "rows", ROWS_RUN_TIME);
    for (int64_t fewer = fits ? at_once : at_once / 2; fewer; fewer /= 2) {
        planner_set(in, "m", fewer);
        if (launch_fit_stages(in, p->targets, p->target_count))
            break;
    }
    planner_bind_number(l, "m_val", rows, "m");
}

void planner_reserve(planner *p, buffer_id buffer, int64_t bytes)
{
    if (bytes > p->buffer_bytes[buffer])
        p->buffer_bytes[buffer] = bytes;
}

static const char COUNTERS_SAID[] = "counters";

/* Returns the rows of a launch: the argument m_val, or the kernel's m. */
static int64_t rows_of(const launch_draft *l)
{
    for (size_t i = 0; i < l->bound_count; i++)
        if (strcmp(l->bound[i].param, "m_val") == 0)
            return l->bound[i].argument.number;
    return l->in.shape.m;
}

/* Reports a kernel that violates limits of its family or of a GPU, as the sections of a spec do. */
static void check_kernel(planner *p, const instance *in)
{
    const char *blamed = NULL;
    const char *wrong = in->family->check ? in->family->check(in, p->arena, &blamed) : NULL;
    diag_code code = DIAG_CONFLICT;
    if (!wrong) {
        wrong = launch_problem(p->arena, in, &blamed);
        code = DIAG_LAUNCH_LIMIT;
    }
    if (wrong) {
        diag_error(p->diags, code, p->where, "%s: %s", in->name, wrong);
        return;
    }
    wrong = launch_unfit(p->arena, in, p->targets, p->target_count, NULL);
    if (wrong)
        diag_error(p->diags, DIAG_SHARED_MEMORY, p->where, "%s", wrong);
    for (const key *k = in->family->keys; k->name; k++)
        if (!k->choices && !instance_takes(in, k))
            diag_error(
                p->diags, DIAG_CONFLICT, p->where,
                "%s: %s = %lld is out of range for %s; use a multiple of %lld from %lld to %lld",
                in->name, k->name, (long long)instance_value(in, k), in->family->name,
                (long long)key_multiple(in, k), (long long)key_least(in, k),
                (long long)key_most(in, k));
}

void planner_add(planner *p, launch_draft *l, const char *said)
{
    instance *in = &l->in;
    tune(p, in, rows_of(l));
    if (!p->launches.count)
        p->settled = in->family->launch.overlap != NO_OVERLAP && in->trigger == TRIGGER_WAITED;
    placed_launch *made = VEC_PUSH(p->arena, &p->launches);
    *made = (placed_launch){ .launch = { .layer = p->layer, .said = said }, .kernel = *in };
    param params[MAX_PARAMS];
    made->launch.argument_count = instance_params(p->arena, in, params);
    for (size_t i = 0; i < made->launch.argument_count; i++) {
        const run_values run = { .m = rows_of(l) };
        int64_t bytes = formula_value(params[i].bytes, in, &run); /* negative = decided at launch */
        size_t at = 0;
        while (at < l->bound_count && strcmp(l->bound[at].param, params[i].name) != 0)
            at++;
        const bound *to = at < l->bound_count ? &l->bound[at] : NULL;
        made->buffers[i] = to ? to->buffer : BUFFERS;
        made->launch.arguments[i] =
            to ? to->argument : (plan_argument){ .memory = PLAN_STATE, .said = COUNTERS_SAID };
        if (to && params[i].kind == PARAM_SCRATCH)
            planner_reserve(p, to->buffer, bytes);
        if (!to && params[i].data != DATA_ZEROED)
            wrong_plan(in->family->name, "gets no argument for the parameter", params[i].name);
        if (!to && bytes > p->counters) /* counters that only the kernel uses */
            p->counters = bytes;
    }
}

void planner_launch(planner *p, family_id of, const plan_key *keys, const plan_bind *binds,
                    const char *said)
{
    launch_draft l = planner_draft(p, of, keys, binds);
    planner_add(p, &l, said);
}

void planner_place_buffers(planner *p, plan_step *step, const bool *exchanged)
{
    memory_part parts[BUFFERS];
    for (int i = 0; i < BUFFERS; i++)
        parts[i] =
            (memory_part){ p->buffer_bytes[i], buffer_lives[i].first, buffer_lives[i].last, 0 };
    if (p->exchanges) /* the hidden states between layers are in either */
        parts[BUFFER_MIDDLE].first = PHASE_EMBED, parts[BUFFER_MIDDLE].last = PHASE_LOGITS;
    uint64_t bytes = (uint64_t)memory_plan(p->arena, parts, BUFFERS);
    if (bytes > p->plan->bytes[PLAN_WORKSPACE])
        p->plan->bytes[PLAN_WORKSPACE] = bytes;
    for (int64_t layer = 0; layer <= p->d->layers; layer++)
        step->hidden[layer] = (uint64_t)parts[exchanged[layer] ? BUFFER_MIDDLE : BUFFER_H].offset;
    step->buffers = arena_alloc(p->arena, BUFFERS * sizeof *step->buffers);
    for (int i = 0; i < BUFFERS; i++)
        if (parts[i].bytes)
            step->buffers[step->buffer_count++] =
                (plan_buffer){ buffer_lives[i].name, (uint64_t)parts[i].bytes,
                               (uint64_t)parts[i].offset };
    step->launch_count = p->launches.count;
    step->launches = arena_alloc(p->arena, p->launches.count * sizeof *step->launches);
    for (size_t i = 0; i < p->launches.count; i++) {
        placed_launch *made = &p->launches.items[i];
        instance *in = &made->kernel;
        for (size_t j = 0; j < made->launch.argument_count; j++)
            if (made->buffers[j] != BUFFERS)
                made->launch.arguments[j].offset += (uint64_t)parts[made->buffers[j]].offset;
        in->name = instance_make_name(p->arena, in);
        made->launch.kernel = name_map_find_or_add(p->arena, &p->names, in->name, p->kernels.count);
        if (made->launch.kernel == p->kernels.count) {
            check_kernel(p, in);
            *VEC_PUSH(p->arena, &p->kernels) = *in;
        }
        step->launches[i] = made->launch;
    }
}

void planner_place_counters(planner *p, uint64_t at)
{
    for (size_t s = 0; s < p->plan->step_count; s++)
        for (size_t i = 0; i < p->plan->steps[s].launch_count; i++) {
            plan_launch *l = &p->plan->steps[s].launches[i];
            for (size_t j = 0; j < l->argument_count; j++)
                if (l->arguments[j].said == COUNTERS_SAID)
                    l->arguments[j].offset = at;
        }
}
