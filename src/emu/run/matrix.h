/* Fragments: matrices whose elements are spread over the 32 lanes of a warp.
 *
 * A product D = A B + C has a shape mMnNkK: A is M x K, B is K x N, C and D are M x N. Each lane
 * holds some registers of each matrix. A 32-bit register of A or B has e = 32 / bits elements that
 * are adjacent along k, the first in its lowest bits; a 64-bit register has one. Lane 4 g + t (g
 * from 0 to 7, t from 0 to 3) holds:
 *
 *     A  register r   row g + 8 (r mod M/8)            columns e t … e t + e - 1, plus 4 e for each
 *                                                      time that r has passed all rows
 *     B  register r   rows as A's columns, plus 4 e r  column g, plus 8 for each time that r has
 *                                                      passed all of K
 *     C  element i    row g + 8 (i / 2 mod M/8)        column 2 t + i mod 2, plus 8 for each time
 *     D                                                that i / 2 has passed all rows
 *
 * Example: in m16n8k16 of f16, e is 2. Lane 5 (g = 1, t = 1) has A[9][2] and A[9][3] in its second
 * register, B[10][1] and B[11][1] in its second register, and C[9][3] as its fourth element. For
 * mma.sync these are the PTX ISA's fragments. The PTX ISA leaves the fragments of wmma open; they
 * follow the same rule. A fragment with more registers than the matrix fills repeats the first. */
#pragma once

#include "emu/machine.h"

/* name, bits per element in memory and in a register */
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

/* Returns the index of a shape by name, or -1. */
int matrix_shape_named(const char *name);
const matrix_shape *matrix_shape_at(unsigned index);

/* The matrix of a fragment. op.compare of wmma.load and wmma.store also has the layout. */
typedef enum matrix_part { PART_A, PART_B, PART_C } matrix_part;
enum { PART_MASK = 3, BY_COLUMNS = 4 };

/* Returns the number of elements per register. */
static inline unsigned matrix_packed(matrix_element e)
{
    unsigned bits = matrix_elements[e].bits;
    return bits < 32 ? 32 / bits : 1;
}

/* Returns the registers per lane for a number of elements of a matrix. */
static inline unsigned matrix_registers(unsigned elements, matrix_element e)
{
    return elements / WARP_LANES / matrix_packed(e);
}

typedef struct matrix_place {
    unsigned row, column;
} matrix_place;

/* Return the place of a register's first element: in lane 0, and from that in another lane. The
 * register's other elements follow in the same row of A and C, or the same column of B. */
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

/* Waits until the whole warp is here. Returns all lanes, or 0 until then or after a fault. */
lane_mask matrix_lanes(warp *w, const op *o, lane_mask mask, const char *name);
