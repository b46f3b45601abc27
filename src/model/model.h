/* From a GGUF file's metadata and tensor infos to a decoder. Each architecture is a file and a line
 * of the list here; what they share, keys, RoPE and tensors, is read in one place. Nothing is
 * guessed: a key, type or tensor that has no meaning here is an error that names it. */
#ifndef PTXGEN_MODEL_MODEL_H
#define PTXGEN_MODEL_MODEL_H

#include "base/diag.h"
#include "gguf/gguf.h"
#include "ref/decoder.h"

/* What the file does not decide; 0 and -1: the usual. */
typedef struct model_options {
    int64_t max_seq_len; /* 0: what the model was trained for, at most MODEL_USUAL_POSITIONS */
    int64_t kv_type;     /* KV_; -1: f16 */
} model_options;
enum { MODEL_USUAL_POSITIONS = 8192 };

typedef struct model {
    decoder decoder;
    int64_t context_length;   /* positions the model was trained for */
    int64_t original_context; /* up to which short factors of RoPE hold; 0: there are none */
    int64_t ignored_window;   /* that the file has and nothing applies; 0: none */
} model;

/* Reads the decoder of a file; path is for messages. False where d got an error. */
bool model_read(arena *a, const char *path, const gguf_file *file, const model_options *options,
                model *out, diags *d);

#endif
