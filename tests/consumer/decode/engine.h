/* The model on the device: its weights, the buffers of a step, and two graphs that were captured
 * once. Between them the new key and value go to their place in the cache, which differs from step
 * to step; all else that differs is in device memory: x, and the sequence length.
 *
 * Beside it, the attention of a batch: one graph for sequences of any length, since the lengths are
 * in device memory as well.
 */
#ifndef DECODE_ENGINE_H
#define DECODE_ENGINE_H

#include "driver.h"

#define DECODE_WITH_CUDA
#include "decode_kernels.h"

#include "batch.h"
#include "model.h"

enum { MOST_BUFFERS = 40 };

typedef struct engine {
    driver_api cuda;
    decode_cuda kernels;
    CUdevice device;
    CUstream stream;
    CUmodule own; /* this program's kernel */
    CUfunction add;
    const ptxgen_kernel *words;
    CUdeviceptr weights[MATRICES], gamma;
    CUdeviceptr x, q, k, v, keys, values, mixed, attended, x8, gated, workspace, logits, seq_len;
    CUdeviceptr buffers[MOST_BUFFERS]; /* all of them, to be freed */
    unsigned buffer_count;
    CUgraphExec before_cache, after_cache;
    struct {
        CUdeviceptr o, partials, counters, q, seq_lens;
        CUdeviceptr keys, values; /* each cache's address */
        CUgraphExec attend;
    } batch;
} engine;

/* On success the device's name is in name. */
CUresult engine_open(engine *e, const model *m, char *name, int name_size);

/* One step at a position; those before it have been done. x becomes what the layer made of it. */
CUresult engine_step(engine *e, unsigned position, float x[HIDDEN], float logits[WORDS]);

/* Takes the caches and the queries of a batch to the device. */
CUresult engine_open_batch(engine *e, const batch *b);

/* The attention of all sequences, at the lengths that they have now. */
CUresult engine_attend(engine *e, const uint32_t seq_lens[SEQUENCES], float o[SEQUENCES][HIDDEN]);

/* Device memory that engine_close frees. */
CUresult engine_allocate(engine *e, CUdeviceptr *buffer, size_t bytes);

/* A graph of what enqueue puts into the stream. */
CUresult engine_capture(engine *e, CUresult (*enqueue)(engine *), CUgraphExec *exec);

void engine_close(engine *e);

#endif
