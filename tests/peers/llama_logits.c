/* Runs tokens through llama.cpp's library and writes the logits.
 *
 *     llama_logits FOLDER MODEL.gguf TOKENS LOGITS POSITIONS GREEDY
 *     llama_logits FOLDER
 *
 * FOLDER has libllama and libggml of llama.cpp 0.5.0. TOKENS is a text file of token numbers. They
 * run one by one in a context of POSITIONS tokens. The cache is f32, and flash attention is off,
 * because it would round q and the probabilities. LOGITS gets the logits of every token, f32
 * [tokens, vocab]. The next GREEDY tokens are printed, one per line. With FOLDER only, prints the
 * library's version and the CPU features it uses.
 *
 * Exit status: 0 success; 1 an error; 2 wrong usage; 3 the library is missing or has another
 * version. */
#include <stdio.h>
#include <stdlib.h>

#include "llama_api.h"

static const float *step(const llama_api *api, llama_context *context, int32_t token)
{
    if (api->llama_decode(context, api->llama_batch_get_one(&token, 1)) != 0)
        llama_give_up(LLAMA_FAILED, "llama_decode", "failed");
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
        llama_give_up(LLAMA_FAILED, arguments[0], "cannot be run");
    int vocab = api->llama_vocab_n_tokens(api->llama_model_get_vocab(model));
    const float *logits = NULL;
    while (fscanf(tokens, "%d", &token) == 1) {
        logits = step(api, context, token);
        fwrite(logits, sizeof *logits, (size_t)vocab, out);
    }
    for (int i = 0; logits && i < greedy; i++) {
        token = llama_largest(logits, vocab);
        printf("%d\n", token);
        logits = step(api, context, token);
    }
    fclose(tokens);
    if (fclose(out) != 0)
        llama_give_up(LLAMA_FAILED, arguments[2], "cannot be written");
    api->llama_free(context);
    api->llama_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 7) {
        fprintf(stderr, "usage: llama_logits FOLDER [MODEL.gguf TOKENS LOGITS POSITIONS GREEDY]\n");
        return LLAMA_USAGE;
    }
    llama_api api = llama_load("llama_logits", argv[1], NULL);
    if (argc == 2)
        printf("llama.cpp %s; %s\n", api.llama_version(), api.llama_print_system_info());
    else
        run(&api, argv + 2);
    return 0;
}
