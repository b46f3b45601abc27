/* Decoders of moves, conversions, carries, comparisons, reductions and control flow. */
#include "emu/parse/parser.h"

/* Decodes d = {a, b}, which packs equal elements from the low end of d, and {a, b} = d. */
static void decode_vector_move(decoder *d, ptx_type type)
{
    const operand *to = &d->in->operands[0], *from = &d->in->operands[1];
    bool pack = from->kind == OPERAND_VECTOR;
    const operand *vector = pack ? from : to;
    if (pack == (to->kind == OPERAND_VECTOR))
        decode_error(d, "one of the operands must be a register");
    unsigned bits = emu_type_bits(type) / vector->count;
    ptx_type element = bits == 32 ? TYPE_b32 : bits == 16 ? TYPE_b16 : TYPE_b8;
    if (emu_type_kind(type) != KIND_BITS || bits * vector->count != emu_type_bits(type) ||
        emu_type_bits(element) != bits)
        decode_error(d, "the sizes of the vector's elements do not add up to the register's");
    d->op.vector = (uint8_t)vector->count;
    d->op.dst_bits = (uint8_t)emu_type_bits(type);
    d->op.src_bits = (uint8_t)bits;
    for (unsigned i = 0; i < vector->count; i++) {
        const operand *e = &vector->elements[i];
        if (pack)
            d->op.src[i] = decode_source_place(d, e, element, false);
        else
            d->op.dst[i] = decode_result_place(d, e, element, false);
    }
    if (pack)
        decode_result(d, 0, to, type);
    else
        decode_source(d, 0, from, type);
    d->op.exec = pack ? exec_pack : exec_unpack;
}

void decode_mov(decoder *d)
{
    ptx_type type = (ptx_type)d->op.type2;
    bool wide = emu_type_bits(type) == 64;
    decode_expect(d, 2, 2);
    const operand *to = &d->in->operands[0], *from = &d->in->operands[1];
    if (from->kind == OPERAND_VECTOR || to->kind == OPERAND_VECTOR) {
        decode_vector_move(d, type);
        return;
    }
    decode_result(d, 0, to, type);
    if (from->kind == OPERAND_SPECIAL) {
        if (!decode_type_takes(type, from->type, false))
            decode_error(d, "the special register's size does not match the type");
        d->op.variant = (uint8_t)from->special;
        if (from->special >= SPECIAL_CLOCK)
            d->op.exec = exec_clock;
        else
            d->op.src[0] = parser_special(d->p, from->special);
    } else if (from->kind == OPERAND_VARIABLE || from->kind == OPERAND_PARAM) {
        if (emu_type_kind(type) == KIND_FLOAT || emu_type_bits(type) < 32)
            decode_error(d, "an address must be an integer of 32 or 64 bits");
        d->op.src[0] = decode_address_place(d, from, wide);
    } else if (from->kind == OPERAND_LABEL && wide && function_address(d->p, from->name)) {
        d->op.src[0] = parser_constant(d->p, function_address(d->p, from->name), NULL, true);
    } else {
        decode_source(d, 0, from, type);
    }
}

/* Decodes cvt.dtype.stype. Integer registers may be wider than the types. */
void decode_cvt(decoder *d)
{
    ptx_type to = (ptx_type)d->op.type, from = (ptx_type)d->op.type2;
    bool to_float = emu_type_kind(to) == KIND_FLOAT, from_float = emu_type_kind(from) == KIND_FLOAT;
    bool rounds = d->op.mods & (MOD_DIRECTED | MOD_INTEGRAL) || instruction_has(d->in, "rn");
    bool integral = d->op.mods & MOD_INTEGRAL;
    bool narrows = to_float && (!from_float || emu_type_bits(to) < emu_type_bits(from) ||
                                (emu_type_bits(to) == emu_type_bits(from) && to != from));
    decode_expect(d, 2, 2);
    if (d->op.mods & MOD_FTZ && to != TYPE_f32 && from != TYPE_f32)
        decode_error(d, "'.ftz' is only allowed with .f32");
    if (d->op.mods & MOD_RELU && ((to != TYPE_f16 && to != TYPE_bf16) || from != TYPE_f32))
        decode_error(d, "'.relu' is only allowed from .f32 to .f16 or .bf16");
    if (from_float && !to_float && !integral)
        decode_error(d, "a conversion to an integer needs .rni, .rzi, .rmi or .rpi");
    if (narrows && (!rounds || integral))
        decode_error(d, "this conversion needs a rounding modifier, such as .rn");
    if (rounds && !to_float && !from_float)
        decode_error(d, "a conversion between integers allows no rounding modifier");
    if (rounds && to_float && !narrows && !(integral && to == from))
        decode_error(d, "this conversion is exact and allows no rounding modifier");
    const operand *result = &d->in->operands[0], *from_operand = &d->in->operands[1];
    d->op.dst[0] = decode_result_place(d, result, to, !to_float);
    d->op.dst_bits = (uint8_t)emu_type_bits(result->kind == OPERAND_REG ? result->type : to);
    d->op.src_bits = (uint8_t)emu_type_bits(from);
    if (from_operand->kind == OPERAND_SPECIAL && from_operand->special < SPECIAL_CLOCK) {
        d->op.src[0] = parser_special(d->p, from_operand->special);
        d->op.src_bits = (uint8_t)emu_type_bits(from_operand->type);
        if (from_float || d->op.src_bits < emu_type_bits(from))
            decode_error(d, "the special register's type does not match");
    } else {
        d->op.src[0] = decode_source_place(d, from_operand, from, !from_float);
        if (from_operand->kind == OPERAND_REG)
            d->op.src_bits = (uint8_t)emu_type_bits(from_operand->type);
    }
    d->op.exec = exec_cvt_for(&d->op);
}

void decode_cvt_pack(decoder *d)
{
    bool joined = d->op.type2 == TYPE_b32;
    d->op.type = (uint8_t)emu_type_named(d->in->modifiers[2]);
    if (joined != (emu_type_bits(d->op.type) == 8))
        decode_error(d, "8-bit results need a third operand, and others allow none");
}

/* addc, subc and madc have a carry in. */
void decode_carry(decoder *d)
{
    bool carry_in = d->in->name[strlen(d->in->name) - 1] == 'c';
    d->op.variant =
        (uint8_t)((carry_in ? CARRY_IN : 0) | (instruction_has(d->in, "cc") ? CARRY_OUT : 0) |
                  (instruction_has(d->in, "hi") ? MUL_HIGH : 0));
}

/* Maps the comparison of setp and set, an index in their pattern, to ptx_compare. */
void decode_compare(decoder *d)
{
    enum { LO = 6, HS = 9 }; /* lo, ls, hi, hs: unsigned lt, le, gt, ge */
    ptx_type type = (ptx_type)d->op.type2;
    type_kind kind = emu_type_kind(type);
    bool of_unsigned = d->op.variant >= LO && d->op.variant <= HS;
    d->op.compare = (uint8_t)(d->op.variant < LO ? d->op.variant : d->op.variant - 4);
    if (d->op.mods & MOD_FTZ && type != TYPE_f32 && type != TYPE_f16 && type != TYPE_f16x2)
        decode_error(d, "'.ftz' is not allowed with this type");
    if ((d->op.compare >= COMPARE_EQU && kind != KIND_FLOAT) ||
        (of_unsigned && kind != KIND_UNSIGNED) || (kind == KIND_BITS && d->op.compare > COMPARE_NE))
        decode_error(d, "this comparison does not exist for this type");
}

void decode_redux(decoder *d)
{
    if ((d->op.combine >= COMBINE_AND) != (d->op.type == TYPE_b32))
        decode_error(d, "this operation does not exist for this type");
}

void decode_exit(decoder *d)
{
    d->op.is_branch = d->op.ends = true;
    d->op.uniform = instruction_has(d->in, "uni");
}

void decode_bra(decoder *d)
{
    decode_expect(d, 1, 1);
    const operand *to = &d->in->operands[0];
    if (to->kind != OPERAND_LABEL)
        decode_error(d, "the target of a branch must be a label");
    *VEC_PUSH(d->p->arena, &d->p->references) = (reference){ .label = to->name,
                                                             .op = (uint32_t)d->p->entry->ops.count,
                                                             .line = d->in->line };
    decode_exit(d);
}

/* brx.idx without its comparisons, which parser_table_branch emits. */
void decode_table_branch(decoder *d)
{
    decode_expect(d, 2, 2);
    decode_source(d, 0, &d->in->operands[0], TYPE_u32);
}
