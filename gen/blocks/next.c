#include "gen/blocks/next.h"

#include "family/next.h"

enum { WARP = 32 };

/* The block's number in the grid, and how many there are. */
static val block_of_grid(ptx *p, const launch *l, val *blocks)
{
    val block = ctaid_x(p);
    *blocks = nctaid_x(p);
    if (l->grid[1]) {
        block = mad(p, ctaid_y(p), *blocks, block);
        *blocks = mul(p, *blocks, nctaid_y(p));
    }
    if (l->grid[2]) {
        block = mad(p, ctaid_z(p), *blocks, block);
        *blocks = mul(p, *blocks, nctaid_z(p));
    }
    return block;
}

static void fetch_line(ptx *p, val next, val lines, val line)
{
    PTX_IF (p, lt(p, line, lines))
        prefetch(p, mad_wide(p, line, TARGET_LINE, next), 0);
}

void fetch_next(ptx *p, const instance *in)
{
    if (!in->next)
        return;
    phase(p, "fetch what the next launch reads first");
    unsigned of_warp = target_bytes_ahead(ptx_target(p)) / TARGET_LINE;
    unsigned lanes = of_warp < WARP ? of_warp : WARP, warps = ptx_block(p) / WARP;
    val next = parameter(p, "next");
    val lines = select(p, ne(p, next, 0), imm(U32, in->next / TARGET_LINE), imm(U32, 0));
    val blocks, block = block_of_grid(p, &in->family->launch, &blocks);
    val line = mad(p, mad(p, block, warps, warp_id(p)), lanes, lane_id(p));
    if (lanes < WARP) {
        PTX_IF (p, lt(p, lane_id(p), lanes))
            fetch_line(p, next, lines, line);
        return;
    }
    fetch_line(p, next, lines, line);
    if (of_warp > WARP)
        fetch_line(p, next, lines, mad(p, blocks, warps * WARP, line));
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
