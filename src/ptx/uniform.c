/* The verifier's second half: barriers that every thread of the block reaches, shuffles that every
 * lane does.
 *
 * A value is uniform over the block, over the warp, or differs by lane. What a lane's number goes
 * into differs by lane; the warp's number (tid >> 5) differs by warp; loads, arithmetic and
 * selection are as uneven as their operands. A branch whose condition is uneven makes everything
 * between it and its immediate post-dominator, where its ways are together again, run by some
 * threads only; what is defined there is as uneven. Iterated until nothing changes, since an uneven
 * region makes values and these make regions.
 */
#include "ptx/ir.h"

#include <string.h>

typedef enum spread { BLOCK_UNIFORM, WARP_UNIFORM, BY_LANE } spread;

typedef struct uniformity {
    ptx *p;
    const ptx_flow *flow;
    uint8_t *of_register; /* spread */
    uint32_t tid;         /* the register that holds %tid.x itself; 0: none does */
    uint8_t *of_block;    /* spread of the conditions that decide whether it runs */
    uint32_t *because;    /* block: the branch, as index of its instruction */
    bool *region;         /* scratch, a flag a block */
    int *stack;
} uniformity;

static spread more(spread a, spread b)
{
    return a > b ? a : b;
}

static spread of_operands(const uniformity *u, const inst *i)
{
    spread s = BLOCK_UNIFORM;
    FOR_EACH_USE (i, id)
        s = more(s, u->of_register[*id]);
    return s;
}

/* What differs by warp only, in a block that may have one. */
static spread by_warp(const uniformity *u)
{
    return u->p->block <= 32 ? BLOCK_UNIFORM : WARP_UNIFORM;
}

static bool is_warp_number(const uniformity *u, const inst *i)
{
    return u->tid && val_register(i->operand[0]) == u->tid && i->operand[1].kind == VAL_IMM &&
           i->operand[1].bits >= 5;
}

/* One lane's value for all lanes: where all name the same lane of an undivided warp. */
static bool is_broadcast(const uniformity *u, const inst *i)
{
    enum { UNDIVIDED = 0x1f };
    return u->of_register[val_register(i->operand[1])] < BY_LANE && i->operand[2].bits == UNDIVIDED;
}

static spread of_result(const uniformity *u, const inst *i)
{
    spread s = of_operands(u, i);
    switch (i->op) {
    case OP_MOV_SREG:
        return i->target == SREG_TID_X ? BY_LANE : BLOCK_UNIFORM;
    case OP_ATOM_INC:
        return BY_LANE;
    case OP_SHR:
        return is_warp_number(u, i) ? by_warp(u) : s;
    case OP_SHFL_IDX:
        return s == BY_LANE && is_broadcast(u, i) ? by_warp(u) : s;
    default:
        return s;
    }
}

/* Adds the successors of a block that are still ahead of the join. */
static size_t push_successors(uniformity *u, int block, int join, size_t depth)
{
    for (int n = 0; n < 2; n++) {
        int next = u->flow->blocks[block].successor[n];
        if (next < 0 || next == join || u->region[next])
            continue;
        u->region[next] = true;
        u->stack[depth++] = next;
    }
    return depth;
}

/* Raises the blocks between a branch and the block where its ways join. */
static bool raise_region(uniformity *u, int branch_block, spread s)
{
    const ptx_basic_block *from = &u->flow->blocks[branch_block];
    bool changed = false;
    memset(u->region, false, u->flow->count * sizeof *u->region);
    size_t depth = push_successors(u, branch_block, from->postdominator, 0);
    while (depth) {
        int b = u->stack[--depth];
        if (u->of_block[b] < s) {
            u->of_block[b] = (uint8_t)s;
            u->because[b] = from->end - 1;
            changed = true;
        }
        depth = push_successors(u, b, from->postdominator, depth);
    }
    return changed;
}

/* One walk over a block. True where that calls for another walk over all blocks: a value is read
 * behind its definition only, so a change of it is seen in the same walk. */
static bool step(uniformity *u, int b)
{
    const ptx_basic_block *block = &u->flow->blocks[b];
    bool changed = false;
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = u->p->list[n];
        if (!i->results || u->of_register[i->result[0]] == BY_LANE)
            continue; /* no more to learn */
        spread s = more(of_result(u, i), u->of_block[b]);
        for (unsigned r = 0; r < i->results; r++) {
            if (u->of_register[i->result[r]] >= s)
                continue;
            u->of_register[i->result[r]] = (uint8_t)s;
            changed = changed || u->p->registers.items[i->result[r]].variable;
        }
    }
    const inst *last = u->p->list[block->end - 1];
    if (op_table[last->op].flags & BRANCH && last->guard && u->of_register[last->guard])
        changed = raise_region(u, b, u->of_register[last->guard]) || changed;
    return changed;
}

static void check_block(uniformity *u, size_t b)
{
    ptx *p = u->p;
    spread s = u->of_block[b];
    if (s == BLOCK_UNIFORM)
        return;
    for (size_t n = u->flow->blocks[b].first; n < u->flow->blocks[b].end; n++) {
        const inst *i = p->list[n];
        const inst *branch = p->list[u->because[b]];
        unsigned flags = op_table[i->op].flags;
        if (flags & CTA_SYNC)
            ptx_fail(p,
                     "%s is a barrier that not every thread of the block reaches: %s depends on "
                     "the %s",
                     ptx_describe(p, i), ptx_describe(p, branch), s == BY_LANE ? "lane" : "warp");
        else if (flags & WARP_SYNC && s == BY_LANE)
            ptx_fail(p,
                     "%s is a %s that not every lane of the warp reaches: %s depends on the lane",
                     ptx_describe(p, i), flags & EFFECT ? "barrier" : "shuffle",
                     ptx_describe(p, branch));
    }
}

static bool synchronises(const ptx *p)
{
    for (size_t n = 0; n < p->count; n++)
        if (op_table[p->list[n]->op].flags & (CTA_SYNC | WARP_SYNC))
            return true;
    return false;
}

bool ptx_check_uniform(ptx *p, const ptx_flow *flow)
{
    if (!synchronises(p))
        return true;
    uniformity u = {
        .p = p,
        .flow = flow,
        .of_register = arena_zalloc(p->arena, p->registers.count),
        .tid = p->sreg_values[SREG_TID_X].id,
        .of_block = arena_zalloc(p->arena, flow->count),
        .because = arena_zalloc(p->arena, flow->count * sizeof *u.because),
        .region = arena_alloc(p->arena, flow->count * sizeof *u.region),
        .stack = arena_alloc(p->arena, flow->count * sizeof *u.stack),
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (int b = 0; b < (int)flow->count; b++)
            changed = step(&u, b) || changed;
    }
    for (size_t b = 0; b < flow->count && !p->error; b++)
        check_block(&u, b);
    return !p->error;
}
