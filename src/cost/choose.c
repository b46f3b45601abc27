#include "cost/choose.h"

#include <math.h>
#include <string.h>

#include "kernel/limits.h"

enum { USUAL_COLUMNS = 4096, USUAL_ROWS = 4096, MOST_PASSES = 8 };

/* What a family has to be faster by than one that is preferred: the model may be wrong by as much.
 * And what other numbers of warps and rows have to be: less is no difference that it can tell. */
static const double MARGIN = 1.1, WORTH_IT = 1.01;

/* The keys that change how a kernel computes and not what, and the values that are tried. */
typedef struct tuned_key {
    const char *name;
    int64_t values[12]; /* of equally fast ones the first; ends with 0 */
    /* Rows share what they read of x: with fewer than the table's kernels have, and several
     * vectors, that is more than the table knows. */
    bool shares_x;
    bool of_tiles; /* of products on tensor cores, where a launch says how many rows there are */
} tuned_key;

static const tuned_key tuned_keys[] = {
    { "num_warps", { 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32 }, false, false },
    { "rows_per_warp", { 2, 1 }, true, false },
    { "outputs_per_block", { 1, 2, 4, 8 }, false, false },
    { "m", { 256, 128, 64, 32, 16 }, false, true },
    { "tile", { 128, 64, 32, 16 }, false, false },
};
enum { TUNED_KEYS = sizeof tuned_keys / sizeof *tuned_keys };

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* Whether a family computes what is asked for: each key of the operation's identity that is set is
 * one of its keys, too. */
static bool computes(const family *f, const instance *asked)
{
    for (const key *k = asked->family->keys; k->name; k++)
        if (instance_value(asked, k) != key_default(k) &&
            has_word(operations[f->op].identity, k->name) && !family_key(f, k->name))
            return false;
    return true;
}

static bool takes_weights(const family *f, format weights)
{
    if (f->weights == weights)
        return true;
    const key *k = f->weights == FORMAT_NONE ? family_key(f, "weights") : NULL;
    for (const choice *c = k ? k->choices : NULL; c && c->word; c++)
        if (strcmp(c->word, formats[weights].name) == 0)
            return key_takes_choice(k, c);
    return false;
}

static bool suits(const family *f, const instance *asked)
{
    return f->op == asked->family->op && f->activations == asked->family->activations &&
           takes_weights(f, instance_weights(asked)) &&
           (asked->dims == DIMS_STATIC || family_key(f, "dims")) && computes(f, asked);
}

/* The asked instance as one of the family. */
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

/* A family that computes what is asked for, and what no kernel of it can be faster than. */
typedef struct contender {
    instance made;
    cost_figures figures;
    cost_work work;
    double least;
} contender;

typedef struct search {
    arena *arena;
    const cost_gpu *gpu;
    target_set gpus; /* that the choice is for */
    contender *tried;
    instance best;
    cost_prediction prediction;
} search;

/* Tries an instance with all values of the tuned keys from number key on. */
static void try_values(instance *candidate, size_t key_number,
                       void (*attempt)(const instance *candidate, void *context), void *context)
{
    if (key_number == TUNED_KEYS) {
        attempt(candidate, context);
        return;
    }
    const tuned_key *tuned = &tuned_keys[key_number];
    const key *k = family_key(candidate->family, tuned->name);
    bool tiles = candidate->family->halves && candidate->rows_mode == ROWS_RUN_TIME;
    if (!k || (tuned->of_tiles && !tiles)) {
        try_values(candidate, key_number + 1, attempt, context);
        return;
    }
    int64_t least = tuned->shares_x && candidate->shape.m > 1 ? key_default(k) : k->min;
    for (const int64_t *value = tuned->values; *value; value++)
        if (*value >= least && *value <= k->max) {
            instance_set(candidate, k, *value);
            try_values(candidate, key_number + 1, attempt, context);
        }
}

/* Whether a kernel that takes so long is better than the best that was tried. */
static bool is_better(const search *s, double seconds)
{
    bool preferred = s->best.family->preference > s->tried->made.family->preference;
    return seconds * (preferred ? MARGIN : WORTH_IT) < s->prediction.total;
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

/* With sizes that the model can count with: of rows at run time one group. */
static instance sized(const instance *asked)
{
    instance made = *asked;
    made.dims = DIMS_STATIC;
    made.rows_mode = ROWS_FIXED;
    made.shape.k = asked->shape.k ? asked->shape.k : USUAL_COLUMNS;
    made.shape.n = asked->shape.n ? asked->shape.n : USUAL_ROWS;
    return made;
}

static bool is_ahead(const contender *a, const contender *b)
{
    int preferred = a->made.family->preference - b->made.family->preference;
    return preferred > 0 || (preferred == 0 && a->least < b->least);
}

/* The families that suit, those first that are preferred, and that may be fastest: what they come
 * to rules out others. */
static size_t find_contenders(const instance *asked, const target *t, const search *s,
                              contender *found)
{
    size_t count = 0;
    instance whole = sized(asked);
    cost_work usual = cost_work_of(s->arena, &whole); /* mostly the same: so are the parameters */
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
        for (; at && is_ahead(&c, &found[at - 1]); at--)
            found[at] = found[at - 1];
        found[at] = c;
    }
    return count;
}

static size_t family_count(void)
{
    size_t count = 0;
    while (families[count])
        count++;
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
    contender *contenders = arena_alloc(a, family_count() * sizeof *contenders);
    size_t count = find_contenders(asked, t, &s, contenders);
    param params[MAX_PARAMS];
    size_t param_count = instance_params(a, asked, params);
    for (s.tried = contenders; s.tried < contenders + count; s.tried++) {
        if (!is_better(&s, s.tried->least) ||
            !has_parameters(a, &s.tried->made, params, param_count))
            continue;
        instance candidate = sized(&s.tried->made);
        try_candidate(&candidate, &s); /* with the family's defaults, first */
        try_values(&candidate, 0, try_candidate, &s);
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

/* A kernel of a plan, which all targets of the spec share. */
typedef struct tuning {
    arena *arena;
    int64_t rows;
    const target *const *wanted;
    cost_gpu *gpus;
    double *usual; /* seconds of the kernel as it is, */
    size_t count;  /* by target */
    instance best;
    double least; /* of all targets the sum of times, each by the usual one */
} tuning;

/* Writes the seconds that a kernel takes, by target. Returns false if a GPU would have none, or if
 * it was not counted. */
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

static tuning tuning_of(arena *a, int64_t rows, const target *const *wanted, size_t count,
                        cost_gpu *gpus)
{
    for (size_t i = 0; i < count; i++)
        gpus[i] = cost_gpu_of(wanted[i]);
    return (tuning){ .arena = a, .rows = rows, .wanted = wanted, .gpus = gpus, .count = count };
}

void cost_tune(instance *in, int64_t rows, const target *const *wanted, size_t count)
{
    if (!instance_same_bits(in))
        return;
    arena *a = arena_new();
    cost_gpu gpus[TARGET_MOST];
    double usual[TARGET_MOST];
    tuning t = tuning_of(a, rows, wanted, count, gpus);
    t.usual = usual;
    t.best = *in;
    t.least = (double)count / WORTH_IT;
    const key *passes = family_key(in->family, "passes");
    int64_t most = passes && !in->passes && in->shape.m > 1 ? MOST_PASSES : 0;
    instance candidate = *in;
    bool counted = count_seconds(&t, in, usual);
    for (int64_t number = 0; counted && number <= most; number = number ? number + 1 : 2) {
        candidate.passes =
            number; /* 0: as few as fit; with more an SM may have room for two blocks */
        try_values(&candidate, 0, try_setting, &t);
    }
    *in = t.best;
    arena_free(a);
}

/* The kernel of a row and of the usual positions. */
static instance usual_of(const instance *in)
{
    instance usual = *in;
    usual.shape.m = 1;
    usual.shape.max_seq_len = COST_USUAL_POSITIONS;
    return usual;
}

bool cost_is_worth(const instance *ahead, const instance *in, const instance *than, int64_t rows,
                   const target *const *wanted, size_t count)
{
    arena *a = arena_new();
    cost_gpu gpus[TARGET_MOST];
    double first[TARGET_MOST] = { 0 }, own[TARGET_MOST], other[TARGET_MOST], sum = 0;
    tuning t = tuning_of(a, rows, wanted, count, gpus);
    bool counted = (!ahead || count_seconds(&t, ahead, first)) && count_seconds(&t, in, own) &&
                   count_seconds(&t, than, other);
    for (size_t i = 0; counted && i < count; i++) {
        double more = ahead ? first[i] + cost_between(ahead, target_overlaps(wanted[i])) : 0;
        sum += (more + own[i]) / other[i];
    }
    arena_free(a);
    return counted && sum * WORTH_IT < (double)count;
}

bool cost_is_faster(const instance *in, const instance *than, const target *const *wanted,
                    size_t count)
{
    instance own = usual_of(in), other = usual_of(than);
    return cost_is_worth(NULL, &own, &other, 1, wanted, count);
}
