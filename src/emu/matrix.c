/* mma.sync: D = A B + C, of matrices whose elements are spread over the 32 lanes of a warp.
 *
 * m16n8k16: A has 16 rows and 16 columns, B 16 and 8, C and D 16 and 8. Lane 4 g + t holds
 *
 *     A  row        g    g+8      g    g+8       B  rows    2t,2t+1   2t+8,2t+9
 *        columns  2t,2t+1       2t+8,2t+9           column      g          g
 *        register   a0    a1     a2    a3           register    b0         b1
 *
 *     C  row        g      g     g+8   g+8       two elements of A or B in a register, the first in
 *     D  column     2t   2t+1     2t   2t+1      its low half
 *        register   c0    c1     c2    c3
 *
 * so that lane 5 (g = 1, t = 1) has A[9][2] and A[9][3] in a1, B[10][1] and B[11][1] in b1, and
 * C[9][3] in c3. All of this is the PTX ISA's.
 *
 * The PTX ISA leaves the order of the sum and its rounding open, but for at least single precision.
 * Here an element of D begins as that of C and takes its 16 products in the order of A's columns;
 * each is exact and each sum rounded to the nearest f32. A GPU, which adds several products at
 * once, differs in last places.
 */
#include "emu/access.h"
#include "emu/exec.h"
#include "emu/halves.h"
#include "emu/machine.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16 };

typedef struct tile {
    float a[ROWS][DEPTH], b[DEPTH][COLUMNS], d[ROWS][COLUMNS];
} tile;

/* Where a register of a lane's C or D is in the matrix. */
static float *accumulator(tile *m, int lane, int which)
{
    return &m->d[lane / 4 + which / 2 * 8][lane % 4 * 2 + which % 2];
}

static void gather(const warp *w, const op *o, float (*value)(u16), tile *m)
{
    for (int lane = 0; lane < WARP_LANES; lane++) {
        int group = lane / 4, first = lane % 4 * 2;
        for (int i = 0; i < 4; i++) {
            u32 pair = get_u32(source(w, o, i), lane);
            float *row = m->a[group + i % 2 * 8] + i / 2 * 8;
            row[first] = value((u16)pair);
            row[first + 1] = value((u16)(pair >> 16));
        }
        for (int i = 0; i < 2; i++) {
            u32 pair = get_u32(source(w, o, 4 + i), lane);
            m->b[first + i * 8][group] = value((u16)pair);
            m->b[first + i * 8 + 1][group] = value((u16)(pair >> 16));
        }
        for (int i = 0; i < 4; i++)
            *accumulator(m, lane, i) = get_f32(source(w, o, 6 + i), lane);
    }
}

/* A sum in double rounded to f32 is rounded once: where double has no room for all of a product's
 * 22 bits and the other term's 24, the smaller of the two is far below the larger's last place. */
static void multiply(tile *m)
{
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DEPTH; k++)
            for (int column = 0; column < COLUMNS; column++) {
                double product = (double)m->a[row][k] * (double)m->b[k][column];
                m->d[row][column] = (float)(product + (double)m->d[row][column]);
            }
}

/* Whether all lanes are there; where they are not it is a fault, unless others may still come. */
static bool all_lanes(warp *w, const op *o, lane_mask mask, const char *what)
{
    if (w->machine->checks->actions[EMU_CHECK_BARRIER] != EMU_STOPS)
        mask = warp_meet_all(w, o, mask);
    if (mask && mask != ALL_LANES) {
        int absent = lowest_lane(~mask);
        warp_fault(w, o, lowest_lane(mask), EMU_INACTIVE_LANE, 0,
                   "%s is done by all 32 lanes of a warp, and lane %d does not take part: it %s",
                   what, absent, warp_absence(w, absent));
    }
    return mask == ALL_LANES;
}

static void mma(warp *w, const op *o, lane_mask mask, float (*value)(u16))
{
    tile m;
    if (!all_lanes(w, o, mask, "mma.sync"))
        return;
    gather(w, o, value, &m);
    multiply(&m);
    for (int i = 0; i < 4; i++) {
        lanes32 result;
        for (int lane = 0; lane < WARP_LANES; lane++)
            result.f32[lane] = canonical(*accumulator(&m, lane, i));
        write_lanes32(w->file + o->dst[i], &result, ALL_LANES);
    }
}

/* Lane i's address is that of row i % 8 of matrix i / 8; lane 4 g + t gets bytes 4 t .. 4 t + 3 of
 * row g of each matrix. */
void exec_ldmatrix(warp *w, const op *o, lane_mask mask)
{
    enum { MATRICES = 4, MATRIX_ROWS = 8, ROW = 16, WORD = 4 };
    const uint8_t *rows[MATRICES * MATRIX_ROWS];
    addresses a;
    if (!all_lanes(w, o, mask, "ldmatrix.sync"))
        return;
    access_gather(w, o, ALL_LANES, &a);
    access_count(w, o, SPACE_SHARED, &a, ALL_LANES, ACCESS_LOAD);
    for (int i = 0; i < WARP_LANES; i++)
        if (!(rows[i] =
                  access_array(&(access){ w, o, i, ACCESS_LOAD, SPACE_SHARED, a.at[i], ROW })))
            return;
    for (int j = 0; j < MATRICES; j++) {
        lanes32 result;
        for (int i = 0; i < WARP_LANES; i++)
            memcpy(&result.u32[i], rows[MATRIX_ROWS * j + i / WORD] + i % WORD * WORD, WORD);
        write_lanes32(w->file + o->dst[j], &result, ALL_LANES);
    }
}

void exec_mma_f16(warp *w, const op *o, lane_mask mask)
{
    mma(w, o, mask, value_of_half);
}

void exec_mma_bf16(warp *w, const op *o, lane_mask mask)
{
    mma(w, o, mask, value_of_bfloat);
}
