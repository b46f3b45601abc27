/* Decoding of operands: checks types, notes registers as read or written, and allocates constants
 * and addresses in the register file. */
#include "emu/parse/parser.h"

_Noreturn void decode_error(decoder *d, const char *what)
{
    DECODE_ERROR(d, "%s: %s", d->in->name, what);
}

bool instruction_has(const instruction *in, const char *modifier)
{
    for (unsigned i = 0; i < in->modifier_count; i++)
        if (strcmp(in->modifiers[i], modifier) == 0)
            return true;
    return false;
}

bool decode_type_takes(ptx_type wanted, ptx_type given, bool wider)
{
    type_kind want = emu_type_kind(wanted), have = emu_type_kind(given);
    if (want == KIND_PREDICATE || have == KIND_PREDICATE)
        return want == have;
    if (emu_type_bits(given) != emu_type_bits(wanted) &&
        !(wider && emu_type_bits(given) > emu_type_bits(wanted)))
        return false;
    if (want == KIND_BITS || have == KIND_BITS)
        return true;
    return (want == KIND_FLOAT) == (have == KIND_FLOAT) && (want != KIND_FLOAT || wanted == given);
}

void decode_expect(decoder *d, unsigned least, unsigned most)
{
    if (d->in->operand_count < least || d->in->operand_count > most)
        DECODE_ERROR(d, "%s has %u operands; it needs %u", d->in->name, d->in->operand_count,
                     least);
}

static void check_register(decoder *d, const operand *o, ptx_type type, bool wider)
{
    const reg *r = &d->p->entry->regs.items[o->index];
    if (!decode_type_takes(type, r->type, wider))
        DECODE_ERROR(d, "%s needs a .%s here; %s is a .%s", d->in->name, emu_type_name(type),
                     r->name, emu_type_name(r->type));
}

uint32_t decode_read_register(decoder *d, uint32_t index)
{
    if (d->op.reads == MAX_READS)
        decode_error(d, "too many operands");
    d->reads[d->op.reads++] = index;
    return d->p->entry->regs.items[index].place;
}

static uint32_t write_register(decoder *d, uint32_t index)
{
    if (d->op.writes == MAX_WRITES)
        decode_error(d, "too many operands");
    d->writes[d->op.writes++] = index;
    return d->p->entry->regs.items[index].place;
}

static uint32_t constant_operand(decoder *d, const operand *o, ptx_type type)
{
    unsigned width = emu_type_bits(type);
    type_kind kind = emu_type_kind(type);
    if (kind == KIND_PREDICATE)
        return o->kind == OPERAND_INTEGER && o->bits ? PREDICATE_TRUE : PREDICATE_FALSE;
    uint64_t bits = o->bits;
    if (o->kind == OPERAND_FLOAT) {
        if (kind != KIND_FLOAT && kind != KIND_BITS)
            DECODE_ERROR(d, "%s needs a .%s here, not a floating-point constant", d->in->name,
                         emu_type_name(type));
        if (width != 32 && width != 64)
            decode_error(d, "a floating-point constant must have 32 or 64 bits");
        bits = operand_float_bits(o, width == 64);
    } else {
        if (kind == KIND_FLOAT)
            DECODE_ERROR(d, "%s needs a .%s here, not the integer constant %lld", d->in->name,
                         emu_type_name(type), (long long)o->bits);
        bool fits = width == 64 || bits < UINT64_C(1) << width ||
                    bits >= UINT64_MAX - (UINT64_C(1) << (width - 1)) + 1;
        if (!fits)
            DECODE_ERROR(d, "constant %lld does not fit into a .%s", (long long)bits,
                         emu_type_name(type));
    }
    if (width < 64)
        bits &= (UINT64_C(1) << width) - 1;
    return parser_constant(d->p, bits, NULL, width == 64);
}

uint32_t decode_source_place(decoder *d, const operand *o, ptx_type type, bool wider)
{
    switch (o->kind) {
    case OPERAND_REG:
        check_register(d, o, type, wider);
        return decode_read_register(d, o->index);
    case OPERAND_INTEGER:
    case OPERAND_FLOAT:
        return constant_operand(d, o, type);
    case OPERAND_SPECIAL:
        DECODE_ERROR(d, "%s cannot read a special register; only mov and cvt can", d->in->name);
    case OPERAND_LABEL:
        DECODE_ERROR(d, "'%s' is not declared", o->name);
    default:
        decode_error(d, "this operand must be a register or a constant");
    }
}

void decode_source(decoder *d, unsigned to, const operand *o, ptx_type type)
{
    if (o->pair || (o->negated && type != TYPE_pred))
        decode_error(d, "'!' and '|' are only allowed with predicates");
    d->op.src[to] = decode_source_place(d, o, type, false);
}

uint32_t decode_result_place(decoder *d, const operand *o, ptx_type type, bool wider)
{
    if (o->kind == OPERAND_SINK)
        return SINK_PLACE;
    if (o->kind != OPERAND_REG || o->negated) {
        if (o->kind == OPERAND_LABEL)
            DECODE_ERROR(d, "'%s' is not declared", o->name);
        decode_error(d, "the result must be a register");
    }
    check_register(d, o, type, wider);
    return write_register(d, o->index);
}

void decode_result(decoder *d, unsigned to, const operand *o, ptx_type type)
{
    d->op.dst[to] = decode_result_place(d, o, type, false);
}

uint32_t decode_predicate_result(decoder *d, const operand *o)
{
    if (!o || o->kind == OPERAND_SINK)
        return UINT32_MAX;
    if (o->kind != OPERAND_REG || o->type != TYPE_pred || o->negated)
        decode_error(d, "this result must be a predicate");
    return write_register(d, o->index);
}

void decode_predicate(decoder *d, unsigned to, const operand *o)
{
    if (d->op.pred_not)
        decode_error(d, "'!' is only allowed before the last operand");
    d->op.src[to] = decode_source_place(d, o, TYPE_pred, false);
    d->op.pred_not = o->negated;
}
