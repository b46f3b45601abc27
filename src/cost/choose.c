/* Implements variant = auto: selects the kernel that the cost model predicts to be fastest, of all
 * kernels with the same result and parameters. A family must be 10 % faster than preferred ones. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "kernel/limits.h"

enum { USUAL_COLUMNS = 4096, USUAL_ROWS = 4096 };

/* Minimum speed-up over a preferred family, since the model can be wrong by that factor. */
static const double MARGIN = 1.1;

/* A key that changes how a kernel computes but not its result, and the values to try. */
typedef struct tuned_key {
    const char *name;
    int64_t values[12]; /* 0-terminated; the first of equally fast values wins */
    /* Rows share their loads of x. With several vectors, fewer rows than the counted kernels have
     * need more loads than the table contains, so they are not tried. */
    bool shares_x;
    bool of_tiles; /* only for tensor-core products whose number of rows is known at launch */
} tuned_key;

static const tuned_key tuned_keys[] = {
    { "num_warps", { 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32 }, false, false },
    { "rows_per_warp", { 2, 1 }, true, false },
    { "outputs_per_block", { 1, 2, 4, 8 }, false, false },
    { "m", { 256, 128, 64, 32, 16 }, false, true },
    { "tile", { 128, 64, 32, 16 }, false, false },
};

/* Returns true if a family can compute a request: it accepts the weights, and has all keys of the
 * operation's identity that the request sets. */
static bool suits(const family *f, const instance *asked)
{
    format weights = instance_weights(asked);
    const key *k = f->weights == FORMAT_NONE ? family_key(f, "weights") : NULL;
    if (f->op != asked->family->op || f->activations != asked->family->activations ||
        (asked->dims == DIMS_DYNAMIC && !family_key(f, "dims")) ||
        (f->weights != weights &&
         !(k && key_takes_choice(k, k->choices + instance_weights_index(weights)))))
        return false;
    for (k = asked->family->keys; k->name; k++)
        if (instance_value(asked, k) != key_default(k) &&
            lists_word(operations[f->op].identity, k->name) && !family_key(f, k->name))
            return false;
    return true;
}

/* Returns the request as an instance of a family. */
static instance made_of(const family *f, const instance *asked)
{
    instance made = *asked;
    made.family = f;
    for (const key *k = f->keys; k->name; k++)
        if (!family_key(asked->family, k->name))
            instance_set(&made, k, key_default(k));
    if (family_key(f, "weights"))
        made.weights = instance_weights_index(instance_weights(asked));
    for (const key *k = f->keys; k->name; k++)
        if (k->like && !family_key(asked->family, k->name))
            instance_set(&made, k, instance_default(&made, k));
    made.variant = VARIANT_PLAIN;
    made.precision = PRECISION_F32;
    return made;
}

static bool has_parameters(arena *a, const instance *in, const param *p, size_t count)
{
    param q[MAX_PARAMS];
    if (count != instance_params(a, in, q))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(p[i].name, q[i].name) != 0 || p[i].kind != q[i].kind ||
            p[i].format != q[i].format)
            return false;
    return true;
}

/* A family that can compute the request, and a lower bound for its seconds. */
typedef struct contender {
    instance made;
    cost_figures figures;
    cost_work work;
    double least;
} contender;

typedef struct search {
    arena *arena;
    const cost_gpu *gpu;
    target_set gpus; /* GPUs that the choice must fit */
    contender *tried;
    instance best;
    cost_prediction prediction;
} search;

/* Tries all combinations of tuned keys, from the key `tuned` on. */
static void try_values(instance *candidate, const tuned_key *tuned, cost_attempt *attempt,
                       void *context)
{
    const tuned_key *end = tuned_keys + sizeof tuned_keys / sizeof *tuned_keys;
    bool tiles = candidate->family->halves && candidate->rows_mode == ROWS_RUN_TIME;
    const key *k = NULL;
    for (; tuned < end && !k; tuned++)
        if (tiles || !tuned->of_tiles)
            k = family_key(candidate->family, tuned->name);
    if (!k) {
        attempt(candidate, context);
        return;
    }
    int64_t least = tuned[-1].shares_x && candidate->shape.m > 1 ? key_default(k) : k->min;
    for (const int64_t *value = tuned[-1].values; *value; value++)
        if (*value >= least && *value <= k->max) {
            instance_set(candidate, k, *value);
            try_values(candidate, tuned, attempt, context);
        }
}

void cost_try_settings(instance *candidate, cost_attempt *attempt, void *context)
{
    try_values(candidate, tuned_keys, attempt, context);
}

/* Returns true if a kernel that takes this many seconds is better than the best one so far. */
static bool is_better(const search *s, double seconds)
{
    bool preferred = s->best.family->preference > s->tried->made.family->preference;
    return seconds * (preferred ? MARGIN : COST_WORTH_IT) < s->prediction.total;
}

static void try_candidate(const instance *candidate, void *context)
{
    search *s = context;
    instance made = *candidate;
    const char *blamed;
    if (!instance_suits(candidate, s->gpu->target) || !is_better(s, s->tried->least) ||
        !launch_fit_on(&made, s->gpus) ||
        (made.family->check && made.family->check(&made, s->arena, &blamed)))
        return;
    cost_prediction p = cost_predict(&s->tried->figures, &made, &s->tried->work, s->gpu);
    if (is_better(s, p.total)) {
        s->best = *candidate;
        s->prediction = p;
    }
}

/* Returns the request with usual sizes instead of run-time sizes, and one group of rows. */
static instance sized(const instance *asked)
{
    instance made = *asked;
    made.dims = DIMS_STATIC;
    made.rows_mode = ROWS_FIXED;
    made.shape.k = asked->shape.k ? asked->shape.k : USUAL_COLUMNS;
    made.shape.n = asked->shape.n ? asked->shape.n : USUAL_ROWS;
    return made;
}

/* Finds all suitable families: preferred ones first, then by lower bound, for early cut-offs. */
static size_t find_contenders(const instance *asked, const target *t, const search *s,
                              contender *found)
{
    size_t count = 0;
    instance whole = sized(asked);
    cost_work usual = cost_work_of(s->arena, &whole); /* of most families */
    for (const family *const *f = families; *f; f++) {
        contender c;
        if (!suits(*f, asked))
            continue;
        c.made = made_of(*f, asked);
        bool rounds = instance_precision(&c.made) != (*f)->activations;
        if ((rounds && asked->precision != PRECISION_Q8) || !instance_takes_all(&c.made) ||
            !cost_find(&c.made, t, &c.figures))
            continue;
        c.work = usual;
        if ((*f)->cache_heads || asked->family->cache_heads) {
            instance one = sized(&c.made);
            c.work = cost_work_of(s->arena, &one);
        }
        c.least = cost_least(&c.figures, *f, &c.work, s->gpu);
        size_t at = count++;
        for (; at; at--) {
            int preferred = (*f)->preference - found[at - 1].made.family->preference;
            if (preferred < 0 || (preferred == 0 && c.least >= found[at - 1].least))
                break;
            found[at] = found[at - 1];
        }
        found[at] = c;
    }
    return count;
}

instance cost_choose(const instance *asked, const target *t, target_set gpus,
                     cost_prediction *predicted)
{
    arena *a = arena_new();
    cost_gpu gpu = cost_gpu_of(t);
    search s = { .arena = a,
                 .gpu = &gpu,
                 .gpus = gpus ? gpus : target_bit(t),
                 .best = made_of(asked->family, asked) };
    s.prediction.total = HUGE_VAL;
    contender *contenders = arena_alloc(a, FAMILY_COUNT * sizeof *contenders);
    size_t count = find_contenders(asked, t, &s, contenders);
    param params[MAX_PARAMS];
    size_t param_count = instance_params(a, asked, params);
    for (s.tried = contenders; s.tried < contenders + count; s.tried++) {
        if (!is_better(&s, s.tried->least) ||
            !has_parameters(a, &s.tried->made, params, param_count))
            continue;
        instance candidate = sized(&s.tried->made);
        try_candidate(&candidate, &s); /* first the family's defaults */
        cost_try_settings(&candidate, try_candidate, &s);
    }
    arena_free(a);
    if (predicted)
        *predicted = s.prediction;
    s.best.dims = asked->dims;
    s.best.rows_mode = asked->rows_mode;
    s.best.shape.k = asked->shape.k;
    s.best.shape.n = asked->shape.n;
    s.best.chosen_by = asked->family;
    s.best.chosen_for[asked->precision] = target_bit(t);
    s.best.excluded = ~target_bit(t);
    return s.best;
}
