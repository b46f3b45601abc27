#include "gen/products/gemm_tile.h"

#include "gen/common/halves.h"
#include "gen/common/reduce.h"

enum {
    WARPS = GEMM_THREADS / WARP,
    FRAGMENT = GEMM_FRAGMENT,
    FRAGMENT_BYTES = FRAGMENT * GEMM_ROW_BYTES, /* bytes from a fragment to the next below it */
    B_COLUMNS = GEMM_B_COLUMNS,
    DEPTHS = GEMM_DEPTHS,
    QUAD = 4,
    FOUR = 4, /* warps of a wgmma, and the rows of W that it multiplies */
    ROWS_OF_FOUR = 64,
};

/* Returns warps side by side: four, in two rows; eight if the tile is one fragment high. */
static unsigned warps_across(const gemm_sums *s)
{
    return s->rows > FRAGMENT ? WARPS / 2 : WARPS;
}

static val first_row(ptx *p, const gemm_sums *s)
{
    return mul(p, div(p, warp_id(p), warps_across(s)), s->down * FRAGMENT);
}

static val first_column(ptx *p, const gemm_sums *s)
{
    return mul(p, bit_and(p, warp_id(p), warps_across(s) - 1), s->across * FRAGMENT);
}

void gemm_sums_place(ptx *p, gemm_sums *s)
{
    val lane = lane_id(p), down = div(p, lane, 4), across = mul(p, bit_and(p, lane, 3), 2);
    s->row = s->by_wgmma ? across : add(p, first_row(p, s), down);
    s->column =
        s->by_wgmma ? mad(p, warp_id(p), FRAGMENT, down) : add(p, first_column(p, s), across);
}

void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile)
{
    if (s->by_wgmma) {
        val first = mul(p, div(p, warp_id(p), FOUR), ROWS_OF_FOUR);
        s->down = 1;
        s->across = s->rows / FRAGMENT;
        for (unsigned d = 0; d < DEPTHS; d++) {
            unsigned along = d * FRAGMENT * F16_BYTES;
            s->a[d] = wgmma_matrix(p, add(p, mad(p, first, GEMM_ROW_BYTES, w_tile), along));
            s->b[d] = wgmma_matrix(p, add(p, x_tile, along));
        }
    } else {
        s->down = s->rows / (WARPS / warps_across(s)) / FRAGMENT;
        s->across = GEMM_COLUMNS / warps_across(s) / FRAGMENT;
        val lane = lane_id(p), octet = div(p, lane, 8);
        val row = add(p, first_row(p, s), bit_and(p, lane, FRAGMENT - 1));
        val column =
            add(p, first_column(p, s), mad(p, div(p, octet, 2), B_COLUMNS, bit_and(p, lane, 7)));
        for (unsigned d = 0; d < DEPTHS; d++) {
            s->a[d] = gemm_unit(p, x_tile, row, add(p, div(p, octet, 2), 2 * d));
            s->b[d] = gemm_unit(p, w_tile, column, add(p, bit_and(p, octet, 1), 2 * d));
        }
    }
    for (unsigned i = 0; i < s->down * 2 * s->across; i++)
        for (unsigned c = 0; c < QUAD; c++)
            s->sums[i][c] = var_f32(p, 0.0f);
}

/* A lane has two rows of each fragment; with wgmma X's rows are columns of the product. */
unsigned gemm_sums_row_count(const gemm_sums *s)
{
    return s->by_wgmma ? 2 * 2 * s->across : 2 * s->down;
}

unsigned gemm_sums_column_count(const gemm_sums *s)
{
    return s->by_wgmma ? 2 * s->down : 2 * 2 * s->across;
}

/* Returns an offset in the product: down, fragments of 16 with two rows 8 apart; across, fragments
 * of 8 with two neighbouring columns. */
static unsigned place_in_product(bool down, unsigned number)
{
    return down ? number / 2 * FRAGMENT + number % 2 * B_COLUMNS
                : number / 2 * B_COLUMNS + number % 2;
}

unsigned gemm_sums_row(const gemm_sums *s, unsigned row)
{
    return place_in_product(!s->by_wgmma, row);
}

unsigned gemm_sums_column(const gemm_sums *s, unsigned column)
{
    return place_in_product(s->by_wgmma, column);
}

var gemm_sums_at(const gemm_sums *s, unsigned row, unsigned column)
{
    unsigned down = s->by_wgmma ? column : row, across = s->by_wgmma ? row : column;
    return s->sums[down / 2 * 2 * s->across + across / 2][down % 2 * 2 + across % 2];
}

unsigned gemm_gate_rows(const gemm_sums *s)
{
    return s->by_wgmma ? B_COLUMNS : FRAGMENT;
}

/* Up is half a fragment further down, or two fragments of 8 columns to the right. */
var gemm_sums_of_up(const gemm_sums *s, unsigned row, unsigned column_of_gate)
{
    return gemm_sums_at(s, row, column_of_gate + (s->by_wgmma ? 1 : 2 * 2));
}

/* wgmma reads shared memory by the async proxy: stores need a fence. The preceding step is complete
 * after the barrier, and its tiles may be stored again. */
void gemm_sums_sync(ptx *p, const gemm_sums *s)
{
    if (s->by_wgmma) {
        proxy_fence(p);
        wgmma_wait(p, 0);
    }
    barrier(p);
}

void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity)
{
    unsigned x_tiles = parity * s->rows * GEMM_ROW_BYTES, w_tiles = parity * GEMM_W_TILE;
    if (s->by_wgmma) {
        wgmma_fence(p);
        for (unsigned d = 0; d < DEPTHS; d++) {
            val a = add(p, s->a[d], w_tiles / GEMM_UNIT_BYTES);
            val b = add(p, s->b[d], x_tiles / GEMM_UNIT_BYTES);
            wgmma_m64k16_f16(p, s->sums[0], s->rows, a, b);
        }
        wgmma_commit(p);
        return;
    }
    for (unsigned d = 0; d < DEPTHS; d++) {
        val4 a[GEMM_MOST_DOWN], b[GEMM_MOST_ACROSS];
        for (unsigned i = 0; i < s->down; i++)
            a[i] = ldmatrix_x4(p, s->a[d], x_tiles + i * FRAGMENT_BYTES);
        for (unsigned j = 0; j < s->across; j++)
            b[j] = ldmatrix_x4(p, s->b[d], w_tiles + j * FRAGMENT_BYTES);
        for (unsigned j = 0; j < 2 * s->across; j++)
            for (unsigned i = 0; i < s->down; i++)
                fragment_add(p, s->sums[i * 2 * s->across + j], a[i],
                             (val2){ { b[j / 2].v[j % 2 * 2], b[j / 2].v[j % 2 * 2 + 1] } });
    }
}

/* Returns the address of a part's sums of a tile: a thread's fours are a block's width apart. */
static val part_of_tile(ptx *p, const gemm_sums *s, val tile, val part)
{
    val number = mad(p, tile, gemm_splits(s->in), part);
    val from = mad_wide(p, number, s->rows * GEMM_COLUMNS * F32_BYTES, parameter(p, "partials"));
    return mad_wide(p, tid_x(p), QUAD * F32_BYTES, from);
}

void gemm_sums_end(ptx *p, const gemm_sums *s)
{
    enum { FOURS_BYTES = GEMM_THREADS * QUAD * F32_BYTES };
    unsigned fragments = s->down * 2 * s->across;
    if (s->by_wgmma)
        wgmma_wait(p, 0);
    if (!s->in->splits)
        return;
    phase(p, "store partial sums of a part of k");
    val tile = mad(p, ctaid_y(p), nctaid_x(p), ctaid_x(p));
    val own = part_of_tile(p, s, tile, ctaid_z(p));
    for (unsigned i = 0; i < fragments; i++) {
        const var *sums = s->sums[i];
        st_global_v4(p, F32, own, (int64_t)i * FOURS_BYTES,
                     ((val4){ { V(sums[0]), V(sums[1]), V(sums[2]), V(sums[3]) } }));
    }
    phase(p, "last block of the tile: merge partial sums");
    val counter = mad_wide(p, tile, sizeof(uint32_t), parameter(p, "counters"));
    val parts = imm(U32, gemm_splits(s->in));
    var part = var_like(p, part_of_tile(p, s, tile, imm(U32, 0)));
    ret_if(p, bit_not(p, block_is_last(p, counter, parts, s->ticket)));
    for (unsigned i = 0; i < fragments * QUAD; i++)
        assign(p, s->sums[i / QUAD][i % QUAD], 0.0f);
    /* A loop: ptxas would hoist all loads of unrolled code until registers spill. */
    PTX_FOR (p, number, 0, parts, 1) {
        for (unsigned i = 0; i < fragments; i++) {
            val4 more = ld_global_v4(p, F32, V(part), (int64_t)i * FOURS_BYTES);
            for (unsigned c = 0; c < QUAD; c++)
                assign(p, s->sums[i][c], add(p, V(s->sums[i][c]), more.v[c]));
        }
        assign(p, part, add(p, V(part), s->rows * GEMM_COLUMNS * F32_BYTES));
    }
}
