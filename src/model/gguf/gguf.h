/* Reads GGUF files, versions 2 and 3: the keys and tensor infos of the header, and where each
 * tensor's data lie. Needs nothing but the C library and a way to map files.
 *
 *     gguf_file file;
 *     gguf_error error;
 *     if (!gguf_open("model.gguf", &file, &error))
 *         fprintf(stderr, "%s\n", error.message);
 *
 * A file is as ggml's docs/gguf.md says, little-endian:
 *
 *   "GGUF", u32 version, u64 tensors, u64 keys
 *   a key     string name, u32 type, value    (an array: u32 type, u64 count, values)
 *   a tensor  string name, u32 dimensions, u64 each, u32 type, u64 offset
 *   padding to a multiple of general.alignment; offsets of tensors count from here
 *   data
 *
 * where a string is a u64 length and its bytes. A model may be split into parts, each such a file,
 * named NAME-00001-of-00009.gguf and so on: they are read as one.
 *
 * The data may be missing: a file that was cut off anywhere behind its header opens, and gguf_data
 * and gguf_check_data say what is not there. Everything else that breaks a rule is an error with
 * the byte's offset in the file. What is read points into the mapped file: it lasts until
 * gguf_close. Numbers of a file are read once, so nothing needs to be checked again.
 */
#ifndef PTXGEN_MODEL_GGUF_GGUF_H
#define PTXGEN_MODEL_GGUF_GGUF_H

#include "gguf_header.h"

typedef struct gguf_part {
    char *path;
    const uint8_t *bytes;
    uint64_t size; /* as it is, cut off or not */
    uint64_t data; /* where its data start */
    bool is_mapped;
    char *names;
} gguf_part;

typedef struct gguf_file {
    uint32_t version;
    uint64_t alignment;
    const gguf_key *keys; /* of the first part, as they stand there */
    size_t key_count;
    const gguf_tensor *tensors; /* of all parts, as they stand there */
    size_t tensor_count;
    gguf_part *parts;
    size_t part_count;
    const gguf_key **keys_by_name;
    const gguf_tensor **tensors_by_name;
} gguf_file;

/* Opens a file, or all parts of a split one, given the path of any of them. On an error nothing is
 * left open, and the file may still be closed. */
bool gguf_open(const char *path, gguf_file *file, gguf_error *error);

/* The same of bytes in memory, which must stay until gguf_close; name is for messages. */
bool gguf_open_memory(const char *name, const void *bytes, size_t size, gguf_file *file,
                      gguf_error *error);
void gguf_close(gguf_file *file);

/* NULL where there is none. */
const gguf_key *gguf_find_key(const gguf_file *file, const char *name);
const gguf_tensor *gguf_find(const gguf_file *file, const char *name);

/* A tensor's data; NULL where the file ends before they do. */
const void *gguf_data(const gguf_file *file, const gguf_tensor *tensor);

/* Whether all data are there; the error names the first tensor whose data are not. */
bool gguf_check_data(const gguf_file *file, gguf_error *error);

#endif
