#include "mutation/subjects.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "kernel/formula.h"
#include "kernel/generate.h"
#include "kernel/oldest_target.h"

/* Values of keys by name. Other keys have their default, or their minimum without a default. */
static const struct {
    const char *key;
    int64_t value;
} sizes[] = {
    { "n", 3 },         { "n_kv", 5 },         { "m", 2 },
    { "num_heads", 4 }, { "num_kv_heads", 2 }, { "head_dim", 136 },
};

enum {
    STEP = 256,        /* columns per warp and step */
    TURNS = 32,        /* steps for two iterations of every unrolled loop of one warp */
    REST = 3,          /* remaining steps */
    WARP_STEPS = 12,   /* steps of each of several warps: two iterations of 4; 3 remain */
    STAGED_STEPS = 63, /* maximum if all columns are staged in shared memory */
    MANY_ROWS = 1 << 20,
    POSITIONS = 463,     /* 4 warps with two iterations of 64, the last one partial; 4 chunks */
    MERGED = 19,         /* chunks: two iterations of 8; 3 remain */
    CHUNK = 32,          /* positions per chunk */
    SEQUENCES = 3,       /* one of them is empty */
    Q8_0_HEAD_DIM = 192, /* not a power of two of lanes, like 136, but whole pairs of blocks */
};

static int64_t columns(const instance *in, int64_t unit)
{
    int64_t warps = formula_value(in->family->launch.block, in, NULL) / 32;
    int64_t steps = WARP_STEPS * warps - 1;
    if (steps < TURNS + REST)
        steps = TURNS + REST;
    if (in->family->launch.dynamic_shared && steps > STAGED_STEPS)
        steps = STAGED_STEPS;
    return steps * STEP + (unit < STEP ? unit : 0);
}

static bool strides(const family *f)
{
    return strstr(f->launch.grid[0], "sm_count");
}

/* Returns a number of rows for which the blocks of one SM run two iterations, some of them three.
 */
static int64_t strided_rows(const instance *in)
{
    const run_values one_sm = { .sm_count = 1 };
    int64_t rows = formula_value(in->family->launch.rows, in, NULL);
    int64_t blocks = formula_value(in->family->launch.grid[0], in, &one_sm);
    return 2 * blocks * rows + rows + 2;
}

static int64_t small_value(const instance *in, const key *k)
{
    if (strcmp(k->name, "n") == 0 && strides(in->family))
        return MANY_ROWS;
    bool caches = family_key(in->family, "kv_type");
    if (strcmp(k->name, "max_seq_len") == 0)
        return caches ? POSITIONS : (MERGED - 1) * CHUNK + 1;
    if (strcmp(k->name, "chunk_size") == 0 && !caches)
        return CHUNK;
    if (strcmp(k->name, "m") == 0 && family_key(in->family, "max_seq_len"))
        return SEQUENCES;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(k->name, sizes[i].key) == 0 && sizes[i].value >= k->min)
            return sizes[i].value;
    return k->required ? k->min : key_default(k);
}

static instance small_instance(const family *f)
{
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(&in, k, k->real || k->choices ? key_default(k) : small_value(&in, k));
    const key *k = family_key(f, "k");
    if (k)
        instance_set(&in, k, columns(&in, k->multiple_of));
    if (strides(f))
        instance_set(&in, family_key(f, "n"), strided_rows(&in));
    for (k = f->keys; k->name; k++)
        if (k->like && !k->choices)
            instance_set(&in, k, instance_default(&in, k));
    return in;
}

/* Returns the reason why a family refuses an instance, NULL if it accepts it. */
static const char *refusal(arena *a, const instance *in)
{
    const char *blamed;
    return in->family->check ? in->family->check(in, a, &blamed) : NULL;
}

static bool make_subject(arena *a, arena *scratch, const instance *in, subject_list *out,
                         const char **error)
{
    instance *kept = arena_alloc(a, sizeof *kept);
    *kept = *in;
    kept->name = instance_make_name(a, kept);
    *error = refusal(a, kept);
    return !*error &&
           generate_ptx(a, scratch, kept, instance_oldest_target(kept), VEC_PUSH(a, out), error);
}

static int64_t word_count(const key *k)
{
    int64_t count = 0;
    while (k->choices[count].word)
        count++;
    return count;
}

/* Returns true if the products include the key's words. Formats are excluded. */
static bool is_made_of(const key *k)
{
    return k->choices && k->choices != weights_choices && strcmp(k->name, "variant") != 0;
}

static bool takes_choices(const instance *in)
{
    for (const key *k = in->family->keys; k->name; k++)
        if (k->choices && !instance_takes(in, k))
            return false;
    return true;
}

/* Makes a subject for each combination of the words of its keys that the family accepts. The
 * formats alternate, one for all matrices of a kernel, so that each format has a subject. */
static bool make_products(arena *a, arena *scratch, const family *f, subject_list *out,
                          const char **error)
{
    const key *weights = family_key(f, "weights");
    int64_t format_count = weights ? word_count(weights) : 1, products = 1;
    const size_t before = out->count;
    for (const key *k = f->keys; k->name; k++)
        products *= is_made_of(k) ? word_count(k) : 1;
    for (int64_t i = 0; i < products || i < format_count; i++) {
        instance in = small_instance(f);
        int64_t rest = i % products;
        for (const key *k = f->keys; k->name; k++) {
            if (k->choices == weights_choices)
                instance_set(&in, k, i % format_count);
            if (!is_made_of(k))
                continue;
            instance_set(&in, k, rest % word_count(k));
            rest /= word_count(k);
        }
        if (in.kv_type == KV_Q8_0)
            in.shape.head_dim = Q8_0_HEAD_DIM;
        const char *refused = takes_choices(&in) ? refusal(a, &in) : "";
        if (refused)
            *error = refused;
        else if (!make_subject(a, scratch, &in, out, error))
            return false;
    }
    return out->count > before;
}

static bool is_listed(const spec *listed, const family *f)
{
    for (size_t i = 0; i < listed->instance_count; i++)
        if (listed->instances[i].family == f)
            return true;
    return false;
}

static bool is_asked_for(const family *f, char *const *names)
{
    bool asked = !*names;
    for (; *names && !asked; names++)
        asked = strcmp(f->name, *names) == 0;
    return asked;
}

bool make_subjects(arena *a, const spec *listed, char *const *names, subject_list *out,
                   const char **error)
{
    arena *scratch = arena_new();
    bool made = true;
    for (const family *const *f = families; made && *f; f++) {
        if (!is_asked_for(*f, names))
            continue;
        if (!is_listed(listed, *f))
            made = make_products(a, scratch, *f, out, error);
        for (size_t i = 0; made && i < listed->instance_count; i++)
            if (listed->instances[i].family == *f)
                made = make_subject(a, scratch, &listed->instances[i], out, error);
        if (!made)
            *error = arena_format(a, "%s: %s", (*f)->name, *error);
    }
    arena_free(scratch);
    return made;
}
