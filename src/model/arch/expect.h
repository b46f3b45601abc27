/* A file made of what a [decoder] section says of it. */
#ifndef PTXGEN_MODEL_ARCH_EXPECT_H
#define PTXGEN_MODEL_ARCH_EXPECT_H

#include "base/arena.h"
#include "model/gguf/gguf.h"
#include "model/decoder.h"

/* Makes a file of the decoder's metadata and of tensors without data. Nothing is to be closed. */
void model_file_of(arena *a, const decoder *d, gguf_file *file);

/* Returns true for a key whose value may be another one in a file of the same model. */
bool model_is_free(const char *name);

#endif
