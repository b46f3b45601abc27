/* The upper storey, which knows a model's step: see kernel/upper.h. */
#ifndef PTXGEN_MODEL_STOREY_H
#define PTXGEN_MODEL_STOREY_H

#include "kernel/upper.h"

extern const upper_storey model_storey;

#endif
