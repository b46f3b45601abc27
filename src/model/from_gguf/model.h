/* A model as its file says it. */
#ifndef PTXGEN_MODEL_FROM_GGUF_MODEL_H
#define PTXGEN_MODEL_FROM_GGUF_MODEL_H

#include "kernel/upper.h"
#include "model/decoder.h"

enum { MODEL_USUAL_POSITIONS = 8192 };

typedef struct model {
    decoder decoder;
    int64_t context_length;   /* positions the model was trained for */
    int64_t original_context; /* up to which short factors of RoPE hold; 0: there are none */
    int64_t ignored_window;   /* that the file has and nothing applies; 0: none */
    int64_t further_layers;   /* behind the decoder's, which predict further tokens: left out */
} model;

#endif
