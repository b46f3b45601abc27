/* Text to tokens and back, by the vocabulary that a GGUF file has: SentencePiece's BPE
 * (tokenizer.ggml.model "llama": Llama 2, Mistral, Gemma, Phi-3) and byte-level BPE ("gpt2": Llama
 * 3, Qwen, Phi-4, gpt-oss and most others).
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf.h"

typedef struct tokenizer tokenizer;

enum {
    TOKENIZE_START = 1,  /* the text starts a sequence: put the BOS token first, where the model
                          * wants one */
    TOKENIZE_SPECIAL = 2 /* names of control tokens in the text, "<|im_start|>", are these tokens */
};

typedef struct token_list {
    uint32_t *items; /* to be freed by the caller */
    size_t count, capacity;
} token_list;

/* NULL, and a message, where the vocabulary is missing, broken, or of a kind that is not known. The
 * file must stay open until tokenizer_close. */
tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error);
void tokenizer_close(tokenizer *t);

uint32_t tokenizer_size(const tokenizer *t);

/* Appends the tokens of a text, which may be any bytes. False where memory ran out. */
bool tokenizer_encode(const tokenizer *t, const char *text, size_t length, int flags,
                      token_list *tokens);

/* The bytes of a token: not always whole characters, and none of a control token. Valid until
 * tokenizer_close. */
gguf_string tokenizer_piece(const tokenizer *t, uint32_t token);

/* How many of the bytes come before a character that is not whole yet, for text that is shown piece
 * by piece. */
size_t tokenizer_whole_bytes(const char *bytes, size_t count);

/* Whether a token says that the answer ends: EOS, end of turn, end of message. */
bool tokenizer_is_end(const tokenizer *t, uint32_t token);

#endif
