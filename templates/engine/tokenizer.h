/* Converts text to tokens and back with the vocabulary of a GGUF file: SentencePiece's BPE
 * (tokenizer.ggml.model "llama": Llama 2, Mistral, Gemma 3, Phi-3), Gemma 4's BPE ("gemma4"), and
 * byte-level BPE ("gpt2": Llama 3, Qwen, Phi-4, gpt-oss and most others). */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf.h"

typedef struct tokenizer tokenizer;

enum {
    TOKENIZE_START = 1,  /* the text starts a sequence: put the BOS token first if the model uses
                            one */
    TOKENIZE_SPECIAL = 2 /* names of control tokens in the text, e.g. "<|im_start|>", become these
                            tokens */
};

typedef struct token_list {
    uint32_t *items; /* freed by the caller */
    size_t count, capacity;
} token_list;

/* Opens the tokenizer of a file, which must stay open until tokenizer_close. Returns NULL with a
 * message if the vocabulary is missing, invalid or of an unknown kind. */
tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error);
void tokenizer_close(tokenizer *t);

uint32_t tokenizer_size(const tokenizer *t);

/* Appends the tokens of a text, which may have any bytes. Returns false if memory is exhausted. */
bool tokenizer_encode(const tokenizer *t, const char *text, size_t length, int flags,
                      token_list *tokens);

/* Returns the bytes of a token, valid until tokenizer_close. They may be part of a character; a
 * control token has none. */
gguf_string tokenizer_piece(const tokenizer *t, uint32_t token);

/* Returns the number of bytes before an incomplete last character, for text printed in pieces. */
size_t tokenizer_whole_bytes(const char *bytes, size_t count);

/* Returns true if a token ends the answer: EOS, end of turn, end of message. */
bool tokenizer_is_end(const tokenizer *t, uint32_t token);

/* Returns true if the file says that a token must not be sampled, such as the place of an image. */
bool tokenizer_is_suppressed(const tokenizer *t, uint32_t token);

/* Returns the likeliest of the other tokens, by `count` logits; UINT32_MAX if there is none. */
uint32_t tokenizer_likeliest(const tokenizer *t, const float *logits, size_t count);

#endif
