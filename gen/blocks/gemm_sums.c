#include "gen/blocks/gemm_sums.h"

#include "gen/blocks/fragments.h"
#include "gen/blocks/reduce.h"

enum {
    WARPS = GEMM_THREADS / 32,
    FRAGMENT = GEMM_FRAGMENT,
    FRAGMENT_BYTES = FRAGMENT * GEMM_ROW_BYTES, /* from one to the next below it */
    B_COLUMNS = GEMM_B_COLUMNS,
    DEPTHS = GEMM_DEPTHS,
    QUAD = 4,
};

gemm_sums gemm_sums_of(ptx *p, const instance *in, unsigned rows)
{
    gemm_sums s = { .in = in, .rows = rows };
    if (in->splits)
        s.ticket = shared_array(p, "ticket", U32, 1);
    return s;
}

/* The warps' parts lie in two rows of four, or where the tile is one fragment high in one row. */
void gemm_sums_begin(ptx *p, gemm_sums *s, val x_tile, val w_tile)
{
    unsigned high = s->rows > FRAGMENT ? 2 : 1, wide = WARPS / high;
    s->down = s->rows / high / FRAGMENT;
    s->across = GEMM_COLUMNS / wide / FRAGMENT;
    val warp = warp_id(p), lane = lane_id(p), octet = div(p, lane, 8);
    val row = mad(p, div(p, warp, wide), s->down * FRAGMENT, bit_and(p, lane, FRAGMENT - 1));
    val column = mad(p, bit_and(p, warp, wide - 1), s->across * FRAGMENT,
                     mad(p, div(p, octet, 2), B_COLUMNS, bit_and(p, lane, 7)));
    for (unsigned d = 0; d < DEPTHS; d++) {
        s->a[d] = gemm_unit(p, x_tile, row, add(p, div(p, octet, 2), 2 * d));
        s->b[d] = gemm_unit(p, w_tile, column, add(p, bit_and(p, octet, 1), 2 * d));
    }
    for (unsigned i = 0; i < s->down; i++)
        for (unsigned j = 0; j < 2 * s->across; j++)
            for (unsigned c = 0; c < 4; c++)
                s->sums[i][j][c] = var_f32(p, 0.0f);
}

void gemm_sums_multiply(ptx *p, const gemm_sums *s, unsigned parity)
{
    for (unsigned d = 0; d < DEPTHS; d++) {
        val4 a[GEMM_MOST_DOWN], b[GEMM_MOST_ACROSS];
        for (unsigned i = 0; i < s->down; i++)
            a[i] = ldmatrix_x4(p, s->a[d], parity * s->rows * GEMM_ROW_BYTES + i * FRAGMENT_BYTES);
        for (unsigned j = 0; j < s->across; j++)
            b[j] = ldmatrix_x4(p, s->b[d], parity * GEMM_W_TILE + j * FRAGMENT_BYTES);
        for (unsigned j = 0; j < 2 * s->across; j++)
            for (unsigned i = 0; i < s->down; i++)
                fragment_add(p, s->sums[i][j], a[i],
                             (val2){ { b[j / 2].v[j % 2 * 2], b[j / 2].v[j % 2 * 2 + 1] } });
    }
}

/* A tile's number. */
static val tile_of_block(ptx *p)
{
    return mad(p, ctaid_y(p), nctaid_x(p), ctaid_x(p));
}

/* Where a part's sums of a tile stand: those of a thread four at a time, a block's width apart. */
static val part_of_tile(ptx *p, const gemm_sums *s, val tile, val part)
{
    val number = mad(p, tile, gemm_splits(s->in), part);
    val from = mad_wide(p, number, s->rows * GEMM_COLUMNS * F32_BYTES, parameter(p, "partials"));
    return mad_wide(p, tid_x(p), QUAD * F32_BYTES, from);
}

static int64_t offset_of_sums(const gemm_sums *s, unsigned down, unsigned across)
{
    return (int64_t)(down * 2 * s->across + across) * GEMM_THREADS * QUAD * F32_BYTES;
}

static void store_part(ptx *p, const gemm_sums *s, val own)
{
    for (unsigned i = 0; i < s->down; i++)
        for (unsigned j = 0; j < 2 * s->across; j++) {
            const var *sums = s->sums[i][j];
            st_global_v4(p, F32, own, offset_of_sums(s, i, j),
                         ((val4){ { V(sums[0]), V(sums[1]), V(sums[2]), V(sums[3]) } }));
        }
}

/* All parts of four sums are loaded at once. */
static void add_parts_of(ptx *p, const gemm_sums *s, val first, unsigned down, unsigned across)
{
    unsigned parts = (unsigned)gemm_splits(s->in), part_bytes = s->rows * GEMM_COLUMNS * F32_BYTES;
    val4 sums[GEMM_MOST_SPLITS];
    for (unsigned i = 0; i < parts; i++)
        sums[i] = ld_global_v4(p, F32, first, i * part_bytes + offset_of_sums(s, down, across));
    for (unsigned c = 0; c < QUAD; c++) {
        for (unsigned i = 1; i < parts; i++)
            sums[0].v[c] = add(p, sums[0].v[c], sums[i].v[c]);
        assign(p, s->sums[down][across][c], sums[0].v[c]);
    }
}

void gemm_sums_add_parts(ptx *p, const gemm_sums *s)
{
    phase(p, "store the sums of a part of k");
    val tile = tile_of_block(p);
    store_part(p, s, part_of_tile(p, s, tile, ctaid_z(p)));
    phase(p, "the last block of the tile adds them up");
    val counter = mad_wide(p, tile, sizeof(uint32_t), parameter(p, "counters"));
    val parts = imm(U32, gemm_splits(s->in)), first = part_of_tile(p, s, tile, imm(U32, 0));
    ret_if(p, bit_not(p, block_is_last(p, counter, parts, s->ticket)));
    for (unsigned i = 0; i < s->down; i++)
        for (unsigned j = 0; j < 2 * s->across; j++)
            add_parts_of(p, s, first, i, j);
}
