#include "gen/common/next.h"

#include "kernel/limits.h"

void fetch_next(ptx *p, const instance *in)
{
    if (!in->next)
        return;
    phase(p, "prefetch the next launch's weights");
    unsigned warps = ptx_block(p) / WARP;
    val next = parameter(p, "next");
    val bytes = select(p, ne(p, next, 0), imm(U32, in->next), imm(U32, 0));
    /* The block's linear index in the grid, and the number of blocks. */
    val block = ctaid_x(p), blocks = nctaid_x(p);
    if (in->family->launch.grid[1]) {
        block = mad(p, ctaid_y(p), blocks, block);
        blocks = mul(p, blocks, nctaid_y(p));
    }
    if (in->family->launch.grid[2]) {
        block = mad(p, ctaid_z(p), blocks, block);
        blocks = mul(p, blocks, nctaid_z(p));
    }
    val warp = mad(p, block, warps, warp_id(p));
    if (ptx_can_prefetch_bulk(p)) {
        /* One lane prefetches for its whole warp. A bulk prefetch does not queue behind the warp's
         * own loads. */
        unsigned most = target_bytes_ahead(ptx_target(p));
        val from = mul(p, warp, most);
        PTX_IF (p, bit_and(p, eq(p, lane_id(p), 0), lt(p, from, bytes)))
            prefetch_bulk(p, add(p, next, convert(p, U64, from)), 0,
                          min(p, sub(p, bytes, from), most));
        return;
    }
    /* Each lane prefetches one or two cache lines. */
    unsigned of_warp = target_bytes_ahead(ptx_target(p)) / TARGET_LINE;
    unsigned lanes = of_warp < WARP ? of_warp : WARP;
    val all_warps = mul(p, blocks, warps);
    val lines = div(p, bytes, TARGET_LINE), line = mad(p, warp, lanes, lane_id(p));
    PTX_IF (p, lanes < WARP ? lt(p, lane_id(p), lanes) : imm(PRED, 1))
        for (unsigned i = 0; i < of_warp; i += WARP) {
            line = i ? mad(p, all_warps, WARP, line) : line;
            PTX_IF (p, lt(p, line, lines))
                prefetch(p, mad_wide(p, line, TARGET_LINE, next), 0);
        }
}

void fetch_next_early(ptx *p, const instance *in)
{
    if (next_is_early(in))
        fetch_next(p, in);
}

void fetch_next_late(ptx *p, const instance *in)
{
    if (!next_is_early(in))
        fetch_next(p, in);
}

void end_and_fetch_next_if(ptx *p, const instance *in, val condition)
{
    if (in->next)
        PTX_IF (p, condition)
            fetch_next(p, in);
    ret_if(p, condition);
}
