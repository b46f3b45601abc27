/* Measures the speed of llama.cpp's library on a model.
 *
 *     llama_speed FOLDER MODEL.gguf [OPTION ...]
 *
 *     --tokens N   generates N tokens one by one; 0 = none
 *                  (tgN; default 128)
 *     --depth N    generates them after N tokens in the KV cache
 *                  (tgN_atN; repeatable; default 0 and 512)
 *     --rows N     decodes N tokens per step
 *                  (rowsN: of one sequence, seqsN: of N sequences; repeatable; default: none)
 *     --prompt N   decodes a prompt, with the logits of its last token; 0 = none
 *                  (ppN; repeatable; default 512 and 2048)
 *     --ubatch N   sets n_ubatch of llama.cpp; values other than 512 add _ubN to names
 *     --repeat N   timed runs of a shape, after one untimed run; 0 = compile only
 *                  (the median counts; default 3)
 *     --cpu        runs on one thread of the CPU; without it a GPU is required
 *
 * All layers are on the GPU, flash attention is on, caches are f16. In the untimed run of each
 * shape the driver compiles kernels, which may take minutes. This run prints the tokens that it
 * generates greedily from token 1, and fails if logits are not finite.
 *
 * Prints a line "NAME VALUE UNIT" as soon as a figure is known, and lines that begin with "#". Exit
 * status: 0 success; 1 an error; 2 wrong usage; 3 the library is missing, or there is no GPU. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llama_api.h"

enum { MAX_SIZES = 8, MAX_REPEATS = 99, MAX_ROWS = 64, USUAL_UBATCH = 512, BATCH = 2048 };

typedef struct size_list {
    int32_t values[MAX_SIZES];
    int count;
} size_list;

typedef struct settings {
    const char *folder, *path;
    int32_t tokens, ubatch, repeats;
    size_list prompts, depths, rows;
    bool on_cpu;
} settings;

/* The shape of a run. `depth` tokens are decoded untimed, then `count` tokens, `rows` per step. */
typedef struct shape {
    char name[64];
    int32_t depth, count, rows;
    bool is_prompt;    /* one step with the logits of its last token */
    bool is_greedy;    /* the untimed run chooses the tokens */
    int32_t sequences; /* 1, or one per row */
} shape;

typedef struct bench {
    llama_api api;
    settings settings;
    llama_model *model;
    llama_context *context;
    int32_t vocab;
    int32_t *tokens; /* tokens of the current shape: depth, then count */
} bench;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *name, double value, const char *unit)
{
    printf("%s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

/* Prints warnings, errors, and the lines that say where the model's layers are. */
static void log_line(int level, const char *text, void *data)
{
    static const char *const kept[] = {
        "offload", "CUDA", "cuda", "buffer size", "Flash", "flash"
    };
    (void)data;
    bool is_kept = level == LLAMA_LOG_WARN || level == LLAMA_LOG_ERROR;
    for (size_t i = 0; level == LLAMA_LOG_INFO && i < sizeof kept / sizeof *kept; i++)
        is_kept = is_kept || strstr(text, kept[i]);
    if (is_kept)
        fprintf(stderr, "# %s", text);
}

/* Prints the devices unless `quietly` is set. Sets *gpus to the number of GPUs, and returns the bytes
 * that are free on all of them. */
static size_t list_devices(const bench *b, int *gpus, bool quietly)
{
    size_t all_free = 0;
    *gpus = 0;
    for (size_t i = 0; i < b->api.ggml_backend_dev_count(); i++) {
        void *device = b->api.ggml_backend_dev_get(i);
        size_t free_bytes = 0, total = 0;
        b->api.ggml_backend_dev_memory(device, &free_bytes, &total);
        bool is_gpu = b->api.ggml_backend_dev_type(device) == LLAMA_DEVICE_GPU;
        if (!quietly)
            printf("# device %s: %s, %s, %zu of %zu MiB free\n",
                   b->api.ggml_backend_dev_name(device),
                   b->api.ggml_backend_dev_description(device), is_gpu ? "GPU" : "no GPU",
                   free_bytes >> 20, total >> 20);
        *gpus += is_gpu;
        all_free += is_gpu ? free_bytes : 0;
    }
    fflush(stdout);
    return all_free;
}

/* Opens ggml's CUDA backend directly, because ggml drops the reason if it cannot load a backend. */
static void open_cuda(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libggml-cuda.so", folder);
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
        llama_give_up(LLAMA_NO_LIBRARY, path, dlerror());
}

static void open_model(bench *b)
{
    int gpus;
    size_t before = list_devices(b, &gpus, false);
    if (!gpus && !b->settings.on_cpu)
        llama_give_up(LLAMA_NO_LIBRARY, b->settings.folder,
                      "no GPU; check nvidia-smi, or run with --cpu");
    llama_model_params params = b->api.llama_model_default_params();
    params.n_gpu_layers = b->settings.on_cpu ? 0 : 999;
    double start = seconds();
    b->model = b->api.llama_model_load_from_file(b->settings.path, params);
    if (!b->model)
        llama_give_up(LLAMA_FAILED, b->settings.path, "cannot be loaded");
    say("load", seconds() - start, "s");
    char text[256] = "";
    b->api.llama_model_desc(b->model, text, sizeof text);
    b->vocab = b->api.llama_vocab_n_tokens(b->api.llama_model_get_vocab(b->model));
    printf("# model %s, %d tokens in the vocabulary\n", text, b->vocab);
    if (b->vocab < 2)
        llama_give_up(LLAMA_FAILED, b->settings.path, "has no vocabulary size");
    say("model_bytes", (double)b->api.llama_model_size(b->model), "B");
    say("gpu_bytes_used", (double)before - (double)list_devices(b, &gpus, true), "B");
}

static void open_context(bench *b, const shape *s)
{
    llama_context_params params = b->api.llama_context_default_params();
    int32_t a_sequence = (s->depth + s->count / s->sequences + 255) / 256 * 256;
    params.n_ctx = (uint32_t)(a_sequence * s->sequences);
    params.n_batch = BATCH;
    params.n_ubatch = (uint32_t)b->settings.ubatch;
    params.n_seq_max = (uint32_t)s->sequences;
    if (b->settings.on_cpu)
        params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = FLASH_ATTENTION_ENABLED;
    params.type_k = params.type_v = TYPE_F16;
    b->context = b->api.llama_init_from_model(b->model, params);
    if (!b->context)
        llama_give_up(LLAMA_FAILED, s->name, "no context of that size");
}

static void decode(const bench *b, llama_batch batch)
{
    if (b->api.llama_decode(b->context, batch) != 0)
        llama_give_up(LLAMA_FAILED, "llama_decode", "failed");
}

/* Decodes tokens of sequence 0, with the logits of the last token. */
static void decode_all(const bench *b, int32_t *tokens, int32_t count)
{
    for (int32_t done = 0; done < count; done += BATCH)
        decode(b, b->api.llama_batch_get_one(tokens + done,
                                             count - done < BATCH ? count - done : BATCH));
}

/* Decodes a step of several rows, with the logits of every row. */
static void decode_rows(const bench *b, const shape *s, int32_t *tokens, int32_t step)
{
    int32_t pos[MAX_ROWS], counts[MAX_ROWS], numbers[MAX_ROWS], *ids[MAX_ROWS];
    int8_t logits[MAX_ROWS];
    for (int32_t row = 0; row < s->rows; row++) {
        bool is_one = s->sequences == 1;
        pos[row] = is_one ? step * s->rows + row : step;
        counts[row] = logits[row] = 1;
        numbers[row] = is_one ? 0 : row;
        ids[row] = &numbers[row];
    }
    decode(b, (llama_batch){ s->rows, tokens, NULL, pos, counts, ids, logits });
}

static void check_logits(const bench *b, const shape *s)
{
    const float *logits = b->api.llama_get_logits_ith(b->context, -1);
    for (int32_t i = 0; logits && i < b->vocab; i++)
        if (!isfinite(logits[i]))
            llama_give_up(LLAMA_FAILED, s->name, "logits are not finite");
    if (!logits)
        llama_give_up(LLAMA_FAILED, s->name, "no logits");
}

/* Runs a shape once, with an empty cache. Returns the seconds after its untimed tokens. If
 * `chooses` is set, each next token is the one with the largest logit. */
static double run(const bench *b, const shape *s, bool chooses)
{
    b->api.llama_memory_clear(b->api.llama_get_memory(b->context), false);
    decode_all(b, b->tokens, s->depth);
    b->api.llama_synchronize(b->context);
    int32_t *tokens = b->tokens + s->depth;
    double start = seconds();
    if (s->is_prompt) {
        decode_all(b, tokens, s->count);
        b->api.llama_synchronize(b->context);
        return seconds() - start;
    }
    /* The next token depends on a step's logits, so each step is waited for. */
    for (int32_t i = 0; i < s->count; i += s->rows) {
        if (s->rows > 1)
            decode_rows(b, s, tokens + i, i / s->rows);
        else
            decode_all(b, tokens + i, 1);
        b->api.llama_synchronize(b->context);
        if (chooses && i + 1 < s->count)
            tokens[i + 1] = llama_largest(b->api.llama_get_logits_ith(b->context, -1), b->vocab);
    }
    return seconds() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(bench *b, shape s)
{
    double times[MAX_REPEATS];
    int32_t repeats = b->settings.repeats;
    uint32_t random = 1;
    char name[96];
    if (b->settings.ubatch != USUAL_UBATCH)
        snprintf(s.name + strlen(s.name), sizeof s.name - strlen(s.name), "_ub%d",
                 b->settings.ubatch);
    b->tokens = calloc((size_t)(s.depth + s.count), sizeof *b->tokens);
    if (!b->tokens)
        llama_give_up(LLAMA_FAILED, s.name, "no memory");
    for (int32_t i = 0; i < s.depth + s.count; i++, random = random * 1664525 + 1013904223)
        b->tokens[i] = (int32_t)((random >> 8) % (uint32_t)b->vocab);
    b->tokens[0] = 1;
    open_context(b, &s);
    double start = seconds();
    run(b, &s, s.is_greedy);
    check_logits(b, &s);
    snprintf(name, sizeof name, "%s_untimed", s.name);
    say(name, seconds() - start, "s");
    if (s.is_greedy) {
        printf("# %s tokens", s.name);
        for (int32_t i = 0; i < s.count; i++)
            printf(" %d", b->tokens[s.depth + i]);
        printf("\n");
    }
    for (int32_t i = 0; i < repeats; i++)
        times[i] = run(b, &s, false);
    qsort(times, (size_t)repeats, sizeof *times, by_value);
    if (repeats) {
        say(s.name, s.count / times[repeats / 2], "tokens/s");
        printf("# %s fastest %.6g, slowest %.6g tokens/s, %.4f ms a step\n", s.name,
               s.count / times[0], s.count / times[repeats - 1],
               1e3 * times[repeats / 2] * (s.is_prompt ? 1 : (double)s.rows / s.count));
        fflush(stdout);
    }
    b->api.llama_free(b->context);
    free(b->tokens);
}

static void measure_all(bench *b)
{
    const settings *o = &b->settings;
    for (int i = 0; o->tokens && i < o->depths.count; i++) {
        shape s = { .depth = o->depths.values[i],
                    .count = o->tokens,
                    .rows = 1,
                    .is_greedy = true,
                    .sequences = 1 };
        snprintf(s.name, sizeof s.name, s.depth ? "tg%d_at%d" : "tg%d", s.count, s.depth);
        measure(b, s);
    }
    for (int i = 0; i < o->prompts.count; i++) {
        shape s = { .count = o->prompts.values[i], .rows = 1, .is_prompt = true, .sequences = 1 };
        snprintf(s.name, sizeof s.name, "pp%d", s.count);
        if (s.count)
            measure(b, s);
    }
    for (int i = 0; i < 2 * o->rows.count; i++) {
        int32_t rows = o->rows.values[i / 2];
        shape s = { .count = 16 * rows, .rows = rows, .sequences = i % 2 ? rows : 1 };
        snprintf(s.name, sizeof s.name, i % 2 ? "seqs%d" : "rows%d", rows);
        measure(b, s);
    }
}

static _Noreturn void usage(const char *wrong)
{
    fprintf(
        stderr,
        "llama_speed: %s\n"
        "usage: llama_speed FOLDER MODEL.gguf [--tokens N] [--depth N] [--rows N] [--prompt N]\n"
        "                   [--ubatch N] [--repeat N] [--cpu]\n",
        wrong);
    exit(LLAMA_USAGE);
}

static int32_t number(const char *text, int32_t least, int32_t most)
{
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || value < least || value > most)
        usage(text ? text : "a number is missing");
    return (int32_t)value;
}

static void add(size_list *list, int32_t value)
{
    if (list->count == MAX_SIZES)
        usage("too many sizes of one kind; give 8 at most");
    list->values[list->count++] = value;
}

static settings read_settings(char **words)
{
    enum { MOST = 1 << 20 };
    settings o = { .tokens = 128, .ubatch = USUAL_UBATCH, .repeats = 3 };
    if (!words[0] || !words[1])
        usage("FOLDER and MODEL.gguf are missing");
    o.folder = words[0];
    o.path = words[1];
    for (words += 2; *words; words++) {
        if (strcmp(*words, "--cpu") == 0) {
            o.on_cpu = true;
            continue;
        }
        const char *name = *words, *text = words[1];
        if (strcmp(name, "--tokens") == 0)
            o.tokens = number(text, 0, MOST);
        else if (strcmp(name, "--depth") == 0)
            add(&o.depths, number(text, 0, MOST));
        else if (strcmp(name, "--rows") == 0)
            add(&o.rows, number(text, 2, MAX_ROWS));
        else if (strcmp(name, "--prompt") == 0)
            add(&o.prompts, number(text, 0, MOST));
        else if (strcmp(name, "--ubatch") == 0)
            o.ubatch = number(text, 1, BATCH);
        else if (strcmp(name, "--repeat") == 0)
            o.repeats = number(text, 0, MAX_REPEATS);
        else
            usage(name);
        words++;
    }
    if (!o.depths.count) {
        add(&o.depths, 0);
        add(&o.depths, 512);
    }
    if (!o.prompts.count) {
        add(&o.prompts, 512);
        add(&o.prompts, 2048);
    }
    return o;
}

int main(int argc, char **argv)
{
    (void)argc;
    bench b = { .settings = read_settings(argv + 1) };
    b.api = llama_load("llama_speed", b.settings.folder, log_line);
    if (!b.settings.on_cpu)
        open_cuda(b.settings.folder);
    printf("# llama.cpp %s; %s\n", b.api.llama_version(), b.api.llama_print_system_info());
    open_model(&b);
    measure_all(&b);
    b.api.llama_model_free(b.model);
    return 0;
}
