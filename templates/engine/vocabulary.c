/* Vocabularies store bytes as printable characters (GPT-2's table), or spaces as U+2581
 * (SentencePiece). They are decoded here, so that all other code uses plain bytes.
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

/* Indexes all tokens that are special, or all that are not. In byte-level BPE, names of control
 * tokens cannot result from merges. */
static bool index_tokens(const tokenizer *t, bool special, token_index *index)
{
    named_token *list = malloc(((size_t)t->count + 1) * sizeof *list);
    index->tokens = malloc(((size_t)t->count + 1) * sizeof *index->tokens);
    if (!list || !index->tokens) {
        free(list);
        return false;
    }
    for (uint32_t i = 0; i < t->count; i++)
        if (special ? is_special(t->tokens[i].kind) && t->tokens[i].text.length
                    : !t->is_bpe || !is_special(t->tokens[i].kind))
            list[index->count++] = (named_token){ t->tokens[i].text, i };
    qsort(list, index->count, sizeof *list, by_text);
    for (size_t i = 0; i < index->count; i++)
        index->tokens[i] = list[i].token;
    free(list);
    return true;
}

uint32_t vocabulary_find(const tokenizer *t, const char *bytes, size_t length)
{
    const token_index *words = &t->words;
    size_t low = 0, high = words->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_texts(t->tokens[words->tokens[middle]].text, (gguf_string){ bytes, length }) <
            0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == words->count)
        return NO_TOKEN;
    gguf_string found = t->tokens[words->tokens[low]].text;
    bool same = found.length == length && memcmp(found.bytes, bytes, length) == 0;
    return same ? words->tokens[low] : NO_TOKEN;
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
            (t->is_bpe ? !is_special(token->kind) : token->kind == BYTE))
            t->byte_tokens[(uint8_t)*token->piece.bytes] = i;
    }
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
    size_t left_length = decode_bytes(bytes_of, left_name, bytes);
    size_t length = left_length + decode_bytes(bytes_of, right_name, bytes + left_length);
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

static void add_end(tokenizer *t, uint32_t token)
{
    if (t->end_count < MAX_ENDS)
        t->ends[t->end_count++] = token;
}

/* Keys with token ids, and SentencePiece's defaults. Keys of tokens that end an answer come first.
 */
enum { EOS_KEY, EOT_KEY, EOM_KEY, END_KEYS, BOS_KEY = END_KEYS, UNKNOWN_KEY, ID_KEY_COUNT };
static const struct {
    const char *name;
    uint32_t usual;
} ID_KEYS[ID_KEY_COUNT] = {
    [EOS_KEY] = { "tokenizer.ggml.eos_token_id", 2 },
    [EOT_KEY] = { "tokenizer.ggml.eot_token_id", NO_TOKEN },
    [EOM_KEY] = { "tokenizer.ggml.eom_token_id", NO_TOKEN },
    [BOS_KEY] = { "tokenizer.ggml.bos_token_id", 1 },
    [UNKNOWN_KEY] = { "tokenizer.ggml.unknown_token_id", 0 },
};

/* Names of tokens that end an answer. */
static const char *const END_NAMES[] = {
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
    "[EOS]",
    "[e~[",
    "<end_of_utterance>",
    "<\357\275\234end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"
};
enum { END_COUNT = sizeof END_NAMES / sizeof *END_NAMES };

/* Names of other control tokens, in addition to all <|NAME|>. */
static const char *const CONTROL_NAMES[] = {
    "<start_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
    "[INST]",
    "[/INST]",
    "<PRE>",
    "<SUF>",
    "<MID>",
    "<PAD>",
    "[PAD]",
    "<fim-prefix>",
    "<fim-suffix>",
    "<fim-middle>",
    "<fim-pad>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<fim_middle>",
    "<fim_pad>",
    "\xE2\x96\x81<PRE>",
    "\xE2\x96\x81<SUF>",
    "\xE2\x96\x81<MID>",
    "<reponame>",
    "<REPO>",
    "<fim-repo>",
};
enum { CONTROL_COUNT = sizeof CONTROL_NAMES / sizeof *CONTROL_NAMES };

static bool is_one_of(gguf_string text, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (gguf_string_is(text, names[i]))
            return true;
    return false;
}

static bool is_enclosed(gguf_string text, const char *start, const char *end)
{
    size_t before = strlen(start), behind = strlen(end);
    return text.length > before + behind && memcmp(text.bytes, start, before) == 0 &&
           memcmp(text.bytes + text.length - behind, end, behind) == 0 &&
           !memchr(text.bytes, ' ', text.length);
}

/* Returns true for names that occur only in chat templates. */
static bool is_control_name(gguf_string text)
{
    return is_enclosed(text, "<|", "|>") || is_enclosed(text, "<\357\275\234", "\xEF\xBD\x9C>") ||
           is_one_of(text, END_NAMES, END_COUNT) || is_one_of(text, CONTROL_NAMES, CONTROL_COUNT);
}

/* Returns the token id of a key, or NO_TOKEN. */
static uint32_t token_of_key(const tokenizer *t, const gguf_file *file, size_t key)
{
    uint64_t token = t->is_bpe ? NO_TOKEN : ID_KEYS[key].usual;
    gguf_get_u64(gguf_find_key(file, ID_KEYS[key].name), 0, &token);
    return token < t->count ? (uint32_t)token : NO_TOKEN;
}

/* Corrects the types of tokens: some files have none, or list control tokens and bytes as text.
 * Tokens of ID_KEYS become control tokens if their names look like it. */
static void mend_kinds(tokenizer *t, const gguf_file *file)
{
    for (uint32_t i = 0; i < t->count; i++) {
        token_info *token = &t->tokens[i];
        if (token->kind == NORMAL && is_control_name(token->text))
            token->kind = CONTROL;
        else if (token->kind == NORMAL && !t->is_bpe && byte_of_name(token->text) >= 0)
            token->kind = BYTE;
    }
    for (size_t i = 0; i < ID_KEY_COUNT; i++) {
        uint32_t id = token_of_key(t, file, i);
        if (id != NO_TOKEN && t->tokens[id].kind == NORMAL &&
            (is_enclosed(t->tokens[id].text, "<", ">") ||
             is_enclosed(t->tokens[id].text, "[", "]")))
            t->tokens[id].kind = i == UNKNOWN_KEY ? UNKNOWN : CONTROL;
    }
}

/* Returns true if a string contains a text, ignoring case. */
static bool has_text(gguf_string string, const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= string.length; i++) {
        size_t same = 0;
        while (same < length &&
               (string.bytes[i + same] | ('a' - 'A')) == (text[same] | ('a' - 'A')))
            same++;
        if (same == length)
            return true;
    }
    return false;
}

/* Sets the special tokens that drop adjacent white space. Files do not list them; Phi-3 was trained
 * with control tokens that drop the white space after them. */
static void find_strips(tokenizer *t, const gguf_file *file)
{
    static const char *const names[] = { "<unk>", "<s>", "<|endoftext|>" };
    gguf_string name = { "", 0 }, architecture = { "", 0 };
    gguf_get_string(gguf_find_key(file, "general.name"), &name);
    gguf_get_string(gguf_find_key(file, "general.architecture"), &architecture);
    if (!has_text(name, "phi-3") && !has_text(name, "phi3") &&
        (t->is_bpe || !gguf_string_is(architecture, "phi3")))
        return;
    for (size_t i = 0; i < t->specials.count; i++) {
        token_info *token = &t->tokens[t->specials.tokens[i]];
        token->strips_right = !is_one_of(token->text, names, sizeof names / sizeof *names);
    }
}

/* Finds the tokens that end an answer. Files give the end of a text, but not always the end of a
 * turn. */
static void find_ends(tokenizer *t, const gguf_file *file)
{
    bool returns = false; /* gpt-oss continues after the end of a message */
    for (size_t i = 0; i < END_KEYS; i++) {
        uint32_t token = token_of_key(t, file, i);
        if (token != NO_TOKEN)
            add_end(t, token);
    }
    for (uint32_t i = 0; i < t->count; i++) {
        returns |= gguf_string_is(t->tokens[i].text, "<|return|>");
        if (is_one_of(t->tokens[i].text, END_NAMES, END_COUNT))
            add_end(t, i);
    }
    for (uint32_t i = 0; !returns && i < t->count; i++)
        if (gguf_string_is(t->tokens[i].text, "<|end|>"))
            add_end(t, i);
}

static bool read_model(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    gguf_string model, pre = { "default", 7 };
    if (!gguf_get_string(gguf_find_key(file, "tokenizer.ggml.model"), &model))
        return fail(error, "the file has no tokenizer.ggml.model");
    t->is_bpe = gguf_string_is(model, "gpt2");
    t->adds_space = t->adds_bos = !t->is_bpe;
    if (!t->is_bpe && !gguf_string_is(model, "llama"))
        return fail(error, "tokenizer.ggml.model is \"%.*s\"; supported are: llama gpt2",
                    (int)(model.length < 64 ? model.length : 64), model.bytes);
    if (!t->is_bpe)
        return true;
    gguf_get_string(gguf_find_key(file, "tokenizer.ggml.pre"), &pre);
    if (!splitter_open(pre, &t->split, error))
        return false;
    t->adds_bos = t->split.flags & ADDS_BOS;
    t->composes = t->split.flags & COMPOSES;
    return true;
}

bool vocabulary_read(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    if (!read_model(t, file, error) || !read_tokens(t, file, error))
        return false;
    t->bos = token_of_key(t, file, BOS_KEY);
    t->unknown = token_of_key(t, file, UNKNOWN_KEY);
    mend_kinds(t, file);
    decode_tokens(t);
    find_bytes(t);
    if (!index_tokens(t, false, &t->words) || !index_tokens(t, true, &t->specials))
        return fail(error, "out of memory");
    if (t->is_bpe && !read_merges(t, file, error))
        return false;
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_bos_token"), 0, &t->adds_bos);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.add_space_prefix"), 0, &t->adds_space);
    gguf_get_bool(gguf_find_key(file, "tokenizer.ggml.remove_extra_whitespaces"), 0,
                  &t->joins_spaces);
    if (t->adds_bos && t->bos == NO_TOKEN)
        return fail(error,
                    "texts start with a BOS token, but tokenizer.ggml.bos_token_id is missing");
    find_strips(t, file);
    find_ends(t, file);
    return true;
}

void vocabulary_free(tokenizer *t)
{
    splitter_close(&t->split);
    free(t->tokens);
    free(t->bytes);
    free(t->words.tokens);
    free(t->specials.tokens);
    free(t->merges);
}
