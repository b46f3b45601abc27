#include "bench/gpu/device_model.h"

#include <math.h>
#include <string.h>

#include "bench/gpu/variants.h"
#include "model/check/step_model.h"
#include "model/check/verify_model.h"
#include "kernel/formula.h"
#include "model/plan/plan.h"
#include "model/decoder.h"
#include "ref/reference.h"

static bool fail(device_model *m, const char *error)
{
    m->gpu->error = error;
    return false;
}

/* Returns the factor of a memory's size and offsets: the number of pages, or 1. */
static uint64_t places(const plan *p, plan_memory memory)
{
    return memory == PLAN_PAGES ? (uint64_t)(p->decoder->sequences * plan_pages(p->decoder)) : 1;
}

/* Returns the bytes of a part of the cache, for all sequences. */
static uint64_t pool_bytes(const plan *p, const plan_cache *part)
{
    return part->bytes *
           (part->memory == PLAN_PAGES ? places(p, PLAN_PAGES) : (uint64_t)p->decoder->sequences);
}

/* A launch with its parameters, prepared so that the host only calls the driver. */
typedef struct device_launch {
    gpu_grid grid;
    gpu_address addresses[MAX_PARAMS];
    uint32_t numbers[MAX_PARAMS];
    void *params[MAX_PARAMS];
} device_launch;

static size_t dynamic_shared(const instance *in, const run_values *run)
{
    const char *formula = in->family->launch.dynamic_shared;
    return formula ? (size_t)formula_value(formula, in, run) : 0;
}

static void prepare_launch(device_model *m, const plan_step *s, const plan_launch *l,
                           const instance *in, device_launch *to)
{
    const launch *how = &in->family->launch;
    run_values run = { in->shape.k, in->shape.n, s->m, (int64_t)m->gpu->sm_count };
    bool first = l == s->launches; /* must not overlap: its predecessor may not have waited for
                                      earlier launches */
    to->grid = (gpu_grid){ .threads = (unsigned)formula_value(how->block, in, &run),
                           .dynamic_shared = dynamic_shared(in, &run),
                           .early = !first && m->overlap[l->kernel] };
    for (int i = 0; i < 3; i++)
        to->grid.blocks[i] = (unsigned)formula_value(how->grid[i], in, &run);
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        to->params[i] = argument->is_number ? (void *)&to->numbers[i] : (void *)&to->addresses[i];
        to->numbers[i] = argument->number;
        if (!argument->is_number)
            to->addresses[i] =
                m->memory[argument->memory] + argument->offset * places(m->plan, argument->memory);
    }
}

/* Loads the kernels of steps of at most `rows` rows, and prepares their launches. */
static bool load_steps(device_model *m, const kernel_set *set, int64_t rows)
{
    const plan *p = m->plan;
    const instance **instances = arena_zalloc(m->arena, p->kernel_count * sizeof *instances);
    m->overlap = arena_zalloc(m->arena, p->kernel_count * sizeof *m->overlap);
    m->kernels = arena_zalloc(m->arena, p->kernel_count * sizeof *m->kernels);
    m->launches = arena_zalloc(m->arena, p->step_count * sizeof *m->launches);
    for (size_t i = 0; i < p->kernel_count; i++) {
        if (!plan_uses(p, i, rows))
            continue;
        const kernel *k = kernel_named(set, p->kernels[i].name);
        if (!k)
            return fail(m, arena_format(m->arena, "there is no kernel %s", p->kernels[i].name));
        const instance *in = instances[i] = k->instance; /* includes choices that depend on the
                                                            target */
        run_values run = { in->shape.k, in->shape.n, p->rows, (int64_t)m->gpu->sm_count };
        m->overlap[i] = k->overlaps && gpu_overlaps(m->gpu);
        if (!gpu_keep(m->gpu, k->ptx, in->name, dynamic_shared(in, &run), &m->kernels[i]))
            return fail(m, arena_format(m->arena, "%s: %s", in->name, m->gpu->error));
    }
    for (size_t s = 0; s < p->step_count && p->steps[s].m <= rows; s++) {
        const plan_step *step = &p->steps[s];
        m->launches[s] = arena_zalloc(m->arena, step->launch_count * sizeof **m->launches);
        for (size_t i = 0; i < step->launch_count; i++)
            prepare_launch(m, step, &step->launches[i], instances[step->launches[i].kernel],
                           &m->launches[s][i]);
    }
    return true;
}

/* Returns the content for a tensor: that of the same tensor and format in any layer. Returns NULL
 * if there is none. */
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
            return fail(m, arena_format(m->arena, "no content was made for %s", t->name));
        if (!gpu_copy_in_repeated(m->gpu, m->memory[t->memory] + t->offset, t->bytes, from->bytes,
                                  from->stored))
            return false;
    }
    return true;
}

static bool fill_caches(device_model *m, const step_model *content)
{
    const plan *p = m->plan;
    const decoder *d = p->decoder;
    for (int64_t i = 0; i < 2 * decoder_slots(d); i++) {
        int64_t slot = i / 2;
        bool states = slot >= d->layers || !d->at[slot].attends;
        const plan_cache *part = &p->caches[slot][i % 2];
        gpu_address at = m->memory[part->memory] + part->offset * places(p, part->memory);
        const void *state = i % 2 ? content->inputs : content->states;
        const void *from = states ? state : content->rows[i % 2];
        if (part->bytes &&
            !gpu_copy_in_repeated(m->gpu, at, pool_bytes(p, part), from,
                                  states ? part->bytes : step_model_pattern(content, slot)))
            return false;
    }
    return true;
}

/* Gives all rows sequence 0, numbers the pages and makes sampling choose the likeliest token. */
static bool fill_state(device_model *m)
{
    const plan *p = m->plan;
    gpu_address state = m->memory[PLAN_STATE];
    uint32_t count = plan_pages(p->decoder) ? (uint32_t)places(p, PLAN_PAGES) : 0;
    uint32_t *pages = arena_alloc(m->arena, (count + 1) * sizeof *pages);
    for (uint32_t i = 0; i < count; i++)
        pages[i] = i;
    size_t sequences = (size_t)p->decoder->sequences;
    uint32_t(*sampling)[SAMPLING_WORDS] = arena_zalloc(m->arena, sequences * sizeof *sampling);
    const float all = 1;
    for (size_t i = 0; i < sequences; i++)
        memcpy(&sampling[i][SAMPLING_TOP_P], &all, sizeof all);
    return gpu_fill(m->gpu, state, 0, p->bytes[PLAN_STATE]) &&
           (!count || gpu_copy_in(m->gpu, state + p->state.pages, pages, count * sizeof *pages)) &&
           gpu_copy_in(m->gpu, state + p->state.sampling, sampling, sequences * sizeof *sampling);
}

/* Fills the memory with the content of a reduced model: the fewest layers that use all kernels. */
static bool fill(device_model *m, const target *t)
{
    arena *scratch = arena_new();
    diags ignored = diags_new(scratch);
    chosen_layers chosen = verify_choose_layers(scratch, m->plan);
    const decoder *d = verify_reduced_decoder(scratch, m->plan->decoder, &chosen);
    const plan *reduced = plan_make(scratch, d, (location){ 0 }, &t, 1, m->plan->model, &ignored);
    bool filled = reduced || fail(m, "the reduced model has no plan");
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
    *m = (device_model){ .arena = a, .gpu = g, .plan = set->plan, .owns_memory = true };
    for (int i = 0; i < PLAN_HOST; i++)
        if (m->plan->bytes[i] || i != PLAN_PAGES)
            if (!gpu_alloc(g, m->plan->bytes[i] * places(m->plan, (plan_memory)i), &m->memory[i]))
                return false;
    uint64_t on_host = m->plan->bytes[PLAN_HOST];
    if (on_host && !gpu_alloc_host(g, on_host, &m->host, &m->memory[PLAN_HOST]))
        return false;
    return load_steps(m, set, m->plan->rows) && fill(m, t);
}

bool device_model_make_variant(const device_model *of, const kernel_set *set, device_model *m)
{
    *m = (device_model){ .arena = of->arena, .gpu = of->gpu, .plan = set->plan };
    memcpy(m->memory, of->memory, sizeof m->memory);
    bool same = m->plan->tensor_count == of->plan->tensor_count;
    for (int i = 0; i < PLAN_MEMORIES; i++)
        same &= m->plan->bytes[i] == of->plan->bytes[i];
    for (size_t i = 0; same && i < m->plan->tensor_count; i++)
        same = m->plan->tensors[i].offset == of->plan->tensors[i].offset;
    if (!same)
        return fail(m, "its memory layout differs from the usual model");
    return load_steps(m, set, DECODER_FEW_ROWS);
}

void device_model_free(device_model *m)
{
    for (size_t i = 0; m->kernels && i < m->plan->kernel_count; i++)
        gpu_drop(m->gpu, &m->kernels[i]);
    for (int i = 0; i < PLAN_HOST && m->owns_memory; i++)
        if (m->memory[i])
            gpu_free(m->gpu, m->memory[i]);
    if (m->host)
        gpu_free_host(m->gpu, m->host);
}

static uint32_t token_at(const device_model *m, int64_t position)
{
    enum { APART = 7919 };
    return (uint32_t)(position * APART % m->plan->decoder->vocab);
}

/* Words of a row, and the lists of tiles. */
enum {
    ROW_TOKEN,
    ROW_POSITION,
    ROW_LENGTH,
    ROW_TILES,
    MOST_WORDS = ROW_TILES + PROBLEM_MOST_TILES
};

static size_t row_words(const device_model *m)
{
    return ROW_TILES + m->plan->tile_count;
}

/* Returns the place of a word of all rows. */
static gpu_address place_of_word(const device_model *m, size_t word)
{
    const plan_state *s = &m->plan->state;
    const uint64_t places[ROW_TILES] = { s->tokens, s->positions, s->lengths };
    return m->memory[PLAN_STATE] +
           (word < ROW_TILES ? places[word] : m->plan->tiles[word - ROW_TILES].offset);
}

/* Fills the rows of a step, [row_words][rows]. The first `none` rows are padding. */
static void fill_rows(const device_model *m, int64_t rows, int64_t none, int64_t position,
                      uint32_t *words)
{
    static const uint32_t sequences[PROBLEM_MOST_ROWS];
    for (int64_t i = 0; i < rows; i++) {
        bool is_none = i < none;
        uint32_t at = is_none ? UINT32_MAX : (uint32_t)(position + i - none);
        words[ROW_TOKEN * rows + i] = is_none ? UINT32_MAX : token_at(m, at);
        words[ROW_POSITION * rows + i] = at;
        words[ROW_LENGTH * rows + i] = at + 1;
    }
    for (size_t i = 0; i < m->plan->tile_count; i++)
        plan_list_tiles(&m->plan->tiles[i], sequences, words + ROW_POSITION * rows, (size_t)rows,
                        words + (ROW_TILES + (int64_t)i) * rows);
}

bool device_model_set_rows(device_model *m, int64_t rows, int64_t position)
{
    uint32_t words[MOST_WORDS * PROBLEM_MOST_ROWS];
    size_t bytes = (size_t)rows * sizeof *words;
    bool copied = true;
    fill_rows(m, rows, 0, position, words);
    for (size_t word = 0; copied && word < row_words(m); word++)
        copied = gpu_copy_in(m->gpu, place_of_word(m, word), words + word * (size_t)rows, bytes);
    return copied;
}

bool device_model_has(const device_model *m, size_t number)
{
    return !m->without || !strstr(m->plan->kernels[number].family->name, m->without);
}

static bool launch_one(device_model *m, const plan_step *s, size_t i)
{
    device_launch *l = &m->launches[s - m->plan->steps][i];
    size_t number = s->launches[i].kernel;
    gpu_grid grid = l->grid;
    const char *name = m->plan->kernels[number].family->name;
    grid.early &= !m->no_overlap && !(m->no_overlap_of && strcmp(m->no_overlap_of, name) == 0);
    gpu_use(m->gpu, &m->kernels[number]);
    return gpu_launch(m->gpu, &grid, l->params) ||
           fail(m, arena_format(m->arena, "launch %zu, %s: %s", i + 1,
                                m->plan->kernels[number].name, m->gpu->error));
}

bool device_model_launch(device_model *m, const plan_step *s, int64_t only)
{
    for (size_t i = 0; i < s->launch_count; i++) {
        size_t number = s->launches[i].kernel;
        bool wanted = only == EVERY_KERNEL || number == (size_t)only;
        if (wanted && device_model_has(m, number) && !launch_one(m, s, i))
            return false;
    }
    return true;
}

bool device_model_launch_up_to(device_model *m, const plan_step *s, size_t number)
{
    size_t count = s->launch_count;
    while (count && s->launches[count - 1].kernel != number)
        count--;
    for (size_t i = 0; i < count; i++)
        if (!launch_one(m, s, i))
            return false;
    return gpu_wait(m->gpu);
}

static bool read_word(device_model *m, uint64_t offset, uint32_t *word)
{
    return gpu_copy_out(m->gpu, word, m->memory[PLAN_STATE] + offset, sizeof *word);
}

/* Returns the logits of the last row of a launched step, or NULL if a call failed. */
static float *logits_of(device_model *m, const plan_step *s)
{
    size_t row_bytes = (size_t)m->plan->decoder->vocab * sizeof(float);
    float *logits = arena_alloc(m->arena, row_bytes);
    gpu_address last =
        m->memory[PLAN_STATE] + m->plan->state.logits + (uint64_t)(s->logits_rows - 1) * row_bytes;
    return gpu_wait(m->gpu) && gpu_copy_out(m->gpu, logits, last, row_bytes) ? logits : NULL;
}

static float *run(device_model *m, const plan_step *s, int64_t position)
{
    bool ran = device_model_set_rows(m, s->m, position) && device_model_launch(m, s, EVERY_KERNEL);
    return ran ? logits_of(m, s) : NULL;
}

/* Checks logits, token and next position of a step. `after` is the position after its last token.
 */
static const char *judge_next(device_model *m, const plan_step *s, const float *logits,
                              int64_t after)
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
        return arena_format(m->arena, "the token is %u, the likeliest is %u", token, largest);
    if (next != after)
        return arena_format(m->arena, "the next position is %u, expected %lld", next,
                            (long long)after);
    return NULL;
}

/* Returns the cache followed by the pages. */
static uint8_t *caches_of(device_model *m)
{
    const plan *p = m->plan;
    uint64_t cache = p->bytes[PLAN_CACHE], pages = p->bytes[PLAN_PAGES] * places(p, PLAN_PAGES);
    uint8_t *bytes = arena_alloc(m->arena, cache + pages);
    bool copied = (!cache || gpu_copy_out(m->gpu, bytes, m->memory[PLAN_CACHE], cache)) &&
                  (!pages || gpu_copy_out(m->gpu, bytes + cache, m->memory[PLAN_PAGES], pages));
    return copied ? bytes : NULL;
}

/* Returns a text that names the first layer whose cache differs, and its differing bytes. */
static const char *first_difference(const device_model *m, const uint8_t *first, const uint8_t *now)
{
    const decoder *d = m->plan->decoder;
    for (int64_t i = 0; i < 2 * decoder_slots(d); i++) {
        const plan_cache *part = &m->plan->caches[i / 2][i % 2];
        size_t at = 0, last = 0, count = 0, bytes = pool_bytes(m->plan, part);
        size_t start = (part->memory == PLAN_PAGES ? m->plan->bytes[PLAN_CACHE] : 0) +
                       part->offset * places(m->plan, part->memory);
        for (size_t byte = bytes; byte-- > 0;)
            if (first[start + byte] != now[start + byte]) {
                at = byte;
                last = count++ ? last : byte;
            }
        if (count)
            return arena_format(m->arena, "%s of layer %lld, bytes %zu to %zu of %zu, %zu of them",
                                i % 2 ? "V" : "K", (long long)(i / 2), at, last, bytes, count);
    }
    return "no cache";
}

/* Runs several tokens, then the last of them alone, and returns a text that names the first
 * difference in the caches. */
static const char *difference_alone(device_model *m, const plan_step *s, int64_t position)
{
    if (position < 0) /* the last step of a prompt, with padding rows */
        return "some layer";
    const uint8_t *of_several = run(m, s, position) ? caches_of(m) : NULL;
    const float *alone = of_several ? run(m, &m->plan->steps[0], position + s->m - 1) : NULL;
    const uint8_t *of_one = alone ? caches_of(m) : NULL;
    return of_one ? first_difference(m, of_several, of_one) : m->gpu->error;
}

/* Runs the last of several tokens once more, alone. Returns a message if its results are wrong or
 * differ. */
static const char *judge_alone(device_model *m, const plan_step *s, const float *of_several,
                               int64_t position)
{
    const plan_step *one = &m->plan->steps[0];
    int64_t last = position + s->m - 1;
    const float *alone = run(m, one, last);
    const char *wrong = alone ? judge_next(m, one, alone, last + 1) : m->gpu->error;
    if (!wrong && memcmp(alone, of_several, (size_t)m->plan->decoder->vocab * sizeof *alone) != 0)
        wrong = arena_format(
            m->arena,
            "a token has other logits alone than as the last of several; caches first differ in %s",
            difference_alone(m, s, position));
    return wrong;
}

bool device_model_runs_again(const device_model *m)
{
    return decoder_first_layer(m->plan->decoder, PART_RECURRENT) < 0;
}

/* Returns true if a step's last token must have the same bits when it runs alone. */
static bool must_match_alone(const device_model *m, const plan_step *s)
{
    return m->plan->steps[0].m == 1 && s->m > 1 && !decoder_is_prompt(s->m) &&
           device_model_runs_again(m);
}

const char *device_model_judge(device_model *m, int64_t position)
{
    const plan *p = m->plan;
    for (size_t i = 0; i < p->step_count && m->launches[i]; i++) {
        const plan_step *s = &p->steps[i];
        const float *logits = run(m, s, position);
        const char *wrong = logits ? judge_next(m, s, logits, position + s->m) : m->gpu->error;
        if (!wrong && must_match_alone(m, s))
            wrong = judge_alone(m, s, logits, position);
        if (wrong)
            return arena_format(m->arena, "the step of %lld: %s", (long long)s->m, wrong);
    }
    return NULL;
}

const char *device_model_judge_variant(device_model *m, device_model *of, int64_t position)
{
    const char *wrong = device_model_judge(m, position);
    for (size_t i = 0;
         !wrong && i < m->plan->step_count && m->launches[i] && device_model_runs_again(m); i++) {
        const float *other = run(of, &of->plan->steps[i], position),
                    *logits = other ? run(m, &m->plan->steps[i], position) : NULL;
        if (!logits)
            wrong = m->gpu->error;
        else if (memcmp(logits, other, (size_t)m->plan->decoder->vocab * sizeof *logits) != 0)
            wrong = arena_format(m->arena, "the step of %lld has other logits than the usual step",
                                 (long long)m->plan->steps[i].m);
    }
    return wrong;
}

bool device_model_repeat(device_model *m, const plan_step *s, int64_t position, size_t turns,
                         repeats *r)
{
    size_t bytes = (size_t)m->plan->decoder->vocab * sizeof(float);
    const float *first = run(m, s, position);
    const uint8_t *caches = first ? caches_of(m) : NULL, *left = caches;
    arena *usual = m->arena, *of_turn = arena_new_in(usual);
    *r = (repeats){ .turns = turns };
    for (size_t i = 0; i < turns && left; i++) {
        arena_reset(of_turn);
        m->arena = of_turn;
        const float *now = run(m, s, position);
        m->arena = usual;
        if (!now)
            left = NULL;
        else if (memcmp(now, first, bytes) != 0 && !r->differing++) {
            left = caches_of(m);
            r->where = left ? first_difference(m, caches, left) : NULL;
        }
    }
    arena_free(of_turn);
    return left;
}

/* Returns the step for the next tokens, chosen like a header's ptxgen_step_for. */
static const plan_step *step_for(const plan *p, int64_t tokens)
{
    size_t i = 0;
    while (i + 1 < p->step_count && p->steps[i].m < tokens)
        i++;
    while (i > 0 && tokens < p->steps[i].m / 4)
        i--;
    return &p->steps[i];
}

bool device_prompt_make(device_model *m, int64_t tokens, device_prompt *prompt)
{
    VEC(const plan_step *) steps = { 0 };
    VEC(uint32_t) words = { 0 };
    for (int64_t position = 0; position < tokens;) {
        const plan_step *s = step_for(m->plan, tokens - position);
        int64_t taken = tokens - position < s->m ? tokens - position : s->m;
        uint32_t rows[MOST_WORDS * PROBLEM_MOST_ROWS];
        fill_rows(m, s->m, s->m - taken, position, rows);
        *VEC_PUSH(m->arena, &steps) = s;
        for (int64_t i = 0; i < (int64_t)row_words(m) * s->m; i++)
            *VEC_PUSH(m->arena, &words) = rows[i];
        position += taken;
    }
    *prompt = (device_prompt){ .tokens = tokens, .steps = steps.items, .step_count = steps.count };
    size_t bytes = words.count * sizeof *words.items;
    return gpu_alloc(m->gpu, bytes, &prompt->rows) &&
           gpu_copy_in(m->gpu, prompt->rows, words.items, bytes);
}

void device_prompt_free(device_model *m, device_prompt *p)
{
    if (p->rows)
        gpu_free(m->gpu, p->rows);
}

bool device_prompt_launch(device_model *m, const device_prompt *p)
{
    gpu_address from = p->rows;
    for (size_t i = 0; i < p->step_count; i++) {
        size_t bytes = (size_t)p->steps[i]->m * sizeof(uint32_t);
        for (size_t word = 0; word < row_words(m); word++, from += bytes)
            if (!gpu_copy(m->gpu, place_of_word(m, word), from, bytes))
                return false;
        if (!device_model_launch(m, p->steps[i], EVERY_KERNEL))
            return false;
    }
    return true;
}

const char *device_prompt_judge(device_model *m, const device_prompt *p)
{
    const plan_step *last = p->steps[p->step_count - 1];
    const float *logits = device_prompt_launch(m, p) ? logits_of(m, last) : NULL;
    const char *wrong = logits ? judge_next(m, last, logits, p->tokens) : m->gpu->error;
    bool same_bits = true;
    for (size_t i = 0; i < p->step_count; i++)
        same_bits &= !decoder_is_prompt(p->steps[i]->m);
    if (!wrong && same_bits && must_match_alone(m, last))
        wrong = judge_alone(m, last, logits, p->tokens - last->m);
    return wrong ? arena_format(m->arena, "a prompt of %lld: %s", (long long)p->tokens, wrong)
                 : NULL;
}
