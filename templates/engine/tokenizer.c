/* All kinds of BPE merge pairs of adjacent symbols, the best pair first, until no pair forms a
 * token.
 *
 *   kind            merges within       symbols      best pair
 *   SentencePiece   the whole text      characters   forms the token with the highest score
 *   Gemma 4         a line              characters   comes first in the list of merges
 *   byte-level      a word (split.h)    bytes        comes first in the list of merges
 *
 * If symbols are characters, U+2581 stands for a space, and a character without a token becomes
 * byte tokens.
 *
 * Pairs are in a heap. A pair whose symbols have changed is skipped when it is popped. */
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocabulary.h"

#define NO_SYMBOL SIZE_MAX

/* A part of the text. length 0: merged into its left neighbour. */
typedef struct symbol {
    const char *text;
    size_t length;
    size_t previous, next;
    uint32_t token;
} symbol;

typedef struct pair {
    double cost;
    size_t left, right;
    size_t length; /* length of both symbols when the pair was found */
    uint32_t token;
} pair;

/* State of a call of tokenizer_encode. */
typedef struct encoder {
    const tokenizer *t;
    token_list *tokens;
    symbol *symbols;
    size_t symbol_count, symbol_capacity;
    pair *heap; /* binary heap, best pair first */
    size_t heap_count, heap_capacity;
    bool was_unknown; /* the last symbol was an unknown token */
} encoder;

/* Makes room for another item. */
static bool grow(void **items, size_t count, size_t *capacity, size_t bytes)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? 2 * *capacity : 64;
    void *moved = realloc(*items, larger * bytes);
    if (!moved)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

static bool put_token(token_list *tokens, uint32_t token)
{
    void *items = tokens->items;
    bool good = grow(&items, tokens->count, &tokens->capacity, sizeof *tokens->items);
    tokens->items = items;
    if (good)
        tokens->items[tokens->count++] = token;
    return good;
}

static bool is_better(const pair *a, const pair *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static bool put_pair(encoder *e, pair new)
{
    void *heap = e->heap;
    bool good = grow(&heap, e->heap_count, &e->heap_capacity, sizeof *e->heap);
    e->heap = heap;
    if (!good)
        return false;
    size_t at = e->heap_count++;
    for (; at && is_better(&new, &e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = new;
    return true;
}

static pair take_pair(encoder *e)
{
    pair best = e->heap[0], last = e->heap[--e->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->heap_count; at = child) {
        if (child + 1 < e->heap_count && is_better(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!is_better(&e->heap[child], &last))
            break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = last;
    return best;
}

/* Pushes a pair of neighbours on the heap if they form a token. */
static bool offer_pair(encoder *e, size_t left, size_t right)
{
    if (left == NO_SYMBOL || right == NO_SYMBOL)
        return true;
    const symbol *a = &e->symbols[left], *b = &e->symbols[right];
    pair new = { .left = left, .right = right, .length = a->length + b->length };
    if (e->t->has_ranks) {
        const merge *found = vocabulary_find_merge(e->t, a->token, b->token);
        new.token = found ? found->token : NO_TOKEN;
        new.cost = found ? found->rank : 0;
    } else {
        new.token = vocabulary_find(e->t, a->text, new.length);
        new.cost = new.token == NO_TOKEN ? 0 : -e->t->tokens[new.token].score;
    }
    return new.token == NO_TOKEN || put_pair(e, new);
}

static bool merge_pair(encoder *e, const pair *best)
{
    symbol *left = &e->symbols[best->left], *right = &e->symbols[best->right];
    if (!left->length || !right->length || left->length + right->length != best->length)
        return true;
    left->length = best->length;
    left->token = best->token;
    left->next = right->next;
    right->length = 0;
    if (left->next != NO_SYMBOL)
        e->symbols[left->next].previous = best->left;
    return offer_pair(e, left->previous, best->left) && offer_pair(e, best->left, left->next);
}

/* Appends the token of a symbol, or of its bytes. A run of characters without byte tokens is one
 * unknown token. */
static bool put_symbol(encoder *e, const symbol *s)
{
    bool unknown = false, good = true, was_unknown = e->was_unknown;
    e->was_unknown = false;
    if (s->token != NO_TOKEN)
        return put_token(e->tokens, s->token);
    for (size_t i = 0; i < s->length; i++)
        unknown |= e->t->byte_tokens[(uint8_t)s->text[i]] == NO_TOKEN;
    if (unknown && !e->t->is_byte_level) {
        e->was_unknown = true;
        return was_unknown || e->t->unknown == NO_TOKEN || put_token(e->tokens, e->t->unknown);
    }
    for (size_t i = 0; good && i < s->length; i++) {
        uint32_t byte = e->t->byte_tokens[(uint8_t)s->text[i]];
        uint32_t token = byte == NO_TOKEN ? e->t->unknown : byte;
        good = token == NO_TOKEN || put_token(e->tokens, token);
    }
    return good;
}

/* Returns the bytes of the character at the start of a text, by its first byte. */
static size_t character_bytes(const char *text, size_t length)
{
    static const uint8_t BYTES[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4 };
    size_t bytes = BYTES[(uint8_t)*text >> 4];
    return bytes < length ? bytes : length;
}

static bool make_symbols(encoder *e, const char *text, size_t length)
{
    e->symbol_count = 0;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        void *symbols = e->symbols;
        bool good = grow(&symbols, e->symbol_count, &e->symbol_capacity, sizeof *e->symbols);
        e->symbols = symbols;
        if (!good)
            return false;
        bytes = e->t->is_byte_level ? 1 : character_bytes(text + at, length - at);
        size_t index = e->symbol_count++;
        e->symbols[index] = (symbol){
            .text = text + at,
            .length = bytes,
            .previous = index ? index - 1 : NO_SYMBOL,
            .next = at + bytes < length ? index + 1 : NO_SYMBOL,
            .token = e->t->is_byte_level ? e->t->byte_tokens[(uint8_t)text[at]]
                                         : vocabulary_find(e->t, text + at, bytes),
        };
    }
    return true;
}

static bool encode_symbols(encoder *e, const char *text, size_t length)
{
    bool good = make_symbols(e, text, length);
    e->heap_count = 0;
    for (size_t i = 1; good && i < e->symbol_count; i++)
        good = offer_pair(e, i - 1, i);
    while (good && e->heap_count) {
        pair best = take_pair(e);
        good = merge_pair(e, &best);
    }
    for (size_t i = 0; good && i < e->symbol_count; i++)
        if (e->symbols[i].length)
            good = put_symbol(e, &e->symbols[i]);
    return good;
}

/* Encodes text in characters, with U+2581 for each space. */
static bool encode_characters(encoder *e, const char *text, size_t length)
{
    char *escaped = malloc(length * SPACE_BYTES + 1);
    size_t count = 0;
    if (!escaped)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') {
            memcpy(escaped + count, SPACE, SPACE_BYTES);
            count += SPACE_BYTES;
        } else {
            escaped[count++] = text[i];
        }
    }
    bool good = encode_symbols(e, escaped, count);
    free(escaped);
    return good;
}

static bool encode_word(void *user, const char *word, size_t length)
{
    encoder *e = user;
    int flags = e->t->split.flags;
    bool keeps = flags & KEEPS_WORDS || (flags & KEEPS_LINE_ENDS && *word == '\n');
    uint32_t token = keeps ? vocabulary_find(e->t, word, length) : NO_TOKEN;
    if (token != NO_TOKEN)
        return put_token(e->tokens, token);
    return e->t->is_byte_level ? encode_symbols(e, word, length)
                               : encode_characters(e, word, length);
}

/* Copies text with the spaces that the model expects: an additional one at the start; or runs of
 * spaces joined and trimmed. bytes has room for length + 1. Returns the number of bytes. */
static size_t put_spaces(const tokenizer *t, const char *text, size_t length, bool first,
                         char *bytes)
{
    size_t count = 0;
    while (t->joins_spaces && length && text[length - 1] == ' ')
        length--;
    if (length && t->adds_space && (!t->has_ranks || (first && *text != ' ')))
        bytes[count++] = ' ';
    for (size_t i = 0; i < length; i++)
        if (!t->joins_spaces || text[i] != ' ' || (count && bytes[count - 1] != ' '))
            bytes[count++] = text[i];
    return count;
}

/* Encodes text without special tokens. first: it is the start of the text. */
static bool encode_plain(encoder *e, const char *text, size_t length, bool first)
{
    if (!length)
        return true;
    char *spaced = malloc(length + 1), *composed = NULL;
    if (!spaced)
        return false;
    length = put_spaces(e->t, text, length, first, spaced);
    bool good = !e->t->composes || split_compose(spaced, length, &composed, &length);
    e->was_unknown = false;
    text = composed ? composed : spaced;
    good = good && split_text(&e->t->split, text, length, encode_word, e);
    free(composed);
    free(spaced);
    return good;
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool tokenizer_encode(const tokenizer *t, const char *text, size_t length, int flags,
                      token_list *tokens)
{
    encoder e = { .t = t, .tokens = tokens };
    size_t start = 0, at = 0;
    bool wants_bos = flags & TOKENIZE_START && t->adds_bos;
    if (flags & TOKENIZE_SPECIAL && length &&
        vocabulary_find_special(t, text, length, true) == t->bos)
        wants_bos = false; /* the text has a BOS token */
    bool good = !wants_bos || put_token(tokens, t->bos);
    while (good && at < length) {
        uint32_t special =
            vocabulary_find_special(t, text + at, length - at, flags & TOKENIZE_SPECIAL);
        if (special == NO_TOKEN) {
            at++;
            continue;
        }
        const token_info *found = &t->tokens[special];
        size_t end = at;
        while (found->strips_left && end > start && is_white(text[end - 1]))
            end--;
        good =
            encode_plain(&e, text + start, end - start, start == 0) && put_token(tokens, special);
        at += found->text.length;
        while (found->strips_right && at < length && is_white(text[at]))
            at++;
        start = at;
    }
    good = good && encode_plain(&e, text + start, length - start, start == 0);
    free(e.symbols);
    free(e.heap);
    return good;
}

tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error)
{
    tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(error->message, sizeof error->message, "out of memory");
        return NULL;
    }
    if (vocabulary_read(t, file, error))
        return t;
    tokenizer_close(t);
    return NULL;
}

void tokenizer_close(tokenizer *t)
{
    if (!t)
        return;
    vocabulary_free(t);
    free(t);
}

uint32_t tokenizer_size(const tokenizer *t)
{
    return t->count;
}

gguf_string tokenizer_piece(const tokenizer *t, uint32_t token)
{
    return token < t->count ? t->tokens[token].piece : (gguf_string){ "", 0 };
}

size_t tokenizer_whole_bytes(const char *bytes, size_t count)
{
    for (size_t back = 1; back <= 3 && back <= count; back++) {
        const char *first = bytes + count - back;
        if ((uint8_t)*first >> 6 == 3) /* first byte of a character */
            return character_bytes(first, SIZE_MAX) > back ? count - back : count;
    }
    return count;
}

bool tokenizer_is_suppressed(const tokenizer *t, uint32_t token)
{
    return token < t->count && t->tokens[token].is_suppressed;
}

uint32_t tokenizer_likeliest(const tokenizer *t, const float *logits, size_t count)
{
    uint32_t likeliest = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (!tokenizer_is_suppressed(t, i) &&
            (likeliest == UINT32_MAX || logits[i] > logits[likeliest]))
            likeliest = i;
    return likeliest;
}

bool tokenizer_is_end(const tokenizer *t, uint32_t token)
{
    for (size_t i = 0; i < t->end_count; i++)
        if (t->ends[i] == token)
            return true;
    return false;
}
