/* The verifier's second half: barriers that every thread of the block reaches, shuffles that every
 * lane does.
 *
 * A value is uniform over the block, over the warp, or differs by lane. What a lane's number goes
 * into differs by lane; the warp's number (tid >> 5) differs by warp; loads, arithmetic and
 * selection are as uneven as their operands. A branch whose condition is uneven makes everything
 * between it and its immediate post-dominator, where its ways are together again, run by some
 * threads only; what is defined there is as uneven. Iterated until nothing changes, since an uneven
 * region makes values and these make regions: a walk over all blocks sees what changed further up,
 * and another one follows where what it has seen changed further down.
 */
#include "ptx/ir.h"

static uint8_t of_operands(const ptx *p, const inst *i)
{
    uint8_t s = BLOCK_UNIFORM;
    FOR_EACH_USE (i, used)
        s |= p->registers.items[used->id].spread;
    return s;
}

uint8_t ptx_spread_by_rule(const ptx *p, const inst *i, uint8_t operands)
{
    enum { UNDIVIDED = 0x1f };
    const val *v = i->operand;
    uint32_t tid = p->special_values[SPECIAL_TID_X].id;
    bool warp_alone = false; /* the value differs by warp only */
    switch (i->op) {
    case INST_MOV_SREG:
        return i->target == SPECIAL_TID_X || i->target == SPECIAL_LANEID ? BY_LANE : BLOCK_UNIFORM;
    case INST_SHR: /* the warp's number */
        warp_alone = tid && v[0].id == tid && v[1].kind == VAL_IMM && v[1].bits >= 5;
        break;
    case INST_BAR_COUNT:
        return BLOCK_UNIFORM;
    case INST_SHFL_IDX: /* one lane's value for all, where all name the same one of the warp's */
        warp_alone = operands == BY_LANE && p->registers.items[v[1].id].spread != BY_LANE &&
                     v[2].bits == UNDIVIDED;
        break;
    default:
        return BY_LANE;
    }
    uint8_t by_warp = p->block <= WARP ? BLOCK_UNIFORM : WARP_UNIFORM;
    return warp_alone ? by_warp : operands;
}

static uint8_t of_result(const ptx *p, const inst *i)
{
    uint8_t s = of_operands(p, i);
    return op_table[i->op].flags & SPREAD_RULE ? ptx_spread_by_rule(p, i, s) : s;
}

/* Adds the successors of a block that are still ahead of the join. */
static size_t push_successors(ptx_flow *flow, int block, int join, size_t depth)
{
    for (int n = 0; n < 2; n++) {
        int next = flow->blocks[block].successor[n];
        if (next < 0 || next == join || flow->blocks[next].reached)
            continue;
        flow->blocks[next].reached = true;
        flow->stack[depth++] = next;
    }
    return depth;
}

bool ptx_raise_region(ptx_flow *flow, int branch_block, uint8_t s)
{
    const ptx_basic_block *from = &flow->blocks[branch_block];
    bool changed = false;
    for (size_t b = 0; b < flow->count; b++)
        flow->blocks[b].reached = false;
    size_t depth = push_successors(flow, branch_block, from->postdominator, 0);
    while (depth) {
        int b = flow->stack[--depth];
        ptx_basic_block *block = &flow->blocks[b];
        if (block->spread < s) {
            block->spread = s;
            block->because = from->end - 1;
            changed = changed || b <= branch_block;
        }
        depth = push_successors(flow, b, from->postdominator, depth);
    }
    return changed;
}

/* A walk over a block. True where that changes what it has seen. */
static bool step(ptx *p, ptx_flow *flow, int b)
{
    const ptx_basic_block *block = &flow->blocks[b];
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        if (!i->results || p->registers.items[i->result[0]].spread == BY_LANE)
            continue; /* no more to learn */
        uint8_t s = of_result(p, i) | block->spread;
        for (unsigned r = 0; r < i->results; r++)
            p->registers.items[i->result[r]].spread |= s;
    }
    const inst *last = p->list[block->end - 1];
    uint8_t s = op_table[last->op].flags & BRANCH ? of_operands(p, last) : BLOCK_UNIFORM;
    return s && ptx_raise_region(flow, b, s);
}

/* Returns true if another walk would see what the last one saw: what is read behind a definition in
 * the same block it did. */
static bool is_settled(ptx *p, ptx_flow *flow, const ptx_definitions *d)
{
    for (size_t n = 0; n < d->reads.count; n++) {
        const ptx_outside_read *r = &d->reads.items[n];
        const inst *i = r->inst;
        uint8_t now = p->registers.items[r->id].spread;
        if (now == BLOCK_UNIFORM)
            continue;
        if (op_table[i->op].flags & BRANCH && ptx_raise_region(flow, (int)r->block, now))
            return false;
        if (i->results && of_result(p, i) & ~p->registers.items[i->result[0]].spread)
            return false;
    }
    return true;
}

static void check_block(ptx *p, const ptx_basic_block *block)
{
    if (block->spread == BLOCK_UNIFORM)
        return;
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        const inst *branch = p->list[block->because];
        unsigned flags = op_table[i->op].flags;
        if (flags & CTA_SYNC)
            ptx_fail(p,
                     "%s is a barrier that not every thread of the block reaches: %s depends on "
                     "the %s",
                     ptx_describe(p, i), ptx_describe(p, branch),
                     block->spread == BY_LANE ? "lane" : "warp");
        else if (flags & WARP_SYNC && block->spread == BY_LANE)
            ptx_fail(p,
                     "%s needs all lanes of the warp, and not every one reaches it: %s depends on "
                     "the lane",
                     ptx_describe(p, i), ptx_describe(p, branch));
    }
}

bool ptx_check_uniform(ptx *p, ptx_flow *flow, const ptx_definitions *d, bool changed)
{
    while (changed || !is_settled(p, flow, d)) {
        changed = false;
        for (int b = 0; b < (int)flow->count; b++)
            changed = step(p, flow, b) || changed;
    }
    for (size_t b = 0; b < flow->count && !p->error; b++)
        check_block(p, &flow->blocks[b]);
    return !p->error;
}
