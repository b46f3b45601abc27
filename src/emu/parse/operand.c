/* Operands: registers, constants, addresses, vectors, and integer constant expressions. */
#include "emu/parse/parser.h"

#include <stdlib.h>

enum { MAX_DEPTH = 64 };

uint32_t parser_place(parser *p, unsigned bits)
{
    uint32_t place = p->entry->file_bytes;
    p->entry->file_bytes += (uint32_t)(bits == 64 ? sizeof(lanes64) : sizeof(lanes32));
    return place;
}

uint32_t parser_add_register(parser *p, const char *name, ptx_type type)
{
    uint32_t place =
        type == TYPE_pred ? p->entry->predicate_count++ : parser_place(p, emu_type_bits(type));
    *VEC_PUSH(p->arena, &p->entry->regs) = (reg){ .name = name, .type = type, .place = place };
    return (uint32_t)p->entry->regs.count - 1;
}

/* Returns the head of the chain of constants with the same hash. */
static uint32_t *constant_head(const parser *p, uint64_t bits)
{
    return &p->constant_heads[(bits * UINT64_C(0x9e3779b97f4a7c15)) >>
                              (64 - p->constant_bucket_bits)];
}

uint32_t parser_constant(parser *p, uint64_t bits, const variable *base, bool wide)
{
    entry *e = p->entry;
    if (!p->constant_bucket_bits || e->constants.count >> p->constant_bucket_bits) {
        /* doubles the buckets, so that chains stay short */
        p->constant_bucket_bits = p->constant_bucket_bits ? p->constant_bucket_bits + 1 : 6;
        p->constant_heads = arena_zalloc(p->arena, sizeof(uint32_t) << p->constant_bucket_bits);
        for (size_t i = 0; i < e->constants.count; i++) {
            uint32_t *head = constant_head(p, e->constants.items[i].bits);
            p->constant_next.items[i] = *head;
            *head = (uint32_t)i + 1;
        }
    }
    uint32_t *head = constant_head(p, bits);
    for (uint32_t i = *head; i; i = p->constant_next.items[i - 1]) {
        const constant *c = &e->constants.items[i - 1];
        if (c->bits == bits && c->base == base && c->wide == wide)
            return c->place;
    }
    *VEC_PUSH(p->arena, &p->constant_next) = *head;
    uint32_t place = parser_place(p, wide ? 64 : 32);
    *VEC_PUSH(p->arena, &e->constants) =
        (constant){ .bits = bits, .base = base, .place = place, .wide = wide };
    *head = (uint32_t)e->constants.count;
    return place;
}

static const struct {
    const char *name;
    ptx_type type;
} specials[] = {
#define REGISTER(name, text, type, value) { text, TYPE_##type },
#include "emu/specials.def"
};

uint32_t parser_special(parser *p, special which)
{
    uint32_t *known = &p->special_places[which];
    if (!*known) {
        bool wide = emu_type_bits(specials[which].type) == 64;
        uint32_t place = parser_place(p, wide ? 64 : 32);
        *VEC_PUSH(p->arena, &p->entry->specials) = (special_place){ which, place, wide };
        *known = place + 1;
    }
    return *known - 1;
}

void parser_refuse_special(parser *p, const char *name, uint64_t count, unsigned line)
{
    size_t length = strlen(name);
    for (special s = 0; s < SPECIAL_COUNT; s++) {
        const char *rest = specials[s].name + length;
        if (strncmp(specials[s].name, name, length) != 0)
            continue;
        char *end;
        bool numbered = *rest >= '0' && *rest <= '9' && strtoull(rest, &end, 10) < count && !*end;
        if (count ? numbered : !*rest || *rest == '.')
            lexer_error(&p->lex, line, "'%s' cannot be declared: %s is a special register", name,
                        specials[s].name);
    }
}

/* Finds a register of a range like %r<4>. Registers are created when first named. */
static bool find_in_range(parser *p, const char *name, const symbol *exact, operand *found)
{
    char start[MAX_NAME + 1];
    size_t length = strlen(name), digits = 0;
    memcpy(start, name, length);
    while (digits < length && digits < 7 && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9')
        digits++;
    /* a range's name may end in digits, so try each split */
    for (size_t take = 1; take <= digits; take++) {
        const char *number = name + length - take;
        if (number[0] == '0' && take > 1)
            continue;
        start[length - take] = '\0';
        symbol *range = symbols_find(&p->symbols, start);
        if (!range || range->kind != SYMBOL_REG_RANGE || (exact && exact->depth >= range->depth))
            continue;
        uint32_t index = 0;
        for (const char *c = number; *c; c++)
            index = index * 10 + (uint32_t)(*c - '0');
        if (index >= range->count)
            continue;
        if (!range->members[index])
            range->members[index] = parser_add_register(p, name, range->type) + 1;
        *found = (operand){ .kind = OPERAND_REG,
                            .index = range->members[index] - 1,
                            .type = range->type };
        return true;
    }
    return false;
}

static operand named_operand(parser *p, const char *name)
{
    operand o = { .kind = OPERAND_LABEL, .name = name };
    if (strcmp(name, "_") == 0)
        return (operand){ .kind = OPERAND_SINK };
    if (strcmp(name, "WARP_SZ") == 0)
        return (operand){ .kind = OPERAND_INTEGER, .bits = WARP_LANES };
    const symbol *s = symbols_find(&p->symbols, name);
    if (find_in_range(p, name, s, &o))
        return o;
    if (!s) {
        bool component = name[0] == '%' && p->lex.token.kind == TOKEN_DIRECTIVE;
        if (component)
            name = arena_format(p->arena, "%s.%s", name, p->lex.token.text);
        for (special which = 0; name[0] == '%' && which < SPECIAL_COUNT; which++)
            if (strcmp(specials[which].name, name) == 0) {
                o.kind = OPERAND_SPECIAL;
                o.special = which;
                o.type = specials[which].type;
                if (component)
                    lexer_next(&p->lex);
            }
        return o;
    }
    o.index = s->index;
    o.type = s->type;
    o.variable = s->variable;
    o.kind = s->kind == SYMBOL_REG        ? OPERAND_REG
             : s->kind == SYMBOL_VARIABLE ? OPERAND_VARIABLE
             : s->kind == SYMBOL_PARAM    ? OPERAND_PARAM
                                          : OPERAND_LABEL;
    return o;
}

static uint64_t parse_expression(parser *p, int lowest, int depth);

static uint64_t parse_unary(parser *p, int depth)
{
    lexer *l = &p->lex;
    if (depth > MAX_DEPTH)
        lexer_error(l, l->token.line, "this expression is nested too deeply");
    if (lexer_accept(l, "-"))
        return 0 - parse_unary(p, depth + 1);
    if (lexer_accept(l, "+"))
        return parse_unary(p, depth + 1);
    if (lexer_accept(l, "~"))
        return ~parse_unary(p, depth + 1);
    if (lexer_accept(l, "!"))
        return !parse_unary(p, depth + 1);
    if (lexer_accept(l, "(")) {
        uint64_t value = parse_expression(p, 0, depth + 1);
        lexer_expect(l, ")");
        return value;
    }
    uint64_t value = l->token.bits;
    if (l->token.kind == TOKEN_NAME && strcmp(l->token.text, "WARP_SZ") == 0)
        value = WARP_LANES;
    else if (l->token.kind != TOKEN_INTEGER)
        lexer_error(l, l->token.line, "expected a number before %s", lexer_shown(l));
    lexer_next(l);
    return value;
}

static const char *const levels[][4] = {
    { "||" },       { "&&" },       { "|" },      { "^" },           { "&" },
    { "==", "!=" }, { "<<", ">>" }, { "+", "-" }, { "*", "/", "%" },
};
enum { LEVELS = sizeof levels / sizeof *levels };

static uint64_t apply_operator(parser *p, const char *sign, uint64_t a, uint64_t b)
{
    char c = sign[0];
    bool twice = sign[1]; /* && or ||, not & or | */
    if ((c == '/' || c == '%') && b == 0)
        lexer_error(&p->lex, p->lex.token.line, "division by zero in a constant");
    return c == '+'   ? a + b
           : c == '-' ? a - b
           : c == '*' ? a * b
           : c == '/' ? a / b
           : c == '%' ? a % b
           : c == '^' ? a ^ b
           : c == '=' ? a == b
           : c == '!' ? a != b
           : c == '<' ? (b < 64 ? a << b : 0)
           : c == '>' ? (b < 64 ? a >> b : 0)
           : c == '&' ? (twice ? a && b : a & b)
                      : (twice ? a || b : a | b);
}

static uint64_t parse_expression(parser *p, int lowest, int depth)
{
    if (lowest == LEVELS)
        return parse_unary(p, depth);
    uint64_t value = parse_expression(p, lowest + 1, depth);
    for (int i = 0; i < 4 && levels[lowest][i]; i++)
        if (lexer_accept(&p->lex, levels[lowest][i])) {
            value =
                apply_operator(p, levels[lowest][i], value, parse_expression(p, lowest + 1, depth));
            i = -1; /* any operator of the level may follow */
        }
    return value;
}

int64_t parser_integer(parser *p)
{
    return (int64_t)parse_expression(p, 0, 0);
}

uint64_t operand_float_bits(const operand *o, bool wide)
{
    if (o->single)
        return wide ? bits_of_double((double)float_of_bits((uint32_t)o->bits)) : o->bits;
    return wide ? o->bits : bits_of_float((float)double_of_bits(o->bits));
}

static operand parse_address(parser *p)
{
    lexer *l = &p->lex;
    operand o = { .kind = OPERAND_ADDRESS };
    lexer_expect(l, "[");
    if (l->token.kind == TOKEN_NAME) {
        operand base = named_operand(p, lexer_expect_name(l, "an address"));
        if (base.kind == OPERAND_LABEL)
            lexer_error(l, l->token.line, "'%s' is not declared", base.name);
        if (base.kind != OPERAND_REG && base.kind != OPERAND_VARIABLE && base.kind != OPERAND_PARAM)
            lexer_error(l, l->token.line, "an address starts with a register or a variable");
        o.elements = arena_alloc(p->arena, sizeof base);
        *o.elements = base;
        if (lexer_is(l, "+") || lexer_is(l, "-"))
            o.offset = parser_integer(p);
    } else {
        o.offset = parser_integer(p);
    }
    lexer_expect(l, "]");
    return o;
}

static operand parse_scalar(parser *p)
{
    lexer *l = &p->lex, before = *l;
    if (l->token.kind != TOKEN_NAME) {
        /* a sign belongs to a floating-point constant; integers are expressions */
        bool minus = lexer_accept(l, "-"), single = l->token.kind == TOKEN_FLOAT32;
        if (!single && l->token.kind != TOKEN_FLOAT64) {
            *l = before;
            return (operand){ .kind = OPERAND_INTEGER, .bits = parse_expression(p, 0, 0) };
        }
        operand o = { .kind = OPERAND_FLOAT, .single = single, .bits = l->token.bits };
        if (minus)
            o.bits ^= single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        lexer_next(l);
        return o;
    }
    operand o = named_operand(p, lexer_expect_name(l, "an operand"));
    if (o.kind == OPERAND_VARIABLE && lexer_accept(l, "[")) {
        o.offset = parser_integer(p) * (int64_t)o.variable->element;
        o.element = true;
        lexer_expect(l, "]");
        return o;
    }
    if ((o.kind == OPERAND_VARIABLE || o.kind == OPERAND_PARAM) &&
        (lexer_is(l, "+") || lexer_is(l, "-")))
        o.offset = parser_integer(p);
    return o;
}

operand parser_operand(parser *p)
{
    lexer *l = &p->lex;
    if (lexer_is(l, "["))
        return parse_address(p);
    if (lexer_accept(l, "{")) {
        VEC(operand) elements = { 0 };
        do {
            if (elements.count == MAX_GROUP)
                lexer_error(l, l->token.line, "a vector has at most %d elements", MAX_GROUP);
            *VEC_PUSH(p->arena, &elements) = parse_scalar(p);
        } while (lexer_accept(l, ","));
        lexer_expect(l, "}");
        return (operand){ .kind = OPERAND_VECTOR,
                          .elements = elements.items,
                          .count = (unsigned)elements.count };
    }
    lexer before = *l;
    if (lexer_accept(l, "!")) {
        if (l->token.kind == TOKEN_NAME) {
            operand o = parse_scalar(p);
            o.negated = true;
            return o;
        }
        *l = before;
    }
    operand o = parse_scalar(p);
    if (lexer_accept(l, "|")) {
        operand *pair = arena_alloc(p->arena, sizeof *pair);
        *pair = parse_scalar(p);
        o.pair = pair;
    }
    return o;
}
