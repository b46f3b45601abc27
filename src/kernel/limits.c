#include "kernel/limits.h"

#include "kernel/formula.h"
#include "kernel/target.h"

/* Extents of a launch: blocks in three dimensions, and threads per block. */
enum { EXTENTS = 4, THREADS = 3 };

static const struct {
    const char *what;
    int64_t most;
} extents[EXTENTS] = {
    { "blocks in x", TARGET_MOST_GRID_X },
    { "blocks in y", TARGET_MOST_GRID_YZ },
    { "blocks in z", TARGET_MOST_GRID_YZ },
    { "threads per block", TARGET_MOST_THREADS },
};

/* Returns an extent on the largest GPU, or -1 if other run-time values decide it. */
static int64_t extent_of(const instance *in, int which)
{
    static const run_values run = { .sm_count = TARGET_MOST_SMS };
    const launch *how = &in->family->launch;
    return formula_value(which == THREADS ? how->block : how->grid[which], in, &run);
}

/* Returns the first extent above its limit, or EXTENTS. */
static int broken(const instance *in)
{
    int which = 0;
    while (which < EXTENTS && extent_of(in, which) <= extents[which].most)
        which++;
    return which;
}

/* Sets a key to a value. Returns true if the family accepts the instance with it. */
static bool takes_value(arena *a, instance *in, const key *k, int64_t value)
{
    const char *blamed = NULL;
    instance_set(in, k, value);
    return instance_takes(in, k) && !(in->family->check && in->family->check(in, a, &blamed));
}

/* Returns the largest value, or one near, of a key below its own that can be launched; or 0. */
static int64_t value_that_fits(arena *a, const instance *in, const key *k)
{
    enum { NEAR = 64 }; /* number of values to try below the largest launchable one */
    int64_t unit = key_multiple(in, k);
    int64_t fits = 0, above = instance_value(in, k) / unit + 1;
    instance smaller = *in;
    instance_set(&smaller, k, k->min);
    if (broken(&smaller) < EXTENTS)
        return 0;
    for (fits = k->min / unit; above - fits > 1;) {
        int64_t middle = fits + (above - fits) / 2;
        instance_set(&smaller, k, middle * unit);
        *(broken(&smaller) < EXTENTS ? &above : &fits) = middle;
    }
    for (int i = 0; i < NEAR && fits > 0; i++, fits--)
        if (takes_value(a, &smaller, k, fits * unit))
            return fits * unit;
    return 0;
}

const char *launch_problem(arena *a, const instance *in, const char **blamed)
{
    int which = in->family->steps ? EXTENTS : broken(in);
    if (which == EXTENTS)
        return NULL;
    const char *way_out = "";
    double most_kept = 0; /* largest kept fraction of a key's value */
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t fits = k->choices || k->real ? 0 : value_that_fits(a, in, k);
        double kept = fits ? (double)fits / (double)instance_value(in, k) : 0;
        if (kept <= most_kept)
            continue;
        most_kept = kept;
        *blamed = k->name;
        way_out = arena_format(a, "; use %s = %lld", k->name, (long long)fits);
    }
    return arena_format(a, "%s needs %lld %s; CUDA allows %lld%s", in->name,
                        (long long)extent_of(in, which), extents[which].what,
                        (long long)extents[which].most, way_out);
}

int64_t launch_shared_bytes(const char *formula, const instance *in)
{
    int64_t bytes = formula ? formula_value(formula, in, NULL) : 0;
    return bytes > 0 ? bytes : 0;
}

/* Bytes of shared memory per block: static, and all. */
typedef struct shared_bytes {
    int64_t fixed, all;
} shared_bytes;

static shared_bytes shared_of(const instance *in)
{
    const launch *how = &in->family->launch;
    int64_t fixed = launch_shared_bytes(how->shared, in);
    return (shared_bytes){ fixed, fixed + launch_shared_bytes(how->dynamic_shared, in) };
}

static bool has_room(const target *gpu, shared_bytes need)
{
    return need.fixed <= gpu->shared_static && need.all <= gpu->shared_block;
}

shared_need launch_shared_need(const instance *in, const target *t)
{
    const launch *how = &in->family->launch;
    shared_bytes need = shared_of(in);
    if (need.fixed > t->shared_static)
        return (shared_need){ need.fixed, t->shared_static, "static shared memory", how->shared };
    return (shared_need){ need.all, t->shared_block, "shared memory",
                          need.all - need.fixed > need.fixed ? how->dynamic_shared : how->shared };
}

/* Returns the GPUs of a set that have enough shared memory for a block. */
static target_set gpus_with_room(target_set gpus, shared_bytes need)
{
    target_set with = 0;
    for (size_t g = 0; g < target_count; g++)
        if (gpus & target_bit(&targets[g]) && has_room(&targets[g], need))
            with |= target_bit(&targets[g]);
    return with;
}

/* Returns the instance, with the fewest passes that fit all GPUs if its passes are 0. */
static instance in_passes(const instance *in, target_set gpus)
{
    const key *passes = family_key(in->family, "passes");
    int64_t most = passes && !in->passes ? key_most(in, passes) : 0;
    instance made = *in;
    for (int64_t number = 2; gpus_with_room(gpus, shared_of(&made)) != gpus; number++) {
        if (number > most)
            return *in;
        made.passes = number;
    }
    return made;
}

bool launch_fit_on(instance *in, target_set gpus)
{
    *in = in_passes(in, gpus);
    return gpus_with_room(gpus, shared_of(in)) == gpus;
}

target_set launch_gpus(const target *const *wanted, size_t count, size_t t)
{
    target_set gpus = target_bit(wanted[t]);
    for (size_t g = 0; g < target_count; g++)
        if (!targets[g].specific && target_newest_for(&targets[g], wanted, count) == t)
            gpus |= target_bit(&targets[g]);
    return gpus;
}

target_set launch_fit(const instance *in, const target *const *wanted, size_t count, instance *made)
{
    target_set served = 0, asked = 0;
    for (size_t t = 0; t < count; t++) {
        target_set own = launch_gpus(wanted, count, t), runs = own;
        made[t] = (instance){ 0 };
        if (in->excluded & target_bit(wanted[t]))
            continue;
        for (size_t g = 0; g < target_count; g++)
            if (target_runs(&targets[g], wanted[t]))
                runs |= target_bit(&targets[g]);
        made[t] = in_passes(in, (own & ~served) | target_bit(wanted[t]));
        served |= gpus_with_room(runs, shared_of(&made[t]));
        asked |= own;
    }
    return asked & ~served;
}

bool launch_fit_stages(instance *in, const target *const *wanted, size_t count)
{
    const key *stages = family_key(in->family, "stages");
    instance fewer = *in, made[TARGET_MOST];
    while (launch_fit(&fewer, wanted, count, made)) {
        if (!stages || fewer.stages <= stages->min)
            return false;
        fewer.stages--;
    }
    *in = fewer;
    return true;
}

const instance *launch_taken(const instance *made, const target *const *wanted, size_t count,
                             const target *gpu)
{
    for (size_t t = count; t-- > 0;)
        if (made[t].family && target_runs(gpu, wanted[t]) && has_room(gpu, shared_of(&made[t])))
            return &made[t];
    return NULL;
}

static target_set unfit(const instance *in, const target *const *wanted, size_t count)
{
    instance made[TARGET_MOST];
    return launch_fit(in, wanted, count, made);
}

/* Finds the key whose change gives each GPU a kernel and keeps the largest fraction of its value.
 * Tuning keys come before keys that decide the result. Returns NULL if there is none. */
static const key *key_that_serves(arena *a, const instance *in, const target *const *wanted,
                                  size_t count, int64_t *value)
{
    enum { SMALL = 16 }; /* numbers up to it are tried one by one; larger ones are halved */
    const key *best = NULL;
    double most_kept = 0;
    for (const key *k = in->family->keys; k->name; k++) {
        instance fewer = *in;
        bool fixed = k->choices || k->real || (k->required && in->family->launch.roomier);
        int64_t own = instance_value(in, k), unit = key_multiple(in, k), serves = 0;
        for (int64_t number = own / unit; !fixed && !serves && number > 1;) {
            number = number <= SMALL ? number - 1 : number / 2;
            if (takes_value(a, &fewer, k, number * unit) && !unfit(&fewer, wanted, count))
                serves = number * unit;
        }
        double kept = serves ? (double)serves / (double)own + !k->required : 0;
        if (kept <= most_kept)
            continue;
        most_kept = kept;
        best = k;
        *value = serves;
    }
    return best;
}

/* Returns a change that gives each GPU a kernel, as the end of a sentence. */
static const char *remedy(arena *a, const instance *in, const target *const *wanted, size_t count,
                          const char **blamed)
{
    instance open = *in;
    int64_t value = 0;
    const char *change = NULL;
    open.passes = 0;
    if (blamed && in->passes && !unfit(&open, wanted, count))
        return blame_key(a, blamed, "passes",
                         "leave out passes: each target then uses as few as fit");
    const key *best = blamed ? key_that_serves(a, in, wanted, count, &value) : NULL;
    if (blamed)
        *blamed = best ? best->name : "k";
    if (best)
        change = arena_format(a, "set %s = %lld", best->name, (long long)value);
    for (size_t first = 1; first < count; first++)
        if (!unfit(in, wanted + first, count - first))
            return arena_format(a, "%s%sleave out targets older than %s", change ? change : "",
                                change ? ", or " : "", wanted[first]->name);
    if (change || !in->family->launch.roomier)
        return change ? change : "use smaller sizes";
    return arena_format(a, "use %s, which accepts any size", in->family->launch.roomier);
}

const char *launch_unfit(arena *a, const instance *in, const target *const *wanted, size_t count,
                         const char **blamed)
{
    instance made[TARGET_MOST];
    target_set gpus = launch_fit(in, wanted, count, made);
    const target *first = targets;
    if (!gpus)
        return NULL;
    while (!(gpus & target_bit(first)))
        first++;
    size_t t = target_newest_for(first, wanted, count);
    shared_need need = launch_shared_need(&made[t], first);
    strbuf text = strbuf_new(a);
    strbuf_put(&text, "no kernel for ");
    target_print_set(&text, gpus);
    strbuf_format(&text, ": %s needs %lld bytes of %s per block; %s has %lld; %s", in->name,
                  (long long)need.bytes, need.kind, first->name, (long long)need.limit,
                  remedy(a, in, wanted, count, blamed));
    return text.text;
}

bool next_is_early(const instance *in)
{
    int64_t bytes = 0; /* bytes of weights that a launch reads */
    unsigned matrices = 0;
    for (const param *p = in->family->params; p->name; p++) {
        if (!p->weights)
            continue;
        instance one = instance_matrix(in, matrices++);
        format f = p->matrix ? instance_weights(&one) : instance_weights(in);
        bytes += (int64_t)format_bytes(f, (uint64_t)formula_value(p->values, in, NULL));
    }
    return in->family->launch.weights_first && bytes <= NEXT_OF_STEPS;
}

size_t next_param(arena *a, const instance *in)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params), i = 0;
    while (i < count && params[i].order != ORDER_FETCHED)
        i++;
    return i < count ? i : MAX_PARAMS;
}
