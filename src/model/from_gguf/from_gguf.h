/* --from-gguf: the spec of a model's step, from the header of its file. */
#ifndef PTXGEN_MODEL_FROM_GGUF_FROM_GGUF_H
#define PTXGEN_MODEL_FROM_GGUF_FROM_GGUF_H

#include "model/from_gguf/model.h"
#include "input/spec.h"

/* Writes the spec to out and a line that sums the model up to said. overrides may name prefix and
 * targets, which are else "model" and sm_80; upper reads the spec back, as a check. False where d
 * got an error. */
bool from_gguf(arena *a, const char *path, const upper_storey *upper,
               const spec_overrides *overrides, const model_options *options, strbuf *out,
               strbuf *said, diags *d);

#endif
