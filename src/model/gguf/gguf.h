/* Reads GGUF files, versions 2 and 3: keys and tensor infos of the header, and the positions of the
 * tensors' data. Needs only the C library and a way to map files.
 *
 *     gguf_file file;
 *     gguf_error error;
 *     if (!gguf_open("model.gguf", &file, &error))
 *         fprintf(stderr, "%s\n", error.message);
 *
 * The format, as in ggml's docs/gguf.md, is little-endian:
 *
 *   "GGUF", u32 version, u64 tensors, u64 keys
 *   a key     string name, u32 type, value    (an array: u32 type, u64 count, values)
 *   a tensor  string name, u32 dimensions, u64 each, u32 type, u64 offset
 *   padding to a multiple of general.alignment; offsets of tensors count from here
 *   data
 *
 * A string is a u64 length and its bytes. A model may be split into parts NAME-00001-of-00009.gguf
 * and so on, each a GGUF file: they are read as one.
 *
 * The data may be missing. A file that is truncated after its header opens; gguf_data and
 * gguf_check_data report missing data. Any other violation is an error with the byte's offset in
 * the file. Results point into the mapped file and are valid until gguf_close. Each number is read
 * from the file once, so that a check stays true. */
#ifndef PTXGEN_MODEL_GGUF_GGUF_H
#define PTXGEN_MODEL_GGUF_GGUF_H

#include "gguf_header.h"

typedef struct gguf_part {
    char *path;
    const uint8_t *bytes;
    uint64_t size; /* bytes, truncated or not */
    uint64_t data; /* offset of the data */
    bool is_mapped;
    char *names;
} gguf_part;

typedef struct gguf_file {
    uint32_t version;
    uint64_t alignment;
    const gguf_key *keys; /* of the first part, in file order */
    size_t key_count;
    const gguf_tensor *tensors; /* of all parts, in file order */
    size_t tensor_count;
    gguf_part *parts;
    size_t part_count;
    const gguf_key **keys_by_name;
    const gguf_tensor **tensors_by_name;
} gguf_file;

/* Opens a file, or all parts of a split one by any path. After an error nothing is open. */
bool gguf_open(const char *path, gguf_file *file, gguf_error *error);

/* Opens a model in memory. bytes must stay valid until gguf_close; name is for messages. */
bool gguf_open_memory(const char *name, const void *bytes, size_t size, gguf_file *file,
                      gguf_error *error);
void gguf_close(gguf_file *file);

/* Returns the key, or the tensor, of a name, or NULL. */
const gguf_key *gguf_find_key(const gguf_file *file, const char *name);
const gguf_tensor *gguf_find(const gguf_file *file, const char *name);

/* Returns a tensor's data, or NULL if the file ends before their end. */
const void *gguf_data(const gguf_file *file, const gguf_tensor *tensor);

/* Returns true if the file has all tensors' data. Otherwise error names the first missing one. */
bool gguf_check_data(const gguf_file *file, gguf_error *error);

#endif
