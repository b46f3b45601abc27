/* Instructions that expand to others when they are parsed: calls, and branches through a table.
 *
 * A call is inlined: the function's body is parsed again from the text. Its names have a scope that
 * does not see the caller's. Its parameters are bound to the call's operands, and its ret is a
 * branch to the end of the body. A .param variable of the caller is not copied; the formal
 * parameter's name refers to it. So a lane's call is its position in the control flow, lanes
 * reconverge after the call, and a report shows the line inside the function.
 *
 * A recursive function, direct or indirect, is inlined once, and its inner calls re-enter that body
 * (see stack.c). System functions are those behind assert(), printf(), malloc() and free(), as
 * instructions (see system.c).
 *
 * brx.idx expands to a comparison and a branch for each target of its table. */
#include "emu/parse/parser.h"

#define EMIT(p, line, guard, text, ...)                                 \
    parser_emit(p, line, guard, text, (const operand[]){ __VA_ARGS__ }, \
                sizeof(const operand[]){ __VA_ARGS__ } / sizeof(operand))

enum { MAX_CALLS = 1 << 12, MAX_CALL_DEPTH = 64 };

/* A formal parameter and the caller's operand. */
typedef struct binding {
    operand formal, actual;
    ptx_type type;
    bool in_memory; /* .param; false: .reg */
    bool shared;    /* the formal is the caller's own .param variable */
} binding;

struct call {
    struct call *outer;
    const char *function;
    unsigned line;
    uint32_t skip;              /* branch of lanes that do not call, or NO_TARGET */
    const char *end;            /* label after the body */
    size_t symbols, references; /* counts where the body's scope begins */
    unsigned floor;             /* symbols.floor of the caller */
    lexer back;                 /* text after the call */
    binding *results, *arguments;
    unsigned result_count, argument_count;
    bool recurs;          /* the function may call itself */
    operand stack;        /* stack pointer at the call */
    recursion *recursion; /* of recursive calls in the body; NULL: none so far */
    recursion here;       /* its value as far as it is known */
};

typedef VEC(operand) arguments;

static void parse_arguments(parser *p, arguments *a)
{
    lexer *l = &p->lex;
    lexer_expect(l, "(");
    if (lexer_accept(l, ")"))
        return;
    do {
        operand o = parser_operand(p);
        *VEC_PUSH(p->arena, a) = o;
    } while (lexer_accept(l, ","));
    lexer_expect(l, ")");
}

static operand in_brackets(operand *base)
{
    return (operand){ .kind = OPERAND_ADDRESS, .elements = base };
}

/* Emits "mov", "ld.param" or "st.param" with a bit type of the size of type. */
static void emit_move(parser *p, unsigned line, const operand *guard, const char *name,
                      ptx_type type, operand to, operand from)
{
    const char *suffix = type == TYPE_pred           ? "pred"
                         : emu_type_bits(type) == 8  ? "b8"
                         : emu_type_bits(type) == 16 ? "b16"
                         : emu_type_bits(type) == 32 ? "b32"
                                                     : "b64";
    EMIT(p, line, guard, arena_format(p->arena, "%s.%s", name, suffix), to, from);
}

/* Declares a parameter in the function's scope: .reg .b32 x, or .param .align 8 .b8 x[24]. */
static void parse_formal(parser *p, const operand *actual, unsigned line, binding *b)
{
    b->actual = *actual;
    if (lexer_accept_directive(&p->lex, "reg")) {
        const reg *r = parser_register(p);
        b->type = r->type;
        b->formal = (operand){ .kind = OPERAND_REG,
                               .type = r->type,
                               .index = (uint32_t)(r - p->entry->regs.items) };
        return;
    }
    variable *given =
        actual->kind == OPERAND_VARIABLE && actual->variable->parameter && actual->offset == 0
            ? actual->variable
            : NULL;
    variable *v = parser_formal(p, given, &b->type);
    if (given && given->size != v->size)
        lexer_error(&p->lex, line, "'%s' has %llu bytes; the function's '%s' has %llu", given->name,
                    (ull)given->size, v->name, (ull)v->size);
    b->in_memory = true;
    b->shared = given;
    b->formal = (operand){ .kind = OPERAND_VARIABLE, .variable = given ? given : v };
}

static unsigned parse_formals(parser *p, const arguments *a, unsigned line, binding *bound,
                              const char *what)
{
    unsigned count = 0;
    if (lexer_accept(&p->lex, "(") && !lexer_accept(&p->lex, ")")) {
        do {
            if (count == a->count)
                lexer_error(&p->lex, line, "the function has more %s than this call", what);
            parse_formal(p, &a->items[count], line, &bound[count]);
            count++;
        } while (lexer_accept(&p->lex, ","));
        lexer_expect(&p->lex, ")");
    }
    if (count != a->count)
        lexer_error(&p->lex, line, "the function has %u %s; this call has %u", count, what,
                    (unsigned)a->count);
    return count;
}

/* Passes an argument to its parameter or, if back, a result to the caller. */
static void pass_parameter(parser *p, binding *b, unsigned line, bool back)
{
    operand formal = b->in_memory ? in_brackets(&b->formal) : b->formal;
    const char *name = !b->in_memory ? "mov" : back ? "ld.param" : "st.param";
    if (!b->shared)
        emit_move(p, line, NULL, name, b->type, back ? b->actual : formal,
                  back ? formal : b->actual);
}

/* Emits a branch to a label that is declared later. */
static void emit_branch(parser *p, unsigned line, const operand *guard, const char *label,
                        bool uniform)
{
    operand to = { .kind = OPERAND_LABEL, .name = label };
    EMIT(p, line, guard, uniform ? "bra.uni" : "bra", to);
}

/* Returns the reason why a function cannot be called here, or NULL. */
static const char *find_obstacle(const parser *p, const function *f, const char *name)
{
    unsigned depth = 0;
    if (!f)
        return arena_format(p->arena, "the function '%s' has no body in this module", name);
    for (const struct call *c = p->call; c; c = c->outer)
        depth++;
    return depth == MAX_CALL_DEPTH || p->calls == MAX_CALLS ? "too many calls" : NULL;
}

static const struct {
    const char *name, *instruction;
    ptx_type takes[MAX_OPERANDS]; /* operands of the instruction; the call may have more */
    ptx_type gives;
} system_functions[] = {
    { "__assertfail", "(assert)", { TYPE_b64, TYPE_b64, TYPE_b32, TYPE_b64 }, TYPE_NONE },
    { "vprintf", "(print)", { TYPE_b64, TYPE_b64 }, TYPE_b32 },
    { "malloc", "(malloc)", { TYPE_b64 }, TYPE_b64 },
    { "free", "(free)", { TYPE_b64 }, TYPE_NONE },
};

static operand new_register(parser *p, const char *name, ptx_type type)
{
    return (
        operand){ .kind = OPERAND_REG, .type = type, .index = parser_add_register(p, name, type) };
}

typedef struct call_statement {
    unsigned line;
    const operand *guard; /* NULL: all lanes */
    bool uniform;
    arguments results, given;
} call_statement;

/* Emits the call of a system function. Returns false if none has that name. */
static bool call_system(parser *p, const char *name, const call_statement *s)
{
    size_t which = 0, count = sizeof system_functions / sizeof *system_functions;
    while (which < count && strcmp(system_functions[which].name, name) != 0)
        which++;
    if (which == count)
        return false;
    operand operands[MAX_OPERANDS], none = { .kind = OPERAND_INTEGER };
    unsigned operand_count = 0;
    ptx_type gives = system_functions[which].gives;
    operand result = gives ? new_register(p, "(value)", gives) : none;
    if (gives)
        operands[operand_count++] = result;
    for (size_t i = 0; system_functions[which].takes[i]; i++) {
        ptx_type type = system_functions[which].takes[i];
        operand *from = i < s->given.count ? &s->given.items[i] : NULL;
        operand to = from ? new_register(p, "(value)", type) : none;
        operands[operand_count++] = to;
        if (from && from->kind == OPERAND_VARIABLE)
            emit_move(p, s->line, s->guard, "ld.param", type, to, in_brackets(from));
        else if (from)
            emit_move(p, s->line, s->guard, "mov", type, to, *from);
    }
    parser_emit(p, s->line, s->guard, system_functions[which].instruction, operands, operand_count);
    operand *to = s->results.count ? &s->results.items[0] : NULL;
    if (to && to->kind == OPERAND_VARIABLE)
        emit_move(p, s->line, s->guard, "st.param", gives, in_brackets(to), result);
    else if (to)
        emit_move(p, s->line, s->guard, "mov", gives, *to, result);
    return true;
}

/* Moves the lexer to a function's body and binds its parameters. */
static void begin_body(parser *p, struct call *c, const function *f, const arguments *results,
                       const arguments *given)
{
    lexer *l = &p->lex;
    c->here.first_register = (uint32_t)p->entry->regs.count;
    c->here.first_local = p->entry->local.end;
    c->symbols = symbols_open(&p->symbols);
    c->references = p->references.count;
    p->symbols.floor = p->symbols.depth;
    p->call = c;
    p->recurs = c->recurs;
    *l = f->start;
    c->results = arena_zalloc(p->arena, (results->count + given->count + 1) * sizeof *c->results);
    binding *bound = c->arguments = c->results + results->count;
    c->result_count = parse_formals(p, results, c->line, c->results, "results");
    lexer_next(l); /* its name */
    c->argument_count = parse_formals(p, given, c->line, bound, "arguments");
    for (unsigned i = 0; i < c->argument_count; i++)
        pass_parameter(p, &bound[i], c->line, false);
    c->here.start = (uint32_t)p->entry->ops.count;
    if (c->recurs) {
        c->stack = new_register(p, "(value)", TYPE_u64);
        EMIT(p, c->line, NULL, "stacksave.u64", c->stack);
    }
    while (!lexer_is(l, "{"))
        lexer_next(l);
}

/* Ends the body and moves the lexer back to the text after the call. */
static void end_body(parser *p)
{
    const struct call *c = p->call;
    entry *e = p->entry;
    parser_declare(p, c->end, SYMBOL_LABEL, c->line)->index = (uint32_t)e->ops.count;
    parser_resolve_labels(p, c->references);
    if (c->recurs)
        EMIT(p, c->line, NULL, "stackrestore.u64", c->stack);
    recursion *r = c->recursion; /* recursive calls may re-enter the body */
    if (r) {
        *r = c->here;
        r->end_register = (uint32_t)e->regs.count;
        r->end_local = e->local.end;
        for (unsigned i = 0; i < c->result_count + c->argument_count; i++)
            if (c->results[i].shared)
                *VEC_PUSH(p->arena, &r->shared) = c->results[i].formal.variable;
        uint32_t which = 0;
        while (e->recursions.items[which] != r)
            which++;
        parser_emit(p, c->line, NULL, "(return)", NULL, 0)->dst[0] = which;
    }
    if (p->references.count > c->references) {
        const reference *missing = &p->references.items[c->references];
        lexer_error(&p->lex, missing->line, "'%s' is not declared", missing->label);
    }
    for (unsigned i = 0; i < c->result_count; i++)
        pass_parameter(p, &c->results[i], c->line, true);
    if (c->skip != NO_TARGET)
        e->ops.items[c->skip].target = (uint32_t)e->ops.count;
    symbols_close(&p->symbols, c->symbols);
    p->symbols.floor = c->floor;
    p->call = c->outer;
    p->recurs = c->outer && c->outer->recurs;
    p->lex = c->back;
}

/* Pairs the variables of a call with a body's parameters. Returns false if one is no variable. */
static bool pair_variables(parser *p, const call_statement *s, const arguments *given,
                           const binding *bound, variable_pair *pairs)
{
    for (size_t i = 0; i < given->count; i++) {
        const operand *actual = &given->items[i];
        const variable *formal = bound[i].in_memory ? bound[i].formal.variable : NULL;
        if (!formal || actual->kind != OPERAND_VARIABLE || !actual->variable->parameter ||
            actual->offset)
            return false;
        if (actual->variable->size != formal->size)
            lexer_error(&p->lex, s->line, "'%s' has %llu bytes; the function's '%s' has %llu",
                        actual->variable->name, (ull)actual->variable->size, formal->name,
                        (ull)formal->size);
        pairs[i] = (variable_pair){ actual->variable, formal };
    }
    return true;
}

/* Emits a recursive call, inside the function's own body. */
static void emit_recursion(parser *p, const call_statement *s, const operand *guard, struct call *c)
{
    entry *e = p->entry;
    size_t given = s->given.count, results = s->results.count;
    if (given != c->argument_count || results != c->result_count)
        lexer_error(&p->lex, s->line, "'%s' has %u arguments and %u results", c->function,
                    c->argument_count, c->result_count);
    variable_pair *pairs = arena_zalloc(p->arena, (given + results + 1) * sizeof *pairs);
    const char *obstacle = !c->recurs ? "through a pointer"
                           : !pair_variables(p, s, &s->given, c->arguments, pairs) ||
                                   !pair_variables(p, s, &s->results, c->results, pairs + given)
                               ? "with parameters in registers"
                               : NULL;
    if (obstacle) {
        obstacle = arena_format(p->arena, "'%s' calls itself %s, which is not supported",
                                c->function, obstacle);
        decode_unknown(p, s->line, guard, obstacle);
        return;
    }
    if (!c->recursion)
        *VEC_PUSH(p->arena, &e->recursions) = c->recursion =
            arena_zalloc(p->arena, sizeof *c->recursion);
    recursive_call *new = VEC_PUSH(p->arena, &e->recursive_calls);
    *new = (recursive_call){ .of = c->recursion };
    for (size_t i = 0; i < given; i++)
        *VEC_PUSH(p->arena, &new->arguments) = pairs[i];
    for (size_t i = 0; i < results; i++)
        *VEC_PUSH(p->arena, &new->results) =
            (variable_pair){ pairs[given + i].to, pairs[given + i].from };
    parser_emit(p, s->line, guard, "(recurse)", NULL, 0)->dst[0] =
        (uint32_t)e->recursive_calls.count - 1;
}

/* Parses a function's body in place of a call. */
static void expand_call(parser *p, const call_statement *s, const operand *guard,
                        const function *called)
{
    const function body = *called, *f = &body; /* a copy, since p->functions may be reallocated */
    struct call *running = p->call;
    while (running && strcmp(running->function, f->name) != 0)
        running = running->outer;
    if (running) {
        emit_recursion(p, s, guard, running);
        return;
    }
    struct call *c = arena_alloc(p->arena, sizeof *c);
    *c = (struct call){ .outer = p->call,
                        .function = f->name,
                        .line = s->line,
                        .end = arena_format(p->arena, "(end of call %u)", ++p->calls),
                        .skip = NO_TARGET,
                        .floor = p->symbols.floor,
                        .recurs = function_recurs(p, f->name),
                        .back = p->lex };
    if (guard) {
        operand others = *guard;
        others.negated = !guard->negated;
        c->skip = (uint32_t)p->entry->ops.count;
        emit_branch(p, s->line, &others, c->end, s->uniform);
        p->references.count--; /* end_body sets this branch's target */
    }
    begin_body(p, c, f, &s->results, &s->given);
    p->parse_body(p);
    end_body(p);
}

/* Emits hit = value == number, for the lanes of a guard. */
static void emit_equal(parser *p, unsigned line, const operand *guard, const char *type,
                       operand hit, operand value, uint64_t number)
{
    operand operands[] = {
        hit, value, { .kind = OPERAND_INTEGER, .bits = number }, guard ? *guard : hit
    };
    parser_emit(p, line, NULL, arena_format(p->arena, "setp.eq%s.%s", guard ? ".and" : "", type),
                operands, guard ? 4 : 3);
}

static uint64_t *sizes_of(parser *p, const arguments *a)
{
    uint64_t *sizes = arena_alloc(p->arena, (a->count + 1) * sizeof *sizes);
    for (size_t i = 0; i < a->count; i++) {
        const operand *o = &a->items[i];
        sizes[i] = o->kind == OPERAND_VARIABLE ? o->variable->size : emu_type_bytes(o->type);
    }
    return sizes;
}

/* Expands a call through a pointer to a call of each possible function, guarded by its address. */
static void call_pointer(parser *p, const call_statement *s, operand pointer)
{
    const uint64_t *results = sizes_of(p, &s->results), *given = sizes_of(p, &s->given);
    operand some = new_register(p, "(some)", TYPE_pred);
    function_address(p, "");                                   /* parses all functions */
    emit_equal(p, s->line, s->guard, "b64", some, pointer, 0); /* some must be written before xor */
    EMIT(p, s->line, NULL, "xor.pred", some, some, some);
    for (size_t i = 0; i < p->functions.count; i++) {
        const function f = p->functions.items[i];
        if (!f.address || !function_takes(p, &f, results, s->results.count, given, s->given.count))
            continue;
        operand hit = new_register(p, "(hit)", TYPE_pred);
        emit_equal(p, s->line, s->guard, "b64", hit, pointer, f.address);
        EMIT(p, s->line, NULL, "or.pred", some, some, hit);
        const char *obstacle = find_obstacle(p, &f, f.name);
        if (obstacle)
            decode_unknown(p, s->line, &hit, obstacle);
        else
            expand_call(p, s, &hit, &f);
    }
    if (s->guard) {
        operand others = *s->guard;
        others.negated = !others.negated;
        EMIT(p, s->line, NULL, "or.pred", some, some, others);
    }
    some.negated = true;
    EMIT(p, s->line, &some, "(call)", pointer);
}

/* Parses "call (results), function, (arguments), prototype;" after its modifiers. */
void parser_call(parser *p, unsigned line, const operand *guard)
{
    lexer *l = &p->lex;
    call_statement s = { .line = line,
                         .guard = guard,
                         .uniform = lexer_accept_directive(l, "uni") };
    if (lexer_is(l, "(")) {
        parse_arguments(p, &s.results);
        lexer_expect(l, ",");
    }
    const char *name = l->token.text;
    operand callee = parser_operand(p);
    if (lexer_accept(l, ",") && lexer_is(l, "("))
        parse_arguments(p, &s.given);
    if (callee.kind == OPERAND_REG) {
        parser_skip_statement(p); /* its prototype */
        call_pointer(p, &s, callee);
        return;
    }
    if (callee.kind != OPERAND_LABEL)
        lexer_error(l, line, "expected a function's name before '%s'", name);
    lexer_expect(l, ";");
    const function *f = function_find(p, name);
    if (!f && call_system(p, name, &s))
        return;
    const char *obstacle = find_obstacle(p, f, name);
    if (obstacle)
        decode_unknown(p, line, guard, obstacle);
    else
        expand_call(p, &s, guard, f);
}

void parser_return(parser *p, unsigned line, const operand *guard)
{
    bool uniform = lexer_accept_directive(&p->lex, "uni");
    lexer_expect(&p->lex, ";");
    emit_branch(p, line, guard, p->call->end, uniform);
}

/* Parses "name: .branchtargets a, b, c;" after the directive. */
void parser_targets(parser *p, const char *name, unsigned line)
{
    VEC(const char *) labels = { 0 };
    do
        *VEC_PUSH(p->arena, &labels) = lexer_expect_name(&p->lex, "a label");
    while (lexer_accept(&p->lex, ","));
    lexer_expect(&p->lex, ";");
    symbol *s = parser_declare(p, name, SYMBOL_TARGETS, line);
    s->labels = labels.items;
    s->count = (uint32_t)labels.count;
}

/* Emits a branch per target of the table, and the instruction, which faults for other indices. */
void parser_table_branch(parser *p, const instruction *in)
{
    const operand *table = &in->operands[1];
    const symbol *s = NULL;
    if (in->operand_count == 2 && table->kind == OPERAND_LABEL)
        s = symbols_find(&p->symbols, table->name);
    if (!s || s->kind != SYMBOL_TARGETS)
        lexer_error(&p->lex, in->line, "brx.idx needs an index and the name of a .branchtargets");
    const char *const *labels = s->labels;
    uint32_t count = s->count;
    operand hit = new_register(p, "(hit)", TYPE_pred);
    for (uint32_t i = 0; i < count; i++) {
        emit_equal(p, in->line, in->guard, "u32", hit, in->operands[0], i);
        emit_branch(p, in->line, &hit, labels[i], instruction_has(in, "uni"));
    }
    decode_instruction(p, in);
}
