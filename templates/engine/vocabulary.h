/* What a tokenizer knows: the tokens of a GGUF file and how pairs of them merge. */
#ifndef VOCABULARY_H
#define VOCABULARY_H

#include "split.h"
#include "tokenizer.h"

#define NO_TOKEN UINT32_MAX

enum { BYTE_COUNT = 256, MAX_ENDS = 24, SPACE_BYTES = 3 };

extern const char SPACE[]; /* U+2581, which SentencePiece writes for a space */

/* tokenizer.ggml.token_type */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

typedef struct token_info {
    gguf_string text;  /* as pairs are compared; of control tokens, their name */
    gguf_string piece; /* as it is shown */
    double score;
    int kind;
} token_info;

typedef struct merge {
    uint32_t left, right, token; /* NO_TOKEN: an empty slot */
    uint32_t rank;
} merge;

struct tokenizer {
    bool is_bpe, adds_bos, adds_space;
    uint32_t count;
    token_info *tokens;
    char *bytes;        /* that pieces point to */
    uint32_t *words;    /* tokens by the hash of their text; half of the slots are empty */
    size_t word_mask;   /* slots - 1 */
    merge *merges;      /* by the hash of the pair */
    size_t merge_mask;  /* slots - 1 */
    uint32_t *specials; /* by first byte, then longer ones first */
    size_t first[BYTE_COUNT + 1]; /* where those of a first byte start */
    uint32_t byte_tokens[BYTE_COUNT];
    uint32_t bos, unknown;
    uint32_t ends[MAX_ENDS];
    size_t end_count;
    splitter split;
};

/* False, with a message, where the file's vocabulary is no good. To be freed also then. */
bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error);
void vocabulary_free(tokenizer *t);

/* The token of a text; NO_TOKEN where there is none. */
uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length);

/* What two tokens of byte-level BPE merge to: its token is NO_TOKEN where they do not. */
const merge *vocabulary_find_merge(const tokenizer *t, uint32_t left, uint32_t right);

#endif
