/* Encodes texts with the starter engine's tokenizer.
 *
 *     engine_tokens MODEL.gguf TEXTS [start]
 *
 * Names of control tokens in the texts become these tokens. With "start", the BOS token comes first
 * if the model uses one. Another last line has the tokens that end an answer. See texts.h. */
#include <string.h>

#include "templates/engine/tokenizer.h"
#include "tests/engine/texts.h"

int main(int argc, char **argv)
{
    gguf_file file;
    gguf_error error;
    FILE *texts = argc >= 3 ? fopen(argv[2], "rb") : NULL;
    if (!texts) {
        fprintf(stderr, "usage: engine_tokens MODEL.gguf TEXTS [start]\n");
        return 2;
    }
    if (!gguf_open(argv[1], &file, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    tokenizer *t = tokenizer_open(&file, &error);
    if (!t) {
        fprintf(stderr, "%s: %s\n", argv[1], error.message);
        return 1;
    }
    int flags = TOKENIZE_SPECIAL | (argc > 3 && strcmp(argv[3], "start") == 0 ? TOKENIZE_START : 0);
    char *text;
    uint32_t length;
    token_list tokens = { 0 };
    while (next_text(texts, &text, &length)) {
        tokens.count = 0;
        if (!tokenizer_encode(t, text, length, flags, &tokens)) {
            fprintf(stderr, "out of memory\n");
            return 1;
        }
        print_tokens(tokens.items, tokens.count);
        free(text);
    }
    for (uint32_t i = 0; i < tokenizer_size(t); i++)
        if (tokenizer_is_end(t, i))
            printf("%u ", (unsigned)i);
    putchar('\n');
    free(tokens.items);
    tokenizer_close(t);
    gguf_close(&file);
    fclose(texts);
    return 0;
}
