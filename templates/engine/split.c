/* A tokenizer has one or more patterns. The first divides the text into matches and the text
 * between them. Each further pattern divides every piece that the patterns before it made.
 *
 * The patterns are those of the models' tokenizer.json files. llama.cpp's converter gives them
 * their names. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "split.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __has_include && !defined NO_UTF8PROC
#if !__has_include(<utf8proc.h>)
#define NO_UTF8PROC
#endif
#endif
#ifndef NO_UTF8PROC
#include <utf8proc.h>
#endif

/* Characters with the property White_Space. PCRE2's \s also matches U+180E, a letter's sign. */
#define WHITE          "\\t-\\r\\x{85}\\p{Z}"
#define S              "[" WHITE "]"
#define SPACES         S "+(?![^" WHITE "])|" S "+"
#define LINES          S "*[\\r\\n]+|" SPACES
#define SIGNS          " ?[^" WHITE "\\p{L}\\p{N}]+"
#define CONTRACTION    "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER          "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER          "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NO_WORD        "[^\\r\\n\\p{L}\\p{N}]"

#define GPT_2          "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" SIGNS "|" SPACES
#define UFAKZEKA       NO_WORD "?\\p{L}+|\\p{N}|" SIGNS "[\\r\\n]*|" LINES
#define CL100K(digits) CONTRACTION "|" NO_WORD "?\\p{L}+|" digits "|" SIGNS "[\\r\\n]*|" LINES
#define SEED_CODER \
    CONTRACTION "|" NO_WORD "?\\p{L}+|\\p{N}| ?[^" WHITE "\\p{L}\\p{N}\\r\\n]+|" LINES
#define TRAILING(count) S "{" count "}(?![^" WHITE "])|"
#define JAIS_2                                                                               \
    CONTRACTION "|" NO_WORD "?\\p{L}+|\\p{N}{1,3}|" SIGNS "[\\r\\n]*|" S                     \
                "*[\\r\\n]+|" TRAILING("512") TRAILING("256") TRAILING("128") TRAILING("64") \
                    TRAILING("32") TRAILING("16") TRAILING("8") TRAILING("4") TRAILING("1,2") S
#define EXAONE_MOE                                                                                 \
    CONTRACTION "|" NO_WORD "?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|" SIGNS "[\\r\\n/]?|" S \
                "*[\\r\\n]|" SPACES
#define CASED_WORDS(upper, lower, ending) \
    NO_WORD "?" upper "*" lower "+" ending "|" NO_WORD "?" upper "+" lower "*" ending "|"
#define O200K(ending, digits) CASED_WORDS(UPPER, LOWER, ending) digits "|" SIGNS "[\\r\\n/]*|" LINES
#define QWEN_3_5                                                 \
    CONTRACTION "|" NO_WORD "?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WHITE \
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES

/* Groups of three digits, counted from the right. */
#define DIGITS_FROM_RIGHT(digit, end) digit "{1,3}(?=(?:" digit "{3})*+" end ")"
#define WORD_END                                                                \
    "(?![\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" \
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f189}])"
#define COHERE       DIGITS_FROM_RIGHT("\\d", WORD_END), O200K(CONTRACTION "?", "\\p{N}{1,3}")
#define SUPERBPE     "(?s).+?(?=(?:\\d{3})+(?!\\d)|\\z)"

#define KANA         "\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}"
#define KANA_AND_HAN "[\\x{4e00}-\\x{9fa5}" KANA "]+"
#define CJK          "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define ASIAN                                                                              \
    "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{8c48}-\\x{faff}" KANA                      \
    "\\x{ff65}-\\x{ff9f}\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-" \
    "\\x{109f}\\x{aa60}-\\x{aa7f}\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}\\x{1100}-\\x{11ff}]+"
#define YOUTU                                                                                  \
    "[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}" \
    "\\x{2019}\\x{2014}\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|"   \
    "[\\x{3105}-\\x{312f}]+|" KANA_AND_HAN
#define BLOOM " ?[^(" WHITE "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

/* Letters with case, and letters of alphabets that had no case when the pattern was written. */
#define CASED                                                                              \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"         \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}" \
    "\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"          \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}"               \
    "\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"         \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"         \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}"         \
    "\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}" \
    "\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"                   \
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}"         \
    "\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}"  \
    "\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"          \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}" \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}"          \
    "\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"         \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"         \
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}" \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

#define SYMBOL_AND_WORD "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
#define DEEPSEEK_V3                                                 \
    SYMBOL_AND_WORD "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " \
                    "?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES
#define SPARK_2_5                                                   \
    SYMBOL_AND_WORD "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " \
                    "?[\\p{P}\\p{S}]+|[\\r\\n]|" SPACES
#define BAILING                                                                                \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^" WHITE "\\p{L}\\p{N}]++" \
    "[\\r\\n]*|" S "*[\\r\\n]|" SPACES

/* The script Han. PCRE2's \p{Han} also has punctuation of several scripts from 10.40 on. */
#define HAN                                                                                  \
    "[\\x{2e80}-\\x{2e99}\\x{2e9b}-\\x{2ef3}\\x{2f00}-\\x{2fd5}\\x{3005}\\x{3007}\\x{3021}-" \
    "\\x{3029}\\x{3038}-\\x{303b}\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}\\x{f900}-\\x{fa6d}"  \
    "\\x{fa70}-\\x{fad9}\\x{16fe2}\\x{16fe3}\\x{16ff0}\\x{16ff1}\\x{20000}-\\x{2a6df}"       \
    "\\x{2a700}-\\x{2b739}\\x{2b740}-\\x{2b81d}\\x{2b820}-\\x{2cea1}\\x{2ceb0}-\\x{2ebe0}"   \
    "\\x{2ebf0}-\\x{2ee5d}\\x{2f800}-\\x{2fa1d}\\x{30000}-\\x{3134a}\\x{31350}-\\x{323af}]"
#define NOT_HAN(of) "(?:(?!" HAN ")" of ")"
#define KIMI_K2                                                                                \
    HAN "+|" CASED_WORDS(NOT_HAN(UPPER), NOT_HAN(LOWER), CONTRACTION "?") "\\p{N}{1,3}|" SIGNS \
                                                                          "[\\r\\n]*|" LINES

static const struct {
    const char *name;
    int flags;
    const char *patterns[MAX_PATTERNS];
} SPLITTERS[] = {
#define PRE_TOKENIZER(name, flags, ...) { name, flags, { __VA_ARGS__ } },
#include "pre_tokenizers.def"
#undef PRE_TOKENIZER
};

enum { SPLITTER_COUNT = sizeof SPLITTERS / sizeof *SPLITTERS };

static bool fail_unknown(gguf_string name, gguf_error *error)
{
    size_t size = sizeof error->message;
    int length = snprintf(error->message, size, "tokenizer.ggml.pre is \"%.*s\"; supported are:",
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
        pcre2_jit_compile(s->patterns[i], PCRE2_JIT_COMPLETE); /* without JIT support: slower */
    }
    return true;
}

bool splitter_open(gguf_string name, splitter *s, gguf_error *error)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < SPLITTER_COUNT; i++) {
        if (!gguf_string_is(name, SPLITTERS[i].name))
            continue;
        s->flags = SPLITTERS[i].flags;
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

/* Splits a piece with a pattern and its parts with the next one. After the last pattern, passes the
 * piece to the callback. */
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
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* a long word: there is more stack without JIT */
            found = pcre2_match(s->patterns[pattern], (PCRE2_SPTR)text, length, at,
                                PCRE2_NOTEMPTY | PCRE2_NO_JIT, match, NULL);
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

#ifndef NO_UTF8PROC
/* Appends length bytes, possibly 0. */
static bool append(char **text, size_t *count, size_t *capacity, const void *bytes, size_t length)
{
    if (*capacity - *count < length) {
        size_t larger = 2 * (*count + length);
        char *moved = realloc(*text, larger);
        if (!moved)
            return false;
        *text = moved;
        *capacity = larger;
    }
    if (length)
        memcpy(*text + *count, bytes, length);
    *count += length;
    return true;
}

/* Appends the normalization form C of valid UTF-8. */
static bool append_composed(char **text, size_t *count, size_t *capacity, const char *bytes,
                            size_t length)
{
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t size =
        length ? utf8proc_map((const utf8proc_uint8_t *)bytes, (utf8proc_ssize_t)length, &form,
                              UTF8PROC_STABLE | UTF8PROC_COMPOSE)
               : 0;
    bool good = size >= 0 && append(text, count, capacity, form, (size_t)size);
    free(form);
    return good;
}

/* Composes valid UTF-8 and keeps other bytes. */
static bool compose(const char *text, size_t length, char **composed, size_t *count)
{
    size_t start = 0, at = 0, capacity = 0;
    bool good = true;
    *count = 0;
    while (good && at < length) {
        utf8proc_int32_t code;
        utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                  (utf8proc_ssize_t)(length - at), &code);
        if (bytes > 0) {
            at += (size_t)bytes;
            continue;
        }
        good = append_composed(composed, count, &capacity, text + start, at - start) &&
               append(composed, count, &capacity, text + at, 1);
        start = ++at;
    }
    return good && append_composed(composed, count, &capacity, text + start, length - start);
}
#else
static bool compose(const char *text, size_t length, char **composed, size_t *count)
{
    (void)text, (void)length, (void)composed, (void)count;
    return false;
}
#endif

bool split_compose(const char *text, size_t length, char **composed, size_t *composed_length)
{
    size_t ascii = 0;
    *composed = NULL;
    *composed_length = length;
    while (ascii < length && (unsigned char)text[ascii] < 0x80)
        ascii++;
    return ascii == length || compose(text, length, composed, composed_length);
}
