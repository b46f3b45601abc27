/* A recursive descent parser evaluates a formula and optionally prints it as C:
 *
 *     sum     = product { ("+" | "-") product }
 *     product = primary { ("*" | "/") primary }
 *     primary = number | name | function "(" sum "," sum ")" | "(" sum ")"
 *
 * The name of one of the family's terms is replaced by the term's formula in parentheses. Each part
 * is printed as it is parsed; if its value turns out to be known, its text is replaced by the
 * number. So the printed C has no arithmetic between constants, which could overflow int. */
#include "kernel/formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct quantity {
    bool known;
    int64_t number;
} quantity;

typedef struct parser {
    const char *formula, *at;
    const instance *in;
    const run_values *run;
    strbuf *out; /* NULL: evaluate only */
    formula_style style;
} parser;

enum { LONGEST_NAME = 31 };

static const quantity UNKNOWN = { false, 0 };
static quantity known(int64_t number)
{
    return (quantity){ true, number };
}

static quantity sum(parser *p);
static quantity whole(parser *p);

_Noreturn static void malformed(const parser *p, const char *expected)
{
    fprintf(stderr, "ptxgen: formula \"%s\" of %s: %s expected at \"%s\"\n", p->formula,
            p->in->family->name, expected, p->at);
    abort();
}

static void skip_blanks(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static void print(parser *p, const char *text)
{
    if (p->out)
        strbuf_put(p->out, text);
}

/* Replaces the text printed since start by the value, if it is known. */
static quantity fold(parser *p, size_t start, quantity value)
{
    if (p->out && value.known && p->style != FORMULA_NAMES) {
        p->out->length = start;
        strbuf_signed(p->out, value.number);
    }
    return value;
}

static size_t printed(const parser *p)
{
    return p->out ? p->out->length : 0;
}

static void expect(parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        malformed(p, (char[]){ '\'', c, '\'', '\0' });
    p->at++;
}

/* Applies an operator. Saturates: INT64_MAX stays INT64_MAX, which exceeds every limit. */
static quantity apply(parser *p, char operator, quantity a, quantity b)
{
    if (!a.known || !b.known)
        return UNKNOWN;
    if (a.number == INT64_MAX || b.number == INT64_MAX)
        return known(INT64_MAX);
    int64_t result = 0;
    bool overflow = false;
    switch (operator) {
    case '+':
        overflow = __builtin_add_overflow(a.number, b.number, &result);
        break;
    case '-':
        overflow = __builtin_sub_overflow(a.number, b.number, &result);
        break;
    case '*':
        overflow = __builtin_mul_overflow(a.number, b.number, &result);
        break;
    default:
        if (b.number <= 0)
            malformed(p, "a divisor above 0");
        result = a.number / b.number;
    }
    return known(overflow ? INT64_MAX : result);
}

static quantity call(parser *p, const char *name)
{
    static const struct {
        const char *name, *c_name;
    } functions[] = { { "min", "PTXGEN_MIN" },
                      { "max", "PTXGEN_MAX" },
                      { "ceil_div", "PTXGEN_CEIL_DIV" } };
    size_t which = 0;
    while (strcmp(functions[which].name, name) != 0)
        if (++which == sizeof functions / sizeof *functions)
            malformed(p, "min, max or ceil_div");

    size_t start = printed(p);
    print(p, p->style == FORMULA_C ? functions[which].c_name : name);
    print(p, "(");
    expect(p, '(');
    quantity a = sum(p);
    expect(p, ',');
    print(p, ", ");
    quantity b = sum(p);
    expect(p, ')');
    print(p, ")");

    quantity value = UNKNOWN;
    if (a.known && b.known)
        value = which == 0   ? a.number < b.number ? a : b
                : which == 1 ? a.number > b.number ? a : b
                             : apply(p, '/', apply(p, '+', a, apply(p, '-', b, known(1))), b);
    return fold(p, start, value);
}

static quantity at_run_time(parser *p, const char *name)
{
    static const struct {
        const char *name;
        size_t field;
    } values[] = { { "k", offsetof(run_values, k) },
                   { "n", offsetof(run_values, n) },
                   { "m", offsetof(run_values, m) },
                   { "sm_count", offsetof(run_values, sm_count) } };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(values[i].name, name) != 0)
            continue;
        int64_t number = 0;
        if (p->run)
            memcpy(&number, (const char *)p->run + values[i].field, sizeof number);
        size_t start = printed(p);
        print(p, p->style == FORMULA_C ? "run->" : "");
        print(p, name);
        return fold(p, start, number > 0 ? known(number) : UNKNOWN);
    }
    malformed(p, "a key of the family");
}

/* Compares names. Most names differ in the first letter. */
static bool is_same(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

static quantity value_of_term(parser *p, const term *t)
{
    parser inner = *p;
    inner.formula = inner.at = t->formula;
    size_t start = printed(p);
    bool grouped = false; /* true: more than a number, a name or a call */
    int depth = 0;
    for (const char *c = t->formula; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        grouped |= !depth && strchr("+-*/", *c);
    }
    print(p, grouped ? "(" : "");
    quantity value = whole(&inner);
    print(p, grouped ? ")" : "");
    return fold(p, start, value);
}

static quantity name(parser *p)
{
    char text[LONGEST_NAME + 1];
    size_t length = 0;
    while ((*p->at >= 'a' && *p->at <= 'z') || (*p->at >= '0' && *p->at <= '9') || *p->at == '_') {
        if (length == LONGEST_NAME)
            malformed(p, "a shorter name");
        text[length++] = *p->at++;
    }
    text[length] = '\0';

    skip_blanks(p);
    if (*p->at == '(')
        return call(p, text);
    for (const term *t = p->in->family->launch.terms; t && t->name; t++)
        if (is_same(t->name, text))
            return value_of_term(p, t);
    for (const derived_size *d = p->in->family->launch.sizes; d && d->name; d++)
        if (is_same(d->name, text)) {
            quantity value = known(d->value(p->in));
            if (p->out)
                strbuf_signed(p->out, value.number);
            return value;
        }
    const key *k = family_key(p->in->family, text);
    if (!k || key_is_passed(p->in, k))
        return at_run_time(p, text);
    quantity value = known(instance_value(p->in, k));
    size_t start = printed(p);
    if (k->choices && p->out)
        strbuf_signed(p->out, value.number);
    else
        print(p, text);
    return fold(p, start, value);
}

static quantity number(parser *p)
{
    quantity value = known(0);
    while (*p->at >= '0' && *p->at <= '9')
        value = apply(p, '+', apply(p, '*', value, known(10)), known(*p->at++ - '0'));
    if (p->out)
        strbuf_signed(p->out, value.number);
    return value;
}

static quantity primary(parser *p)
{
    skip_blanks(p);
    if (*p->at >= '0' && *p->at <= '9')
        return number(p);
    if (*p->at >= 'a' && *p->at <= 'z')
        return name(p);

    size_t start = printed(p);
    expect(p, '(');
    print(p, "(");
    quantity value = sum(p);
    expect(p, ')');
    print(p, ")");
    return fold(p, start, value);
}

static quantity chain(parser *p, const char operators[2], quantity (*operand)(parser *p))
{
    size_t start = printed(p);
    quantity value = operand(p);
    for (;;) {
        skip_blanks(p);
        char sign = *p->at;
        if (sign != operators[0] && sign != operators[1])
            return value;
        p->at++;
        const char *gap = p->style == FORMULA_C || sign == '+' || sign == '-' ? " " : "";
        print(p, gap);
        print(p, (char[]){ sign, '\0' });
        print(p, gap);
        value = fold(p, start, apply(p, sign, value, operand(p)));
    }
}

static quantity product(parser *p)
{
    return chain(p, "*/", primary);
}

static quantity sum(parser *p)
{
    return chain(p, "+-", product);
}

static quantity whole(parser *p)
{
    quantity value = sum(p);
    skip_blanks(p);
    if (*p->at)
        malformed(p, "the end");
    return value;
}

int64_t formula_value(const char *formula, const instance *in, const run_values *run)
{
    if (!formula)
        return 1;
    parser p = { .formula = formula, .at = formula, .in = in, .run = run };
    quantity value = whole(&p);
    return value.known ? value.number : -1;
}

void formula_print(strbuf *out, const char *formula, const instance *in, formula_style style)
{
    formula = formula_text(formula);
    parser p = { .formula = formula, .at = formula, .in = in, .out = out, .style = style };
    whole(&p);
    out->text[out->length] = '\0';
}

const char *formula_names(arena *a, const char *formula, const instance *in)
{
    strbuf text = strbuf_new(a);
    formula_print(&text, formula, in, FORMULA_NAMES);
    return text.text;
}

const char *formula_text(const char *formula)
{
    return formula ? formula : "1";
}
