/* Instructions: from what is written to an op.
 *
 * An instruction is looked up in emu_ops.def by its name and modifiers. The decoder of its row then
 * takes its operands one by one, says which type each must have, and chooses the function that will
 * run it.
 */
#include "base/strbuf.h"
#include "emu/decoder.h"
#include "emu/table.h"

typedef struct special_row {
    const char *pattern;
    void (*decode)(decoder *d);
} special_row;

#define LANE1(name, pattern, R, A, value)
#define LANE2(name, pattern, R, A, B, value)
#define LANE3(name, pattern, R, A, B, C, value)
#define LANE4(name, pattern, R, A, B, C, D, value)
#define SPECIAL(pattern, decoder) { pattern, decode_##decoder },
static const special_row special_rows[] = {
#include "emu/emu_ops.def"
};

/* The modifier is one of the alternatives a|b|c that end at close. */
static bool is_alternative(const char *alternatives, const char *close, const char *modifier)
{
    size_t length = strlen(modifier);
    for (const char *a = alternatives; a < close;) {
        size_t size = strcspn(a, "|])");
        if (size == length && memcmp(a, modifier, length) == 0)
            return true;
        a += size + 1;
    }
    return false;
}

static bool names_instruction(const char *pattern, const char *name)
{
    size_t length = strlen(name);
    return strncmp(pattern, name, length) == 0 &&
           (pattern[length] == '\0' || strchr("[(.", pattern[length]));
}

/* Whether a modifier is what an element of a pattern that ends at close asks for. */
static bool is_wanted(const char *element, const char *close, char open, const char *modifier)
{
    if (open != '.')
        return is_alternative(element, close, modifier);
    size_t size = (size_t)(close - element);
    return strlen(modifier) == size && memcmp(modifier, element, size) == 0;
}

/* ptxas takes the modifiers of these in any order, and nvcc writes several of them. */
static bool takes_any_order(const char *name)
{
    static const char *const names[] = { "ld", "st", "atom", "red" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Whether the modifiers of in are those that a pattern of its name allows: in that order, or in any
 * with the type as the last. */
static bool matches(const char *pattern, const instruction *in)
{
    bool any_order = takes_any_order(in->name);
    unsigned count = in->modifier_count, taken = 0;
    uint32_t done = 0; /* a bit each: those that are taken */
    for (const char *element = pattern + strlen(in->name); *element;) {
        char open = *element++;
        const char *close = element + strcspn(element, open == '.' ? "[(." : "])");
        bool in_order = !any_order || taken + 1 >= count;
        unsigned i = in_order ? taken : 0;
        unsigned end = in_order ? taken + (taken < count) : count - 1;
        while (i < end && (done >> i & 1 || !is_wanted(element, close, open, in->modifiers[i])))
            i++;
        if (i < end) {
            done |= UINT32_C(1) << i;
            taken++;
        } else if (open != '[') {
            return false;
        }
        element = open == '.' ? close : close + 1;
    }
    return taken == count;
}

static uint8_t modifier_bits(const instruction *in)
{
    static const struct {
        const char *name;
        unsigned bits;
    } bits[] = {
        { "rz", MOD_RZ },
        { "rm", MOD_RM },
        { "rp", MOD_RP },
        { "rni", MOD_INTEGRAL },
        { "rzi", MOD_INTEGRAL | MOD_RZ },
        { "rmi", MOD_INTEGRAL | MOD_RM },
        { "rpi", MOD_INTEGRAL | MOD_RP },
        { "ftz", MOD_FTZ },
        { "sat", MOD_SAT },
        { "relu", MOD_RELU },
        { "NaN", MOD_NAN },
    };
    unsigned mods = 0;
    for (unsigned i = 0; i < in->modifier_count; i++)
        for (size_t j = 0; j < sizeof bits / sizeof *bits; j++)
            if (strcmp(in->modifiers[i], bits[j].name) == 0)
                mods |= bits[j].bits;
    return (uint8_t)mods;
}

static void decode_lane(decoder *d, const lane_row *row)
{
    unsigned count = 0;
    while (count < MAX_SOURCES && row->sources[count] != TYPE_NONE)
        count++;
    decode_expect(d, count + 1, count + 1);
    decode_result(d, 0, 0, row->result);
    for (unsigned i = 0; i < count; i++)
        decode_source(d, i, i + 1, row->sources[i]);
    d->op.exec = lane_exec_here(row->exec);
}

static const char *full_name(decoder *d)
{
    strbuf full = strbuf_new(d->p->arena);
    strbuf_put(&full, d->in->name);
    for (unsigned i = 0; i < d->in->modifier_count; i++) {
        strbuf_char(&full, '.');
        strbuf_put(&full, d->in->modifiers[i]);
    }
    return full.text;
}

static const char *row_pattern(size_t row)
{
    return row < lane_row_count ? lane_rows[row].pattern
                                : special_rows[row - lane_row_count].pattern;
}

/* The first row that fits: of the lanes, then of the others. */
static size_t find_row(decoder *d, const char *full)
{
    const size_t count = lane_row_count + sizeof special_rows / sizeof *special_rows;
    bool name_known = false;
    for (size_t i = 0; i < count; i++) {
        if (!names_instruction(row_pattern(i), d->in->name))
            continue;
        name_known = true;
        if (matches(row_pattern(i), d->in))
            return i;
    }
    if (!name_known)
        lexer_error(&d->p->lex, d->in->line, "instruction '%s' is not known", full);
    lexer_error(&d->p->lex, d->in->line, "'%s' is not a form of %s that is known", full,
                d->in->name);
}

static void decode_by_table(decoder *d)
{
    const char *full = full_name(d);
    const symbol *known = symbols_find(&d->p->forms, full);
    size_t row = known ? known->index : find_row(d, full);
    if (!known)
        symbols_add(&d->p->forms, d->p->arena, full, SYMBOL_FORM)->index = (uint32_t)row;
    if (row < lane_row_count)
        decode_lane(d, &lane_rows[row]);
    else
        special_rows[row - lane_row_count].decode(d);
}

void decode_instruction(parser *p, const instruction *in, uint32_t guard, bool guard_not)
{
    entry *e = p->entry;
    decoder d = { .p = p, .in = in };
    d.op = (op){ .line = in->line,
                 .guard = PREDICATE_TRUE,
                 .target = NO_TARGET,
                 .reconverge = NO_TARGET,
                 .vector = 1,
                 .mods = modifier_bits(in) };
    if (guard != UINT32_MAX) {
        d.op.guard = decode_read_register(&d, guard);
        d.op.guard_not = guard_not;
    }
    decode_by_table(&d);
    for (unsigned i = 0; i < in->operand_count; i++)
        d.pairs -= in->operands[i].pair != NULL;
    if (d.pairs)
        decode_error(&d, "a second result behind '|' does not exist here");
    d.op.uses = (uint32_t)e->uses.count;
    for (unsigned i = 0; i < d.op.reads; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.reads[i];
    for (unsigned i = 0; i < d.op.writes; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.writes[i];
    *VEC_PUSH(p->arena, &e->ops) = d.op;
}
