/* What the header of one GGUF file holds, keys with their values and tensors with their types, and
 * how it is read: gguf.c makes whole models of it. */
#ifndef PTXGEN_MODEL_GGUF_GGUF_HEADER_H
#define PTXGEN_MODEL_GGUF_GGUF_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_MAX_DIMS = 4, GGUF_MAX_TENSOR_NAME = 64, GGUF_MESSAGE_SIZE = 1024 };

/* Values of keys, as numbered in the file. */
typedef enum gguf_value {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
} gguf_value;

/* How a tensor's numbers are stored: rows of whole blocks. */
typedef struct gguf_type {
    uint32_t id;
    const char *name; /* as ggml has it: "f32", "q4_K", "iq2_xxs" */
    uint32_t block_values, block_bytes;
} gguf_type;

/* Not terminated, any bytes. */
typedef struct gguf_string {
    const char *bytes;
    size_t length;
} gguf_string;

typedef struct gguf_key {
    const char *name; /* valid UTF-8 */
    gguf_value type;  /* of an array: that of its values */
    bool is_array;
    uint64_t count;  /* 1 where it is no array */
    uint64_t offset; /* of the first value in the (first) file */
    const uint8_t *bytes;
} gguf_key;

typedef struct gguf_tensor {
    const char *name; /* valid UTF-8 */
    const gguf_type *type;
    uint32_t n_dims;
    uint32_t part;              /* index into the file's parts */
    uint64_t ne[GGUF_MAX_DIMS]; /* values along each dimension, fastest first; 1 past n_dims */
    uint64_t offset;            /* of its data in the part's file, counted from the file's start */
    uint64_t bytes;
    uint64_t info_offset; /* of what the header says of it, for messages */
} gguf_tensor;

typedef struct gguf_error {
    char message[GGUF_MESSAGE_SIZE]; /* "PATH: byte 24: what is wrong", one line */
    bool unreadable;                 /* a file could not be opened or read */
} gguf_error;

typedef struct gguf_header {
    uint32_t version;
    uint64_t alignment;
    uint64_t data; /* where the data start */
    gguf_key *keys;
    const gguf_key **keys_by_name;
    size_t key_count;
    gguf_tensor *tensors; /* with offsets from the file's start; part is left 0 */
    size_t tensor_count;
    char *names; /* of keys and tensors, terminated */
} gguf_header;

/* All that can be wrong in one file without its data is checked here. Names of tensors may still
 * be the same. The header is to be freed also after an error. */
bool gguf_parse(const char *path, const uint8_t *bytes, uint64_t size, gguf_header *header,
                gguf_error *error);
void gguf_free_header(gguf_header *header);

/* Compare two pointers to keys or tensors by their names, then by their places; find one of a
 * sorted list. Both have their names first. */
int gguf_by_name(const void *left, const void *right);
const void *gguf_find_by_name(const void *sorted, size_t count, const char *name);

/* "PATH: byte OFFSET: …". Returns false. */
bool gguf_fail(gguf_error *error, const char *path, uint64_t offset, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* The value of a key at an index. A key that is no array has the same value at every index, so that
 * what models give once or by layer is read in one way. False, and nothing stored, where key is
 * NULL, the index past the array's end, or the value none that fits: integers of every width and
 * bools are integers, and integers and floats are floats. */
bool gguf_get_u64(const gguf_key *key, uint64_t index, uint64_t *value);
bool gguf_get_i64(const gguf_key *key, uint64_t index, int64_t *value);
bool gguf_get_f64(const gguf_key *key, uint64_t index, double *value);
bool gguf_get_bool(const gguf_key *key, uint64_t index, bool *value);

/* The value of a key that is a string. */
bool gguf_get_string(const gguf_key *key, gguf_string *value);

/* The strings of an array, all key->count of them. */
bool gguf_get_strings(const gguf_key *key, gguf_string *values);

bool gguf_string_is(gguf_string string, const char *text);

/* "u32", "string"; "unknown" of a number that is none. */
const char *gguf_value_name(gguf_value type);

/* Bytes of a value in an array; 0 of a string. */
size_t gguf_value_bytes(gguf_value type);

/* The little-endian number in 1 to 8 bytes. */
uint64_t gguf_load(const uint8_t *bytes, size_t width);

/* The type of a number in tensor infos (ggml_type); NULL of one that is unknown or gone. */
const gguf_type *gguf_find_type(uint32_t id);

#endif
