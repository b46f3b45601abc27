/* Dead code elimination: removes unreachable code, unused results, and copies between variables and
 * values that have no other use. */
#include "ptx/ir.h"

#include <string.h>

/* Finds reachable instructions and counts the jumps to each label, in one walk, since backward
 * jumps only go to loop heads. Jumps to the next instruction are marked unreachable. */
static void mark_reachable(const ptx *p, bool *live, uint32_t *jumps)
{
    bool reached = true;
    for (size_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        if (i->op == INST_LABEL && jumps[i->target])
            reached = true;
        live[n] = reached;
        if (reached && op_table[i->op].flags & BRANCH) {
            const inst *next = n + 1 < p->count ? p->list[n + 1] : NULL;
            live[n] =
                i->op != INST_BRA || !next || next->op != INST_LABEL || next->target != i->target;
            reached = i->operands || !live[n];
            if (live[n] && i->op == INST_BRA)
                jumps[i->target]++;
        }
    }
}

/* Removes unreachable code and unused labels, repeatedly: each may make the other. */
void ptx_remove_unreachable(ptx *p)
{
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept);
    uint32_t *jumps = arena_alloc(p->arena, p->labels.count * sizeof *jumps);
    for (size_t before = 0; before != p->count;) {
        before = p->count;
        memset(jumps, 0, p->labels.count * sizeof *jumps);
        mark_reachable(p, kept, jumps);
        p->count = 0;
        for (size_t n = 0; n < before; n++) {
            inst *i = p->list[n];
            if (kept[n] && (i->op != INST_LABEL || jumps[i->target]))
                p->list[p->count++] = i;
        }
    }
}

static unsigned reads(const inst *i, uint32_t id)
{
    unsigned count = 0;
    FOR_EACH_USE (i, used)
        count += used->id == id;
    return count;
}

static bool ends_block(const inst *i)
{
    return i->op == INST_LABEL || op_table[i->op].flags & BRANCH;
}

static bool writes(const inst *i, uint32_t id)
{
    for (unsigned r = 0; r < i->results; r++)
        if (i->result[r] == id)
            return true;
    return false;
}

/* Turns "add t, a, b; mov v, t" into "add v, a, b" if nothing else reads t or v in between. */
static bool write_directly(ptx *p, inst **at)
{
    uint32_t value = (*at)->operand[0].id, variable = (*at)->result[0];
    if (p->registers.items[value].uses != 1)
        return false;
    while (at-- > p->list) {
        inst *i = *at;
        if (!i)
            continue;
        if (ends_block(i) || writes(i, variable))
            return false;
        bool vector_load = i->results > 1 && op_table[i->op].flags & (GLOBAL | SHARED);
        for (unsigned r = 0; r < i->results; r++)
            if (i->result[r] == value && !vector_load) {
                i->result[r] = variable;
                p->registers.items[value].uses = 0;
                return true;
            }
        if (reads(i, variable))
            return false;
    }
    return false;
}

/* Removes "mov t, v" and uses v for t if all uses are in the block and before v changes. */
static bool read_directly(ptx *p, inst **at)
{
    uint32_t variable = (*at)->operand[0].id, value = (*at)->result[0];
    ptx_register *registers = p->registers.items;
    uint32_t left = registers[value].uses;
    inst **end = at + 1;
    for (; end < p->list + p->count && left; end++) {
        if (!*end)
            continue;
        left -= reads(*end, value);
        if (left && (ends_block(*end) || writes(*end, variable)))
            return false;
    }
    for (inst **i = at + 1; i < end; i++)
        for (unsigned n = 0; *i && n < (*i)->operands; n++)
            if ((*i)->operand[n].id == value)
                (*i)->operand[n].id = variable;
    registers[variable].uses += registers[value].uses - 1; /* minus the removed copy */
    registers[value].uses = 0;
    return true;
}

/* Removes instructions whose results are not needed. An instruction with an effect is needed, and
 * so are the definitions of a needed instruction's operands. A variable read only to compute its
 * own next value is not needed, e.g. a pointer stepped at the end of a loop. The candidates are
 * from ptx_order. */
static void remove_unneeded(ptx *p)
{
    inst ***places = p->passed_over.items;
    size_t left = p->passed_over.count;
    for (size_t before = left + 1; left < before;) {
        before = left;
        left = 0;
        for (size_t n = 0; n < before; n++) {
            const inst *i = *places[n];
            bool needed = false;
            for (unsigned r = 0; i && r < i->results; r++)
                needed |= p->registers.items[i->result[r]].needed;
            if (i && !needed)
                places[left++] = places[n];
            else if (i)
                FOR_EACH_USE (i, used)
                    p->registers.items[used->id].needed = true;
        }
    }
    for (size_t n = 0; n < left; n++)
        *places[n] = NULL;
}

void ptx_remove_unused(ptx *p)
{
    for (size_t n = p->copies.count; n-- > 0;) {
        inst **at = p->copies.items[n], *copy = *at;
        const ptx_register *from = &p->registers.items[copy->operand[0].id],
                           *to = &p->registers.items[copy->result[0]];
        if (from->type == to->type && from->variable != to->variable &&
            (to->variable ? write_directly(p, at) : read_directly(p, at)))
            *at = NULL;
    }
    remove_unneeded(p);
    size_t count = 0;
    for (size_t n = 0; n < p->count; n++) {
        p->list[count] = p->list[n];
        count += p->list[n] != NULL;
    }
    p->count = count;
}
