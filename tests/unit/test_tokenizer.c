/* The starter engine's tokenizer, on small vocabularies of the test. The small models' vocabularies
 * are tested if the models are present. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gguf_writer.h"
#include "templates/engine/split.h"
#include "templates/engine/tokenizer.h"
#include "test_arena.h"

/* The file of the open vocabulary, and the last error. */
static gguf_file file;
static gguf_error error;

/* token types of GGUF, and a limit */

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6, MAX_TOKENS = 400 };

typedef struct vocabulary {
    const char *model, *pre;
    const char *tokens[MAX_TOKENS];
    float scores[MAX_TOKENS];
    int kinds[MAX_TOKENS];
    uint32_t count;
    const char *merges[8];
    int bos, eos;             /* -1 = not in the file */
    int adds_bos, adds_space; /* -1 = not in the file */
    bool no_scores, no_kinds, joins_spaces;
    const char *name; /* general.name; NULL = not in the file */
} vocabulary;

static uint32_t add_token(vocabulary *v, const char *text, float score, int kind)
{
    v->tokens[v->count] = text;
    v->scores[v->count] = score;
    v->kinds[v->count] = kind;
    return v->count++;
}

static tokenizer *open_vocabulary(arena *a, const vocabulary *v)
{
    uint64_t merges = 0;
    while (v->merges[merges])
        merges++;
    uint64_t keys = 6u - v->no_scores - v->no_kinds + v->joins_spaces + (v->name != NULL) +
                    (v->bos >= 0) + (v->eos >= 0) + (v->adds_bos >= 0) + (v->adds_space >= 0);
    gguf_writer w = gguf_start(a, 3, 0, keys);
    gguf_put_text(&w, "tokenizer.ggml.model", v->model);
    gguf_put_text(&w, "tokenizer.ggml.pre", v->pre);
    gguf_put_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, v->count);
    for (uint32_t i = 0; i < v->count; i++)
        gguf_put_string(&w, v->tokens[i]);
    if (!v->no_scores) {
        gguf_put_array(&w, "tokenizer.ggml.scores", GGUF_F32, v->count);
        strbuf_bytes(&w.out, (const char *)v->scores, v->count * sizeof *v->scores);
    }
    if (!v->no_kinds)
        gguf_put_array(&w, "tokenizer.ggml.token_type", GGUF_I32, v->count);
    for (uint32_t i = 0; !v->no_kinds && i < v->count; i++)
        gguf_put(&w, (uint64_t)v->kinds[i], 4);
    if (v->joins_spaces)
        gguf_put_number(&w, "tokenizer.ggml.remove_extra_whitespaces", GGUF_BOOL, 1);
    if (v->name)
        gguf_put_text(&w, "general.name", v->name);
    gguf_put_array(&w, "tokenizer.ggml.merges", GGUF_STRING, merges);
    for (uint64_t i = 0; i < merges; i++)
        gguf_put_string(&w, v->merges[i]);
    if (v->bos >= 0)
        gguf_put_number(&w, "tokenizer.ggml.bos_token_id", GGUF_U32, (uint64_t)v->bos);
    if (v->eos >= 0)
        gguf_put_number(&w, "tokenizer.ggml.eos_token_id", GGUF_U32, (uint64_t)v->eos);
    if (v->adds_bos >= 0)
        gguf_put_number(&w, "tokenizer.ggml.add_bos_token", GGUF_BOOL, (uint64_t)v->adds_bos);
    if (v->adds_space >= 0)
        gguf_put_number(&w, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, (uint64_t)v->adds_space);
    if (!gguf_open_memory("m", w.out.text, w.out.length, &file, &error))
        fail_msg("%s", error.message);
    return tokenizer_open(&file, &error);
}

static void close_vocabulary(tokenizer *t)
{
    tokenizer_close(t);
    gguf_close(&file);
}

/* Returns a vocabulary with "<s>" 1, "</s>" 2, the bytes from 3 on, and a few pieces from 259 on.
 */
static vocabulary sentencepiece(arena *a)
{
    vocabulary v = {
        .model = "llama", .pre = "default", .bos = 1, .eos = 2, .adds_bos = -1, .adds_space = -1
    };
    static const char *const pieces[] = { "\u2581", "h",   "e",    "l",        "o",          "he",
                                          "ll",     "llo", "hell", "\u2581he", "\u2581hello" };
    static const float scores[] = { -20, -21, -22, -23, -24, -1, -2, -3, -9, -8, -7 };
    add_token(&v, "<unk>", 0, UNKNOWN);
    add_token(&v, "<s>", 0, CONTROL);
    add_token(&v, "</s>", 0, CONTROL);
    for (unsigned i = 0; i < 256; i++)
        add_token(&v, arena_format(a, "<0x%02X>", i), 0, BYTE);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        add_token(&v, pieces[i], scores[i], NORMAL);
    add_token(&v, "  ", 0, USER_DEFINED);
    return v;
}

/* Returns GPT-2's text for a byte. */
static const char *byte_text(arena *a, unsigned byte)
{
    unsigned code = byte, next = 256;
    for (unsigned b = 0; b <= byte; b++) {
        bool is_itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (!is_itself && b == byte)
            code = next;
        next += !is_itself;
    }
    return code < 128
               ? arena_format(a, "%c", (char)code)
               : arena_format(a, "%c%c", (char)(0xC0 | code >> 6), (char)(0x80 | (code & 63)));
}

/* Returns a vocabulary with the bytes from 0 on and a few pieces from 256 on. "\u0120" is the
 * space. */
static vocabulary byte_level(arena *a, const char *pre)
{
    vocabulary v = { .model = "gpt2",
                     .pre = pre,
                     .bos = 263,
                     .eos = 264,
                     .adds_bos = -1,
                     .adds_space = -1,
                     .merges = { "h e", "l l", "he ll", "hell o", "\u0120 hello", "a b" } };
    static const char *const pieces[] = { "he",          "ll",  "hell",        "hello",
                                          "\u0120hello", "abc", "\u010a\u010a" };
    for (unsigned i = 0; i < 256; i++)
        add_token(&v, byte_text(a, i), 0, NORMAL);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        add_token(&v, pieces[i], 0, NORMAL);
    add_token(&v, "<|begin|>", 0, CONTROL);
    add_token(&v, "<|im_end|>", 0, CONTROL);
    add_token(&v, "<tool>", 0, USER_DEFINED);
    add_token(&v, "<tool>s", 0, USER_DEFINED);
    return v;
}

/* Returns a vocabulary with the bytes from 9 on, and a few pieces from 265 on. */
static vocabulary gemma_4(arena *a)
{
    vocabulary v = { .model = "gemma4",
                     .pre = "ignored",
                     .bos = 2,
                     .eos = 1,
                     .adds_bos = 0,
                     .adds_space = 1,
                     .merges = { "h e", "\u2581 he", "he \u4f60", "\n \n", "\u2581 \u2581" } };
    static const char *const pieces[] = { "\u2581",   "h",    "e",          "\u4f60",   "\n", "he",
                                          "\u2581he", "\n\n", "\n\n\n\n\n", "he\u4f60", "lo" };
    add_token(&v, "<pad>", 0, CONTROL);
    add_token(&v, "<eos>", 0, CONTROL);
    add_token(&v, "<bos>", 0, CONTROL);
    add_token(&v, "<unk>", 0, UNKNOWN);
    add_token(&v, "<|turn>", 0, CONTROL);
    add_token(&v, "<turn|>", 0, NORMAL);
    add_token(&v, "<|channel>", 0, USER_DEFINED);
    add_token(&v, "<|tool_response>", 0, USER_DEFINED);
    add_token(&v, "\u2581\u2581", 0, NORMAL);
    for (unsigned i = 0; i < 256; i++)
        add_token(&v, arena_format(a, "<0x%02X>", i), 0, BYTE);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        add_token(&v, pieces[i], 0, NORMAL);
    return v;
}

static void assert_tokens(arena *a, const tokenizer *t, const char *text, int flags,
                          const char *expected)
{
    token_list tokens = { 0 };
    strbuf shown = strbuf_new(a);
    assert_true(tokenizer_encode(t, text, strlen(text), flags, &tokens));
    for (size_t i = 0; i < tokens.count; i++)
        strbuf_format(&shown, "%s%u", i ? " " : "", (unsigned)tokens.items[i]);
    assert_string_equal(shown.text, expected);
    free(tokens.items);
}

static void assert_piece(const tokenizer *t, uint32_t token, const char *bytes, size_t length)
{
    gguf_string piece = tokenizer_piece(t, token);
    assert_int_equal(piece.length, length);
    assert_memory_equal(piece.bytes, bytes, length);
}

ARENA_TEST(sentencepiece_merges_the_pair_of_the_highest_score_first)
{
    vocabulary v = sentencepiece(a);
    tokenizer *t = open_vocabulary(a, &v);
    assert_int_equal(tokenizer_size(t), v.count);
    assert_tokens(a, t, "", TOKENIZE_START, "1");
    assert_tokens(a, t, "", 0, "");
    /* merges he, ll, llo, \u2581he, and \u2581hello of the last two */
    assert_tokens(a, t, "hello", TOKENIZE_START, "1 269");
    assert_tokens(a, t, "hello", 0, "269");
    assert_tokens(a, t, "hell", 0, "268 265");
    assert_tokens(a, t, "hello hello", 0, "269 269");
    assert_tokens(a, t, "x\n", 0, "259 123 13");
    assert_tokens(a, t, "\u00e9", 0, "259 198 172");
    assert_tokens(a, t, "\xC3", 0, "259 198");
    close_vocabulary(t);
}

ARENA_TEST(control_tokens_in_a_text_are_recognized_on_request)
{
    vocabulary v = sentencepiece(a);
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "hello</s>hello", TOKENIZE_SPECIAL, "269 2 269");
    assert_tokens(a, t, "<s>", TOKENIZE_SPECIAL, "1");
    assert_tokens(a, t, "<s>hello", TOKENIZE_START | TOKENIZE_SPECIAL, "1 269");
    assert_tokens(a, t, "<s><s>", TOKENIZE_START | TOKENIZE_SPECIAL, "1 1"); /* as plain text */
    assert_tokens(a, t, "</s>", TOKENIZE_START | TOKENIZE_SPECIAL, "1 2");
    assert_tokens(a, t, "<s>", 0, "259 63 118 65");
    assert_tokens(a, t, "hello  hello", 0, "269 270 269"); /* 270 is user-defined: two spaces */
    close_vocabulary(t);
}

ARENA_TEST(keys_control_the_leading_bos_and_space)
{
    vocabulary v = sentencepiece(a);
    v.adds_bos = 0;
    v.adds_space = 0;
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "hello", TOKENIZE_START, "264 266");
    close_vocabulary(t);
    v = sentencepiece(a);
    v.bos = -1; /* the default is 1 */
    t = open_vocabulary(a, &v);
    assert_tokens(a, t, "", TOKENIZE_START, "1");
    close_vocabulary(t);
    v = byte_level(a, "gpt-2");
    v.adds_bos = 1;
    v.adds_space = 1;
    t = open_vocabulary(a, &v);
    assert_tokens(a, t, "hello", TOKENIZE_START, "263 260");
    assert_tokens(a, t, " hello", TOKENIZE_START, "263 260"); /* already starts with a space */
    assert_tokens(a, t, "<tool>hello", 0, "265 259");
    close_vocabulary(t);
}

ARENA_TEST(spaces_are_merged_if_the_file_says_so)
{
    vocabulary v = sentencepiece(a);
    v.count--; /* removes the token of two spaces */
    v.joins_spaces = true;
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "  hello   hello ", 0, "269 269");
    assert_tokens(a, t, "   ", 0, "");
    close_vocabulary(t);
}

ARENA_TEST(vocabularies_without_types_or_scores_are_read)
{
    vocabulary v = sentencepiece(a);
    v.no_kinds = true;
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "hello\n", TOKENIZE_START, "1 269 13");
    assert_tokens(a, t, "</s>hello", TOKENIZE_START | TOKENIZE_SPECIAL, "1 2 269");
    close_vocabulary(t);
    v = sentencepiece(a);
    for (uint32_t i = 3; i < 259; i++)
        v.kinds[i] = NORMAL; /* declares the bytes to be text */
    t = open_vocabulary(a, &v);
    assert_tokens(a, t, "x\n", TOKENIZE_START, "1 259 123 13");
    close_vocabulary(t);
    v = sentencepiece(a);
    v.bos = v.eos = -1; /* SentencePiece's default ids */
    for (uint32_t i = 0; i < 3; i++)
        v.kinds[i] = NORMAL;
    t = open_vocabulary(a, &v);
    assert_tokens(a, t, "<s>hello</s>", TOKENIZE_START | TOKENIZE_SPECIAL, "1 269 2");
    assert_true(tokenizer_is_end(t, 2));
    close_vocabulary(t);
    v = sentencepiece(a);
    v.no_scores = true;
    t = open_vocabulary(a, &v);
    assert_tokens(a, t, "he", TOKENIZE_START, "1 268");
    close_vocabulary(t);
}

/* Text without tokens becomes one unknown token, however long it is. */
ARENA_TEST(characters_without_bytes_are_unknown)
{
    vocabulary v = sentencepiece(a);
    for (uint32_t i = 3; i < 259; i++)
        v.tokens[i] = arena_format(a, "piece %u", i);
    for (uint32_t i = 3; i < 259; i++)
        v.kinds[i] = NORMAL;
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "he\u00e9\u4f60he", 0, "268 0 264");
    assert_tokens(a, t, "\u00e9", 0, "259 0");
    close_vocabulary(t);
}

ARENA_TEST(names_of_control_tokens_are_recognized_with_any_type)
{
    static const char *const names[] = { "<|eot_id|>",         "<end_of_turn>", "<start_of_turn>",
                                         "<|anything_9|>",     "[INST]",        "<fim_prefix>",
                                         "<\uff5cUser\uff5c>", "</end>" };
    enum { NAMES = sizeof names / sizeof *names };
    vocabulary v = byte_level(a, "gpt-2");
    uint32_t first = v.count;
    for (size_t i = 0; i < NAMES; i++)
        add_token(&v, names[i], 0, NORMAL);
    v.eos = (int)(first + NAMES - 1);
    tokenizer *t = open_vocabulary(a, &v);
    for (uint32_t i = 0; i < NAMES; i++) {
        assert_tokens(a, t, arena_format(a, "e%se", names[i]), TOKENIZE_SPECIAL,
                      arena_format(a, "101 %u 101", first + i));
        assert_int_equal(tokenizer_piece(t, first + i).length, 0);
    }
    assert_tokens(a, t, "<|x y|>", TOKENIZE_SPECIAL, "60 124 120 32 121 124 62");
    close_vocabulary(t);
}

ARENA_TEST(phi_3_drops_white_space_after_control_tokens)
{
    static const struct {
        const char *name, *tokens;
    } cases[] = {
        { "Phi-3.5-mini-instruct", "271 269 2 269 1 259 269" },
        { "My phi3", "271 269 2 269 1 259 269" },
        { "Mistral", "271 259 259 123 264 266 2 259 13 264 266 1 259 269" },
        { NULL, "271 259 259 123 264 266 2 259 13 264 266 1 259 269" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vocabulary v = sentencepiece(a);
        v.tokens[v.count - 1] = "\u2581\u2581\u2581"; /* no longer two spaces */
        add_token(&v, "<|user|>", 0, CONTROL);
        v.name = cases[i].name;
        tokenizer *t = open_vocabulary(a, &v);
        assert_tokens(a, t,
                      i < 2 ? "<|user|> \t\nhello</s>\nhello<s> hello"
                            : "<|user|> xhello</s>\nhello<s> hello",
                      TOKENIZE_SPECIAL, cases[i].tokens);
        close_vocabulary(t);
    }
}

ARENA_TEST(text_is_composed_for_models_trained_that_way)
{
    static const char *const composing[] = { "qwen2", "qwen35", "command-r", "deepseek-r1-qwen" };
    char *composed;
    size_t length;
    if (!split_compose("\u00e9", 2, &composed, &length))
        skip(); /* built without utf8proc */
    free(composed);
    for (size_t i = 0; i < sizeof composing / sizeof *composing; i++) {
        vocabulary v = byte_level(a, composing[i]);
        tokenizer *t = open_vocabulary(a, &v);
        assert_tokens(a, t, "e\u0301", 0, "195 169");
        assert_tokens(a, t, "\u00e9", 0, "195 169");
        assert_tokens(a, t, "\u1112\u1161\u11ab", 0, "237 149 156");
        assert_tokens(a, t, "<tool>e\u0301", 0, "265 195 169");
        assert_tokens(a, t,
                      "\xFF"
                      "e\u0301\xCC",
                      0, "255 195 169 204");
        close_vocabulary(t);
    }
    vocabulary v = byte_level(a, "llama-bpe");
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "e\u0301", 0, "101 204 129");
    close_vocabulary(t);
}

/* Vocabularies with hash collisions, or with the worst search order, must be as fast as others. */
ARENA_TEST(no_vocabulary_makes_the_tokenizer_slow)
{
    enum { TOKENS = 100000, LETTERS = 50000 };
    gguf_writer w = gguf_start(a, 3, 0, 5);
    gguf_put_text(&w, "tokenizer.ggml.model", "gpt2");
    gguf_put_text(&w, "tokenizer.ggml.pre", "gpt-2");
    gguf_put_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, TOKENS);
    for (unsigned i = 0; i < TOKENS; i++)
        gguf_put_string(&w, arena_format(a, "aaaaaaaa%u", i));
    gguf_put_array(&w, "tokenizer.ggml.token_type", GGUF_I32, TOKENS);
    for (unsigned i = 0; i < TOKENS; i++)
        gguf_put(&w, CONTROL, 4);
    gguf_put_array(&w, "tokenizer.ggml.merges", GGUF_STRING, 0);
    assert_true(gguf_open_memory("m", w.out.text, w.out.length, &file, &error));
    tokenizer *t = tokenizer_open(&file, &error);
    assert_non_null(t);
    strbuf text = strbuf_new(a);
    for (unsigned i = 0; i < LETTERS; i++)
        strbuf_char(&text, 'a');
    clock_t begun = clock();
    token_list tokens = { 0 };
    assert_true(tokenizer_encode(t, text.text, text.length, TOKENIZE_SPECIAL, &tokens));
    assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 5);
    free(tokens.items);
    close_vocabulary(t);
}

ARENA_TEST(byte_level_bpe_merges_the_first_listed_pair)
{
    vocabulary v = byte_level(a, "gpt-2");
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "hello", TOKENIZE_START, "259");
    assert_tokens(a, t, "hello hello", 0, "259 260");
    assert_tokens(a, t, "hhell", 0, "104 258");
    assert_tokens(a, t, "elll", 0, "101 257 108");
    assert_tokens(a, t, "abc", 0, "97 98 99"); /* "ab" is not a token */
    assert_tokens(a, t, "\n\n", 0, "10 10");
    assert_tokens(a, t, "\xFF\u00e9", 0, "255 195 169");
    close_vocabulary(t);
}

ARENA_TEST(some_models_keep_a_word_that_is_a_token)
{
    vocabulary v = byte_level(a, "llama-bpe");
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "abc\n\n", TOKENIZE_START, "263 261 262");
    assert_tokens(a, t, "abcd", 0, "97 98 99 100");
    close_vocabulary(t);
}

/* add_bos_token and add_space_prefix of a file are ignored. */
ARENA_TEST(gemma_4_merges_characters_by_rank)
{
    vocabulary v = gemma_4(a);
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "", TOKENIZE_START, "2");
    assert_tokens(a, t, "he he", TOKENIZE_START, "2 270 271");
    assert_tokens(a, t, "<bos>he", TOKENIZE_START | TOKENIZE_SPECIAL, "2 270");
    assert_tokens(a, t, " he\u4f60  h", 0, "271 268 8 266");
    assert_tokens(a, t, "he\u4f60", 0, "274");
    assert_tokens(a, t, "lo\u00e9", 0, "117 120 204 178"); /* no merge forms "lo" */
    assert_tokens(a, t, "e\n\ne\n\n\n\n\n\n\n", 0, "267 272 267 272 272 272 269");
    assert_tokens(a, t, "\n\n\n\n\n\n", 0, "272 272 272");
    assert_tokens(a, t, "\n\n\n\n\n", 0, "273");
    assert_tokens(a, t, "\xFFh", 0, "264 266");
    assert_tokens(a, t, "<|turn>h<turn|>\n<|channel>", TOKENIZE_SPECIAL, "4 266 5 269 6");
    assert_tokens(a, t, "<|channel>e", 0, "6 267");
    close_vocabulary(t);
}

ARENA_TEST(gemma_4_has_three_ends)
{
    vocabulary v = gemma_4(a);
    v.eos = 5; /* names the end of a turn */
    tokenizer *t = open_vocabulary(a, &v);
    for (uint32_t i = 0; i < v.count; i++)
        assert_int_equal(tokenizer_is_end(t, i), i == 1 || i == 5 || i == 7);
    assert_piece(t, 271, " he", 3);
    assert_piece(t, 6, "<|channel>", 10);
    assert_piece(t, 9 + 0x41, "A", 1);
    assert_piece(t, 2, "", 0);
    close_vocabulary(t);
}

ARENA_TEST(the_longest_special_token_is_recognized)
{
    vocabulary v = byte_level(a, "qwen2");
    tokenizer *t = open_vocabulary(a, &v);
    assert_tokens(a, t, "<tool>s<tool><|im_end|>\n", TOKENIZE_SPECIAL, "266 265 264 10");
    assert_tokens(a, t, "<tool>s<tool>", 0, "266 265");
    assert_tokens(a, t, "<too", TOKENIZE_SPECIAL, "60 116 111 111");
    close_vocabulary(t);
}

ARENA_TEST(pieces_are_the_bytes_of_tokens)
{
    vocabulary v = sentencepiece(a);
    tokenizer *t = open_vocabulary(a, &v);
    assert_piece(t, 0, "", 0);
    assert_piece(t, 1, "", 0);
    assert_piece(t, 3, "\0", 1);
    assert_piece(t, 258, "\xFF", 1);
    assert_piece(t, 269, " hello", 6);
    assert_piece(t, 270, "  ", 2);
    assert_piece(t, v.count, "", 0);
    assert_piece(t, UINT32_MAX, "", 0);
    close_vocabulary(t);
    v = byte_level(a, "gpt-2");
    t = open_vocabulary(a, &v);
    for (unsigned i = 0; i < 256; i++)
        assert_piece(t, i, &(char){ (char)i }, 1);
    assert_piece(t, 260, " hello", 6);
    assert_piece(t, 262, "\n\n", 2);
    assert_piece(t, 264, "", 0);
    assert_piece(t, 265, "<tool>", 6);
    close_vocabulary(t);
}

ARENA_TEST(ends_are_known_by_key_and_by_name)
{
    vocabulary v = byte_level(a, "gpt-2");
    v.eos = 5;
    uint32_t end = add_token(&v, "<|end|>", 0, CONTROL);
    tokenizer *t = open_vocabulary(a, &v);
    assert_true(tokenizer_is_end(t, 5));
    assert_true(tokenizer_is_end(t, 264));
    assert_true(tokenizer_is_end(t, end));
    assert_false(tokenizer_is_end(t, 263));
    assert_false(tokenizer_is_end(t, UINT32_MAX));
    close_vocabulary(t);
    /* gpt-oss ends each message of an answer with <|end|> and the answer with <|return|>. */
    uint32_t answer = add_token(&v, "<|return|>", 0, CONTROL);
    t = open_vocabulary(a, &v);
    assert_true(tokenizer_is_end(t, answer));
    assert_false(tokenizer_is_end(t, end));
    assert_piece(t, end, "<|end|>", 7);
    assert_piece(t, answer, "", 0);
    close_vocabulary(t);
}

ARENA_TEST(the_end_of_a_text_ends_answers_beside_an_end_of_turns)
{
    vocabulary v = byte_level(a, "gpt-2");
    v.eos = 5;
    uint32_t control = add_token(&v, "</s>", 0, CONTROL), text = add_token(&v, "</s>", 0, NORMAL);
    tokenizer *t = open_vocabulary(a, &v);
    assert_true(tokenizer_is_end(t, control));
    assert_false(tokenizer_is_end(t, text));
    close_vocabulary(t);
}

TEST(text_is_shown_by_whole_characters)
{
    assert_int_equal(tokenizer_whole_bytes("", 0), 0);
    assert_int_equal(tokenizer_whole_bytes("abc", 3), 3);
    assert_int_equal(tokenizer_whole_bytes("ab\xC3", 3), 2);
    assert_int_equal(tokenizer_whole_bytes("ab\xC3\xA9", 4), 4);
    assert_int_equal(tokenizer_whole_bytes("\xE2\x82", 2), 0);
    assert_int_equal(tokenizer_whole_bytes("a\xF0\x9F\x98", 4), 1);
    assert_int_equal(tokenizer_whole_bytes("a\xF0\x9F\x98\x80", 5), 5);
    assert_int_equal(tokenizer_whole_bytes("\x80\x80\x80\x80", 4), 4); /* never a valid character */
}

/* Checks the message for a file that lacks a required key. */

static void refuse_file(const gguf_writer *w, const char *message)
{
    assert_true(gguf_open_memory("m", w->out.text, w->out.length, &file, &error));
    assert_null(tokenizer_open(&file, &error));
    assert_string_equal(error.message, message);
    gguf_close(&file);
}

static void refuse(arena *a, const vocabulary *v, const char *message)
{
    assert_null(open_vocabulary(a, v));
    assert_string_equal(error.message, message);
    gguf_close(&file);
}

ARENA_TEST(broken_and_unsupported_vocabularies_are_refused)
{
    vocabulary v = sentencepiece(a);
    v.model = "bert";
    refuse(a, &v, "tokenizer.ggml.model is \"bert\"; supported are: llama gpt2 gemma4");
    v = sentencepiece(a);
    v.count = 0;
    refuse(a, &v, "the file has no tokenizer.ggml.tokens");
    v = byte_level(a, "gpt-2");
    v.bos = -1;
    v.adds_bos = 1;
    refuse(a, &v, "texts start with a BOS token, but tokenizer.ggml.bos_token_id is missing");
    v.bos = 100000;
    refuse(a, &v, "texts start with a BOS token, but tokenizer.ggml.bos_token_id is missing");
    gguf_writer w = gguf_start(a, 3, 0, 0);
    refuse_file(&w, "the file has no tokenizer.ggml.model");
    w = gguf_start(a, 3, 0, 3);
    gguf_put_text(&w, "tokenizer.ggml.model", "llama");
    gguf_put_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, 1);
    gguf_put_string(&w, "a");
    gguf_put_array(&w, "tokenizer.ggml.scores", GGUF_F32, 0);
    refuse_file(&w, "tokenizer.ggml.scores has no number for token 0");
    w = gguf_start(a, 3, 0, 2);
    gguf_put_text(&w, "tokenizer.ggml.model", "gpt2");
    gguf_put_text(&w, "tokenizer.ggml.tokens", "a");
    refuse_file(&w, "the file has no tokenizer.ggml.tokens");
    w = gguf_start(a, 3, 0, 2);
    gguf_put_text(&w, "tokenizer.ggml.model", "gpt2");
    gguf_put_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, 1);
    gguf_put_string(&w, "a");
    refuse_file(&w, "the file has no tokenizer.ggml.merges");
}

/* Returns the next random number. */

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void put_character(strbuf *s, uint32_t code)
{
    if (code < 0x80) {
        strbuf_char(s, (char)code);
    } else if (code < 0x800) {
        strbuf_char(s, (char)(0xC0 | code >> 6));
        strbuf_char(s, (char)(0x80 | (code & 63)));
    } else if (code < 0x10000) {
        strbuf_char(s, (char)(0xE0 | code >> 12));
        strbuf_char(s, (char)(0x80 | (code >> 6 & 63)));
        strbuf_char(s, (char)(0x80 | (code & 63)));
    } else {
        strbuf_char(s, (char)(0xF0 | code >> 18));
        strbuf_char(s, (char)(0x80 | (code >> 12 & 63)));
        strbuf_char(s, (char)(0x80 | (code >> 6 & 63)));
        strbuf_char(s, (char)(0x80 | (code & 63)));
    }
}

/* Returns random text, mostly typical model output. SentencePiece treats U+2581 as a space. */
static strbuf random_text(arena *a, uint64_t *state)
{
    static const char common[] = "hello theree   aabcn in on\n\n't 12309.!?<|>s/";
    strbuf s = strbuf_new(a);
    for (uint32_t n = next_random(state) % 120; n; n--) {
        uint32_t code = next_random(state) % 0x11000, kind = next_random(state) % 8;
        bool is_none = code == 0x2581 || (code >= 0xD800 && code <= 0xDFFF);
        if (kind < 6 || is_none)
            strbuf_char(&s, common[next_random(state) % (sizeof common - 1)]);
        else if (kind == 6)
            put_character(&s, code % 0x250);
        else
            put_character(&s, code);
    }
    return s;
}

static strbuf pieces_of(arena *a, const tokenizer *t, const token_list *tokens)
{
    strbuf s = strbuf_new(a);
    for (size_t i = 0; i < tokens->count; i++) {
        gguf_string piece = tokenizer_piece(t, tokens->items[i]);
        strbuf_bytes(&s, piece.bytes, piece.length);
    }
    return s;
}

/* Checks that decoding inverts encoding, up to normal form C if the model composes. */
static void assert_round_trips(arena *a, const tokenizer *t, bool composes, unsigned count)
{
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint64_t state = seed;
        token_list tokens = { 0 };
        strbuf text = random_text(a, &state);
        char *composed = NULL;
        size_t length;
        if (composes && !split_compose(text.text, text.length, &composed, &length))
            skip(); /* built without utf8proc */
        assert_true(tokenizer_encode(t, text.text, text.length, TOKENIZE_START, &tokens));
        if (composed) {
            text = strbuf_new(a);
            strbuf_bytes(&text, composed, length);
            free(composed);
        }
        strbuf back = pieces_of(a, t, &tokens);
        bool added = back.length > text.length && *back.text == ' '; /* a space before the text */
        if (back.length - added != text.length ||
            memcmp(back.text + added, text.text, text.length) != 0)
            fail_msg("seed %u: \"%s\" became \"%s\"", (unsigned)seed, text.text, back.text);
        free(tokens.items);
    }
}

ARENA_TEST(random_texts_round_trip)
{
    static const char *const names[] = { "default",        "gpt-2",  "llama-bpe", "qwen2",
                                         "qwen35",         "gpt-4o", "tekken",    "deepseek-v3",
                                         "deepseek-coder", "falcon", "smollm",    "bailingmoe" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        vocabulary v = byte_level(a, names[i]);
        tokenizer *t = open_vocabulary(a, &v);
        assert_round_trips(a, t, strncmp(names[i], "qwen", 4) == 0, 300);
        close_vocabulary(t);
    }
    vocabulary v = sentencepiece(a);
    v.kinds[v.count - 1] = CONTROL; /* otherwise a space is added after a user-defined token, too */
    tokenizer *t = open_vocabulary(a, &v);
    assert_round_trips(a, t, false, 300);
    close_vocabulary(t);
}

/* Merges by definition: joins the best pair of neighbours, the leftmost of equal pairs, until no
 * pair is a token. Writes the tokens and returns their number. */
static size_t merge_slowly(const vocabulary *v, const char *text, uint32_t *tokens)
{
    size_t count = strlen(text), ends[256];
    for (size_t i = 0; i < count; i++)
        ends[i] = i + 1;
    for (;;) {
        size_t best = count;
        float best_score = -1e9f;
        for (size_t i = 0; i + 1 < count; i++) {
            size_t start = i ? ends[i - 1] : 0, length = ends[i + 1] - start;
            for (uint32_t t = 259; t < v->count; t++) {
                bool is_it = strlen(v->tokens[t]) == length &&
                             memcmp(v->tokens[t], text + start, length) == 0;
                if (is_it && v->scores[t] > best_score) {
                    best = i;
                    best_score = v->scores[t];
                }
            }
        }
        if (best == count)
            break;
        memmove(ends + best, ends + best + 1, (--count - best) * sizeof *ends);
    }
    for (size_t i = 0, start = 0; i < count; start = ends[i++])
        for (uint32_t t = 259; t < v->count; t++)
            if (strlen(v->tokens[t]) == ends[i] - start &&
                memcmp(v->tokens[t], text + start, ends[i] - start) == 0)
                tokens[i] = t;
    return count;
}

/* Returns a vocabulary of three letters and random longer texts of them. Scores are random, some of
 * them equal. */
static vocabulary random_pieces(arena *a, uint64_t *state)
{
    vocabulary v = sentencepiece(a);
    v.count = 259;
    v.adds_space = 0;
    for (uint32_t length = 1; length <= 5; length++) {
        uint32_t texts = length == 1 ? 3 : length == 2 ? 9 : length == 3 ? 27 : 81;
        for (uint32_t i = 0; i < texts && v.count < MAX_TOKENS; i++) {
            char *text = arena_zalloc(a, 8);
            for (uint32_t c = 0, rest = i; c < length; c++, rest /= 3)
                text[c] = (char)('a' + rest % 3);
            if (length == 1 || next_random(state) % 2)
                add_token(&v, text, -(float)(next_random(state) % 40), NORMAL);
        }
    }
    return v;
}

ARENA_TEST(merging_by_a_heap_equals_merging_the_best_pair)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t state = seed;
        vocabulary v = random_pieces(a, &state);
        tokenizer *t = open_vocabulary(a, &v);
        for (unsigned i = 0; i < 20; i++) {
            char text[201] = "";
            uint32_t expected[200];
            token_list tokens = { 0 };
            for (uint32_t c = next_random(&state) % 200; c; c--)
                text[c - 1] = (char)('a' + next_random(&state) % 3);
            size_t count = merge_slowly(&v, text, expected);
            assert_true(tokenizer_encode(t, text, strlen(text), 0, &tokens));
            assert_int_equal(tokens.count, count);
            assert_memory_equal(tokens.items, expected, count * sizeof *expected);
            free(tokens.items);
        }
        close_vocabulary(t);
    }
}

static const char *model_path(arena *a, const char *name)
{
    const char *folder = getenv("PTXGEN_MODELS");
    const char *path = arena_format(a, "%s/%s", folder ? folder : "/nowhere", name);
    FILE *found = fopen(path, "rb");
    if (!found)
        skip();
    fclose(found);
    return path;
}

ARENA_TEST(vocabularies_of_the_models_beside_the_project_round_trip)
{
    static const char *const names[] = { "llama",   "qwen2",   "gemma3",    "mistral3",
                                         "gpt_oss", "granite", "deepseek2", "stories260K" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = model_path(a, arena_format(a, "%s.gguf", names[i]));
        assert_true(gguf_open(path, &file, &error));
        tokenizer *t = tokenizer_open(&file, &error);
        if (!t)
            fail_msg("%s: %s", names[i], error.message);
        assert_round_trips(a, t, strcmp(names[i], "qwen2") == 0, 100);
        close_vocabulary(t);
    }
}

/* The text generated by a trained model must encode to the generated tokens. */
ARENA_TEST(a_model_s_story_encodes_to_its_tokens)
{
    assert_true(gguf_open(model_path(a, "stories260K.gguf"), &file, &error));
    FILE *lines = fopen(model_path(a, "stories260K.greedy_tokens.txt"), "r");
    tokenizer *t = tokenizer_open(&file, &error);
    token_list written = { 0 }, encoded = { 0 };
    unsigned token;
    written.items = arena_alloc(a, 300 * sizeof *written.items);
    while (written.count < 300 && fscanf(lines, "%*u %u %*f %*f", &token) == 1)
        written.items[written.count++] = token;
    fclose(lines);
    assert_true(written.count >= 200);
    strbuf text = pieces_of(a, t, &written);
    assert_memory_equal(text.text, " Once upon a time, there was a little girl named Lily.", 54);
    assert_true(tokenizer_encode(t, text.text + 1, text.length - 1, TOKENIZE_START, &encoded));
    assert_int_equal(encoded.items[0], 1);
    assert_int_equal(encoded.count, written.count + 1);
    assert_memory_equal(encoded.items + 1, written.items, written.count * sizeof *written.items);
    assert_true(tokenizer_is_end(t, 2));
    free(encoded.items);
    close_vocabulary(t);
}
