/* Products of matrices, and how matrices come into registers and leave them. */
#include "emu/decoder.h"
#include "emu/matrix.h"

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

/* Registers of A or B in a lane. wmma gives f16 eight in every shape. */
static unsigned registers_of(const decoder *d, const matrix_shape *s, matrix_part part,
                             matrix_element e)
{
    unsigned elements = (unsigned)s->depth * (part == PART_A ? s->rows : s->columns);
    bool fixed = strcmp(d->in->name, "wmma") == 0 && e == ELEMENT_f16;
    return fixed ? 8 : matrix_registers(elements, e);
}

/* The modifiers name the elements of D, A, B and C, or of D and C where A and B are of f16. */
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

/* wmma.load and wmma.store: which matrix is the second modifier. */
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

/* ldmatrix and stmatrix: x1, x2 or x4 of them, 16 bytes a row. */
void decode_rows(decoder *d)
{
    static const char *const counts[] = { "x1", "x2", "x4" };
    d->op.variant = (uint8_t)(1 << instruction_which(d->in, counts, 3));
    d->op.compare = instruction_has(d->in, "trans");
    d->op.type = TYPE_b32;
    d->op.vector = 4;
}
