/* Scopes of names in PTX text, and handling of items that the emulator does not know. */
#include "emu/parse/parser.h"

size_t symbols_open(symbols *s)
{
    s->depth++;
    return s->list.count;
}

void symbols_close(symbols *s, size_t opened)
{
    while (s->list.count > opened) {
        const symbol *last = &s->list.items[--s->list.count];
        s->newest.items[last->number] = last->next;
    }
    s->depth--;
}

symbol *symbols_find(symbols *s, const char *name)
{
    size_t number = name_map_find(&s->numbers, name);
    uint32_t i = number < s->newest.count ? s->newest.items[number] : 0;
    while (i && s->list.items[i - 1].depth && s->list.items[i - 1].depth < s->floor)
        i = s->list.items[i - 1].next;
    return i ? &s->list.items[i - 1] : NULL;
}

symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind)
{
    const symbol *known = symbols_find(s, name);
    if (known && known->depth == s->depth)
        return NULL;
    size_t number = name_map_find_or_add(a, &s->numbers, name, s->newest.count);
    if (number == s->newest.count)
        *VEC_PUSH(a, &s->newest) = 0;
    symbol *added = VEC_PUSH(a, &s->list);
    *added = (symbol){ .name = name,
                       .kind = kind,
                       .depth = s->depth,
                       .number = number,
                       .next = s->newest.items[number] };
    s->newest.items[number] = (uint32_t)s->list.count;
    return added;
}

void parser_skip_statement(parser *p)
{
    lexer *l = &p->lex;
    while (!lexer_is(l, ";") && !lexer_is(l, "}") && l->token.kind != TOKEN_END)
        if (lexer_is(l, "{"))
            lexer_skip_group(l, "{", "}");
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
