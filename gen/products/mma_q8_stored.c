#include "gen/products/mma_q8_stored.h"

#include <string.h>

#include "gen/common/q8_1.h"

enum { LAST = MMA_BLOCKS - 1, LAST_UNITS = (2 * MMA_BLOCKS - 1) * MMA_UNIT_BYTES };

void mma_q8_stored_begin(ptx *p, mma_q8_stored *s, val of_row, val tile, val records)
{
    val lane = lane_id(p), row = div(p, lane, 2), half = rem(p, lane, 2); /* of the scales */
    s->store =
        mad(p, of_row, MMA_UNIT_BYTES, mad(p, div(p, lane, MMA_STORED_LANES), MMA_ROW_BYTES, tile));
    s->has_last = eq(p, of_row, 0);
    s->a = mad(p, div(p, lane, MMA_ROWS), MMA_UNIT_BYTES,
               mad(p, rem(p, lane, MMA_ROWS), MMA_ROW_BYTES, tile));
    s->scale = mad(p, half, MMA_BLOCKS / 2 * Q8_0_BYTES, mad(p, row, MMA_ROW_BYTES, tile));
    s->record = mad(p, half, 2 * MMA_RECORD_STRIDE, mad(p, row, MMA_RECORD_BYTES, records));
    val middle = mad(p, of_row, 4, imm(U32, 2)); /* of the lane's word of a unit */
    for (unsigned i = 1; i < LAST; i++) {
        val below = select(p, lt(p, middle, 2 * i), imm(U32, UINT32_MAX), imm(U32, 0));
        val mask = select(p, eq(p, middle, 2 * i), imm(U32, 0xffff), below);
        s->masks[i] = shuffle_from(p, mask, lane); /* ptxas keeps it in a register */
    }
}

void mma_q8_stored_copy(ptx *p, const mma_q8_stored *s, const stream_row rows[])
{
    for (unsigned i = 0; i < MMA_ROWS * MMA_STORED_LANES / WARP; i++) {
        unsigned to = i * WARP / MMA_STORED_LANES * MMA_ROW_BYTES;
        for (unsigned at = 0; at < MMA_STEP; at += MMA_STORED_LANES * MMA_UNIT_BYTES)
            cp_async_cg(p, s->store, to + at, rows[i].block, rows[i].offset + at);
        PTX_IF (p, s->has_last)
            cp_async_cg(p, s->store, to + MMA_STEP, rows[i].block, rows[i].offset + MMA_STEP);
    }
}

void mma_q8_stored_load_w(ptx *p, mma_q8_stored *s)
{
    cp_async_wait_all(p);
    warp_barrier(p);
    val scales[MMA_BLOCKS / 2], *of = scales;
    for (unsigned i = 0; i < MMA_BLOCKS / 2; i++)
        scales[i] = convert(p, F32, ld_shared(p, F16, s->scale, i * Q8_0_BYTES));
    for (unsigned i = 0; i <= MMA_BLOCKS; i++) {
        val4 two = ldmatrix_x4(p, s->a, i <= LAST ? i * 2 * MMA_UNIT_BYTES : LAST_UNITS);
        for (unsigned j = 0; j < 4; j++)
            s->w[i].v[j] = as(p, S32, two.v[j]);
    }
    for (unsigned i = 0; i < 2; i++, of += 2)
        st_shared_v4(
            p, F32, s->record, i * MMA_RECORD_STRIDE,
            ((val4){ { of[0], mul(p, of[0], -MMA_START), of[1], mul(p, of[1], -MMA_START) } }));
}

void mma_q8_stored_load_x(ptx *p, mma_q8_stored *s, val base, int64_t offset)
{
    for (unsigned u = 0; u < 2 * MMA_BLOCKS; u += 4)
        memcpy(s->x + u, ldmatrix_x4(p, base, offset + u * MMA_UNIT_BYTES).v, 4 * sizeof *s->x);
    for (unsigned i = 1; i < LAST; i++) {
        s->x_tails[i - 1] = bit_and(p, s->x[2 * i], s->masks[i]);
        s->x[2 * i] = sub(p, s->x[2 * i], s->x_tails[i - 1]);
    }
    s->x_tails[LAST - 1] = s->x[2 * LAST];
    memcpy(s->x + 2 * LAST, ldmatrix_x2(p, base, offset + LAST_UNITS).v, 2 * sizeof *s->x);
}

val4 mma_q8_stored_product(ptx *p, const mma_q8_stored *s, unsigned block, val4 starts)
{
    const val4 *w = s->w + block;
    if (block == LAST)
        return ptx_mma_bytes(p, w[1].v, s->x + 2 * LAST, 32, starts);
    val4 tail = ptx_mma_bytes(p, w[1].v, &s->x_tails[block], 16, starts);
    return ptx_mma_bytes(p, w->v, s->x + (size_t)2 * block, 32, tail);
}
