/* Feeds tokens to a model by llama.cpp's own library, and leaves its logits.
 *
 *     llama_logits FOLDER MODEL.gguf TOKENS LOGITS POSITIONS GREEDY
 *     llama_logits FOLDER
 *
 * FOLDER has libllama and libggml of llama.cpp 0.5.0. TOKENS is a file of numbers, fed one by one
 * to a context of POSITIONS with a cache of f32 and without flash attention, in which q and the
 * probabilities would be rounded. LOGITS gets those of every token, f32 [tokens, vocab]; the GREEDY
 * tokens that follow are printed, one a line. With the folder alone the library's version and what
 * of this CPU it uses are printed.
 *
 * Exit status: 0 all right; 1 an error; 3 there is no such library, or it is of another version.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, USAGE = 2, NO_LIBRARY = 3, LOG_ERROR = 4 };

/* What llama.h declares, as far as it is used here. Structures are passed by value, so that their
 * sizes count, but what only has its default needs no name. */
typedef struct llama_model llama_model;
typedef struct llama_context llama_context;

typedef struct llama_model_params {
    uint64_t words[10];
} llama_model_params;

typedef struct llama_context_params {
    uint32_t n_ctx, n_batch, n_ubatch, n_seq_max, n_rs_seq, n_outputs_max, n_outputs_max_per_seq;
    int32_t n_threads, n_threads_batch;
    int32_t ctx_type, rope_scaling_type, pooling_type, attention_type, flash_attn_type;
    float rope_freq[2], yarn[4];
    uint32_t yarn_orig_ctx;
    float defrag_thold;
    void *eval_callback[2];
    int32_t type_k, type_v;
    void *abort_callback[2];
    bool flags[8];
    void *samplers[3];
} llama_context_params;
_Static_assert(sizeof(llama_model_params) == 80, "as in llama.cpp 0.5.0");
_Static_assert(sizeof(llama_context_params) == 160, "as in llama.cpp 0.5.0");

enum { FLASH_ATTENTION_AUTO = -1, FLASH_ATTENTION_DISABLED = 0, TYPE_F32 = 0, TYPE_F16 = 1 };

typedef struct llama_batch {
    int32_t n_tokens;
    void *arrays[6];
} llama_batch;

#define LLAMA_FUNCTIONS(FUNCTION)                                                           \
    FUNCTION(const char *, llama_version, (void))                                           \
    FUNCTION(const char *, llama_print_system_info, (void))                                 \
    FUNCTION(void, llama_log_set, (void (*)(int, const char *, void *), void *))            \
    FUNCTION(void, llama_backend_init, (void))                                              \
    FUNCTION(llama_model_params, llama_model_default_params, (void))                        \
    FUNCTION(llama_context_params, llama_context_default_params, (void))                    \
    FUNCTION(llama_model *, llama_model_load_from_file, (const char *, llama_model_params)) \
    FUNCTION(llama_context *, llama_init_from_model, (llama_model *, llama_context_params)) \
    FUNCTION(const void *, llama_model_get_vocab, (const llama_model *))                    \
    FUNCTION(int32_t, llama_vocab_n_tokens, (const void *))                                 \
    FUNCTION(llama_batch, llama_batch_get_one, (int32_t *, int32_t))                        \
    FUNCTION(int32_t, llama_decode, (llama_context *, llama_batch))                         \
    FUNCTION(float *, llama_get_logits_ith, (llama_context *, int32_t))                     \
    FUNCTION(void, llama_free, (llama_context *))                                           \
    FUNCTION(void, llama_model_free, (llama_model *))                                       \
    FUNCTION(void, ggml_backend_load_all_from_path, (const char *))

typedef struct llama_api {
#define MEMBER(result, name, parameters) result(*name) parameters;
    LLAMA_FUNCTIONS(MEMBER)
#undef MEMBER
} llama_api;

static _Noreturn void give_up(int status, const char *what, const char *why)
{
    fprintf(stderr, "llama_logits: %s: %s\n", what, why);
    exit(status);
}

/* In the npm package the names of libraries have a version. */
static void *open_library(const char *folder, const char *name)
{
    static const char *const endings[] = { ".v0.5.0.so", ".so" };
    char path[4096];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, endings[i]);
        void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library)
            return library;
    }
    give_up(NO_LIBRARY, folder, dlerror());
}

static void say_errors(int level, const char *text, void *data)
{
    (void)data;
    if (level == LOG_ERROR)
        fputs(text, stderr);
}

/* The version's name does not change with every change of a structure: the defaults say whether
 * fields are where they are looked for. */
static void check_version(const llama_api *api)
{
    llama_context_params p = api->llama_context_default_params();
    if (strncmp(api->llama_version(), "0.5.0", 5) != 0)
        give_up(NO_LIBRARY, api->llama_version(), "not llama.cpp 0.5.0");
    if (p.n_ctx != 512 || p.n_batch != 2048 || p.n_seq_max != 1 || p.n_threads != 4 ||
        p.n_threads_batch != 4 || p.ctx_type != 0 || p.flash_attn_type != FLASH_ATTENTION_AUTO ||
        p.type_k != TYPE_F16 || p.type_v != TYPE_F16 || p.abort_callback[0] || p.samplers[0])
        give_up(NO_LIBRARY, api->llama_version(), "its llama_context_params is another");
}

static llama_api load(const char *folder)
{
    llama_api api;
    void *libraries[] = { open_library(folder, "libllama"), open_library(folder, "libggml") };
#define LOAD(result, name, parameters)                                          \
    {                                                                           \
        void *found = dlsym(libraries[strncmp(#name, "llama", 5) != 0], #name); \
        if (!found)                                                             \
            give_up(NO_LIBRARY, #name, "not in the library");                   \
        memcpy(&api.name, &found, sizeof found);                                \
    }
    LLAMA_FUNCTIONS(LOAD)
#undef LOAD
    check_version(&api);
    api.llama_log_set(say_errors, NULL);
    api.ggml_backend_load_all_from_path(folder);
    api.llama_backend_init();
    return api;
}

static const float *step(const llama_api *api, llama_context *context, int32_t token)
{
    if (api->llama_decode(context, api->llama_batch_get_one(&token, 1)) != 0)
        give_up(FAILED, "llama_decode", "failed");
    return api->llama_get_logits_ith(context, -1);
}

static void run(const llama_api *api, char **arguments)
{
    int positions = atoi(arguments[3]), greedy = atoi(arguments[4]), token;
    llama_context_params params = api->llama_context_default_params();
    params.n_ctx = (uint32_t)positions;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = FLASH_ATTENTION_DISABLED;
    params.type_k = params.type_v = TYPE_F32;
    llama_model *model =
        api->llama_model_load_from_file(arguments[0], api->llama_model_default_params());
    llama_context *context = model ? api->llama_init_from_model(model, params) : NULL;
    FILE *tokens = fopen(arguments[1], "r"), *out = fopen(arguments[2], "wb");
    if (!context || !tokens || !out)
        give_up(FAILED, arguments[0], "cannot be run");
    int vocab = api->llama_vocab_n_tokens(api->llama_model_get_vocab(model));
    const float *logits = NULL;
    while (fscanf(tokens, "%d", &token) == 1) {
        logits = step(api, context, token);
        fwrite(logits, sizeof *logits, (size_t)vocab, out);
    }
    for (int i = 0; logits && i < greedy; i++) {
        token = 0;
        for (int t = 1; t < vocab; t++)
            token = logits[t] > logits[token] ? t : token;
        printf("%d\n", token);
        logits = step(api, context, token);
    }
    fclose(tokens);
    if (fclose(out) != 0)
        give_up(FAILED, arguments[2], "cannot be written");
    api->llama_free(context);
    api->llama_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 7) {
        fprintf(stderr, "usage: llama_logits FOLDER [MODEL.gguf TOKENS LOGITS POSITIONS GREEDY]\n");
        return USAGE;
    }
    llama_api api = load(argv[1]);
    if (argc == 2)
        printf("llama.cpp %s; %s\n", api.llama_version(), api.llama_print_system_info());
    else
        run(&api, argv + 2);
    return 0;
}
