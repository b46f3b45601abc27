/* From a GGUF file's metadata and tensor infos to a decoder. Each architecture is a file of
 * model/arch; what they share, keys, RoPE and tensors, is read in one place. Nothing is guessed: a
 * key, type or tensor that has no meaning here is an error that names it. */
#ifndef PTXGEN_MODEL_FROM_GGUF_READ_H
#define PTXGEN_MODEL_FROM_GGUF_READ_H

#include "input/spec.h"
#include "model/from_gguf/model.h"
#include "model/gguf/gguf.h"

/* Reads the decoder of a file; path is for messages. False where d got an error. */
bool model_read(arena *a, const char *path, const gguf_file *file, const model_options *options,
                model *out, diags *d);

/* Reads the keys that the decoder says of its file (metadata) as if they were the file's. Out is
 * what they make, without tensors; expected is what a file of the model has. Returns false if they
 * make no model, with a report. */
bool model_expect(arena *a, const decoder *d, model *out, decoder_file *expected, diags *reported);

/* --from-gguf: writes the spec of the model's step to out, and a line that sums the model up to
 * said. overrides may name prefix and targets; upper reads the spec back, as a check. Returns false
 * where d got an error. */
bool from_gguf(arena *a, const char *path, const upper_storey *upper,
               const spec_overrides *overrides, const model_options *options, strbuf *out,
               strbuf *said, diags *d);

/* "llama, mistral3, ...": those that model_read takes. */
const char *model_architectures(arena *a);

#endif
