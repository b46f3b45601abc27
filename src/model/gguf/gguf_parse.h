/* Reads the header of one GGUF file, which gguf.c makes whole models of. */
#ifndef PTXGEN_MODEL_GGUF_GGUF_PARSE_H
#define PTXGEN_MODEL_GGUF_GGUF_PARSE_H

#include "gguf.h"

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

/* "PATH: byte OFFSET: …". Returns false. */
bool gguf_fail(gguf_error *error, const char *path, uint64_t offset, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 4, 5)))
#endif
    ;

#endif
