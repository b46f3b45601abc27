/* The tensors of a model's file, as its decoder has them. */
#ifndef PTXGEN_MODEL_ARCH_TENSORS_H
#define PTXGEN_MODEL_ARCH_TENSORS_H

#include "model/arch/architecture.h"

/* Finds out which tensors there are, and of which formats. Reports those that are missing, have
 * another shape, or a type that has no format; and those that nothing uses. */
void model_read_tensors(model_reader *r);

#endif
