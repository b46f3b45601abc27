/* Names in PTX text, and what the emulator does not know, which is noted or ends the parse. */
#include "emu/parse/parser.h"

enum { FIRST_BUCKETS = 256 };

static size_t bucket_of(const symbols *s, const char *name, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return (hash ^ hash >> 16) & (s->buckets - 1);
}

/* Makes a symbol the head of its chain: newer ones come first. */
static void link_symbol(symbols *s, size_t index)
{
    symbol *added = &s->list.items[index];
    uint32_t *head = &s->heads[bucket_of(s, added->name, strlen(added->name))];
    added->next = *head;
    *head = (uint32_t)index + 1;
}

size_t symbols_open(symbols *s)
{
    s->depth++;
    return s->list.count;
}

void symbols_close(symbols *s, size_t opened)
{
    while (s->list.count > opened) {
        const symbol *last = &s->list.items[--s->list.count];
        s->heads[bucket_of(s, last->name, strlen(last->name))] = last->next;
    }
    s->depth--;
}

symbol *symbols_find_start(symbols *s, const char *name, size_t length)
{
    if (!s->buckets)
        return NULL;
    for (uint32_t i = s->heads[bucket_of(s, name, length)]; i; i = s->list.items[i - 1].next) {
        symbol *found = &s->list.items[i - 1];
        if ((found->depth == 0 || found->depth >= s->floor) &&
            strncmp(found->name, name, length) == 0 && !found->name[length])
            return found;
    }
    return NULL;
}

symbol *symbols_find(symbols *s, const char *name)
{
    return symbols_find_start(s, name, strlen(name));
}

symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind)
{
    const symbol *known = symbols_find(s, name);
    if (known && known->depth == s->depth)
        return NULL;
    if (s->list.count == s->buckets) { /* chains stay short however many names there are */
        s->buckets = s->buckets ? 2 * s->buckets : FIRST_BUCKETS;
        s->heads = arena_zalloc(a, s->buckets * sizeof *s->heads);
        for (size_t i = 0; i < s->list.count; i++)
            link_symbol(s, i);
    }
    *VEC_PUSH(a, &s->list) = (symbol){ .name = name, .kind = kind, .depth = s->depth };
    link_symbol(s, s->list.count - 1);
    return &s->list.items[s->list.count - 1];
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
