/* Splits text into the words that a byte-level BPE tokenizer merges bytes within, by the regular
 * expressions that the model was trained with. */
#ifndef SPLIT_H
#define SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf.h"

enum { MAX_PATTERNS = 5 };

typedef struct splitter {
    void *patterns[MAX_PATTERNS]; /* compiled by PCRE2, up to the first NULL */
    bool keeps_words; /* a word that is a token is that token, whatever the merges say */
    bool adds_bos;    /* where the file does not say */
} splitter;

/* The splitter of a tokenizer.ggml.pre. An unknown one is an error that lists those there are. */
bool splitter_open(gguf_string name, splitter *s, gguf_error *error);
void splitter_close(splitter *s);

/* Told of each word in turn; false stops the splitting. */
typedef bool split_word(void *user, const char *word, size_t length);

/* Every byte of the text is in one word, also those that are no UTF-8. False where the callback
 * said so, or where memory or PCRE2's patience ran out. */
bool split_text(const splitter *s, const char *text, size_t length, split_word *word, void *user);

#endif
