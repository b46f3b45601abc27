/* Comparisons, reductions among lanes, and control flow. */
#include "emu/parse/decoder.h"

/* What setp and set compare for, in the order of their pattern, as one of ptx_compare. */
void decode_compare(decoder *d)
{
    static const uint8_t compares[] = {
        COMPARE_EQ,  COMPARE_NE,  COMPARE_LT,  COMPARE_LE,  COMPARE_GT,  COMPARE_GE,
        COMPARE_LT,  COMPARE_LE,  COMPARE_GT,  COMPARE_GE,  COMPARE_EQU, COMPARE_NEU,
        COMPARE_LTU, COMPARE_LEU, COMPARE_GTU, COMPARE_GEU, COMPARE_NUM, COMPARE_NAN,
    };
    enum { LO = 6, HS = 9 }; /* unsigned ones */
    ptx_type type = (ptx_type)d->op.type2;
    type_kind kind = emu_type_kind(type);
    bool of_unsigned = d->op.variant >= LO && d->op.variant <= HS;
    d->op.compare = compares[d->op.variant];
    if (d->op.mods & MOD_FTZ && type != TYPE_f32 && type != TYPE_f16 && type != TYPE_f16x2)
        decode_error(d, "'.ftz' does not go with this type");
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
        decode_error(d, "a branch goes to a label");
    *VEC_PUSH(d->p->arena, &d->p->references) = (reference){ .label = to->name,
                                                             .op = (uint32_t)d->p->entry->ops.count,
                                                             .line = d->in->line };
    decode_exit(d);
}

/* What is left of brx.idx behind the comparisons with all its targets. */
void decode_table_branch(decoder *d)
{
    decode_expect(d, 2, 2);
    decode_source(d, 0, &d->in->operands[0], TYPE_u32);
}
