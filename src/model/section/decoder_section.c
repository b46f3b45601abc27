/* Reads a [decoder] section: its keys in the order of their table, each with the defaults that
 * those ahead of it decide, then the formats of the tensors that there are. */
#include "model/section/decoder_section.h"

#include <string.h>

#include "model/section/decoder_check.h"
#include "model/section/decoder_formats.h"
#include "model/section/decoder_keys.h"
#include "model/section/decoder_reader.h"
#include "input/help.h"
#include "input/values.h"

static size_t setting_count(void)
{
    size_t count = 0;
    while (decoder_settings[count].key.name)
        count++;
    return count;
}

typedef VEC(const char *) name_list;

/* Whether a tensor ahead of it has the same name. */
static bool is_namesake(unsigned t)
{
    for (unsigned other = 0; other < t; other++)
        if (strcmp(tensor_infos[other].name, tensor_infos[t].name) == 0)
            return true;
    return false;
}

/* All that may stand in front of '=': of tensors' formats, those of matrices. */
static name_list names_of_keys(arena *a)
{
    name_list names = { 0 };
    for (const setting *s = decoder_settings; s->key.name; s++)
        if (s->kind != SETTING_FORMATS && s->kind != SETTING_METADATA)
            *VEC_PUSH(a, &names) = s->key.name;
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (tensor_is_matrix(t) && !is_namesake(t))
            *VEC_PUSH(a, &names) = arena_format(a, "%s%s", FORMATS_PREFIX, tensor_word(a, t));
    return names;
}

/* Returns the name of a key of the file, or NULL if the name is no "metadata.NAME". */
static const char *metadata_name(const char *name)
{
    size_t length = strlen(METADATA_PREFIX);
    return strncmp(name, METADATA_PREFIX, length) == 0 && name[length] ? name + length : NULL;
}

static const setting *find_setting(arena *a, const char *name)
{
    for (const setting *s = decoder_settings; metadata_name(name) && s->key.name; s++)
        if (s->kind == SETTING_METADATA)
            return s;
    name_list names = names_of_keys(a);
    for (size_t i = 0; i < names.count; i++) {
        if (strcmp(names.items[i], name) != 0)
            continue;
        const setting *s = decoder_settings;
        while (strcmp(s->key.name, name) != 0 && s->kind != SETTING_FORMATS)
            s++;
        return s;
    }
    return NULL;
}

static void report_unknown_key(reader *r, const entry *e)
{
    if (is_global_key(e->key)) {
        diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                   "decoder has no key '%s'; it belongs into [ptxgen]", e->key);
        return;
    }
    name_list names = names_of_keys(r->arena);
    const char *closest = closest_match(e->key, names.items, names.count);
    if (closest)
        diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                   "decoder has no key '%s'; did you mean '%s'?", e->key, closest);
    else
        diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                   "decoder has no key '%s'; ptxgen --help-family decoder shows them all", e->key);
}

/* Whether an unknown key was probably meant to be this one. */
static bool is_misspelt(reader *r, const char *name)
{
    name_list names = names_of_keys(r->arena);
    for (size_t i = 0; i < r->section->entries.count; i++) {
        const char *written = r->section->entries.items[i].key;
        const char *meant = closest_match(written, names.items, names.count);
        if (meant && strcmp(meant, written) != 0 && strcmp(meant, name) == 0)
            return true;
    }
    return false;
}

static void check_keys(reader *r)
{
    for (size_t i = 0; i < r->section->entries.count; i++) {
        const entry *e = &r->section->entries.items[i], *first = reader_entry(r, e->key);
        if (!find_setting(r->arena, e->key))
            report_unknown_key(r, e);
        else if (first != e)
            diag_error(r->diags, DIAG_DUPLICATE_KEY, e->where,
                       "'%s' stands twice in this section; the first is on line %u", e->key,
                       first->where.line);
    }
}

/* The only value of a list; false where it has none that is right, which is said. */
static bool read_one(reader *r, const setting *s, const entry *e, int64_t *out)
{
    value_list values = { 0 };
    if (e->items.count > 1) {
        diag_error(r->diags, DIAG_BAD_CHOICE, e->items.items[1].where,
                   "%s is one value, not a list", s->key.name);
        return false;
    }
    values_read(r->arena, &s->key, e, &values, r->diags);
    if (values.count > 1)
        diag_error(r->diags, DIAG_BAD_CHOICE, e->items.items[0].where,
                   "%s is one value, not a range", s->key.name);
    if (values.count != 1)
        return false;
    *out = values.items[0].numbers[0];
    return true;
}

static void read_name(reader *r, const setting *s, const entry *e)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_-.";
    enum { MOST = 64 };
    r->out->architecture = s->said;
    if (!e || !e->items.count)
        return;
    const item *first = &e->items.items[0];
    r->out->architecture = first->text;
    if (e->items.count > 1)
        diag_error(r->diags, DIAG_BAD_CHOICE, e->items.items[1].where, "%s is one name, not a list",
                   s->key.name);
    else if (first->text[strspn(first->text, characters)] || strlen(first->text) > MOST)
        diag_error(r->diags, DIAG_BAD_CHOICE, first->where,
                   "'%s' is no name; up to %d letters, digits, '_', '-' and '.' are", first->text,
                   MOST);
}

static void read_layers(reader *r, const setting *s, const entry *e)
{
    decoder *d = r->out;
    uint8_t *set = (uint8_t *)d + s->key.field;
    for (int64_t l = 0; !e && setting_matters(s, d) && l < d->layers; l++)
        set[l] = s->all_layers && !d->recurrent[l];
    if (!e || !d->layers)
        return;
    value_list layers = { 0 };
    key k = { .name = "layer", .max = d->layers - 1 };
    values_read(r->arena, &k, e, &layers, r->diags);
    r->damaged |= !layers.count;
    for (size_t i = 0; i < layers.count; i++)
        set[layers.items[i].numbers[0]] = 1;
}

static void read_rows(reader *r, const setting *s, const entry *e)
{
    decoder *d = r->out;
    bool there[PROBLEM_MOST_ROWS + 1] = { [1] = !e, [DECODER_FEW_ROWS] = !e };
    value_list rows = { 0 };
    if (e)
        values_read(r->arena, &s->key, e, &rows, r->diags);
    for (size_t i = 0; i < rows.count; i++)
        there[rows.items[i].numbers[0]] = true;
    for (int64_t m = 1; m <= PROBLEM_MOST_ROWS; m++) {
        if (there[m] && d->m_count == DECODER_MOST_STEPS) {
            diag_error(r->diags, DIAG_OUT_OF_RANGE, e->where,
                       "m has more than %d numbers, a step each", DECODER_MOST_STEPS);
            return;
        }
        if (there[m])
            d->m[d->m_count++] = m;
    }
}

static void read_tensors(reader *r, const setting *s, const entry *e)
{
    value_list words = { 0 };
    if (e)
        values_read(r->arena, &s->key, e, &words, r->diags);
    for (size_t i = 0; i < words.count; i++)
        r->out->has[s->words[words.items[i].numbers[0]]] = 1;
}

static void read_value(reader *r, const setting *s, const entry *e)
{
    int64_t number = setting_default(s, r->out);
    bool right = !e || read_one(r, s, e, &number);
    r->damaged |= !right;
    setting_store(s, r->out, number);
}

static void read_tensor(reader *r, const setting *s, const entry *e)
{
    int64_t there = 0;
    if (e)
        read_one(r, s, e, &there);
    r->out->has[s->words[0]] = there > 0;
}

/* A matrix of its own, or the embedding's. */
static void read_output(reader *r, const setting *s, const entry *e)
{
    int64_t tied = 0;
    if (e)
        read_one(r, s, e, &tied);
    r->out->has[TENSOR_OUTPUT] = !tied;
}

static void read_factors(reader *r, const setting *s, const entry *e)
{
    static const uint8_t tensors[] = { TENSOR_ROPE_FREQS, TENSOR_ROPE_LONG, TENSOR_ROPE_SHORT };
    int64_t which = 0;
    if (e)
        read_one(r, s, e, &which);
    r->out->rope[0].factors = which > 0;
    if (which)
        r->out->has[tensors[which - 1]] = 1;
}

static void read_metadata(reader *r)
{
    VEC(decoder_metadata) kept = { 0 };
    for (size_t i = 0; i < r->section->entries.count; i++) {
        const entry *e = &r->section->entries.items[i];
        strbuf text = strbuf_new(r->arena);
        if (!metadata_name(e->key))
            continue;
        for (size_t v = 0; v < e->items.count; v++)
            strbuf_format(&text, "%s%s", v ? ", " : "", e->items.items[v].text);
        *VEC_PUSH(r->arena, &kept) = (decoder_metadata){ metadata_name(e->key), text.text };
    }
    r->out->metadata = kept.items;
    r->out->metadata_count = kept.count;
}

static void read_setting(reader *r, const setting *s)
{
    const entry *e = reader_entry(r, s->key.name);
    bool matters = setting_matters(s, r->out);
    if (e && !matters) {
        if (!r->damaged)
            diag_error(r->diags, DIAG_CONFLICT, e->where, "'%s' goes with %s", s->key.name,
                       s->when->said);
        e = NULL;
    }
    bool required = s->key.required && matters && !(s->when && r->damaged);
    if (!e && required && !r->section->damaged && !is_misspelt(r, s->key.name))
        diag_error(r->diags, DIAG_MISSING_KEY, r->section->name_where,
                   s->when && !s->when->usual ? "decoder requires the key '%s' with %s"
                                              : "decoder requires the key '%s'",
                   s->key.name, s->when ? s->when->said : "");
    switch (s->kind) {
    case SETTING_VALUE:
        read_value(r, s, e);
        break;
    case SETTING_NAME:
        read_name(r, s, e);
        break;
    case SETTING_LAYERS:
        read_layers(r, s, e);
        break;
    case SETTING_ROWS:
        read_rows(r, s, e);
        break;
    case SETTING_TENSORS:
        read_tensors(r, s, e);
        break;
    case SETTING_TENSOR:
        read_tensor(r, s, e);
        break;
    case SETTING_OUTPUT:
        read_output(r, s, e);
        break;
    case SETTING_FACTORS:
        read_factors(r, s, e);
        break;
    case SETTING_METADATA:
        read_metadata(r);
        break;
    case SETTING_WEIGHTS:
    case SETTING_FORMATS:
        break; /* of tensors, when all is known of which there are */
    }
}

/* Whether parts of the section could not be read, which was said then. */
static bool is_damaged(const section *s)
{
    bool damaged = s->damaged;
    for (size_t i = 0; i < s->entries.count; i++)
        damaged |= !s->entries.items[i].items.count;
    return damaged;
}

/* Returns true for keys that say nothing of which model it is: those of the user, and those that
 * follow from the tensors. */
static bool is_free(const char *name)
{
    static const char *const names[] = { "vocab",  "window_cache", "rope_factors.window",
                                         "logits", "max_seq_len",  "kv_type",
                                         "next",   "sequences",    "precision" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static const char *shown_value(arena *a, const setting *s, int64_t number)
{
    if (s->one_is_zero && number == real_bits(0))
        number = real_bits(1);
    return s->key.real      ? real_text(a, real_of_bits(number))
           : s->key.choices ? s->key.choices[number].word
                            : arena_format(a, "%lld", (long long)number);
}

const char *decoder_edited(arena *a, const decoder *d, const decoder *other)
{
    for (const setting *s = decoder_settings; s->key.name; s++) {
        size_t at = s->key.field;
        if (is_free(s->key.name) || !setting_matters(s, d))
            continue;
        if (s->kind == SETTING_LAYERS &&
            memcmp((const char *)d + at, (const char *)other + at, DECODER_MOST_LAYERS) != 0)
            return arena_format(a, "other %s", s->key.name);
        if (s->kind == SETTING_VALUE && setting_value(s, d) != setting_value(s, other))
            return arena_format(a, "%s = %s, not %s", s->key.name,
                                shown_value(a, s, setting_value(s, d)),
                                shown_value(a, s, setting_value(s, other)));
    }
    return NULL;
}

bool decoder_read(arena *a, const section *s, decoder *out, diags *d)
{
    size_t errors = d->errors;
    reader r = { .arena = a, .diags = d, .section = s, .out = out };
    *out = (decoder){ 0 };
    check_keys(&r);
    for (size_t i = 0; i < setting_count(); i++)
        read_setting(&r, &decoder_settings[i]);
    decoder_add_tensors(out);
    bool complete = d->errors == errors && !is_damaged(s);
    if (complete)
        decoder_read_formats(&r);
    if (complete && d->errors == errors)
        decoder_check(&r);
    return complete && d->errors == errors;
}

void decoder_help(strbuf *out)
{
    VEC(help_row) rows = { 0 };
    for (const setting *s = decoder_settings; s->key.name; s++)
        *VEC_PUSH(out->arena, &rows) =
            (help_row){ &s->key, s->range, setting_default_text(out->arena, s) };
    strbuf_format(out,
                  "%s - a model's step: the kernels of one token or m of them, and their plan\n"
                  "    a section of a spec of which there is one; --from-gguf writes it\n",
                  DECODER_SECTION);
    help_put_keys(out, rows.items, rows.count);
}
