/* The vocabulary of a GGUF file: its tokens and merges. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "split.h"
#include "tokenizer.h"

#define NO_TOKEN UINT32_MAX

enum { BYTE_COUNT = 256, MAX_ENDS = 32, SPACE_BYTES = 3 };

extern const char SPACE[]; /* U+2581, SentencePiece's space */

/* tokenizer.ggml.token_type */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

typedef struct token_info {
    gguf_string text;  /* text for look-ups; a control token's name */
    gguf_string piece; /* text for output */
    double score;
    int kind;
    bool strips_left, strips_right; /* special tokens: drop adjacent white space */
    bool is_suppressed;             /* never sampled */
} token_info;

typedef struct merge {
    uint32_t left, right, token, rank;
} merge;

/* Tokens sorted by text, then by number. */
typedef struct token_index {
    uint32_t *tokens;
    uint64_t *starts; /* the first bytes of their texts */
    size_t count;
} token_index;

struct tokenizer {
    bool has_ranks;     /* the list of merges ranks pairs; otherwise scores do */
    bool is_byte_level; /* tokens are merged from bytes, not from characters */
    bool adds_bos, adds_space, composes, joins_spaces;
    uint32_t count;
    token_info *tokens;
    char *bytes;          /* storage of the pieces */
    token_index words;    /* tokens that text is made of */
    token_index specials; /* tokens searched in text first */
    merge *merges;        /* sorted by left, right and rank */
    size_t merge_count;
    uint32_t byte_tokens[BYTE_COUNT];
    uint32_t bos, unknown;
    uint32_t ends[MAX_ENDS];
    size_t end_count;
    splitter split;
};

/* Reads the vocabulary of a file. Returns false with a message if it is missing or invalid. Call
 * vocabulary_free in both cases. */
bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error);
void vocabulary_free(tokenizer *t);

/* Returns the token of a text, or NO_TOKEN. */
uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length);

/* Returns the longest special token at the start of a text, or NO_TOKEN. If control is false, only
 * user-defined tokens count. */
uint32_t vocabulary_find_special(const tokenizer *t, const char *text, size_t length, bool control);

/* Returns the merge of two tokens, or NULL. */
const merge *vocabulary_find_merge(const tokenizer *t, uint32_t left, uint32_t right);

/* Finds the tokens of BOS and unknown text, and corrects the types of tokens: some files have none,
 * or list control tokens as text. Call it before tokens are decoded. */
void special_mend(tokenizer *t, const gguf_file *file);

/* Finds the tokens that end an answer, and those that drop adjacent white space. Call it after
 * tokens are indexed. */
void special_find(tokenizer *t, const gguf_file *file);

#endif
