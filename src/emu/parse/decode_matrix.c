/* Decoders of matrix products and of fragment loads and stores. */
#include "emu/parse/parser.h"
#include "emu/run/matrix.h"

#include <stdio.h>

static int element_named(const char *name)
{
    for (int i = 0; i < ELEMENT_COUNT; i++)
        if (strcmp(matrix_elements[i].name, name) == 0)
            return i;
    return -1;
}

static const matrix_shape *take_shape(decoder *d)
{
    for (unsigned i = 0; i < d->in->modifier_count; i++) {
        int shape = matrix_shape_named(d->in->modifiers[i]);
        if (shape >= 0)
            d->op.variant = (uint8_t)shape;
    }
    return matrix_shape_at(d->op.variant);
}

/* Returns the registers per lane of A or B. wmma has eight for f16 in every shape. */
static unsigned registers_of(const decoder *d, const matrix_shape *s, matrix_part part,
                             matrix_element e)
{
    unsigned elements = (unsigned)s->depth * (part == PART_A ? s->rows : s->columns);
    bool fixed = strcmp(d->in->name, "wmma") == 0 && e == ELEMENT_f16;
    return fixed ? 8 : matrix_registers(elements, e);
}

/* Modifiers name the elements of D, A, B and C, or only D and C if A and B are f16. */
void decode_matrix(decoder *d)
{
    int named[MAX_MODIFIERS] = { 0 };
    unsigned count = 0;
    const matrix_shape *s = take_shape(d);
    for (unsigned i = 0; i < d->in->modifier_count; i++)
        if (element_named(d->in->modifiers[i]) >= 0)
            named[count++] = element_named(d->in->modifiers[i]);
    matrix_element a = count == 4 ? (matrix_element)named[1] : ELEMENT_f16;
    matrix_element b = count == 4 ? (matrix_element)named[2] : ELEMENT_f16;
    d->op.combine = (uint8_t)a;
    d->op.compare = (uint8_t)b;
    d->op.src_bits = (uint8_t)named[count - 1];
    d->op.dst_bits = (uint8_t)named[0];
    d->op.vector = (uint8_t)registers_of(d, s, PART_A, a);
    d->op.type2 = (uint8_t)registers_of(d, s, PART_B, b);
    d->op.mods = (uint8_t)(instruction_has(d->in, "satfinite") ? MOD_SAT : 0);
    d->op.uniform = instruction_has(d->in, "xor");
}

unsigned decode_fragment_registers(const op *o, char matrix)
{
    const matrix_shape *s = matrix_shape_at(o->variant);
    if (matrix == 'A')
        return o->vector;
    if (matrix == 'B' || matrix == 'F')
        return o->type2;
    return matrix_registers((unsigned)s->rows * s->columns,
                            (matrix_element)(matrix == 'C' ? o->src_bits : o->dst_bits));
}

/* wmma.load and wmma.store. The second modifier names the matrix. */
void decode_fragment(decoder *d)
{
    const char *part = d->in->modifiers[1];
    const matrix_shape *s = take_shape(d);
    matrix_part p = *part == 'a' ? PART_A : *part == 'b' ? PART_B : PART_C;
    matrix_element e = (matrix_element)element_named(d->in->modifiers[d->in->modifier_count - 1]);
    d->op.combine = (uint8_t)e;
    d->op.compare = (uint8_t)(p | (instruction_has(d->in, "col") ? BY_COLUMNS : 0));
    unsigned of_sums = matrix_registers((unsigned)s->rows * s->columns, e);
    d->op.type2 = (uint8_t)(p == PART_C ? of_sums : registers_of(d, s, p, e));
}

/* Refuses instructions of sm_90a on other targets, older and newer. */
void decode_specific(decoder *d)
{
    if (d->p->module->target != 90 || !d->p->module->specific)
        DECODE_ERROR(d, "%s requires .target sm_90a", d->in->name);
}

static bool take_choice(decoder *d, const operand *o, uint64_t no, uint64_t yes)
{
    if (o->kind != OPERAND_INTEGER || (o->bits != no && o->bits != yes))
        decode_error(d, "imm-scale must be 1 or -1, and imm-trans 0 or 1");
    return o->bits == yes;
}

/* Operands: {d}, a as descriptor or {a}, b, accumulate, signs, transposed a and b. */
void decode_wgmma(decoder *d)
{
    const operand *o = d->in->operands;
    decode_specific(d);
    decode_expect(d, 7, 8);
    unsigned columns = 0;
    for (unsigned i = 0; i < d->in->modifier_count; i++)
        if (sscanf(d->in->modifiers[i], "m64n%uk16", &columns) == 1)
            break;
    d->op.type2 = (uint8_t)(columns / 8);
    d->op.combine = instruction_has(d->in, "bf16") ? ELEMENT_bf16 : ELEMENT_f16;
    if (o[0].kind != OPERAND_VECTOR || o[0].count != columns / 2)
        decode_error(d, "d must have one register per two columns, in braces");
    bool sets = o[3].kind == OPERAND_INTEGER && !o[3].bits;
    for (unsigned i = 0; i < o[0].count; i++) {
        if (o[0].elements[i].kind != OPERAND_REG)
            decode_error(d, "d must consist of registers");
        decode_result_place(d, &o[0].elements[i], TYPE_f32, false);
        if (!sets)
            decode_source_place(d, &o[0].elements[i], TYPE_f32, false);
    }
    d->op.variant = o[1].kind == OPERAND_VECTOR;
    decode_expect(d, 8u - d->op.variant, 8u - d->op.variant);
    if (d->op.variant && o[1].count != 4)
        decode_error(d, "a must have four registers");
    for (unsigned i = 0; d->op.variant && i < o[1].count; i++)
        d->op.src[i] = decode_source_place(d, &o[1].elements[i], TYPE_b32, false);
    if (!d->op.variant)
        decode_source(d, 0, &o[1], TYPE_b64);
    decode_source(d, 4, &o[2], TYPE_b64);
    decode_predicate(d, 5, &o[3]);
    d->op.compare = take_choice(d, &o[4], 1, UINT64_MAX) != take_choice(d, &o[5], 1, UINT64_MAX);
    for (unsigned i = 6; i < d->in->operand_count; i++)
        d->op.uniform |= take_choice(d, &o[i], 0, 1);
}

/* ldmatrix and stmatrix: x1, x2 or x4 matrices with 16 bytes per row. */
void decode_rows(decoder *d)
{
    d->op.variant = instruction_has(d->in, "x4") ? 4 : instruction_has(d->in, "x2") ? 2 : 1;
    d->op.compare = instruction_has(d->in, "trans");
    d->op.type = TYPE_b32;
    d->op.vector = 4;
}
