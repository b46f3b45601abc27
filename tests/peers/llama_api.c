#include "llama_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program_name = "llama";

_Noreturn void llama_give_up(int status, const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", program_name, what, why);
    exit(status);
}

/* Opens a library by its name in the npm package for CPUs, in the one for CUDA, or in another
 * build. */
static void *open_library(const char *folder, const char *name)
{
    static const char *const endings[] = { ".v0.5.0.so", ".cuda.v0.5.0.so", ".so" };
    char path[4096], why[4096] = "";
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, sizeof path, "%s/%s%s", folder, name, endings[i]);
        void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library)
            return library;
        /* The message about a file that exists is the useful one. */
        const char *message = dlerror();
        if (!*why || !strstr(message, "No such file"))
            snprintf(why, sizeof why, "%s", message);
    }
    llama_give_up(LLAMA_NO_LIBRARY, folder, why);
}

static void say_errors(int level, const char *text, void *data)
{
    (void)data;
    if (level == LLAMA_LOG_ERROR)
        fputs(text, stderr);
}

/* Checks default parameters, because structures change more often than the version's name. */
static void check_version(const llama_api *api)
{
    llama_context_params p = api->llama_context_default_params();
    llama_model_params m = api->llama_model_default_params();
    if (strncmp(api->llama_version(), "0.5.0", 5) != 0)
        llama_give_up(LLAMA_NO_LIBRARY, api->llama_version(), "not llama.cpp 0.5.0");
    if (p.n_ctx != 512 || p.n_batch != 2048 || p.n_ubatch != 512 || p.n_seq_max != 1 ||
        p.n_threads != 4 || p.n_threads_batch != 4 || p.ctx_type != 0 ||
        p.flash_attn_type != FLASH_ATTENTION_AUTO || p.type_k != TYPE_F16 || p.type_v != TYPE_F16 ||
        p.abort_callback[0] || p.samplers[0])
        llama_give_up(LLAMA_NO_LIBRARY, api->llama_version(), "its llama_context_params differs");
    if (m.devices[0] || m.devices[1] || m.n_gpu_layers != -1)
        llama_give_up(LLAMA_NO_LIBRARY, api->llama_version(), "its llama_model_params differs");
}

llama_api llama_load(const char *program, const char *folder,
                     void (*log)(int level, const char *text, void *))
{
    llama_api api;
    program_name = program;
    void *llama = open_library(folder, "libllama"), *ggml = open_library(folder, "libggml");
#define LOAD(result, name, parameters)                                              \
    {                                                                               \
        void *found = dlsym(strncmp(#name, "llama", 5) == 0 ? llama : ggml, #name); \
        if (!found)                                                                 \
            llama_give_up(LLAMA_NO_LIBRARY, #name, "not in the library");           \
        memcpy(&api.name, &found, sizeof found);                                    \
    }
    LLAMA_FUNCTIONS(LOAD)
    GGML_BASE_FUNCTIONS(LOAD)
#undef LOAD
    check_version(&api);
    api.llama_log_set(log ? log : say_errors, NULL);
    api.ggml_backend_load_all_from_path(folder);
    api.llama_backend_init();
    return api;
}

int32_t llama_largest(const float *logits, int32_t vocab)
{
    int32_t token = 0;
    for (int32_t t = 1; t < vocab; t++)
        token = logits[t] > logits[token] ? t : token;
    return token;
}
