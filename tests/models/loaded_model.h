/* Shared code of programs that run a model through its generated header: opens the device, loads
 * the weights of a GGUF file, and records a step. The macro PROGRAM is the program's name. An error
 * ends the program. */
#ifndef PTXGEN_TESTS_LOADED_MODEL_H
#define PTXGEN_TESTS_LOADED_MODEL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcuda/api.h"

#define MODEL_WITH_CUDA
#define MODEL_KERNELS_IMPLEMENTATION
#include "model_kernels.h"

#include "gguf.h"

/* Prints "FAILED PROGRAM: what: why" to stderr and exits with 1. */
_Noreturn static void give_up(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "FAILED " PROGRAM ": %s: %s\n", what, why);
    exit(1);
}

static void check(const char *what, CUresult result)
{
    char why[32];
    if (result == CUDA_SUCCESS)
        return;
    snprintf(why, sizeof why, "error %d", (int)result);
    give_up(what, why);
}

static void report(void *context, const char *why)
{
    (void)context;
    fprintf(stderr, PROGRAM ": %s\n", why);
}

/* Opens the first device. Returns false if there is none. */
static bool open_device(model_cuda *cuda)
{
    CUdevice device;
    CUcontext context;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return false;
    check("context", cuDevicePrimaryCtxRetain(&context, device));
    check("context", cuCtxSetCurrent(context));
    check("driver", model_cuda_init(cuda, dlsym, dlopen("libcuda.so.1", RTLD_NOW)));
    cuda->driver.report = report;
    return true;
}

/* Copies the weights of a file to the device. */
static inline void load_weights(const model_decoder *model, const char *path)
{
    gguf_file file;
    gguf_error error;
    if (!gguf_open(path, &file, &error))
        give_up("the file", error.message);
    for (size_t i = 0; i < model_plan.tensor_count; i++) {
        const gguf_tensor *t = gguf_find(&file, model_tensors[i].name);
        if (!t || t->type->id != model_tensors[i].gguf_type)
            give_up(model_tensors[i].name, "missing, or it has another type");
        check(t->name, model_load_tensor(model, &model_tensors[i], gguf_data(&file, t), t->bytes));
    }
    gguf_close(&file);
}

/* Records a step of one token as a graph. */
static inline CUgraphExec record_step(const model_decoder *model, CUstream stream)
{
    CUgraph graph;
    CUgraphExec step;
    check("capture", cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    check("step", model_step(model, stream));
    check("capture", cuStreamEndCapture(stream, &graph));
    check("graph", cuGraphInstantiateWithFlags(&step, graph, 0));
    return step;
}

#endif
