/* A cursor reads the header from front to back and never passes the file's end. Every length is
 * compared with the bytes left before it is used. So a count in the file can allocate at most a few
 * times the file's size. */
#include "gguf_header.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OLDEST_VERSION = 2,
    NEWEST_VERSION = 3,
    COUNTS_END = 24,      /* byte offset after magic, version and two counts */
    LEAST_KEY = 14,       /* bytes of the shortest key: length, 1-byte name, type, u8 */
    LEAST_TENSOR = 33,    /* bytes of the shortest tensor: length, 1-byte name, dimensions, one
                             size, type, offset */
    MAX_KEY_NAME = 65535, /* bytes, from docs/gguf.md */
    DEFAULT_ALIGNMENT = 32,
    SHOWN_NAME = 80 /* bytes of a name shown in messages */
};

bool gguf_fail(gguf_error *error, const char *path, uint64_t offset, const char *format, ...)
{
    va_list arguments;
    int length =
        snprintf(error->message, sizeof error->message, "%s: byte %" PRIu64 ": ", path, offset);
    if (length < 0 || (size_t)length >= sizeof error->message)
        return false;
    va_start(arguments, format);
    vsnprintf(error->message + length, sizeof error->message - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

typedef struct cursor {
    const char *path;
    const uint8_t *bytes;
    uint64_t at, size;
    gguf_error *error;
} cursor;

/* False as a constant, so that compilers see that the code after it is not reached. */
#define FAIL(c, offset, ...) (gguf_fail((c)->error, (c)->path, offset, __VA_ARGS__), false)

static uint64_t left(const cursor *c)
{
    return c->size - c->at;
}

static bool read_number(cursor *c, size_t width, const char *what, uint64_t *value)
{
    if (left(c) < width)
        return FAIL(c, c->at, "the file ends in %s: %zu bytes expected, %" PRIu64 " left", what,
                    width, left(c));
    *value = gguf_load(c->bytes + c->at, width);
    c->at += width;
    return true;
}

static bool read_u32(cursor *c, const char *what, uint32_t *value)
{
    uint64_t number;
    if (!read_number(c, sizeof *value, what, &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

static bool read_string(cursor *c, const char *what, gguf_string *value)
{
    uint64_t start = c->at, length;
    if (!read_number(c, sizeof length, what, &length))
        return false;
    if (length > left(c))
        return FAIL(c, start,
                    "%s has a length of %" PRIu64 " bytes, %" PRIu64 " are left in the file", what,
                    length, left(c));
    *value = (gguf_string){ (const char *)c->bytes + c->at, (size_t)length };
    c->at += length;
    return true;
}

/* Returns the bytes of a name's first character. Returns 0 for invalid UTF-8 (overlong forms,
 * surrogates, code points past U+10FFFF) and for control characters. */
static size_t character_bytes(const uint8_t *text, size_t size)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint8_t first = text[0];
    size_t bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : 4;
    uint32_t code = bytes == 1 ? first : first & (0x7Fu >> bytes);
    if (bytes == 1)
        return first >= ' ' && first != 0x7F;
    if (bytes > size || (bytes == 4 && first >> 3 != 30))
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3Fu);
    }
    bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    bool is_control = code < 0xA0; /* U+0080 to U+009F */
    return code >= LEAST[bytes] && code <= 0x10FFFF && !is_surrogate && !is_control ? bytes : 0;
}

static bool read_name(cursor *c, const char *what, size_t most, gguf_string *name)
{
    uint64_t start = c->at;
    if (!read_string(c, what, name))
        return false;
    if (!name->length)
        return FAIL(c, start, "%s is empty", what);
    if (name->length > most)
        return FAIL(c, start, "%s has %zu bytes; the maximum is %zu", what, name->length, most);
    for (size_t i = 0, bytes; i < name->length; i += bytes) {
        bytes = character_bytes((const uint8_t *)name->bytes + i, name->length - i);
        if (!bytes)
            return FAIL(c, start + sizeof(uint64_t) + i,
                        "%s has a byte 0x%02x that is not printable UTF-8", what,
                        (unsigned)(uint8_t)name->bytes[i]);
    }
    return true;
}

/* Returns the bytes of a name that a message shows: whole characters, at most SHOWN_NAME bytes. */
static int shown_bytes(gguf_string name)
{
    size_t bytes = name.length;
    if (bytes > SHOWN_NAME)
        for (bytes = SHOWN_NAME; (uint8_t)name.bytes[bytes] >> 6 == 2;)
            bytes--;
    return (int)bytes;
}

/* The arguments of printf's "%.*s" for a name. */
#define SHOWN(name) shown_bytes(name), (name).bytes

static bool read_counts(cursor *c, gguf_header *header)
{
    uint64_t tensors, keys;
    if (left(c) < 4 || memcmp(c->bytes, "GGUF", 4) != 0)
        return FAIL(c, 0, "not a GGUF file: it does not start with \"GGUF\"");
    c->at = 4;
    if (!read_u32(c, "the version", &header->version))
        return false;
    if (header->version && !(header->version & 0xFFFF))
        return FAIL(c, 4,
                    "version 0x%08" PRIx32
                    ": big-endian files are not supported, only little-endian files",
                    header->version);
    if (header->version < OLDEST_VERSION || header->version > NEWEST_VERSION)
        return FAIL(c, 4, "version %" PRIu32 " is not supported; versions %d and %d are",
                    header->version, OLDEST_VERSION, NEWEST_VERSION);
    if (!read_number(c, 8, "the number of tensors", &tensors) ||
        !read_number(c, 8, "the number of keys", &keys))
        return false;
    if (tensors > left(c) / LEAST_TENSOR)
        return FAIL(c, 8, "%" PRIu64 " tensors, but the file has room for %" PRIu64 " at most",
                    tensors, left(c) / LEAST_TENSOR);
    if (keys > left(c) / LEAST_KEY)
        return FAIL(c, 16, "%" PRIu64 " keys, but the file has room for %" PRIu64 " at most", keys,
                    left(c) / LEAST_KEY);
    header->tensor_count = (size_t)tensors;
    header->key_count = (size_t)keys;
    return true;
}

static bool read_value_type(cursor *c, gguf_string name, const char *what, gguf_value *type)
{
    uint64_t at = c->at;
    uint32_t id;
    if (!read_u32(c, what, &id))
        return false;
    if (id > GGUF_F64)
        return FAIL(c, at, "key \"%.*s\": %s is %" PRIu32 "; known types are 0 to %d", SHOWN(name),
                    what, id, GGUF_F64);
    *type = (gguf_value)id;
    return true;
}

static bool skip_values(cursor *c, gguf_string name, const gguf_key *key)
{
    size_t width = gguf_value_bytes(key->type);
    if (key->type == GGUF_STRING) {
        gguf_string value;
        for (uint64_t i = 0; i < key->count; i++)
            if (!read_string(c, "a string", &value))
                return false;
        return true;
    }
    if (key->count && width > left(c)) /* checked for arrays by read_key */
        return FAIL(c, c->at,
                    "the file ends in the value of key \"%.*s\": %zu bytes expected, "
                    "%" PRIu64 " left",
                    SHOWN(name), width, left(c));
    for (uint64_t i = 0; key->type == GGUF_BOOL && i < key->count; i++)
        if (c->bytes[c->at + i] > 1)
            return FAIL(c, c->at + i, "key \"%.*s\": a bool is %d, not 0 or 1", SHOWN(name),
                        c->bytes[c->at + i]);
    c->at += key->count * width;
    return true;
}

/* Reads a key. Its name points into the file until copy_names copies all names. */
static bool read_key(cursor *c, gguf_key *key, gguf_string *name)
{
    if (!read_name(c, "the name of a key", MAX_KEY_NAME, name) ||
        !read_value_type(c, *name, "the type of a value", &key->type))
        return false;
    key->count = 1;
    key->is_array = key->type == GGUF_ARRAY;
    if (key->is_array) {
        uint64_t at = c->at;
        if (!read_value_type(c, *name, "the type of an array's values", &key->type))
            return false;
        if (key->type == GGUF_ARRAY)
            return FAIL(c, at, "key \"%.*s\" is an array of arrays, which is not supported",
                        SHOWN(*name));
        at = c->at;
        if (!read_number(c, 8, "the length of an array", &key->count))
            return false;
        size_t least = key->type == GGUF_STRING ? sizeof(uint64_t) : gguf_value_bytes(key->type);
        if (key->count > left(c) / least)
            return FAIL(c, at,
                        "key \"%.*s\" has %" PRIu64 " values, but the file has room for %" PRIu64
                        " at most",
                        SHOWN(*name), key->count, left(c) / least);
    }
    key->offset = c->at;
    key->bytes = c->bytes + c->at;
    return skip_values(c, *name, key);
}

static bool read_dims(cursor *c, gguf_string name, gguf_tensor *t, uint64_t *values)
{
    uint64_t at = c->at;
    if (!read_u32(c, "a tensor's number of dimensions", &t->n_dims))
        return false;
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS)
        return FAIL(c, at, "tensor \"%.*s\" has %" PRIu32 " dimensions; 1 to %d are supported",
                    SHOWN(name), t->n_dims, GGUF_MAX_DIMS);
    *values = 1;
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        t->ne[i] = 1;
        at = c->at;
        if (i < t->n_dims && !read_number(c, 8, "a tensor's dimension", &t->ne[i]))
            return false;
        if (!t->ne[i])
            return FAIL(c, at, "tensor \"%.*s\": dimension %" PRIu32 " is 0", SHOWN(name), i);
        if (t->ne[i] > (uint64_t)INT64_MAX / *values)
            return FAIL(c, at, "tensor \"%.*s\" has more than 2^63 values", SHOWN(name));
        *values *= t->ne[i];
    }
    return true;
}

static bool read_tensor(cursor *c, gguf_tensor *t, gguf_string *name, uint64_t alignment)
{
    uint64_t at, values;
    uint32_t id;
    t->info_offset = c->at;
    if (!read_name(c, "the name of a tensor", GGUF_MAX_TENSOR_NAME, name) ||
        !read_dims(c, *name, t, &values))
        return false;
    at = c->at;
    if (!read_u32(c, "a tensor's type", &id))
        return false;
    t->type = gguf_find_type(id);
    if (!t->type)
        return FAIL(c, at, "tensor \"%.*s\" has the unknown type %" PRIu32, SHOWN(*name), id);
    if (t->ne[0] % t->type->block_values)
        return FAIL(c, at,
                    "tensor \"%.*s\": %s needs rows of a multiple of %" PRIu32
                    " values, this tensor has %" PRIu64,
                    SHOWN(*name), t->type->name, t->type->block_values, t->ne[0]);
    if (values / t->type->block_values > (uint64_t)INT64_MAX / t->type->block_bytes)
        return FAIL(c, at, "tensor \"%.*s\" has more than 2^63 bytes", SHOWN(*name));
    t->bytes = values / t->type->block_values * t->type->block_bytes;
    at = c->at;
    if (!read_number(c, 8, "a tensor's offset", &t->offset))
        return false;
    if (t->offset % alignment)
        return FAIL(c, at,
                    "tensor \"%.*s\": offset %" PRIu64
                    " is not a multiple of the alignment %" PRIu64,
                    SHOWN(*name), t->offset, alignment);
    if (t->offset > (uint64_t)INT64_MAX - t->bytes)
        return FAIL(c, at, "tensor \"%.*s\": offset %" PRIu64 " is past 2^63 bytes", SHOWN(*name),
                    t->offset);
    return true;
}

static int by_offset(const void *left, const void *right)
{
    const gguf_tensor *a = *(const gguf_tensor *const *)left;
    const gguf_tensor *b = *(const gguf_tensor *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool check_overlaps(cursor *c, const gguf_header *header)
{
    size_t count = header->tensor_count;
    const gguf_tensor **sorted = malloc((count + 1) * sizeof *sorted);
    bool good = true;
    if (!sorted)
        return FAIL(c, 0, "out of memory");
    for (size_t i = 0; i < count; i++)
        sorted[i] = &header->tensors[i];
    qsort(sorted, count, sizeof *sorted, by_offset);
    for (size_t i = 1; good && i < count; i++)
        if (sorted[i]->offset - sorted[i - 1]->offset < sorted[i - 1]->bytes)
            good = FAIL(c, sorted[i]->info_offset,
                        "tensor \"%s\" at byte %" PRIu64
                        " of the data overlaps tensor \"%s\", which has %" PRIu64
                        " bytes from byte %" PRIu64 " on",
                        sorted[i]->name, sorted[i]->offset, sorted[i - 1]->name,
                        sorted[i - 1]->bytes, sorted[i - 1]->offset);
    free(sorted);
    return good;
}

static const char *copy_name(gguf_string name, char **end)
{
    char *copy = *end;
    memcpy(copy, name.bytes, name.length);
    copy[name.length] = '\0';
    *end = copy + name.length + 1;
    return copy;
}

static bool copy_names(cursor *c, gguf_header *header, const gguf_string *names)
{
    size_t total = 1;
    for (size_t i = 0; i < header->key_count + header->tensor_count; i++)
        total += names[i].length + 1;
    header->names = malloc(total);
    if (!header->names)
        return FAIL(c, 0, "out of memory");
    char *end = header->names;
    for (size_t i = 0; i < header->key_count; i++)
        header->keys[i].name = copy_name(names[i], &end);
    for (size_t i = 0; i < header->tensor_count; i++)
        header->tensors[i].name = copy_name(names[header->key_count + i], &end);
    return true;
}

static bool read_infos(cursor *c, gguf_header *header, gguf_string *names)
{
    header->alignment = DEFAULT_ALIGNMENT;
    for (size_t i = 0; i < header->key_count; i++) {
        const gguf_key *key = &header->keys[i];
        if (!read_key(c, &header->keys[i], &names[i]))
            return false;
        if (!gguf_string_is(names[i], "general.alignment"))
            continue;
        if (key->is_array || !gguf_get_u64(key, 0, &header->alignment))
            return FAIL(c, key->offset, "general.alignment is not an unsigned integer");
        if (!header->alignment || header->alignment & (header->alignment - 1) ||
            header->alignment > UINT32_MAX)
            return FAIL(c, key->offset,
                        "general.alignment = %" PRIu64 " is not a power of 2 below 2^32",
                        header->alignment);
    }
    for (size_t i = 0; i < header->tensor_count; i++)
        if (!read_tensor(c, &header->tensors[i], &names[header->key_count + i], header->alignment))
            return false;
    if (!copy_names(c, header, names))
        return false;
    const gguf_key **sorted = header->keys_by_name;
    for (size_t i = 0; i < header->key_count; i++)
        sorted[i] = &header->keys[i];
    qsort(sorted, header->key_count, sizeof *sorted, gguf_by_name);
    for (size_t i = 1; i < header->key_count; i++) {
        gguf_string twice = { sorted[i]->name, strlen(sorted[i]->name) };
        if (strcmp(sorted[i - 1]->name, twice.bytes) == 0)
            return FAIL(c, sorted[i]->offset,
                        "duplicate key \"%.*s\"; the first value is at byte %" PRIu64, SHOWN(twice),
                        sorted[i - 1]->offset);
    }
    return check_overlaps(c, header);
}

bool gguf_parse(const char *path, const uint8_t *bytes, uint64_t size, gguf_header *header,
                gguf_error *error)
{
    cursor c = { .path = path, .bytes = bytes, .size = size, .error = error };
    memset(header, 0, sizeof *header);
    if (!read_counts(&c, header))
        return false;
    size_t name_count = header->key_count + header->tensor_count;
    gguf_string *names = malloc((name_count + 1) * sizeof *names);
    header->keys = calloc(header->key_count + 1, sizeof *header->keys);
    header->keys_by_name = malloc((header->key_count + 1) * sizeof *header->keys_by_name);
    header->tensors = calloc(header->tensor_count + 1, sizeof *header->tensors);
    bool good = names && header->keys && header->keys_by_name && header->tensors
                    ? read_infos(&c, header, names)
                    : FAIL(&c, 0, "out of memory");
    free(names);
    uint64_t padding = header->alignment - 1;
    header->data = (c.at + padding) & ~padding;
    for (size_t i = 0; good && i < header->tensor_count; i++) {
        gguf_tensor *t = &header->tensors[i];
        if (t->offset > (uint64_t)INT64_MAX - t->bytes - header->data)
            good = FAIL(&c, t->info_offset, "tensor \"%s\" ends past 2^63 bytes", t->name);
        t->offset += header->data;
    }
    return good;
}

void gguf_free_header(gguf_header *header)
{
    free(header->keys);
    free(header->keys_by_name);
    free(header->tensors);
    free(header->names);
    memset(header, 0, sizeof *header);
}
