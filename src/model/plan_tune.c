/* Chooses warps, rows at once and passes over x of a plan's kernels, for all targets together. */
#include "model/plan_cost.h"

#include <math.h>

#include "cost/cost.h"
#include "kernel/limits.h"

enum { MOST_PASSES = 8 };

/* A search for the best setting of a kernel that all targets share. */
typedef struct tuning {
    arena *arena;
    int64_t rows;
    const target *const *wanted;
    size_t count; /* number of targets; the index of gpus and usual */
    cost_gpu gpus[TARGET_MOST];
    double usual[TARGET_MOST]; /* seconds of the kernel as given */
    instance best;
    double least; /* sum over targets of seconds / usual */
} tuning;

/* Writes a kernel's seconds by target. Returns false if some target cannot launch it or has no
 * counted figures. */
static bool count_seconds(const tuning *t, const instance *in, double *seconds)
{
    instance made[TARGET_MOST];
    if (launch_fit(in, t->wanted, t->count, made))
        return false;
    for (size_t i = 0; i < t->count; i++) {
        cost_figures figures;
        if (!cost_find(&made[i], t->wanted[i], &figures))
            return false;
        cost_work work = cost_work_of_rows(t->arena, &made[i], t->rows);
        seconds[i] = cost_predict(&figures, &made[i], &work, &t->gpus[i]).total;
    }
    return true;
}

static void try_setting(const instance *candidate, void *context)
{
    tuning *t = context;
    const char *blamed;
    double seconds[TARGET_MOST], sum = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!instance_suits(candidate, t->wanted[i]))
            return;
    if ((candidate->family->check && candidate->family->check(candidate, t->arena, &blamed)) ||
        !count_seconds(t, candidate, seconds))
        return;
    for (size_t i = 0; i < t->count; i++)
        sum += seconds[i] / t->usual[i];
    if (sum < t->least) {
        t->least = sum;
        t->best = *candidate;
    }
}

static tuning tuning_of(arena *a, int64_t rows, const target *const *wanted, size_t count)
{
    tuning t = { .arena = a, .rows = rows, .wanted = wanted, .count = count };
    for (size_t i = 0; i < count; i++)
        t.gpus[i] = cost_gpu_of(wanted[i]);
    return t;
}

void cost_tune(instance *in, int64_t rows, const target *const *wanted, size_t count)
{
    if (!instance_same_bits(in))
        return;
    arena *a = arena_new();
    tuning t = tuning_of(a, rows, wanted, count);
    t.best = *in;
    t.least = (double)count / COST_WORTH_IT;
    const key *passes = family_key(in->family, "passes");
    int64_t most = passes && !in->passes && in->shape.m > 1 ? MOST_PASSES : 0;
    instance candidate = *in;
    bool counted = count_seconds(&t, in, t.usual);
    for (int64_t number = 0; counted && number <= most; number = number ? number + 1 : 2) {
        candidate.passes = number; /* 0 = default; more passes may fit two blocks on an SM */
        cost_try_settings(&candidate, try_setting, &t);
    }
    *in = t.best;
    arena_free(a);
}

static bool is_worth(const instance *ahead, const instance *in, const instance *than, int64_t rows,
                     const target *const *wanted, size_t count)
{
    arena *a = arena_new();
    double first[TARGET_MOST] = { 0 }, own[TARGET_MOST], other[TARGET_MOST], sum = 0;
    tuning t = tuning_of(a, rows, wanted, count);
    bool counted = (!ahead || count_seconds(&t, ahead, first)) && count_seconds(&t, in, own) &&
                   count_seconds(&t, than, other);
    for (size_t i = 0; counted && i < count; i++) {
        double more = ahead ? first[i] + cost_launch_gap(ahead, target_overlaps(wanted[i])) : 0;
        sum += (more + own[i]) / other[i];
    }
    arena_free(a);
    return counted && sum * COST_WORTH_IT < (double)count;
}

static bool is_faster(const instance *in, const instance *than, const target *const *wanted,
                      size_t count)
{
    instance own = *in, other = *than;
    own.shape.m = other.shape.m = 1;
    own.shape.max_seq_len = other.shape.max_seq_len = COST_USUAL_POSITIONS;
    return is_worth(NULL, &own, &other, 1, wanted, count);
}

const plan_model cost_model = { .tune = cost_tune, .is_faster = is_faster, .is_worth = is_worth };

/* Returns false if a target lacks memory for a kernel of a format and the most rows. */
static bool fits(const decoder *d, format f, const target *const *wanted, size_t count)
{
    instance in = { .family = families[FAMILY_MMA_Q8] };
    for (const key *k = in.family->keys; k->name; k++)
        instance_set(&in, k, instance_default(&in, k));
    in.weights = instance_weights_index(f);
    in.shape.k = in.shape.n = d->hidden;
    in.shape.m = PROBLEM_MOST_ROWS;
    return formats[f].block_values > 1 && in.weights >= 0 && launch_fit_stages(&in, wanted, count);
}

/* Returns the predicted seconds of a step on a target. */
static double seconds_of_step(const plan *p, const plan_step *step, const target *t)
{
    arena *a = arena_new();
    cost_gpu gpu = cost_gpu_of(t);
    launch_cost *costs = arena_zalloc(a, p->kernel_count * sizeof *costs);
    cost_of_launches(a, p, step, COST_USUAL_POSITIONS, &gpu, costs);
    double seconds = cost_of_step(step, costs, target_overlaps(t)).seconds;
    arena_free(a);
    return seconds;
}

/* Returns a plan's seconds as a share of those of the usual plan, summed over steps and targets.
 * With is_usual, sets the latter. A plan with a step that is much slower is out of question. */
static double share_of(const plan *p, bool is_usual, double *usual)
{
    static const double most_lost = 1.05;
    double sum = 0;
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t t = 0; t < p->target_count; t++, usual++) {
            double seconds = seconds_of_step(p, &p->steps[s], p->targets[t]);
            *usual = is_usual ? seconds : *usual;
            sum += seconds < most_lost * *usual ? seconds / *usual : HUGE_VAL;
        }
    return sum;
}

static void set_bytes_for(decoder *d, uint8_t use, const target *const *wanted, size_t count)
{
    for (int f = 0; f < FORMAT_COUNT; f++) {
        bool lacks = use & BYTES_FOR_MANY && !fits(d, (format)f, wanted, count);
        d->bytes_for[f] = lacks ? use - BYTES_FOR_MANY : use;
    }
}

plan *cost_make_plan(arena *a, decoder *d, location where, const target *const *wanted,
                     size_t count, diags *errors)
{
    /* A step of few rows and larger ones of up to DECODER_BYTE_ROWS have the same bits with BOTH. */
    enum { BOTH = BYTES_FOR_FEW | BYTES_FOR_SOME };
    static const uint8_t uses[] = {
        BYTES_FOR_NONE,       BOTH, BYTES_FOR_SOME, BYTES_FOR_MANY, BYTES_FOR_SOME | BYTES_FOR_MANY,
        BOTH | BYTES_FOR_MANY
    };
    double usual[DECODER_MOST_STEPS * TARGET_MOST], least = HUGE_VAL;
    int64_t most = d->m[d->m_count - 1];
    bool may = d->precision == PRECISION_Q8 && most > 1 && wanted[0]->sm >= DECODER_PROMPT_SM;
    size_t choices = !may ? 0 : most > DECODER_BYTE_ROWS ? 6 : most > DECODER_FEW_ROWS ? 3 : 2;
    uint8_t best = BYTES_FOR_NONE;
    plan *made = NULL;
    diags ignored = diags_new(a);
    for (size_t i = 0; i < choices; i++) {
        set_bytes_for(d, uses[i], wanted, count);
        plan *p = plan_make(a, d, where, wanted, count, &cost_model, &ignored);
        double share = p ? share_of(p, !i, usual) : HUGE_VAL;
        if (share * COST_WORTH_IT < least) {
            least = share;
            best = uses[i];
            made = p;
        }
    }
    set_bytes_for(d, best, wanted, count);
    return made ? made : plan_make(a, d, where, wanted, count, &cost_model, errors);
}
