/* llama.cpp 0.5.0, loaded from its shared libraries: the declarations of llama.h and ggml-backend.h
 * that the programs here use. */
#ifndef PTXGEN_TESTS_LLAMA_API_H
#define PTXGEN_TESTS_LLAMA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. NO_LIBRARY: the library is missing, cannot be loaded, or has another version. */
enum { LLAMA_FAILED = 1, LLAMA_USAGE = 2, LLAMA_NO_LIBRARY = 3 };

typedef struct llama_model llama_model;
typedef struct llama_context llama_context;

/* Structures are passed by value, so their sizes matter. Fields that keep their defaults are
 * grouped. */
typedef struct llama_model_params {
    void *devices[2];
    int32_t n_gpu_layers;
    int32_t other_numbers[5];
    uint64_t rest[4];
    bool vocab_only, other_flags[7];
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

enum {
    FLASH_ATTENTION_AUTO = -1,
    FLASH_ATTENTION_DISABLED = 0,
    FLASH_ATTENTION_ENABLED = 1,
    TYPE_F32 = 0,
    TYPE_F16 = 1
};
enum { LLAMA_LOG_INFO = 2, LLAMA_LOG_WARN = 3, LLAMA_LOG_ERROR = 4 };
enum { LLAMA_DEVICE_CPU = 0, LLAMA_DEVICE_GPU = 1 };

/* A batch of tokens. pos, n_seq_id, seq_id and logits may be NULL. The tokens then get the next
 * positions of sequence 0, and only the last token has logits. */
typedef struct llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos, *n_seq_id, **seq_id;
    int8_t *logits;
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
    FUNCTION(int32_t, llama_model_desc, (const llama_model *, char *, size_t))              \
    FUNCTION(uint64_t, llama_model_size, (const llama_model *))                             \
    FUNCTION(const void *, llama_model_get_vocab, (const llama_model *))                    \
    FUNCTION(int32_t, llama_vocab_n_tokens, (const void *))                                 \
    FUNCTION(bool, llama_vocab_is_eog, (const void *, int32_t))                             \
    FUNCTION(int32_t, llama_tokenize,                                                       \
             (const void *, const char *, int32_t, int32_t *, int32_t, bool, bool))         \
    FUNCTION(llama_batch, llama_batch_get_one, (int32_t *, int32_t))                        \
    FUNCTION(int32_t, llama_decode, (llama_context *, llama_batch))                         \
    FUNCTION(void, llama_synchronize, (llama_context *))                                    \
    FUNCTION(float *, llama_get_logits_ith, (llama_context *, int32_t))                     \
    FUNCTION(void *, llama_get_memory, (const llama_context *))                             \
    FUNCTION(void, llama_memory_clear, (void *, bool))                                      \
    FUNCTION(void, llama_free, (llama_context *))                                           \
    FUNCTION(void, llama_model_free, (llama_model *))                                       \
    FUNCTION(void, ggml_backend_load_all_from_path, (const char *))                         \
    FUNCTION(size_t, ggml_backend_dev_count, (void))                                        \
    FUNCTION(void *, ggml_backend_dev_get, (size_t))

/* Functions of libggml-base, which libggml loads. */
#define GGML_BASE_FUNCTIONS(FUNCTION)                              \
    FUNCTION(const char *, ggml_backend_dev_name, (void *))        \
    FUNCTION(const char *, ggml_backend_dev_description, (void *)) \
    FUNCTION(int, ggml_backend_dev_type, (void *))                 \
    FUNCTION(void, ggml_backend_dev_memory, (void *, size_t *, size_t *))

typedef struct llama_api {
#define MEMBER(result, name, parameters) result(*name) parameters;
    LLAMA_FUNCTIONS(MEMBER)
    GGML_BASE_FUNCTIONS(MEMBER)
#undef MEMBER
} llama_api;

/* Prints "PROGRAM: WHAT: WHY" to stderr and exits. */
_Noreturn void llama_give_up(int status, const char *what, const char *why);

/* Loads the libraries in a folder, checks their version, and loads the folder's backends. If log is
 * NULL, errors go to stderr and other messages are dropped. Exits on failure. */
llama_api llama_load(const char *program, const char *folder,
                     void (*log)(int level, const char *text, void *));

/* Returns the token with the largest logit, the first of equal ones. */
int32_t llama_largest(const float *logits, int32_t vocab);

#endif
