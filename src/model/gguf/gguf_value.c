/* Tables of value and tensor types, and getters of keys' values. */
#include "gguf_header.h"

#include <stdlib.h>
#include <string.h>

enum { NO_INTEGER, UNSIGNED, SIGNED };

static const struct {
    const char *name;
    size_t bytes; /* 0 = variable length */
    int integer;
} VALUES[] = {
    [GGUF_U8] = { "u8", 1, UNSIGNED },           [GGUF_I8] = { "i8", 1, SIGNED },
    [GGUF_U16] = { "u16", 2, UNSIGNED },         [GGUF_I16] = { "i16", 2, SIGNED },
    [GGUF_U32] = { "u32", 4, UNSIGNED },         [GGUF_I32] = { "i32", 4, SIGNED },
    [GGUF_F32] = { "f32", 4, NO_INTEGER },       [GGUF_BOOL] = { "bool", 1, UNSIGNED },
    [GGUF_STRING] = { "string", 0, NO_INTEGER }, [GGUF_ARRAY] = { "array", 0, NO_INTEGER },
    [GGUF_U64] = { "u64", 8, UNSIGNED },         [GGUF_I64] = { "i64", 8, SIGNED },
    [GGUF_F64] = { "f64", 8, NO_INTEGER },
};

/* Values of ggml_type. Missing numbers were withdrawn. */
static const gguf_type TYPES[] = {
    { 0, "f32", 1, 4 },         { 1, "f16", 1, 2 },         { 2, "q4_0", 32, 18 },
    { 3, "q4_1", 32, 20 },      { 6, "q5_0", 32, 22 },      { 7, "q5_1", 32, 24 },
    { 8, "q8_0", 32, 34 },      { 9, "q8_1", 32, 36 },      { 10, "q2_K", 256, 84 },
    { 11, "q3_K", 256, 110 },   { 12, "q4_K", 256, 144 },   { 13, "q5_K", 256, 176 },
    { 14, "q6_K", 256, 210 },   { 15, "q8_K", 256, 292 },   { 16, "iq2_xxs", 256, 66 },
    { 17, "iq2_xs", 256, 74 },  { 18, "iq3_xxs", 256, 98 }, { 19, "iq1_s", 256, 50 },
    { 20, "iq4_nl", 32, 18 },   { 21, "iq3_s", 256, 110 },  { 22, "iq2_s", 256, 82 },
    { 23, "iq4_xs", 256, 136 }, { 24, "i8", 1, 1 },         { 25, "i16", 1, 2 },
    { 26, "i32", 1, 4 },        { 27, "i64", 1, 8 },        { 28, "f64", 1, 8 },
    { 29, "iq1_m", 256, 56 },   { 30, "bf16", 1, 2 },       { 34, "tq1_0", 256, 54 },
    { 35, "tq2_0", 256, 66 },   { 39, "mxfp4", 32, 17 },    { 40, "nvfp4", 64, 36 },
    { 41, "q1_0", 128, 18 },    { 42, "q2_0", 64, 18 },
};

const gguf_type *gguf_find_type(uint32_t id)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (TYPES[i].id == id)
            return &TYPES[i];
    return NULL;
}

const char *gguf_value_name(gguf_value type)
{
    return (size_t)type < sizeof VALUES / sizeof *VALUES ? VALUES[type].name : "unknown";
}

size_t gguf_value_bytes(gguf_value type)
{
    return VALUES[type].bytes;
}

uint64_t gguf_load(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    while (width--)
        value = value << 8 | bytes[width];
    return value;
}

/* Returns the name of the key or tensor that *at points to: its first member. */
static const char *name_of(const void *at)
{
    return *(const char *const *)*(const void *const *)at;
}

int gguf_by_name(const void *left, const void *right)
{
    const char *a = *(const void *const *)left, *b = *(const void *const *)right;
    int order = strcmp(name_of(left), name_of(right));
    return order ? order : a < b ? -1 : a > b;
}

static int compare_name(const void *name, const void *at)
{
    return strcmp(name, name_of(at));
}

const void *gguf_find_by_name(const void *sorted, size_t count, const char *name)
{
    const void *const *found =
        count ? bsearch(name, sorted, count, sizeof *found, compare_name) : NULL;
    return found ? *found : NULL;
}

/* Returns the address of a value, or NULL if the key has no number at the index. */
static const uint8_t *find_value(const gguf_key *key, uint64_t index)
{
    if (!key || key->type == GGUF_STRING)
        return NULL;
    if (!key->is_array)
        return key->bytes;
    return index < key->count ? key->bytes + index * gguf_value_bytes(key->type) : NULL;
}

static int64_t to_signed(uint64_t bits)
{
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads any integer or bool as 64 bits, sign-extended, and its sign. */
static bool get_integer(const gguf_key *key, uint64_t index, uint64_t *bits, bool *is_negative)
{
    const uint8_t *bytes = find_value(key, index);
    if (!bytes)
        return false;
    size_t width = gguf_value_bytes(key->type);
    *bits = gguf_load(bytes, width);
    *is_negative = VALUES[key->type].integer == SIGNED && *bits >> (8 * width - 1);
    if (*is_negative && width < sizeof *bits)
        *bits |= UINT64_MAX << (8 * width);
    return VALUES[key->type].integer != NO_INTEGER;
}

bool gguf_get_u64(const gguf_key *key, uint64_t index, uint64_t *value)
{
    uint64_t bits;
    bool is_negative;
    if (!get_integer(key, index, &bits, &is_negative) || is_negative)
        return false;
    *value = bits;
    return true;
}

bool gguf_get_i64(const gguf_key *key, uint64_t index, int64_t *value)
{
    uint64_t bits;
    bool is_negative;
    if (!get_integer(key, index, &bits, &is_negative) || (!is_negative && bits > INT64_MAX))
        return false;
    *value = to_signed(bits);
    return true;
}

bool gguf_get_bool(const gguf_key *key, uint64_t index, bool *value)
{
    uint64_t number;
    if (!gguf_get_u64(key, index, &number) || number > 1)
        return false;
    *value = number;
    return true;
}

bool gguf_get_f64(const gguf_key *key, uint64_t index, double *value)
{
    uint64_t bits;
    bool is_negative;
    const uint8_t *bytes = find_value(key, index);
    if (!bytes)
        return false;
    if (key->type == GGUF_F32) {
        uint32_t low = (uint32_t)gguf_load(bytes, sizeof low);
        float number;
        memcpy(&number, &low, sizeof number);
        *value = (double)number;
        return true;
    }
    if (key->type == GGUF_F64) {
        bits = gguf_load(bytes, sizeof bits);
        memcpy(value, &bits, sizeof *value);
        return true;
    }
    if (!get_integer(key, index, &bits, &is_negative))
        return false;
    *value = is_negative ? (double)to_signed(bits) : (double)bits;
    return true;
}

static gguf_string load_string(const uint8_t *bytes)
{
    return (gguf_string){ (const char *)bytes + sizeof(uint64_t),
                          (size_t)gguf_load(bytes, sizeof(uint64_t)) };
}

bool gguf_get_string(const gguf_key *key, gguf_string *value)
{
    if (!key || key->type != GGUF_STRING || key->is_array)
        return false;
    *value = load_string(key->bytes);
    return true;
}

bool gguf_get_strings(const gguf_key *key, gguf_string *values)
{
    if (!key || key->type != GGUF_STRING || !key->is_array)
        return false;
    const uint8_t *at = key->bytes;
    for (uint64_t i = 0; i < key->count; i++) {
        values[i] = load_string(at);
        at = (const uint8_t *)values[i].bytes + values[i].length;
    }
    return true;
}

bool gguf_string_is(gguf_string string, const char *text)
{
    return string.length == strlen(text) && memcmp(string.bytes, text, string.length) == 0;
}
