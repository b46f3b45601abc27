/* Special tokens: control tokens that a file may list as text, tokens that end an answer, tokens
 * that are never sampled, and tokens that drop adjacent white space. Files describe them
 * incompletely; names tell the rest. */
#include <string.h>

#include "vocabulary.h"

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

/* Names of tokens that end an answer. The last ones follow text that was filled in. */
static const char *const END_NAMES[] = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "<end_of_utterance>",
    "<\357\275\234end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "<PAD>",
    "[PAD]",
    "<fim-pad>",
    "<fim_pad>",
    "<|fim_pad|>",
    "<reponame>",
    "<REPO>",
    "<fim-repo>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|file_sep|>",
};
enum { END_COUNT = sizeof END_NAMES / sizeof *END_NAMES };

/* Names of other control tokens, in addition to all <|NAME|>. */
static const char *const CONTROL_NAMES[] = {
    "<start_of_turn>",
    "<|turn>",
    "<start_of_image>",
    "<end_of_image>",
    "[INST]",
    "[/INST]",
    "<PRE>",
    "<SUF>",
    "<MID>",
    "<fim-prefix>",
    "<fim-suffix>",
    "<fim-middle>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<fim_middle>",
    "\xE2\x96\x81<PRE>",
    "\xE2\x96\x81<SUF>",
    "\xE2\x96\x81<MID>",
};
enum { CONTROL_COUNT = sizeof CONTROL_NAMES / sizeof *CONTROL_NAMES };

/* Names of tokens that part the messages of an answer of gpt-oss. They are shown as text. */
static const char *const PART_NAMES[] = {
    "<|start|>",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
};
enum { PART_COUNT = sizeof PART_NAMES / sizeof *PART_NAMES };

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
    uint64_t token = t->has_ranks ? NO_TOKEN : ID_KEYS[key].usual;
    gguf_get_u64(gguf_find_key(file, ID_KEYS[key].name), 0, &token);
    return token < t->count ? (uint32_t)token : NO_TOKEN;
}

static bool has_token(const tokenizer *t, const char *text)
{
    bool has = false;
    for (uint32_t i = 0; i < t->count && !has; i++)
        has = gguf_string_is(t->tokens[i].text, text);
    return has;
}

/* Returns true if answers consist of messages that <|end|> ends, as in gpt-oss and Solar Open. */
static bool has_messages(const tokenizer *t)
{
    return has_token(t, "<|return|>") || has_token(t, "<|flush|>");
}

void special_mend(tokenizer *t, const gguf_file *file)
{
    bool shows_end = has_messages(t);
    t->bos = token_of_key(t, file, BOS_KEY);
    t->unknown = token_of_key(t, file, UNKNOWN_KEY);
    for (uint32_t i = 0; i < t->count; i++) {
        gguf_string text = t->tokens[i].text;
        if (is_one_of(text, PART_NAMES, PART_COUNT) ||
            (shows_end && gguf_string_is(text, "<|end|>")))
            t->tokens[i].kind = USER_DEFINED;
        else if (t->tokens[i].kind == NORMAL && is_control_name(text))
            t->tokens[i].kind = CONTROL;
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

/* Sets the special tokens that drop adjacent white space. Phi-3 was trained with control tokens
 * that drop the white space after them. */
static void find_strips(tokenizer *t, const gguf_file *file)
{
    static const char *const names[] = { "<unk>", "<s>", "<|endoftext|>" };
    gguf_string name = { "", 0 }, architecture = { "", 0 };
    gguf_get_string(gguf_find_key(file, "general.name"), &name);
    gguf_get_string(gguf_find_key(file, "general.architecture"), &architecture);
    if (!has_text(name, "phi-3") && !has_text(name, "phi3") &&
        (t->has_ranks || !gguf_string_is(architecture, "phi3")))
        return;
    for (size_t i = 0; i < t->specials.count; i++) {
        token_info *token = &t->tokens[t->specials.tokens[i]];
        token->strips_right = !is_one_of(token->text, names, sizeof names / sizeof *names);
    }
}

static void add_end(tokenizer *t, uint32_t token)
{
    if (t->end_count < MAX_ENDS)
        t->ends[t->end_count++] = token;
}

/* Finds the tokens that end an answer. Files give the end of a text, but not always the end of a
 * turn. */
static void find_ends(tokenizer *t, const gguf_file *file)
{
    bool goes_on = has_messages(t);
    bool has_html = has_token(t, "<|tool_response>"); /* "</s>" of Gemma 4 strikes text out */
    for (size_t i = 0; i < END_KEYS; i++) {
        uint32_t token = token_of_key(t, file, i);
        if (token != NO_TOKEN)
            add_end(t, token);
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const token_info *token = &t->tokens[i];
        if (is_one_of(token->text, END_NAMES, END_COUNT) ||
            (!goes_on && gguf_string_is(token->text, "<|end|>")) ||
            (!has_html && token->kind == CONTROL && gguf_string_is(token->text, "</s>")))
            add_end(t, i);
    }
}

static void find_suppressed(tokenizer *t, const gguf_file *file)
{
    const gguf_key *key = gguf_find_key(file, "tokenizer.ggml.suppress_tokens");
    uint64_t token;
    for (uint64_t i = 0; key && i < key->count; i++)
        if (gguf_get_u64(key, i, &token) && token < t->count)
            t->tokens[token].is_suppressed = true;
}

void special_find(tokenizer *t, const gguf_file *file)
{
    find_strips(t, file);
    find_ends(t, file);
    find_suppressed(t, file);
}
