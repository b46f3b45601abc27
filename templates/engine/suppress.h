/* Tokens that a file suppresses, which the step may sample. */
#ifndef SUPPRESS_H
#define SUPPRESS_H

#define MODEL_WITH_CUDA
#include "model_kernels.h"

#include "tokenizer.h"

/* Replaces a sampled token by the likeliest one that is not suppressed. model_prompt with this token
 * then takes the place of the next step. Reads the first row of logits, which logits = last in
 * model.ini makes the sampled token's. Waits for the stream; returns the driver's result. */
ptxgen_result choose_other(const model_decoder *decoder, ptxgen_stream stream, const tokenizer *t,
                           uint32_t *token);

#endif
