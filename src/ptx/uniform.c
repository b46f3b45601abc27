/* The verifier's divergence check: all threads of the block reach each barrier, all lanes of the
 * warp each shuffle.
 *
 * The spread of a value is uniform in the block, uniform in the warp, or by lane. Values computed
 * from the lane index vary by lane; the warp index (tid >> 5) varies by warp. Loads, arithmetic and
 * selections have the spread of their operands. A branch with a non-uniform condition diverges up
 * to its immediate post-dominator; values defined in these blocks have the condition's spread.
 * Iterates to a fixed point: each walk over all blocks propagates forward, and another walk follows
 * if an earlier block has changed. */
#include "ptx/ir.h"

static uint8_t operand_spread(const ptx *p, const inst *i)
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
    bool warp_alone = false; /* the value varies only by warp */
    switch (i->op) {
    case INST_MOV_SREG:
        return i->target == SPECIAL_TID_X || i->target == SPECIAL_LANEID ? BY_LANE : BLOCK_UNIFORM;
    case INST_SHR: /* the warp index */
        warp_alone = tid && v[0].id == tid && v[1].kind == VAL_IMM && v[1].bits >= 5;
        break;
    case INST_BAR_COUNT:
        return BLOCK_UNIFORM;
    case INST_SHFL_IDX: /* broadcast of a lane that is the same for the warp */
        warp_alone = operands == BY_LANE && p->registers.items[v[1].id].spread != BY_LANE &&
                     v[2].bits == UNDIVIDED;
        break;
    default:
        return BY_LANE;
    }
    uint8_t by_warp = p->block <= WARP ? BLOCK_UNIFORM : WARP_UNIFORM;
    return warp_alone ? by_warp : operands;
}

static uint8_t result_spread(const ptx *p, const inst *i)
{
    uint8_t s = operand_spread(p, i);
    return op_table[i->op].flags & SPREAD_RULE ? ptx_spread_by_rule(p, i, s) : s;
}

/* Pushes the successors of a block that are not reached yet and precede the post-dominator. */
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

/* Walks a block. Returns true if that changes a block already walked. */
static bool step(ptx *p, ptx_flow *flow, int b)
{
    const ptx_basic_block *block = &flow->blocks[b];
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        if (!i->results || p->registers.items[i->result[0]].spread == BY_LANE)
            continue; /* already maximal */
        uint8_t s = result_spread(p, i) | block->spread;
        for (unsigned r = 0; r < i->results; r++)
            p->registers.items[i->result[r]].spread |= s;
    }
    const inst *last = p->list[block->end - 1];
    uint8_t s = op_table[last->op].flags & BRANCH ? operand_spread(p, last) : BLOCK_UNIFORM;
    return s && ptx_raise_region(flow, b, s);
}

/* Returns true if another walk changes nothing. Only reads across blocks can be stale. */
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
        if (i->results && result_spread(p, i) & ~p->registers.items[i->result[0]].spread)
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
                     "%s is a barrier that not all threads of the block reach: %s depends on "
                     "the %s",
                     ptx_describe(p, i), ptx_describe(p, branch),
                     block->spread == BY_LANE ? "lane" : "warp");
        else if (flags & WARP_SYNC && block->spread == BY_LANE)
            ptx_fail(p,
                     "%s needs all lanes of the warp, but not all reach it: %s depends on "
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
