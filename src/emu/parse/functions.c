/* The functions of a module: their text, parameters and addresses. */
#include "emu/parse/parser.h"

enum { MOST_SIZES = 256 };

void parser_function(parser *p)
{
    lexer *l = &p->lex;
    function f = { .start = *l };
    lexer_skip_group(l, "(", ")");
    f.name = lexer_expect_name(l, "a function's name");
    lexer_skip_group(l, "(", ")");
    while (!lexer_is(l, "{") && !lexer_is(l, ";")) {
        if (l->token.kind == TOKEN_END)
            lexer_error(l, l->token.line, "a function needs a body or ';'");
        lexer_next(l);
    }
    if (lexer_accept(l, ";"))
        return;
    lexer_skip_group(l, "{", "}");
    size_t number = p->functions.count;
    if (name_map_find_or_add(p->arena, &p->function_numbers, f.name, number) == number)
        *VEC_PUSH(p->arena, &p->functions) = f;
}

static function *known_function(const parser *p, const char *name)
{
    size_t number = name_map_find(&p->function_numbers, name);
    return number < p->functions.count ? &p->functions.items[number] : NULL;
}

const function *function_find(parser *p, const char *name)
{
    const function *f = known_function(p, name);
    lexer here = p->lex;
    if (f || p->functions_are_known)
        return f;
    while (!f && p->lex.token.kind != TOKEN_END)
        if (lexer_accept_directive(&p->lex, "func")) {
            parser_function(p);
            f = known_function(p, name);
        } else {
            lexer_next(&p->lex);
        }
    p->functions_are_known = p->lex.token.kind == TOKEN_END;
    p->lex = here;
    return f;
}

/* Returns true if a body names a function, directly or through other functions. */
static bool reaches(parser *p, const function *from, const char *name)
{
    lexer l = from->start;
    unsigned depth = 0;
    l.failed = p->lex.failed;
    while (!lexer_is(&l, "{"))
        lexer_next(&l);
    do {
        function *f = l.token.kind == TOKEN_NAME ? known_function(p, l.token.text) : NULL;
        if (f && strcmp(f->name, name) == 0)
            return true;
        bool is_new = f && f->visit != p->visits;
        if (is_new)
            f->visit = p->visits;
        if (is_new && reaches(p, f, name))
            return true;
        depth += lexer_is(&l, "{");
        depth -= lexer_is(&l, "}");
        lexer_next(&l);
    } while (depth);
    return false;
}

bool function_recurs(parser *p, const char *name)
{
    function_find(p, ""); /* finds all */
    function *f = known_function(p, name);
    if (f->recurs == MAY_RECUR) {
        p->visits++;
        f->recurs = reaches(p, f, name) ? RECURS : DOES_NOT_RECUR;
    }
    return f->recurs == RECURS;
}

/* Returns true if a token is one of these signs, which surround function names that are values. */
static bool is_one_of(const lexer *l, const char *signs)
{
    return l->token.kind == TOKEN_PUNCTUATION && !l->token.text[1] && strchr(signs, *l->token.text);
}

static void skip_to(lexer *l, const char *signs)
{
    while (l->token.kind != TOKEN_END && !is_one_of(l, signs))
        lexer_next(l);
}

uint64_t function_address(parser *p, const char *name)
{
    lexer *l = &p->lex, here = *l;
    uint64_t next = FUNCTION_BASE;
    function_find(p, ""); /* finds all */
    *l = p->start;
    /* on the first call, gives addresses to functions whose names are used as values */
    for (bool behind = false; !p->pointers_are_known && l->token.kind != TOKEN_END;) {
        if (lexer_is_directive(l, "func") || lexer_is_directive(l, "entry"))
            skip_to(l, "{;");
        else if (l->token.kind == TOKEN_NAME && strcmp(l->token.text, "call") == 0)
            skip_to(l, ";");
        bool is_name = l->token.kind == TOKEN_NAME && behind;
        function *f = is_name ? known_function(p, l->token.text) : NULL;
        behind = is_one_of(l, "=,{(");
        lexer_next(l);
        if (f && !f->address && is_one_of(l, ";,})+-"))
            f->address = next += FUNCTION_STRIDE;
    }
    *l = here;
    p->pointers_are_known = true;
    const function *f = known_function(p, name);
    return f ? f->address : 0;
}

/* Reads the sizes of declarations in parentheses, at most MOST_SIZES. */
static size_t read_sizes(lexer *l, uint64_t *sizes)
{
    size_t count = 0;
    if (!lexer_is(l, "("))
        return 0;
    for (lexer_next(l); !lexer_is(l, ")") && l->token.kind != TOKEN_END; lexer_next(l)) {
        bool opens = lexer_is(l, "[");
        if (l->token.kind == TOKEN_DIRECTIVE && emu_type_named(l->token.text) && count < MOST_SIZES)
            sizes[count++] = emu_type_bytes(emu_type_named(l->token.text));
        if (opens && count) {
            lexer_next(l);
            sizes[count - 1] *= l->token.bits;
        }
    }
    lexer_next(l);
    return count;
}

bool function_takes(parser *p, const function *f, const uint64_t *results, size_t result_count,
                    const uint64_t *arguments, size_t count)
{
    uint64_t sizes[MOST_SIZES];
    lexer l = f->start;
    l.failed = p->lex.failed;
    size_t found = read_sizes(&l, sizes);
    if (found != result_count || memcmp(sizes, results, found * sizeof *sizes) != 0)
        return false;
    lexer_next(&l); /* its name */
    found = read_sizes(&l, sizes);
    return found == count && memcmp(sizes, arguments, found * sizeof *sizes) == 0;
}
