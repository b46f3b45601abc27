/* The storey of models, for a program that has it: see kernel/upper.h. */
#ifndef PTXGEN_MODEL_STOREY_H
#define PTXGEN_MODEL_STOREY_H

#include "kernel/upper.h"

extern const upper_storey model_storey;

#endif
