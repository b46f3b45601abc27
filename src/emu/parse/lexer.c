#include "emu/parse/lexer.h"

#include "base/strbuf.h"

enum { MAX_SHOWN = 40 };

void lexer_error(lexer *l, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *l->report = (emu_report){ .fault = EMU_SYNTAX,
                               .message = arena_vformat(l->arena, format, args),
                               .line = line };
    va_end(args);
    longjmp(*l->failed, 1);
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

static char peek(const lexer *l, size_t ahead)
{
    return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : '\0';
}

static void skip_space(lexer *l)
{
    while (l->at < l->end) {
        char c = *l->at;
        if (c == '/' && peek(l, 1) == '/') {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else if (c == '/' && peek(l, 1) == '*') {
            unsigned start = l->line;
            for (l->at += 2; !(peek(l, 0) == '*' && peek(l, 1) == '/');) {
                if (l->at == l->end)
                    lexer_error(l, start, "unterminated comment");
                l->line += *l->at++ == '\n';
            }
            l->at += 2;
        } else if (c == ' ' || (c >= '\t' && c <= '\r' && c != '\v')) {
            l->line += c == '\n';
            l->at++;
        } else {
            return;
        }
    }
}

static const char *take_text(lexer *l, const char *start)
{
    size_t length = (size_t)(l->at - start);
    if (length > MAX_NAME)
        lexer_error(l, l->line, "a name is longer than %d characters", MAX_NAME);
    return arena_copy(l->arena, start, length);
}

static int digit_value(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 16;
}

static void lex_digits(lexer *l, unsigned base)
{
    const char *start = l->at;
    uint64_t value = 0;
    for (; (unsigned)digit_value(peek(l, 0)) < base; l->at++) {
        unsigned digit = (unsigned)digit_value(*l->at);
        if (value > (UINT64_MAX - digit) / base)
            lexer_error(l, l->line, "this number has more than 64 bits");
        value = value * base + digit;
    }
    if (l->at == start)
        lexer_error(l, l->line, "a number has no digits");
    l->token.bits = value;
}

/* Reads a decimal number. Refuses one that a double cannot represent, to avoid double rounding. */
static void lex_decimal(lexer *l)
{
    uint64_t digits = 0;
    int power = 0;
    bool fraction = false, exact = true;
    for (;; l->at++) {
        char c = peek(l, 0);
        if (c == '.' && !fraction) {
            fraction = true;
        } else if (is_digit(c)) {
            digits = digits * 10 + (uint64_t)(c - '0');
            power -= fraction;
            exact = exact && digits <= UINT64_C(1) << 53;
            if (!exact)
                digits = 0;
        } else {
            break;
        }
    }
    if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
        l->at++;
        bool negative = peek(l, 0) == '-';
        if (negative || peek(l, 0) == '+')
            l->at++;
        lex_digits(l, 10);
        int exponent = l->token.bits < 1000 ? (int)l->token.bits : 1000;
        power += negative ? -exponent : exponent;
    }
    if (!exact || power < -22 || power > 22)
        lexer_error(l, l->line,
                    "this decimal constant is not exact; write it as 0d and 16 "
                    "hexadecimal digits");
    double scale = 1;
    for (int i = power < 0 ? -power : power; i > 0; i--)
        scale *= 10;
    double value = power < 0 ? (double)digits / scale : (double)digits * scale;
    memcpy(&l->token.bits, &value, sizeof value);
    l->token.kind = TOKEN_FLOAT64;
}

static void lex_number(lexer *l)
{
    char first = peek(l, 0), second = peek(l, 1);
    bool single = second == 'f' || second == 'F';
    if (first == '0' && (single || second == 'd' || second == 'D')) {
        const char *start = l->at += 2;
        lex_digits(l, 16);
        if (l->at - start != (single ? 8 : 16))
            lexer_error(l, l->line, "a %s constant must have %d hexadecimal digits",
                        single ? "0f" : "0d", single ? 8 : 16);
        l->token.kind = single ? TOKEN_FLOAT32 : TOKEN_FLOAT64;
        return;
    }
    size_t digits = 0;
    while (is_digit(peek(l, digits)))
        digits++;
    if (peek(l, digits) == '.' || peek(l, digits) == 'e' || peek(l, digits) == 'E') {
        lex_decimal(l);
        return;
    }
    unsigned base = 10;
    if (first == '0' && (second == 'x' || second == 'X'))
        base = 16;
    else if (first == '0' && (second == 'b' || second == 'B'))
        base = 2;
    else if (first == '0' && is_digit(second))
        base = 8;
    if (base == 16 || base == 2)
        l->at += 2;
    lex_digits(l, base);
    if (peek(l, 0) == 'U')
        l->at++;
    if (is_word(peek(l, 0)))
        lexer_error(l, l->line, "unexpected '%c' in a number", peek(l, 0));
    l->token.kind = TOKEN_INTEGER;
}

static void lex_punctuation(lexer *l)
{
    static const char pairs[][3] = { "<<", ">>", "==", "!=", "<=", ">=", "&&", "||" };
    static const char usual[] = ",;[]{}():@+-!|";
    static const char texts[][2] = { ",", ";", "[", "]", "{", "}", "(",
                                     ")", ":", "@", "+", "-", "!", "|" };
    const char *start = l->at;
    char c = *l->at++;
    if (c < ' ' || c > '~')
        lexer_error(l, l->line, "unexpected byte 0x%02x", (unsigned char)c);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (c == pairs[i][0] && peek(l, 0) == pairs[i][1]) {
            l->at++;
            break;
        }
    const char *found = l->at - start == 1 ? strchr(usual, c) : NULL;
    l->token.text = found ? texts[found - usual] : take_text(l, start);
    l->token.kind = TOKEN_PUNCTUATION;
}

void lexer_next(lexer *l)
{
    skip_space(l);
    l->token = (token){ .kind = TOKEN_END, .text = "", .line = l->line };
    if (l->at == l->end)
        return;
    const char *start = l->at;
    char c = *start;
    if (is_digit(c)) {
        lex_number(l);
        l->token.text = take_text(l, start);
    } else if (is_letter(c) || c == '_' || c == '$' || c == '%') {
        for (l->at++; is_word(peek(l, 0)) || peek(l, 0) == '$'; l->at++) {
        }
        l->token.kind = TOKEN_NAME;
        l->token.text = take_text(l, start);
    } else if (c == '.' && is_word(peek(l, 1))) {
        start = ++l->at;
        while (is_word(peek(l, 0)) || (peek(l, 0) == ':' && peek(l, 1) == ':'))
            l->at += peek(l, 0) == ':' ? 2 : 1;
        l->token.kind = TOKEN_DIRECTIVE;
        l->token.text = take_text(l, start);
    } else if (c == '"') {
        start = ++l->at;
        while (l->at < l->end && *l->at != '"' && *l->at != '\n')
            l->at += *l->at == '\\' && peek(l, 1) != '\0' && peek(l, 1) != '\n' ? 2 : 1;
        if (peek(l, 0) != '"')
            lexer_error(l, l->line, "unterminated string");
        l->token.kind = TOKEN_STRING;
        l->token.text = take_text(l, start);
        l->at++;
    } else {
        lex_punctuation(l);
    }
}

void lexer_start(lexer *l, arena *a, const char *text, size_t length)
{
    unsigned line = 1;
    l->arena = a;
    l->at = text;
    l->end = text + length;
    l->line = 1;
    /* ptxas refuses some bytes even in comments */
    for (const char *at = text; at < l->end; line += *at++ == '\n')
        if (*at == '\0' || (unsigned char)*at > '~' + 1)
            lexer_error(l, line, "byte 0x%02x is not allowed in PTX, which is ASCII text%s",
                        (unsigned char)*at, *at ? "" : " that ends at a NUL");
    lexer_next(l);
}

const char *lexer_shown(lexer *l)
{
    if (l->token.kind == TOKEN_END)
        return "the end of the text";
    return arena_format(l->arena, "'%s%.*s'", l->token.kind == TOKEN_DIRECTIVE ? "." : "",
                        MAX_SHOWN, l->token.text);
}

void lexer_skip_group(lexer *l, const char *open, const char *close)
{
    unsigned line = l->token.line, depth = 0;
    if (!lexer_is(l, open))
        return;
    do {
        if (l->token.kind == TOKEN_END)
            lexer_error(l, line, "'%s' without '%s'", open, close);
        depth += lexer_is(l, open);
        depth -= lexer_is(l, close);
        lexer_next(l);
    } while (depth);
}

void lexer_expect(lexer *l, const char *punctuation)
{
    if (!lexer_accept(l, punctuation))
        lexer_error(l, l->token.line, "expected '%s' before %s", punctuation, lexer_shown(l));
}

const char *lexer_expect_name(lexer *l, const char *what)
{
    if (l->token.kind != TOKEN_NAME)
        lexer_error(l, l->token.line, "expected %s before %s", what, lexer_shown(l));
    const char *name = l->token.text;
    lexer_next(l);
    return name;
}
