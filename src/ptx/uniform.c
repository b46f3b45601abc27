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
    bool *is_tid;         /* holds %tid.x itself */
    uint8_t *of_block;    /* spread of the conditions that decide whether it runs */
    uint32_t *because;    /* block: the branch, as index of its instruction */
    bool *region;         /* scratch, a flag a block */
    int *stack;
} uniformity;

static spread more(spread a, spread b)
{
    return a > b ? a : b;
}

static spread of_result(const uniformity *u, const inst *i)
{
    if (i->op == OP_MOV_SREG)
        return i->target == SREG_TID_X ? BY_LANE : BLOCK_UNIFORM;
    bool by_warp = i->op == OP_SHR && val_register(i->operand[0]) &&
                   u->is_tid[val_register(i->operand[0])] && i->operand[1].kind == VAL_IMM &&
                   i->operand[1].bits >= 5;
    if (by_warp)
        return u->p->block <= 32 ? BLOCK_UNIFORM : WARP_UNIFORM;
    spread s = BLOCK_UNIFORM;
    FOR_EACH_USE (i, id)
        s = more(s, u->of_register[id]);
    if (i->op == OP_SHFL_IDX) {
        /* One lane's value for all lanes, where all name the same lane of an undivided warp. */
        spread lane = i->operand[1].kind == VAL_IMM
                          ? BLOCK_UNIFORM
                          : (spread)u->of_register[val_register(i->operand[1])];
        enum { UNDIVIDED = 0x1f };
        if (lane < BY_LANE && i->operand[2].bits == UNDIVIDED && s == BY_LANE)
            return u->p->block <= 32 ? BLOCK_UNIFORM : WARP_UNIFORM;
    }
    return s;
}

/* Raises the blocks between a branch and the block where its ways join. */
static bool raise_region(uniformity *u, size_t branch_block, spread s)
{
    const ptx_flow *flow = u->flow;
    int join = flow->blocks[branch_block].postdominator;
    size_t depth = 0;
    bool changed = false;
    memset(u->region, false, flow->count * sizeof *u->region);
    for (int n = 0; n < 2; n++) {
        int next = flow->blocks[branch_block].successor[n];
        if (next >= 0 && next != join && !u->region[next]) {
            u->region[next] = true;
            u->stack[depth++] = next;
        }
    }
    while (depth) {
        int b = u->stack[--depth];
        if (u->of_block[b] < s) {
            u->of_block[b] = (uint8_t)s;
            u->because[b] = flow->blocks[branch_block].end - 1;
            changed = true;
        }
        for (int n = 0; n < 2; n++) {
            int next = flow->blocks[b].successor[n];
            if (next >= 0 && next != join && !u->region[next]) {
                u->region[next] = true;
                u->stack[depth++] = next;
            }
        }
    }
    return changed;
}

static bool step(uniformity *u)
{
    bool changed = false;
    for (size_t b = 0; b < u->flow->count; b++) {
        const ptx_basic_block *block = &u->flow->blocks[b];
        for (size_t n = block->first; n < block->end; n++) {
            const inst *i = u->p->list[n];
            if (!i->results)
                continue;
            spread s = more(of_result(u, i), u->of_block[b]);
            for (unsigned r = 0; r < i->results; r++) {
                if (u->of_register[i->result[r]] >= s)
                    continue;
                u->of_register[i->result[r]] = (uint8_t)s;
                changed = true;
            }
        }
        const inst *last = u->p->list[block->end - 1];
        if (op_table[last->op].flags & BRANCH && last->guard && u->of_register[last->guard])
            changed = raise_region(u, b, u->of_register[last->guard]) || changed;
    }
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
        unsigned flags = op_table[i->op].flags;
        const char *branch = NULL;
        if (flags & (CTA_SYNC | WARP_SYNC))
            branch = ptx_describe(p, p->list[u->because[b]]);
        if (flags & CTA_SYNC)
            ptx_fail(p,
                     "%s is a barrier that not every thread of the block reaches: %s depends on "
                     "the %s",
                     ptx_describe(p, i), branch, s == BY_LANE ? "lane" : "warp");
        else if (flags & WARP_SYNC && s == BY_LANE)
            ptx_fail(p,
                     "%s is a shuffle that not every lane of the warp reaches: %s depends on "
                     "the lane",
                     ptx_describe(p, i), branch);
    }
}

bool ptx_check_uniform(ptx *p, const ptx_flow *flow)
{
    bool synchronises = false;
    for (size_t n = 0; n < p->count; n++)
        synchronises = synchronises || op_table[p->list[n]->op].flags & (CTA_SYNC | WARP_SYNC);
    if (!synchronises)
        return true;

    uniformity u = {
        .p = p,
        .flow = flow,
        .of_register = arena_zalloc(p->arena, p->registers.count),
        .is_tid = arena_zalloc(p->arena, p->registers.count * sizeof(bool)),
        .of_block = arena_zalloc(p->arena, flow->count),
        .because = arena_zalloc(p->arena, flow->count * sizeof(uint32_t)),
        .region = arena_alloc(p->arena, flow->count * sizeof(bool)),
        .stack = arena_alloc(p->arena, flow->count * sizeof(int)),
    };
    for (size_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        if (i->op == OP_MOV_SREG && i->target == SREG_TID_X &&
            !p->registers.items[i->result[0]].variable)
            u.is_tid[i->result[0]] = true;
    }
    while (step(&u))
        ;
    for (size_t b = 0; b < flow->count && !p->error; b++)
        check_block(&u, b);
    return !p->error;
}
