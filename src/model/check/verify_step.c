/* Trials. Each runs one or several sequences, from the first token on or after random rows of K and
 * V: positions around a window's edge are tested without thousands of steps. Cache rows after the
 * last token are NaN. One step runs on the state that the preceding step left, as in a captured
 * graph. The last of m tokens also runs alone: its logits must have the same bits. With a large
 * vocabulary, only single-token steps from the first position on compute all logits and sample a
 * token; the others run some blocks. */
#include "model/check/verify_model.h"

#include <math.h>
#include <string.h>

#include "base/os_process.h"
#include "model/check/step_router.h"
#include "model/check/step_trial.h"

enum {
    FAR = 601,              /* a position after several chunks of a sequence */
    FEW_TOKENS = 16,        /* tokens of a step with large products */
    SEVERAL_APART = 37,     /* distance between the positions of several sequences */
    LARGE_OUTPUT = 1 << 26, /* weights of a logits' product of which only some blocks run */
};

static bool run_launches(step_trial *t, const plan_step *step, const step_rows *r,
                         const step_expected *e)
{
    step_traffic traffic = step_traffic_new(t);
    bool counts = !decoder_is_prompt(step->m); /* each tile of a prompt's rows loads all weights */
    for (size_t i = 0; i < step->launch_count; i++) {
        const plan_launch *l = &step->launches[i];
        bool last = i + 1 == step->launch_count || l[1].layer != l->layer;
        if (!step_run_launch(t, l, r))
            return false;
        step_traffic_add_launch(&traffic, t, l);
        if (!last || l->layer >= t->v->plan->decoder->layers)
            continue;
        if (!step_judge_layer(t, step, r, e, l->layer))
            return false;
        if (counts)
            step_traffic_add_layer(&traffic, t, r, l->layer);
    }
    if (counts)
        t->result.weights_read = fmax(t->result.weights_read, step_bytes_times(traffic.weights));
    t->result.caches.read += traffic.caches.read;
    t->result.caches.needed += traffic.caches.needed;
    return step_judge_logits(t, step, r, e) && (t->in_part || step_judge_state(t, step, r));
}

static void add_row(step_rows *r, ref_row row, uint64_t position)
{
    r->is_row[r->m] = true;
    r->rows[r->m] = r->fed[r->fed_count++] = row;
    r->positions[r->m] = (uint32_t)position;
    r->lengths[r->m++] = (uint32_t)position + 1;
}

static void add_no_row(step_rows *r)
{
    r->is_row[r->m] = false;
    r->rows[r->m] = (ref_row){ 0, UINT32_MAX };
    r->positions[r->m] = UINT32_MAX;
    r->lengths[r->m++] = 0;
}

static uint32_t random_token(step_trial *t)
{
    return (uint32_t)random_below(&t->random, (uint64_t)t->v->plan->decoder->vocab);
}

/* Feeds a row to both references. If rounding could change the token's experts, tries other tokens,
 * or with others = false undoes the row and returns false. */
static bool feed_row(step_trial *t, ref_row *row, bool others, double *const hidden[2])
{
    enum { MOST_DRAWS = 200 };
    for (int i = 0; i < MOST_DRAWS; i++) {
        ref_step_feed(t->rounded, row, 1, NULL, hidden[0]);
        if (step_may_be_clear(t->v->plan->decoder, t->rounded, t->noise)) {
            ref_step_feed(t->exact, row, 1, NULL, hidden[1]);
            if (step_is_clear(t->v->plan->decoder, t->rounded, t->exact, t->noise))
                return true;
            ref_step_undo(t->exact);
        }
        ref_step_undo(t->rounded);
        if (!others)
            break;
        row->token = random_token(t);
    }
    return false;
}

/* Runs the references on the rows. Returns false if their experts are not clear. */
static bool feed_references(step_trial *t, const plan_step *step, step_rows *r, bool others,
                            step_expected *e)
{
    const decoder *d = t->v->plan->decoder;
    ref_step *const both[] = { t->rounded, t->exact };
    bool attends_in_f16 = false;
    for (size_t i = 0; i < step->launch_count; i++) {
        const instance *in = &t->v->plan->kernels[step->launches[i].kernel];
        operation op = in->family->op;
        attends_in_f16 |=
            in->options.halves ||
            (in->family->halves && (op == OP_BATCHED_ATTENTION || op == OP_PROMPT_ATTENTION));
    }
    ref_step_set_rows(t->rounded, step->m, attends_in_f16);
    size_t hidden = (size_t)(d->layers + 1) * (size_t)d->hidden;
    for (int i = 0; i < 2; i++) {
        e->logits[i] =
            arena_alloc(t->scratch, r->fed_count * (size_t)d->vocab * sizeof *e->logits[i]);
        e->hidden[i] = arena_alloc(t->scratch, r->fed_count * hidden * sizeof *e->hidden[i]);
        if (!d->experts)
            ref_step_feed(both[i], r->fed, r->fed_count, NULL, e->hidden[i]);
    }
    for (size_t i = 0; d->experts && i < r->fed_count; i++)
        if (!feed_row(t, &r->fed[i], others,
                      (double *[]){ e->hidden[0] + i * hidden, e->hidden[1] + i * hidden }))
            return false;
    for (size_t i = 0, fed = 0; i < r->m; i++)
        if (r->is_row[i])
            r->rows[i] = r->fed[fed++];
    for (int i = 0; i < 2; i++)
        ref_step_logits(both[i], e->hidden[i], r->fed_count, e->logits[i]);
    return true;
}

static bool run_step(step_trial *t, const plan_step *step, const step_rows *r,
                     const step_expected *e, bool from_the_state)
{
    t->result.positions += r->fed_count;
    if (!from_the_state)
        step_write_state(t, r);
    bool overlaps =
        step_should_overlap(t, step) && !step_any_launch(t, step, step_product_is_large);
    const emu_snapshot *before = overlaps ? emu_snapshot_new(t->scratch, t->memory) : NULL;
    return run_launches(t, step, r, e) && (!before || step_overlap(t, step, r, before));
}

static bool run_any(step_trial *t, const plan_step *step, step_rows *r)
{
    step_expected e;
    if (feed_references(t, step, r, true, &e))
        return run_step(t, step, r, &e, false);
    return step_reject(t,
                       "%s: no token was found whose experts lead clearly enough for a comparison",
                       step_name(t, r));
}

static const plan_step *step_of_one(const plan *p)
{
    return p->steps[0].m == 1 ? &p->steps[0] : NULL;
}

static bool is_large(const plan *p)
{
    return p->decoder->vocab * p->decoder->hidden > LARGE_OUTPUT;
}

unsigned verify_orders(const plan *p)
{
    return is_large(p) ? 1 : 2;
}

static bool has_room(const step_trial *t, int64_t sequence, int64_t tokens)
{
    return (int64_t)t->lengths[sequence] + tokens <= t->v->plan->decoder->max_seq_len;
}

/* Runs one row alone: in a step of one, or as a prompt's only used row. */
static bool run_row(step_trial *t, const plan_step *one, const step_rows *all, size_t row,
                    bool logits)
{
    step_rows r = { 0 };
    for (int64_t i = 1; i < one->m; i++)
        add_no_row(&r);
    add_row(&r, all->rows[row], all->positions[row]);
    step_write_state(t, &r);
    for (size_t i = 0; i < one->launch_count; i++)
        if ((logits || one->launches[i].layer < t->v->plan->decoder->layers) &&
            !step_run_launch(t, &one->launches[i], &r))
            return false;
    return true;
}

/* Runs the last row again alone, on the inputs that the step has left. Recurrences have advanced, so
 * they restart from the memory before the step, with all of its rows. */
static bool run_alone(step_trial *t, const plan_step *step, const step_rows *all,
                      const emu_snapshot *before)
{
    const plan *p = t->v->plan;
    const plan_step *one = decoder_is_prompt(step->m) ? step : step_of_one(p);
    size_t last = all->m - 1, size = (size_t)p->decoder->vocab;
    const computed_logits l = step_read_logits(t, step);
    const float *logits = l.values + l.count - size;
    if (before)
        emu_snapshot_restore(before, t->memory);
    for (size_t i = before ? 0 : last; i < all->m; i++)
        if (all->is_row[i] && !run_row(t, one, all, i, i == last))
            return false;
    const computed_logits of_one = step_read_logits(t, one);
    size_t ahead = of_one.count - size;
    const float *alone = of_one.values + ahead;
    for (size_t i = 0; i < size; i++)
        if ((!l.are || (l.are[l.count - size + i] && of_one.are[ahead + i])) &&
            memcmp(&alone[i], &logits[i], sizeof *logits) != 0)
            return step_reject(
                t,
                "%s: logits[%zu] of the last token is %.9g in this step, but %.9g if "
                "it runs alone",
                step_name(t, all), i, (double)logits[i], (double)alone[i]);
    return true;
}

/* Returns the number of tokens that suffice for a step. */
static int64_t tokens_of(const step_trial *t, const plan_step *step)
{
    return step_any_launch(t, step, step_product_is_large) ? FEW_TOKENS : step->m;
}

/* Runs some tokens of a sequence, then the last one alone. A prompt shorter than the step uses the
 * last rows. With large products its tokens are spread over all rows to cover all tiles. */
static bool run_tokens(step_trial *t, const plan_step *step, int64_t sequence, int64_t count)
{
    step_rows r = { 0 };
    arena_reset(t->scratch);
    if (!has_room(t, sequence, count))
        return true;
    bool large = step_any_launch(t, step, step_product_is_large);
    bool alone = decoder_is_prompt(step->m) ? !large : step->m > 1 && step_of_one(t->v->plan);
    /* A recurrence needs a sequence's rows next to each other. */
    bool recurs = decoder_first_layer(t->v->plan->decoder, PART_RECURRENT) >= 0;
    bool apart = large && !recurs;
    for (int64_t i = 0; i < step->m; i++)
        if (apart ? (i + 1) * count / step->m > i * count / step->m : i >= step->m - count)
            add_row(&r, (ref_row){ sequence, random_token(t) }, t->lengths[sequence]++);
        else
            add_no_row(&r);
    const emu_snapshot *before = alone && recurs ? emu_snapshot_new(t->scratch, t->memory) : NULL;
    return run_any(t, step, &r) && (!alone || run_alone(t, step, &r, before));
}

/* Runs the token that the preceding step has sampled, with the state it has left. Skips it if its
 * experts are not clear, or if it is not the state's first token. */
static bool run_chosen(step_trial *t, const plan_step *ahead, int64_t sequence)
{
    const plan *p = t->v->plan;
    step_rows r = { 0 };
    bool is_first = ahead->sampled_rows == 1 || !decoder_is_prompt(ahead->m);
    arena_reset(t->scratch);
    if (t->in_part || !is_first || !step_of_one(p) || !has_room(t, sequence, 1))
        return true;
    add_row(&r, (ref_row){ sequence, step_read_word(t, p->state.tokens, 0) },
            t->lengths[sequence]++);
    step_expected e;
    if (!feed_references(t, step_of_one(p), &r, false, &e)) {
        t->lengths[sequence]--;
        return true;
    }
    return run_step(t, step_of_one(p), &r, &e, true);
}

/* The largest few-row step and the largest step, if they differ. */
typedef struct large_steps {
    const plan_step *items[2];
    size_t count;
} large_steps;

static large_steps large_steps_of(const plan *p)
{
    const plan_step *last = &p->steps[p->step_count - 1], *few = last;
    while (few > p->steps && decoder_is_prompt(few->m))
        few--;
    bool both = few != last && !decoder_is_prompt(few->m);
    return (large_steps){ { both ? few : last, last }, both ? 2 : 1 };
}

/* Runs all steps from position 0 on; with a large vocabulary only the first step. */
static bool run_from_the_start(step_trial *t)
{
    const plan *p = t->v->plan;
    step_start(t, 0, 0);
    for (size_t i = 0; i < p->step_count; i++) {
        const plan_step *step = &p->steps[i];
        int64_t tokens = tokens_of(t, step);
        bool enough = is_large(p) && i;
        if (!enough &&
            (!run_tokens(t, step, 0, tokens) || !run_chosen(t, step, 0) ||
             (tokens == step->m && tokens > 1 && !run_tokens(t, step, 0, (tokens + 1) / 2))))
            return false;
    }
    return true;
}

/* Runs across a position where results change: the first one outside a window, or where the
 * temperature rises; else after many positions. */
static bool run_at_an_edge(step_trial *t)
{
    const plan *p = t->v->plan;
    const decoder *d = p->decoder;
    const large_steps steps = large_steps_of(p);
    uint64_t room = 3 * (uint64_t)p->rows, longest = (uint64_t)d->max_seq_len;
    double length = d->rope[0].temperature_length;
    bool windowed = false;
    for (int64_t i = 0; i < d->layers; i++)
        windowed |= decoder_window(d, i) > 0;
    uint64_t edge = windowed ? (uint64_t)d->window : length > 0 ? (uint64_t)length : FAR;
    if (edge + room >= longest)
        edge = longest > 2 * room ? longest - room : longest / 2;
    t->in_part = is_large(p);
    for (size_t i = 0; i < steps.count; i++) {
        int64_t tokens = tokens_of(t, steps.items[i]);
        uint64_t ahead = (uint64_t)tokens / 2 + 1;
        step_start(t, 0, edge > ahead ? edge - ahead : 0);
        if (!run_tokens(t, steps.items[i], 0, tokens) ||
            (!i && (!run_chosen(t, steps.items[0], 0) || !run_chosen(t, steps.items[0], 0))))
            return false;
    }
    return true;
}

/* Runs across the end of the shortest ring, its second end if positions suffice. */
static bool run_around_a_ring(step_trial *t)
{
    const plan *p = t->v->plan;
    const plan_step *step = &p->steps[p->step_count - 1];
    int64_t tokens = tokens_of(t, step);
    uint64_t longest = (uint64_t)p->decoder->max_seq_len, rows = longest;
    uint64_t ahead = (uint64_t)tokens / 2 + 1, room = (uint64_t)p->rows;
    for (int64_t layer = 0; layer < p->decoder->layers; layer++)
        if (decoder_has_part(p->decoder, PART_KV, layer) && plan_ring(p->decoder, layer) &&
            step_model_cache_rows(&t->v->model, layer) < rows)
            rows = step_model_cache_rows(&t->v->model, layer);
    uint64_t end = 2 * rows + room <= longest ? 2 * rows : rows;
    if (rows == longest || end + room > longest)
        return true;
    t->in_part = is_large(p);
    step_start(t, 0, end - ahead);
    return run_tokens(t, step, 0, tokens);
}

/* Runs a token of each sequence, each at its own position, after unused rows; or, with tokens for
 * more rows, the rest of them in the first sequence. */
static bool run_runs(step_trial *t, const plan_step *step, int64_t tokens)
{
    const plan *p = t->v->plan;
    int64_t sequences = p->decoder->sequences < tokens ? p->decoder->sequences : tokens;
    int64_t most = p->decoder->max_seq_len - p->rows;
    step_rows r = { 0 };
    if (sequences < 2 || most < 0)
        return true;
    for (int64_t i = 0; i < sequences; i++) /* at the same positions in each step */
        step_start(t, i, (uint64_t)(i * SEVERAL_APART % (most + 1)));
    for (int64_t i = tokens; i < step->m; i++)
        add_no_row(&r);
    for (int64_t i = 0; i < tokens; i++) {
        int64_t sequence = i > tokens - sequences ? i - (tokens - sequences) : 0;
        add_row(&r, (ref_row){ sequence, random_token(t) }, t->lengths[sequence]++);
    }
    arena_reset(t->scratch);
    t->in_part = is_large(p);
    return run_any(t, step, &r);
}

static bool run_several(step_trial *t)
{
    const plan *p = t->v->plan;
    const large_steps steps = large_steps_of(p);
    bool right = true;
    for (size_t s = 0; right && s < steps.count; s++) {
        const plan_step *step = steps.items[s];
        int64_t each = p->decoder->sequences < step->m ? p->decoder->sequences : step->m;
        int64_t all = tokens_of(t, step);
        right = run_runs(t, step, each) && (all <= each || run_runs(t, step, all));
    }
    return right;
}

static void run_trial(void *context, size_t i)
{
    static bool (*const runs[TRIALS])(step_trial *) = {
        [FROM_THE_START] = run_from_the_start,
        [AT_AN_EDGE] = run_at_an_edge,
        [SEVERAL_SEQUENCES] = run_several,
        [AROUND_A_RING] = run_around_a_ring,
    };
    step_trial *t = (step_trial *)context + i;
    const step_verifier *v = t->v;
    t->scratch = arena_new_in(t->arena);
    t->random = (random_source){ v->seed + i + 1 };
    t->right = true;
    t->lengths = arena_zalloc(t->arena, (size_t)v->plan->decoder->sequences * sizeof *t->lengths);
    t->noise = arena_zalloc(t->arena, (size_t)v->plan->decoder->layers * sizeof *t->noise);
    t->rounded = ref_step_new(t->arena, v->plan->decoder, step_model_weights, (void *)&v->model);
    t->exact = ref_step_new(t->arena, &v->exact, step_model_weights, (void *)&v->model);
    step_map(t);
    runs[t->kind](t);
    t->device.close(&t->device);
}

/* Loads the oldest target's kernels of the plan. Returns NULL, or the name of a missing kernel. */
static const char *load_kernels(arena *a, step_verifier *v, const kernel *kernels, size_t count)
{
    emu_report report;
    v->kernels = arena_zalloc(a, v->plan->kernel_count * sizeof *v->kernels);
    for (size_t i = 0; i < v->plan->kernel_count; i++) {
        step_kernel *k = &v->kernels[i];
        for (size_t j = 0; j < count && !k->kernel; j++)
            if (strcmp(kernels[j].instance->name, v->plan->kernels[i].name) == 0)
                k->kernel = &kernels[j];
        if (k->kernel)
            k->module = emu_load(a, k->kernel->ptx, k->kernel->ptx_length, &report);
        if (!k->module)
            return v->plan->kernels[i].name;
    }
    return NULL;
}

step_result verify_plan(arena *a, const plan *p, const chosen_layers *names, const kernel *kernels,
                        size_t kernel_count, uint64_t seed, unsigned orders, unsigned jobs)
{
    arena *of_all = arena_new();
    step_result result = { .right = true, .layers = p->decoder->layers };
    step_verifier v = {
        .plan = p, .names = names, .exact = *p->decoder, .seed = seed, .orders = orders
    };
    v.exact.precision = PRECISION_F32;
    v.exact.kv_type = KV_F32;
    const char *missing = load_kernels(of_all, &v, kernels, kernel_count);
    if (missing) {
        result = (step_result){ .layers = result.layers,
                                .message = arena_format(
                                    a, "the step needs the kernel %s, which is missing", missing) };
        arena_free(of_all);
        return result;
    }
    step_load_dependent(of_all, &v, kernels, kernel_count);
    v.model = step_model_new(of_all, p, seed);
    step_trial trials[TRIALS];
    for (int i = 0; i < TRIALS; i++)
        trials[i] = (step_trial){ .v = &v, .arena = arena_new(), .kind = (step_trial_kind)i };
    os_parallel(jobs, TRIALS, run_trial, trials);
    for (int i = 0; i < TRIALS; i++) {
        const step_result *one = &trials[i].result;
        result.right &= trials[i].right;
        result.positions += one->positions;
        result.worst = fmax(result.worst, one->worst);
        result.worst_hidden = fmax(result.worst_hidden, one->worst_hidden);
        result.weights_read = fmax(result.weights_read, one->weights_read);
        result.caches.read += one->caches.read;
        result.caches.needed += one->caches.needed;
        result.instructions += one->instructions;
        if (!trials[i].right && !result.message)
            result.message = arena_strdup(a, one->message);
        arena_free(trials[i].arena);
    }
    arena_free(of_all);
    return result;
}

step_result verify_step(arena *a, const plan *p, const target *const *wanted, size_t wanted_count,
                        const kernel *kernels, size_t kernel_count, uint64_t seed, unsigned orders,
                        unsigned jobs)
{
    arena *scratch = arena_new();
    chosen_layers chosen = verify_choose_layers(scratch, p);
    const decoder *d = verify_reduced_decoder(scratch, p->decoder, &chosen);
    diags ignored = diags_new(scratch);
    plan *reduced =
        plan_make(scratch, d, (location){ 0 }, wanted, wanted_count, p->model, &ignored);
    if (reduced)
        verify_take_kernels(scratch, reduced, p);
    const char *differs =
        reduced ? verify_same_launches(a, p, reduced) : "no plan of some of its layers can be made";
    step_result result = { .right = false, .message = differs };
    if (!differs)
        result = verify_plan(a, reduced, &chosen, kernels, kernel_count, seed, orders, jobs);
    result.layers = chosen.count;
    result.of_layers = p->decoder->layers;
    arena_free(scratch);
    return result;
}
