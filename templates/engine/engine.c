/* Prints a language model's continuation of a prompt. The header that ptxgen writes from model.ini
 * has the model's step, the computation for a token; this program does the rest. It needs only the
 * CUDA driver: a GPU's, or ptxgen's emulated one, which is slow.
 *
 *     meson setup build && ninja -C build
 *     build/engine MODEL.gguf "Once upon a time"                     ptxgen run build/engine ...
 *
 * main calls, in this order:
 *
 *   open_model     maps the model's file and compares it with the header
 *   make_tokens    converts the prompt to tokens
 *   open_driver    loads libcuda.so.1 and uses the first GPU
 *   load_weights   allocates the model's memory (model_create), loads tensors (model_load_tensor)
 *   read_prompt    sets the sampling parameters (model_sampling), runs the prompt (model_prompt)
 *   record_step    records the launches of one token (model_step) as a graph
 *   print_answer   reads a token (model_token), prints it, launches the graph; repeats
 *
 * It applies no chat template: the model continues the prompt as given. The prompt may contain the
 * names of control tokens, such as "<|im_start|>", to spell out a template. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MODEL_WITH_CUDA              /* functions that load and launch */
#define MODEL_KERNELS_IMPLEMENTATION /* the kernels; in one source file of a program */
#include "model_kernels.h"

#include "gguf.h"
#include "options.h"
#include "tokenizer.h"

/* Driver functions that this program calls directly: name, symbol, parameters. */
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

enum { CAPTURE_THREAD_LOCAL = 1 }; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */

typedef struct engine {
    command command;
    gguf_file file;
    tokenizer *tokenizer;
    token_list prompt;
    driver driver;
    ptxgen_device device;
    void *context;
    ptxgen_stream stream;
    model_cuda cuda;       /* the kernels in the GPU's context */
    model_decoder decoder; /* weights, caches and the state between steps */
    void *graph;           /* step of one token */
    double started;        /* start of the prompt in seconds */
    text_output output;
} engine;

/* Returns true if a call of the driver or the header succeeded; otherwise prints the error. */
static bool done(const engine *e, const char *call, ptxgen_result result)
{
    const char *name = "an unknown error";
    if (result == PTXGEN_CUDA_SUCCESS)
        return true;
    e->driver.error_name(result, &name);
    return fail("%s: %s (%u)", call, name, (unsigned)result);
}

/* Prints the reason for which the header refuses a call. */
static void report(void *context, const char *why)
{
    (void)context;
    fail("%s", why);
}

static double gibibytes(ptxgen_piece piece)
{
    return (double)model_plan.bytes[piece] / (1024.0 * 1024.0 * 1024.0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Prints how the file differs from the header's model. Returns true with --any-model 1. */
static bool differs(const engine *e, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fail("%s %s: generate the header from this file, or pass --any-model 1", e->command.path, what);
    return e->command.options[ANY_MODEL] > 0;
}

/* Compares a key of the file with the header's value. */
static bool compare_key(const engine *e, const ptxgen_file_key *wanted)
{
    const gguf_key *found = gguf_find_key(&e->file, wanted->name);
    gguf_string text;
    double number;
    if (!found)
        return wanted->use != PTXGEN_KEY_REQUIRED ||
               differs(e, "has no %s; the header was made with %s", wanted->name, wanted->text);
    if (gguf_get_string(found, &text))
        return ptxgen_key_is_text(wanted, text.bytes, text.length) ||
               differs(e, "was made with %s = %.*s, the header with %s", wanted->name,
                       (int)(text.length < 64 ? text.length : 64), text.bytes, wanted->text);
    if (wanted->use != PTXGEN_KEY_IGNORED && wanted->count > 1 && found->count != wanted->count)
        return differs(e, "has %lu values of %s; the header was made with %lu",
                       (unsigned long)found->count, wanted->name, (unsigned long)wanted->count);
    for (uint64_t i = 0; i < found->count; i++) {
        if (!gguf_get_f64(found, i, &number))
            return differs(e, "has a %s that is not a number", wanted->name);
        if (!ptxgen_key_is(wanted, (size_t)i, number))
            return differs(e, "was made with %s = %.9g, the header with %s", wanted->name, number,
                           wanted->text);
    }
    return true;
}

/* Returns true for tensors of layers after the decoder's, which predict further tokens. */
static bool is_further(const char *name, uint64_t further)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0)
        return false;
    uint64_t layer = strtoull(name + 4, &end, 10), first = (uint64_t)model_plan.layers;
    return *end == '.' && layer >= first && layer < first + further;
}

/* Compares the file's keys and tensors with the header's. A file with other keys or tensors is
 * another model, and the results would be wrong. */
static bool compare_model(const engine *e, uint64_t further)
{
    bool same = true;
    if (model_plan.edited)
        same = differs(e, "is not the header's model: the header's spec has %s", model_plan.edited);
    else if (!model_plan.keys)
        same = differs(e, "cannot be compared: the header's spec has no metadata.* keys");
    for (size_t i = 0; same && i < model_plan.key_count; i++)
        same = compare_key(e, &model_plan.keys[i]);
    for (size_t i = 0; same && model_plan.keys && i < e->file.key_count; i++)
        if (!model_knows_key(e->file.keys[i].name))
            same =
                differs(e, "has %s, which the header's model does not have", e->file.keys[i].name);
    for (size_t i = 0; same && i < e->file.tensor_count; i++)
        if (!model_knows_tensor(e->file.tensors[i].name) &&
            !is_further(e->file.tensors[i].name, further))
            same = differs(e, "has %s, which the header's model does not have",
                           e->file.tensors[i].name);
    return same;
}

/* Opens the file and compares it with the header. load_tensor compares types and shapes. */
static bool open_model(engine *e)
{
    gguf_string architecture = { "nothing", strlen("nothing") };
    gguf_error error;
    char key[64];
    uint64_t layers = 0, further = 0;
    if (!gguf_open(e->command.path, &e->file, &error) || !gguf_check_data(&e->file, &error))
        return fail("%s", error.message);
    gguf_get_string(gguf_find_key(&e->file, "general.architecture"), &architecture);
    snprintf(key, sizeof key, "%s.block_count", model_plan.architecture);
    gguf_get_u64(gguf_find_key(&e->file, key), 0, &layers);
    snprintf(key, sizeof key, "%s.nextn_predict_layers", model_plan.architecture);
    gguf_get_u64(gguf_find_key(&e->file, key), 0, &further);
    if (!gguf_string_is(architecture, model_plan.architecture))
        return fail("%s has architecture %.*s; the header was made for %s", e->command.path,
                    (int)(architecture.length < 64 ? architecture.length : 64), architecture.bytes,
                    model_plan.architecture);
    if (layers - further != (uint64_t)model_plan.layers)
        return fail("%s has %llu layers; the header was made for %lld", e->command.path,
                    (unsigned long long)(layers - further), (long long)model_plan.layers);
    if (!compare_model(e, further))
        return false;
    e->tokenizer = tokenizer_open(&e->file, &error);
    return e->tokenizer || fail("%s", error.message);
}

static bool make_tokens(engine *e)
{
    if (!tokenizer_encode(e->tokenizer, e->command.text, strlen(e->command.text),
                          TOKENIZE_START | TOKENIZE_SPECIAL, &e->prompt))
        return fail("cannot tokenize the prompt: out of memory, or this engine was built without "
                    "utf8proc, which its characters need");
    if (e->prompt.count == 0)
        return fail("the prompt is empty, and the model has no BOS token: pass a prompt");
    if (e->prompt.count > (uint64_t)model_plan.max_seq_len)
        return fail("the prompt has %lu tokens, but max_seq_len is %lld: increase it in the "
                    "header's spec",
                    (unsigned long)e->prompt.count, (long long)model_plan.max_seq_len);
    return true;
}

static bool open_driver(engine *e)
{
    driver *d = &e->driver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return fail("%s: install a GPU driver, or use the emulated one: ptxgen run ENGINE ...",
                    dlerror());
#define LOOK_UP(name, symbol, parameters)             \
    ptxgen_look_up(dlsym, library, symbol, &d->name); \
    if (!d->name)                                     \
        return fail("libcuda.so.1 is too old: it lacks " symbol);
    DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
    if (!done(e, "no GPU: cuInit", d->init(0)) ||
        !done(e, "no GPU: cuDeviceGet", d->device_get(&e->device, 0)) ||
        !done(e, "cuDevicePrimaryCtxRetain", d->retain_context(&e->context, e->device)) ||
        !done(e, "cuCtxSetCurrent", d->set_context(e->context)) ||
        !done(e, "cuStreamCreate", d->stream_create(&e->stream, 0)) ||
        !done(e, "model_cuda_init", model_cuda_init(&e->cuda, dlsym, library)))
        return false;
    e->cuda.driver.report = report;
    return true;
}

/* Copies a tensor to the GPU as stored in the file. The kernels decode its blocks. */
static bool load_tensor(engine *e, const ptxgen_tensor *wanted)
{
    const gguf_tensor *found = gguf_find(&e->file, wanted->name);
    if (!found)
        return fail("%s has no %s, which the header needs", e->command.path, wanted->name);
    if (found->type->id != wanted->gguf_type || found->ne[0] != wanted->columns ||
        found->bytes != wanted->bytes)
        return fail("%s: %s is %s with rows of %llu; the header was made for %s, %llu rows of %llu",
                    e->command.path, wanted->name, found->type->name,
                    (unsigned long long)found->ne[0], wanted->format_name,
                    (unsigned long long)wanted->rows, (unsigned long long)wanted->columns);
    return done(e, wanted->name,
                model_load_tensor(&e->decoder, wanted, gguf_data(&e->file, found), found->bytes));
}

static bool load_weights(engine *e)
{
    double start = seconds();
    ptxgen_result result = model_create(&e->decoder, &e->cuda, NULL);
    if (result == PTXGEN_CUDA_ERROR_OUT_OF_MEMORY)
        return fail("not enough GPU memory for %.3f GiB of weights and %.3f GiB of cache: reduce "
                    "max_seq_len, or use a smaller kv_type, in the header's spec",
                    gibibytes(PTXGEN_IN_WEIGHTS), gibibytes(PTXGEN_IN_CACHE));
    if (!done(e, "model_create", result))
        return false;
    e->decoder.no_overlap = e->command.options[NO_OVERLAP] != 0;
    for (size_t i = 0; i < model_plan.tensor_count; i++)
        if (!load_tensor(e, &model_tensors[i]))
            return false;
    fprintf(stderr,
            "loaded %.3f GiB in %.1f s, %.3f GiB of cache for %lld positions, %lu launches per "
            "token\n",
            gibibytes(PTXGEN_IN_WEIGHTS) + gibibytes(PTXGEN_IN_HOST), seconds() - start,
            gibibytes(PTXGEN_IN_CACHE), (long long)model_plan.max_seq_len,
            (unsigned long)model_plan.steps[0].launch_count);
    return true;
}

/* Runs the prompt through the model, several tokens per step. */
static bool read_prompt(engine *e)
{
    const double *o = e->command.options;
    e->started = seconds();
    return done(e, "model_sampling",
                model_sampling(&e->decoder, e->stream, (float)o[TEMPERATURE], (uint32_t)o[TOP_K],
                               (float)o[TOP_P], (float)o[MIN_P], (uint64_t)o[SEED])) &&
           done(e, "model_prompt",
                model_prompt(&e->decoder, e->stream, e->prompt.items, e->prompt.count)) &&
           done(e, "cuStreamSynchronize", e->driver.stream_wait(e->stream));
}

/* Records a step. It reads token, position and length from GPU memory, so one graph serves all
 * tokens. */
static bool record_step(engine *e)
{
    const driver *d = &e->driver;
    void *recorded;
    return done(e, "cuStreamBeginCapture", d->begin_capture(e->stream, CAPTURE_THREAD_LOCAL)) &&
           done(e, "model_step", model_step(&e->decoder, e->stream)) &&
           done(e, "cuStreamEndCapture", d->end_capture(e->stream, &recorded)) &&
           done(e, "cuGraphInstantiate", d->instantiate(&e->graph, recorded, 0));
}

/* Replaces a suppressed token by the likeliest other one. model_prompt with this token then takes
 * the place of the next step. Reads the first row of logits: logits = last in model.ini makes it the
 * sampled token's. */
static bool choose_other(engine *e, uint32_t *token)
{
    const size_t count = (size_t)model_plan.vocab;
    float *logits = malloc(count * sizeof *logits);
    if (!logits)
        return fail("out of memory for %lu logits", (unsigned long)count);
    const bool copied = done(e, "cuMemcpyDtoHAsync",
                             e->cuda.driver.copy_to_host(logits, model_logits(&e->decoder),
                                                         count * sizeof *logits, e->stream)) &&
                        done(e, "cuStreamSynchronize", e->driver.stream_wait(e->stream));
    if (copied)
        *token = tokenizer_likeliest(e->tokenizer, logits, count);
    free(logits);
    return copied;
}

/* Prints the prompt, then the sampled tokens until the end of the answer. */
static bool print_answer(engine *e)
{
    const size_t room = (size_t)model_plan.max_seq_len - e->prompt.count;
    const double begun = seconds();
    size_t printed = 0;
    print_text(e->command.text, strlen(e->command.text));
    for (;;) {
        uint32_t token;
        if (!done(e, "model_token", model_token(&e->decoder, e->stream, &token)))
            return false;
        if (token >= (uint64_t)model_plan.vocab)
            return fail("no token sampled: a logit is not a number");
        const bool other = tokenizer_is_suppressed(e->tokenizer, token);
        if (other && !choose_other(e, &token))
            return false;
        if (tokenizer_is_end(e->tokenizer, token))
            break;
        const gguf_string piece = tokenizer_piece(e->tokenizer, token);
        if (!print_piece(&e->output, piece.bytes, piece.length))
            return false;
        if (++printed == (size_t)e->command.options[TOKENS] || printed > room)
            break;
        if (!(other ? done(e, "model_prompt", model_prompt(&e->decoder, e->stream, &token, 1))
                    : done(e, "cuGraphLaunch", e->driver.launch_graph(e->graph, e->stream))))
            return false;
    }
    if (!print_end(&e->output))
        return false;
    fprintf(stderr, "prompt %lu tokens in %.2f s, %lu tokens at %.1f tokens/s\n",
            (unsigned long)e->prompt.count, begun - e->started, (unsigned long)printed,
            (double)printed / (seconds() - begun));
    return true;
}

static void close_all(engine *e)
{
    model_destroy(&e->decoder);
    model_unload(&e->cuda);
    if (e->context)
        e->driver.release_context(e->device); /* frees its stream and graph, too */
    tokenizer_close(e->tokenizer);
    gguf_close(&e->file);
    free(e->prompt.items);
    free(e->output.waiting);
}

/* Ends the program on SIGBUS: the model's file was truncated while it is mapped. */
static void file_became_shorter(int signal)
{
    static const char text[] = "the model's file was truncated while it was read\n";
    (void)signal;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(1);
}

int main(int argc, char **argv)
{
    const struct sigaction shorter = { .sa_handler = file_became_shorter };
    static engine e;
    int status = command_read(&e.command, argc, argv);
    if (status != GO_ON)
        return status;
    sigaction(SIGBUS, &shorter, NULL);
    bool made = open_model(&e) && make_tokens(&e) && open_driver(&e) && load_weights(&e) &&
                read_prompt(&e) && record_step(&e) && print_answer(&e);
    close_all(&e);
    return made ? 0 : 1;
}
