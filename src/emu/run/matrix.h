/* Matrices whose elements are spread over the 32 lanes of a warp: fragments.
 *
 * A product D = A B + C has a shape mMnNkK: A has M rows and K columns, B K and N, C and D M and N.
 * Each lane has some registers of each. A register of A or B of 32 bits has e = 32 / bits elements
 * that lie side by side along k, the first in its lowest bits; one of 64 bits has one. Lane
 * 4 g + t (g from 0 to 7, t from 0 to 3) holds:
 *
 *     A  register r   row g + 8 (r mod M/8)            columns e t … e t + e - 1, plus 4 e for each
 *                                                      time that r has gone through all rows
 *     B  register r   rows as A's columns, plus 4 e r  column g, plus 8 for each time that r has
 *                                                      gone through all of K
 *     C  element i    row g + 8 (i / 2 mod M/8)        column 2 t + i mod 2, plus 8 for each time
 *     D                                                that i / 2 has gone through all rows
 *
 * By an example, m16n8k16 of f16, so e = 2: lane 5 (g = 1, t = 1) has A[9][2] and A[9][3] in its
 * second register, B[10][1] and B[11][1] in its second one, and C[9][3] as its fourth. For mma.sync
 * all of this is the PTX ISA's. For wmma, whose fragments the PTX ISA leaves open, it is the same
 * rule; where a fragment has more registers than the matrix fills, it goes on with the first ones
 * again.
 */
#ifndef PTXGEN_EMU_RUN_MATRIX_H
#define PTXGEN_EMU_RUN_MATRIX_H

#include "emu/machine.h"

/* name, bits in memory and in a register */
#define MATRIX_ELEMENTS(X) \
    X(f16, 16)             \
    X(bf16, 16)            \
    X(tf32, 32)            \
    X(f64, 64)             \
    X(s8, 8)               \
    X(u8, 8)               \
    X(s4, 4)               \
    X(u4, 4)               \
    X(b1, 1)               \
    X(e4m3, 8)             \
    X(e5m2, 8)             \
    X(f32, 32)             \
    X(s32, 32)

typedef enum matrix_element {
#define X(name, bits) ELEMENT_##name,
    MATRIX_ELEMENTS(X)
#undef X
        ELEMENT_COUNT
} matrix_element;

static const struct {
    const char *name;
    unsigned bits;
} matrix_elements[ELEMENT_COUNT] = {
#define X(name, bits) { #name, bits },
    MATRIX_ELEMENTS(X)
#undef X
};

typedef struct matrix_shape {
    const char *name; /* "m16n8k16" */
    uint16_t rows, columns, depth;
} matrix_shape;

enum { MOST_ROWS = 32, MOST_COLUMNS = 32, MOST_DEPTH = 256 };

/* The index of a shape by its name; -1: there is none. */
int matrix_shape_named(const char *name);
const matrix_shape *matrix_shape_at(unsigned index);

/* Which matrix, and of one in memory, as op.compare has it, also how it lies. */
typedef enum matrix_part { PART_A, PART_B, PART_C } matrix_part;
enum { PART_MASK = 3, BY_COLUMNS = 4 };

/* How many elements a register has. */
static inline unsigned matrix_packed(matrix_element e)
{
    unsigned bits = matrix_elements[e].bits;
    return bits < 32 ? 32 / bits : 1;
}

/* Registers of a lane for a number of elements of a matrix. */
static inline unsigned matrix_registers(unsigned elements, matrix_element e)
{
    return elements / WARP_LANES / matrix_packed(e);
}

typedef struct matrix_place {
    unsigned row, column;
} matrix_place;

/* Where a register's first element is in the matrix: in lane 0, and in another lane by that. The
 * others of a register lie after it: of A and C in the same row, of B in the same column. */
matrix_place matrix_place_in_lane_0(const matrix_shape *s, matrix_part part, matrix_element e,
                                    unsigned r);

static inline matrix_place matrix_place_in(matrix_place lane_0, matrix_part part, matrix_element e,
                                           int lane)
{
    unsigned g = (unsigned)lane / 4, t = (unsigned)lane % 4;
    unsigned along = t * (part == PART_C ? 2 : matrix_packed(e));
    return part == PART_B ? (matrix_place){ lane_0.row + along, lane_0.column + g }
                          : (matrix_place){ lane_0.row + g, lane_0.column + along };
}

static inline matrix_place matrix_place_of(const matrix_shape *s, matrix_part part,
                                           matrix_element e, unsigned r, int lane)
{
    return matrix_place_in(matrix_place_in_lane_0(s, part, e, r), part, e, lane);
}

/* All lanes of the warp, once they have come to an instruction that they do together, or none: they
 * have not yet, or after a fault. */
lane_mask matrix_lanes(warp *w, const op *o, lane_mask mask, const char *name);

#endif
