/* Generates the tables of the manual pages. A page's template has a line .\" @NAME@ for each table.
 * Rows come from the families, as in --help-family, and from format.def. So the pages cannot differ
 * from the tool. */
#include "input/help.h"

#include <stdlib.h>
#include <string.h>

#include "input/section.h"
#include "kernel/format.h"

enum {
    MOST_NAMED = 8,  /* families listed in the most common row of a key */
    MOST_FORMATS = 8 /* formats listed as exceptions */
};

/* Appends a text line of mdoc. Escapes backslashes, and a dot or quote at its start. */
static void put_text(strbuf *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        strbuf_put(out, "\\&");
    for (; *text; text++)
        strbuf_put(out, *text == '\\' ? "\\e" : (const char[]){ *text, '\0' });
    strbuf_char(out, '\n');
}

/* Appends a list of names with commas, a macro line each. end follows the last name: "" or " .". */
static void put_names(strbuf *out, const char *macro, const char *const *names, size_t count,
                      const char *end)
{
    for (size_t i = 0; i < count; i++)
        strbuf_format(out, ".%s %s%s\n", macro, names[i], i + 1 < count ? " ," : end);
}

/* Returns the values of a key as text: for weights, "any weight format" with few exceptions. */
static const char *range_text(arena *a, const key *k)
{
    strbuf out = strbuf_new(a);
    size_t refused = 0;
    for (const choice *c = k->choices; c && c->word; c++)
        refused += !key_takes_choice(k, c);
    if (k->choices != weights_choices || refused > MOST_FORMATS) {
        help_put_range(&out, k);
        return out.text;
    }
    strbuf_put(&out, "any weight format");
    const char *before = " except ";
    for (const choice *c = k->choices; c->word; c++)
        if (!key_takes_choice(k, c)) {
            strbuf_format(&out, "%s%s", before, c->word);
            before = ", ";
        }
    return out.text;
}

/* Appends "SUMMARY." and "Values: RANGE; default DEF.", or "required" instead of a default. */
static void put_row(strbuf *out, const char *range, const char *def, const char *summary)
{
    if (summary && *summary)
        put_text(out, arena_format(out->arena, "%s.", summary));
    put_text(out, arena_format(out->arena, "Values: %s; %s%s.", range,
                               strcmp(def, "required") == 0 ? "" : "default ", def));
}

/* Appends all families by purpose: what each computes, and its keys. */
static void put_families(strbuf *out, const family *const *list)
{
    for (purpose p = 0; p < PURPOSE_COUNT; p++) {
        strbuf_format(out, ".Ss %s\n", help_purposes[p].heading);
        put_text(out, arena_format(out->arena, "%s.", help_purposes[p].advice));
        strbuf_put(out, ".Bl -tag -width Ds\n");
        for (const family *const *f = list; *f; f++) {
            if (help_purpose_of(*f) != p)
                continue;
            strbuf_format(out, ".It Ic %s\n", (*f)->name);
            put_text(out, arena_format(out->arena, "%s.", (*f)->summary));
            put_text(out, arena_format(out->arena, "%s.", (*f)->computes));
            VEC(const char *) names = { 0 };
            for (const key *k = (*f)->keys; k->name; k++)
                *VEC_PUSH(out->arena, &names) = k->name;
            strbuf_put(out, "Keys:\n");
            put_names(out, "Ic", names.items, names.count, " .");
        }
        strbuf_put(out, ".El\n");
    }
}

/* A row of a key, and the families that share it. */
typedef struct variant {
    const char *name, *range, *def, *summary;
    VEC(const char *) families;
    size_t number; /* of the row, in the order of the families */
} variant;

static int compare_variants(const void *left, const void *right)
{
    const variant *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : a->number < b->number ? -1 : 1;
}

/* Appends a key with all its rows, the most common row last. */
static void put_variants(strbuf *out, const variant *rows, size_t count)
{
    const variant *common = rows;
    for (const variant *v = rows; v < rows + count; v++)
        if (v->families.count > common->families.count)
            common = v;
    strbuf_format(out, ".It Ic %s\n", rows->name);
    if (count > 1)
        strbuf_put(out, ".Bl -dash -compact\n");
    for (size_t i = 0; i < count; i++) {
        const variant *v = i + 1 == count ? common : &rows[i + (rows + i >= common)];
        if (count > 1)
            strbuf_put(out, ".It\n");
        put_row(out, v->range, v->def, v->summary);
        if (count > 1 && v == common && v->families.count > MOST_NAMED) {
            strbuf_put(out, "All other families.\n");
        } else if (v->families.count <= MOST_NAMED || count > 1) {
            strbuf_put(out, "Families:\n");
            put_names(out, "Ic", v->families.items, v->families.count, " .");
        }
    }
    if (count > 1)
        strbuf_put(out, ".El\n");
}

/* Appends the keys of all families, sorted by name. Equal rows are merged. */
static void put_keys(strbuf *out, const family *const *list)
{
    arena *a = out->arena;
    VEC(variant) all = { 0 };
    for (const family *const *f = list; *f; f++)
        for (const key *k = (*f)->keys; k->name; k++) {
            variant made = {
                k->name, range_text(a, k), help_default(a, *f, k), k->summary ? k->summary : "",
                { 0 },   all.count
            };
            size_t i = 0;
            for (const variant *v = all.items; i < all.count; i++, v++)
                if (strcmp(v->name, made.name) == 0 && strcmp(v->range, made.range) == 0 &&
                    strcmp(v->def, made.def) == 0 && strcmp(v->summary, made.summary) == 0)
                    break;
            if (i == all.count)
                *VEC_PUSH(a, &all) = made;
            *VEC_PUSH(a, &all.items[i].families) = (*f)->name;
        }
    qsort(all.items, all.count, sizeof *all.items, compare_variants);
    strbuf_put(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0, end; i < all.count; i = end) {
        for (end = i + 1; end < all.count && strcmp(all.items[i].name, all.items[end].name) == 0;)
            end++;
        put_variants(out, &all.items[i], end - i);
    }
    strbuf_put(out, ".El\n");
}

/* Appends a table of the weight formats or of the cache formats. */
static void put_formats(strbuf *out, const choice *choices)
{
    strbuf_put(out, ".Bd -literal -offset 2n\n"
                    "name     GGUF type    values  bytes  bytes/value\n");
    for (const choice *c = choices; c->word; c++) {
        const format_info *f = formats;
        while (strcmp(f->name, c->word) != 0)
            f++;
        size_t line = out->length;
        strbuf_put(out, f->name);
        strbuf_pad(out, line, 9);
        if (f->gguf_type == NO_GGUF_TYPE)
            strbuf_put(out, "none");
        else
            strbuf_upper(out, f->name);
        strbuf_pad(out, line, 18);
        if (f->gguf_type != NO_GGUF_TYPE)
            strbuf_format(out, "%2d", f->gguf_type);
        strbuf_pad(out, line, 22);
        strbuf_format(out, "%6u  %5u  %s\n", f->block_values, f->block_bytes,
                      real_text(out->arena, (double)f->block_bytes / f->block_values));
    }
    strbuf_put(out, ".Ed\n");
}

/* Appends families by the formats of their key weights, or those without it by format. */
static void put_format_families(strbuf *out, const family *const *list, bool has_key)
{
    VEC(variant) all = { 0 };
    for (const family *const *f = list; *f; f++) {
        const key *k = family_key(*f, "weights");
        if ((k != NULL) != has_key || (!k && (*f)->weights == FORMAT_NONE))
            continue;
        const char *range = k ? range_text(out->arena, k) : formats[(*f)->weights].name;
        size_t i = 0;
        while (i < all.count && strcmp(all.items[i].range, range) != 0)
            i++;
        if (i == all.count)
            *VEC_PUSH(out->arena, &all) = (variant){ .range = range };
        *VEC_PUSH(out->arena, &all.items[i].families) = (*f)->name;
    }
    strbuf_put(out, ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < all.count; i++) {
        strbuf_format(out, ".It %s\n", all.items[i].range);
        put_names(out, "Ic", all.items[i].families.items, all.items[i].families.count, "");
    }
    strbuf_put(out, ".El\n");
}

/* Appends families that round x to 8 bits or to f16, or that read q8_1 blocks. */
static void put_rounding(strbuf *out, const char *name, const family *const *list)
{
    VEC(const char *) names = { 0 };
    for (const family *const *f = list; *f; f++)
        if (strcmp(name, "quantizes") == 0 ? (*f)->quantizes
            : strcmp(name, "halves") == 0  ? (*f)->halves
                                           : !(*f)->steps && (*f)->activations == FORMAT_Q8_1)
            *VEC_PUSH(out->arena, &names) = (*f)->name;
    put_names(out, "Ic", names.items, names.count, " .");
}

/* Appends the members of ptxgen_query that a kernel must match exactly. */
static void put_query(strbuf *out)
{
    static const char *const names[] = {
#define QUERY_SIZE(key, said)
#define QUERY_WAY(key, said)
#define QUERY_MATRIX(id, said)
#define QUERY_OPTION(key, type, member, said) #member,
#define QUERY_WORD(key, said)                 #key,
#include "kernel/query.def"
    };
    put_names(out, "Va", names, sizeof names / sizeof *names, " .");
}

/* Appends a table by its name. The table "decoder" is empty if upper is NULL. */
static void put_table(strbuf *out, const char *name, const family *const *list,
                      const upper_storey *upper)
{
    size_t count = 0;
    const help_row *rows = NULL;
    if (strcmp(name, GLOBAL_SECTION) == 0)
        rows = help_global_rows(out->arena, &count);
    else if (strcmp(name, "decoder") == 0)
        rows = upper ? upper->keys(out->arena, &count) : NULL;
    else if (strcmp(name, "families") == 0)
        put_families(out, list);
    else if (strcmp(name, "keys") == 0)
        put_keys(out, list);
    else if (strcmp(name, "formats") == 0)
        put_formats(out, weights_choices);
    else if (strcmp(name, "caches") == 0)
        put_formats(out, kv_type_choices);
    else if (strcmp(name, "format_families") == 0)
        put_format_families(out, list, true);
    else if (strcmp(name, "fixed_families") == 0)
        put_format_families(out, list, false);
    else if (strcmp(name, "query") == 0)
        put_query(out);
    else
        put_rounding(out, name, list);
    if (!rows)
        return;
    strbuf_put(out, ".Bl -tag -width Ds\n");
    for (const help_row *r = rows; r < rows + count; r++) {
        strbuf_format(out, ".It Ic %s\n", r->key->name);
        put_row(out, r->range ? r->range : range_text(out->arena, r->key), r->def, r->key->summary);
        if (r->with)
            put_text(out, arena_format(out->arena, "Only with %s.", r->with));
    }
    strbuf_put(out, ".El\n");
}

void manual_page(strbuf *out, const char *text, const family *const *list,
                 const upper_storey *upper)
{
    static const char MARK[] = ".\\\" @";
    for (size_t length; *text; text += length) {
        length = strcspn(text, "\n");
        length += text[length] == '\n';
        if (strncmp(text, MARK, strlen(MARK)) != 0) {
            strbuf_bytes(out, text, length);
            continue;
        }
        const char *name = text + strlen(MARK);
        put_table(out, arena_copy(out->arena, name, strcspn(name, "@")), list, upper);
    }
}
