/* What Gemma 2 and 3 share. */
#ifndef PTXGEN_MODEL_ARCH_GEMMA_H
#define PTXGEN_MODEL_ARCH_GEMMA_H

#include "model/arch/architecture.h"

/* Embeddings are multiplied by sqrt(hidden). The largest model of a generation, known by its
 * layers, scales scores by (hidden / num_heads)^-0.5, all others by head_dim^-0.5. */
void gemma_scales(model_reader *r, int64_t layers_of_largest);

#endif
