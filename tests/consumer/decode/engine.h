/* The model on the device: its weights, the buffers of a step, and two graphs that were captured
 * once. Between them the new key and value go to their place in the cache, which differs from step
 * to step; all else that differs is in device memory: x, and the sequence length. */
#ifndef DECODE_ENGINE_H
#define DECODE_ENGINE_H

#include "driver.h"

#define DECODE_WITH_CUDA
#include "decode_kernels.h"

#include "model.h"

enum { MOST_BUFFERS = 32 };

typedef struct engine {
    driver_api cuda;
    decode_cuda kernels;
    CUdevice device;
    CUstream stream;
    CUmodule own; /* this program's kernel */
    CUfunction add;
    CUdeviceptr weights[MATRICES], gamma;
    CUdeviceptr x, q, k, v, keys, values, mixed, y, x8, gated, workspace, logits, seq_len;
    CUdeviceptr buffers[MOST_BUFFERS]; /* all of them, to be freed */
    unsigned buffer_count;
    CUgraphExec before_cache, after_cache;
} engine;

/* On success the device's name is in name. */
CUresult engine_open(engine *e, const model *m, char *name, int name_size);

/* One step at a position; those before it have been done. x becomes what the layer made of it. */
CUresult engine_step(engine *e, unsigned position, float x[HIDDEN], float logits[WORDS]);

void engine_close(engine *e);

#endif
