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
    unsigned tokens; /* to print at most */
    float temperature, top_p, min_p;
    uint32_t top_k;
    uint64_t seed;
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

/* Copies every tensor that the step reads to its place. The header was made for one model: a file
 * of another has other tensors, formats or sizes. */
static int load_model(engine *e)
{
    double start = seconds();
    size_t i;
    if (!done(e, "no memory for the model", model_create(&e->decoder, &e->cuda, NULL)))
        return 0;
    for (i = 0; i < model_plan.tensor_count; i++) {
        const ptxgen_tensor *wanted = &model_tensors[i];
        const gguf_tensor *found = gguf_find(&e->file, wanted->name);
        if (!found)
            return fail("%s has no %s: it is not the model of this header", e->options.model,
                        wanted->name);
        if (found->type->id != wanted->gguf_type || found->bytes != wanted->bytes)
            return fail("%s: the header wants %s, %llu bytes, %s has %s, %llu bytes", wanted->name,
                        wanted->format_name, (unsigned long long)wanted->bytes, e->options.model,
                        found->type->name, (unsigned long long)found->bytes);
        if (!done(e, wanted->name,
                  model_load_tensor(&e->decoder, wanted, gguf_data(&e->file, found),
                                    found->bytes)))
            return 0;
    }
    fprintf(stderr, "loaded %.2f GiB in %.1f s, %.2f GiB of cache for %lld positions, %zu launches "
                    "a token\n",
            gibibytes(model_plan.bytes[PTXGEN_IN_WEIGHTS]), seconds() - start,
            gibibytes(model_plan.bytes[PTXGEN_IN_CACHE]), (long long)model_plan.max_seq_len,
            model_plan.steps[0].launch_count);
    return 1;
}

/* A step as a graph: it is launched for every token and never changed, since token, position and
 * length are in device memory. */
static int record_step(engine *e, void **graph)
{
    void *recorded;
    return done(e, "capture", e->driver.begin_capture(e->stream, CAPTURE_THREAD_LOCAL)) &&
           done(e, "step", model_step(&e->decoder, e->stream)) &&
           done(e, "capture", e->driver.end_capture(e->stream, &recorded)) &&
           done(e, "graph", e->driver.instantiate(graph, recorded, 0));
}

/* Prints a token's text. What is no whole character yet waits in the stream for the next one. */
static void print_token(engine *e, uint32_t token)
{
    char text[TOKENIZER_MOST_BYTES];
    fwrite(text, 1, tokenizer_decode(&e->tokenizer, token, text), stdout);
    fflush(stdout);
}

/* Prompt in steps of several tokens, then a token at a time. */
static int generate(engine *e, const uint32_t *prompt, size_t count)
{
    const options *o = &e->options;
    void *graph;
    uint32_t token;
    size_t room = (size_t)model_plan.max_seq_len - count, printed = 0;
    double start = seconds(), begun;
    if (!done(e, "sampling", model_sampling(&e->decoder, e->stream, o->temperature, o->top_k,
                                            o->top_p, o->min_p, o->seed)) ||
        !done(e, "prompt", model_prompt(&e->decoder, e->stream, prompt, count)) ||
        !record_step(e, &graph) || !done(e, "prompt", e->driver.stream_wait(e->stream)))
        return 0;
    begun = seconds();
    for (;;) {
        if (!done(e, "step", model_token(&e->decoder, e->stream, &token)))
            return 0;
        if (token >= (uint32_t)model_plan.vocab)
            return fail("the model's logits are no numbers");
        if (tokenizer_is_end(&e->tokenizer, token))
            break;
        print_token(e, token);
        if (++printed == o->tokens || printed > room)
            break;
        if (!done(e, "step", e->driver.launch_graph(graph, e->stream)))
            return 0;
    }
    fprintf(stderr, "\nprompt %zu tokens in %.2f s, %zu tokens at %.1f tokens/s\n", count,
            begun - start, printed, (double)printed / (seconds() - begun));
    return 1;
}
