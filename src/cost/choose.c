#include "cost/choose.h"

#include <math.h>
#include <string.h>

enum { USUAL_COLUMNS = 4096, USUAL_ROWS = 4096 };

/* The keys that change how a kernel computes and not what, and the values that are tried. */
typedef struct tuned_key {
    const char *name;
    int64_t values[12]; /* ascending; ends with 0 */
} tuned_key;

static const tuned_key tuned_keys[] = {
    { "num_warps", { 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32 } },
    { "rows_per_warp", { 1, 2 } },
    { "outputs_per_block", { 1, 2, 4, 8 } },
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
    double least;
} contender;

typedef struct search {
    const cost_gpu *gpu;
    cost_work work;
    contender *tried;
    instance best;
    cost_prediction prediction;
} search;

/* All values of the tuned keys from number key on, until nothing of the family can be faster. */
static void try_values(search *s, instance *candidate, size_t key_number)
{
    if (s->tried->least >= s->prediction.total)
        return;
    if (key_number == TUNED_KEYS) {
        cost_prediction p = cost_predict(&s->tried->figures, candidate, &s->work, s->gpu);
        if (p.total < s->prediction.total) {
            s->best = *candidate;
            s->prediction = p;
        }
        return;
    }
    const tuned_key *tuned = &tuned_keys[key_number];
    const key *k = family_key(candidate->family, tuned->name);
    if (!k) {
        try_values(s, candidate, key_number + 1);
        return;
    }
    for (const int64_t *value = tuned->values; *value; value++)
        if (*value >= k->min && *value <= k->max) {
            instance_set(candidate, k, *value);
            try_values(s, candidate, key_number + 1);
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

/* The families that suit, those first that may be fastest: what they come to rules out others. */
static size_t find_contenders(const instance *asked, const target *t, const search *s,
                              contender *found)
{
    size_t count = 0;
    for (const family *const *f = families; *f; f++) {
        contender c;
        if (!suits(*f, asked))
            continue;
        c.made = made_of(*f, asked);
        bool rounds = instance_precision(&c.made) != (*f)->activations;
        if ((rounds && asked->precision != PRECISION_Q8) || !cost_find(&c.made, t->sm, &c.figures))
            continue;
        c.least = cost_least(&c.figures, *f, &s->work, s->gpu);
        size_t at = count++;
        for (; at && found[at - 1].least > c.least; at--)
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

instance cost_choose(const instance *asked, const target *t, cost_prediction *predicted)
{
    arena *a = arena_new();
    cost_gpu gpu = cost_gpu_of(t);
    search s = { .gpu = &gpu, .best = made_of(asked->family, asked) };
    s.prediction.total = HUGE_VAL;
    instance usual = sized(asked);
    s.work = cost_work_of(a, &usual); /* the candidates' too: they have the same parameters */
    contender *contenders = arena_alloc(a, family_count() * sizeof *contenders);
    size_t count = find_contenders(asked, t, &s, contenders);
    param params[MAX_PARAMS];
    size_t param_count = instance_params(a, asked, params);
    for (s.tried = contenders; s.tried < contenders + count; s.tried++) {
        if (s.tried->least >= s.prediction.total ||
            !has_parameters(a, &s.tried->made, params, param_count))
            continue;
        instance candidate = sized(&s.tried->made);
        try_values(&s, &candidate, 0);
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
