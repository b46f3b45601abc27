/* mma.sync and wmma.mma: D = A B + C, with fragments as in matrix.h.
 *
 * The PTX ISA leaves the order and the rounding of sums open, at no less than single precision
 * (half precision if C and D are f16). Here an element of D starts as its element of C and
 * accumulates the products in the order of k. Each product is exact. Each sum is rounded to f32
 * and, if D is f16, to f16 at the end. A GPU adds several products at once and may differ in the
 * last places. f64 uses one fma per product. Integer sums are exact, and the result is the low 32
 * bits or, with .satfinite, the nearest s32.
 *
 * An element of D is undefined if C's element is, or any in its row of A or column of B. */
#include "emu/run/matrix.h"
#include "emu/check/undefined.h"
#include "emu/run/arith.h"

static const matrix_shape shapes[] = {
    { "m8n8k4", 8, 8, 4 },       { "m8n8k16", 8, 8, 16 },     { "m8n8k32", 8, 8, 32 },
    { "m8n8k128", 8, 8, 128 },   { "m16n8k128", 16, 8, 128 }, { "m16n8k256", 16, 8, 256 },
    { "m16n8k4", 16, 8, 4 },     { "m16n8k8", 16, 8, 8 },     { "m16n8k16", 16, 8, 16 },
    { "m16n8k32", 16, 8, 32 },   { "m16n8k64", 16, 8, 64 },   { "m16n16k8", 16, 16, 8 },
    { "m16n16k16", 16, 16, 16 }, { "m32n8k16", 32, 8, 16 },   { "m8n32k16", 8, 32, 16 },
};

int matrix_shape_named(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return (int)i;
    return -1;
}

const matrix_shape *matrix_shape_at(unsigned index)
{
    return &shapes[index];
}

matrix_place matrix_place_in_lane_0(const matrix_shape *s, matrix_part part, matrix_element e,
                                    unsigned r)
{
    unsigned packed = matrix_packed(e), down = s->rows / 8u, deep = s->depth / (4 * packed);
    switch (part) {
    case PART_A:
        return (matrix_place){ r % down * 8, r / down % deep * 4 * packed };
    case PART_B:
        return (matrix_place){ r % deep * 4 * packed, r / deep % (s->columns / 8u) * 8 };
    default:
        r *= packed;
        return (matrix_place){ r / 2 % down * 8, r % 2 + r / 2 / down * 8 };
    }
}

lane_mask matrix_lanes(warp *w, const op *o, lane_mask mask, const char *name)
{
    if (w->machine->checks->actions[EMU_CHECK_BARRIER] != EMU_STOPS)
        mask = warp_converge(w, o, mask);
    if (!mask || mask == ALL_LANES)
        return mask;
    int absent = lowest_lane(~mask);
    warp_fault(w, o, lowest_lane(mask), EMU_INACTIVE_LANE, 0,
               "%s needs all 32 lanes of a warp; lane %d does not participate: it %s", name, absent,
               warp_absence(w, absent));
    return 0;
}

typedef struct product {
    const matrix_shape *shape;
    matrix_element a, b, c, d;
    unsigned registers_a, registers_b, registers_c, registers_d; /* registers per matrix */
    int source_b, source_c;                                      /* first source index */
} product;

/* The matrices of a product, by kind of elements. */
typedef union tile {
    struct {
        float a[MOST_ROWS][32], b[32][MOST_COLUMNS], d[MOST_ROWS][MOST_COLUMNS];
    } single;
    struct {
        double a[16][16], b[16][8], d[16][8];
    } wide;
    struct {
        s32 a[MOST_ROWS][MOST_DEPTH], b[MOST_DEPTH][MOST_COLUMNS];
        s64 d[MOST_ROWS][MOST_COLUMNS];
    } whole;
} tile;

/* Returns an element of a register. Like the hardware, ignores the low bits of tf32. */
static float single_element(matrix_element e, u32 bits, unsigned which)
{
    return e == ELEMENT_f16    ? value_of_half((u16)(bits >> 16 * which))
           : e == ELEMENT_bf16 ? value_of_bfloat((u16)(bits >> 16 * which))
           : e == ELEMENT_e4m3 ? value_of_e4m3((uint8_t)(bits >> 8 * which))
           : e == ELEMENT_e5m2 ? value_of_e5m2((uint8_t)(bits >> 8 * which))
                               : float_of_bits(e == ELEMENT_tf32 ? bits & ~0x1fffu : bits);
}

static s32 whole_element(matrix_element e, u32 bits, unsigned which)
{
    return e == ELEMENT_s8   ? (int8_t)(bits >> 8 * which)
           : e == ELEMENT_u8 ? (uint8_t)(bits >> 8 * which)
           : e == ELEMENT_s4 ? (s32)((bits >> 4 * which & 15) ^ 8) - 8
           : e == ELEMENT_u4 ? (s32)(bits >> 4 * which & 15)
           : e == ELEMENT_b1 ? (s32)(bits >> which & 1)
                             : (s32)bits;
}

/* Gathers a matrix from the registers of all lanes, starting at source first. */
#define GATHER_PART(PART, e, registers, first, GET, VALUE, TO)              \
    for (unsigned r = 0; r < (registers); r++) {                            \
        matrix_place lane_0 = matrix_place_in_lane_0(p->shape, PART, e, r); \
        const void *from = source(w, o, (first) + (int)r);                  \
        for (int lane = 0; lane < WARP_LANES; lane++) {                     \
            matrix_place at = matrix_place_in(lane_0, PART, e, lane);       \
            for (unsigned i = 0; i < matrix_packed(e); i++)                 \
                TO = VALUE(e, GET(from, lane), i);                          \
        }                                                                   \
    }
#define GATHER(m, GET, VALUE)                                                               \
    GATHER_PART(PART_A, p->a, p->registers_a, 0, GET, VALUE, (m)->a[at.row][at.column + i]) \
    GATHER_PART(PART_B, p->b, p->registers_b, p->source_b, GET, VALUE,                      \
                (m)->b[at.row + i][at.column])                                              \
    GATHER_PART(PART_C, p->c, p->registers_c, p->source_c, GET, VALUE,                      \
                (m)->d[at.row][at.column + i])

#define WIDE_ELEMENT(e, value, which) ((void)(which), value)

/* Computes D += A B, eight columns at a time, with sums of type T. STEP accumulates a product. */
enum { SIDE_BY_SIDE = 8 };
#define MULTIPLY(m, s, T, STEP)                                                    \
    for (unsigned first = 0; first < (s)->columns; first += SIDE_BY_SIDE)          \
        for (unsigned row = 0; row < (s)->rows; row++) {                           \
            T sums[SIDE_BY_SIDE];                                                  \
            memcpy(sums, &(m)->d[row][first], sizeof sums);                        \
            for (unsigned k = 0; k < (s)->depth; k++)                              \
                for (unsigned i = 0; i < SIDE_BY_SIDE; i++)                        \
                    sums[i] = STEP((m)->a[row][k], (m)->b[k][first + i], sums[i]); \
            memcpy(&(m)->d[row][first], sums, sizeof sums);                        \
        }

/* a product of two f16 or 8-bit floats is exact in f32 */
#define STEP_HALVES(a, b, sum) ((a) * (b) + (sum))

/* Rounds once: if a double cannot hold both terms, the smaller is far below the last place. */
#define STEP_SINGLE(a, b, sum) ((float)((double)(a) * (double)(b) + (double)(sum)))
#define STEP_WHOLE(a, b, sum)  ((sum) + (s64)(a) * (b))
#define STEP_XOR(a, b, sum)    ((sum) + ((a) ^ (b))) /* 1-bit elements; STEP_WHOLE is their and */

static void multiply_tile(const warp *w, const op *o, const product *p, tile *m)
{
    if (p->a == ELEMENT_f64) {
        GATHER(&m->wide, get_f64, WIDE_ELEMENT)
        MULTIPLY(&m->wide, p->shape, double, fma)
    } else if (p->c == ELEMENT_s32) {
        GATHER(&m->whole, get_u32, whole_element)
        if (o->uniform)
            MULTIPLY(&m->whole, p->shape, s64, STEP_XOR)
        else
            MULTIPLY(&m->whole, p->shape, s64, STEP_WHOLE)
    } else {
        GATHER(&m->single, get_u32, single_element)
        if (p->a == ELEMENT_bf16 || p->a == ELEMENT_tf32)
            MULTIPLY(&m->single, p->shape, float, STEP_SINGLE)
        else
            MULTIPLY(&m->single, p->shape, float, STEP_HALVES)
    }
}

/* Returns the register of D that begins at a place. */
static u64 result_bits(const product *p, const op *o, const tile *m, matrix_place at)
{
    const float *single = &m->single.d[at.row][at.column];
    s64 sum = p->d == ELEMENT_s32 ? m->whole.d[at.row][at.column] : 0;
    return p->d == ELEMENT_f64   ? bits_of_double(canonical_double(m->wide.d[at.row][at.column]))
           : p->d == ELEMENT_s32 ? (u32)(o->mods & MOD_SAT ? saturate_s32(sum) : (s32)sum)
           : p->d == ELEMENT_f16 ? half_pair((double)single[1], (double)single[0], 0)
                                 : bits_of_float(canonical(*single));
}

static void carry_undefined(warp *w, const op *o, const product *p)
{
    const struct {
        matrix_part part;
        matrix_element element;
        unsigned registers;
        int source;
    } parts[] = { { PART_A, p->a, p->registers_a, 0 },
                  { PART_B, p->b, p->registers_b, p->source_b },
                  { PART_C, p->c, p->registers_c, p->source_c } };
    u32 rows = 0, columns = 0, sums[MOST_ROWS] = { 0 }; /* undefined: of A, of B, in rows of C */
    u32 all = (1u << matrix_packed(p->c)) - 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (unsigned r = 0; r < parts[i].registers; r++) {
            lane_mask lanes = undefined_source(w, o, parts[i].source + (int)r, false);
            EACH_LANE (lane, lanes) {
                matrix_place at =
                    matrix_place_of(p->shape, parts[i].part, parts[i].element, r, lane);
                if (parts[i].part == PART_A)
                    rows |= 1u << at.row;
                else if (parts[i].part == PART_B)
                    columns |= 1u << at.column;
                else
                    sums[at.row] |= all << at.column;
            }
        }
    all = (1u << matrix_packed(p->d)) - 1;
    for (unsigned r = 0; r < p->registers_d; r++) {
        lane_mask lanes = 0;
        for (int lane = 0; lane < WARP_LANES; lane++) {
            matrix_place at = matrix_place_of(p->shape, PART_C, p->d, r, lane);
            u32 undefined = rows >> at.row & 1 ? UINT32_MAX : columns | sums[at.row];
            lanes |= (lane_mask)((undefined >> at.column & all) != 0) << lane;
        }
        undefined_result(w, o, (int)r, lanes);
    }
}

/* Fast path of the most frequent product, m16n8k16 of f16 with f32 sums, in vectors of 8 columns.
 *
 * A register of A or B holds two neighbours along k of each of 8 rows or columns. Two registers of
 * C hold the even and the odd columns of 8 rows, so a vector has columns 0 2 4 6 1 3 5 7. */
enum { PART = 8, HALVES_ROWS = 2 * PART, HALVES_DEPTH = 2 * PART, PAIRS = PART / 2 };
typedef float floats __attribute__((vector_size(PART * sizeof(float))));
typedef u32 words __attribute__((vector_size(PART * sizeof(u32))));
#define INLINED               static inline __attribute__((always_inline))

#define SELECT(mask, yes, no) (((words)(mask) & (yes)) | (~(words)(mask) & (no)))

/* Converts the low halves of words from f16, as value_of_half() does. */
INLINED void convert_halves(const words *bits, floats *values)
{
    words magnitude = (*bits & 0x7fff) << 13, sign = (*bits & 0x8000) << 16;
    words subnormal = (words)((floats)(magnitude + (113u << 23)) - 0x1p-14f);
    words normal = magnitude + (112u << 23), infinite = magnitude + (224u << 23);
    words value = SELECT(magnitude < 31u << 23, normal, infinite);
    *values = (floats)(sign | SELECT(magnitude < 1u << 23, subnormal, value));
}

INLINED void convert_pairs(const words *pairs, floats *low, floats *high)
{
    words upper = *pairs >> 16;
    convert_halves(pairs, low);
    convert_halves(&upper, high);
}

/* a: [register][column % 2][lane] */
INLINED void unpack_a(const warp *w, const op *o, float a[4][2][WARP_LANES])
{
    for (int r = 0; r < 4; r++)
        for (int lane = 0; lane < WARP_LANES; lane += PART) {
            words pairs;
            floats low, high;
            memcpy(&pairs, (const u32 *)source(w, o, r) + lane, sizeof pairs);
            convert_pairs(&pairs, &low, &high);
            memcpy(&a[r][0][lane], &low, sizeof low);
            memcpy(&a[r][1][lane], &high, sizeof high);
        }
}

INLINED void unpack_b(const warp *w, const op *o, int first, floats b[HALVES_DEPTH])
{
    for (int r = 0; r < 2; r++) {
        const u32 *from = source(w, o, first + r);
        for (int t = 0; t < PAIRS; t++) {
            words pairs;
            for (int i = 0; i < PART; i++)
                pairs[i] = from[PAIRS * (2 * i % PART + 2 * i / PART) + t];
            convert_pairs(&pairs, &b[r * PART + 2 * t], &b[r * PART + 2 * t + 1]);
        }
    }
}

INLINED void multiply_halves(warp *w, const op *o, const product *p)
{
    float a[4][2][WARP_LANES];
    floats b[HALVES_DEPTH];
    u32 d[4][WARP_LANES];
    unpack_a(w, o, a);
    unpack_b(w, o, p->source_b, b);
    for (int half = 0; half < 2; half++) {
        const u32 *even = source(w, o, p->source_c + 2 * half);
        const u32 *odd = source(w, o, p->source_c + 2 * half + 1);
        floats sums[PART];
        for (int row = 0; row < PART; row++) {
            memcpy(&sums[row], even + PAIRS * row, sizeof *sums / 2);
            memcpy((u32 *)&sums[row] + PAIRS, odd + PAIRS * row, sizeof *sums / 2);
        }
        for (int k = 0; k < HALVES_DEPTH; k++) {
            const float *column = &a[k / PART * 2 + half][k % 2][k % PART / 2];
            for (int row = 0; row < PART; row++)
                sums[row] = STEP_HALVES(column[PAIRS * row], b[k], sums[row]);
        }
        for (int row = 0; row < PART; row++) {
            words bits = SELECT(sums[row] == sums[row], (words)sums[row], 0x7fffffff);
            memcpy(d[2 * half] + PAIRS * row, &bits, sizeof bits / 2);
            memcpy(d[2 * half + 1] + PAIRS * row, (u32 *)&bits + PAIRS, sizeof bits / 2);
        }
    }
    for (int r = 0; r < 4; r++)
        memcpy(w->file + o->dst[r], d[r], sizeof d[r]);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void multiply_halves_wider(warp *w, const op *o,
                                                                  const product *p)
{
    multiply_halves(w, o, p);
}
#endif

/* Computes an m16n8k16 of f16 with f32 sums. Returns false for any other product. */
static bool multiply_as_halves(warp *w, const op *o, const product *p)
{
    const matrix_shape *s = p->shape;
    if (p->a != ELEMENT_f16 || p->c != ELEMENT_f32 || p->d != ELEMENT_f32 ||
        s->rows != HALVES_ROWS || s->columns != PART || s->depth != HALVES_DEPTH)
        return false;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        multiply_halves_wider(w, o, p);
        return true;
    }
#endif
    multiply_halves(w, o, p);
    return true;
}

static void run_product(warp *w, const op *o, lane_mask mask, const char *name)
{
    tile m;
    if (!matrix_lanes(w, o, mask, name))
        return;
    const matrix_shape *s = matrix_shape_at(o->variant);
    product p = { .shape = s,
                  .a = (matrix_element)o->combine,
                  .b = (matrix_element)o->compare,
                  .c = (matrix_element)o->src_bits,
                  .d = (matrix_element)o->dst_bits,
                  .source_b = o->vector, /* number of A's registers as written */
                  .source_c = o->vector + o->type2 };
    p.registers_a = matrix_registers((unsigned)s->rows * s->depth, p.a);
    p.registers_b = matrix_registers((unsigned)s->depth * s->columns, p.b);
    p.registers_c = matrix_registers((unsigned)s->rows * s->columns, p.c);
    p.registers_d = matrix_registers((unsigned)s->rows * s->columns, p.d);
    if (undefined_carries(w, o))
        carry_undefined(w, o, &p);
    if (multiply_as_halves(w, o, &p))
        return;
    multiply_tile(w, o, &p, &m);
    for (unsigned r = 0; r < p.registers_d; r++) {
        u64 values[WARP_LANES];
        matrix_place lane_0 = matrix_place_in_lane_0(p.shape, PART_C, p.d, r);
        for (int lane = 0; lane < WARP_LANES; lane++)
            values[lane] = result_bits(&p, o, &m, matrix_place_in(lane_0, PART_C, p.d, lane));
        write_lanes(w->file + o->dst[r], values, p.d == ELEMENT_f64, ALL_LANES);
    }
}

void exec_mma(warp *w, const op *o, lane_mask mask)
{
    run_product(w, o, mask, "mma.sync");
}

void exec_wmma(warp *w, const op *o, lane_mask mask)
{
    run_product(w, o, mask, "wmma.mma");
}
