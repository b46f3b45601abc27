/* The meaning of a spec: the keys of [ptxgen], then one product of lists for each section.
 *
 * The [ptxgen] sections of all files form one. If several files set a key, the file with the
 * smallest include depth wins, so an including file overrides the files that it includes. */
#include "input/spec.h"

#include <stdlib.h>
#include <string.h>

#include "input/values.h"
#include "kernel/limits.h"

enum { MAX_PREFIX = 64 };

static const key dims_key = KEY_DIMS;

typedef VEC(const target *) target_list;

typedef struct parser {
    arena *arena;
    diags *diags;
    const family *const *families;
    const upper_storey *upper; /* or NULL */
    const char *prefix;
    target_list targets;
    value_list dims; /* value of dims in [ptxgen] */
    bool has_dims;
    embedding embed;
} parser;

/* Rejects prefixes of names that C or C++ reserves: with '_' in front, or '__' anywhere. */
static void set_prefix(parser *p, const char *prefix, location where, const char *origin)
{
    size_t length = strlen(prefix);
    const char *rule = length > MAX_PREFIX ? "a prefix has at most 64 characters" : NULL;
    if (strstr(prefix, "__") || (length && prefix[length - 1] == '_'))
        rule = "ptxgen appends '_', and C++ reserves names with '__'";
    for (const char *c = prefix; *c; c++)
        if (!is_letter(*c) && !is_digit(*c) && *c != '_')
            rule = "a prefix has only letters, digits and '_'";
    if (!is_letter(prefix[0]))
        rule = "a prefix starts with a letter";
    if (rule)
        diag_error(p->diags, DIAG_BAD_PREFIX, where, "%s'%s' is not a valid prefix: %s", origin,
                   prefix, rule);
    p->prefix = prefix;
}

static void add_target(parser *p, const char *name, location where, const char *origin)
{
    const target *found = target_find(name);
    if (!found) {
        const char **names = arena_alloc(p->arena, target_count * sizeof *names);
        for (size_t i = 0; i < target_count; i++)
            names[i] = targets[i].name;
        diag_error(p->diags, DIAG_BAD_TARGET, where, "%s'%s' is not a target%s", origin, name,
                   suggestion(p->arena, name, names, target_count, "the targets are"));
        return;
    }
    for (size_t i = 0; i < p->targets.count; i++)
        if (p->targets.items[i] == found) {
            diag_warning(p->diags, DIAG_DUPLICATE_VALUE, where,
                         "%s'%s' repeats a target; the duplicate is ignored", origin, name);
            return;
        }
    *VEC_PUSH(p->arena, &p->targets) = found;
}

static void read_global_key(parser *p, const entry *e)
{
    const item *first = e->items.count ? e->items.items : NULL;
    const item *second = e->items.count > 1 ? first + 1 : NULL;
    if (strcmp(e->key, "prefix") == 0) {
        if (second)
            diag_error(p->diags, DIAG_BAD_PREFIX, second->where,
                       "prefix must be one name, not a list");
        if (first)
            set_prefix(p, first->text, first->where, "");
    } else if (strcmp(e->key, "targets") == 0) {
        for (size_t i = 0; i < e->items.count; i++)
            add_target(p, e->items.items[i].text, e->items.items[i].where, "");
    } else if (strcmp(e->key, dims_key.name) == 0) {
        values_read(p->arena, &dims_key, e, &p->dims, p->diags);
        p->has_dims = true;
    } else if (strcmp(e->key, "embed") == 0) {
        if (second)
            diag_error(p->diags, DIAG_BAD_CHOICE, second->where,
                       "embed must be one word, not a list");
        if (first && !embedding_find(first->text, &p->embed))
            diag_error(
                p->diags, DIAG_BAD_CHOICE, first->where, "embed cannot be '%s'%s", first->text,
                suggestion(p->arena, first->text, embedding_names, EMBED_COUNT, "the choices are"));
    } else {
        size_t count = 0;
        while (global_keys[count])
            count++;
        diag_error(p->diags, DIAG_UNKNOWN_KEY, e->where, "[ptxgen] has no key '%s'%s", e->key,
                   suggestion(p->arena, e->key, global_keys, count, "its keys are"));
    }
}

/* An entry of [ptxgen] and the include depth of its file. */
typedef struct setting {
    const entry *entry;
    unsigned depth;
} setting;

/* Reads the keys of all [ptxgen] except include; the smallest include depth wins. */
static void read_globals(parser *p, const section_list *sections)
{
    VEC(setting) all = { 0 };
    for (size_t i = 0; i < sections->count; i++) {
        const section *s = sections->items[i];
        name_map lines = { 0 };
        if (section_is_global(s) && s->label)
            diag_error(p->diags, DIAG_BAD_SECTION, s->where,
                       "[ptxgen] cannot have a label; write [ptxgen]");
        for (size_t j = 0; section_is_global(s) && j < s->entries.count; j++) {
            const entry *e = &s->entries.items[j];
            size_t first = is_include(e) ? j : name_map_find_or_add(p->arena, &lines, e->key, j);
            if (first != j)
                diag_error(p->diags, DIAG_DUPLICATE_KEY, e->where,
                           "duplicate key '%s'; the first is on line %u", e->key,
                           s->entries.items[first].where.line);
            else if (!is_include(e))
                *VEC_PUSH(p->arena, &all) = (setting){ e, s->depth };
        }
    }
    name_map keys = { 0 };
    VEC(const setting *) nearest = { 0 }; /* by key: the setting that wins */
    for (size_t i = 0; i < all.count; i++) {
        const setting *s = &all.items[i];
        size_t at = name_map_find_or_add(p->arena, &keys, s->entry->key, nearest.count);
        if (at == nearest.count)
            *VEC_PUSH(p->arena, &nearest) = s;
        else if (s->depth < nearest.items[at]->depth)
            nearest.items[at] = s;
    }
    for (size_t i = 0; i < all.count; i++) {
        const setting *s = &all.items[i];
        const setting *first = nearest.items[name_map_find(&keys, s->entry->key)];
        if (s == first)
            read_global_key(p, s->entry);
        else if (s->depth == first->depth && s->entry->where.file != first->entry->where.file)
            diag_error(p->diags, DIAG_DUPLICATE_KEY, s->entry->where,
                       "'%s' is also set on %s; set it in the file that includes both",
                       s->entry->key, diag_line(p->arena, &first->entry->where, &s->entry->where));
    }
}

/* Reports sections with the same title in one file. Different files may repeat a title. */
static void report_duplicate_sections(parser *p, const section_list *sections)
{
    name_map titles = { 0 };
    for (size_t i = 0; i < sections->count; i++) {
        const section *s = sections->items[i];
        if (!s->name)
            continue;
        const char *title = arena_format(p->arena, "%s\n%s", s->title, s->where.file);
        size_t first = name_map_find_or_add(p->arena, &titles, title, i);
        if (first == i)
            continue;
        const char *hint = section_is_global(s)
                               ? "merge the two"
                               : arena_format(p->arena, "add a label, such as [%s:name]", s->name);
        diag_error(p->diags, DIAG_DUPLICATE_SECTION, s->where,
                   "duplicate section [%s]; the first is on line %u; %s", s->title,
                   sections->items[first]->where.line, hint);
    }
}

static const family *find_family(parser *p, const section *s)
{
    const family *found = family_find(p->families, s->name);
    if (found)
        return found;
    VEC(const char *) names = { 0 };
    for (const family *const *f = p->families; *f; f++)
        *VEC_PUSH(p->arena, &names) = (*f)->name;
    if (p->upper)
        *VEC_PUSH(p->arena, &names) = p->upper->section;
    const char *closest =
        diags_full(p->diags) ? NULL : closest_match(s->name, names.items, names.count);
    diag_error(p->diags, DIAG_UNKNOWN_FAMILY, s->name_where, "unknown kernel family '%s'; %s",
               s->name,
               closest ? arena_format(p->arena, "did you mean '%s'?", closest)
                       : "ptxgen --list shows all families");
    return NULL;
}

static int by_age(const void *left, const void *right)
{
    const target *a = *(const target *const *)left, *b = *(const target *const *)right;
    return a < b ? -1 : a > b;
}

/* Applies the command line's options last, so that the spec's own values are checked as well. */
static void apply_overrides(parser *p, const spec_overrides *overrides)
{
    location nowhere = { 0 };
    if (overrides && overrides->prefix)
        set_prefix(p, overrides->prefix, nowhere, "--prefix ");
    if (overrides && overrides->targets) {
        p->targets.count = 0;
        for (const char *at = overrides->targets;; at++) {
            size_t length = strcspn(at, ",");
            add_target(p, arena_copy(p->arena, at, length), nowhere, "--target ");
            at += length;
            if (!*at)
                break;
        }
    }
    if (overrides && overrides->embed)
        p->embed = *overrides->embed;
    if (!p->targets.count)
        *VEC_PUSH(p->arena, &p->targets) = target_find(DEFAULT_TARGET);
    qsort(p->targets.items, p->targets.count, sizeof *p->targets.items, by_age);
}

/* The instances of a spec, which never move, with their pipelines and aliases. */
typedef struct contents {
    instance_list instances, of_pipelines;
    VEC(pipeline) pipelines;
    alias_list aliases;
} contents;

/* Adds an instance, or merges it into an existing one with the same name. */
static const instance *add_kernel(parser *p, const instance *made, name_map *names,
                                  instance_list *all)
{
    size_t at = name_map_find_or_add(p->arena, names, made->name, all->count);
    if (at == all->count)
        *VEC_PUSH(p->arena, all) = *made;
    else
        instance_merge(&all->items[at], made);
    return &all->items[at];
}

/* Adds a pipeline and the kernels of its steps. */
static void add_pipeline(parser *p, const instance *in, name_map *names, contents *all)
{
    const pipeline_step **taken =
        arena_alloc(p->arena, pipeline_step_count(in->family) * sizeof *taken);
    size_t count = pipeline_take_steps(in, taken);
    pipeline_launch *steps = arena_alloc(p->arena, (count + 1) * sizeof *steps);
    *VEC_PUSH(p->arena, &all->pipelines) = (pipeline){ in, steps, count };
    for (size_t i = 0; i < count; i++) {
        instance made = step_instance(p->arena, in, taken[i]);
        const char *blamed,
            *refusal = made.family->check ? made.family->check(&made, p->arena, &blamed) : NULL;
        if (refusal)
            diag_error(p->diags, DIAG_CONFLICT, in->where, "%s: %s", in->name, refusal);
        const char *limit = refusal ? NULL : launch_problem(p->arena, &made, &blamed);
        if (limit)
            diag_error(p->diags, DIAG_LAUNCH_LIMIT, in->where, "%s: %s", in->name, limit);
        const char *unfit = refusal || limit ? NULL
                                             : launch_unfit(p->arena, &made, p->targets.items,
                                                            p->targets.count, &blamed);
        if (unfit)
            diag_error(p->diags, DIAG_SHARED_MEMORY, in->where, "%s", unfit);
        steps[i] = (pipeline_launch){ taken[i], add_kernel(p, &made, names, &all->instances) };
    }
}

static bool is_upper(const parser *p, const section *s)
{
    return p->upper && s->name && strcmp(s->name, p->upper->section) == 0;
}

/* Counts the instances of all sections before it makes any, so that too many cost nothing. */
static contents read_families(parser *p, const section_list *sections, const planned *above)
{
    VEC(product) products = { 0 };
    uint64_t total = 0;
    size_t room = above->kernel_count + 1;
    for (size_t i = 0; i < sections->count; i++) {
        const section *s = sections->items[i];
        bool is_family = s->name && !section_is_global(s) && !is_upper(p, s);
        const family *f = is_family ? find_family(p, s) : NULL;
        product lists;
        if (!f || !product_read(p->arena, s, f, p->has_dims ? &p->dims : NULL, &lists, p->diags))
            continue;
        uint64_t made = lists.count * (f->steps ? pipeline_step_count(f) : 1);
        if (total <= SPEC_MAX_INSTANCES && total + made > SPEC_MAX_INSTANCES)
            diag_error(p->diags, DIAG_TOO_MANY, s->name_where,
                       "the lists up to this section make more than %d instances; shorten them",
                       SPEC_MAX_INSTANCES);
        total += made;
        room += (size_t)made * (family_key(f, "variant") ? p->targets.count : 1);
        *VEC_PUSH(p->arena, &products) = lists;
    }

    contents all = { 0 };
    if (total <= SPEC_MAX_INSTANCES) {
        all.instances.items = arena_alloc(p->arena, room * sizeof *all.instances.items);
        all.instances.capacity = room;
    }
    name_map names = { 0 }, pipeline_names = { 0 };
    for (size_t i = 0; i < products.count && total <= SPEC_MAX_INSTANCES; i++) {
        product *lists = &products.items[i];
        bool steps = lists->family->steps != NULL;
        product_expand(p->arena, lists, p->targets.items, p->targets.count,
                       steps ? &pipeline_names : &names, steps ? &all.of_pipelines : &all.instances,
                       &all.aliases, p->diags);
    }
    for (size_t i = 0; i < all.of_pipelines.count; i++)
        add_pipeline(p, &all.of_pipelines.items[i], &names, &all);
    for (size_t i = 0; i < above->kernel_count; i++)
        add_kernel(p, &above->kernels[i], &names, &all.instances);
    return all;
}

/* Returns the section of the upper storey, or NULL if the spec has none. */
static const section *find_upper(parser *p, const section_list *sections)
{
    const section *first = NULL;
    for (size_t i = 0; i < sections->count; i++) {
        const section *s = sections->items[i];
        if (!is_upper(p, s))
            continue;
        if (first && (strcmp(first->title, s->title) != 0 || first->where.file != s->where.file))
            diag_error(p->diags, DIAG_DUPLICATE_SECTION, s->where,
                       "a spec may have only one %s; the first is [%s] on %s", p->upper->section,
                       first->title, diag_line(p->arena, &first->where, &s->where));
        first = first ? first : s;
    }
    return first;
}

static bool make_spec(arena *a, const spec_files *files, const family *const *list,
                      const upper_storey *upper, const spec_overrides *overrides, spec *out,
                      diags *d)
{
    parser p = {
        .arena = a, .diags = d, .families = list, .upper = upper, .prefix = DEFAULT_PREFIX
    };
    const section_list *sections = &files->sections;
    read_globals(&p, sections);
    apply_overrides(&p, overrides);
    report_duplicate_sections(&p, sections);
    const section *of_upper = find_upper(&p, sections);
    planned above = { 0 };
    if (of_upper && !upper->read(a, of_upper, p.targets.items, p.targets.count, &above, d))
        above = (planned){ 0 };
    contents all = read_families(&p, sections, &above);
    if (!d->errors && !all.instances.count)
        diag_error(d, DIAG_NO_KERNELS, (location){ .file = files->name },
                   "the spec has no section of a kernel family; ptxgen --init writes an example");

    *out = (spec){ .prefix = p.prefix,
                   .targets = p.targets.items,
                   .target_count = p.targets.count,
                   .embed = p.embed,
                   .instances = all.instances.items,
                   .instance_count = all.instances.count,
                   .pipelines = all.pipelines.items,
                   .pipeline_count = all.pipelines.count,
                   .aliases = all.aliases.made.items,
                   .alias_count = all.aliases.made.count,
                   .upper = upper,
                   .plan = above.plan,
                   .files = files->paths.items,
                   .file_count = files->paths.count };
    return d->errors == 0;
}

bool spec_read(arena *a, const char *path, const family *const *list, const upper_storey *upper,
               const spec_overrides *overrides, spec *out, diags *d)
{
    spec_files files;
    files_read(a, path, &files, d);
    return make_spec(a, &files, list, upper, overrides, out, d);
}

bool spec_parse(arena *a, const char *name, const char *text, size_t size,
                const family *const *list, const upper_storey *upper,
                const spec_overrides *overrides, spec *out, diags *d)
{
    spec_files files;
    files_read_text(a, name, text, size, &files, d);
    return make_spec(a, &files, list, upper, overrides, out, d);
}

void spec_keep_shard(spec *s, shard part)
{
    size_t kept = 0;
    for (size_t i = (size_t)(part.index - 1); i < s->instance_count; i += (size_t)part.count)
        s->instances[kept++] = s->instances[i];
    s->instance_count = kept;
    s->pipeline_count = s->alias_count = 0;
}

bool spec_keep_instance(arena *a, spec *s, const char *name, diags *d)
{
    const char **names = arena_alloc(a, s->instance_count * sizeof *names);
    for (size_t i = 0; i < s->instance_count; i++) {
        names[i] = s->instances[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        s->instances = &s->instances[i];
        s->instance_count = 1;
        s->pipeline_count = s->alias_count = 0;
        return true;
    }
    const char *closest = closest_match(name, names, s->instance_count);
    diag_error(d, DIAG_UNKNOWN_INSTANCE, (location){ 0 }, "the spec has no instance '%s'; %s", name,
               closest ? arena_format(a, "did you mean '%s'?", closest)
                       : "--print-outputs lists them");
    return false;
}
