/* The upper storey, which knows a model's step: see kernel/upper.h. */
#pragma once

#include "kernel/upper.h"

extern const upper_storey model_storey;
