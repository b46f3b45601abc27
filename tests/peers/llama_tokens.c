/* Encodes texts with llama.cpp's library, as engine_tokens does with the starter engine.
 *
 *     llama_tokens FOLDER MODEL.gguf TEXTS [start]
 *
 * FOLDER has libllama and libggml of llama.cpp 0.5.0. MODEL needs no tensors. Another last line has
 * the tokens that end an answer. Exit status: see llama_logits.c. */
#include <string.h>

#include "llama_api.h"
#include "tests/engine/texts.h"

static void encode(const llama_api *api, const void *vocab, FILE *texts, bool start)
{
    char *text;
    uint32_t length;
    while (next_text(texts, &text, &length)) {
        int32_t room = (int32_t)length * 4 + 8;
        int32_t *tokens = malloc((size_t)room * sizeof *tokens);
        int32_t count =
            api->llama_tokenize(vocab, text, (int32_t)length, tokens, room, start, true);
        if (!tokens || count < 0)
            llama_give_up(LLAMA_FAILED, "llama_tokenize", "failed");
        print_tokens((uint32_t *)tokens, (size_t)count);
        free(tokens);
        free(text);
    }
    for (int32_t i = 0; i < api->llama_vocab_n_tokens(vocab); i++)
        if (api->llama_vocab_is_eog(vocab, i))
            printf("%d ", i);
    putchar('\n');
}

int main(int argc, char **argv)
{
    FILE *texts = argc >= 4 ? fopen(argv[3], "rb") : NULL;
    if (!texts) {
        fprintf(stderr, "usage: llama_tokens FOLDER MODEL.gguf TEXTS [start]\n");
        return LLAMA_USAGE;
    }
    llama_api api = llama_load("llama_tokens", argv[1], NULL);
    llama_model_params params = api.llama_model_default_params();
    params.vocab_only = true;
    llama_model *model = api.llama_model_load_from_file(argv[2], params);
    if (!model)
        llama_give_up(LLAMA_FAILED, argv[2], "cannot be read");
    encode(&api, api.llama_model_get_vocab(model), texts,
           argc > 4 && strcmp(argv[4], "start") == 0);
    api.llama_model_free(model);
    fclose(texts);
    return 0;
}
