/* Fragments in memory: ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
 *
 * ldmatrix, stmatrix and movmatrix handle 8 x 8 matrices of 16-bit elements. A register of lane 4 g
 * + t holds elements 2 t and 2 t + 1 of row g or, with .trans, rows 2 t and 2 t + 1 of column g. In
 * shared memory, row i of matrix j is 16 bytes at the address of lane 8 j + i.
 *
 * The race check counts these accesses for the lanes that own the values, not for the lanes that
 * supply the addresses. The instructions order nothing: a row that another lane has stored is a
 * race without a bar.warp.sync in between.
 *
 * wmma takes the address of the first element and the stride of rows, or columns, in elements. The
 * PTX ISA requires that the address, and so each row, be aligned to the bytes of a fragment. CUDA's
 * interface permits rows at any multiple of 16 bytes, and so does this file. */
#include "emu/check/undefined.h"
#include "emu/run/access.h"
#include "emu/run/matrix.h"

enum { ROWS = 8, ROW_BYTES = 16, ELEMENT_BYTES = 2 };

/* Finds the bytes of the rows of o->variant matrices. Returns false after a fault. */
static bool find_rows(warp *w, const op *o, access_kind kind, uint8_t *rows[WARP_LANES])
{
    addresses a;
    unsigned count = o->variant * ROWS;
    lane_mask lanes = count == WARP_LANES ? ALL_LANES : (UINT32_C(1) << count) - 1;
    access_gather(w, o, ALL_LANES, &a);
    for (int i = 0; o->space == SPACE_GENERIC && i < WARP_LANES; i++) {
        if (lanes >> i & 1 && space_at(a.at[i]) != SPACE_SHARED)
            return warp_fault(w, o, i, EMU_OUT_OF_BOUNDS, a.at[i],
                              "out of bounds: the address of a matrix row is not in shared memory");
        a.at[i] -= space_window(SPACE_SHARED);
    }
    access_count(w, o, SPACE_SHARED, &a, lanes, kind);
    for (unsigned i = 0; i < count; i++) {
        access x = { w, o, (int)i, kind, SPACE_SHARED, a.at[i], ROW_BYTES };
        rows[i] = access_matrix_row(&x, i % ROWS, o->compare);
        if (!rows[i])
            return false;
    }
    return true;
}

/* Returns the address of an element of a lane's register in its matrix. */
static uint8_t *element_at(uint8_t *const *rows, const op *o, int lane, unsigned which)
{
    unsigned g = (unsigned)lane / 4, pair = (unsigned)lane % 4 * 2 + which;
    unsigned row = o->compare ? pair : g, column = o->compare ? g : pair;
    return rows[row] + column * ELEMENT_BYTES;
}

void exec_ldmatrix(warp *w, const op *o, lane_mask mask)
{
    uint8_t *rows[WARP_LANES];
    if (!matrix_lanes(w, o, mask, "ldmatrix") || !find_rows(w, o, ACCESS_LOAD, rows))
        return;
    bool carries = undefined_carries(w, o);
    for (unsigned j = 0; j < o->variant; j++) {
        lanes32 result;
        lane_mask undefined = 0;
        for (int lane = 0; lane < WARP_LANES; lane++) {
            u16 halves[2];
            for (unsigned e = 0; e < 2; e++) {
                const uint8_t *from = element_at(&rows[j * ROWS], o, lane, e);
                memcpy(&halves[e], from, ELEMENT_BYTES);
                if (carries && undefined_bytes(w->machine, SPACE_SHARED, from, ELEMENT_BYTES))
                    undefined |= UINT32_C(1) << lane;
            }
            result.u32[lane] = halves[0] | (u32)halves[1] << 16;
        }
        write_lanes32(w->file + o->dst[j], &result, ALL_LANES);
        if (carries)
            undefined_result(w, o, (int)j, undefined);
    }
}

void exec_stmatrix(warp *w, const op *o, lane_mask mask)
{
    uint8_t *rows[WARP_LANES];
    if (!matrix_lanes(w, o, mask, "stmatrix") || !find_rows(w, o, ACCESS_STORE, rows))
        return;
    bool carries = undefined_carries(w, o);
    for (int j = 0; j < o->variant; j++) {
        const void *from = source(w, o, j + 1);
        lane_mask undefined = carries ? undefined_source(w, o, j + 1, false) : 0;
        for (int lane = 0; lane < WARP_LANES; lane++)
            for (unsigned e = 0; e < 2; e++) {
                uint8_t *to = element_at(&rows[j * ROWS], o, lane, e);
                u16 half = (u16)(get_u32(from, lane) >> 16 * e);
                memcpy(to, &half, ELEMENT_BYTES);
                undefined_mark(w->machine, SPACE_SHARED, to, ELEMENT_BYTES, undefined >> lane & 1);
            }
    }
}

/* Element [row][column] is in half column % 2 of lane 4 row + column / 2. */
void exec_movmatrix(warp *w, const op *o, lane_mask mask)
{
    lanes32 result;
    lane_mask undefined = 0, from_undefined;
    if (!matrix_lanes(w, o, mask, "movmatrix"))
        return;
    from_undefined = undefined_carries(w, o) ? undefined_source(w, o, 0, false) : 0;
    for (int lane = 0; lane < WARP_LANES; lane++) {
        u32 pair = 0;
        for (int e = 0; e < 2; e++) {
            int row = lane % 4 * 2 + e, column = lane / 4, from = 4 * row + column / 2;
            pair |= (get_u32(source(w, o, 0), from) >> 16 * (column % 2) & 0xffff) << 16 * e;
            undefined |= (from_undefined >> from & 1) << lane;
        }
        result.u32[lane] = pair;
    }
    write_lanes32(w->file + o->dst[0], &result, ALL_LANES);
    if (undefined_carries(w, o))
        undefined_result(w, o, 0, undefined);
}

/* A matrix in memory of which a warp loads or stores fragments. */
typedef struct stored_matrix {
    const matrix_shape *shape;
    matrix_part part;
    matrix_element element;
    bool by_columns;
    unsigned registers; /* per lane */
    unsigned bits;      /* per element; elements of less than a byte are packed */
    unsigned together;  /* adjacent elements of a register in memory */
    ptx_space space;
    u64 base, stride;
} stored_matrix;

static bool is_given_by_all(warp *w, const op *o, int which, bool wide, const char *what)
{
    const void *given = source(w, o, which);
    for (int i = 1; i < WARP_LANES; i++)
        if (get_bits(given, i, wide) != get_bits(given, 0, wide))
            return warp_fault(
                w, o, i, EMU_INACTIVE_LANE, 0,
                "all lanes must give the same %s of a matrix; this lane's differs from lane 0's",
                what);
    return true;
}

/* Reads a matrix from an op, its stride from source stride. Returns false after a fault. */
static bool find_matrix(warp *w, const op *o, lane_mask mask, const char *name, int stride,
                        stored_matrix *found)
{
    if (!matrix_lanes(w, o, mask, name) || !is_given_by_all(w, o, 0, o->address64, "address") ||
        !is_given_by_all(w, o, stride, false, "stride"))
        return false;
    const matrix_shape *s = matrix_shape_at(o->variant);
    matrix_part part = (matrix_part)(o->compare & PART_MASK);
    stored_matrix m = { .shape = s,
                        .part = part,
                        .element = (matrix_element)o->combine,
                        .by_columns = o->compare & BY_COLUMNS,
                        .registers = o->type2,
                        .space = (ptx_space)o->space,
                        .stride = get_u32(source(w, o, stride), 0) };
    addresses a;
    access_gather(w, o, ALL_LANES, &a);
    m.base = a.at[0];
    if (m.space == SPACE_GENERIC) {
        m.space = space_at(m.base);
        m.base -= space_window(m.space);
    }
    unsigned rows = part == PART_B ? s->depth : s->rows;
    unsigned columns = part == PART_A ? s->depth : s->columns;
    if (!m.stride)
        m.stride = m.by_columns ? rows : columns;
    m.bits = matrix_elements[m.element].bits;
    m.together = m.by_columns == (part == PART_B) ? matrix_packed(m.element) : 1;
    *found = m;
    unsigned fragment = m.registers * (m.element == ELEMENT_f64 ? 8 : 4);
    unsigned apart = fragment < ROW_BYTES ? fragment : ROW_BYTES;
    if (m.base % fragment)
        return warp_fault(w, o, 0, EMU_MISALIGNED, m.base,
                          "a matrix at 0x%llx is not aligned to the %u bytes of a lane's fragment",
                          (ull)m.base, fragment);
    if (m.stride * m.bits % (8 * apart))
        return warp_fault(
            w, o, 0, EMU_MISALIGNED, m.base,
            "the %s of a matrix have a stride of %llu bytes, which is not a multiple of %u",
            m.by_columns ? "columns" : "rows", (ull)(m.stride * m.bits / 8), apart);
    return true;
}

/* Finds element e of a register in all lanes. Returns the adjacent bytes and counts the access. */
static unsigned find_elements(warp *w, const op *o, const stored_matrix *m, unsigned r, unsigned e,
                              access_kind kind, addresses *a)
{
    unsigned size = m->together * m->bits / 8;
    op part = *o;
    part.type = size == 1 ? TYPE_b8 : size == 2 ? TYPE_b16 : size == 4 ? TYPE_b32 : TYPE_b64;
    part.vector = 1;
    for (int lane = 0; lane < WARP_LANES; lane++) {
        matrix_place at = matrix_place_of(m->shape, m->part, m->element, r, lane);
        *(m->part == PART_B ? &at.row : &at.column) += e;
        u64 index = m->by_columns ? at.column * m->stride + at.row : at.row * m->stride + at.column;
        a->at[lane] = m->base + index * m->bits / 8;
    }
    access_count(w, &part, m->space, a, ALL_LANES, kind);
    return size;
}

/* Loads, in all lanes, the elements of a register that are adjacent in memory. */
static bool load_elements(warp *w, const op *o, const stored_matrix *m, unsigned r, unsigned e,
                          u64 *values, lane_mask *undefined)
{
    addresses a;
    unsigned size = find_elements(w, o, m, r, e, ACCESS_LOAD, &a);
    bool carries = undefined_carries(w, o) && space_has_arrays(m->space);
    for (int lane = 0; lane < WARP_LANES; lane++) {
        access x = { w, o, lane, ACCESS_LOAD, m->space, a.at[lane], size };
        uint8_t room[sizeof(u64)];
        const uint8_t *bytes = access_read(&x, room);
        u64 value = 0;
        if (!bytes)
            return false;
        memcpy(&value, bytes, size);
        values[lane] |= value << e * m->bits;
        if (carries && undefined_bytes(w->machine, m->space, bytes, size))
            *undefined |= UINT32_C(1) << lane;
    }
    return true;
}

void exec_wmma_load(warp *w, const op *o, lane_mask mask)
{
    stored_matrix m;
    if (!find_matrix(w, o, mask, "wmma.load", 1, &m))
        return;
    for (unsigned r = 0; r < m.registers; r++) {
        u64 values[WARP_LANES] = { 0 };
        lane_mask undefined = 0;
        for (unsigned e = 0; e < matrix_packed(m.element); e += m.together)
            if (!load_elements(w, o, &m, r, e, values, &undefined))
                return;
        write_lanes(w->file + o->dst[r], values, m.element == ELEMENT_f64, ALL_LANES);
        if (undefined_carries(w, o))
            undefined_result(w, o, (int)r, undefined);
    }
}

static bool store_elements(warp *w, const op *o, const stored_matrix *m, unsigned r, unsigned e,
                           lane_mask undefined)
{
    addresses a;
    unsigned size = find_elements(w, o, m, r, e, ACCESS_STORE, &a);
    for (int lane = 0; lane < WARP_LANES; lane++) {
        access x = { w, o, lane, ACCESS_STORE, m->space, a.at[lane], size };
        u64 value =
            get_bits(source(w, o, (int)r + 1), lane, m->element == ELEMENT_f64) >> e * m->bits;
        uint8_t bytes[sizeof value];
        memcpy(bytes, &value, sizeof value);
        if (!space_has_arrays(m->space)) {
            if (!access_write(&x, NULL, bytes))
                return false;
            continue;
        }
        uint8_t *to = access_array(&x);
        if (!to)
            return false;
        memcpy(to, bytes, size);
        undefined_mark(w->machine, m->space, to, size, undefined >> lane & 1);
    }
    return true;
}

void exec_wmma_store(warp *w, const op *o, lane_mask mask)
{
    stored_matrix m;
    bool carries = undefined_carries(w, o);
    if (!find_matrix(w, o, mask, "wmma.store", o->type2 + 1, &m) ||
        (carries && !space_has_arrays(m.space) && !undefined_output(w, o, mask)))
        return;
    for (unsigned r = 0; r < m.registers; r++) {
        lane_mask undefined = carries ? undefined_source(w, o, (int)r + 1, false) : 0;
        for (unsigned e = 0; e < matrix_packed(m.element); e += m.together)
            if (!store_elements(w, o, &m, r, e, undefined))
                return;
    }
}
