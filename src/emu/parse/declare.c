/* Declarations: registers, variables of all state spaces, parameters, and labels. */
#include "emu/parse/parser.h"

enum {
    MAX_NESTING = 64,
    MAX_REGISTERS = 1 << 20,
    MAX_LOCAL_BYTES = 512 * 1024,
    MAX_LOCAL_EXTENT = 2 * MAX_LOCAL_BYTES, /* including the gaps between arrays */
    MAX_MODULE_BYTES = 1 << 28,             /* global and constant variables */
};

uint64_t parser_in_range(parser *p, const char *what, uint64_t lowest, uint64_t highest)
{
    unsigned line = parser_line(p);
    uint64_t value = (uint64_t)parser_integer(p);
    if (value < lowest || value > highest)
        lexer_error(&p->lex, line, "%s is %llu; it must be %llu to %llu", what, (ull)value,
                    (ull)lowest, (ull)highest);
    return value;
}

static uint64_t parse_align(parser *p)
{
    unsigned line = parser_line(p);
    uint64_t align = parser_in_range(p, "an alignment", 1, 4096);
    if (align & (align - 1))
        lexer_error(&p->lex, line, "alignment %llu is not a power of two", (ull)align);
    return align;
}

symbol *parser_declare(parser *p, const char *name, symbol_kind kind, unsigned line)
{
    symbol *s = symbols_add(&p->symbols, p->arena, name, kind);
    if (!s)
        lexer_error(&p->lex, line, "'%s' is declared twice", name);
    return s;
}

void parser_resolve_labels(parser *p, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < p->references.count; i++) {
        const reference *r = &p->references.items[i];
        const symbol *s = symbols_find(&p->symbols, r->label);
        if (s && s->kind == SYMBOL_LABEL && s->depth == p->symbols.depth)
            p->entry->ops.items[r->op].target = s->index;
        else
            p->references.items[kept++] = *r;
    }
    p->references.count = kept;
}

static ptx_type parse_type(parser *p)
{
    ptx_type type = TYPE_NONE;
    if (p->lex.token.kind == TOKEN_DIRECTIVE)
        type = emu_type_named(p->lex.token.text);
    if (type == TYPE_NONE)
        lexer_error(&p->lex, parser_line(p), "expected a type before %s", lexer_shown(&p->lex));
    lexer_next(&p->lex);
    return type;
}

static const reg *declare_register(parser *p, const char *name, ptx_type type, unsigned line)
{
    parser_refuse_special(p, name, 0, line);
    symbol *s = parser_declare(p, name, SYMBOL_REG, line);
    s->type = type;
    s->index = parser_add_register(p, name, type);
    return &p->entry->regs.items[s->index];
}

const reg *parser_register(parser *p)
{
    ptx_type type = parse_type(p);
    unsigned line = parser_line(p);
    return declare_register(p, lexer_expect_name(&p->lex, "a register's name"), type, line);
}

void parser_registers(parser *p)
{
    ptx_type type = parse_type(p);
    do {
        unsigned line = parser_line(p);
        const char *name = lexer_expect_name(&p->lex, "a register's name");
        if (lexer_accept(&p->lex, "<")) {
            uint64_t count =
                parser_in_range(p, "the number of registers", 0, MAX_REGISTERS - p->registers);
            p->registers += count;
            if (count)
                parser_refuse_special(p, name, count, line);
            symbol *s = parser_declare(p, name, SYMBOL_REG_RANGE, line);
            s->type = type;
            s->count = (uint32_t)count;
            s->members = arena_zalloc(p->arena, count * sizeof *s->members + 1);
            lexer_expect(&p->lex, ">");
            continue;
        }
        declare_register(p, name, type, line);
    } while (lexer_accept(&p->lex, ","));
    lexer_expect(&p->lex, ";");
}

typedef struct initialiser {
    const variable *of;
    uint8_t *bytes;
    uint64_t size, used;
    ptx_type type;
} initialiser;

/* Parses name or generic(name), plus an offset. A function's address goes to addend. */
static void parse_base(parser *p, relocation *r)
{
    lexer *l = &p->lex;
    unsigned line = parser_line(p);
    const char *name = lexer_expect_name(l, "a name");
    if (strcmp(name, "generic") == 0 && lexer_accept(l, "(")) {
        parse_base(p, r);
        lexer_expect(l, ")");
    } else {
        const symbol *s = symbols_find(&p->symbols, name);
        r->base = s && s->kind == SYMBOL_VARIABLE ? s->variable : NULL;
        r->addend = r->base ? 0 : function_address(p, name);
        bool in_memory =
            r->base && (r->base->space == SPACE_GLOBAL || r->base->space == SPACE_CONST);
        if (!in_memory && !r->addend)
            parser_note_unknown(p, line, arena_format(p->arena, "'%s' is not declared", name));
    }
    if (lexer_is(l, "+") || lexer_is(l, "-"))
        r->addend += (uint64_t)parser_integer(p);
}

/* Parses an address, also masked: 0xff00(name). Returns false and consumes nothing else. */
static bool parse_address_value(parser *p, const initialiser *to, relocation *r)
{
    lexer *l = &p->lex, before = *l;
    *r = (relocation){ .in = to->of, .offset = to->used, .size = emu_type_bytes(to->type) };
    bool masked = l->token.kind == TOKEN_INTEGER;
    if (masked) {
        uint64_t mask = l->token.bits;
        lexer_next(l);
        if (!mask || !lexer_accept(l, "(")) {
            *l = before;
            return false;
        }
        while (!(mask >> r->shift & 1))
            r->shift++;
    } else if (l->token.kind != TOKEN_NAME || strcmp(l->token.text, "WARP_SZ") == 0) {
        return false;
    }
    parse_base(p, r);
    if (masked)
        lexer_expect(l, ")");
    return true;
}

static void parse_initialiser(parser *p, initialiser *to, int depth)
{
    lexer *l = &p->lex;
    if (depth > MAX_NESTING)
        lexer_error(l, parser_line(p), "this initialiser is nested too deeply");
    if (lexer_accept(l, "{")) {
        if (lexer_accept(l, "}"))
            return;
        do
            parse_initialiser(p, to, depth + 1);
        while (lexer_accept(l, ","));
        lexer_expect(l, "}");
        return;
    }
    unsigned line = parser_line(p);
    relocation address;
    operand o = { .kind = OPERAND_INTEGER };
    if (!parse_address_value(p, to, &address))
        o = parser_operand(p);
    else if (address.base && address.base->space != SPACE_SHARED && to->used < to->size)
        *VEC_PUSH(p->arena, &p->module->relocations) = address;
    else
        o.bits = address.addend >> address.shift;
    uint64_t bits = o.bits;
    if (o.kind == OPERAND_FLOAT && to->type == TYPE_f32)
        bits = operand_float_bits(&o, false);
    else if (o.kind != OPERAND_INTEGER && o.kind != OPERAND_FLOAT)
        lexer_error(l, line, "an initial value must be a number or an address");
    unsigned size = emu_type_bytes(to->type);
    if (to->used + size > to->size)
        lexer_error(l, line, "the initialiser has more values than the array has elements");
    for (unsigned i = 0; i < size; i++)
        to->bytes[to->used++] = (uint8_t)(bits >> 8 * i);
}

/* Parses dimensions like [4][8]. Returns false if there are none. An empty dimension is 0. */
static bool parse_dimensions(parser *p, uint64_t *elements)
{
    bool array = false;
    *elements = 1;
    while (lexer_accept(&p->lex, "[")) {
        array = true;
        uint64_t count = 0;
        if (!lexer_is(&p->lex, "]"))
            count = parser_in_range(p, "an array's size", 0, UINT64_C(1) << 31);
        if (count && *elements > (UINT64_C(1) << 40) / count)
            lexer_error(&p->lex, parser_line(p), "the array is too large");
        *elements *= count;
        lexer_expect(&p->lex, "]");
    }
    return array;
}

static void place_variable(parser *p, variable *v, unsigned line)
{
    entry *e = p->entry;
    if (v->space == SPACE_GLOBAL || v->space == SPACE_CONST) {
        v->index = (uint32_t)p->module->globals.count;
        name_map_find_or_add(p->arena, &p->module->global_numbers, v->name, v->index);
        *VEC_PUSH(p->arena, &p->module->globals) = v;
        return;
    }
    bool shared = v->space == SPACE_SHARED;
    if (shared && v->dynamic) {
        v->offset = SHARED_DYNAMIC_BASE;
        return;
    }
    if (!shared && !e)
        lexer_error(&p->lex, line, ".local variables must be declared in an entry");
    uint64_t *end = !shared ? &e->local.end : e ? &e->shared.end : &p->shared_end;
    uint64_t limit = shared ? SHARED_DYNAMIC_BASE : LOCAL_BASE + MAX_LOCAL_EXTENT;
    int most = shared ? MAX_SHARED_BYTES : MAX_LOCAL_BYTES;
    v->offset = round_up(*end, v->align > ARRAY_GAP ? v->align : ARRAY_GAP);
    *end = v->offset + v->size + ARRAY_GAP;
    if (v->size > (uint64_t)most || *end > limit)
        lexer_error(&p->lex, line, "'%s' does not fit into %s memory of %d bytes", v->name,
                    shared ? "shared" : "local", most);
    if (shared)
        return;
    v->parameter = v->space == SPACE_PARAM;
    v->space = SPACE_LOCAL;
    *VEC_PUSH(p->arena, &e->local.list) = v;
}

void parser_variables(parser *p, ptx_space space, bool external)
{
    lexer *l = &p->lex;
    uint64_t align = 0;
    unsigned vector = 1;
    for (;;) {
        if (lexer_accept_directive(l, "align"))
            align = parse_align(p);
        else if (lexer_accept_directive(l, "v2"))
            vector = 2;
        else if (lexer_accept_directive(l, "v4"))
            vector = 4;
        else if (lexer_accept_directive(l, "attribute")) /* .managed, .unified: no effect */
            lexer_skip_group(l, "(", ")");
        else
            break;
    }
    ptx_type type = parse_type(p);
    if (type == TYPE_pred)
        lexer_error(l, parser_line(p), "a variable cannot be of type .pred");
    do {
        unsigned line = parser_line(p);
        variable *v = arena_zalloc(p->arena, sizeof *v);
        v->name = lexer_expect_name(l, "a variable's name");
        v->space = space;
        uint64_t elements, natural = (uint64_t)emu_type_bytes(type) * vector;
        bool array = parse_dimensions(p, &elements);
        v->align = align ? align : natural;
        v->dynamic = array && elements == 0 && external && space == SPACE_SHARED;
        v->size = elements * natural;
        v->element = natural;
        if (external && !v->dynamic)
            lexer_error(l, line, "'%s' is defined in another module, which is not supported",
                        v->name);
        bool in_memory = space == SPACE_GLOBAL || space == SPACE_CONST;
        if (v->size > MAX_MODULE_BYTES - p->global_bytes || (v->size == 0 && !v->dynamic))
            lexer_error(l, line, "'%s' has an invalid size of %llu bytes", v->name, (ull)v->size);
        initialiser to = { .of = v, .size = v->size, .type = type };
        p->global_bytes += in_memory ? v->size : 0;
        if (in_memory)
            v->bytes = to.bytes = arena_zalloc(p->arena, v->size);
        if (lexer_accept(l, "=")) {
            if (!to.bytes)
                lexer_error(l, line, "only .global and .const variables can have initial values");
            parse_initialiser(p, &to, 0);
        }
        if (space == SPACE_LOCAL && p->recurs) { /* allocates it on the stack */
            uint32_t address = parser_add_register(p, v->name, TYPE_u64);
            operand operands[] = { { .kind = OPERAND_REG, .type = TYPE_u64, .index = address },
                                   { .kind = OPERAND_INTEGER, .bits = v->size },
                                   { .kind = OPERAND_INTEGER, .bits = v->align } };
            parser_emit(p, line, NULL, "alloca.u64", operands, 3);
            symbol *s = parser_declare(p, v->name, SYMBOL_REG, line);
            s->type = TYPE_u64;
            s->index = address;
            continue;
        }
        place_variable(p, v, line);
        parser_declare(p, v->name, SYMBOL_VARIABLE, line)->variable = v;
    } while (lexer_accept(l, ","));
    lexer_expect(l, ";");
}

bool parser_space(parser *p, ptx_space *space)
{
    static const struct {
        const char *name;
        ptx_space space;
    } spaces[] = { { "shared", SPACE_SHARED },
                   { "global", SPACE_GLOBAL },
                   { "const", SPACE_CONST },
                   { "local", SPACE_LOCAL } };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (lexer_accept_directive(&p->lex, spaces[i].name)) {
            *space = spaces[i].space;
            return true;
        }
    return false;
}

/* Parses a parameter as a variable. Also returns its type. */
static variable parse_param(parser *p, ptx_type *type)
{
    lexer *l = &p->lex;
    unsigned line = parser_line(p);
    uint64_t align = 0, elements;
    if (!lexer_accept_directive(l, "param"))
        lexer_error(l, line, "expected '.param' before %s", lexer_shown(l));
    if (lexer_accept_directive(l, "align"))
        align = parse_align(p);
    *type = parse_type(p);
    if (lexer_accept_directive(l, "ptr")) {
        ptx_space space;
        parser_space(p, &space);
        if (lexer_accept_directive(l, "align"))
            parse_align(p);
    }
    const char *name = lexer_expect_name(l, "a parameter's name");
    parse_dimensions(p, &elements);
    uint64_t size = elements * emu_type_bytes(*type);
    if (size == 0 || size > MAX_PARAM_BYTES)
        lexer_error(l, line, "parameter '%s' has %llu bytes; all parameters have at most %d", name,
                    (ull)size, MAX_PARAM_BYTES);
    return (variable){ .name = name,
                       .space = SPACE_PARAM,
                       .size = size,
                       .align = align ? align : emu_type_bytes(*type) };
}

void parser_param(parser *p)
{
    unsigned line = parser_line(p);
    ptx_type type;
    variable d = parse_param(p, &type);
    uint64_t offset = round_up(p->entry->info.param_bytes, d.align);
    if (offset + d.size > MAX_PARAM_BYTES)
        lexer_error(&p->lex, line, "parameter '%s' has %llu bytes; all parameters have at most %d",
                    d.name, (ull)d.size, MAX_PARAM_BYTES);
    parser_declare(p, d.name, SYMBOL_PARAM, line)->index = (uint32_t)p->entry->params.count;
    *VEC_PUSH(p->arena, &p->entry->params) =
        (param){ .name = d.name, .size = (size_t)d.size, .offset = (size_t)offset };
    p->entry->info.param_bytes = (size_t)(offset + d.size);
}

const variable *parser_hidden(parser *p, const char *name, uint64_t size, bool dynamic)
{
    variable *v = arena_zalloc(p->arena, sizeof *v);
    *v = (variable){
        .name = name, .space = SPACE_LOCAL, .size = size, .align = ARRAY_GAP, .dynamic = dynamic
    };
    place_variable(p, v, parser_line(p));
    return v;
}

variable *parser_formal(parser *p, variable *given, ptx_type *type)
{
    unsigned line = parser_line(p);
    variable *v = arena_zalloc(p->arena, sizeof *v);
    *v = parse_param(p, type);
    if (!given)
        place_variable(p, v, line);
    parser_declare(p, v->name, SYMBOL_VARIABLE, line)->variable = given ? given : v;
    return v;
}
