/* Decodes instructions into ops.
 *
 * An instruction name with its modifiers is a form. On its first use in a module, a form is looked
 * up in emu_ops.def, and its modifiers are decoded into a template op. Each instruction copies the
 * template and adds its operands, as the row's operand types say or by the row's decoder. */
#include "base/strbuf.h"
#include "emu/parse/parser.h"

typedef struct row {
    const char *pattern;
    op_exec *exec;
    const char *operands; /* NULL: decode handles the operands */
    void (*decode)(decoder *d);
    unsigned target; /* minimum target, 80 for sm_80; 0 = any */
} row;

static const row rows[] = {
#define ROW(name, pattern, operands, decode, target) \
    { pattern, exec_##name, operands, decode, target },
#include "emu/emu_ops.def"
};

typedef struct rule {
    enum { TAKES_TYPE, TAKES_VECTOR, TAKES_ADDRESS } takes;
    ptx_type type;
    unsigned count; /* registers of a group; 1: a single register without braces */
    bool result, pair, optional;
    bool group; /* in braces, even if count is 1 */
} rule;

typedef struct form {
    const row *row;      /* NULL: unknown */
    const char *unknown; /* message if unknown */
    op op;
    rule rules[MAX_OPERANDS];
    unsigned count, needed; /* number of operands, and of required ones */
} form;

static const row unknown_row = { .exec = exec_unknown, .operands = "" };
static const form unknown_form = {
    .row = &unknown_row,
    .op = { .exec = exec_unknown, .target = NO_TARGET, .reconverge = NO_TARGET },
};

/* Returns the index of a modifier in alternatives "a|b|c" that end at close, or -1. */
static int find_alternative(const char *alternatives, const char *close, const char *modifier)
{
    size_t length = strlen(modifier);
    int number = 0;
    for (const char *a = alternatives; a < close; number++) {
        const char *bar = memchr(a, '|', (size_t)(close - a)), *end = bar ? bar : close;
        if ((size_t)(end - a) == length && memcmp(a, modifier, length) == 0)
            return number;
        a = end + 1;
    }
    return -1;
}

/* Returns true if a pattern for the same name matches an instruction's modifiers. */
static bool matches(const char *pattern, const instruction *in, uint8_t *variant)
{
    /* ptxas accepts their modifiers in any order, and nvcc emits various orders */
    static const char *const unordered[] = { "ld", "st", "atom", "red" };
    bool any_order = false;
    for (size_t i = 0; i < sizeof unordered / sizeof *unordered; i++)
        any_order |= strcmp(in->name, unordered[i]) == 0;
    unsigned count = in->modifier_count, taken = 0;
    uint32_t done = 0; /* bit mask of matched modifiers */
    for (const char *element = pattern + strlen(in->name); *element;) {
        char open = *element++;
        const char *close = element + strcspn(element, open == '.' ? "[(<." : "])>");
        bool in_order = !any_order || taken + 1 >= count;
        unsigned i = in_order ? taken : 0;
        unsigned end = in_order ? taken + (taken < count) : count - 1;
        int number = -1;
        while (i < end &&
               (done >> i & 1 || (number = find_alternative(element, close, in->modifiers[i])) < 0))
            i++;
        if (i < end) {
            done |= UINT32_C(1) << i;
            taken++;
            if (open == '<')
                *variant = (uint8_t)number;
        } else if (open != '[') {
            return false;
        }
        element = open == '.' ? close : close + 1;
    }
    return taken == count;
}

/* Effects of words on an op, as modifiers or as the name (and.pred). */
static const struct {
    const char *word;
    size_t field; /* offset of a byte of an op */
    uint8_t value;
} meanings[] = {
#define SAYS(word, field, value)         \
    {                                    \
        word, offsetof(op, field), value \
    }
    SAYS("rz", mods, MOD_RZ),
    SAYS("rm", mods, MOD_RM),
    SAYS("rp", mods, MOD_RP),
    SAYS("rni", mods, MOD_INTEGRAL),
    SAYS("rzi", mods, MOD_INTEGRAL | MOD_RZ),
    SAYS("rmi", mods, MOD_INTEGRAL | MOD_RM),
    SAYS("rpi", mods, MOD_INTEGRAL | MOD_RP),
    SAYS("ftz", mods, MOD_FTZ),
    SAYS("sat", mods, MOD_SAT),
    SAYS("relu", mods, MOD_RELU),
    SAYS("NaN", mods, MOD_NAN),
    SAYS("global", space, SPACE_GLOBAL),
    SAYS("shared", space, SPACE_SHARED),
    SAYS("shared::cta", space, SPACE_SHARED),
    SAYS("shared::cluster", space, SPACE_SHARED),
    SAYS("local", space, SPACE_LOCAL),
    SAYS("param", space, SPACE_PARAM),
    SAYS("const", space, SPACE_CONST),
    SAYS("v2", vector, 2),
    SAYS("v4", vector, 4),
    SAYS("v8", vector, 8),
    SAYS("add", combine, COMBINE_ADD),
    SAYS("min", combine, COMBINE_MIN),
    SAYS("max", combine, COMBINE_MAX),
    SAYS("inc", combine, COMBINE_INC),
    SAYS("dec", combine, COMBINE_DEC),
    SAYS("exch", combine, COMBINE_EXCH),
    SAYS("cas", combine, COMBINE_CAS),
    SAYS("and", combine, COMBINE_AND),
    SAYS("or", combine, COMBINE_OR),
    SAYS("xor", combine, COMBINE_XOR),
    SAYS("popc", combine, COMBINE_POPC),
};

static void read_modifiers(const instruction *in, op *o)
{
    unsigned count = in->modifier_count;
    ptx_type type = count ? emu_type_named(in->modifiers[count - 1]) : TYPE_NONE;
    ptx_type before = count > 1 ? emu_type_named(in->modifiers[count - 2]) : TYPE_NONE;
    o->type = (uint8_t)(before ? before : type);
    o->type2 = (uint8_t)type;
    for (unsigned i = 0; i <= count; i++) {
        const char *word = i ? in->modifiers[i - 1] : in->name;
        for (size_t j = 0; j < sizeof meanings / sizeof *meanings; j++)
            if (strcmp(word, meanings[j].word) == 0)
                ((uint8_t *)o)[meanings[j].field] |= meanings[j].value;
    }
    if (!o->vector)
        o->vector = 1;
}

static rule make_rule(const char *text, size_t size, const op *o)
{
    rule r = { .optional = *text == '[', .count = 1 };
    char name[16] = "";
    text += r.optional;
    if (text[1] == '*') {
        r.count = *text > '9' ? decode_fragment_registers(o, *text) : (unsigned)(*text - '0');
        r.group = true;
        text += 2;
    }
    size_t length = strcspn(text, " |]");
    memcpy(name, text, length);
    r.pair = length < size && text[length] == '|';
    r.takes = strcmp(name, "vector") == 0    ? TAKES_VECTOR
              : strcmp(name, "address") == 0 ? TAKES_ADDRESS
                                             : TAKES_TYPE;
    r.type = (ptx_type)(strcmp(name, "T") == 0   ? o->type2
                        : strcmp(name, "D") == 0 ? o->type
                                                 : emu_type_named(name));
    return r;
}

static const form *make_form(decoder *d, const char *full)
{
    form *f = arena_zalloc(d->p->arena, sizeof *f);
    bool name_known = false;
    size_t length = strlen(d->in->name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !f->row; i++) {
        const char *pattern = rows[i].pattern;
        if (strncmp(pattern, d->in->name, length) != 0 ||
            (pattern[length] && !strchr("[(<.", pattern[length])))
            continue;
        name_known = true;
        f->row = matches(pattern, d->in, &d->op.variant) ? &rows[i] : NULL;
    }
    if (!f->row) {
        f->unknown = name_known ? arena_format(d->p->arena, "'%s' is not a known form of %s", full,
                                               d->in->name)
                                : arena_format(d->p->arena, "unknown instruction '%s'", full);
        return f;
    }
    if (d->p->module->target < f->row->target)
        DECODE_ERROR(d, "'%s' requires sm_%u or higher; .target is sm_%u", full, f->row->target,
                     d->p->module->target);
    read_modifiers(d->in, &d->op);
    d->op.exec = exec_lanes_here(f->row->exec);
    if (f->row->operands && f->row->decode)
        f->row->decode(d);
    f->op = d->op;
    const char *text = f->row->operands ? f->row->operands : "";
    for (bool result = strchr(text, '='); *(text += strspn(text, " "));) {
        size_t size = strcspn(text, " ");
        if (*text == '=') {
            result = false;
        } else {
            rule *r = &f->rules[f->count++];
            *r = make_rule(text, size, &f->op);
            r->result = result;
            f->needed += !r->optional;
        }
        text += size;
    }
    return f;
}

static const form *find_form(decoder *d)
{
    strbuf full = strbuf_new(d->p->arena);
    strbuf_put(&full, d->in->name);
    for (unsigned i = 0; i < d->in->modifier_count; i++) {
        strbuf_char(&full, '.');
        strbuf_put(&full, d->in->modifiers[i]);
    }
    const symbol *known = symbols_find(&d->p->forms, full.text);
    if (known)
        return known->form;
    const form *f = make_form(d, full.text);
    symbols_add(&d->p->forms, d->p->arena, full.text, SYMBOL_FORM)->form = f;
    return f;
}

static void take_operand(decoder *d, unsigned index, const rule *r, unsigned to)
{
    const operand *o = &d->in->operands[index];
    if (r->group) {
        unsigned given = o->kind == OPERAND_VECTOR ? o->count : 1;
        if (o->kind != OPERAND_VECTOR || given != r->count)
            DECODE_ERROR(d, "%s needs %u registers in braces as operand %u, not %u", d->in->name,
                         r->count, index + 1, given);
        for (unsigned i = 0; i < given; i++)
            if (r->result)
                d->op.dst[to + i] = decode_result_place(d, &o->elements[i], r->type, false);
            else
                d->op.src[to + i] = decode_source_place(d, &o->elements[i], r->type, false);
        return;
    }
    if (r->takes == TAKES_VECTOR)
        decode_vector(d, to, o, r->result);
    else if (r->takes == TAKES_ADDRESS)
        decode_address(d, to, o);
    else if (r->type == TYPE_pred && r->result)
        d->op.dst[to] = decode_predicate_result(d, o);
    else if (r->type == TYPE_pred)
        decode_predicate(d, to, o);
    else if (r->result)
        decode_result(d, to, o, r->type);
    else
        decode_source(d, to, o, r->type);
    if (r->pair) {
        d->pairs += o->pair != NULL;
        d->op.dst[to + 1] = decode_predicate_result(d, o->pair);
    }
}

static void take_operands(decoder *d, const form *f)
{
    unsigned results = 0, sources = 0, next = 0;
    decode_expect(d, f->needed, f->count);
    for (unsigned i = 0; i < f->count; i++) {
        const rule *r = &f->rules[i];
        unsigned *to = r->result ? &results : &sources;
        if (r->optional && d->in->operand_count == f->needed)
            d->op.src[*to] =
                r->type == TYPE_pred ? PREDICATE_TRUE : parser_constant(d->p, 0, NULL, false);
        else
            take_operand(d, next++, r, *to);
        *to += r->count;
    }
}

static decoder begin_decoder(parser *p, const instruction *in)
{
    return (decoder){ .p = p, .in = in, .op = { .target = NO_TARGET, .reconverge = NO_TARGET } };
}

const char *decode_find(parser *p, instruction *in)
{
    decoder d = begin_decoder(p, in);
    in->form = find_form(&d);
    return in->form->unknown;
}

void decode_unknown(parser *p, unsigned line, const operand *guard, const char *what)
{
    instruction in = { .line = line, .name = "", .form = &unknown_form, .guard = guard };
    parser_note_unknown(p, line, what);
    decode_instruction(p, &in)->dst[0] = (uint32_t)p->module->unknown.count - 1;
}

op *decode_instruction(parser *p, const instruction *in)
{
    entry *e = p->entry;
    decoder d = begin_decoder(p, in);
    const form *f = in->form ? in->form : find_form(&d);
    d.op = f->op;
    d.op.line = in->line;
    d.op.unused = d.op.exec == exec_ld ? in->unused_bytes : 0;
    d.op.guard = PREDICATE_TRUE;
    if (in->guard) {
        d.op.guard = decode_read_register(&d, in->guard->index);
        d.op.guard_not = in->guard->negated;
    }
    if (f->row->operands)
        take_operands(&d, f);
    else
        f->row->decode(&d);
    for (unsigned i = 0; i < in->operand_count; i++)
        d.pairs -= in->operands[i].pair != NULL;
    if (d.pairs)
        decode_error(&d, "a second result after '|' is not allowed here");
    d.op.uses = (uint32_t)e->uses.count;
    for (unsigned i = 0; i < d.op.reads; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.reads[i];
    for (unsigned i = 0; i < d.op.writes; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.writes[i];
    e->info.triggers |= d.op.exec == exec_launch_dependents;
    e->info.waits |= d.op.exec == exec_grid_wait;
    e->has_stack |=
        d.op.exec == exec_alloca || d.op.exec == exec_stack_save || d.op.exec == exec_stack_restore;
    op *added = VEC_PUSH(p->arena, &e->ops);
    *added = d.op;
    return added;
}

op *parser_emit(parser *p, unsigned line, const operand *guard, const char *text,
                const operand *operands, size_t count)
{
    instruction in = { .line = line, .guard = guard, .operand_count = (unsigned)count };
    for (size_t i = 0; i < count; i++)
        in.operands[i] = operands[i];
    char *word = arena_strdup(p->arena, text);
    in.name = word;
    while ((word = strchr(word, '.'))) {
        *word++ = '\0';
        in.modifiers[in.modifier_count++] = word;
    }
    return decode_instruction(p, &in);
}
