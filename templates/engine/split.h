/* Splits text into words with the regular expressions that the model was trained with. BPE merges
 * only within a word. */
#ifndef SPLIT_H
#define SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf.h"

enum { MAX_PATTERNS = 6 };

/* Flags of a tokenizer.ggml.pre. */
enum {
    KEEPS_WORDS = 1,     /* a word that equals a token is that token, whatever the merges say */
    ADDS_BOS = 2,        /* texts start with the BOS token by default */
    COMPOSES = 4,        /* text is first converted to Unicode normalization form C */
    CODE_POINTS = 8,     /* tokens are merged from characters, with U+2581 for a space */
    KEEPS_LINE_ENDS = 16 /* a run of line ends that equals a token is that token */
};

typedef struct splitter {
    void *patterns[MAX_PATTERNS]; /* compiled PCRE2 patterns, up to the first NULL */
    int flags;
} splitter;

/* Opens the splitter with a name from tokenizer.ggml.pre. Returns false for an unknown name, with
 * an error that lists the supported ones. */
bool splitter_open(gguf_string name, splitter *s, gguf_error *error);
void splitter_close(splitter *s);

/* Callback for each word in order. Returns false to stop. */
typedef bool split_word(void *user, const char *word, size_t length);

/* Splits a text. Every byte is in one word, also invalid UTF-8. Returns false if the callback did,
 * or if memory or a PCRE2 limit is exhausted. */
bool split_text(const splitter *s, const char *text, size_t length, split_word *word, void *user);

/* Converts text to Unicode normalization form C; invalid UTF-8 is kept. Sets *composed to NULL for
 * ASCII text, which is already in that form; otherwise the caller frees it. Returns false if memory
 * is exhausted or the engine was built without utf8proc. */
bool split_compose(const char *text, size_t length, char **composed, size_t *composed_length);

#endif
