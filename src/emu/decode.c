/* Instructions: from what is written to an op.
 *
 * An instruction is looked up in emu_ops.def by its name and modifiers. The decoder of its row then
 * takes its operands one by one, says which type each must have, and chooses the function that will
 * run it.
 */
#include "base/strbuf.h"
#include "emu/machine.h"
#include "emu/parser.h"
#include "emu/table.h"

enum { MAX_READS = 24, MAX_WRITES = 12 };

typedef struct decoder {
    parser *p;
    const instruction *in;
    op op;
    uint32_t reads[MAX_READS], writes[MAX_WRITES];
} decoder;

static _Noreturn void wrong(decoder *d, const char *what)
{
    syntax_error(&d->p->lex, d->in->line, "%s: %s", d->in->name, what);
}

static bool has(const instruction *in, const char *modifier)
{
    for (unsigned i = 0; i < in->modifier_count; i++)
        if (strcmp(in->modifiers[i], modifier) == 0)
            return true;
    return false;
}

static ptx_type last_type(const instruction *in)
{
    return in->modifier_count ? type_named(in->modifiers[in->modifier_count - 1]) : TYPE_NONE;
}

/* The modifier of in that is in a list, as its index; count when none is. */
static unsigned which(const instruction *in, const char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (has(in, names[i]))
            return i;
    return count;
}

static bool type_takes(ptx_type wanted, ptx_type given, bool wider)
{
    type_kind want = type_kind_of(wanted), have = type_kind_of(given);
    if (want == KIND_PREDICATE || have == KIND_PREDICATE)
        return want == have;
    if (type_bits(given) != type_bits(wanted) && !(wider && type_bits(given) > type_bits(wanted)))
        return false;
    if (want == KIND_BITS || have == KIND_BITS)
        return true;
    return (want == KIND_FLOAT) == (have == KIND_FLOAT) && (want != KIND_FLOAT || wanted == given);
}

static const operand *at(decoder *d, unsigned index)
{
    if (index >= d->in->operand_count)
        syntax_error(&d->p->lex, d->in->line, "%s needs more than %u operands", d->in->name,
                     d->in->operand_count);
    return &d->in->operands[index];
}

static void expect_count(decoder *d, unsigned least, unsigned most)
{
    if (d->in->operand_count < least || d->in->operand_count > most)
        syntax_error(&d->p->lex, d->in->line, "%s has %u operands and takes %u", d->in->name,
                     d->in->operand_count, least);
}

static void check_register(decoder *d, const operand *o, ptx_type type, bool wider)
{
    const reg *r = &d->p->entry->regs.items[o->index];
    if (!type_takes(type, r->type, wider))
        syntax_error(&d->p->lex, d->in->line, "%s takes a .%s here and %s is a .%s", d->in->name,
                     type_name(type), r->name, type_name(r->type));
}

static uint32_t read_register(decoder *d, uint32_t index)
{
    if (d->op.reads == MAX_READS)
        wrong(d, "too many operands");
    d->reads[d->op.reads++] = index;
    return d->p->entry->regs.items[index].place;
}

static uint32_t write_register(decoder *d, uint32_t index)
{
    if (d->op.writes == MAX_WRITES)
        wrong(d, "too many operands");
    d->writes[d->op.writes++] = index;
    return d->p->entry->regs.items[index].place;
}

static bool fits(uint64_t value, unsigned bits)
{
    return bits == 64 || value < UINT64_C(1) << bits ||
           value >= UINT64_MAX - (UINT64_C(1) << (bits - 1)) + 1;
}

static uint64_t float_bits(decoder *d, const operand *o, ptx_type type)
{
    if (type_bits(type) == 32) {
        if (o->single)
            return o->bits;
        double wide;
        memcpy(&wide, &o->bits, sizeof wide);
        float narrow = (float)wide;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    if (type_bits(type) != 64)
        wrong(d, "a floating-point constant has 32 or 64 bits");
    if (!o->single)
        return o->bits;
    uint32_t low = (uint32_t)o->bits;
    float narrow;
    memcpy(&narrow, &low, sizeof narrow);
    double wide = (double)narrow;
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return bits;
}

/* The place of a constant of a type. */
static uint32_t constant_operand(decoder *d, const operand *o, ptx_type type)
{
    unsigned width = type_bits(type);
    type_kind kind = type_kind_of(type);
    if (kind == KIND_PREDICATE)
        return o->kind == OPERAND_INTEGER && o->bits ? PREDICATE_TRUE : PREDICATE_FALSE;
    uint64_t bits = o->bits;
    if (o->kind == OPERAND_FLOAT) {
        if (kind != KIND_FLOAT && kind != KIND_BITS)
            syntax_error(&d->p->lex, d->in->line,
                         "%s takes a .%s here, not a floating-point constant", d->in->name,
                         type_name(type));
        bits = float_bits(d, o, type);
    } else {
        if (kind == KIND_FLOAT)
            syntax_error(&d->p->lex, d->in->line,
                         "%s takes a .%s here, not the integer constant %lld", d->in->name,
                         type_name(type), (long long)o->bits);
        if (!fits(bits, width))
            syntax_error(&d->p->lex, d->in->line, "constant %lld does not fit a .%s",
                         (long long)bits, type_name(type));
    }
    if (width < 64)
        bits &= (UINT64_C(1) << width) - 1;
    return constant_place(d->p, bits, NULL, width == 64);
}

static uint32_t source_place(decoder *d, const operand *o, ptx_type type, bool wider)
{
    switch (o->kind) {
    case OPERAND_REG:
        check_register(d, o, type, wider);
        return read_register(d, o->index);
    case OPERAND_INTEGER:
    case OPERAND_FLOAT:
        return constant_operand(d, o, type);
    case OPERAND_SPECIAL:
        syntax_error(&d->p->lex, d->in->line, "%s: only mov and cvt read a special register",
                     d->in->name);
    case OPERAND_LABEL:
        syntax_error(&d->p->lex, d->in->line, "'%s' is not declared", o->name);
    default:
        wrong(d, "this operand must be a register or a constant");
    }
}

static void take_source(decoder *d, unsigned to, unsigned index, ptx_type type)
{
    const operand *o = at(d, index);
    if (o->pair || (o->negated && type != TYPE_pred))
        wrong(d, "'!' and '|' are for predicates");
    d->op.src[to] = source_place(d, o, type, false);
}

static uint32_t result_place(decoder *d, const operand *o, ptx_type type, bool wider)
{
    if (o->kind == OPERAND_SINK)
        return d->p->sink;
    if (o->kind != OPERAND_REG || o->negated) {
        if (o->kind == OPERAND_LABEL)
            syntax_error(&d->p->lex, d->in->line, "'%s' is not declared", o->name);
        wrong(d, "the result must be a register");
    }
    check_register(d, o, type, wider);
    return write_register(d, o->index);
}

static void take_result(decoder *d, unsigned to, unsigned index, ptx_type type)
{
    const operand *o = at(d, index);
    if (o->pair)
        wrong(d, "only one result");
    d->op.dst[to] = result_place(d, o, type, false);
}

/* A predicate result; where there is none, one that nobody reads. */
static uint32_t predicate_result(decoder *d, const operand *o)
{
    if (!o || o->kind == OPERAND_SINK)
        return UINT32_MAX;
    if (o->kind != OPERAND_REG || o->type != TYPE_pred)
        wrong(d, "this result must be a predicate");
    return write_register(d, o->index);
}

static void take_predicate(decoder *d, unsigned to, unsigned index)
{
    const operand *o = at(d, index);
    d->op.src[to] = source_place(d, o, TYPE_pred, false);
    d->op.pred_not = o->negated;
}

static void take_types(decoder *d)
{
    const instruction *in = d->in;
    ptx_type type = last_type(in);
    d->op.type = (uint8_t)type;
    d->op.type2 = (uint8_t)type;
    if (in->modifier_count >= 2) {
        ptx_type before = type_named(in->modifiers[in->modifier_count - 2]);
        d->op.type = (uint8_t)(before ? before : type);
    }
}

static ptx_combine combine_of(const instruction *in)
{
    static const char *const names[] = { "add", "min", "max", "inc", "dec",  "exch",
                                         "cas", "and", "or",  "xor", "popc" };
    enum { COUNT = sizeof names / sizeof *names };
    unsigned found = which(in, names, COUNT);
    return found < COUNT ? (ptx_combine)(found + COMBINE_ADD) : COMBINE_NONE;
}

static ptx_space space_of(const instruction *in)
{
    static const char *const names[] = { "global", "shared", "local", "param", "const" };
    unsigned found = which(in, names, 5);
    if (has(in, "shared::cta"))
        return SPACE_SHARED;
    return found < 5 ? (ptx_space)(found + SPACE_GLOBAL) : SPACE_GENERIC;
}

/* Where a path through the text has a use for a shared array, the entry has it. */
static void use_variable(decoder *d, const variable *v)
{
    entry *e = d->p->entry;
    if (v->space != SPACE_SHARED)
        return;
    e->uses_dynamic_shared |= v->dynamic;
    for (size_t i = 0; i < e->shared.list.count; i++)
        if (e->shared.list.items[i] == v)
            return;
    *VEC_PUSH(d->p->arena, &e->shared.list) = v;
}

static uint64_t param_address(const operand *o)
{
    return ((uint64_t)o->index + 1) << PARAM_STRIDE_LOG2;
}

/* The place of an address as a value: what mov and cvta take besides registers. */
static uint32_t address_place(decoder *d, const operand *o, bool wide)
{
    if (o->kind == OPERAND_PARAM)
        return constant_place(d->p, param_address(o) + (uint64_t)o->offset, NULL, wide);
    const variable *v = o->variable;
    bool in_memory = v->space == SPACE_GLOBAL || v->space == SPACE_CONST;
    use_variable(d, v);
    if (in_memory && !wide)
        wrong(d, "an address of global memory has 64 bits");
    return constant_place(d->p, (in_memory ? 0 : v->offset) + (uint64_t)o->offset,
                          in_memory ? v : NULL, wide);
}

/* [base + offset] */
static void take_address(decoder *d, unsigned to, unsigned index)
{
    const operand *o = at(d, index);
    if (o->kind != OPERAND_ADDRESS)
        wrong(d, "an address stands in brackets");
    const operand *base = o->elements;
    d->op.address64 = true;
    d->op.offset = o->offset;
    if (!base) {
        d->op.src[to] = constant_place(d->p, 0, NULL, true);
    } else if (base->kind == OPERAND_REG) {
        ptx_type type = d->p->entry->regs.items[base->index].type;
        type_kind kind = type_kind_of(type);
        if ((type_bits(type) != 32 && type_bits(type) != 64) || kind == KIND_FLOAT)
            wrong(d, "an address is an integer of 32 or 64 bits");
        d->op.address64 = type_bits(type) == 64;
        d->op.src[to] = read_register(d, base->index);
    } else {
        d->op.src[to] = address_place(d, base, true);
    }
}

/* A space that the address of a variable contradicts is a mistake that no run is needed for. */
static void check_space(decoder *d, unsigned index)
{
    const operand *base = at(d, index)->elements;
    ptx_space space = (ptx_space)d->op.space;
    if (!base || base->kind == OPERAND_REG)
        return;
    ptx_space declared = base->kind == OPERAND_PARAM ? SPACE_PARAM : base->variable->space;
    if (space == SPACE_GENERIC && (declared == SPACE_GLOBAL || declared == SPACE_CONST))
        return;
    if (space != declared)
        wrong(d, "this variable is in another state space");
}

/* n elements in braces or one register, as sources or results. */
static void take_vector(decoder *d, unsigned index, ptx_type type, bool result)
{
    const operand *o = at(d, index);
    unsigned count = has(d->in, "v2") ? 2 : has(d->in, "v4") ? 4 : has(d->in, "v8") ? 8 : 1;
    bool wider = type_kind_of(type) != KIND_FLOAT;
    const operand *elements = o->kind == OPERAND_VECTOR ? o->elements : o;
    if ((o->kind == OPERAND_VECTOR ? o->count : 1) != count)
        wrong(d, "the vector has another number of elements");
    if (count * type_bits(type) > (count == 8 ? 256 : 128))
        wrong(d, "a vector has at most 128 bits");
    d->op.vector = (uint8_t)count;
    d->op.dst_bits = d->op.src_bits = 32;
    for (unsigned i = 0; i < count; i++) {
        const operand *e = &elements[i];
        if (result)
            d->op.dst[i] = result_place(d, e, type, wider);
        else
            d->op.src[i + 1] = source_place(d, e, type, wider);
        unsigned bits = e->kind == OPERAND_REG ? type_bits(e->type) : type_bits(type);
        if (i > 0 && e->kind == OPERAND_REG && elements[0].kind == OPERAND_REG &&
            bits != type_bits(elements[0].type))
            wrong(d, "the elements of a vector have one size");
        if (e->kind == OPERAND_REG || !result)
            d->op.dst_bits = d->op.src_bits = (uint8_t)bits;
    }
}

static void decode_ld(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 2, 2);
    d->op.space = (uint8_t)(strcmp(d->in->name, "ldu") ? space_of(d->in) : SPACE_GLOBAL);
    d->op.type = (uint8_t)type;
    d->op.non_coherent = has(d->in, "nc");
    d->op.strong = has(d->in, "volatile") || has(d->in, "relaxed") || has(d->in, "acquire");
    take_vector(d, 0, type, true);
    take_address(d, 0, 1);
    check_space(d, 1);
    d->op.exec = d->op.space == SPACE_PARAM ? exec_ld_param : exec_ld;
}

static void decode_st(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.type = (uint8_t)type;
    d->op.strong = has(d->in, "volatile") || has(d->in, "relaxed") || has(d->in, "release");
    take_address(d, 0, 0);
    check_space(d, 0);
    take_vector(d, 1, type, false);
    d->op.exec = exec_st;
}

static void decode_atom(decoder *d)
{
    static const struct {
        ptx_combine combine;
        const char *types;
    } allowed[] = {
        { COMBINE_ADD, "u32 s32 u64 f32 f64" },
        { COMBINE_MIN, "u32 s32 u64 s64" },
        { COMBINE_MAX, "u32 s32 u64 s64" },
        { COMBINE_INC, "u32" },
        { COMBINE_DEC, "u32" },
        { COMBINE_EXCH, "b32 b64" },
        { COMBINE_CAS, "b32 b64" },
        { COMBINE_AND, "b32 b64" },
        { COMBINE_OR, "b32 b64" },
        { COMBINE_XOR, "b32 b64" },
    };
    bool atom = strcmp(d->in->name, "atom") == 0;
    unsigned next = atom;
    ptx_type type = last_type(d->in);
    d->op.combine = (uint8_t)combine_of(d->in);
    d->op.type = (uint8_t)type;
    d->op.space = (uint8_t)space_of(d->in);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (allowed[i].combine == d->op.combine && !strstr(allowed[i].types, type_name(type)))
            wrong(d, "this operation does not exist for this type");
    unsigned count = next + (d->op.combine == COMBINE_CAS ? 3 : 2);
    expect_count(d, count, count);
    d->op.dst[0] = d->p->sink;
    if (atom)
        take_result(d, 0, 0, type);
    take_address(d, 0, next);
    check_space(d, next);
    take_source(d, 1, next + 1, type);
    if (d->op.combine == COMBINE_CAS)
        take_source(d, 2, next + 2, type);
    d->op.exec = exec_atom;
}

static void decode_cvta(decoder *d)
{
    if (last_type(d->in) != TYPE_u64)
        wrong(d, "addresses have 64 bits");
    expect_count(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.variant = has(d->in, "to");
    take_result(d, 0, 0, TYPE_u64);
    const operand *o = at(d, 1);
    if (o->kind == OPERAND_VARIABLE && !d->op.variant)
        d->op.src[0] = address_place(d, o, true);
    else
        take_source(d, 0, 1, TYPE_u64);
    d->op.exec = exec_cvta;
}

static void decode_isspacep(decoder *d)
{
    expect_count(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.dst[0] = predicate_result(d, at(d, 0));
    take_source(d, 0, 1, TYPE_u64);
    d->op.exec = exec_isspacep;
}

/* d = {a, b}: elements of equal size fill d from its low end; {a, b} = d the other way. */
static void decode_vector_move(decoder *d, ptx_type type)
{
    const operand *to = at(d, 0), *from = at(d, 1);
    bool pack = from->kind == OPERAND_VECTOR;
    const operand *vector = pack ? from : to;
    if (pack == (to->kind == OPERAND_VECTOR))
        wrong(d, "one of the operands must be a register");
    unsigned bits = type_bits(type) / vector->count;
    ptx_type element = bits == 32 ? TYPE_b32 : bits == 16 ? TYPE_b16 : TYPE_b8;
    if (type_kind_of(type) != KIND_BITS || bits * vector->count != type_bits(type) ||
        type_bits(element) != bits)
        wrong(d, "the vector's elements do not make up the register");
    d->op.vector = (uint8_t)vector->count;
    d->op.dst_bits = (uint8_t)type_bits(type);
    d->op.src_bits = (uint8_t)bits;
    for (unsigned i = 0; i < vector->count; i++) {
        const operand *e = &vector->elements[i];
        if (pack)
            d->op.src[i] = source_place(d, e, element, false);
        else
            d->op.dst[i] = result_place(d, e, element, false);
    }
    if (pack)
        take_result(d, 0, 0, type);
    else
        take_source(d, 0, 1, type);
    d->op.exec = pack ? exec_pack : exec_unpack;
}

static bool is_clock(special s)
{
    return s == SPECIAL_CLOCK || s == SPECIAL_CLOCK_HI || s == SPECIAL_CLOCK64 ||
           s == SPECIAL_GLOBALTIMER;
}

static void decode_mov(decoder *d)
{
    ptx_type type = last_type(d->in);
    bool wide = type_bits(type) == 64;
    expect_count(d, 2, 2);
    const operand *from = at(d, 1);
    if (from->kind == OPERAND_VECTOR || at(d, 0)->kind == OPERAND_VECTOR) {
        decode_vector_move(d, type);
        return;
    }
    take_result(d, 0, 0, type);
    d->op.exec = wide ? exec_move64 : exec_move32;
    if (from->kind == OPERAND_SPECIAL) {
        if (!type_takes(type, from->type, false))
            wrong(d, "the special register has another size");
        d->op.variant = (uint8_t)from->special;
        if (is_clock(from->special))
            d->op.exec = exec_clock;
        else
            d->op.src[0] = special_register(d->p, from->special);
    } else if (from->kind == OPERAND_VARIABLE || from->kind == OPERAND_PARAM) {
        if (type_kind_of(type) == KIND_FLOAT || type_bits(type) < 32)
            wrong(d, "an address is an integer of 32 or 64 bits");
        d->op.src[0] = address_place(d, from, wide);
    } else {
        take_source(d, 0, 1, type);
    }
}

static void decode_predicate_move(decoder *d)
{
    expect_count(d, 2, 2);
    d->op.dst[0] = predicate_result(d, at(d, 0));
    take_predicate(d, 0, 1);
    d->op.exec = exec_predicate_move;
}

static void decode_predicate_not(decoder *d)
{
    decode_predicate_move(d);
    d->op.exec = exec_predicate_not;
}

static void decode_predicate_logic(decoder *d)
{
    expect_count(d, 3, 3);
    d->op.combine = (uint8_t)(d->in->name[0] == 'a'   ? COMBINE_AND
                              : d->in->name[0] == 'o' ? COMBINE_OR
                                                      : COMBINE_XOR);
    d->op.dst[0] = predicate_result(d, at(d, 0));
    take_predicate(d, 1, 1);
    if (d->op.pred_not)
        wrong(d, "'!' stands before the last operand only");
    d->op.src[0] = d->op.src[1];
    take_predicate(d, 1, 2);
    d->op.exec = exec_predicate_logic;
}

static void take_compare(decoder *d, ptx_type type)
{
    static const struct {
        const char *name;
        ptx_compare compare;
    } names[] = {
        { "eq", COMPARE_EQ },   { "ne", COMPARE_NE },   { "lt", COMPARE_LT },
        { "le", COMPARE_LE },   { "gt", COMPARE_GT },   { "ge", COMPARE_GE },
        { "lo", COMPARE_LT },   { "ls", COMPARE_LE },   { "hi", COMPARE_GT },
        { "hs", COMPARE_GE },   { "equ", COMPARE_EQU }, { "neu", COMPARE_NEU },
        { "ltu", COMPARE_LTU }, { "leu", COMPARE_LEU }, { "gtu", COMPARE_GTU },
        { "geu", COMPARE_GEU }, { "num", COMPARE_NUM }, { "nan", COMPARE_NAN },
    };
    const char *name = d->in->modifiers[0];
    type_kind kind = type_kind_of(type);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            d->op.compare = (uint8_t)names[i].compare;
    bool unordered = d->op.compare >= COMPARE_EQU;
    bool of_unsigned = name[0] == 'h' || strcmp(name, "lo") == 0 || strcmp(name, "ls") == 0;
    if ((unordered && kind != KIND_FLOAT) || (of_unsigned && kind != KIND_UNSIGNED) ||
        (kind == KIND_BITS && d->op.compare > COMPARE_NE))
        wrong(d, "this comparison does not exist for this type");
}

static void decode_comparison(decoder *d, unsigned results)
{
    ptx_type type = last_type(d->in);
    d->op.combine = (uint8_t)combine_of(d->in);
    bool combined = d->op.combine != COMBINE_NONE;
    expect_count(d, results + 2 + combined, results + 2 + combined);
    d->op.type2 = (uint8_t)type;
    take_compare(d, type);
    take_source(d, 0, results, type);
    take_source(d, 1, results + 1, type);
    d->op.src[2] = PREDICATE_TRUE;
    if (combined)
        take_predicate(d, 2, results + 2);
}

static void decode_setp(decoder *d)
{
    const operand *to = at(d, 0);
    decode_comparison(d, 1);
    d->op.dst[0] = predicate_result(d, to);
    d->op.dst[1] = predicate_result(d, to->pair);
    d->op.exec = exec_setp;
}

static void decode_set(decoder *d)
{
    decode_comparison(d, 1);
    d->op.type = (uint8_t)type_named(d->in->modifiers[d->in->modifier_count - 2]);
    take_result(d, 0, 0, (ptx_type)d->op.type);
    d->op.exec = exec_set;
}

static void decode_selp(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 4, 4);
    take_result(d, 0, 0, type);
    take_source(d, 0, 1, type);
    take_source(d, 1, 2, type);
    take_predicate(d, 2, 3);
    d->op.exec = type_bits(type) == 64 ? exec_selp64 : exec_selp32;
}

static void decode_testp(decoder *d)
{
    static const char *const names[] = { "finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal" };
    ptx_type type = last_type(d->in);
    expect_count(d, 2, 2);
    d->op.type = (uint8_t)type;
    d->op.variant = (uint8_t)which(d->in, names, 6);
    d->op.dst[0] = predicate_result(d, at(d, 0));
    take_source(d, 0, 1, type);
    d->op.exec = exec_testp;
}

static void decode_add_carry(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 3, 3);
    d->op.type = (uint8_t)type;
    d->op.variant = (uint8_t)((d->in->name[strlen(d->in->name) - 1] == 'c') |
                              (unsigned)has(d->in, "cc") << 1);
    take_result(d, 0, 0, type);
    take_source(d, 0, 1, type);
    take_source(d, 1, 2, type);
    d->op.exec = exec_add_carry;
}

static void decode_sub_carry(decoder *d)
{
    decode_add_carry(d);
    d->op.exec = exec_sub_carry;
}

static void decode_mad_carry(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 4, 4);
    d->op.type = (uint8_t)type;
    d->op.variant = (uint8_t)((d->in->name[3] == 'c') | (unsigned)has(d->in, "cc") << 1 |
                              (unsigned)has(d->in, "hi") << 2);
    take_result(d, 0, 0, type);
    for (unsigned i = 0; i < 3; i++)
        take_source(d, i, i + 1, type);
    d->op.exec = exec_mad_carry;
}

/* cvt.dtype.stype: integer registers may be wider than the types. */
static void decode_cvt(decoder *d)
{
    take_types(d);
    ptx_type to = (ptx_type)d->op.type, from = (ptx_type)d->op.type2;
    bool to_float = type_kind_of(to) == KIND_FLOAT, from_float = type_kind_of(from) == KIND_FLOAT;
    bool rounds = d->op.mods & (MOD_DIRECTED | MOD_INTEGRAL) || has(d->in, "rn");
    bool integral = d->op.mods & MOD_INTEGRAL;
    bool narrows = to_float && (!from_float || type_bits(to) < type_bits(from) ||
                                (type_bits(to) == type_bits(from) && to != from));
    expect_count(d, 2, 2);
    if (from_float && !to_float && !integral)
        wrong(d, "a conversion to an integer needs .rni, .rzi, .rmi or .rpi");
    if (narrows && (!rounds || integral))
        wrong(d, "this conversion needs a rounding modifier, as in .rn");
    if (rounds && !to_float && !from_float)
        wrong(d, "a conversion between integers is not rounded");
    if (rounds && to_float && !narrows && !(integral && to == from))
        wrong(d, "this conversion is exact and takes no rounding modifier");
    const operand *result = at(d, 0), *from_operand = at(d, 1);
    d->op.dst[0] = result_place(d, result, to, !to_float);
    d->op.dst_bits = (uint8_t)type_bits(result->kind == OPERAND_REG ? result->type : to);
    d->op.src_bits = (uint8_t)type_bits(from);
    if (from_operand->kind == OPERAND_SPECIAL && !is_clock(from_operand->special)) {
        d->op.src[0] = special_register(d->p, from_operand->special);
        d->op.src_bits = (uint8_t)type_bits(from_operand->type);
        if (from_float || d->op.src_bits < type_bits(from))
            wrong(d, "the special register has another type");
    } else {
        d->op.src[0] = source_place(d, from_operand, from, !from_float);
        if (from_operand->kind == OPERAND_REG)
            d->op.src_bits = (uint8_t)type_bits(from_operand->type);
    }
    d->op.exec = cvt_exec(&d->op);
}

static void decode_cvt_pair(decoder *d)
{
    take_types(d);
    expect_count(d, 3, 3);
    take_result(d, 0, 0, (ptx_type)d->op.type);
    take_source(d, 0, 1, TYPE_f32);
    take_source(d, 1, 2, TYPE_f32);
    d->op.exec = exec_cvt_pair;
}

static void decode_cvt_pack(decoder *d)
{
    bool joined = last_type(d->in) == TYPE_b32;
    expect_count(d, 3 + joined, 3 + joined);
    d->op.type = (uint8_t)type_named(d->in->modifiers[2]);
    if (joined != (type_bits((ptx_type)d->op.type) == 8))
        wrong(d, "a third operand goes with 8-bit results");
    take_result(d, 0, 0, TYPE_b32);
    take_source(d, 0, 1, TYPE_s32);
    take_source(d, 1, 2, TYPE_s32);
    if (joined)
        take_source(d, 2, 3, TYPE_b32);
    d->op.exec = exec_cvt_pack;
}

static void decode_shfl(decoder *d)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx" };
    expect_count(d, 5, 5);
    const operand *to = at(d, 0);
    d->op.variant = (uint8_t)which(d->in, modes, 4);
    d->op.dst[0] = result_place(d, to, TYPE_b32, false);
    d->op.dst[1] = predicate_result(d, to->pair);
    for (unsigned i = 0; i < 4; i++)
        take_source(d, i, i + 1, i == 0 ? TYPE_b32 : TYPE_u32);
    d->op.exec = exec_shfl;
}

static void decode_vote(decoder *d)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot" };
    expect_count(d, 3, 3);
    d->op.variant = (uint8_t)which(d->in, modes, 4);
    if (d->op.variant == 3)
        take_result(d, 0, 0, TYPE_b32);
    else
        d->op.dst[0] = predicate_result(d, at(d, 0));
    take_predicate(d, 0, 1);
    take_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_vote;
}

static void decode_match(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 3, 3);
    const operand *to = at(d, 0);
    d->op.variant = has(d->in, "all");
    d->op.type = (uint8_t)type;
    d->op.dst[0] = result_place(d, to, TYPE_b32, false);
    d->op.dst[1] = predicate_result(d, to->pair);
    take_source(d, 0, 1, type);
    take_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_match;
}

static void decode_activemask(decoder *d)
{
    expect_count(d, 1, 1);
    take_result(d, 0, 0, TYPE_b32);
    d->op.exec = exec_activemask;
}

static void decode_redux(decoder *d)
{
    ptx_type type = last_type(d->in);
    expect_count(d, 3, 3);
    d->op.combine = (uint8_t)combine_of(d->in);
    d->op.type = (uint8_t)type;
    if ((d->op.combine >= COMBINE_AND) != (type == TYPE_b32))
        wrong(d, "this operation does not exist for this type");
    take_result(d, 0, 0, type);
    take_source(d, 0, 1, type);
    take_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_redux;
}

static void decode_bra(decoder *d)
{
    expect_count(d, 1, 1);
    const operand *to = at(d, 0);
    if (to->kind != OPERAND_LABEL)
        wrong(d, "a branch goes to a label");
    *VEC_PUSH(d->p->arena, &d->p->references) = (reference){
        .label = to->name, .op = (uint32_t)d->p->entry->ops.count, .line = d->in->line
    };
    d->op.is_branch = d->op.ends = true;
    d->op.exec = exec_bra;
}

static void decode_exit(decoder *d)
{
    expect_count(d, 0, 0);
    d->op.is_branch = d->op.ends = true;
    d->op.exec = exec_exit;
}

static void decode_trap(decoder *d)
{
    expect_count(d, 0, 0);
    d->op.exec = exec_trap;
}

/* Operands of an instruction that does nothing here are read all the same. */
static void decode_nothing(decoder *d)
{
    for (unsigned i = 0; i < d->in->operand_count; i++)
        if (d->in->operands[i].kind == OPERAND_ADDRESS)
            take_address(d, i, i);
        else
            take_source(d, i, i, TYPE_u32);
    d->op.exec = exec_nothing;
}

static void decode_bar_warp(decoder *d)
{
    expect_count(d, 1, 1);
    take_source(d, 0, 0, TYPE_u32);
    d->op.exec = exec_bar_warp;
}

enum { BAR_SYNC, BAR_ARRIVE, BAR_RED };

/* bar.sync a{, b}: barrier a, b threads; without b (then 0) all of the block. */
static void decode_bar(decoder *d)
{
    bool arrive = has(d->in, "arrive");
    expect_count(d, 1 + arrive, 2);
    take_source(d, 0, 0, TYPE_u32);
    d->op.src[1] = constant_place(d->p, 0, NULL, false);
    if (d->in->operand_count == 2)
        take_source(d, 1, 1, TYPE_u32);
    d->op.variant = arrive ? BAR_ARRIVE : BAR_SYNC;
    d->op.exec = exec_bar;
}

static void decode_bar_red(decoder *d)
{
    expect_count(d, 3, 4);
    bool counted = d->in->operand_count == 4;
    d->op.combine = (uint8_t)combine_of(d->in);
    if (d->op.combine == COMBINE_POPC)
        take_result(d, 0, 0, TYPE_u32);
    else
        d->op.dst[0] = predicate_result(d, at(d, 0));
    take_source(d, 0, 1, TYPE_u32);
    d->op.src[1] = constant_place(d->p, 0, NULL, false);
    if (counted)
        take_source(d, 1, 2, TYPE_u32);
    take_predicate(d, 2, counted ? 3 : 2);
    d->op.variant = BAR_RED;
    d->op.exec = exec_bar;
}

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
    return strncmp(pattern, name, length) == 0 && (pattern[length] == '\0' ||
                                                   strchr("[(.", pattern[length]));
}

/* Whether the modifiers of in are those that a pattern of its name allows, in that order. */
static bool matches(const char *pattern, const instruction *in)
{
    unsigned next = 0;
    for (const char *at_pattern = pattern + strlen(in->name); *at_pattern;) {
        char open = *at_pattern++;
        const char *close = at_pattern + strcspn(at_pattern, open == '.' ? "[(." : "])");
        bool taken = next < in->modifier_count &&
                     (open == '.' ? strlen(in->modifiers[next]) == (size_t)(close - at_pattern) &&
                                        memcmp(in->modifiers[next], at_pattern,
                                               (size_t)(close - at_pattern)) == 0
                                  : is_alternative(at_pattern, close, in->modifiers[next]));
        if (!taken && open != '[')
            return false;
        next += taken;
        at_pattern = open == '.' ? close : close + 1;
    }
    return next == in->modifier_count;
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
    expect_count(d, count + 1, count + 1);
    take_result(d, 0, 0, row->result);
    for (unsigned i = 0; i < count; i++)
        take_source(d, i, i + 1, row->sources[i]);
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
        syntax_error(&d->p->lex, d->in->line, "instruction '%s' is not known", full);
    syntax_error(&d->p->lex, d->in->line, "'%s' is not a form of %s that is known", full,
                 d->in->name);
}

static void decode_by_table(decoder *d)
{
    const char *full = full_name(d);
    const symbol *known = symbols_find(&d->p->forms, full);
    size_t row = known ? known->index : find_row(d, full);
    if (!known)
        symbols_add(&d->p->forms, d->p->arena, full, SYMBOL_FUNCTION)->index = (uint32_t)row;
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
        d.op.guard = read_register(&d, guard);
        d.op.guard_not = guard_not;
    }
    decode_by_table(&d);
    d.op.uses = (uint32_t)e->uses.count;
    for (unsigned i = 0; i < d.op.reads; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.reads[i];
    for (unsigned i = 0; i < d.op.writes; i++)
        *VEC_PUSH(p->arena, &e->uses) = d.writes[i];
    *VEC_PUSH(p->arena, &e->ops) = d.op;
}
