/* A model on a GPU: its file, compared with the header that ptxgen wrote, its tokenizer, and its
 * weights. The engine and the server run it. */
#ifndef LOADER_H
#define LOADER_H

#define MODEL_WITH_CUDA /* functions that load and launch */
#include "model_kernels.h"

#include "gguf.h"
#include "options.h"
#include "tokenizer.h"

/* Driver functions that the programs call directly: name, symbol, parameters. */
#define DRIVER_CALLS(X)                                                                   \
    X(init, "cuInit", (unsigned flags))                                                   \
    X(device_get, "cuDeviceGet", (ptxgen_device * device, int number))                    \
    X(retain_context, "cuDevicePrimaryCtxRetain", (void **context, ptxgen_device device)) \
    X(release_context, "cuDevicePrimaryCtxRelease_v2", (ptxgen_device device))            \
    X(set_context, "cuCtxSetCurrent", (void *context))                                    \
    X(stream_create, "cuStreamCreate", (ptxgen_stream * stream, unsigned flags))          \
    X(stream_wait, "cuStreamSynchronize", (ptxgen_stream stream))                         \
    X(begin_capture, "cuStreamBeginCapture_v2", (ptxgen_stream stream, unsigned mode))    \
    X(end_capture, "cuStreamEndCapture", (ptxgen_stream stream, void **graph))            \
    X(instantiate, "cuGraphInstantiateWithFlags",                                         \
      (void **executable, void *graph, unsigned long long flags))                         \
    X(launch_graph, "cuGraphLaunch", (void *executable, ptxgen_stream stream))            \
    X(error_name, "cuGetErrorName", (ptxgen_result result, const char **name))

typedef struct driver {
#define MEMBER(name, symbol, parameters) ptxgen_result(PTXGEN_CUDAAPI *name) parameters;
    DRIVER_CALLS(MEMBER)
#undef MEMBER
} driver;

typedef struct loader {
    const char *path; /* the model's file */
    const double *options;
    gguf_file file;
    tokenizer *tokenizer;
    driver driver;
    ptxgen_device device;
    void *context;
    ptxgen_stream stream;
    model_cuda cuda;       /* the kernels in the GPU's context */
    model_decoder decoder; /* weights, caches and the state between steps */
} loader;

/* Maps the command's file, compares it with the header, and opens its tokenizer. If the file is
 * truncated later, the program ends with a message. Returns false after an error message. */
bool loader_open(loader *l, const command *c);

/* Loads libcuda.so.1, uses the first GPU, allocates the model's memory (model_create) and loads
 * tensors (model_load_tensor). Returns false after an error message. */
bool loader_load(loader *l);

void loader_close(loader *l);

/* Returns true if a call of the driver or the header succeeded; otherwise prints the error. */
bool done(const loader *l, const char *call, ptxgen_result result);

/* Replaces a suppressed token by the likeliest other one, by the logits at a device address. */
bool choose_other(const loader *l, ptxgen_deviceptr logits, uint32_t *token);

double seconds(void);

#endif
