/* Kernels that start before the launches ahead of them in their stream have finished (programmatic
 * dependent launches): what they may do ahead of their wait, griddepcontrol.wait.
 *
 * Ahead of it a launch that is still running may write any memory but weights and the module's
 * arrays, and may read any. So a thread neither loads nor stores there, and does not end: it waits
 * once on every path, and what it does to global memory comes behind. Prefetches load nothing.
 *
 * The wait orders what ptxas calls ordinary memory. ld.global.nc is not: it says that memory is the
 * same for as long as the kernel runs, and ptxas moves it ahead of the wait. That holds of weights
 * and module arrays alone. Which loads are of those follows from where their addresses come from: a
 * register of 64 bits is made of other such ones, of parameters, of arrays, or was loaded itself;
 * numbers of 32 bits are distances.
 */
#include "ptx/ir.h"

bool ptx_can_overlap(const target *t)
{
    return t->sm >= op_table[INST_WAIT_FOR_LAUNCHES].sm;
}

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
    control_launches(p, INST_LAUNCH_DEPENDENTS, "the next launch may start");
}

void wait_for_launches(ptx *p)
{
    if (p->overlaps)
        control_launches(p, INST_WAIT_FOR_LAUNCHES, "those ahead are done");
}

/* Whether an instruction makes, or takes from somewhere else, an address of what changes. */
static bool makes_changing(const ptx *p, const inst *i, const bool *changing)
{
    if (i->op == INST_LD_PARAM)
        return !p->params.items[i->target].constant;
    if (op_table[i->op].flags & (GLOBAL | SHARED))
        return true;
    FOR_EACH_USE (i, used)
        if (changing[used->id])
            return true;
    return false;
}

static bool is_address(const ptx *p, uint32_t id)
{
    return register_classes[p->registers.items[id].type] == CLASS_64;
}

/* By register: whether it may be an address of what changes. Walked over again for what loops carry
 * upwards. */
static const bool *find_changing(const ptx *p)
{
    bool *changing = arena_zalloc(p->arena, p->registers.count * sizeof *changing);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < p->count; n++) {
            const inst *i = p->list[n];
            uint32_t made = i->results ? i->result[0] : 0;
            if (!made || changing[made] || !is_address(p, made) || !makes_changing(p, i, changing))
                continue;
            for (unsigned r = 0; r < i->results; r++)
                changing[i->result[r]] = true;
            changed = true;
        }
    }
    return changing;
}

void ptx_load_what_changes(ptx *p)
{
    const bool *changing = find_changing(p);
    for (size_t n = 0; n < p->count; n++) {
        inst *i = p->list[n];
        if (i->op == INST_LD_CONST && changing[i->operand[i->operands - 1].id])
            i->op = INST_LD_GLOBAL;
    }
}

/* Where a thread may be: a bit each. */
enum { AHEAD = 1, BEHIND = 2 };

/* Copies to shared memory read what ld_const may, ahead of the wait, and all else behind it. */
static bool touches_what_changes(const inst *i, const bool *changing)
{
    if (is_copy(i->op))
        return changing[i->operand[0].id];
    return op_table[i->op].flags & GLOBAL && i->op != INST_LD_CONST && i->op != INST_PREFETCH_L2;
}

static bool has_copies(const ptx *p)
{
    for (size_t n = 0; n < p->count; n++)
        if (is_copy(p->list[n]->op))
            return true;
    return false;
}

/* Where threads are behind a block that they enter there. */
static unsigned follow(ptx *p, const ptx_basic_block *block, unsigned at, const bool *changing)
{
    for (uint32_t n = block->first; n < block->end; n++) {
        const inst *i = p->list[n];
        if (i->op == INST_WAIT_FOR_LAUNCHES) {
            if (at & BEHIND)
                ptx_fail(p, "%s: a thread may have waited before", ptx_describe(p, i));
            at = BEHIND;
        } else if (at & AHEAD && touches_what_changes(i, changing)) {
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
    const bool *changing = has_copies(p) ? find_changing(p) : NULL;
    entered[0] = AHEAD;
    for (bool changed = true; changed && !p->error;) {
        changed = false;
        for (size_t b = 0; b < flow->count; b++) {
            unsigned left = entered[b] ? follow(p, &flow->blocks[b], entered[b], changing) : 0;
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
