/* Prints text from a GGUF: a model's step is what the generated header launches, all else is here.
 *
 *     ptxgen --from-gguf model.gguf > model.ini
 *     ptxgen --spec model.ini --out .
 *     cc -O2 -o engine *.c -lpcre2-8 -ldl
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

/* What this program calls of the driver beside what the header does: X(name, symbol, parameters).
 */
#define DRIVER_CALLS(X)                                                                   \
    X(init, "cuInit", (unsigned flags))                                                   \
    X(device_get, "cuDeviceGet", (ptxgen_device * device, int number))                    \
    X(retain_context, "cuDevicePrimaryCtxRetain", (void **context, ptxgen_device device)) \
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

enum {
    CAPTURE_THREAD_LOCAL = 1, /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
    MOST_WAITING = 1024       /* bytes of a token, and of a character that is not whole yet */
};

typedef struct options {
    const char *model, *prompt;
    unsigned long tokens; /* to print at most */
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
    tokenizer *tokenizer;
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

static double gibibytes(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0 * 1024.0);
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
#define LOOK_UP(name, symbol, parameters)                    \
    ptxgen_look_up(dlsym, library, symbol, &e->driver.name); \
    if (!e->driver.name)                                     \
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
                  model_load_tensor(&e->decoder, wanted, gguf_data(&e->file, found), found->bytes)))
            return 0;
    }
    fprintf(stderr,
            "loaded %.2f GiB in %.1f s, %.2f GiB of cache for %lld positions, %lu launches "
            "a token\n",
            gibibytes(model_plan.bytes[PTXGEN_IN_WEIGHTS]), seconds() - start,
            gibibytes(model_plan.bytes[PTXGEN_IN_CACHE]), (long long)model_plan.max_seq_len,
            (unsigned long)model_plan.steps[0].launch_count);
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

/* Prints what is whole of the text so far: the bytes of a character may come in several tokens. */
static void print_token(const engine *e, uint32_t token, char *waiting, size_t *count)
{
    gguf_string piece = tokenizer_piece(e->tokenizer, token);
    size_t taken = piece.length < MOST_WAITING - *count ? piece.length : MOST_WAITING - *count;
    size_t whole;
    memcpy(waiting + *count, piece.bytes, taken);
    *count += taken;
    whole = tokenizer_whole_bytes(waiting, *count);
    fwrite(waiting, 1, whole, stdout);
    fflush(stdout);
    *count -= whole;
    memmove(waiting, waiting + whole, *count);
}

/* Tokens one by one, each by launching the graph, until the model ends its answer. The number of
 * tokens, or a negative one where something failed. */
static long print_answer(const engine *e, void *graph, size_t room)
{
    const options *o = &e->options;
    char waiting[MOST_WAITING];
    size_t waiting_count = 0, printed = 0;
    uint32_t token;
    for (;;) {
        if (!done(e, "step", model_token(&e->decoder, e->stream, &token)))
            return -1;
        if (token >= (uint64_t)model_plan.vocab) {
            fail("no token: a logit is not a number");
            return -1;
        }
        if (tokenizer_is_end(e->tokenizer, token))
            return (long)printed;
        print_token(e, token, waiting, &waiting_count);
        if (++printed == o->tokens || printed > room)
            return (long)printed;
        if (!done(e, "step", e->driver.launch_graph(graph, e->stream)))
            return -1;
    }
}

/* The prompt in steps of several tokens, then the answer. */
static int generate(engine *e, const token_list *prompt)
{
    const options *o = &e->options;
    void *graph;
    double start = seconds(), begun;
    long printed;
    if (!done(e, "sampling",
              model_sampling(&e->decoder, e->stream, o->temperature, o->top_k, o->top_p, o->min_p,
                             o->seed)) ||
        !done(e, "prompt", model_prompt(&e->decoder, e->stream, prompt->items, prompt->count)) ||
        !done(e, "prompt", e->driver.stream_wait(e->stream)))
        return 0;
    begun = seconds();
    if (!record_step(e, &graph))
        return 0;
    fputs(o->prompt, stdout);
    printed = print_answer(e, graph, (size_t)model_plan.max_seq_len - prompt->count);
    if (printed < 0)
        return 0;
    putchar('\n');
    fprintf(stderr, "prompt %lu tokens in %.2f s, %ld tokens at %.1f tokens/s\n",
            (unsigned long)prompt->count, begun - start, printed,
            (double)printed / (seconds() - begun));
    return 1;
}

static int run(engine *e)
{
    gguf_error error;
    token_list prompt = { NULL, 0, 0 };
    int made;
    if (!gguf_open(e->options.model, &e->file, &error) || !gguf_check_data(&e->file, &error))
        return fail("%s", error.message);
    e->tokenizer = tokenizer_open(&e->file, &error);
    if (!e->tokenizer)
        return fail("%s", error.message);
    if (!tokenizer_encode(e->tokenizer, e->options.prompt, strlen(e->options.prompt),
                          TOKENIZE_START | TOKENIZE_SPECIAL, &prompt))
        return fail("no memory for the prompt");
    if (prompt.count == 0)
        return fail("the prompt is empty, and the model has no token to start with");
    made = open_driver(e) && load_model(e) && generate(e, &prompt);
    free(prompt.items);
    return made;
}

static int usage(void)
{
    fputs(
        "usage: engine MODEL.gguf PROMPT [-n TOKENS] [--temp T] [--top-k K] [--top-p P]\n"
        "              [--min-p P] [--seed N]\n"
        "Prints what the model says after the prompt: the likeliest tokens, or with --temp above\n"
        "0 tokens by chance, the same for the same seed.\n",
        stderr);
    return 2;
}

/* Whether the value of an option is a number, of whose type the option is. */
static int read_option(options *o, const char *name, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= 0) || number > 1e15)
        return fail("%s %s: a number from 0 on is wanted", name, value);
    if (strcmp(name, "-n") == 0)
        o->tokens = (unsigned long)number;
    else if (strcmp(name, "--temp") == 0)
        o->temperature = (float)number;
    else if (strcmp(name, "--top-k") == 0)
        o->top_k = number < 1e9 ? (uint32_t)number : 0;
    else if (strcmp(name, "--top-p") == 0)
        o->top_p = (float)number;
    else if (strcmp(name, "--min-p") == 0)
        o->min_p = (float)number;
    else if (strcmp(name, "--seed") == 0)
        o->seed = (uint64_t)number;
    else
        return fail("there is no option %s", name);
    return 1;
}

int main(int argc, char **argv)
{
    static engine e; /* zeroed: nothing is open, loaded or allocated */
    int i, made;
    e.options.tokens = 256;
    e.options.top_k = 40;
    e.options.top_p = 0.95f;
    e.options.min_p = 0.05f;
    for (i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            if (i + 1 == argc || !read_option(&e.options, argv[i], argv[i + 1]))
                return usage();
            i++;
        } else if (!e.options.model) {
            e.options.model = argv[i];
        } else if (!e.options.prompt) {
            e.options.prompt = argv[i];
        } else {
            return usage();
        }
    }
    if (!e.options.prompt)
        return usage();
    made = run(&e);
    model_destroy(&e.decoder);
    model_unload(&e.cuda);
    tokenizer_close(e.tokenizer);
    gguf_close(&e.file);
    return made ? 0 : 1;
}
