/* Expands the lists of a section into instances: all combinations, in the order of the family's key
 * table. The last key varies fastest. */
#include "input/values.h"

#include <string.h>

#include "cost/cost.h"
#include "kernel/limits.h"

static const char SHAPE[] = "shape";

typedef VEC(const char *) key_names;

/* Rejects dims = dynamic for a family without dims. [ptxgen] concerns families with k or n only. */
static void check_static_only(const section *s, const family *f, const value_list *default_dims,
                              diags *d)
{
    bool said = !family_key(f, "k") && !family_key(f, "n");
    for (size_t i = 0; i < s->entries.count; i++) {
        const entry *e = &s->entries.items[i];
        for (size_t j = 0; strcmp(e->key, "dims") == 0 && j < e->items.count; j++)
            if (strcmp(e->items.items[j].text, dims_choices[DIMS_STATIC].word) != 0)
                diag_error(d, DIAG_BAD_CHOICE, e->items.items[j].where,
                           "%s has no dims = %s: its sizes are compile-time constants; use "
                           "dims = static",
                           f->name, e->items.items[j].text);
        said |= strcmp(e->key, "dims") == 0;
    }
    for (size_t i = 0; !said && default_dims && i < default_dims->count; i++)
        if (default_dims->items[i].numbers[0] == DIMS_DYNAMIC) {
            diag_error(d, DIAG_CONFLICT, s->name_where,
                       "%s has no dims = dynamic, which [ptxgen] sets; add dims = static to this "
                       "section",
                       f->name);
            return;
        }
}

/* Returns the section's entries in the order of the family's key table, then shape. */
static const entry **match_entries(arena *a, const section *s, const family *f, key_names names,
                                   diags *d)
{
    const entry **entries = arena_zalloc(a, (names.count + 1) * sizeof *entries);
    for (size_t i = 0; i < s->entries.count; i++) {
        const entry *e = &s->entries.items[i];
        size_t number = 0;
        while (number < names.count && strcmp(names.items[number], e->key) != 0)
            number++;
        if (number < names.count && entries[number])
            diag_error(d, DIAG_DUPLICATE_KEY, e->where,
                       "duplicate key '%s'; the first is on line %u", e->key,
                       entries[number]->where.line);
        else if (number < names.count)
            entries[number] = e;
        else if (strcmp(e->key, "dims") == 0)
            continue; /* reported by check_static_only */
        else if (is_global_key(e->key))
            diag_error(d, DIAG_UNKNOWN_KEY, e->where, "%s has no key '%s'; set it in [ptxgen]",
                       f->name, e->key);
        else
            diag_error(d, DIAG_UNKNOWN_KEY, e->where, "%s has no key '%s'%s", f->name, e->key,
                       suggestion(a, e->key, names.items, names.count, "its keys are"));
    }
    return entries;
}

bool product_read(arena *a, const section *s, const family *f, const value_list *default_dims,
                  product *out, diags *d)
{
    *out = (product){ .family = f, .section = s, .count = 1 };
    key_names names = { 0 };
    for (const key *k = f->keys; k->name; k++)
        *VEC_PUSH(a, &names) = k->name;
    if (family_key(f, "k") && family_key(f, "n"))
        *VEC_PUSH(a, &names) = SHAPE;
    const entry **entries = match_entries(a, s, f, names, d);
    const key *columns = family_key(f, "k"), *rows = family_key(f, "n"),
              *dims = family_key(f, "dims");
    const key *end = f->keys;
    while (end->name)
        end++;
    const entry *shape = entries[end - f->keys];
    /* Required sizes depend on dims; if dims is invalid (empty), none is required. */
    value_list own_dims = { 0 };
    const entry *said = dims ? entries[dims - f->keys] : NULL;
    if (said)
        values_read(a, dims, said, &own_dims, d);
    if (!dims)
        check_static_only(s, f, default_dims, d);
    const value_list *dims_values = said ? &own_dims : default_dims;
    bool may_be_static = !dims_values, complete = true;
    for (size_t i = 0; dims_values && i < dims_values->count; i++)
        may_be_static |= dims_values->items[i].numbers[0] == DIMS_STATIC;

    for (const key *k = f->keys; k->name; k++) {
        const entry *e = entries[k - f->keys];
        bool in_shape = shape && (k == columns || k == rows);
        axis factor = { .keys = { k } };
        if (in_shape && e)
            diag_error(d, DIAG_BAD_SHAPE, shape->where,
                       "shape already sets k and n; remove '%s' on line %u", e->key, e->where.line);
        if (in_shape && k == rows)
            continue;
        if (in_shape) {
            factor.keys[1] = rows;
            values_read_shapes(a, columns, rows, shape, &factor.values, d);
        } else if (k == dims && dims_values) {
            factor.values = *dims_values;
        } else if (e) {
            values_read(a, k, e, &factor.values, d);
        } else if (!k->required || (k->at_run_time && !may_be_static)) {
            continue;
        } else if (!s->damaged && !section_misspells(s, k->name, names.items, names.count) &&
                   !((k == columns || k == rows) &&
                     section_misspells(s, SHAPE, names.items, names.count))) {
            diag_error(d, DIAG_MISSING_KEY, s->name_where, "%s requires the key '%s'", f->name,
                       k->name);
        }
        complete &= factor.values.count > 0;
        if (!factor.values.count)
            continue;
        *VEC_PUSH(a, &out->axes) = factor;
        out->count *= factor.values.count;
        if (out->count > SPEC_MAX_INSTANCES)
            out->count = (uint64_t)SPEC_MAX_INSTANCES + 1;
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
    instance in = instance_of_defaults(p->family);
    in.where = p->section->where;
    for (size_t i = 0; i < p->axes.count; i++) {
        const axis *factor = &p->axes.items[i];
        for (int j = 0; j < 2 && factor->keys[j]; j++)
            instance_set(&in, factor->keys[j], factor->values.items[factor->at].numbers[j]);
    }
    for (const key *k = p->family->keys; k->name; k++)
        if (k->like && !is_given(p, k))
            instance_set(&in, k, instance_default(&in, k));
    for (const key *k = p->family->keys; k->name; k++) /* a parameter at run time */
        if (k->at_run_time && in.dims == DIMS_DYNAMIC && !is_given(p, k))
            instance_set(&in, k, 0);
    return in;
}

/* Returns the location of a key to blame for the current instance; NULL: already blamed. */
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

/* Expands a combination to itself, or with variant = auto to the choice for each target. */
static void resolve(arena *a, const instance *asked, const target *const *wanted,
                    size_t wanted_count, instance_list *out)
{
    out->count = 0;
    if (asked->variant != VARIANT_AUTO) {
        instance *named = VEC_PUSH(a, out);
        *named = *asked;
        named->precision = PRECISION_F32; /* families with that key round nothing */
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

/* Returns the alias for a request with variant = auto, or NULL for any other request. */
static alias *alias_of(arena *a, const instance *asked, size_t wanted_count, const instance *first,
                       alias_list *aliases)
{
    if (asked->variant != VARIANT_AUTO)
        return NULL;
    const char *name =
        arena_format(a, "%s%s", asked->name, asked->precision == PRECISION_F32 ? "_f32" : "");
    size_t count = aliases->made.count;
    size_t at = name_map_find_or_add(a, &aliases->names, name, count);
    if (at < count)
        return &aliases->made.items[at];
    alias *made = VEC_PUSH(a, &aliases->made);
    *made = (alias){ name, arena_alloc(a, wanted_count * sizeof *made->chosen) };
    for (size_t t = 0; t < wanted_count; t++)
        made->chosen[t] = first;
    return made;
}

/* Returns a message about a size that is not a multiple of its weights' block size, or NULL. */
static const char *multiple_problem(arena *a, const instance *in, const char **blamed)
{
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t number = k->of_weights ? instance_value(in, k) : 0;
        int64_t unit = k->of_weights ? key_multiple(in, k) : 1, below = number / unit * unit;
        if (number == below)
            continue;
        *blamed = k->name;
        const char *needs = key_is_of_weights(in, k) ? formats[key_weights(in, k)].name : NULL;
        const char *said =
            arena_format(a, "%s = %lld is not a multiple of %lld%s", k->name, (long long)number,
                         (long long)unit, needs ? arena_format(a, ", as %s needs", needs) : "");
        bool has_below = below >= k->min && below > 0, has_above = below + unit <= k->max;
        if (has_below && has_above)
            return arena_format(a, "%s; use %lld or %lld", said, (long long)below,
                                (long long)(below + unit));
        return arena_format(a, "%s; the %s is %lld", said, has_above ? "smallest" : "largest",
                            (long long)(has_above ? below + unit : below));
    }
    return NULL;
}

/* Returns a message about a key's choice that the target does not support, or NULL. */
static const char *target_problem(arena *a, const instance *in, const target *t,
                                  const char **blamed)
{
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t chosen = k->sm ? instance_value(in, k) : 0;
        if (!chosen || t->sm >= k->sm)
            continue;
        return blame_key(a, blamed, k->name,
                         "%s = %s needs sm_%u or newer, but %s is a target; use %s = %s", k->name,
                         k->choices[chosen].word, k->sm, t->name, k->name, k->choices[0].word);
    }
    return NULL;
}

/* Returns true if an instance is valid and fits each target's GPUs; else blames a key. */
static bool check(arena *a, product *p, const instance *in, const target *const *wanted,
                  size_t wanted_count, diags *d)
{
    diag_code code = DIAG_NOT_A_MULTIPLE;
    const char *blamed = NULL, *message = multiple_problem(a, in, &blamed);
    if (!message && in->family->check) {
        code = DIAG_CONFLICT;
        message = in->family->check(in, a, &blamed);
    }
    if (!message) {
        code = DIAG_LAUNCH_LIMIT;
        blamed = NULL;
        message = launch_problem(a, in, &blamed);
    }
    for (size_t i = 0; !message && i < wanted_count; i++) {
        code = DIAG_CONFLICT;
        if (!(in->excluded & target_bit(wanted[i])))
            message = target_problem(a, in, wanted[i], &blamed);
    }
    if (!message) {
        code = DIAG_SHARED_MEMORY;
        blamed = NULL;
        message = launch_unfit(a, in, wanted, wanted_count, &blamed);
    }
    const location *where = message ? blame(p, blamed) : NULL;
    if (where)
        diag_error(d, code, *where, "%s", message);
    return !message;
}

/* Excludes targets that the family or a key's value does not support. False if none remains. */
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
    if (!where)
        return left;
    const char *what = in->family->name,
               *needed = arena_format(a, "sm_%u or newer", in->family->sm);
    for (const key *k = in->family->keys; k->name; k++)
        if (k->specific_sm && instance_value(in, k) >= k->specific_from) {
            needed = arena_format(a, "sm_%ua", k->specific_sm);
            what = arena_format(a, "%s of %s = %lld", in->family->name, k->name,
                                (long long)instance_value(in, k));
            break;
        }
    if (left)
        diag_note(d, DIAG_OLD_TARGET, *where, "%s needs %s; it is not generated for %s", what,
                  needed, others.text);
    else
        diag_error(d, DIAG_OLD_TARGET, *where,
                   "%s needs %s; the targets are %s: add a newer target", what, needed,
                   others.text);
    return left;
}

void product_expand(arena *a, product *p, const target *const *wanted, size_t wanted_count,
                    name_map *names, instance_list *out, alias_list *aliases, diags *d)
{
    const key *stages = family_key(p->family, "stages");
    size_t repeated = 0, first_repeated = 0;
    instance_list made = { 0 };
    for (bool is_last = false; !is_last;) {
        instance asked = present_instance(p);
        asked.name = instance_make_name(a, &asked);
        resolve(a, &asked, wanted, wanted_count, &made);
        alias *named = alias_of(a, &asked, wanted_count, out->items, aliases);
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
                    named->chosen[t] = &out->items[at];
            if (at == out->count) {
                *VEC_PUSH(a, out) = *in;
                continue;
            }
            instance *known = &out->items[at];
            instance_merge(known, in);
            bool is_here =
                known->where.file == in->where.file && known->where.line == in->where.line;
            if (!is_here && !repeated++)
                first_repeated = at;
        }
        is_last = true; /* until a list with another value is found */
        for (size_t i = p->axes.count; is_last && i--;) {
            axis *factor = &p->axes.items[i];
            is_last = ++factor->at == factor->values.count;
            factor->at = is_last ? 0 : factor->at;
        }
    }
    if (!repeated)
        return;
    const instance *first = &out->items[first_repeated];
    const location *here = &p->section->where;
    const char *place = diag_line(a, &first->where, here);
    if (repeated == 1)
        diag_note(d, DIAG_SAME_INSTANCE, *here,
                  "%s is also requested by the section on %s; it is generated once", first->name,
                  place);
    else
        diag_note(d, DIAG_SAME_INSTANCE, *here,
                  "%zu instances are also requested by other sections, %s by the section on %s; "
                  "each is generated once",
                  repeated, first->name, place);
}
