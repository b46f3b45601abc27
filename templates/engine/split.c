/* A tokenizer has one or several patterns. The first cuts the text into what it matches and what
 * stands between; each of the others does the same to every piece that is left by those before it.
 *
 * The patterns are those of the models' tokenizer.json files, put together by the names that
 * llama.cpp's converter gives them.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "split.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NO_WORD     "[^\\r\\n\\p{L}\\p{N}]"

#define GPT_2       "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CL100K(digits) \
    CONTRACTION "|" NO_WORD "?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES
#define O200K(ending, digits)                                                                    \
    NO_WORD "?" UPPER "*" LOWER "+" ending "|" NO_WORD "?" UPPER "+" LOWER "*" ending "|" digits \
            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES
#define QWEN_3_5 \
    CONTRACTION "|" NO_WORD "?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES
#define KANA_AND_HAN "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define DEEPSEEK_V3                                          \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES
#define BAILING                                                                                    \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|" \
    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"

static const struct {
    const char *name;
    const char *patterns[MAX_PATTERNS];
    bool keeps_words, adds_bos;
} SPLITTERS[] = {
    { "default",
      { "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT_2, "\\p{N}+", "[0-9][0-9][0-9]" },
      false,
      false },
    { "bailingmoe", { BAILING }, false, false },
    { "bailingmoe2", { BAILING }, false, false },
    { "chatglm-bpe", { CL100K("\\p{N}{1,3}") }, false, false },
    { "command-r", { "\\p{N}", GPT_2 }, false, false },
    { "dbrx", { CL100K("\\p{N}{1,3}") }, false, false },
    { "deepseek-coder",
      { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
        "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}" },
      false,
      false },
    { "deepseek-r1-qwen", { CL100K("\\p{N}") }, false, false },
    { "deepseek-v3", { "\\p{N}{1,3}", KANA_AND_HAN, DEEPSEEK_V3 }, false, false },
    { "exaone", { "\\p{N}", GPT_2 }, false, false },
    { "exaone4", { GPT_2 }, false, false },
    { "falcon", { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT_2, "[0-9][0-9][0-9]" }, false, false },
    { "falcon-h1", { CL100K("\\p{N}{1,3}") }, true, true },
    { "falcon3", { CL100K("\\p{N}{1,3}") }, true, true },
    { "gigachat", { GPT_2 }, false, false },
    { "glm4", { CL100K("\\p{N}{1,3}") }, false, false },
    { "gpt-2", { GPT_2 }, false, false },
    { "gpt-4o", { O200K(CONTRACTION "?", "\\p{N}{1,3}") }, false, false },
    { "granite-docling", { GPT_2 }, false, false },
    { "hunyuan", { CL100K("\\p{N}") }, false, false },
    { "hunyuan-dense", { "\\p{N}{1,3}", KANA_AND_HAN, DEEPSEEK_V3 }, false, false },
    { "jais", { GPT_2 }, false, false },
    { "lfm2", { CL100K("\\p{N}{1,3}") }, true, true },
    { "llama-bpe", { CL100K("\\p{N}{1,3}") }, true, true },
    { "llama-v3", { CL100K("\\p{N}{1,3}") }, true, true },
    { "llama3", { CL100K("\\p{N}{1,3}") }, true, true },
    { "llama4", { O200K(CONTRACTION "?", "\\p{N}{1,3}") }, false, false },
    { "megrez", { CL100K("\\p{N}") }, false, false },
    { "minerva-7b", { "\\p{N}", GPT_2 }, false, false },
    { "minimax-m2", { O200K(CONTRACTION "?", "\\p{N}{1,3}") }, false, false },
    { "mpt", { GPT_2 }, false, false },
    { "olmo", { GPT_2 }, false, false },
    { "phi-2", { GPT_2 }, false, false },
    { "pixtral", { CL100K("\\p{N}{1,3}") }, true, true },
    { "qwen2", { CL100K("\\p{N}") }, false, false },
    { "qwen35", { QWEN_3_5 }, false, false },
    { "refact", { "\\p{N}", GPT_2 }, false, false },
    { "smaug-bpe", { CL100K("\\p{N}{1,3}") }, false, false },
    { "smollm", { "\\p{N}", GPT_2 }, false, false },
    { "stablelm2", { CL100K("\\p{N}") }, false, false },
    { "starcoder", { "\\p{N}", GPT_2 }, false, false },
    { "tekken", { O200K("", "\\p{N}") }, true, true },
    { "trillion", { GPT_2 }, false, false },
};

enum { SPLITTER_COUNT = sizeof SPLITTERS / sizeof *SPLITTERS };

static bool fail_unknown(gguf_string name, gguf_error *error)
{
    size_t size = sizeof error->message;
    int length = snprintf(error->message, size, "tokenizer.ggml.pre is \"%.*s\"; those known are:",
                          (int)(name.length < 64 ? name.length : 64), name.bytes);
    for (size_t i = 0; i < SPLITTER_COUNT && (size_t)length < size; i++)
        length +=
            snprintf(error->message + length, size - (size_t)length, " %s", SPLITTERS[i].name);
    return false;
}

static bool compile(const char *const *patterns, splitter *s, gguf_error *error)
{
    for (size_t i = 0; i < MAX_PATTERNS && patterns[i]; i++) {
        int code;
        PCRE2_SIZE at;
        PCRE2_UCHAR message[128];
        s->patterns[i] =
            pcre2_compile((PCRE2_SPTR)patterns[i], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &code, &at, NULL);
        if (!s->patterns[i]) {
            pcre2_get_error_message(code, message, sizeof message);
            snprintf(error->message, sizeof error->message, "pattern \"%s\": at %zu: %s",
                     patterns[i], (size_t)at, (const char *)message);
            splitter_close(s);
            return false;
        }
        pcre2_jit_compile(s->patterns[i], PCRE2_JIT_COMPLETE); /* where there is no JIT: slower */
    }
    return true;
}

bool splitter_open(gguf_string name, splitter *s, gguf_error *error)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SPLITTER_COUNT; i++) {
        if (!gguf_string_is(name, SPLITTERS[i].name))
            continue;
        s->keeps_words = SPLITTERS[i].keeps_words;
        s->adds_bos = SPLITTERS[i].adds_bos;
        return compile(SPLITTERS[i].patterns, s, error);
    }
    return fail_unknown(name, error);
}

void splitter_close(splitter *s)
{
    for (size_t i = 0; i < MAX_PATTERNS; i++)
        pcre2_code_free(s->patterns[i]);
    memset(s, 0, sizeof *s);
}

/* Hands a piece to the pattern after those that made it, or to the caller where there is none. */
static bool split_piece(const splitter *s, size_t pattern, const char *text, size_t length,
                        split_word *word, void *user)
{
    if (!length)
        return true;
    if (pattern == MAX_PATTERNS || !s->patterns[pattern])
        return word(user, text, length);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(s->patterns[pattern], NULL);
    if (!match)
        return false;
    size_t at = 0;
    bool good = true;
    while (good && at < length) {
        int found = pcre2_match(s->patterns[pattern], (PCRE2_SPTR)text, length, at, PCRE2_NOTEMPTY,
                                match, NULL);
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
        size_t start = found > 0 ? ends[0] : length, end = found > 0 ? ends[1] : length;
        good = (found > 0 || found == PCRE2_ERROR_NOMATCH) &&
               split_piece(s, pattern + 1, text + at, start - at, word, user) &&
               split_piece(s, pattern + 1, text + start, end - start, word, user);
        at = end;
    }
    pcre2_match_data_free(match);
    return good;
}

bool split_text(const splitter *s, const char *text, size_t length, split_word *word, void *user)
{
    return split_piece(s, 0, text, length, word, user);
}
