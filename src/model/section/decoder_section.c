/* Reads a [decoder] section: keys in table order, with defaults from earlier keys, then the formats
 * of the tensors that these imply. */
#include "model/section/decoder_section.h"

#include <string.h>

#include "model/section/decoder_keys.h"
#include "input/help.h"
#include "input/values.h"

static const char *metadata_name(const char *name)
{
    size_t length = strlen(METADATA_PREFIX);
    return strncmp(name, METADATA_PREFIX, length) == 0 && name[length] ? name + length : NULL;
}

static void check_keys(const reader *r)
{
    for (size_t i = 0; i < r->section->entries.count; i++) {
        const entry *e = &r->section->entries.items[i], *first = reader_entry(r, e->key);
        bool known = metadata_name(e->key);
        for (size_t k = 0; k < r->names.count && !known; k++)
            known = strcmp(r->names.items[k], e->key) == 0;
        const char *closest = known ? NULL : closest_match(e->key, r->names.items, r->names.count);
        if (!known && is_global_key(e->key))
            diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                       "decoder has no key '%s'; set it in [ptxgen]", e->key);
        else if (closest)
            diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                       "decoder has no key '%s'; did you mean '%s'?", e->key, closest);
        else if (!known)
            diag_error(r->diags, DIAG_UNKNOWN_KEY, e->where,
                       "decoder has no key '%s'; ptxgen --help-family decoder lists all keys",
                       e->key);
        else if (first != e)
            diag_error(r->diags, DIAG_DUPLICATE_KEY, e->where,
                       "duplicate key '%s' in this section; the first is on line %u", e->key,
                       first->where.line);
    }
}

/* Reads the only value of a key. Reports a list, range or wrong value and returns false. */
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
                   "'%s' is not a name; use up to %d letters, digits, '_', '-' and '.'",
                   first->text, MOST);
}

static void read_layers(reader *r, const setting *s, const entry *e)
{
    decoder *d = r->out;
    bool set[DECODER_MOST_LAYERS] = { false };
    bool none = e && e->items.count == 1 && strcmp(e->items.items[0].text, NO_LAYERS) == 0;
    bool is_default = !e && setting_matters(s, d);
    if (e && d->layers && !none)
        r->damaged |= !reader_layers(r, e, set);
    for (int64_t l = 0; l < d->layers; l++)
        setting_store(s, d, l, is_default ? setting_default(s, d, l) : set[l]);
}

static bool read_number(const layered *l, const item *word, int64_t *out)
{
    bool right = reader_item(l->reader, &l->set_number->key, word, out);
    l->reader->damaged |= !right;
    return right;
}

static bool set_number(const layered *l, int64_t layer, int64_t number)
{
    decoder *d = l->reader->out;
    if (!setting_has_layer(l->set_number, d, layer))
        return false;
    setting_store(l->set_number, d, layer, number);
    return true;
}

static void read_by_layer(reader *r, const setting *s, const entry *e)
{
    decoder *d = r->out;
    bool matters = setting_matters(s, d);
    for (int64_t l = 0; l < d->layers; l++)
        setting_store(s, d, l,
                      matters && setting_has_layer(s, d, l) ? setting_default(s, d, l) : 0);
    layered l = { .reader = r,
                  .entry = e,
                  .set_number = s,
                  .layers = d->layers,
                  .name = s->key.name,
                  .thing = "value",
                  .example = "8",
                  .read = read_number,
                  .set = set_number };
    if (!e || !matters)
        return;
    layered_read(&l);
    for (int64_t layer = 0; s->key.required && !l.has_rest && layer < d->layers; layer++)
        if (setting_has_layer(s, d, layer) && !l.named[layer] && !r->damaged) {
            diag_error(r->diags, DIAG_MISSING_KEY, e->items.items[0].where,
                       "'%s' has no value for layer %lld; start with a value for all layers",
                       s->key.name, (long long)layer);
            r->damaged = true;
        }
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
                       "m has more than %d numbers; each makes a step", DECODER_MOST_STEPS);
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
        (s->kind == SETTING_RENAMED ? r->out->renamed
                                    : r->out->has)[s->words[words.items[i].numbers[0]]] = 1;
}

static void read_value(reader *r, const setting *s, const entry *e)
{
    int64_t number = setting_default(s, r->out, 0);
    bool right = !e || read_one(r, s, e, &number);
    r->damaged |= !right;
    setting_store(s, r->out, 0, number);
}

/* Reads a word: a tensor exists or not, output is tied or not, or the tensor of RoPE's factors. */
static void read_choice(reader *r, const setting *s, const entry *e)
{
    int64_t chosen = 0;
    if (e)
        read_one(r, s, e, &chosen);
    if (s->kind == SETTING_TENSOR)
        r->out->has[s->words[0]] = chosen > 0;
    else if (s->kind == SETTING_OUTPUT)
        r->out->has[TENSOR_OUTPUT] = !chosen;
    else if (chosen)
        r->out->rope[0].factors = r->out->has[TENSOR_ROPE_FREQS + chosen - 1] = 1;
}

static void read_metadata(reader *r, const setting *s, const entry *first)
{
    VEC(decoder_metadata) kept = { 0 };
    (void)s;
    (void)first;
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
    /* Formats are read after all keys, when the set of tensors is known. */
    static void (*const readers[])(reader * r, const setting *s, const entry *e) = {
        [SETTING_VALUE] = read_value,       [SETTING_NAME] = read_name,
        [SETTING_BY_LAYER] = read_by_layer, [SETTING_LAYERS] = read_layers,
        [SETTING_ROWS] = read_rows,         [SETTING_TENSORS] = read_tensors,
        [SETTING_TENSOR] = read_choice,     [SETTING_OUTPUT] = read_choice,
        [SETTING_FACTORS] = read_choice,    [SETTING_WEIGHTS] = NULL,
        [SETTING_FORMATS] = NULL,           [SETTING_METADATA] = read_metadata,
        [SETTING_RENAMED] = read_tensors,
    };
    const entry *e = reader_entry(r, s->key.name);
    bool matters = setting_matters(s, r->out);
    if (e && !matters) {
        if (!r->damaged)
            diag_error(r->diags, DIAG_CONFLICT, e->where, "'%s' is valid only with %s", s->key.name,
                       s->when->said);
        e = NULL;
    }
    bool required = s->key.required && matters && !(s->when && r->damaged);
    if (!e && required && !r->section->damaged &&
        !section_misspells(r->section, s->key.name, r->names.items, r->names.count))
        diag_error(r->diags, DIAG_MISSING_KEY, r->section->name_where,
                   s->when && !s->when->usual ? "decoder requires the key '%s' with %s"
                                              : "decoder requires the key '%s'",
                   s->key.name, s->when ? s->when->said : "");
    if (readers[s->kind])
        readers[s->kind](r, s, e);
}

const char *decoder_edited(arena *a, const decoder *d, const decoder *other)
{
    for (const setting *s = decoder_settings; s->key.name; s++) {
        bool by_layer = s->kind == SETTING_LAYERS || s->kind == SETTING_BY_LAYER;
        if (s->is_free || !setting_matters(s, d) || (!by_layer && s->kind != SETTING_VALUE))
            continue;
        for (int64_t l = 0; l < (by_layer ? d->layers : 1); l++) {
            int64_t own = setting_value(s, d, l), wanted = setting_value(s, other, l);
            if ((by_layer && !setting_has_layer(s, d, l)) || own == wanted)
                continue;
            if (s->kind == SETTING_LAYERS)
                return arena_format(a, "other %s", s->key.name);
            return arena_format(a, "%s = %s%s, not %s", s->key.name, setting_text(a, s, own),
                                by_layer ? arena_format(a, " in layer %lld", (long long)l) : "",
                                setting_text(a, s, wanted));
        }
    }
    return NULL;
}

bool decoder_read(arena *a, const section *s, decoder *out, diags *d)
{
    size_t errors = d->errors;
    reader r = { .arena = a, .diags = d, .section = s, .out = out };
    *out = (decoder){ 0 };
    bool damaged = s->damaged; /* unparsable parts, already reported */
    for (size_t i = 0; i < s->entries.count; i++)
        damaged |= !s->entries.items[i].items.count;
    for (const setting *at = decoder_settings; at->key.name; at++)
        if (at->kind != SETTING_FORMATS && at->kind != SETTING_METADATA)
            *VEC_PUSH(a, &r.names) = at->key.name;
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (tensor_is_matrix(t) && tensor_is_first(NULL, t))
            *VEC_PUSH(a, &r.names) = formats_key(a, t);
    check_keys(&r);
    for (const setting *at = decoder_settings; at->key.name; at++)
        read_setting(&r, at);
    decoder_complete(out);
    if (damaged || d->errors > errors)
        return false;
    decoder_read_formats(&r);
    if (d->errors == errors)
        decoder_check(&r);
    return d->errors == errors;
}

const help_row *decoder_help_rows(arena *a, size_t *count)
{
    VEC(help_row) rows = { 0 };
    for (const setting *s = decoder_settings; s->key.name; s++)
        *VEC_PUSH(a, &rows) = (help_row){ &s->key, s->range, setting_default_text(a, s),
                                          s->when && !s->when->usual ? s->when->said : NULL };
    *count = rows.count;
    return rows.items;
}

void decoder_help(strbuf *out)
{
    size_t count;
    const help_row *rows = decoder_help_rows(out->arena, &count);
    strbuf_format(out,
                  "%s - a model's step: the kernels and the launch plan for one or more tokens\n"
                  "    one section per spec; ptxgen --from-gguf MODEL.gguf writes it\n",
                  DECODER_SECTION);
    help_put_keys(out, rows, count);
}
