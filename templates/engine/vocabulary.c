/* Vocabularies store bytes as printable characters (GPT-2's table), or spaces as U+2581
 * (SentencePiece, Gemma 4). They are decoded here, so that all other code uses plain bytes.
 *
 * Texts and pairs are found by binary search in sorted lists. */
#include "vocabulary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char SPACE[] = "\xE2\x96\x81";

static bool fail(gguf_error *error, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;

static bool fail(gguf_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_special(int kind)
{
    return kind == CONTROL || kind == UNKNOWN || kind == USER_DEFINED;
}

/* Lookup of texts and pairs. */

static int compare_texts(gguf_string a, gguf_string b)
{
    size_t least = a.length < b.length ? a.length : b.length;
    int order = least ? memcmp(a.bytes, b.bytes, least) : 0;
    return order ? order : a.length < b.length ? -1 : a.length > b.length;
}

/* Returns the first eight bytes of a text as a number, so that most texts compare as numbers. */
static uint64_t start_of(gguf_string text)
{
    uint64_t start = 0;
    for (size_t i = 0; i < 8; i++)
        start = start << 8 | (i < text.length ? (uint8_t)text.bytes[i] : 0);
    return start;
}

typedef struct named_token {
    gguf_string text;
    uint32_t token;
} named_token;

static int by_text(const void *left, const void *right)
{
    const named_token *a = left, *b = right;
    int order = compare_texts(a->text, b->text);
    return order ? order : a->token < b->token ? -1 : a->token > b->token;
}

/* Indexes all tokens that are special, or all that text is made of. In byte-level BPE, names of
 * control tokens cannot result from merges. */
static bool index_tokens(const tokenizer *t, bool special, token_index *index)
{
    named_token *list = malloc(((size_t)t->count + 1) * sizeof *list);
    index->tokens = malloc(((size_t)t->count + 1) * sizeof *index->tokens);
    index->starts = malloc(((size_t)t->count + 1) * sizeof *index->starts);
    if (!list || !index->tokens || !index->starts) {
        free(list);
        return false;
    }
    for (uint32_t i = 0; i < t->count; i++)
        if (special ? is_special(t->tokens[i].kind) && t->tokens[i].text.length
                    : !t->is_byte_level || !is_special(t->tokens[i].kind))
            list[index->count++] = (named_token){ t->tokens[i].text, i };
    qsort(list, index->count, sizeof *list, by_text);
    for (size_t i = 0; i < index->count; i++) {
        index->tokens[i] = list[i].token;
        index->starts[i] = start_of(list[i].text);
    }
    free(list);
    return true;
}

uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length)
{
    const token_index *words = &t->words;
    gguf_string text = { bytes, length };
    uint64_t start = start_of(text);
    size_t low = 0, high = words->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool is_before = words->starts[middle] < start;
        if (words->starts[middle] == start)
            is_before = compare_texts(t->tokens[words->tokens[middle]].text, text) < 0;
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < words->count && words->starts[low] == start &&
                 compare_texts(t->tokens[words->tokens[low]].text, text) == 0;
    return found ? words->tokens[low] : NO_TOKEN;
}

/* Returns the first index from low to high whose text has a byte >= byte at a position. All these
 * texts are equal before it; texts that end there come first. */
static size_t find_byte(const tokenizer *t, size_t low, size_t high, size_t position, int byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        gguf_string text = t->tokens[t->specials.tokens[middle]].text;
        if (position >= text.length || (uint8_t)text.bytes[position] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t vocabulary_find_special(const tokenizer *t, const char *text, size_t length, bool control)
{
    size_t low = 0, high = t->specials.count;
    uint32_t longest = NO_TOKEN;
    for (size_t i = 0; i < length && low < high; i++) {
        low = find_byte(t, low, high, i, (uint8_t)text[i]);
        high = find_byte(t, low, high, i, (uint8_t)text[i] + 1);
        for (size_t at = low; at < high; at++) { /* several tokens may have the same text */
            const token_info *token = &t->tokens[t->specials.tokens[at]];
            if (token->text.length != i + 1)
                break;
            if (token->kind != USER_DEFINED && !control)
                continue;
            longest = t->specials.tokens[at];
            break;
        }
    }
    return longest;
}

static int by_pair(const void *left, const void *right)
{
    const merge *a = left, *b = right;
    if (a->left != b->left)
        return a->left < b->left ? -1 : 1;
    if (a->right != b->right)
        return a->right < b->right ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

const merge *vocabulary_find_merge(const tokenizer *t, uint32_t left, uint32_t right)
{
    const merge wanted = { .left = left, .right = right };
    size_t low = 0, high = t->merge_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_pair(&t->merges[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < t->merge_count && t->merges[low].left == left && t->merges[low].right == right;
    return found ? &t->merges[low] : NULL;
}

/* The vocabulary. */

/* Makes GPT-2's table of the byte for each character: printable characters for themselves, the
 * others from 256 on. */
static void make_byte_table(int bytes_of[2 * BYTE_COUNT])
{
    int next = BYTE_COUNT;
    for (int i = 0; i < 2 * BYTE_COUNT; i++)
        bytes_of[i] = -1;
    for (int byte = 0; byte < BYTE_COUNT; byte++) {
        bool stands_for_itself = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                                 (byte >= 0xAE && byte <= 0xFF);
        bytes_of[stands_for_itself ? byte : next++] = byte;
    }
}

/* Decodes GPT-2's characters to bytes and copies all others. Returns the number of bytes. */
static size_t decode_bytes(const int bytes_of[2 * BYTE_COUNT], gguf_string text, char *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++) {
        uint8_t first = (uint8_t)text.bytes[i];
        bool is_pair = first >= 0xC2 && first <= 0xC7 && i + 1 < text.length;
        int code = is_pair ? (first & 31) << 6 | ((uint8_t)text.bytes[i + 1] & 63) : first;
        int byte = is_pair || first < 0x80 ? bytes_of[code] : -1;
        bytes[count++] = byte >= 0 ? (char)byte : text.bytes[i];
        i += byte >= 0 && is_pair;
    }
    return count;
}

/* Decodes a SentencePiece piece: U+2581 becomes a space. Returns the number of bytes. */
static size_t decode_spaces(gguf_string text, char *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++) {
        bool is_space =
            text.length - i >= SPACE_BYTES && memcmp(text.bytes + i, SPACE, SPACE_BYTES) == 0;
        bytes[count++] = is_space ? ' ' : text.bytes[i];
        i += is_space ? SPACE_BYTES - 1 : 0;
    }
    return count;
}

/* Returns the byte of "<0x0A>", or -1. */
static int byte_of_name(gguf_string text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    const char *high = memchr(digits, text.bytes[3], 16), *low = memchr(digits, text.bytes[4], 16);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

/* Decodes the file's texts to texts and pieces. No piece is longer than its text. */
static void decode_tokens(tokenizer *t)
{
    char *end = t->bytes;
    int bytes_of[2 * BYTE_COUNT];
    make_byte_table(bytes_of);
    for (uint32_t i = 0; i < t->count; i++) {
        token_info *token = &t->tokens[i];
        int byte = byte_of_name(token->text);
        token->piece.bytes = end;
        if (token->kind == NORMAL && !t->is_byte_level && byte >= 0)
            token->kind = BYTE; /* some files list bytes as text */
        if (token->kind == USER_DEFINED) {
            token->piece = token->text;
        } else if (token->kind == BYTE && byte >= 0) {
            *end = (char)byte;
            token->piece.length = 1;
        } else if (!is_special(token->kind)) {
            token->piece.length = t->is_byte_level ? decode_bytes(bytes_of, token->text, end)
                                                   : decode_spaces(token->text, end);
            token->text = t->is_byte_level ? token->piece : token->text;
        }
        end += token->piece.bytes == end ? token->piece.length : 0;
    }
}

static bool read_tokens(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    const gguf_key *texts = gguf_find_key(file, "tokenizer.ggml.tokens");
    const gguf_key *scores = gguf_find_key(file, "tokenizer.ggml.scores");
    const gguf_key *kinds = gguf_find_key(file, "tokenizer.ggml.token_type");
    size_t bytes = 1;
    if (!texts || !texts->is_array || texts->type != GGUF_STRING || !texts->count)
        return fail(error, "the file has no tokenizer.ggml.tokens");
    if (texts->count >= NO_TOKEN)
        return fail(error, "tokenizer.ggml.tokens has %" PRIu64 " tokens", texts->count);
    t->count = (uint32_t)texts->count;
    t->tokens = calloc(t->count, sizeof *t->tokens);
    gguf_string *names = malloc(t->count * sizeof *names);
    if (!t->tokens || !names) {
        free(names);
        return fail(error, "out of memory");
    }
    gguf_get_strings(texts, names);
    bool good = true;
    for (uint32_t i = 0; good && i < t->count; i++) {
        int64_t kind = NORMAL;
        t->tokens[i].text = names[i];
        bytes += names[i].length;
        if (scores && !gguf_get_f64(scores, i, &t->tokens[i].score))
            good = fail(error, "tokenizer.ggml.scores has no number for token %" PRIu32, i);
        if (kinds && !gguf_get_i64(kinds, i, &kind))
            good = fail(error, "tokenizer.ggml.token_type has no number for token %" PRIu32, i);
        t->tokens[i].kind = (int)kind;
    }
    free(names);
    t->bytes = malloc(bytes);
    if (good && !t->bytes)
        return fail(error, "out of memory");
    return good;
}

/* Finds the token of each byte; of several the first. */
static void find_bytes(tokenizer *t)
{
    for (size_t i = 0; i < BYTE_COUNT; i++)
        t->byte_tokens[i] = NO_TOKEN;
    for (uint32_t i = t->count; i-- > 0;) {
        const token_info *token = &t->tokens[i];
        if (token->piece.length == 1 &&
            (t->is_byte_level ? !is_special(token->kind) : token->kind == BYTE))
            t->byte_tokens[(uint8_t)*token->piece.bytes] = i;
    }
}

/* Decodes one side of a merge. Returns the number of bytes. */
static size_t decode_side(const tokenizer *t, const int bytes_of[2 * BYTE_COUNT], gguf_string text,
                          char *bytes)
{
    if (t->is_byte_level)
        return decode_bytes(bytes_of, text, bytes);
    if (text.length)
        memcpy(bytes, text.bytes, text.length);
    return text.length;
}

/* Adds a merge, "left right" in the file. Skips it if a side or the result is not a token. */
static void add_merge(tokenizer *t, const int bytes_of[2 * BYTE_COUNT], gguf_string text,
                      uint32_t rank, char *bytes)
{
    const char *space = text.length ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
    if (!space)
        return;
    size_t before = (size_t)(space - text.bytes);
    gguf_string left_name = { text.bytes, before };
    gguf_string right_name = { space + 1, text.length - before - 1 };
    size_t left_length = decode_side(t, bytes_of, left_name, bytes);
    size_t length = left_length + decode_side(t, bytes_of, right_name, bytes + left_length);
    uint32_t left = vocabulary_find(t, bytes, left_length);
    uint32_t right = vocabulary_find(t, bytes + left_length, length - left_length);
    uint32_t token = vocabulary_find(t, bytes, length);
    if (left != NO_TOKEN && right != NO_TOKEN && token != NO_TOKEN)
        t->merges[t->merge_count++] = (merge){ left, right, token, rank };
}

static bool read_merges(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    int bytes_of[2 * BYTE_COUNT];
    const gguf_key *key = gguf_find_key(file, "tokenizer.ggml.merges");
    if (!key || !key->is_array || key->type != GGUF_STRING || key->count >= NO_TOKEN)
        return fail(error, "the file has no tokenizer.ggml.merges");
    size_t longest = 1;
    t->merges = malloc(((size_t)key->count + 1) * sizeof *t->merges);
    gguf_string *texts = malloc(((size_t)key->count + 1) * sizeof *texts);
    if (texts)
        gguf_get_strings(key, texts);
    for (uint32_t i = 0; texts && i < key->count; i++)
        longest = texts[i].length > longest ? texts[i].length : longest;
    char *bytes = malloc(longest);
    bool good = t->merges && texts && bytes;
    make_byte_table(bytes_of);
    for (uint32_t i = 0; good && i < key->count; i++)
        add_merge(t, bytes_of, texts[i], i, bytes);
    if (good)
        qsort(t->merges, t->merge_count, sizeof *t->merges, by_pair);
    free(texts);
    free(bytes);
    return good || fail(error, "out of memory");
}

/* Reads the kind of tokenizer. Gemma 4's files have no tokenizer.ggml.pre. */
static bool read_model(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    static const gguf_string gemma_4 = { "gemma4", 6 };
    gguf_string model, pre = { "default", 7 };
    if (!gguf_get_string(gguf_find_key(file, "tokenizer.ggml.model"), &model))
        return fail(error, "the file has no tokenizer.ggml.model");
    bool is_sentencepiece = gguf_string_is(model, "llama");
    bool is_gemma_4 = gguf_string_is(model, gemma_4.bytes);
    if (!is_sentencepiece && !is_gemma_4 && !gguf_string_is(model, "gpt2"))
        return fail(error, "tokenizer.ggml.model is \"%.*s\"; supported are: llama gpt2 gemma4",
                    (int)(model.length < 64 ? model.length : 64), model.bytes);
    t->has_ranks = !is_sentencepiece;
    t->adds_space = t->adds_bos = is_sentencepiece;
    if (is_sentencepiece)
        return true;
    gguf_get_string(gguf_find_key(file, "tokenizer.ggml.pre"), &pre);
    if (!splitter_open(is_gemma_4 ? gemma_4 : pre, &t->split, error))
        return false;
    t->is_byte_level = !(t->split.flags & CODE_POINTS);
    t->adds_bos = t->split.flags & ADDS_BOS;
    t->composes = t->split.flags & COMPOSES;
    return true;
}

/* Reads the keys that override a model's defaults. Gemma 4 was trained with a BOS token and without
 * an additional space, also if a file claims otherwise. */
static void read_flags(tokenizer *t, const gguf_file *file)
{
    if (t->has_ranks && !t->is_byte_level)
        return;
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_bos_token"), 0, &t->adds_bos);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_space_prefix"), 0, &t->adds_space);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.remove_extra_whitespaces"), 0,
                  &t->joins_spaces);
}

bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    if (!read_model(t, file, error) || !read_tokens(t, file, error))
        return false;
    special_mend(t, file);
    decode_tokens(t);
    find_bytes(t);
    if (!index_tokens(t, false, &t->words) || !index_tokens(t, true, &t->specials))
        return fail(error, "out of memory");
    if (t->has_ranks && !read_merges(t, file, error))
        return false;
    read_flags(t, file);
    if (t->adds_bos && t->bos == NO_TOKEN)
        return fail(error,
                    "texts start with a BOS token, but tokenizer.ggml.bos_token_id is missing");
    special_find(t, file);
    return true;
}

void vocabulary_free(tokenizer *t)
{
    splitter_close(&t->split);
    free(t->tokens);
    free(t->bytes);
    free(t->words.tokens);
    free(t->words.starts);
    free(t->specials.tokens);
    free(t->specials.starts);
    free(t->merges);
}
