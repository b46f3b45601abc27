/* Any GGUF file as a vocabulary of the starter engine's tokenizer: texts must have tokens with
 * pieces, or there must be a message. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "templates/engine/tokenizer.h"
#include "tests/fuzz/fuzz.h"

/* Reads the last byte of each piece, so that a sanitizer detects a wrong length. */
static unsigned read_pieces(const tokenizer *t, const token_list *tokens)
{
    unsigned sum = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        assert(tokens->items[i] < tokenizer_size(t));
        gguf_string piece = tokenizer_piece(t, tokens->items[i]);
        if (piece.length)
            sum += (unsigned char)piece.bytes[0] + (unsigned char)piece.bytes[piece.length - 1];
        sum += tokenizer_is_end(t, tokens->items[i]);
    }
    return sum;
}

static void check_texts(const tokenizer *t)
{
    static const char text[] =
        "Hello  hello\n\n it's 12345 <s></s><|im_end|> \xFF\xC3 caf\xC3\xA9 he ll <tool>";
    for (int flags = 0; flags <= (TOKENIZE_START | TOKENIZE_SPECIAL); flags++) {
        token_list tokens = { 0 };
        assert(tokenizer_encode(t, text, sizeof text - 1, flags, &tokens));
        read_pieces(t, &tokens);
        free(tokens.items);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf_file file;
    gguf_error error;
    if (!gguf_open_memory("m", data, size, &file, &error))
        return 0;
    *error.message = '\0';
    tokenizer *t = tokenizer_open(&file, &error);
    assert(t || *error.message);
    if (t)
        check_texts(t);
    tokenizer_close(t);
    gguf_close(&file);
    return 0;
}
