/* The starter engine's division of text into words. */
#include <string.h>

#include "base/strbuf.h"
#include "templates/engine/split.h"
#include "test_arena.h"

static gguf_error error;

/* Appends a word to the list of words of a text. */

static bool list_word(void *user, const char *word, size_t length)
{
    strbuf *out = user;
    if (out->length)
        strbuf_char(out, '|');
    strbuf_bytes(out, word, length);
    return true;
}

static void assert_words(arena *a, const char *name, const char *text, const char *expected)
{
    splitter s;
    strbuf words = strbuf_new(a);
    if (!splitter_open((gguf_string){ name, strlen(name) }, &s, &error))
        fail_msg("%s", error.message);
    assert_true(split_text(&s, text, strlen(text), list_word, &words));
    assert_string_equal(words.text, expected);
    splitter_close(&s);
}

ARENA_TEST(words_are_split_like_in_training)
{
    static const char text[] =
        "I'LL say it's 12345 x\n\n  Y!!\n HTTPServer's caf\u00e9 \u4f60\u597d";
    static const struct {
        const char *name, *words;
    } cases[] = {
        { "gpt-2",
          "I|'|LL| say| it|'s| 12345| x|\n\n | Y|!!|\n| HTTPServer|'s| caf\u00e9| \u4f60\u597d" },
        { "smollm", "I|'|LL| say| it|'s| |1|2|3|4|5| x|\n\n | Y|!!|\n| HTTPServer|'s| caf\u00e9| "
                    "\u4f60\u597d" },
        { "llama-bpe", "I|'LL| say| it|'s| |123|45| x|\n\n| | Y|!!\n| HTTPServer|'s| caf\u00e9| "
                       "\u4f60\u597d" },
        { "qwen2", "I|'LL| say| it|'s| |1|2|3|4|5| x|\n\n| | Y|!!\n| HTTPServer|'s| caf\u00e9| "
                   "\u4f60\u597d" },
        { "gpt-4o", "I'LL| say| it's| |123|45| x|\n\n| | Y|!!\n| HTTPServer's| caf\u00e9| "
                    "\u4f60\u597d" },
        { "tekken", "I|'LL| say| it|'s| |1|2|3|4|5| x|\n\n| | Y|!!\n| HTTPServer|'s| caf\u00e9| "
                    "\u4f60\u597d" },
        { "deepseek-v3", "I|'LL| say| it|'s| |123|45| x|\n\n| | Y|!!\n| HTTPServer|'s| caf\u00e9| |"
                         "\u4f60\u597d" },
        { "default", "I|'|LL| say| it|'|s| |123|45| x|\n\n | Y|!!|\n| HTTPServer|'|s| caf\u00e9| "
                     "\u4f60\u597d" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_words(a, cases[i].name, text, cases[i].words);
}

ARENA_TEST(marks_digits_and_line_ends_are_split_by_model)
{
    static const char text[] = "e\u0301 1234`$/\n'T \n\n";
    static const struct {
        const char *name, *words;
    } cases[] = {
        { "gpt-2", "e|\u0301"
                   "| 1234|`$/|\n|'|T| \n\n" },
        { "llama-bpe", "e|\u0301"
                       "| |123|4|`$/\n|'T| \n\n" },
        { "qwen2", "e|\u0301"
                   "| |1|2|3|4|`$/\n|'T| \n\n" },
        { "qwen35", "e\u0301"
                    "| |1|2|3|4|`$/\n|'T| \n\n" },
        { "gpt-4o", "e\u0301"
                    "| |123|4|`$/\n|'T| \n\n" },
        { "tekken", "e\u0301"
                    "| |1|2|3|4|`$/\n|'T| \n\n" },
        { "deepseek-v3", "e\u0301"
                         "| |123|4|`$/\n|'T| \n\n" },
        { "deepseek-coder", "e|\u0301 |1|2|3|4|`$|/|\n|'|T| |\n|\n" },
        { "smollm", "e|\u0301"
                    "| |1|2|3|4|`$/|\n|'|T| \n\n" },
        { "falcon", "e|\u0301"
                    "| |123|4|`$/|\n|'|T| \n\n" },
        { "default", "e|\u0301"
                     "| |123|4|`|$/|\n|'|T| \n\n" },
        { "bailingmoe", "e|\u0301"
                        "| |1|2|3|4|`$/\n|'T| \n\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_words(a, cases[i].name, text, cases[i].words);
}

/* Opens every name that the message on an unknown pre-tokenizer lists. */
ARENA_TEST(every_listed_pre_tokenizer_opens_with_its_flags)
{
    static const struct {
        const char *names;
        int flags;
    } expected[] = {
        { " falcon-h1 falcon3 lfm2 llama-bpe llama-v3 llama3 midm-2.0 pixtral tekken ",
          KEEPS_WORDS | ADDS_BOS },
        { " minicpm5 youtu ", KEEPS_WORDS },
        { " chameleon ", ADDS_BOS },
        { " gemma4 ", ADDS_BOS | CODE_POINTS | KEEPS_LINE_ENDS },
        { " cohere2moe command-r deepseek-r1-qwen f2llmv2 hunyuan kormo megrez mpt olmo qwen2 "
          "qwen35 stablelm2 tiny_aya ",
          COMPOSES },
    };
    gguf_error other;
    splitter s;
    size_t count = 0;
    assert_false(splitter_open((gguf_string){ "", 0 }, &s, &error));
    const char *names = strstr(error.message, "are: ") + 5;
    for (size_t length; *names; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        const char *name = arena_format(a, " %.*s ", (int)length, names);
        int flags = 0;
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            flags |= strstr(expected[i].names, name) ? expected[i].flags : 0;
        if (!splitter_open((gguf_string){ names, length }, &s, &other))
            fail_msg("%s: %s", name, other.message);
        assert_int_equal(s.flags, flags);
        splitter_close(&s);
        count++;
    }
    assert_true(count > 70);
}

ARENA_TEST(newer_pre_tokenizers_split_by_their_patterns)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        { "deepseek-llm", "Hi there's 123 \u4f60\u597d, \u0e01\n x  ",
          "Hi| there|'|s| |123| |\u4f60\u597d|,| |\u0e01|\n| x|  " },
        { "kimi-k2", "getUserName \u4f60\u597d\u3002ok 1234/\n",
          "get|User|Name| |\u4f60\u597d|\u3002ok| |123|4|/\n" },
        { "seed-coder", "I'm 12!!\n x", "I|'m| |1|2|!!|\n| x" },
        { "midm-2.0", "it's 1234", "it|'s| |123|4" },
        { "a.x-4.0", "it's 1234", "it|'s| 1234" },
        { "mellum", "it's 1234", "it|'s| 1234" },
        { "viking", "one, two 34\u3002x", "one|,| two| |3|4|\u3002|x" },
        { "kanana2", "it's aB 1234/\n", "it's| a|B| |123|4|/\n" },
        { "joyai-llm", "a.bc 1234 \u4f60", "a|.bc| |123|4| |\u4f60" },
        { "kormo", "it's 12", "it|'s| |1|2" },
        { "afmoe", "x 1234567.8 ab", "x| |1|234|567|.|8| ab" },
        { "tiny_aya", "12345 1234x", "12|345| |123|4|x" },
        { "superbpe", "ab 12345", "ab |12|345" },
        { "jais-2", "a   b", "a|  | b" },
        { "exaone-moe", "ab cd 1!/\n", "ab cd| |1|!/\n" },
        { "spark2_5", "a 1\u00bd!\n", "a| |1|\u00bd|!|\n" },
        { "youtu", "ab\uac00\u3001 1", "ab|\uac00|\u3001| |1" },
        { "laguna", "ab's\n\nc", "ab|'s|\n\n|c" },
        { "bloom", "a, b", "a|,| b" },
        { "chameleon", "IMGIMGABZ x1!", "IMGIMGABZ| x|1|!" },
        { "ufakzeka", "it's", "it|'s" },
        { "minicpm5", "a 12345", "a| |123|45" },
        { "gemma4", "a b\n\n\nc", "a b|\n\n\n|c" },
        { "superbpe", "\u00bc12345\u00bc", "\u00bc12|345\u00bc" },
        { "tiny_aya", "12345_ 1234\u00bc 1234\u2460", "123|45|_| |123|4\u00bc| |1|234|\u2460" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_words(a, cases[i].name, cases[i].text, cases[i].words);
}

/* U+0085 and U+2028 are white space. U+180E, a sign of Mongolian letters, is not. */
ARENA_TEST(white_space_is_what_unicode_says)
{
    assert_words(a, "llama-bpe", "a\xC2\x85\u2028 b\u180ec\ufeff \u00a0d",
                 "a|\xC2\x85\u2028| b|\u180ec|\ufeff| |\u00a0d");
}

/* PCRE2's compiled code has a small stack. A pattern with a group may need more. */
ARENA_TEST(words_of_any_length_are_split)
{
    static const char *const names[] = { "kimi-k2", "exaone-moe", "afmoe", "gpt-4o", "jais-2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t kind = 0; kind < 3; kind++) {
            strbuf text = strbuf_new(a), words = strbuf_new(a);
            splitter s;
            for (size_t n = 0; n < 20000; n++)
                strbuf_put(&text, kind == 0 ? "\u0e01" : kind == 1 ? "7" : "a b");
            assert_true(splitter_open((gguf_string){ names[i], strlen(names[i]) }, &s, &error));
            assert_true(split_text(&s, text.text, text.length, list_word, &words));
            splitter_close(&s);
        }
}

ARENA_TEST(invalid_utf_8_is_part_of_words)
{
    static const char *const names[] = { "gpt-2", "llama-bpe", "gpt-4o", "deepseek-v3", "falcon" };
    static const char text[] = "a\xFF\xC3 b\x80\xE2\x82 12\xF0\x9F\x98";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        splitter s;
        strbuf words = strbuf_new(a), without = strbuf_new(a);
        assert_true(splitter_open((gguf_string){ names[i], strlen(names[i]) }, &s, &error));
        assert_true(split_text(&s, text, sizeof text - 1, list_word, &words));
        for (const char *c = words.text; *c; c++)
            if (*c != '|')
                strbuf_char(&without, *c);
        assert_string_equal(without.text, text);
        splitter_close(&s);
    }
}

TEST(an_unknown_pre_tokenizer_is_named_with_the_known_ones)
{
    splitter s;
    assert_false(splitter_open((gguf_string){ "quen", 4 }, &s, &error));
    static const char start[] = "tokenizer.ggml.pre is \"quen\"; supported are: default ";
    assert_memory_equal(error.message, start, sizeof start - 1);
    assert_non_null(strstr(error.message, " qwen2 "));
    assert_non_null(strstr(error.message, " youtu"));
}
