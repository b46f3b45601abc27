#define _POSIX_C_SOURCE              200809L

#define MODEL_KERNELS_IMPLEMENTATION /* the kernels; in one source file of a program */
#include "loader.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool done(const loader *l, const char *call, ptxgen_result result)
{
    const char *name = "an unknown error";
    if (result == PTXGEN_CUDA_SUCCESS)
        return true;
    l->driver.error_name(result, &name);
    return fail("%s: %s (%u)", call, name, (unsigned)result);
}

/* Prints the reason for which the header refuses a call. */
static void report(void *context, const char *why)
{
    (void)context;
    fail("%s", why);
}

static double gibibytes(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0 * 1024.0);
}

/* Returns the bytes of tensors, and of the caches of all sequences. */
static uint64_t weight_bytes(void)
{
    return model_plan.bytes[PTXGEN_IN_WEIGHTS] + model_plan.bytes[PTXGEN_IN_HOST];
}

static uint64_t cache_bytes(uint32_t pages)
{
    return model_plan.bytes[PTXGEN_IN_CACHE] + model_plan.bytes[PTXGEN_IN_PAGES] * pages;
}

/* Prints how the file differs from the header's model. Returns true with --any-model 1. */
static bool differs(const loader *l, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fail("%s %s: generate the header from this file, or pass --any-model 1", l->path, what);
    return l->options[ANY_MODEL] > 0;
}

/* Compares a key of the file with the header's value. */
static bool compare_key(const loader *l, const ptxgen_file_key *wanted)
{
    const gguf_key *found = gguf_find_key(&l->file, wanted->name);
    gguf_string text;
    double number;
    if (!found)
        return wanted->use != PTXGEN_KEY_REQUIRED ||
               differs(l, "has no %s; the header was made with %s", wanted->name, wanted->text);
    if (gguf_get_string(found, &text))
        return ptxgen_key_is_text(wanted, text.bytes, text.length) ||
               differs(l, "was made with %s = %.*s, the header with %s", wanted->name,
                       (int)(text.length < 64 ? text.length : 64), text.bytes, wanted->text);
    if (wanted->use != PTXGEN_KEY_IGNORED && wanted->count > 1 && found->count != wanted->count)
        return differs(l, "has %lu values of %s; the header was made with %lu",
                       (unsigned long)found->count, wanted->name, (unsigned long)wanted->count);
    for (uint64_t i = 0; i < found->count; i++) {
        if (!gguf_get_f64(found, i, &number))
            return differs(l, "has a %s that is not a number", wanted->name);
        if (!ptxgen_key_is(wanted, (size_t)i, number))
            return differs(l, "was made with %s = %.9g, the header with %s", wanted->name, number,
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
static bool compare_model(const loader *l, uint64_t further)
{
    bool same = true;
    if (model_plan.edited)
        same = differs(l, "is not the header's model: the header's spec has %s", model_plan.edited);
    else if (!model_plan.keys)
        same = differs(l, "cannot be compared: the header's spec has no metadata.* keys");
    for (size_t i = 0; same && i < model_plan.key_count; i++)
        same = compare_key(l, &model_plan.keys[i]);
    for (size_t i = 0; same && model_plan.keys && i < l->file.key_count; i++)
        if (!model_knows_key(l->file.keys[i].name))
            same =
                differs(l, "has %s, which the header's model does not have", l->file.keys[i].name);
    for (size_t i = 0; same && i < l->file.tensor_count; i++)
        if (!model_knows_tensor(l->file.tensors[i].name) &&
            !is_further(l->file.tensors[i].name, further))
            same = differs(l, "has %s, which the header's model does not have",
                           l->file.tensors[i].name);
    return same;
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

bool loader_open(loader *l, const command *c)
{
    const struct sigaction shorter = { .sa_handler = file_became_shorter };
    gguf_string architecture = { "nothing", strlen("nothing") };
    gguf_error error;
    char key[64];
    uint64_t layers = 0, further = 0;
    l->path = c->path;
    l->options = c->options;
    sigaction(SIGBUS, &shorter, NULL);
    if (!gguf_open(l->path, &l->file, &error) || !gguf_check_data(&l->file, &error))
        return fail("%s", error.message);
    gguf_get_string(gguf_find_key(&l->file, "general.architecture"), &architecture);
    snprintf(key, sizeof key, "%s.block_count", model_plan.architecture);
    gguf_get_u64(gguf_find_key(&l->file, key), 0, &layers);
    snprintf(key, sizeof key, "%s.nextn_predict_layers", model_plan.architecture);
    gguf_get_u64(gguf_find_key(&l->file, key), 0, &further);
    if (!gguf_string_is(architecture, model_plan.architecture))
        return fail("%s has architecture %.*s; the header was made for %s", l->path,
                    (int)(architecture.length < 64 ? architecture.length : 64), architecture.bytes,
                    model_plan.architecture);
    if (layers - further != (uint64_t)model_plan.layers)
        return fail("%s has %llu layers; the header was made for %lld", l->path,
                    (unsigned long long)(layers - further), (long long)model_plan.layers);
    if (!compare_model(l, further))
        return false;
    l->tokenizer = tokenizer_open(&l->file, &error);
    return l->tokenizer || fail("%s", error.message);
}

static bool open_driver(loader *l)
{
    driver *d = &l->driver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return fail("%s: install a GPU driver, or use the emulated one: ptxgen run PROGRAM ...",
                    dlerror());
#define LOOK_UP(name, symbol, parameters)             \
    ptxgen_look_up(dlsym, library, symbol, &d->name); \
    if (!d->name)                                     \
        return fail("libcuda.so.1 is too old: it lacks " symbol);
    DRIVER_CALLS(LOOK_UP)
#undef LOOK_UP
    if (!done(l, "no GPU: cuInit", d->init(0)) ||
        !done(l, "no GPU: cuDeviceGet", d->device_get(&l->device, 0)) ||
        !done(l, "cuDevicePrimaryCtxRetain", d->retain_context(&l->context, l->device)) ||
        !done(l, "cuCtxSetCurrent", d->set_context(l->context)) ||
        !done(l, "cuStreamCreate", d->stream_create(&l->stream, 0)) ||
        !done(l, "model_cuda_init", model_cuda_init(&l->cuda, dlsym, library)))
        return false;
    l->cuda.driver.report = report;
    return true;
}

/* Copies a tensor to the GPU as stored in the file. The kernels decode its blocks. */
static bool load_tensor(loader *l, const ptxgen_tensor *wanted)
{
    const gguf_tensor *found = gguf_find(&l->file, wanted->name);
    if (!found)
        return fail("%s has no %s, which the header needs", l->path, wanted->name);
    if (found->type->id != wanted->gguf_type || found->ne[0] != wanted->columns ||
        found->bytes != wanted->bytes)
        return fail("%s: %s is %s with rows of %llu; the header was made for %s, %llu rows of %llu",
                    l->path, wanted->name, found->type->name, (unsigned long long)found->ne[0],
                    wanted->format_name, (unsigned long long)wanted->rows,
                    (unsigned long long)wanted->columns);
    return done(l, wanted->name,
                model_load_tensor(&l->decoder, wanted, gguf_data(&l->file, found), found->bytes));
}

bool loader_load(loader *l)
{
    const double start = seconds();
    const uint32_t all_pages = model_plan.sequences * model_plan.sequence_pages;
    ptxgen_memory memory = { .pages = all_pages };
    if (l->options[PAGES] > 0 && l->options[PAGES] < all_pages)
        memory.pages = (uint32_t)l->options[PAGES];
    if (!open_driver(l))
        return false;
    const ptxgen_result result = model_create(&l->decoder, &l->cuda, &memory);
    if (result == PTXGEN_CUDA_ERROR_OUT_OF_MEMORY)
        return fail("not enough GPU memory for %.3f GiB of weights and %.3f GiB of cache: reduce "
                    "max_seq_len, or use a smaller kv_type, in the header's spec",
                    gibibytes(weight_bytes()), gibibytes(cache_bytes(memory.pages)));
    if (!done(l, "model_create", result))
        return false;
    l->decoder.no_overlap = l->options[NO_OVERLAP] != 0;
    for (size_t i = 0; i < model_plan.tensor_count; i++)
        if (!load_tensor(l, &model_tensors[i]))
            return false;
    fprintf(stderr,
            "loaded %.3f GiB in %.1f s, %.3f GiB of cache for %lld positions, %lu launches per "
            "token\n",
            gibibytes(weight_bytes()), seconds() - start, gibibytes(cache_bytes(memory.pages)),
            (long long)model_plan.max_seq_len, (unsigned long)model_plan.steps[0].launch_count);
    return true;
}

bool choose_other(const loader *l, ptxgen_deviceptr logits, uint32_t *token)
{
    const size_t count = (size_t)model_plan.vocab;
    float *values = malloc(count * sizeof *values);
    if (!values)
        return fail("out of memory for %lu logits", (unsigned long)count);
    const bool copied =
        done(l, "cuMemcpyDtoHAsync",
             l->cuda.driver.copy_to_host(values, logits, count * sizeof *values, l->stream)) &&
        done(l, "cuStreamSynchronize", l->driver.stream_wait(l->stream));
    if (copied)
        *token = tokenizer_likeliest(l->tokenizer, values, count);
    free(values);
    return copied;
}

void loader_close(loader *l)
{
    model_destroy(&l->decoder);
    model_unload(&l->cuda);
    if (l->context)
        l->driver.release_context(l->device); /* frees its stream and graphs, too */
    tokenizer_close(l->tokenizer);
    gguf_close(&l->file);
}
