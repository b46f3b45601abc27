/* Values of a GGUF file's keys, each marked as known when it is read. */
#include "model/architecture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void model_error(model_reader *r, diag_code code, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    diag_error(r->diags, code, r->where, "%s", arena_vformat(r->arena, text, args));
    va_end(args);
}

const gguf_key *model_find_key(const model_reader *r, const char *name)
{
    return gguf_find_key(r->file, arena_format(r->arena, "%s.%s", r->architecture->name, name));
}

bool model_has_key(const model_reader *r, const char *name)
{
    return model_find_key(r, name);
}

void model_ignore_key(model_reader *r, const char *name)
{
    const gguf_key *key = model_find_key(r, name);
    if (key)
        r->known_keys[key - r->file->keys] = true;
}

const gguf_key *model_use_key(model_reader *r, const char *name)
{
    model_ignore_key(r, name);
    return model_find_key(r, name);
}

static void report_missing(model_reader *r, const char *name)
{
    model_error(r, DIAG_BAD_MODEL_KEY, "%s.%s is missing", r->architecture->name, name);
}

static void report_type(model_reader *r, const gguf_key *key, const char *wanted)
{
    model_error(r, DIAG_BAD_MODEL_KEY, "%s is %s %s, not %s", key->name,
                key->is_array ? "an array of" : "of type", gguf_value_name(key->type), wanted);
}

int64_t model_number(model_reader *r, const char *name, int64_t least, int64_t fallback)
{
    enum { MOST = 1 << 30 }; /* three products of two fit an int64_t */
    const gguf_key *key = model_use_key(r, name);
    int64_t first = 0, other;
    if (!key)
        return fallback;
    if (!gguf_get_i64(key, 0, &first)) {
        report_type(r, key, "a whole number");
        return fallback;
    }
    for (uint64_t l = 1; key->is_array && l < key->count; l++)
        if (gguf_get_i64(key, l, &other) && other != first) {
            model_error(r, DIAG_BAD_MODEL_KEY,
                        "%s is %lld in layer 0 and %lld in layer %llu; a decoder here has one "
                        "value for all layers",
                        key->name, (long long)first, (long long)other, (unsigned long long)l);
            return fallback;
        }
    if (first >= least && first <= MOST)
        return first;
    model_error(r, DIAG_BAD_MODEL_KEY, "%s = %lld is not from %lld to %d", key->name,
                (long long)first, (long long)least, MOST);
    return fallback;
}

int64_t model_required_number(model_reader *r, const char *name)
{
    if (!model_has_key(r, name))
        report_missing(r, name);
    return model_number(r, name, 1, 1);
}

/* The decimal of fewest digits that is the same f32: what was meant by 9.99999974737875e-06 is
 * 1e-5. */
static double shortest(double number)
{
    enum { EXACT_DIGITS = 9 };
    char text[32];
    for (int digits = 1; digits <= EXACT_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        float back = strtof(text, NULL);
        if (!(back < number || back > number))
            return strtod(text, NULL);
    }
    return number;
}

double model_real(model_reader *r, const char *name, double fallback)
{
    const gguf_key *key = model_use_key(r, name);
    double number;
    if (!key)
        return fallback;
    if (key->is_array || !gguf_get_f64(key, 0, &number)) {
        report_type(r, key, "a number");
        return fallback;
    }
    if (isfinite(number) && number >= 0)
        return key->type == GGUF_F32 ? shortest(number) : number;
    model_error(r, DIAG_BAD_MODEL_KEY, "%s is negative, or no finite number", key->name);
    return fallback;
}

double model_required_real(model_reader *r, const char *name)
{
    if (!model_has_key(r, name))
        report_missing(r, name);
    return model_real(r, name, 1);
}

bool model_flag(model_reader *r, const char *name, bool fallback)
{
    const gguf_key *key = model_use_key(r, name);
    bool flag = fallback;
    if (key && !gguf_get_bool(key, 0, &flag))
        report_type(r, key, "a bool");
    return flag;
}

const char *model_text(model_reader *r, const char *name, const char *fallback)
{
    const gguf_key *key = model_use_key(r, name);
    gguf_string text;
    if (!key)
        return fallback;
    if (gguf_get_string(key, &text))
        return arena_copy(r->arena, text.bytes, text.length);
    report_type(r, key, "a text");
    return fallback;
}

void model_require_same(model_reader *r, const char *name, int64_t number, const char *why)
{
    int64_t found = model_number(r, name, 0, number);
    if (found != number)
        model_error(r, DIAG_BAD_MODEL_KEY, "%s.%s = %lld is not %lld; %s", r->architecture->name,
                    name, (long long)found, (long long)number, why);
}
