/* Prints text from a GGUF: a model's step is what the generated header launches, all else is here.
 *
 *     ptxgen --from-gguf model.gguf > model.ini
 *     ptxgen --spec model.ini --out .
 *     cc -O2 -o engine *.c -lpcre2-8 -lm -ldl
 *     ./engine model.gguf "Once upon a time"
 *
 * Needs no CUDA to build, and of a CUDA installation only the driver, libcuda.so.1, to run. It runs
 * unchanged on ptxgen's emulated driver, slowly.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MODEL_WITH_CUDA
#define MODEL_KERNELS_IMPLEMENTATION
#include "model_kernels.h"

#include "gguf.h"
#include "tokenizer.h"

/* What this program calls of the driver beside what the header does: X(name, symbol, parameters). */
#define DRIVER_CALLS(X)                                                                     \
    X(init, "cuInit", (unsigned flags))                                                     \
    X(device_get, "cuDeviceGet", (ptxgen_device * device, int number))                      \
    X(retain_context, "cuDevicePrimaryCtxRetain", (void **context, ptxgen_device device))   \
    X(set_context, "cuCtxSetCurrent", (void *context))                                      \
    X(stream_create, "cuStreamCreate", (ptxgen_stream * stream, unsigned flags))            \
    X(stream_wait, "cuStreamSynchronize", (ptxgen_stream stream))                           \
    X(begin_capture, "cuStreamBeginCapture_v2", (ptxgen_stream stream, unsigned mode))      \
    X(end_capture, "cuStreamEndCapture", (ptxgen_stream stream, void **graph))              \
    X(instantiate, "cuGraphInstantiateWithFlags",                                           \
      (void **executable, void *graph, unsigned long long flags))                           \
    X(launch_graph, "cuGraphLaunch", (void *executable, ptxgen_stream stream))              \
    X(error_name, "cuGetErrorName", (ptxgen_result result, const char **name))

typedef struct driver {
#define MEMBER(name, symbol, parameters) ptxgen_result(PTXGEN_CUDAAPI *name) parameters;
    DRIVER_CALLS(MEMBER)
#undef MEMBER
} driver;

typedef struct options {
    const char *model, *prompt;
    unsigned tokens; /* to print at most; 0: as many as there is room for */
    model_sampling sampling;
} options;

typedef struct engine {
    options options;
    driver driver;
    model_cuda cuda;
    model_decoder decoder;
    ptxgen_stream stream;
    gguf_file file;
    tokenizer tokenizer;
} engine;

static int fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("engine: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return 0;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether a call of the driver went well. */
static int done(const engine *e, const char *what, ptxgen_result result)
{
    const char *name = "an unknown error";
    if (result == PTXGEN_CUDA_SUCCESS)
        return 1;
    if (e->driver.error_name)
        e->driver.error_name(result, &name);
    return fail("%s: %s (%u)", what, name, (unsigned)result);
}

/* The header says in words why it refuses a call. */
static void report(void *context, const char *why)
{
    (void)context;
    fail("%s", why);
}

static int open_driver(engine *e)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    ptxgen_device device;
    if (!library)
        return fail("%s: a GPU's driver, or ptxgen's emulated one, has it", dlerror());
#define LOOK_UP(name, symbol, parameters)                          \
    ptxgen_look_up(dlsym, library, symbol, &e->driver.name);       \
    if (!e->driver.name)                                           \
        return fail("libcuda.so.1 is too old: it lacks " symbol);
    DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
    if (!done(e, "cuInit", e->driver.init(0)) ||
        !done(e, "no GPU", e->driver.device_get(&device, 0)) ||
        !done(e, "no context", e->driver.retain_context(&context, device)) ||
        !done(e, "no context", e->driver.set_context(context)) ||
        !done(e, "no stream", e->driver.stream_create(&e->stream, 0)) ||
        !done(e, "no driver", model_cuda_init(&e->cuda, dlsym, library)))
        return 0;
    e->cuda.driver.report = report;
    return 1;
}
