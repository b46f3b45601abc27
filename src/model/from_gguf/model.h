/* A model as its file describes it. */
#pragma once

#include "kernel/upper.h"
#include "model/decoder.h"

enum { MODEL_USUAL_POSITIONS = 8192 };

typedef struct model {
    decoder decoder;
    int64_t context_length;   /* positions that the model was trained for */
    int64_t original_context; /* most positions for RoPE's short factors; 0 = none */
    int64_t ignored_window;   /* window of the file that is not applied; 0 = none */
    int64_t further_layers;   /* omitted layers that predict further tokens */
} model;
