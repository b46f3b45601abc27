/* What the emulator does not know: it is noted, or ends the parse, and is passed over. */
#include "emu/parse/parser.h"

void parser_skip_statement(parser *p)
{
    lexer *l = &p->lex;
    while (!lexer_is(l, ";") && !lexer_is(l, "}") && l->token.kind != TOKEN_END)
        if (lexer_is(l, "{"))
            lexer_skip_braces(l);
        else
            lexer_next(l);
    lexer_expect(l, ";");
}

void parser_note_unknown(parser *p, unsigned line, const char *what)
{
    if (!p->defers)
        lexer_error(&p->lex, line, "%s", what);
    *VEC_PUSH(p->arena, &p->module->unknown) =
        (emu_report){ .fault = EMU_UNKNOWN, .message = what, .line = line };
}
