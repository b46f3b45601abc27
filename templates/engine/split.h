/* Splits text into the words that a byte-level BPE tokenizer merges bytes within, by the regular
 * expressions that the model was trained with. */
#ifndef SPLIT_H
#define SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf.h"

enum { MAX_PATTERNS = 6 };

/* Flags of a tokenizer.ggml.pre. */
enum {
    KEEPS_WORDS = 1, /* a word that is a token is that token, whatever the merges say */
    ADDS_BOS = 2,    /* texts start with the BOS token if the file does not say */
    COMPOSES = 4     /* text is put into Unicode's normal form C first */
};

typedef struct splitter {
    void *patterns[MAX_PATTERNS]; /* compiled by PCRE2, up to the first NULL */
    int flags;
} splitter;

/* Returns the splitter of a tokenizer.ggml.pre. An unknown one is an error that lists the
 * supported. */
bool splitter_open(gguf_string name, splitter *s, gguf_error *error);
void splitter_close(splitter *s);

/* Told of each word in turn; false stops the splitting. */
typedef bool split_word(void *user, const char *word, size_t length);

/* Every byte of the text is in one word, also those that are no UTF-8. False where the callback
 * said so, or where memory or PCRE2's patience ran out. */
bool split_text(const splitter *s, const char *text, size_t length, split_word *word, void *user);

/* Puts text into Unicode's normal form C; bytes that are no UTF-8 stay. Sets *composed to NULL if
 * the text is in that form because it is ASCII; else the caller frees it. Returns false if memory
 * ran out, or if the engine was built without utf8proc. */
bool split_compose(const char *text, size_t length, char **composed, size_t *composed_length);

#endif
