/* Kernels that start before preceding launches in their stream have finished (programmatic
 * dependent launches): rules for code before griddepcontrol.wait.
 *
 * Before the wait, an unfinished launch may write any memory except weights and module arrays, and
 * may read any memory. So a thread must not load, store or exit before the wait, and must wait
 * exactly once on every path. Prefetches are allowed: they return no data, and fetch into the L2,
 * through which all stores pass.
 *
 * Data of a CHANGES_SETTLED parameter is written only by launches that are complete when the kernel
 * starts. Example: the last kernel of a step writes the sequence lengths. The first kernel of the
 * next step waits before it triggers, and the third reads the lengths. The third starts after all
 * blocks of the first have triggered, and these have waited for the previous step. Loads from such
 * a parameter may precede the wait, and bypass the L1. Pointers loaded this way are not settled.
 *
 * The wait orders ordinary loads. ptxas may move ld.global.nc before it, since that instruction
 * asserts constant memory, which holds only for weights and module arrays. The origin of a load's
 * address decides: a 64-bit register is computed from other 64-bit registers, a parameter or an
 * array, or it is loaded. 32-bit numbers are offsets. */
#include "ptx/ir.h"

bool ptx_overlaps(const ptx *p)
{
    return p->overlaps;
}

void ptx_overlap(ptx *p)
{
    p->overlaps = true;
}

void let_next_start(ptx *p)
{
    ptx_set_comment(p, ptx_append(p, INST_LAUNCH_DEPENDENTS, NO_TYPE, NULL, 0),
                    "the next launch may start");
}

void wait_for_launches(ptx *p)
{
    if (p->overlaps)
        ptx_set_comment(p, ptx_append(p, INST_WAIT_FOR_LAUNCHES, NO_TYPE, NULL, 0),
                        "preceding launches are complete");
}

/* Returns, by register, the ptx_changes of the memory at its value. Loops need iterations. */
static const uint8_t *find_changes(const ptx *p)
{
    uint8_t *changes = arena_zalloc(p->arena, p->registers.count * sizeof *changes);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < p->count; n++) {
            const inst *i = p->list[n];
            uint32_t made = i->results ? i->result[0] : 0;
            if (!made || changes[made] == CHANGES_ANY ||
                register_classes[p->registers.items[made].type] != CLASS_64)
                continue;
            ptx_changes found = CHANGES_NEVER;
            if (i->op == INST_LD_PARAM)
                found = p->params.items[i->target].changes;
            else if (op_table[i->op].flags & (GLOBAL | SHARED))
                found = CHANGES_ANY;
            else
                FOR_EACH_USE (i, used)
                    if (changes[used->id] > found)
                        found = changes[used->id];
            if (found <= changes[made])
                continue;
            for (unsigned r = 0; r < i->results; r++)
                changes[i->result[r]] = (uint8_t)found;
            changed = true;
        }
    }
    return changes;
}

void ptx_load_what_changes(ptx *p)
{
    const uint8_t *changes = find_changes(p);
    for (size_t n = 0; n < p->count; n++) {
        inst *i = p->list[n];
        if (i->op == INST_LD_CONST && changes[i->operand[i->operands - 1].id])
            i->op = INST_LD_GLOBAL;
    }
}

/* Positions of a thread relative to the wait, as a bit set. */
enum { BEFORE_WAIT = 1, AFTER_WAIT = 2 };

/* Returns true for an access that must follow the wait, e.g. copies like ld_const. */
static bool touches_what_changes(const inst *i, const uint8_t *changes)
{
    if (is_copy(i->op))
        return changes[i->operand[0].id];
    if (i->op == INST_LD_SETTLED)
        return changes[i->operand[0].id] == CHANGES_ANY;
    return op_table[i->op].flags & GLOBAL && i->op != INST_LD_CONST && !is_prefetch(i->op);
}

/* Checks a block. Takes the possible positions of threads at entry; returns those at its end. */
static unsigned check_block(ptx *p, const ptx_basic_block *block, unsigned at,
                            const uint8_t *changes)
{
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        if (i->op == INST_WAIT_FOR_LAUNCHES) {
            if (at & AFTER_WAIT)
                ptx_fail(p, "%s: a thread may wait twice for preceding launches",
                         ptx_describe(p, i));
            at = AFTER_WAIT;
        } else if (at & BEFORE_WAIT && touches_what_changes(i, changes)) {
            ptx_fail(p, "%s precedes the wait for preceding launches", ptx_describe(p, i));
        } else if (at & BEFORE_WAIT && i->op == INST_RET) {
            ptx_fail(p, "%s: a thread may end without waiting for preceding launches",
                     ptx_describe(p, i));
        }
    }
    return at;
}

bool ptx_check_overlap(ptx *p, const ptx_flow *flow)
{
    uint8_t *entered = arena_zalloc(p->arena, flow->count * sizeof *entered);
    const uint8_t *changes = NULL; /* needed only by accesses whose address decides */
    for (size_t n = 0; n < p->count && !changes; n++)
        if (is_copy(p->list[n]->op) || p->list[n]->op == INST_LD_SETTLED)
            changes = find_changes(p);
    entered[0] = BEFORE_WAIT;
    for (bool changed = true; changed && !p->error;) {
        changed = false;
        for (size_t b = 0; b < flow->count; b++) {
            unsigned left = entered[b] ? check_block(p, &flow->blocks[b], entered[b], changes) : 0;
            for (int s = 0; s < 2; s++) {
                int next = flow->blocks[b].successor[s];
                if (next < 0 || !(left & ~(unsigned)entered[next]))
                    continue;
                entered[next] |= (uint8_t)left;
                changed = true;
            }
        }
    }
    return !p->error;
}
