/* The keys of a mixture of experts. */
#ifndef PTXGEN_MODEL_ARCH_EXPERTS_H
#define PTXGEN_MODEL_ARCH_EXPERTS_H

#include "model/arch/architecture.h"

/* Reads them into the decoder, whose layers are known. */
void model_read_experts(model_reader *r);

#endif
