#include "mutation/subjects.h"

#include <string.h>

#include "base/strbuf.h"
#include "family/formula.h"
#include "generate.h"

/* Values for keys by their names; other keys have their default, or the least where none is. */
static const struct {
    const char *key;
    int64_t value;
} sizes[] = {
    { "n", 3 },         { "n_kv", 5 },          { "m", 2 },
    { "num_heads", 4 }, { "num_kv_heads", 2 },  { "head_dim", 136 },
    { "experts", 44 },  { "experts_used", 20 }, /* two of some lanes; most pairs of rows share one
                                                 */
};

enum {
    STEP = 256,        /* columns that a warp takes at once */
    TURNS = 32,        /* steps that fill two turns of every unrolled loop of one warp, */
    REST = 3,          /* and steps that are left over */
    WARP_STEPS = 12,   /* the same for each of several warps: two turns of 4, and 3; */
    STAGED_STEPS = 63, /* at most, where all columns are staged in shared memory */
    MANY_ROWS = 1 << 20,
    POSITIONS = 463,     /* 4 warps with two turns of 64, the last not full; 4 chunks */
    MERGED = 19,         /* chunks: two turns of 8, and 3 */
    CHUNK = 32,          /* positions a chunk */
    SPLITS = 43,         /* chunks: quarters of them take more than one turn of 8 */
    SPLIT = 7 * 68,      /* positions of a chunk: each of 7 warps has more than a tile of 64 */
    SEQUENCES = 3,       /* of these one is empty */
    Q8_0_HEAD_DIM = 192, /* no power of two of lanes, as 136, but whole pairs of blocks */
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

/* Rows for which the blocks of one SM take two turns, and some of them three. */
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

/* RoPE of a part of a head, so that some values stay, with all that an option can add. */
static void turn(rope_options *o)
{
    o->dims = 72;
    o->factor = 4;
    o->original_context = 64;
    o->magnitude = 1.25;
    o->temperature_length = 100;
    o->temperature_scale = 0.5;
}

static instance small_instance(const family *f)
{
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(&in, k, k->real || k->choices ? key_default(k) : small_value(&in, k));
    const key *k = family_key(f, "k");
    if (k)
        instance_set(&in, k, columns(&in, k->multiple_of));
    if (family_key(f, "n_rot"))
        turn(&in.options.rope);
    if (strides(f))
        instance_set(&in, family_key(f, "n"), strided_rows(&in));
    for (k = f->keys; k->name; k++)
        if (k->like && !k->choices)
            instance_set(&in, k, instance_default(&in, k));
    return in;
}

/* Groups of experts, wherever what is added for the choice makes probabilities the scores. */
static void group(instance *in)
{
    enum { GROUPS = 11, GROUPS_USED = 6 };
    bool grouped = in->options.route.choice_bias;
    in->options.route.groups = grouped ? GROUPS : 0;
    in->options.route.groups_used = grouped ? GROUPS_USED : 0;
}

/* Chunks that merge themselves: one KV head is work enough, and a sequence beside an empty one. */
static void split(instance *in)
{
    enum { HEADS = 2, KV_HEADS = 1, WITH_AN_EMPTY_ONE = 2 };
    in->chunks = SPLITS;
    in->shape.max_seq_len = (int64_t)SPLITS * SPLIT - 3; /* the last group's four are not full */
    in->shape.num_heads = HEADS;
    in->shape.num_kv_heads = KV_HEADS;
    in->shape.m = WITH_AN_EMPTY_ONE;
}

static bool make_subject(arena *a, arena *scratch, const instance *in, subject_list *out,
                         const char **error)
{
    instance *kept = arena_alloc(a, sizeof *kept);
    *kept = *in;
    if (in->kv_type == KV_Q8_0)
        kept->shape.head_dim = Q8_0_HEAD_DIM;
    if (in->chunks)
        split(kept);
    group(kept);
    const char *blamed;
    kept->name = instance_make_name(a, kept);
    *error = in->family->check ? in->family->check(kept, a, &blamed) : NULL;
    return !*error && generate_ptx(a, scratch, kept, target_find("sm_75"), VEC_PUSH(a, out), error);
}

static int64_t word_count(const key *k)
{
    int64_t count = 0;
    while (k->choices[count].word)
        count++;
    return count;
}

/* Formats are no factor of the products. */
static bool is_made_of(const key *k)
{
    return k->choices && k->choices != weights_choices && strcmp(k->name, "variant") != 0;
}

/* Makes a subject for each product of the words of its keys, and at least one for each format: they
 * take turns, all matrices of a kernel being of one. */
static bool make_products(arena *a, arena *scratch, const family *f, subject_list *out,
                          const char **error)
{
    const key *weights = family_key(f, "weights");
    int64_t format_count = weights ? word_count(weights) : 1, products = 1;
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
        if (!make_subject(a, scratch, &in, out, error))
            return false;
    }
    return true;
}

bool make_subjects(arena *a, subject_list *out, const char **error)
{
    arena *scratch = arena_new();
    bool made = true;
    for (const family *const *f = families; made && *f; f++) {
        made = make_products(a, scratch, *f, out, error);
        if (!made)
            *error = arena_format(a, "%s: %s", (*f)->name, *error);
    }
    arena_free(scratch);
    return made;
}

/* Registers by name. */
typedef VEC(const char *) register_set;

static bool in_set(const register_set *set, const char *name, size_t length)
{
    for (size_t i = 0; i < set->count; i++)
        if (strlen(set->items[i]) == length && strncmp(set->items[i], name, length) == 0)
            return true;
    return false;
}

static size_t register_length(const char *at)
{
    return *at == '%' ? 1 + strspn(at + 1, "rdfhp0123456789") : 0;
}

/* Whether a text has a register of the set before end. */
static bool names_one(const register_set *set, const char *at, const char *end)
{
    for (; at < end; at++)
        if (in_set(set, at, register_length(at)))
            return true;
    return false;
}

/* The end of what an instruction writes: its first operand. */
static const char *result_end(const char *line, const char *end)
{
    const char *brace = memchr(line, '{', (size_t)(end - line));
    const char *comma = memchr(line, ',', (size_t)(end - line));
    if (brace && comma && brace < comma)
        comma = memchr(line, '}', (size_t)(end - line));
    return comma ? comma : end;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *skip_guard(const char *code)
{
    size_t guard = *code == '@' ? strcspn(code, " \n") : 0;
    return code + guard + strspn(code + guard, " ");
}

/* Adds the results of a line that depend on data. Returns whether there were new ones. */
static bool add_results(arena *a, register_set *set, const char *line, const char *end)
{
    bool writes =
        !starts(line, "st.") && !starts(line, "bra") && !starts(line, ".") && !starts(line, "$");
    const char *result = result_end(line, end);
    if (!writes || !(starts(line, "ld.") || names_one(set, result, end)))
        return false;
    bool added = false;
    for (const char *at = line; at < result; at++) {
        size_t length = register_length(at);
        if (!length || in_set(set, at, length))
            continue;
        *VEC_PUSH(a, set) = arena_copy(a, at, length);
        added = true;
    }
    return added;
}

bool depends_on_position_alone(arena *a, const char *text, unsigned number)
{
    register_set set = { 0 };
    bool alone = false;
    for (bool more = true; more;) {
        unsigned at = 1;
        more = false;
        for (const char *line = text; *line; at++) {
            const char *code = line + strspn(line, " "), *end = code + strcspn(code, ";\n");
            more |= add_results(a, &set, skip_guard(code), end);
            if (*code == '@' && names_one(&set, code, end))
                return false;
            if (at == number)
                alone = !names_one(&set, code, end);
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    return alone;
}

/* Adds every register that a text names before end. Returns whether there were new ones. */
static bool add_all(arena *a, register_set *set, const char *at, const char *end)
{
    size_t before = set->count;
    for (; at < end; at++) {
        size_t length = register_length(at);
        if (length > 1 && !in_set(set, at, length))
            *VEC_PUSH(a, set) = arena_copy(a, at, length);
    }
    return set->count != before;
}

/* Whether an instruction does more than to compute its result from registers. */
static bool has_effect(const char *code)
{
    static const char *const pure[] = { "add.", "sub.", "mul.", "mad.", "mov.", "cvt.",
                                        "shl.", "shr.", "and.", "or.",  "xor.", "selp." };
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
        if (starts(code, pure[i]))
            return false;
    return true;
}

bool result_is_unused(arena *a, const char *text, unsigned number)
{
    register_set used = { 0 };
    bool unused = false;
    for (bool more = true; more;) {
        unsigned at = 1;
        more = false;
        for (const char *line = text; *line; at++) {
            const char *code = line + strspn(line, " "), *end = code + strcspn(code, ";\n");
            const char *result = result_end(code, end);
            bool effect = has_effect(code), wanted = names_one(&used, code, result);
            if (*code != '.' && (effect || wanted))
                more |= add_all(a, &used, effect ? code : result, end);
            if (at == number)
                unused = !effect && !wanted;
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    return unused;
}
