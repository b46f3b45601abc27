/* Makes a decoder from a GGUF file's metadata and tensor infos. Each architecture is a file of
 * model/arch; keys, RoPE and tensors are read in common. Nothing is guessed: an unsupported key,
 * type or tensor is an error that names it. */
#pragma once

#include "input/spec.h"
#include "model/from_gguf/model.h"
#include "model/gguf/gguf.h"

/* Reads the decoder of a file; path is for messages. Returns false after errors in d. */
bool model_read(arena *a, const char *path, const gguf_file *file, const model_options *options,
                model *out, diags *d);

/* Reads a decoder's metadata like a file's keys: out is the model without tensors; expected, what
 * its file must have. Reports and returns false if they make no model. */
bool model_expect(arena *a, const decoder *d, model *out, decoder_file *expected, diags *reported);

/* Implements --from-gguf: writes the spec of the model's step to out, and a summary line to said.
 * upper parses the spec as a check. Returns false after errors in d. */
bool from_gguf(arena *a, const char *path, const upper_storey *upper,
               const spec_overrides *overrides, const model_options *options, strbuf *out,
               strbuf *said, diags *d);

/* Returns the supported architectures: "deepseek2, gemma2, ...". */
const char *model_architectures(arena *a);
