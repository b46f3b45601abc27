/* A vocabulary writes bytes as printable characters (GPT-2's table), or spaces as U+2581
 * (SentencePiece). Both are turned back here, so that all else works on plain bytes.
 *
 * Texts and pairs are found in hash tables with open addressing, at most half full.
 */
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

static uint64_t hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 32;
}

/* The slot of a text, or the empty one where it belongs. */
static uint32_t *find_slot(const tokenizer *t, const char *bytes, size_t length)
{
    for (size_t at = (size_t)hash_bytes(bytes, length);; at++) {
        uint32_t *slot = &t->words[at & t->word_mask];
        if (*slot == NO_TOKEN)
            return slot;
        gguf_string text = t->tokens[*slot].text;
        if (text.length == length && memcmp(text.bytes, bytes, length) == 0)
            return slot;
    }
}

static merge *find_merge(const tokenizer *t, uint32_t left, uint32_t right)
{
    uint64_t hash = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t at = (size_t)(hash >> 32);; at++) {
        merge *slot = &t->merges[at & t->merge_mask];
        if (slot->token == NO_TOKEN || (slot->left == left && slot->right == right))
            return slot;
    }
}

uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length)
{
    return *find_slot(t, bytes, length);
}

const merge *vocabulary_find_merge(const tokenizer *t, uint32_t left, uint32_t right)
{
    return find_merge(t, left, right);
}

/* A power of 2 of slots, more than half of them empty. */
static size_t slots_for(size_t count)
{
    size_t slots = 16;
    while (slots < 2 * (count + 1))
        slots *= 2;
    return slots;
}

/* The vocabulary. */

/* GPT-2's table: the character that stands for each byte. Printable ones stand for themselves, the
 * others are numbered from 256 on. */
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

/* Writes the bytes that such characters stand for, and any other as it is. Returns how many. */
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

/* SentencePiece's pieces: spaces for U+2581, and byte tokens, "<0x0A>". */
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

static int byte_of_name(gguf_string text)
{
    unsigned byte;
    char name[7] = "";
    if (text.length != 6)
        return -1;
    memcpy(name, text.bytes, 6);
    return sscanf(name, "<0x%2X>", &byte) == 1 ? (int)byte : -1;
}

/* Texts as they stand in the file become texts and pieces; no piece is longer than its text. */
static void decode_tokens(tokenizer *t)
{
    char *end = t->bytes;
    int bytes_of[2 * BYTE_COUNT];
    make_byte_table(bytes_of);
    for (uint32_t i = 0; i < t->count; i++) {
        token_info *token = &t->tokens[i];
        token->piece.bytes = end;
        if (token->kind == USER_DEFINED) {
            token->piece = token->text;
        } else if (token->kind == BYTE && byte_of_name(token->text) >= 0) {
            *end = (char)byte_of_name(token->text);
            token->piece.length = 1;
        } else if (!is_special(token->kind)) {
            token->piece.length = t->is_bpe ? decode_bytes(bytes_of, token->text, end)
                                            : decode_spaces(token->text, end);
            token->text = t->is_bpe ? token->piece : token->text;
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
        if (!t->is_bpe && !gguf_get_f64(scores, i, &t->tokens[i].score))
            good = fail(error, "tokenizer.ggml.scores has no number for token %" PRIu32, i);
        if (kinds && !gguf_get_i64(kinds, i, &kind))
            good = fail(error, "tokenizer.ggml.token_type has no number for token %" PRIu32, i);
        t->tokens[i].kind = (int)kind;
    }
    free(names);
    t->bytes = malloc(bytes);
    if (good && !t->bytes)
        return fail(error, "out of memory");
    if (good)
        decode_tokens(t);
    return good;
}

/* Of two tokens with one text the first counts. Names of control tokens are no text that bytes may
 * be merged to, but SentencePiece's pairs never reach one. */
static bool index_words(tokenizer *t, gguf_error *error)
{
    size_t slots = slots_for(t->count);
    t->words = malloc(slots * sizeof *t->words);
    t->word_mask = slots - 1;
    if (!t->words)
        return fail(error, "out of memory");
    for (size_t i = 0; i < slots; i++)
        t->words[i] = NO_TOKEN;
    for (size_t i = 0; i < BYTE_COUNT; i++)
        t->byte_tokens[i] = NO_TOKEN;
    for (uint32_t i = 0; i < t->count; i++) {
        const token_info *token = &t->tokens[i];
        bool is_byte = t->is_bpe ? !is_special(token->kind) && token->piece.length == 1
                                 : token->kind == BYTE && token->piece.length == 1;
        if (is_byte && t->byte_tokens[(uint8_t)*token->piece.bytes] == NO_TOKEN)
            t->byte_tokens[(uint8_t)*token->piece.bytes] = i;
        if (t->is_bpe && is_special(token->kind))
            continue;
        uint32_t *slot = find_slot(t, token->text.bytes, token->text.length);
        if (*slot == NO_TOKEN)
            *slot = i;
    }
    return true;
}

/* "left right" in the file. A pair that is no pair of tokens, or makes none, can never be merged.
 */
static void add_merge(tokenizer *t, const int bytes_of[2 * BYTE_COUNT], gguf_string text,
                      uint32_t rank, char *bytes)
{
    const char *space = text.length ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
    if (!space)
        return;
    size_t before = (size_t)(space - text.bytes);
    gguf_string left_name = { text.bytes, before };
    gguf_string right_name = { space + 1, text.length - before - 1 };
    size_t left_length = decode_bytes(bytes_of, left_name, bytes);
    size_t length = left_length + decode_bytes(bytes_of, right_name, bytes + left_length);
    uint32_t left = *find_slot(t, bytes, left_length);
    uint32_t right = *find_slot(t, bytes + left_length, length - left_length);
    uint32_t token = *find_slot(t, bytes, length);
    if (left == NO_TOKEN || right == NO_TOKEN || token == NO_TOKEN)
        return;
    merge *slot = find_merge(t, left, right);
    if (slot->token == NO_TOKEN)
        *slot = (merge){ left, right, token, rank };
}

static bool read_merges(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    int bytes_of[2 * BYTE_COUNT];
    const gguf_key *key = gguf_find_key(file, "tokenizer.ggml.merges");
    if (!key || !key->is_array || key->type != GGUF_STRING || key->count >= NO_TOKEN)
        return fail(error, "the file has no tokenizer.ggml.merges");
    size_t slots = slots_for((size_t)key->count), longest = 1;
    t->merges = malloc(slots * sizeof *t->merges);
    t->merge_mask = slots - 1;
    gguf_string *texts = malloc(((size_t)key->count + 1) * sizeof *texts);
    if (texts)
        gguf_get_strings(key, texts);
    for (uint32_t i = 0; texts && i < key->count; i++)
        longest = texts[i].length > longest ? texts[i].length : longest;
    char *bytes = malloc(longest);
    bool good = t->merges && texts && bytes;
    make_byte_table(bytes_of);
    for (size_t i = 0; good && i < slots; i++)
        t->merges[i].token = NO_TOKEN;
    for (uint32_t i = 0; good && i < key->count; i++)
        add_merge(t, bytes_of, texts[i], i, bytes);
    free(texts);
    free(bytes);
    return good || fail(error, "out of memory");
}

/* Special tokens, by first byte, then longer ones first. */

typedef struct special {
    gguf_string name;
    uint32_t token;
} special;

static int by_first_byte_and_length(const void *left, const void *right)
{
    const special *a = left, *b = right;
    uint8_t first_a = (uint8_t)*a->name.bytes, first_b = (uint8_t)*b->name.bytes;
    if (first_a != first_b)
        return first_a < first_b ? -1 : 1;
    if (a->name.length != b->name.length)
        return a->name.length > b->name.length ? -1 : 1;
    return a->token < b->token ? -1 : a->token > b->token;
}

static bool index_specials(tokenizer *t, gguf_error *error)
{
    size_t count = 0;
    special *list = malloc(((size_t)t->count + 1) * sizeof *list);
    for (uint32_t i = 0; list && i < t->count; i++)
        if (is_special(t->tokens[i].kind) && t->tokens[i].text.length)
            list[count++] = (special){ t->tokens[i].text, i };
    t->specials = malloc((count + 1) * sizeof *t->specials);
    bool good = list && t->specials;
    if (good)
        qsort(list, count, sizeof *list, by_first_byte_and_length);
    for (size_t i = 0; good && i < count; i++) {
        t->specials[i] = list[i].token;
        t->first[(uint8_t)*list[i].name.bytes + 1]++;
    }
    for (size_t i = 0; i < BYTE_COUNT; i++)
        t->first[i + 1] += t->first[i];
    free(list);
    return good || fail(error, "out of memory");
}

static void add_end(tokenizer *t, uint32_t token)
{
    if (token < t->count && t->end_count < MAX_ENDS)
        t->ends[t->end_count++] = token;
}

static uint32_t find_name(const tokenizer *t, const char *name)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (gguf_string_is(t->tokens[i].text, name))
            return i;
    return NO_TOKEN;
}

/* Files say which token ends a text, but not always which ends a turn. */
static void find_ends(tokenizer *t, const gguf_file *file)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    static const char *const names[] = {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "<end_of_utterance>",
        "<\357\275\234end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint64_t token;
        if (gguf_get_u64(gguf_find_key(file, keys[i]), 0, &token) && token < t->count)
            add_end(t, (uint32_t)token);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_end(t, find_name(t, names[i]));
    if (find_name(t, "<|return|>") == NO_TOKEN) /* gpt-oss goes on after the end of a message */
        add_end(t, find_name(t, "<|end|>"));
}

static uint32_t token_of(const tokenizer *t, const gguf_file *file, const char *name,
                         uint32_t otherwise)
{
    uint64_t token = otherwise;
    gguf_get_u64(gguf_find_key(file, name), 0, &token);
    return token < t->count ? (uint32_t)token : NO_TOKEN;
}

static bool read_model(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    gguf_string model, pre = { "default", 7 };
    if (!gguf_get_string(gguf_find_key(file, "tokenizer.ggml.model"), &model))
        return fail(error, "the file has no tokenizer.ggml.model");
    t->is_bpe = gguf_string_is(model, "gpt2");
    t->adds_space = t->adds_bos = !t->is_bpe;
    if (!t->is_bpe && !gguf_string_is(model, "llama"))
        return fail(error, "tokenizer.ggml.model is \"%.*s\"; those known are: llama gpt2",
                    (int)(model.length < 64 ? model.length : 64), model.bytes);
    if (!t->is_bpe)
        return true;
    gguf_get_string(gguf_find_key(file, "tokenizer.ggml.pre"), &pre);
    if (!splitter_open(pre, &t->split, error))
        return false;
    t->adds_bos = t->split.adds_bos;
    return true;
}

bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    if (!read_model(t, file, error) || !read_tokens(t, file, error) || !index_words(t, error) ||
        !index_specials(t, error) || (t->is_bpe && !read_merges(t, file, error)))
        return false;
    t->bos = token_of(t, file, "tokenizer.ggml.bos_token_id", t->is_bpe ? NO_TOKEN : 1);
    t->unknown = token_of(t, file, "tokenizer.ggml.unknown_token_id", t->is_bpe ? NO_TOKEN : 0);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_bos_token"), 0, &t->adds_bos);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_space_prefix"), 0, &t->adds_space);
    if (t->adds_bos && t->bos == NO_TOKEN)
        return fail(error, "texts start with a BOS token, but tokenizer.ggml.bos_token_id is none");
    find_ends(t, file);
    return true;
}

void vocabulary_free(tokenizer *t)
{
    splitter_close(&t->split);
    free(t->tokens);
    free(t->bytes);
    free(t->words);
    free(t->merges);
    free(t->specials);
}
