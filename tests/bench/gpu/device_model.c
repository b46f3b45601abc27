#include "bench/gpu/device_model.h"

#include <math.h>
#include <string.h>

#include "check/step_model.h"
#include "check/verify_step.h"
#include "family/formula.h"
#include "family/next.h"
#include "family/plan_make.h"

static bool fail(device_model *m, const char *error)
{
    m->gpu->error = error;
    return false;
}

static const kernel *kernel_named(const kernel_set *set, const char *name)
{
    for (size_t i = 0; i < set->kernel_count; i++)
        if (strcmp(set->kernels[i].instance->name, name) == 0)
            return &set->kernels[i];
    return NULL;
}

static run_values run_values_of(const device_model *m, const instance *in, int64_t rows)
{
    return (run_values){ in->shape.k, in->shape.n, rows, (int64_t)m->gpu->sm_count };
}

static size_t dynamic_shared(const instance *in, const run_values *run)
{
    const char *formula = in->family->launch.dynamic_shared;
    return formula ? (size_t)formula_value(formula, in, run) : 0;
}

static bool load_kernels(device_model *m, const kernel_set *set)
{
    const plan *p = m->plan;
    bool *overlapping = arena_zalloc(m->arena, p->kernel_count * sizeof *overlapping);
    m->kernels = arena_zalloc(m->arena, p->kernel_count * sizeof *m->kernels);
    m->instances = arena_zalloc(m->arena, p->kernel_count * sizeof *m->instances);
    m->overlap = overlapping;
    for (size_t i = 0; i < p->kernel_count; i++) {
        const kernel *k = kernel_named(set, p->kernels[i].name);
        if (!k)
            return fail(m, arena_format(m->arena, "there is no kernel %s", p->kernels[i].name));
        const instance *in = m->instances[i] = k->instance;
        run_values run = run_values_of(m, in, p->rows);
        overlapping[i] = k->overlaps && gpu_overlaps(m->gpu);
        if (!gpu_keep(m->gpu, k->ptx, in->name, dynamic_shared(in, &run), &m->kernels[i]))
            return fail(m, arena_format(m->arena, "%s: %s", in->name, m->gpu->error));
    }
    return true;
}

/* The content of a tensor is that of any layer's where it is of the same format. */
static const model_tensor *content_of(const step_model *content, const plan_tensor *t)
{
    for (size_t i = 0; i < content->plan->tensor_count; i++)
        if (content->plan->tensors[i].tensor == t->tensor &&
            content->plan->tensors[i].format == t->format)
            return &content->tensors[i];
    return NULL;
}

static bool fill_weights(device_model *m, const step_model *content)
{
    for (size_t i = 0; i < m->plan->tensor_count; i++) {
        const plan_tensor *t = &m->plan->tensors[i];
        const model_tensor *from = content_of(content, t);
        if (!from)
            return fail(m, arena_format(m->arena, "%s is like no tensor that was made", t->name));
        if (!gpu_copy_in_repeated(m->gpu, m->memory[PLAN_WEIGHTS] + t->offset, t->bytes,
                                  from->bytes, from->stored))
            return false;
    }
    return true;
}

static bool fill_caches(device_model *m, const step_model *content)
{
    const plan *p = m->plan;
    const decoder *d = p->decoder;
    for (int64_t i = 0; i < 2 * d->layers * d->sequences; i++) {
        const plan_cache *part = &p->caches[i / 2 % d->layers][i % 2];
        gpu_address at = m->memory[PLAN_CACHE] + part->offset +
                         (uint64_t)(i / 2 / d->layers) * p->sequence_bytes;
        if (part->bytes && !gpu_copy_in_repeated(m->gpu, at, part->bytes, content->rows[i % 2],
                                                 MODEL_CACHE_ROWS * content->row_bytes))
            return false;
    }
    return true;
}

/* The addresses of sequence 0 for all rows, and the likeliest token. */
static bool fill_state(device_model *m)
{
    const plan *p = m->plan;
    gpu_address state = m->memory[PLAN_STATE];
    size_t rows = (size_t)p->rows, values = 2 * (size_t)p->decoder->layers;
    uint64_t *caches = arena_alloc(m->arena, values * rows * sizeof *caches);
    for (size_t i = 0; i < values * rows; i++)
        caches[i] = m->memory[PLAN_CACHE] + p->caches[i / rows / 2][i / rows % 2].offset;
    uint32_t sampling[DECODER_MOST_ROWS][SAMPLING_WORDS] = { 0 };
    const float all = 1;
    for (size_t i = 0; i < rows; i++)
        memcpy(&sampling[i][SAMPLING_TOP_P], &all, sizeof all);
    return gpu_fill(m->gpu, state, 0, p->bytes[PLAN_STATE]) &&
           gpu_copy_in(m->gpu, state + p->state.caches, caches, values * rows * sizeof *caches) &&
           gpu_copy_in(m->gpu, state + p->state.sampling, sampling, rows * sizeof *sampling);
}

/* A model of the fewest layers that have all kernels. */
static bool fill(device_model *m, const target *t)
{
    arena *scratch = arena_new();
    diags ignored = diags_new(scratch);
    chosen_layers chosen = verify_choose_layers(scratch, m->plan);
    const decoder *d = verify_reduced_decoder(scratch, m->plan->decoder, &chosen);
    const plan *reduced = plan_make(scratch, d, (location){ 0 }, &t, 1, m->plan->model, &ignored);
    bool filled = reduced || fail(m, "some layers of it have no plan");
    if (filled) {
        step_model content = step_model_new(scratch, reduced, 1);
        filled = fill_weights(m, &content) && fill_caches(m, &content) && fill_state(m) &&
                 gpu_wait(m->gpu);
    }
    arena_free(scratch);
    return filled;
}

bool device_model_make(arena *a, gpu *g, const kernel_set *set, const target *t, device_model *m)
{
    *m = (device_model){ .arena = a, .gpu = g, .plan = set->plan };
    if (!load_kernels(m, set))
        return false;
    for (int i = 0; i < PLAN_MEMORIES; i++)
        if (!gpu_alloc(g, m->plan->bytes[i], &m->memory[i]))
            return false;
    return fill(m, t);
}

void device_model_free(device_model *m)
{
    for (size_t i = 0; m->kernels && i < m->plan->kernel_count; i++)
        gpu_drop(m->gpu, &m->kernels[i]);
    for (int i = 0; i < PLAN_MEMORIES; i++)
        if (m->memory[i])
            gpu_free(m->gpu, m->memory[i]);
}

static uint32_t token_at(const device_model *m, int64_t position)
{
    enum { APART = 7919 };
    return (uint32_t)(position * APART % m->plan->decoder->vocab);
}

bool device_model_set_rows(device_model *m, int64_t rows, int64_t position)
{
    const plan_state *s = &m->plan->state;
    gpu_address state = m->memory[PLAN_STATE];
    uint32_t tokens[DECODER_MOST_ROWS], positions[DECODER_MOST_ROWS], lengths[DECODER_MOST_ROWS];
    for (int64_t i = 0; i < rows; i++) {
        tokens[i] = token_at(m, position + i);
        positions[i] = (uint32_t)(position + i);
        lengths[i] = positions[i] + 1;
    }
    size_t bytes = (size_t)rows * sizeof *tokens;
    return gpu_copy_in(m->gpu, state + s->tokens, tokens, bytes) &&
           gpu_copy_in(m->gpu, state + s->positions, positions, bytes) &&
           gpu_copy_in(m->gpu, state + s->lengths, lengths, bytes);
}

static bool launch_one(device_model *m, const plan_step *s, const plan_launch *l)
{
    bool first = l == s->launches; /* behind launches that may not wait for those ahead of them */
    const instance *in = m->instances[l->kernel];
    const launch *how = &in->family->launch;
    run_values run = run_values_of(m, in, s->m);
    gpu_address addresses[MAX_PARAMS];
    uint32_t numbers[MAX_PARAMS];
    void *params[MAX_PARAMS];
    size_t left_out = m->no_next ? next_param(m->arena, in) : MAX_PARAMS;
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        params[i] = argument->is_number ? (void *)&numbers[i] : (void *)&addresses[i];
        numbers[i] = argument->number;
        bool none = argument->is_number || i == left_out;
        addresses[i] = none ? 0 : m->memory[argument->memory] + argument->offset;
    }
    gpu_grid grid = { .threads = (unsigned)formula_value(how->block, in, &run),
                      .dynamic_shared = dynamic_shared(in, &run),
                      .early = !first && !m->no_overlap && m->overlap[l->kernel] };
    for (int i = 0; i < 3; i++)
        grid.blocks[i] = (unsigned)formula_value(how->grid[i], in, &run);
    gpu_use(m->gpu, &m->kernels[l->kernel]);
    return gpu_launch(m->gpu, &grid, params);
}

bool device_model_launch(device_model *m, const plan_step *s, int64_t only)
{
    for (size_t i = 0; i < s->launch_count; i++)
        if ((only == EVERY_KERNEL || s->launches[i].kernel == (size_t)only) &&
            !launch_one(m, s, &s->launches[i]))
            return fail(m,
                        arena_format(m->arena, "launch %zu, %s: %s", i + 1,
                                     m->plan->kernels[s->launches[i].kernel].name, m->gpu->error));
    return true;
}

static bool read_word(device_model *m, uint64_t offset, uint32_t *word)
{
    return gpu_copy_out(m->gpu, word, m->memory[PLAN_STATE] + offset, sizeof *word);
}

/* Runs a step; the logits of its last row. */
static float *run(device_model *m, const plan_step *s, int64_t position)
{
    const plan *p = m->plan;
    size_t row_bytes = (size_t)p->decoder->vocab * sizeof(float);
    float *logits = arena_alloc(m->arena, row_bytes);
    gpu_address last =
        m->memory[PLAN_STATE] + p->state.logits + (uint64_t)(s->logits_rows - 1) * row_bytes;
    bool ran = device_model_set_rows(m, s->m, position) &&
               device_model_launch(m, s, EVERY_KERNEL) && gpu_wait(m->gpu) &&
               gpu_copy_out(m->gpu, logits, last, row_bytes);
    return ran ? logits : NULL;
}

static const char *judge_next(device_model *m, const plan_step *s, const float *logits,
                              int64_t position)
{
    uint32_t next, token, largest = 0, vocab = (uint32_t)m->plan->decoder->vocab;
    uint64_t row = s->sampled_rows == 1 ? 0 : (uint64_t)(s->m - 1) * sizeof token;
    if (!read_word(m, m->plan->state.tokens + row, &token) ||
        !read_word(m, m->plan->state.positions + row, &next))
        return m->gpu->error;
    for (uint32_t i = 0; i < vocab; i++) {
        if (!isfinite(logits[i]))
            return arena_format(m->arena, "logit %u is %g", i, (double)logits[i]);
        largest = logits[i] > logits[largest] ? i : largest;
    }
    if (token != largest)
        return arena_format(m->arena, "the token is %u, the likeliest one %u", token, largest);
    if (next != position + s->m)
        return arena_format(m->arena, "the next position is %u, expected %lld", next,
                            (long long)(position + s->m));
    return NULL;
}

/* The last of several tokens once more, by itself. */
static const char *judge_alone(device_model *m, const plan_step *one, const float *of_several,
                               int64_t position)
{
    const float *alone = run(m, one, position);
    const char *wrong = alone ? judge_next(m, one, alone, position) : m->gpu->error;
    if (!wrong && memcmp(alone, of_several, (size_t)m->plan->decoder->vocab * sizeof *alone) != 0)
        wrong = "a token alone has other logits than as the last of several";
    return wrong;
}

const char *device_model_judge(device_model *m, int64_t position)
{
    const plan *p = m->plan;
    const plan_step *one = &p->steps[0];
    for (const plan_step *s = p->steps; s < p->steps + p->step_count; s++) {
        const float *logits = run(m, s, position);
        const char *wrong = logits ? judge_next(m, s, logits, position) : m->gpu->error;
        if (!wrong && one->m == 1 && s->m > 1 && !decoder_is_prompt(s->m))
            wrong = judge_alone(m, one, logits, position + s->m - 1);
        if (wrong)
            return arena_format(m->arena, "the step of %lld: %s", (long long)s->m, wrong);
    }
    return NULL;
}
