/* The control flow graph: basic blocks, their successors, and immediate post-dominators.
 *
 * A block's immediate post-dominator is the first block on all its paths to the exit: threads that
 * diverge at the block's branch reconverge there. Computed with the iteration of Cooper, Harvey and
 * Kennedy ("A Simple, Fast Dominance Algorithm") on the reversed graph. */
#include "ptx/ir.h"

enum { NOWHERE = -1 };

static void split(ptx *p, ptx_flow *flow, int *block_of_label)
{
    VEC(ptx_basic_block) blocks = { 0 };
    bool starts_block = true;
    for (uint32_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        bool is_label = i->op == INST_LABEL;
        if (starts_block || is_label)
            *VEC_PUSH(p->arena, &blocks) = (ptx_basic_block){ .first = n };
        starts_block = op_table[i->op].flags & BRANCH;
        if (!is_label)
            continue;
        if (block_of_label[i->target] != NOWHERE)
            ptx_fail(p, "the label $%s%s is defined twice", p->labels.items[i->target].name,
                     p->labels.items[i->target].suffix);
        block_of_label[i->target] = (int)blocks.count - 1;
    }
    for (size_t b = 0; b < blocks.count; b++)
        blocks.items[b].end = b + 1 < blocks.count ? blocks.items[b + 1].first : (uint32_t)p->count;
    flow->blocks = blocks.items;
    flow->count = blocks.count;
}

static void connect(ptx *p, ptx_flow *flow, const int *block_of_label)
{
    for (size_t b = 0; b < flow->count; b++) {
        ptx_basic_block *block = &flow->blocks[b];
        const inst *last = p->list[block->end - 1];
        bool falls_through = !(op_table[last->op].flags & BRANCH) || last->operands;
        block->successor[0] = block->successor[1] = NOWHERE;
        if (last->op == INST_BRA) {
            block->successor[1] = block_of_label[last->target];
            if (block->successor[1] == NOWHERE)
                ptx_fail(p, "the label $%s%s is not defined", p->labels.items[last->target].name,
                         p->labels.items[last->target].suffix);
        }
        block->exits = last->op == INST_RET;
        if (falls_through && b + 1 < flow->count)
            block->successor[0] = (int)b + 1;
        else if (falls_through)
            ptx_fail(p, "the kernel has no ret after %s", ptx_describe(p, last));
    }
}

/* Returns the nearest common post-dominator of two blocks, or NOWHERE. In structured code a
 * post-dominator has a larger number than its block, so the smaller of the two moves up. */
static int nearest_common(const ptx_flow *flow, int a, int b)
{
    while (a != b) {
        if (a < b)
            a = flow->blocks[a].postdominator;
        else
            b = flow->blocks[b].postdominator;
        if (a == NOWHERE || b == NOWHERE)
            return NOWHERE;
    }
    return a;
}

static void find_postdominators(ptx_flow *flow)
{
    int exit = (int)flow->count;
    for (size_t b = 0; b < flow->count; b++)
        flow->blocks[b].postdominator = NOWHERE;
    for (bool changed = true; changed;) {
        changed = false;
        for (int b = exit; b-- > 0;) {
            ptx_basic_block *block = &flow->blocks[b];
            int common = block->exits ? exit : NOWHERE;
            for (int s = 0; s < 2; s++) {
                int next = block->successor[s];
                /* A loop's back edge is skipped: the loop exits through its other successor. */
                if (next == NOWHERE || next <= b || flow->blocks[next].postdominator == NOWHERE)
                    continue;
                common = common == NOWHERE ? next : nearest_common(flow, common, next);
            }
            if (common != block->postdominator) {
                block->postdominator = common;
                changed = true;
            }
        }
    }
}

bool ptx_flow_build(ptx *p, ptx_flow *flow)
{
    if (p->count == 0) {
        ptx_fail(p, "the kernel is empty");
        return false;
    }
    int *block_of_label = arena_alloc(p->arena, (p->labels.count + 1) * sizeof *block_of_label);
    for (size_t l = 0; l < p->labels.count; l++)
        block_of_label[l] = NOWHERE;
    split(p, flow, block_of_label);
    flow->stack = arena_alloc(p->arena, flow->count * sizeof *flow->stack);
    connect(p, flow, block_of_label);
    if (p->error)
        return false;
    find_postdominators(flow);
    return true;
}
