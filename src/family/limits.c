#include "family/limits.h"

#include "family/formula.h"
#include "target.h"

/* The extents of a launch: blocks in three directions, and threads of a block. */
enum { EXTENTS = 4, THREADS = 3 };

static const struct {
    const char *what;
    int64_t most;
} extents[EXTENTS] = {
    { "blocks in x", TARGET_MOST_GRID_X },
    { "blocks in y", TARGET_MOST_GRID_YZ },
    { "blocks in z", TARGET_MOST_GRID_YZ },
    { "threads a block", TARGET_MOST_THREADS },
};

/* An extent on the largest GPU; -1 where other run-time values decide it. */
static int64_t extent_of(const instance *in, int which)
{
    static const run_values run = { .sm_count = TARGET_MOST_SMS };
    const launch *how = &in->family->launch;
    return formula_value(which == THREADS ? how->block : how->grid[which], in, &run);
}

/* The first extent that is too large; EXTENTS: none is. */
static int broken(const instance *in)
{
    int which = 0;
    while (which < EXTENTS && extent_of(in, which) <= extents[which].most)
        which++;
    return which;
}

/* Returns true if the family takes the instance with another value of a key. */
static bool takes_value(arena *a, instance *in, const key *k, int64_t value)
{
    const char *blamed = NULL;
    instance_set(in, k, value);
    return instance_takes(in, k) && !(in->family->check && in->family->check(in, a, &blamed));
}

/* Returns a value of a key, below its own, with which the family takes the instance and it can be
 * launched: the largest one, or one near it. Returns 0 if there is none. */
static int64_t value_that_fits(arena *a, const instance *in, const key *k)
{
    enum { NEAR = 64 }; /* values to try below the largest that can be launched */
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
    double most_kept = 0; /* of a key's value */
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t fits = k->choices || k->real ? 0 : value_that_fits(a, in, k);
        double kept = fits ? (double)fits / (double)instance_value(in, k) : 0;
        if (kept <= most_kept)
            continue;
        most_kept = kept;
        *blamed = k->name;
        way_out = arena_format(a, "; %s = %lld would do", k->name, (long long)fits);
    }
    return arena_format(a, "%s would have %lld %s; CUDA allows %lld%s", in->name,
                        (long long)extent_of(in, which), extents[which].what,
                        (long long)extents[which].most, way_out);
}

int64_t launch_shared_bytes(const char *formula, const instance *in)
{
    int64_t bytes = formula ? formula_value(formula, in, NULL) : 0;
    return bytes > 0 ? bytes : 0;
}

shared_need launch_shared_need(const instance *in, const target *t)
{
    const launch *how = &in->family->launch;
    int64_t fixed = launch_shared_bytes(how->shared, in);
    int64_t dynamic = launch_shared_bytes(how->dynamic_shared, in);
    if (fixed > t->shared_static)
        return (shared_need){ fixed, t->shared_static, "static shared memory", how->shared };
    return (shared_need){ fixed + dynamic, t->shared_block, "shared memory",
                          dynamic > fixed ? how->dynamic_shared : how->shared };
}

int64_t launch_most_vectors(const instance *in, const target *const *wanted, size_t count)
{
    instance fewer = *in;
    const key *m = family_key(in->family, "m");
    for (fewer.shape.m = m ? m->max : 1; fewer.shape.m; fewer.shape.m /= 2) {
        size_t fits = 0;
        for (; fits < count; fits++) {
            shared_need need = launch_shared_need(&fewer, wanted[fits]);
            if (need.bytes > need.limit)
                break;
        }
        if (fits == count)
            break;
    }
    return fewer.shape.m;
}
