/* The header of one GGUF file, with keys, values and tensor infos, and its parser. gguf.c joins
 * headers to whole models. */
#ifndef PTXGEN_MODEL_GGUF_GGUF_HEADER_H
#define PTXGEN_MODEL_GGUF_GGUF_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_MAX_DIMS = 4, GGUF_MAX_TENSOR_NAME = 64, GGUF_MESSAGE_SIZE = 1024 };

/* Types of values, with the file's numbers. */
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

/* Storage of a tensor's values: rows of whole blocks. */
typedef struct gguf_type {
    uint32_t id;
    const char *name; /* ggml's name: "f32", "q4_K", "iq2_xxs" */
    uint32_t block_values, block_bytes;
} gguf_type;

/* Arbitrary bytes, not terminated. */
typedef struct gguf_string {
    const char *bytes;
    size_t length;
} gguf_string;

typedef struct gguf_key {
    const char *name; /* valid UTF-8 */
    gguf_value type;  /* type of an array's values */
    bool is_array;
    uint64_t count;  /* 1 unless it is an array */
    uint64_t offset; /* byte offset of the first value in the first part */
    const uint8_t *bytes;
} gguf_key;

typedef struct gguf_tensor {
    const char *name; /* valid UTF-8 */
    const gguf_type *type;
    uint32_t n_dims;
    uint32_t part;              /* index of the file's part */
    uint64_t ne[GGUF_MAX_DIMS]; /* sizes, fastest dimension first; 1 from n_dims on */
    uint64_t offset;            /* byte offset of the data in the part's file */
    uint64_t bytes;
    uint64_t info_offset; /* byte offset of the tensor info, for messages */
} gguf_tensor;

typedef struct gguf_error {
    char message[GGUF_MESSAGE_SIZE]; /* one line: "PATH: byte 24: problem" */
    bool unreadable;                 /* true if a file could not be opened or read */
} gguf_error;

typedef struct gguf_header {
    uint32_t version;
    uint64_t alignment;
    uint64_t data; /* byte offset of the data */
    gguf_key *keys;
    const gguf_key **keys_by_name;
    size_t key_count;
    gguf_tensor *tensors; /* offsets count from the file's start; part is 0 */
    size_t tensor_count;
    char *names; /* names of keys and tensors, each terminated */
} gguf_header;

/* Parses and checks a file except its data. The caller frees the header, also on errors. */
bool gguf_parse(const char *path, const uint8_t *bytes, uint64_t size, gguf_header *header,
                gguf_error *error);
void gguf_free_header(gguf_header *header);

/* Compares keys or tensors by name, then address; finds a name in a sorted list. */
int gguf_by_name(const void *left, const void *right);
const void *gguf_find_by_name(const void *sorted, size_t count, const char *name);

/* Writes "PATH: byte OFFSET: …" to error. Returns false. */
bool gguf_fail(gguf_error *error, const char *path, uint64_t offset, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 4, 5)))
#endif
    ;

/* Reads the value of a key at an index. A key that is not an array has the same value at every
 * index: callers read values per model and per layer alike. Integers of every width and bools
 * convert to integers, integers and floats to floats. Returns false and stores nothing if key is
 * NULL, the index is past the array's end, or the value does not fit. */
bool gguf_get_u64(const gguf_key *key, uint64_t index, uint64_t *value);
bool gguf_get_i64(const gguf_key *key, uint64_t index, int64_t *value);
bool gguf_get_f64(const gguf_key *key, uint64_t index, double *value);
bool gguf_get_bool(const gguf_key *key, uint64_t index, bool *value);

/* Reads the value of a string key. Returns false for other types and arrays. */
bool gguf_get_string(const gguf_key *key, gguf_string *value);

/* Reads all key->count strings of an array. Returns false for other types. */
bool gguf_get_strings(const gguf_key *key, gguf_string *values);

bool gguf_string_is(gguf_string string, const char *text);

/* Returns "u32", "string" and so on; "unknown" for an unknown type. */
const char *gguf_value_name(gguf_value type);

/* Returns the bytes of a value in an array; 0 for strings. */
size_t gguf_value_bytes(gguf_value type);

/* Returns the little-endian number in width bytes, 1 to 8. */
uint64_t gguf_load(const uint8_t *bytes, size_t width);

/* Returns the tensor type of a ggml_type, or NULL if it is unknown or withdrawn. */
const gguf_type *gguf_find_type(uint32_t id);

#endif
