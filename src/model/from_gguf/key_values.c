/* Reads values of a GGUF file's keys, marks them as known and notes the values. */
#include "model/from_gguf/architecture.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *model_shown_text(model_reader *r, gguf_string text)
{
    enum { MOST = 80 };
    return text.length <= MOST
               ? arena_copy(r->arena, text.bytes, text.length)
               : arena_format(r->arena, "%s...", arena_copy(r->arena, text.bytes, MOST));
}

void model_error(model_reader *r, diag_code code, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    diag_error(r->diags, code, r->where, "%s", arena_vformat(r->arena, text, args));
    va_end(args);
}

void model_bad_key(model_reader *r, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    model_error(r, DIAG_BAD_MODEL_KEY, "%s.%s", r->architecture->name,
                arena_vformat(r->arena, text, args));
    va_end(args);
}

const char *model_key_name(arena *a, const char *prefix, const char *name)
{
    bool is_whole = strncmp(name, "xielu.", strlen("xielu.")) == 0;
    return is_whole ? name : arena_format(a, "%s.%s", prefix, name);
}

static bool is_void(const model_reader *r, const char *name)
{
    for (const char *const *key = r->architecture->void_keys; key && *key; key++) {
        size_t length = strcspn(*key, "*");
        if (strncmp(*key, name, length) == 0 && ((*key)[length] || !name[length]))
            return true;
    }
    return false;
}

/* Returns a key, even one without effect. */
static const gguf_key *find_any_key(const model_reader *r, const char *name)
{
    return gguf_find_key(r->file, model_key_name(r->arena, r->architecture->name, name));
}

const gguf_key *model_find_key(const model_reader *r, const char *name)
{
    return is_void(r, name) ? NULL : find_any_key(r, name);
}

/* Marks a key as known. Returns it if it has an effect. */
static const gguf_key *use_key(model_reader *r, const char *name)
{
    const gguf_key *key = find_any_key(r, name);
    if (key)
        r->known_keys[key - r->file->keys] = true;
    return is_void(r, name) ? NULL : key;
}

/* Returns the note of a key, or NULL if it was not read yet. */
static model_note *find_note(model_reader *r, const char *name)
{
    for (size_t i = 0; i < r->notes.count; i++)
        if (strcmp(r->notes.items[i].key.name, name) == 0)
            return &r->notes.items[i];
    return NULL;
}

/* Adds a note of a key's value. It replaces an earlier reading, which had another default. */
static void add_note(model_reader *r, decoder_key noted)
{
    model_note *note = find_note(r, noted.name);
    if (is_void(r, noted.name))
        noted = (decoder_key){ .name = noted.name, .text = "", .use = DECODER_KEY_IGNORED };
    if (!note) {
        note = VEC_PUSH(r->arena, &r->notes);
        *note = (model_note){ .key = noted, .is_there = model_find_key(r, noted.name) };
    }
    if (noted.use != DECODER_KEY_IGNORED)
        note->key = noted;
    if (note->is_required)
        note->key.use = DECODER_KEY_REQUIRED;
}

/* Marks a noted key as required: it has no default. */
static void require_note(model_reader *r, const char *name)
{
    model_note *note = find_note(r, name);
    if (note) {
        note->is_required = true;
        note->key.use = DECODER_KEY_REQUIRED;
    }
}

/* Returns the shortest decimal that converts back to the number, as a double or as f32: 1e-05 for
 * the f32 9.99999974737875e-06. */
static const char *shortest_text(arena *a, double number, bool is_f32)
{
    enum { EXACT_DIGITS = 17 };
    const char *text = NULL;
    for (int digits = 1; digits <= EXACT_DIGITS; digits++) {
        text = arena_format(a, "%.*g", digits, number);
        double back = is_f32 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (!(back < number || back > number))
            break;
    }
    return text;
}

static const char *number_text(arena *a, double number)
{
    static const double MOST_WHOLE = 9007199254740992.0;
    double whole = number > -MOST_WHOLE && number < MOST_WHOLE ? (double)(int64_t)number : NAN;
    return whole <= number && whole >= number ? arena_format(a, "%lld", (long long)number)
                                              : shortest_text(a, number, false);
}

static void note_numbers(model_reader *r, const char *name, const double *values, size_t count,
                         bool is_optional)
{
    double *copy = arena_alloc(r->arena, (count + 1) * sizeof *copy);
    strbuf text = strbuf_new(r->arena);
    for (size_t i = 0; i < count; i++) {
        copy[i] = values[i];
        strbuf_format(&text, "%s%s", i ? ", " : "", number_text(r->arena, values[i]));
    }
    add_note(r, (decoder_key){ .name = name,
                               .text = text.text,
                               .use = is_optional ? DECODER_KEY_OPTIONAL : DECODER_KEY_REQUIRED,
                               .values = copy,
                               .count = count });
}

void model_note_number(model_reader *r, const char *name, double value, bool is_optional)
{
    use_key(r, name);
    note_numbers(r, name, &value, 1, is_optional);
}

void model_note_same(model_reader *r, const char *name, const char *same)
{
    model_note *note = find_note(r, name);
    if (note) {
        note->key.same = same;
        note->key.use = DECODER_KEY_OPTIONAL;
    }
}

void model_ignore_key(model_reader *r, const char *name)
{
    use_key(r, name);
    add_note(r, (decoder_key){ .name = name, .text = "", .use = DECODER_KEY_IGNORED });
}

void model_ignore_void(model_reader *r, const char *name)
{
    if (is_void(r, name))
        use_key(r, name);
}

const gguf_key *model_use_key(model_reader *r, const char *name)
{
    enum { MOST_VALUES = 4096 };
    const gguf_key *key = use_key(r, name);
    size_t count = 0;
    if (key && key->count > MOST_VALUES) {
        model_error(r, DIAG_BAD_MODEL_KEY, "%s has %llu values; the maximum is %d", key->name,
                    (unsigned long long)key->count, MOST_VALUES);
        return key;
    }
    double *values = key ? arena_alloc(r->arena, (key->count + 1) * sizeof *values) : NULL;
    while (key && key->type != GGUF_STRING && count < key->count &&
           gguf_get_f64(key, count, &values[count]))
        count++;
    if (count)
        note_numbers(r, name, values, count, false);
    return key;
}

static void report_type(model_reader *r, const gguf_key *key, const char *wanted)
{
    model_error(r, DIAG_BAD_MODEL_KEY, "%s is %s %s, not %s", key->name,
                key->is_array ? "an array of" : "of type", gguf_value_name(key->type), wanted);
}

int64_t model_number(model_reader *r, const char *name, int64_t least, int64_t fallback)
{
    enum { MOST = 1 << 30 }; /* so that products of three fit an int64_t */
    const gguf_key *key = use_key(r, name);
    int64_t first = 0, other;
    if (!key || !gguf_get_i64(key, 0, &first))
        first = fallback;
    model_note_number(r, name, (double)first, first == fallback);
    if (!key)
        return fallback;
    if (!gguf_get_i64(key, 0, &first)) {
        report_type(r, key, "a whole number");
        return fallback;
    }
    for (uint64_t l = 1; key->is_array && l < key->count; l++)
        if (gguf_get_i64(key, l, &other) && other != first) {
            model_error(
                r, DIAG_BAD_MODEL_KEY,
                "%s is %lld in layer 0 and %lld in layer %llu; all layers must have the same value",
                key->name, (long long)first, (long long)other, (unsigned long long)l);
            return fallback;
        }
    if (first >= least && first <= MOST)
        return first;
    model_error(r, DIAG_BAD_MODEL_KEY, "%s = %lld is out of range; %lld to %d are supported",
                key->name, (long long)first, (long long)least, MOST);
    return fallback;
}

void model_numbers(model_reader *r, const char *name, int64_t least, int64_t fallback,
                   int64_t values[DECODER_MOST_LAYERS])
{
    enum { MOST = 1 << 30 };
    const gguf_key *key = model_find_key(r, name);
    int64_t layers = r->out->decoder.layers;
    bool same = true;
    for (int64_t l = 0; l < layers; l++)
        values[l] = fallback ? fallback : 1;
    if (!key && !fallback)
        model_bad_key(r, "%s is missing", name);
    if (key && key->is_array && key->count < (uint64_t)layers)
        model_error(r, DIAG_BAD_MODEL_KEY, "%s has %llu values for %lld layers", key->name,
                    (unsigned long long)key->count, (long long)layers);
    for (uint64_t l = 1; key && key->is_array && l < key->count; l++) {
        int64_t first, other;
        same &= gguf_get_i64(key, 0, &first) && gguf_get_i64(key, l, &other) && first == other;
    }
    if (!key || !key->is_array || same || key->count < (uint64_t)layers) {
        int64_t one = key ? model_number(r, name, least, fallback) : fallback;
        if (one < least)
            one = least; /* after a report */
        if (!key)
            model_note_number(r, name, (double)fallback, true);
        for (int64_t l = 0; l < layers; l++)
            values[l] = key ? one : values[l];
        if (!fallback)
            require_note(r, name);
        return;
    }
    model_use_key(r, name);
    for (int64_t l = 0; l < layers; l++) {
        if (!gguf_get_i64(key, (uint64_t)l, &values[l])) {
            report_type(r, key, "whole numbers");
            return;
        }
        if (values[l] < least || values[l] > MOST) {
            model_error(r, DIAG_BAD_MODEL_KEY,
                        "%s = %lld in layer %lld is out of range; %lld to %d are supported",
                        key->name, (long long)values[l], (long long)l, (long long)least, MOST);
            values[l] = least ? least : 1;
            return;
        }
    }
}

int64_t model_required_number(model_reader *r, const char *name)
{
    if (!model_find_key(r, name))
        model_bad_key(r, "%s is missing", name);
    int64_t number = model_number(r, name, 1, 1);
    require_note(r, name);
    return number;
}

double model_real(model_reader *r, const char *name, double fallback)
{
    const gguf_key *key = use_key(r, name);
    double number = fallback;
    if (!key) {
        model_note_number(r, name, fallback, true);
        return fallback;
    }
    if (key->is_array || !gguf_get_f64(key, 0, &number)) {
        report_type(r, key, "a number");
        return fallback;
    }
    if (isfinite(number) && number >= 0) {
        if (key->type == GGUF_F32)
            number = strtod(shortest_text(r->arena, number, true), NULL);
        model_note_number(r, name, number, !(number < fallback || number > fallback));
        return number;
    }
    model_error(r, DIAG_BAD_MODEL_KEY, "%s is negative or not finite", key->name);
    return fallback;
}

void model_reals(model_reader *r, const char *name, const double *fallback,
                 double values[DECODER_MOST_LAYERS])
{
    const gguf_key *key = model_use_key(r, name);
    int64_t layers = r->out->decoder.layers;
    for (int64_t l = 0; l < layers; l++)
        values[l] = fallback ? *fallback : 0;
    if (!key && !fallback)
        model_error(r, DIAG_BAD_MODEL_KEY, "%s is missing",
                    model_key_name(r->arena, r->architecture->name, name));
    if (!key)
        return;
    if (key->is_array && key->count < (uint64_t)layers) {
        model_error(r, DIAG_BAD_MODEL_KEY, "%s has %llu values for %lld layers", key->name,
                    (unsigned long long)key->count, (long long)layers);
        return;
    }
    for (int64_t l = 0; l < layers; l++) {
        double number;
        if (!gguf_get_f64(key, key->is_array ? (uint64_t)l : 0, &number) || !isfinite(number)) {
            model_error(r, DIAG_BAD_MODEL_KEY, "%s has no finite number for layer %lld", key->name,
                        (long long)l);
            return;
        }
        values[l] =
            key->type == GGUF_F32 ? strtod(shortest_text(r->arena, number, true), NULL) : number;
    }
}

double model_required_real(model_reader *r, const char *name)
{
    if (!model_find_key(r, name))
        model_bad_key(r, "%s is missing", name);
    double number = model_real(r, name, 1);
    require_note(r, name);
    return number;
}

bool model_flag(model_reader *r, const char *name, bool fallback)
{
    const gguf_key *key = use_key(r, name);
    bool flag = fallback;
    if (key && !gguf_get_bool(key, 0, &flag))
        report_type(r, key, "a bool");
    model_note_number(r, name, flag, flag == fallback);
    return flag;
}

const char *model_text(model_reader *r, const char *name, const char *fallback)
{
    const gguf_key *key = use_key(r, name);
    const char *text = fallback;
    gguf_string found;
    if (gguf_get_string(key, &found))
        text = model_shown_text(r, found);
    else if (key)
        report_type(r, key, "a string");
    add_note(r, (decoder_key){ .name = name,
                               .text = text,
                               .use = strcmp(text, fallback) == 0 ? DECODER_KEY_OPTIONAL
                                                                  : DECODER_KEY_REQUIRED });
    return text;
}

void model_require_same(model_reader *r, const char *name, int64_t number, const char *why)
{
    int64_t found = model_number(r, name, 0, number);
    if (found != number)
        model_bad_key(r, "%s = %lld, but %lld is required: %s", name, (long long)found,
                      (long long)number, why);
}
