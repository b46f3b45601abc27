/* The model on the device: weights, buffers of a step, and two graphs that are captured once.
 * Between the graphs, the new key and value are copied to their cache position, which differs from
 * step to step. All other step data is in device memory: x and the sequence length.
 *
 * The attention of a batch is one graph for any lengths, since the lengths are in device memory,
 * too. */
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
    CUmodule own; /* module of this program's own kernel */
    CUfunction add;
    const ptxgen_kernel *words;
    CUdeviceptr weights[MATRICES], gamma;
    CUdeviceptr x, q, k, v, keys, values, mixed, attended, x8, gated, workspace, logits, seq_len;
    CUdeviceptr buffers[MOST_BUFFERS]; /* all allocations, for engine_close */
    unsigned buffer_count;
    CUgraphExec before_cache, after_cache;
    struct {
        CUdeviceptr o, partials, counters, q, seq_lens, sequences;
        CUdeviceptr keys, values; /* the caches of all sequences */
        CUgraphExec attend;
    } batch;
} engine;

/* Opens the first device and loads the model. On success, name is set to the device's name. */
CUresult engine_open(engine *e, const model *m, char *name, int name_size);

/* Runs the step at a position; earlier positions must be done. Replaces x with the result. */
CUresult engine_step(engine *e, unsigned position, float x[HIDDEN], float logits[WORDS]);

/* Copies the caches and queries of a batch to the device. */
CUresult engine_open_batch(engine *e, const batch *b);

/* Computes the attention of all sequences at their current lengths. */
CUresult engine_attend(engine *e, const uint32_t seq_lens[SEQUENCES], float o[SEQUENCES][HIDDEN]);

/* Allocates device memory, which engine_close frees. */
CUresult engine_allocate(engine *e, CUdeviceptr *buffer, size_t bytes);

/* Captures the work of `enqueue` as a graph. */
CUresult engine_capture(engine *e, CUresult (*enqueue)(engine *), CUgraphExec *exec);

void engine_close(engine *e);

#endif
