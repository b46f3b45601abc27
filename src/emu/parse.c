/* Modules, entries and declarations: from PTX text to an emu_module. */
#include "emu/flow.h"
#include "emu/parser.h"

enum {
    MAX_SCOPES = 64,
    MAX_REGISTERS = 1 << 20,
    MAX_OPS = 1 << 22,
    MAX_LOCAL_BYTES = 512 * 1024,
    MAX_GLOBAL_BYTES = 1 << 30,
};

static unsigned here(const parser *p)
{
    return p->lex.token.line;
}

static uint64_t parse_in_range(parser *p, const char *what, uint64_t lowest, uint64_t highest)
{
    unsigned line = here(p);
    uint64_t value = (uint64_t)parse_integer(p);
    if (value < lowest || value > highest)
        syntax_error(&p->lex, line, "%s is %llu and must be %llu to %llu", what,
                     (unsigned long long)value, (unsigned long long)lowest,
                     (unsigned long long)highest);
    return value;
}

static uint64_t parse_align(parser *p)
{
    unsigned line = here(p);
    uint64_t align = parse_in_range(p, "an alignment", 1, 4096);
    if (align & (align - 1))
        syntax_error(&p->lex, line, "an alignment of %llu is not a power of two",
                     (unsigned long long)align);
    return align;
}

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static symbol *declare(parser *p, const char *name, symbol_kind kind, unsigned line)
{
    symbol *s = symbols_add(&p->symbols, p->arena, name, kind);
    if (!s)
        syntax_error(&p->lex, line, "'%s' is declared twice", name);
    return s;
}

static ptx_type parse_type(parser *p)
{
    ptx_type type = TYPE_NONE;
    if (p->lex.token.kind == TOKEN_DIRECTIVE)
        type = type_named(p->lex.token.text);
    if (type == TYPE_NONE)
        syntax_error(&p->lex, here(p), "expected a type before %s", token_shown(&p->lex));
    lexer_next(&p->lex);
    return type;
}

/* .reg .b32 %r<4>, %x; */
static void parse_registers(parser *p)
{
    ptx_type type = parse_type(p);
    do {
        unsigned line = here(p);
        const char *name = lexer_expect_name(&p->lex, "a register's name");
        if (lexer_accept(&p->lex, "<")) {
            uint64_t count = parse_in_range(p, "the number of registers", 0, MAX_REGISTERS);
            symbol *s = declare(p, name, SYMBOL_REG_RANGE, line);
            s->type = type;
            s->count = (uint32_t)count;
            s->members = arena_zalloc(p->arena, count * sizeof *s->members + 1);
            lexer_expect(&p->lex, ">");
            continue;
        }
        symbol *s = declare(p, name, SYMBOL_REG, line);
        s->type = type;
        s->index = (uint32_t)p->entry->regs.count;
        uint32_t place = type == TYPE_pred ? p->entry->predicate_count++
                                           : register_file_place(p, type_bits(type));
        *VEC_PUSH(p->arena, &p->entry->regs) = (reg){ .name = name, .type = type, .place = place };
    } while (lexer_accept(&p->lex, ","));
    lexer_expect(&p->lex, ";");
}

typedef struct initialiser {
    uint8_t *bytes;
    uint64_t size, used;
    ptx_type type;
} initialiser;

static void parse_initialiser(parser *p, initialiser *to, int depth)
{
    lexer *l = &p->lex;
    if (depth > MAX_SCOPES)
        syntax_error(l, here(p), "this initialiser is nested too deeply");
    if (lexer_accept(l, "{")) {
        if (lexer_accept(l, "}"))
            return;
        do
            parse_initialiser(p, to, depth + 1);
        while (lexer_accept(l, ","));
        lexer_expect(l, "}");
        return;
    }
    unsigned line = here(p);
    operand o = parse_operand(p);
    uint64_t bits = o.bits;
    if (o.kind == OPERAND_FLOAT && to->type == TYPE_f32 && !o.single) {
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        float narrow = (float)wide;
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, sizeof narrow);
        bits = narrow_bits;
    } else if (o.kind != OPERAND_INTEGER && o.kind != OPERAND_FLOAT) {
        syntax_error(l, line, "an initialiser that is not a number is not supported");
    }
    unsigned size = type_bytes(to->type);
    if (to->used + size > to->size)
        syntax_error(l, line, "more values than the array has elements");
    for (unsigned i = 0; i < size; i++)
        to->bytes[to->used++] = (uint8_t)(bits >> 8 * i);
}

/* [4][8] behind a name; false when there is none. A dimension left out is 0. */
static bool parse_dimensions(parser *p, uint64_t *elements)
{
    bool array = false;
    *elements = 1;
    while (lexer_accept(&p->lex, "[")) {
        array = true;
        uint64_t count = 0;
        if (!lexer_is(&p->lex, "]"))
            count = parse_in_range(p, "an array's size", 0, UINT64_C(1) << 31);
        if (count && *elements > (UINT64_C(1) << 40) / count)
            syntax_error(&p->lex, here(p), "an array is too large");
        *elements *= count;
        lexer_expect(&p->lex, "]");
    }
    return array;
}

static void place_variable(parser *p, variable *v, unsigned line)
{
    entry *e = p->entry;
    if (v->space == SPACE_SHARED && v->dynamic) {
        v->offset = SHARED_DYNAMIC_BASE;
    } else if (v->space == SPACE_SHARED) {
        uint64_t *end = e ? &e->shared.end : &p->shared_end;
        v->offset = round_up(*end, v->align > ARRAY_GAP ? v->align : ARRAY_GAP);
        *end = v->offset + v->size + ARRAY_GAP;
        if (v->size > MAX_SHARED_BYTES || *end > SHARED_DYNAMIC_BASE)
            syntax_error(&p->lex, line, "'%s' does not fit shared memory of %d bytes", v->name,
                         MAX_SHARED_BYTES);
    } else if (v->space == SPACE_LOCAL) {
        if (!e)
            syntax_error(&p->lex, line, "local memory is declared in an entry");
        v->offset = round_up(e->local.end, v->align > ARRAY_GAP ? v->align : ARRAY_GAP);
        e->local.end = v->offset + v->size + ARRAY_GAP;
        if (v->size > MAX_LOCAL_BYTES || e->local.end > WINDOW_BYTES)
            syntax_error(&p->lex, line, "'%s' does not fit local memory of %d bytes", v->name,
                         MAX_LOCAL_BYTES);
        *VEC_PUSH(p->arena, &e->local.list) = v;
    } else {
        v->index = (uint32_t)p->module->globals.count;
        *VEC_PUSH(p->arena, &p->module->globals) = v;
    }
}

/* .shared .align 4 .b8 name[16]; the state space has been read. */
static void parse_variables(parser *p, ptx_space space, bool external)
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
        else if (!lexer_accept_directive(l, "attribute"))
            break;
        else
            syntax_error(l, here(p), "'.attribute' is not supported");
    }
    ptx_type type = parse_type(p);
    if (type == TYPE_pred)
        syntax_error(l, here(p), "predicates are registers only");
    do {
        unsigned line = here(p);
        variable *v = arena_zalloc(p->arena, sizeof *v);
        v->name = lexer_expect_name(l, "a variable's name");
        v->space = space;
        uint64_t elements, natural = (uint64_t)type_bytes(type) * vector;
        bool array = parse_dimensions(p, &elements);
        v->align = align ? align : natural;
        v->dynamic = array && elements == 0 && external && space == SPACE_SHARED;
        v->size = elements * natural;
        if (v->size > MAX_GLOBAL_BYTES || (v->size == 0 && !v->dynamic))
            syntax_error(l, line, "'%s' cannot have %llu bytes", v->name,
                         (unsigned long long)v->size);
        initialiser to = { .size = v->size, .type = type };
        if (space == SPACE_GLOBAL || space == SPACE_CONST)
            v->bytes = to.bytes = arena_zalloc(p->arena, v->size);
        if (lexer_accept(l, "=")) {
            if (!to.bytes)
                syntax_error(l, line, "only .global and .const variables have initial values");
            parse_initialiser(p, &to, 0);
        }
        place_variable(p, v, line);
        declare(p, v->name, SYMBOL_VARIABLE, line)->variable = v;
    } while (lexer_accept(l, ","));
    lexer_expect(l, ";");
}

static bool parse_space(parser *p, ptx_space *space)
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

/* .param .u64 .ptr .global .align 16 name  or  .param .align 8 .b8 name[24] */
static void parse_param(parser *p)
{
    lexer *l = &p->lex;
    unsigned line = here(p);
    uint64_t align = 0, elements;
    if (!lexer_accept_directive(l, "param"))
        syntax_error(l, line, "expected '.param' before %s", token_shown(l));
    if (lexer_accept_directive(l, "align"))
        align = parse_align(p);
    ptx_type type = parse_type(p);
    if (lexer_accept_directive(l, "ptr")) {
        ptx_space space;
        parse_space(p, &space);
        if (lexer_accept_directive(l, "align"))
            parse_align(p);
    }
    const char *name = lexer_expect_name(l, "a parameter's name");
    parse_dimensions(p, &elements);
    uint64_t size = elements * type_bytes(type);
    align = align ? align : type_bytes(type);
    uint64_t offset = align ? round_up(p->entry->param_bytes, align) : 0;
    if (size == 0 || offset + size > MAX_PARAM_BYTES)
        syntax_error(l, line, "parameter '%s' of %llu bytes does not fit the %d bytes of all", name,
                     (unsigned long long)size, MAX_PARAM_BYTES);
    declare(p, name, SYMBOL_PARAM, line)->index = (uint32_t)p->entry->params.count;
    *VEC_PUSH(p->arena, &p->entry->params) =
        (param){ .name = name, .size = size, .align = align, .offset = offset };
    p->entry->param_bytes = offset + size;
}

static void skip_line(parser *p)
{
    unsigned line = here(p);
    while (p->lex.token.kind != TOKEN_END && here(p) == line)
        lexer_next(&p->lex);
}

static void skip_braces(parser *p)
{
    unsigned line = here(p), depth = 0;
    do {
        if (p->lex.token.kind == TOKEN_END)
            syntax_error(&p->lex, line, "'{' without '}'");
        if (lexer_is(&p->lex, "{"))
            depth++;
        if (lexer_is(&p->lex, "}"))
            depth--;
        lexer_next(&p->lex);
    } while (depth);
}

/* Directives that may stand anywhere and mean nothing to a run. */
static bool parse_ignored(parser *p)
{
    lexer *l = &p->lex;
    if (lexer_is_directive(l, "loc") || lexer_is_directive(l, "file")) {
        skip_line(p);
    } else if (lexer_accept_directive(l, "section")) {
        while (l->token.kind == TOKEN_DIRECTIVE)
            lexer_next(l);
        if (!lexer_is(l, "{"))
            syntax_error(l, here(p), "expected '{' before %s", token_shown(l));
        skip_braces(p);
    } else if (lexer_accept_directive(l, "pragma")) {
        while (l->token.kind == TOKEN_STRING || lexer_is(l, ","))
            lexer_next(l);
        lexer_expect(l, ";");
    } else {
        return false;
    }
    return true;
}

static void parse_instruction(parser *p, const char *name, unsigned line, uint32_t guard,
                              bool guard_not)
{
    lexer *l = &p->lex;
    instruction in = { .line = line, .name = name };
    for (; l->token.kind == TOKEN_DIRECTIVE; lexer_next(l)) {
        if (in.modifier_count == MAX_MODIFIERS)
            syntax_error(l, line, "'%s' has too many modifiers", name);
        in.modifiers[in.modifier_count++] = l->token.text;
    }
    if (!lexer_is(l, ";")) {
        do {
            if (in.operand_count == MAX_OPERANDS)
                syntax_error(l, line, "'%s' has too many operands", name);
            in.operands[in.operand_count++] = parse_operand(p);
        } while (lexer_accept(l, ","));
    }
    lexer_expect(l, ";");
    if (p->entry->ops.count == MAX_OPS)
        syntax_error(l, line, "an entry has at most %d instructions", MAX_OPS);
    decode_instruction(p, &in, guard, guard_not);
}

static void parse_guarded(parser *p)
{
    lexer *l = &p->lex;
    bool not = lexer_accept(l, "!");
    unsigned line = here(p);
    operand o = parse_operand(p);
    if (o.kind != OPERAND_REG || o.type != TYPE_pred || o.pair)
        syntax_error(l, line, "a guard is a predicate register");
    line = here(p);
    parse_instruction(p, lexer_expect_name(l, "an instruction"), line, o.index, not);
}

static void resolve_labels(parser *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->references.count; i++) {
        const reference *r = &p->references.items[i];
        const symbol *s = symbols_find(&p->symbols, r->label);
        if (s && s->kind == SYMBOL_LABEL && s->depth == p->symbols.depth)
            p->entry->ops.items[r->op].target = s->index;
        else
            p->references.items[kept++] = *r;
    }
    p->references.count = kept;
}

static void parse_statement(parser *p);

static void parse_body(parser *p)
{
    unsigned line = here(p);
    size_t opened = symbols_open(&p->symbols);
    if (p->symbols.depth > MAX_SCOPES)
        syntax_error(&p->lex, line, "scopes are nested too deeply");
    lexer_expect(&p->lex, "{");
    while (!lexer_is(&p->lex, "}")) {
        if (p->lex.token.kind == TOKEN_END)
            syntax_error(&p->lex, line, "'{' without '}'");
        parse_statement(p);
    }
    lexer_next(&p->lex);
    resolve_labels(p);
    symbols_close(&p->symbols, opened);
}

static void parse_statement(parser *p)
{
    lexer *l = &p->lex;
    unsigned line = here(p);
    ptx_space space;
    if (lexer_is(l, "{")) {
        parse_body(p);
    } else if (lexer_accept(l, "@")) {
        parse_guarded(p);
    } else if (lexer_accept_directive(l, "reg")) {
        parse_registers(p);
    } else if (parse_space(p, &space)) {
        parse_variables(p, space, false);
    } else if (lexer_accept_directive(l, "extern")) {
        if (!parse_space(p, &space))
            syntax_error(l, line, "expected a state space before %s", token_shown(l));
        parse_variables(p, space, true);
    } else if (l->token.kind == TOKEN_NAME) {
        const char *name = lexer_expect_name(l, "an instruction");
        if (lexer_accept(l, ":"))
            declare(p, name, SYMBOL_LABEL, line)->index = (uint32_t)p->entry->ops.count;
        else
            parse_instruction(p, name, line, UINT32_MAX, false);
    } else if (!lexer_accept(l, ";") && !parse_ignored(p)) {
        syntax_error(l, line, "%s is not known here", token_shown(l));
    }
}

static void parse_extent(parser *p, unsigned extent[3])
{
    extent[0] = extent[1] = extent[2] = 1;
    for (int i = 0; i < 3; i++) {
        extent[i] = (unsigned)parse_in_range(p, "a block dimension", 1, 1024);
        if (!lexer_accept(&p->lex, ","))
            return;
    }
    syntax_error(&p->lex, here(p), "a block has at most three dimensions");
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
                parse_integer(p);
            while (lexer_accept(l, ","));
            return;
        }
    if (lexer_accept_directive(l, "reqntid"))
        parse_extent(p, p->entry->reqntid);
    else if (lexer_accept_directive(l, "maxntid"))
        parse_extent(p, p->entry->maxntid);
    else if (!parse_ignored(p))
        syntax_error(l, here(p), "%s is not known here", token_shown(l));
}

static void parse_entry(parser *p)
{
    lexer *l = &p->lex;
    unsigned line = here(p);
    entry *e = arena_zalloc(p->arena, sizeof *e);
    p->entry = e;
    e->name = lexer_expect_name(l, "an entry's name");
    e->predicate_count = 2;
    e->shared.end = p->shared_end;
    e->local.end = LOCAL_BASE;
    memset(p->constant_heads, 0, sizeof p->constant_heads);
    memset(p->special_places, 0, sizeof p->special_places);
    p->constant_next.count = 0;
    p->sink = register_file_place(p, 64);
    if (module_entry(p->module, e->name))
        syntax_error(l, line, "'%s' is declared twice", e->name);

    size_t opened = symbols_open(&p->symbols);
    if (lexer_accept(l, "(") && !lexer_accept(l, ")")) {
        do
            parse_param(p);
        while (lexer_accept(l, ","));
        lexer_expect(l, ")");
    }
    while (!lexer_is(l, "{"))
        parse_performance(p);
    parse_body(p);
    if (p->references.count)
        syntax_error(l, p->references.items[0].line, "'%s' is not declared",
                     p->references.items[0].label);
    symbols_close(&p->symbols, opened);

    /* Whatever falls off the end ends there. */
    instruction end = { .line = l->token.line, .name = "exit" };
    decode_instruction(p, &end, UINT32_MAX, false);
    flow_analyse(e);
    *VEC_PUSH(p->arena, &p->module->entries) = e;
    p->entry = NULL;
}

/* Functions are not run: a call to one is an error where it stands. */
static void skip_function(parser *p)
{
    unsigned line = here(p);
    while (!lexer_accept(&p->lex, ";")) {
        if (p->lex.token.kind == TOKEN_END)
            syntax_error(&p->lex, line, "a function without a body");
        if (lexer_is(&p->lex, "{")) {
            skip_braces(p);
            return;
        }
        lexer_next(&p->lex);
    }
}

static void parse_header(parser *p)
{
    lexer *l = &p->lex;
    if (!lexer_accept_directive(l, "version"))
        syntax_error(l, here(p), "a module starts with '.version', not %s", token_shown(l));
    const char *version = l->token.text;
    if (l->token.kind != TOKEN_FLOAT64 || version[0] < '3' || version[0] > '9')
        syntax_error(l, here(p), "PTX ISA version %s is not known", token_shown(l));
    lexer_next(l);
    if (!lexer_accept_directive(l, "target"))
        syntax_error(l, here(p), "expected '.target' before %s", token_shown(l));
    do
        lexer_expect_name(l, "a target");
    while (lexer_accept(l, ","));
    if (lexer_accept_directive(l, "address_size")) {
        unsigned line = here(p);
        if (parse_integer(p) != 64)
            syntax_error(l, line, "only 64-bit addresses are supported");
    }
}

static void parse_module(parser *p)
{
    lexer *l = &p->lex;
    parse_header(p);
    while (l->token.kind != TOKEN_END) {
        unsigned line = here(p);
        ptx_space space;
        bool external = lexer_accept_directive(l, "extern");
        if (!external && !lexer_accept_directive(l, "visible") &&
            !lexer_accept_directive(l, "weak"))
            lexer_accept_directive(l, "common");
        if (lexer_accept_directive(l, "entry"))
            parse_entry(p);
        else if (lexer_accept_directive(l, "func"))
            skip_function(p);
        else if (parse_space(p, &space))
            parse_variables(p, space, external);
        else if (!parse_ignored(p))
            syntax_error(l, line, "%s is not known here", token_shown(l));
    }
}

static bool parse_guarded_by_jump(parser *p, const char *text, size_t length)
{
    jmp_buf failed;
    p->lex.failed = &failed;
    if (setjmp(failed))
        return false;
    lexer_start(&p->lex, p->arena, text, length);
    parse_module(p);
    return true;
}

emu_module *emu_load(arena *a, const char *text, size_t length, emu_report *report)
{
    parser *p = arena_zalloc(a, sizeof *p);
    emu_report unused;
    p->arena = p->lex.arena = a;
    p->lex.report = report ? report : &unused;
    *p->lex.report = (emu_report){ .fault = EMU_OK, .message = "" };
    p->module = arena_zalloc(a, sizeof *p->module);
    p->shared_end = SHARED_STATIC_BASE;
    return parse_guarded_by_jump(p, text, length) ? p->module : NULL;
}

const entry *module_entry(const emu_module *m, const char *name)
{
    for (size_t i = 0; i < m->entries.count; i++)
        if (strcmp(m->entries.items[i]->name, name) == 0)
            return m->entries.items[i];
    return NULL;
}

bool emu_entry(const emu_module *m, const char *name, emu_entry_info *info)
{
    const entry *e = module_entry(m, name);
    if (!e)
        return false;
    *info = (emu_entry_info){ .param_count = (unsigned)e->params.count,
                              .param_bytes = e->param_bytes,
                              .reqntid = { e->reqntid[0], e->reqntid[1], e->reqntid[2] } };
    for (size_t i = 0; i < e->shared.list.count; i++) {
        const variable *v = e->shared.list.items[i];
        if (!v->dynamic)
            info->shared_bytes = round_up(info->shared_bytes, v->align) + v->size;
    }
    return true;
}
