/* Kernels that start before the launches ahead of them in their stream have finished (programmatic
 * dependent launches): what they may do ahead of their wait, griddepcontrol.wait.
 *
 * Ahead of it a launch that is still running may write any memory but weights and the module's
 * arrays, and may read any. So a thread neither loads nor stores there, and does not end: it waits
 * once on every path, and what it does to global memory comes behind. Prefetches load nothing: what
 * they fetch is in the L2, through which all stores go.
 *
 * Of a parameter that is settled more is known: no launch that may still run writes what it leads
 * to. By an example: the last kernel of a step writes the lengths of sequences, the first one of
 * the next step waits before it triggers, and the third one reads lengths. It cannot begin before
 * all blocks of the first one have triggered, which have waited for the step ahead. Such a load may
 * stand ahead of the wait, and passes the L1 by; what it gives is nobody's promise: an address that
 * was loaded leads to what changes.
 *
 * The wait orders what ptxas calls ordinary memory. ld.global.nc is not: it says that memory is the
 * same for as long as the kernel runs, and ptxas moves it ahead of the wait. That holds of weights
 * and module arrays alone. Which loads are of those follows from where their addresses come from: a
 * register of 64 bits is made of other such ones, of parameters, of arrays, or was loaded itself;
 * numbers of 32 bits are distances.
 */
#include "ptx/ir.h"

bool ptx_overlaps(const ptx *p)
{
    return p->overlaps;
}

static void control_launches(ptx *p, ptx_op o, const char *comment)
{
    ptx_set_comment(p, ptx_append(p, o, NO_TYPE, NULL, 0), comment);
}

void ptx_overlap(ptx *p)
{
    p->overlaps = true;
}

void let_next_start(ptx *p)
{
    control_launches(p, INST_LAUNCH_DEPENDENTS, "the next launch may start");
}

void wait_for_launches(ptx *p)
{
    if (p->overlaps)
        control_launches(p, INST_WAIT_FOR_LAUNCHES, "those ahead are done");
}

/* Returns, by register, the ptx_changes of what an address leads to. Repeated for what loops carry
 * upwards. */
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

/* Where a thread may be relative to the wait, a bit each. */
enum { AHEAD = 1, BEHIND = 2 };

/* Copies to shared memory read what ld_const may, ahead of the wait, and all else behind it. */
static bool touches_what_changes(const inst *i, const uint8_t *changes)
{
    if (is_copy(i->op))
        return changes[i->operand[0].id];
    if (i->op == INST_LD_SETTLED)
        return changes[i->operand[0].id] == CHANGES_ANY;
    return op_table[i->op].flags & GLOBAL && i->op != INST_LD_CONST && !is_prefetch(i->op);
}

/* Walks a block from where its threads may be. Returns where they may be after it. */
static unsigned follow(ptx *p, const ptx_basic_block *block, unsigned at, const uint8_t *changes)
{
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        if (i->op == INST_WAIT_FOR_LAUNCHES) {
            if (at & BEHIND)
                ptx_fail(p, "%s: a thread may have waited before", ptx_describe(p, i));
            at = BEHIND;
        } else if (at & AHEAD && touches_what_changes(i, changes)) {
            ptx_fail(p, "%s comes ahead of the wait for the launches ahead", ptx_describe(p, i));
        } else if (at & AHEAD && i->op == INST_RET) {
            ptx_fail(p, "%s: a thread may end that has not waited for the launches ahead",
                     ptx_describe(p, i));
        }
    }
    return at;
}

bool ptx_check_overlap(ptx *p, const ptx_flow *flow)
{
    uint8_t *entered = arena_zalloc(p->arena, flow->count * sizeof *entered);
    const uint8_t *changes = NULL; /* for what may stand ahead of the wait by its address alone */
    for (size_t n = 0; n < p->count && !changes; n++)
        if (is_copy(p->list[n]->op) || p->list[n]->op == INST_LD_SETTLED)
            changes = find_changes(p);
    entered[0] = AHEAD;
    for (bool changed = true; changed && !p->error;) {
        changed = false;
        for (size_t b = 0; b < flow->count; b++) {
            unsigned left = entered[b] ? follow(p, &flow->blocks[b], entered[b], changes) : 0;
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
