/* From a section's lists to instances: every combination, in the order of the family's key table
 * with the last key varying fastest, like the digits of a counter. */
#include "input/product.h"

#include <string.h>

#include "kernel/formula.h"
#include "cost/choose.h"
#include "kernel/limits.h"

static const char SHAPE[] = "shape";

static size_t key_count(const family *f)
{
    size_t count = 0;
    while (f->keys[count].name)
        count++;
    return count;
}

static bool is_dims(const key *k)
{
    return k->field == KEY_FIELD(dims);
}

static bool has_shape(const family *f)
{
    return family_key(f, "k") && family_key(f, "n");
}

typedef VEC(const char *) key_names;

static key_names names_of_keys(arena *a, const family *f)
{
    key_names names = { 0 };
    for (const key *k = f->keys; k->name; k++)
        *VEC_PUSH(a, &names) = k->name;
    if (has_shape(f))
        *VEC_PUSH(a, &names) = SHAPE;
    return names;
}

static void report_unknown_key(arena *a, const family *f, const entry *e, diags *d)
{
    if (is_global_key(e->key)) {
        diag_error(d, DIAG_UNKNOWN_KEY, e->where, "%s has no key '%s'; it belongs into [ptxgen]",
                   f->name, e->key);
        return;
    }
    key_names names = names_of_keys(a, f);
    diag_error(d, DIAG_UNKNOWN_KEY, e->where, "%s has no key '%s'%s", f->name, e->key,
               suggestion(a, e->key, names.items, names.count, "its keys are"));
}

static bool is_static_only(const family *f)
{
    const key *k = f->keys;
    while (k->name && !is_dims(k))
        k++;
    return !k->name;
}

static bool is_dims_entry(const entry *e)
{
    return strcmp(e->key, "dims") == 0;
}

/* A family whose sizes are always baked in takes dims = static, and nothing else. What [ptxgen]
 * says is of k and n: families without them, attention, are none of its business. */
static void check_static_only(const section *s, const family *f, const value_list *default_dims,
                              diags *d)
{
    bool said = !family_key(f, "k") && !family_key(f, "n");
    for (size_t i = 0; i < s->entries.count; i++) {
        const entry *e = &s->entries.items[i];
        for (size_t j = 0; is_dims_entry(e) && j < e->items.count; j++)
            if (strcmp(e->items.items[j].text, dims_choices[DIMS_STATIC].word) != 0)
                diag_error(
                    d, DIAG_BAD_CHOICE, e->items.items[j].where,
                    "%s is static only, its sizes are baked in; dims has no choice '%s' here",
                    f->name, e->items.items[j].text);
        said |= is_dims_entry(e);
    }
    for (size_t i = 0; !said && default_dims && i < default_dims->count; i++)
        if (default_dims->items[i].numbers[0] == DIMS_DYNAMIC) {
            diag_error(
                d, DIAG_CONFLICT, s->name_where,
                "%s is static only, its sizes are baked in, and [ptxgen] says dims = dynamic; "
                "say dims = static in this section",
                f->name);
            return;
        }
}

/* The section's entries by key: those of the table, and shape behind them. */
static const entry **match_entries(arena *a, const section *s, const family *f, diags *d)
{
    size_t count = key_count(f);
    const entry **entries = arena_zalloc(a, (count + 1) * sizeof *entries);
    for (size_t i = 0; i < s->entries.count; i++) {
        const entry *e = &s->entries.items[i];
        const key *k = family_key(f, e->key);
        bool shape = has_shape(f) && strcmp(e->key, SHAPE) == 0;
        if (!k && !shape) {
            if (!is_dims_entry(e))
                report_unknown_key(a, f, e, d);
            continue;
        }
        const entry **known = &entries[k ? (size_t)(k - f->keys) : count];
        if (*known)
            diag_error(d, DIAG_DUPLICATE_KEY, e->where,
                       "'%s' stands twice in this section; the first is on line %u", e->key,
                       (*known)->where.line);
        else
            *known = e;
    }
    return entries;
}

/* shape takes the place of both k and n. */
static void report_shape_beside(const entry *shape, const entry *other, diags *d)
{
    if (shape && other)
        diag_error(d, DIAG_BAD_SHAPE, shape->where,
                   "shape gives k and n; '%s' stands beside it on line %u", other->key,
                   other->where.line);
}

/* Adds a factor; false where it has no value. */
static bool add_axis(arena *a, product *p, axis factor)
{
    if (!factor.values.count)
        return false;
    *VEC_PUSH(a, &p->axes) = factor;
    p->count *= factor.values.count;
    if (p->count > SPEC_MAX_INSTANCES)
        p->count = (uint64_t)SPEC_MAX_INSTANCES + 1;
    return true;
}

/* The values of dims, which decide whether sizes are required. They are unknown where they were
 * given wrong: then nothing is said of sizes. */
static const value_list *read_dims(arena *a, const family *f, const entry **entries,
                                   const value_list *default_dims, diags *d)
{
    for (const key *k = f->keys; k->name; k++) {
        const entry *e = entries[k - f->keys];
        if (!is_dims(k) || !e)
            continue;
        value_list *dims = arena_zalloc(a, sizeof *dims);
        values_read(a, k, e, dims, d);
        return dims;
    }
    return default_dims;
}

static bool may_be_static(const value_list *dims)
{
    for (size_t i = 0; dims && i < dims->count; i++)
        if (dims->items[i].numbers[0] == DIMS_STATIC)
            return true;
    return !dims;
}

/* Whether an unknown key was probably meant to be this one, or the shape that has it. */
static bool is_misspelt(arena *a, const product *p, const key *k)
{
    const family *f = p->family;
    key_names names = names_of_keys(a, f);
    bool in_shape = k == family_key(f, "k") || k == family_key(f, "n");
    for (size_t i = 0; i < p->section->entries.count; i++) {
        const char *written = p->section->entries.items[i].key;
        const char *meant = closest_match(written, names.items, names.count);
        if (meant && strcmp(meant, written) != 0 &&
            (strcmp(meant, k->name) == 0 || (in_shape && meant == SHAPE)))
            return true;
    }
    return false;
}

/* A key that the section does not give. */
static bool may_be_absent(arena *a, const product *p, const key *k, const value_list *dims,
                          diags *d)
{
    if (!k->required || (k->at_run_time && !may_be_static(dims)))
        return true;
    if (!p->section->damaged && !is_misspelt(a, p, k))
        diag_error(d, DIAG_MISSING_KEY, p->section->name_where, "%s requires the key '%s'",
                   p->family->name, k->name);
    return false;
}

bool product_read(arena *a, const section *s, const family *f, const value_list *default_dims,
                  product *out, diags *d)
{
    *out = (product){ .family = f, .section = s, .count = 1 };
    const entry **entries = match_entries(a, s, f, d), *shape = entries[key_count(f)];
    const key *columns = family_key(f, "k"), *rows = family_key(f, "n");
    const value_list *dims = read_dims(a, f, entries, default_dims, d);
    if (is_static_only(f))
        check_static_only(s, f, default_dims, d);

    bool complete = true;
    for (const key *k = f->keys; k->name; k++) {
        const entry *e = entries[k - f->keys];
        bool in_shape = shape && (k == columns || k == rows);
        axis factor = { .keys = { k } };
        if (in_shape)
            report_shape_beside(shape, e, d);
        if (in_shape && k == rows)
            continue;
        if (in_shape) {
            factor.keys[1] = rows;
            values_read_shapes(a, columns, rows, shape, &factor.values, d);
        } else if (is_dims(k) && dims) {
            factor.values = *dims;
        } else if (e) {
            values_read(a, k, e, &factor.values, d);
        } else {
            complete = may_be_absent(a, out, k, dims, d) && complete;
            continue;
        }
        complete = add_axis(a, out, factor) && complete;
    }
    return complete;
}

static bool is_given(const product *p, const key *k)
{
    for (size_t i = 0; i < p->axes.count; i++)
        if (p->axes.items[i].keys[0] == k || p->axes.items[i].keys[1] == k)
            return true;
    return false;
}

static instance present_instance(const product *p)
{
    instance in = { .family = p->family, .where = p->section->where };
    for (const key *k = p->family->keys; k->name; k++)
        instance_set(&in, k, key_default(k));
    for (size_t i = 0; i < p->axes.count; i++) {
        const axis *factor = &p->axes.items[i];
        for (int j = 0; j < 2 && factor->keys[j]; j++)
            instance_set(&in, factor->keys[j], factor->values.items[factor->at].numbers[j]);
    }
    for (const key *k = p->family->keys; k->name; k++)
        if (k->like && !is_given(p, k))
            instance_set(&in, k, instance_default(&in, k));
    for (const key *k = p->family->keys; k->name; k++) /* left to the run */
        if (k->at_run_time && in.dims == DIMS_DYNAMIC && !is_given(p, k))
            instance_set(&in, k, 0);
    return in;
}

/* Moves on to the next combination; false behind the last. */
static bool advance(product *p)
{
    for (size_t i = p->axes.count; i-- > 0;) {
        axis *factor = &p->axes.items[i];
        if (++factor->at < factor->values.count)
            return true;
        factor->at = 0;
    }
    return false;
}

/* Where to put a problem of the present instance that a key is to blame for, or NULL where that
 * place has been blamed before. */
static const location *blame(product *p, const char *key_name)
{
    const key *k = key_name ? family_key(p->family, key_name) : NULL;
    for (size_t i = 0; k && i < p->axes.count; i++) {
        axis *factor = &p->axes.items[i];
        if (factor->keys[0] != k && factor->keys[1] != k)
            continue;
        value *v = &factor->values.items[factor->at];
        const location *where = v->blamed ? NULL : &v->item->where;
        v->blamed = true;
        return where;
    }
    const location *where = p->blamed ? NULL : &p->section->name_where;
    p->blamed = true;
    return where;
}

/* The instances that a combination stands for: itself, or those chosen for the targets, each for
 * its own. */
static void resolve(arena *a, const instance *asked, const target *const *wanted,
                    size_t wanted_count, instance_list *out)
{
    out->count = 0;
    if (asked->variant != VARIANT_AUTO) {
        instance *named = VEC_PUSH(a, out);
        *named = *asked;
        named->precision = PRECISION_F32; /* its own: families with that key round nothing */
        return;
    }
    for (size_t i = 0; i < wanted_count; i++) {
        instance chosen = cost_choose(asked, wanted[i], launch_gpus(wanted, wanted_count, i), NULL);
        chosen.name = instance_make_name(a, &chosen);
        size_t at = 0;
        while (at < out->count && strcmp(out->items[at].name, chosen.name) != 0)
            at++;
        if (at == out->count)
            *VEC_PUSH(a, out) = chosen;
        else
            instance_merge(&out->items[at], &chosen);
    }
}

/* The alias of what is asked for, whose name does not say what was chosen; NULL where the spec
 * names the kernel itself. */
static asked_alias *alias_of(arena *a, const instance *asked, size_t wanted_count,
                             alias_list *aliases)
{
    if (asked->variant != VARIANT_AUTO)
        return NULL;
    const char *name =
        arena_format(a, "%s%s", asked->name, asked->precision == PRECISION_F32 ? "_f32" : "");
    size_t count = aliases->asked.count;
    size_t at = name_map_find_or_add(a, &aliases->names, name, count);
    if (at == count)
        *VEC_PUSH(a, &aliases->asked) =
            (asked_alias){ name, arena_zalloc(a, wanted_count * sizeof(size_t)) };
    return &aliases->asked.items[at];
}

/* Columns that the present weights don't come in. */
static bool check_multiples(arena *a, product *p, const instance *in, diags *d)
{
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t number = k->of_weights ? instance_value(in, k) : 0;
        int64_t unit = k->of_weights ? key_multiple(in, k) : 1, below = number / unit * unit;
        if (number == below)
            continue;
        const location *where = blame(p, k->name);
        if (!where)
            return false;
        const char *said =
            arena_format(a, "%s = %lld is not a multiple of %lld, as %s needs", k->name,
                         (long long)number, (long long)unit, formats[key_weights(in, k)].name);
        bool has_below = below >= k->min && below > 0, has_above = below + unit <= k->max;
        if (has_below && has_above)
            diag_error(d, DIAG_NOT_A_MULTIPLE, *where, "%s; the nearest are %lld and %lld", said,
                       (long long)below, (long long)(below + unit));
        else
            diag_error(d, DIAG_NOT_A_MULTIPLE, *where, "%s; the %s is %lld", said,
                       has_above ? "smallest" : "largest",
                       (long long)(has_above ? below + unit : below));
        return false;
    }
    return true;
}

static bool check_family(arena *a, product *p, const instance *in, diags *d)
{
    if (!check_multiples(a, p, in, d))
        return false;
    const char *blamed = NULL;
    const char *message = in->family->check ? in->family->check(in, a, &blamed) : NULL;
    if (!message)
        return true;
    const location *where = blame(p, blamed);
    if (where)
        diag_error(d, DIAG_CONFLICT, *where, "%s", message);
    return false;
}

static bool check_launch(arena *a, product *p, const instance *in, diags *d)
{
    const char *blamed = NULL, *message = launch_problem(a, in, &blamed);
    const location *where = message ? blame(p, blamed) : NULL;
    if (where)
        diag_error(d, DIAG_LAUNCH_LIMIT, *where, "%s", message);
    return !message;
}

/* Each GPU gets a kernel that it has the shared memory for. */
static bool check_shared_memory(arena *a, product *p, const instance *in,
                                const target *const *wanted, size_t wanted_count, diags *d)
{
    const char *blamed = NULL, *message = launch_unfit(a, in, wanted, wanted_count, &blamed);
    const location *where = message ? blame(p, blamed) : NULL;
    if (where)
        diag_error(d, DIAG_SHARED_MEMORY, *where, "%s", message);
    return !message;
}

/* Whether the target has what the keys choose. */
static bool check_target(product *p, const instance *in, const target *t, diags *d)
{
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t chosen = k->sm ? instance_value(in, k) : 0;
        if (!chosen || t->sm >= k->sm)
            continue;
        const location *where = blame(p, k->name);
        if (where)
            diag_error(d, DIAG_CONFLICT, *where,
                       "%s = %s needs sm_%u or newer, and %s is a target; %s = %s runs on all",
                       k->name, k->choices[chosen].word, k->sm, t->name, k->name,
                       k->choices[0].word);
        return false;
    }
    return true;
}

static bool check(arena *a, product *p, const instance *in, const target *const *wanted,
                  size_t wanted_count, diags *d)
{
    bool right = check_family(a, p, in, d) && check_launch(a, p, in, d);
    for (size_t i = 0; right && i < wanted_count; i++)
        right = (in->excluded & target_bit(wanted[i])) || check_target(p, in, wanted[i], d);
    return right && check_shared_memory(a, p, in, wanted, wanted_count, d);
}

/* What of an instance not all targets have: "mma_gemm", or "mma_gemm of m = 256". */
static const char *demanding(arena *a, const instance *in, const char **needs)
{
    *needs = arena_format(a, "sm_%u or newer", in->family->sm);
    for (const key *k = in->family->keys; k->name; k++)
        if (k->specific_sm && instance_value(in, k) >= k->specific_from) {
            *needs = arena_format(a, "sm_%ua", k->specific_sm);
            return arena_format(a, "%s of %s = %lld", in->family->name, k->name,
                                (long long)instance_value(in, k));
        }
    return in->family->name;
}

/* Leaves out the targets that do not have what the family or the number of a key needs. False where
 * none is left. */
static bool leave_out_targets(arena *a, product *p, instance *in, const target *const *wanted,
                              size_t wanted_count, diags *d)
{
    strbuf others = strbuf_new(a);
    size_t left = wanted_count;
    for (size_t i = 0; i < wanted_count; i++) {
        if (instance_suits(in, wanted[i]))
            continue;
        in->excluded |= target_bit(wanted[i]);
        strbuf_format(&others, "%s%s", others.length ? ", " : "", wanted[i]->name);
        left--;
    }
    const location *where = others.length ? blame(p, NULL) : NULL;
    const char *needed, *what = demanding(a, in, &needed);
    if (where && left)
        diag_note(d, DIAG_OLD_TARGET, *where, "%s needs %s, and is not made for %s", what, needed,
                  others.text);
    else if (where)
        diag_error(d, DIAG_OLD_TARGET, *where, "%s needs %s, and the targets are %s", what, needed,
                   others.text);
    return left;
}

static bool same_section(const instance *a, const instance *b)
{
    return a->where.file == b->where.file && a->where.line == b->where.line;
}

static void note_repetitions(arena *a, const product *p, size_t count, const instance *first,
                             diags *d)
{
    const char *place = diag_line(a, &first->where, &p->section->where);
    if (count == 1)
        diag_note(d, DIAG_SAME_INSTANCE, p->section->where,
                  "%s is made for the section on %s already; it is made once", first->name, place);
    else if (count)
        diag_note(d, DIAG_SAME_INSTANCE, p->section->where,
                  "%zu instances are made for other sections already, %s for that on %s; "
                  "they are made once",
                  count, first->name, place);
}

void product_expand(arena *a, product *p, const target *const *wanted, size_t wanted_count,
                    name_map *names, instance_list *out, alias_list *aliases, diags *d)
{
    const key *stages = family_key(p->family, "stages");
    size_t repeated = 0, first_repeated = 0;
    instance_list made = { 0 };
    do {
        instance asked = present_instance(p);
        asked.name = instance_make_name(a, &asked);
        resolve(a, &asked, wanted, wanted_count, &made);
        asked_alias *named = alias_of(a, &asked, wanted_count, aliases);
        for (size_t i = 0; i < made.count; i++) {
            instance *in = &made.items[i];
            if (!leave_out_targets(a, p, in, wanted, wanted_count, d))
                continue;
            if (stages && !is_given(p, stages) && launch_fit_stages(in, wanted, wanted_count))
                in->name = instance_make_name(a, in);
            if (!check(a, p, in, wanted, wanted_count, d))
                continue;
            size_t at = name_map_find_or_add(a, names, in->name, out->count);
            for (size_t t = 0; named && t < wanted_count; t++)
                if (!(in->excluded & target_bit(wanted[t])))
                    named->chosen[t] = at;
            if (at == out->count) {
                *VEC_PUSH(a, out) = *in;
                continue;
            }
            instance *known = &out->items[at];
            instance_merge(known, in);
            if (!same_section(known, in) && !repeated++)
                first_repeated = at;
        }
    } while (advance(p));
    if (repeated)
        note_repetitions(a, p, repeated, &out->items[first_repeated], d);
}
