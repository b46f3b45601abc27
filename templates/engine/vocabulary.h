/* What a tokenizer knows: the tokens of a GGUF file and how pairs of them merge. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "split.h"
#include "tokenizer.h"

#define NO_TOKEN UINT32_MAX

enum { BYTE_COUNT = 256, MAX_ENDS = 32, SPACE_BYTES = 3 };

extern const char SPACE[]; /* U+2581, which SentencePiece writes for a space */

/* tokenizer.ggml.token_type */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

typedef struct token_info {
    gguf_string text;  /* as pairs are compared; of control tokens, their name */
    gguf_string piece; /* as it is shown */
    double score;
    int kind;
    bool strips_left, strips_right; /* of a special token: white space beside it in the text */
} token_info;

typedef struct merge {
    uint32_t left, right, token, rank;
} merge;

/* Tokens, by the bytes of their text and then by number. */
typedef struct token_index {
    uint32_t *tokens;
    size_t count;
} token_index;

struct tokenizer {
    bool is_bpe, adds_bos, adds_space, composes, joins_spaces;
    uint32_t count;
    token_info *tokens;
    char *bytes;          /* that pieces point to */
    token_index words;    /* that text is made of */
    token_index specials; /* that are found in text before anything else */
    merge *merges;        /* by left, right and rank */
    size_t merge_count;
    uint32_t byte_tokens[BYTE_COUNT];
    uint32_t bos, unknown;
    uint32_t ends[MAX_ENDS];
    size_t end_count;
    splitter split;
};

/* Reads the vocabulary of a file. Returns false, with a message, if it is broken or missing. To be
 * freed also then. */
bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error);
void vocabulary_free(tokenizer *t);

/* Returns the token of a text, or NO_TOKEN. */
uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length);

/* Returns the longest special token that a text starts with, or NO_TOKEN. Without control, only
 * user-defined ones count. */
uint32_t vocabulary_find_special(const tokenizer *t, const char *text, size_t length, bool control);

/* Returns the merge of two tokens of byte-level BPE, or NULL. */
const merge *vocabulary_find_merge(const tokenizer *t, uint32_t left, uint32_t right);

#endif
