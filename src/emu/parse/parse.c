/* Modules, entries and statements: parses PTX text into an emu_module. */
#include "emu/parse/parser.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SCOPES = 64, MAX_OPS = 1 << 20 };

/* Notes an unknown directive, which has no effect. */
static void note_directive(parser *p)
{
    lexer *l = &p->lex;
    const char *what = arena_format(p->arena, "%s is unknown or misplaced", lexer_shown(l));
    if (l->token.kind != TOKEN_DIRECTIVE)
        lexer_error(l, parser_line(p), "%s", what);
    parser_note_unknown(p, parser_line(p), what);
    lexer_next(l);
}

/* Skips directives that may occur anywhere and do not affect a run. */
static bool parse_ignored(parser *p)
{
    lexer *l = &p->lex;
    if (lexer_is_directive(l, "loc") || lexer_is_directive(l, "file")) {
        for (unsigned line = parser_line(p); l->token.kind != TOKEN_END && parser_line(p) == line;)
            lexer_next(l);
    } else if (lexer_accept_directive(l, "section")) {
        while (l->token.kind == TOKEN_DIRECTIVE)
            lexer_next(l);
        if (!lexer_is(l, "{"))
            lexer_error(l, parser_line(p), "expected '{' before %s", lexer_shown(l));
        lexer_skip_group(l, "{", "}");
    } else if (lexer_accept_directive(l, "pragma")) {
        /* Compilers load whole words and name the bytes in use: padding may be uninitialised. */
        static const char used[] = "used_bytes_mask ";
        for (; l->token.kind == TOKEN_STRING || lexer_is(l, ","); lexer_next(l))
            if (strncmp(l->token.text, used, strlen(used)) == 0)
                p->unused_bytes = ~strtoull(l->token.text + strlen(used), NULL, 0) & UINT32_MAX;
        lexer_expect(l, ";");
    } else {
        return false;
    }
    return true;
}

static void parse_instruction(parser *p, const char *name, unsigned line, const operand *guard)
{
    lexer *l = &p->lex;
    instruction in = {
        .line = line, .name = name, .guard = guard, .unused_bytes = p->unused_bytes
    };
    p->unused_bytes = 0;
    if (p->entry->ops.count >= MAX_OPS)
        lexer_error(l, line, "an entry has at most %d instructions", MAX_OPS);
    if (strcmp(name, "call") == 0) {
        parser_call(p, line, guard);
        return;
    }
    if (strcmp(name, "ret") == 0 && p->call) {
        parser_return(p, line, guard);
        return;
    }
    for (; l->token.kind == TOKEN_DIRECTIVE; lexer_next(l)) {
        if (in.modifier_count == MAX_MODIFIERS)
            lexer_error(l, line, "'%s' has too many modifiers", name);
        in.modifiers[in.modifier_count++] = l->token.text;
    }
    const char *unknown = decode_find(p, &in);
    if (unknown) {
        decode_unknown(p, line, guard, unknown);
        parser_skip_statement(p);
        return;
    }
    if (!lexer_is(l, ";")) {
        do {
            if (in.operand_count == MAX_OPERANDS)
                lexer_error(l, line, "'%s' has too many operands", name);
            in.operands[in.operand_count++] = parser_operand(p);
        } while (lexer_accept(l, ","));
    }
    lexer_expect(l, ";");
    if (strcmp(name, "brx") == 0)
        parser_table_branch(p, &in);
    else
        decode_instruction(p, &in);
}

static void parse_statement(parser *p);

/* Parses { statements } with their own scope. */
static void parse_body(parser *p)
{
    unsigned line = parser_line(p);
    size_t opened = symbols_open(&p->symbols), references = p->references.count;
    if (p->symbols.depth > MAX_SCOPES)
        lexer_error(&p->lex, line, "scopes are nested too deeply");
    lexer_expect(&p->lex, "{");
    while (!lexer_is(&p->lex, "}")) {
        if (p->lex.token.kind == TOKEN_END)
            lexer_error(&p->lex, line, "'{' without '}'");
        parse_statement(p);
    }
    lexer_next(&p->lex);
    parser_resolve_labels(p, references);
    symbols_close(&p->symbols, opened);
}

static void parse_statement(parser *p)
{
    lexer *l = &p->lex;
    unsigned line = parser_line(p);
    ptx_space space;
    if (lexer_is(l, "{")) {
        parse_body(p);
    } else if (lexer_accept(l, "@")) {
        bool negated = lexer_accept(l, "!");
        line = parser_line(p);
        operand guard = parser_operand(p);
        if (guard.kind != OPERAND_REG || guard.type != TYPE_pred || guard.pair)
            lexer_error(l, line, "a guard must be a predicate register");
        guard.negated = negated;
        line = parser_line(p);
        parse_instruction(p, lexer_expect_name(l, "an instruction"), line, &guard);
    } else if (lexer_accept_directive(l, "reg")) {
        parser_registers(p);
    } else if (parser_space(p, &space)) {
        parser_variables(p, space, false);
    } else if (lexer_accept_directive(l, "param")) {
        parser_variables(p, SPACE_PARAM, false);
    } else if (lexer_accept_directive(l, "extern")) {
        if (!parser_space(p, &space))
            lexer_error(l, line, "expected a state space before %s", lexer_shown(l));
        parser_variables(p, space, true);
    } else if (l->token.kind == TOKEN_NAME) {
        const char *name = lexer_expect_name(l, "an instruction");
        if (!lexer_accept(l, ":"))
            parse_instruction(p, name, line, NULL);
        else if (lexer_accept_directive(l, "branchtargets"))
            parser_targets(p, name, line);
        else if (lexer_is_directive(l, "callprototype") || lexer_is_directive(l, "calltargets"))
            parser_skip_statement(p);
        else
            parser_declare(p, name, SYMBOL_LABEL, line)->index = (uint32_t)p->entry->ops.count;
    } else if (!lexer_accept(l, ";") && !parse_ignored(p)) {
        note_directive(p);
        parser_skip_statement(p);
    }
}

static void parse_extent(parser *p, unsigned extent[3])
{
    extent[0] = extent[1] = extent[2] = 1;
    for (int i = 0; i < 3; i++) {
        extent[i] = (unsigned)parser_in_range(p, "a block dimension", 1, 1024);
        if (!lexer_accept(&p->lex, ","))
            return;
    }
    lexer_error(&p->lex, parser_line(p), "a block has at most three dimensions");
}

static void parse_performance(parser *p)
{
    static const char *const plain[] = { "noreturn", "explicitcluster", "blocksareclusters" };
    static const char *const with_numbers[] = { "minnctapersm", "maxnctapersm", "maxnreg",
                                                "maxclusterrank", "reqnctapercluster" };
    lexer *l = &p->lex;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (lexer_accept_directive(l, plain[i]))
            return;
    for (size_t i = 0; i < sizeof with_numbers / sizeof *with_numbers; i++)
        if (lexer_accept_directive(l, with_numbers[i])) {
            do
                parser_integer(p);
            while (lexer_accept(l, ","));
            return;
        }
    if (lexer_accept_directive(l, "reqntid"))
        parse_extent(p, p->entry->info.reqntid);
    else if (lexer_accept_directive(l, "maxntid"))
        parse_extent(p, p->entry->info.maxntid);
    else if (!parse_ignored(p)) {
        note_directive(p);
        while (l->token.kind != TOKEN_DIRECTIVE && !lexer_is(l, "{") && l->token.kind != TOKEN_END)
            lexer_next(l);
    }
}

/* Places the stack at the end of local memory, after all fixed variables. */
static void place_stack(parser *p)
{
    entry *e = p->entry;
    uint64_t most = 0;
    for (size_t i = 0; i < e->recursive_calls.count; i++) {
        const recursive_call *c = &e->recursive_calls.items[i];
        uint64_t size = 0;
        for (size_t j = 0; j < c->results.count; j++)
            size += c->results.items[j].to->size;
        most = size > most ? size : most;
    }
    if (e->recursive_calls.count)
        e->result_room = parser_hidden(p, "(results)", most, false);
    if (e->has_stack)
        e->stack = parser_hidden(p, "(stack)", 0, true);
}

static void parse_entry(parser *p)
{
    lexer *l = &p->lex;
    unsigned line = parser_line(p);
    entry *e = arena_zalloc(p->arena, sizeof *e);
    p->entry = e;
    e->name = lexer_expect_name(l, "an entry's name");
    e->predicate_count = 2;
    e->shared.end = p->shared_end;
    e->local.end = LOCAL_BASE;
    p->constant_bucket_bits = 0;
    memset(p->special_places, 0, sizeof p->special_places);
    p->constant_next.count = 0;
    p->registers = 0;
    p->calls = 0;
    parser_place(p, 64); /* SINK_PLACE */
    size_t number = p->module->entries.count;
    if (name_map_find_or_add(p->arena, &p->module->entry_numbers, e->name, number) != number)
        lexer_error(l, line, "'%s' is declared twice", e->name);

    size_t opened = symbols_open(&p->symbols);
    if (lexer_accept(l, "(") && !lexer_accept(l, ")")) {
        do
            parser_param(p);
        while (lexer_accept(l, ","));
        lexer_expect(l, ")");
    }
    while (!lexer_is(l, "{"))
        parse_performance(p);
    parse_body(p);
    if (p->references.count)
        lexer_error(l, p->references.items[0].line, "'%s' is not declared",
                    p->references.items[0].label);
    symbols_close(&p->symbols, opened);

    /* a thread that reaches the end exits */
    parser_emit(p, l->token.line, NULL, "exit", NULL, 0);
    place_stack(p);
    flow_analyse(p->arena, e);
    *VEC_PUSH(p->arena, &p->module->entries) = e;
    p->entry = NULL;
}

static void parse_header(parser *p)
{
    lexer *l = &p->lex;
    if (!lexer_accept_directive(l, "version"))
        lexer_error(l, parser_line(p), "a module starts with '.version', not %s", lexer_shown(l));
    const char *version = l->token.text;
    if (l->token.kind != TOKEN_FLOAT64 || version[0] < '3' || version[0] > '9' ||
        version[1] != '.' || strspn(version + 2, "0123456789") != 1)
        lexer_error(l, parser_line(p), "unknown PTX ISA version %s", lexer_shown(l));
    p->module->isa = (unsigned)(version[0] - '0') * 10 + (unsigned)(version[2] - '0');
    lexer_next(l);
    if (!lexer_accept_directive(l, "target"))
        lexer_error(l, parser_line(p), "expected '.target' before %s", lexer_shown(l));
    do { /* sm_80, sm_90a; other words are options */
        const char *name = lexer_expect_name(l, "a target");
        if (strncmp(name, "sm_", 3) == 0)
            for (name += 3; *name >= '0' && *name <= '9' && p->module->target < 1000; name++)
                p->module->target = p->module->target * 10 + (unsigned)(*name - '0');
        p->module->specific |= *name == 'a';
    } while (lexer_accept(l, ","));
    if (lexer_accept_directive(l, "address_size")) {
        unsigned line = parser_line(p);
        if (parser_integer(p) != 64)
            lexer_error(l, line, "only 64-bit addresses are supported");
    }
}

static void parse_module(parser *p)
{
    lexer *l = &p->lex;
    parse_header(p);
    while (l->token.kind != TOKEN_END) {
        ptx_space space;
        bool external = lexer_accept_directive(l, "extern");
        if (!external && !lexer_accept_directive(l, "visible") &&
            !lexer_accept_directive(l, "weak"))
            lexer_accept_directive(l, "common");
        if (lexer_accept_directive(l, "entry")) {
            parse_entry(p);
        } else if (lexer_accept_directive(l, "func")) {
            parser_function(p);
        } else if (parser_space(p, &space)) {
            parser_variables(p, space, external);
        } else if (!parse_ignored(p)) { /* unknown: skips to ; or past a body */
            note_directive(p);
            while (!lexer_is(l, ";") && !lexer_is(l, "{") && l->token.kind != TOKEN_END)
                lexer_next(l);
            if (!lexer_is(l, "{"))
                lexer_expect(l, ";");
            else
                lexer_skip_group(l, "{", "}");
        }
    }
}

static emu_module *load_module(arena *a, const char *text, size_t length, bool defers,
                               emu_report *report)
{
    parser *p = arena_zalloc(a, sizeof *p);
    emu_report unused;
    jmp_buf failed;
    p->arena = a;
    p->parse_body = parse_body;
    p->defers = defers;
    p->lex.report = report ? report : &unused;
    *p->lex.report = (emu_report){ .fault = EMU_OK, .message = "" };
    p->module = arena_zalloc(a, sizeof *p->module);
    p->shared_end = SHARED_STATIC_BASE;
    p->lex.failed = &failed;
    if (setjmp(failed))
        return NULL;
    lexer_start(&p->lex, a, text, length);
    p->start = p->lex;
    parse_module(p);
    return p->module;
}

emu_module *emu_load(arena *a, const char *text, size_t length, emu_report *report)
{
    return load_module(a, text, length, false, report);
}

emu_module *emu_load_any(arena *a, const char *text, size_t length, emu_report *report)
{
    return load_module(a, text, length, true, report);
}
