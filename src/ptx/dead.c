/* Removing what is not needed: code that no path reaches, results that nobody uses, copies that an
 * assignment made of a value used nowhere else.
 */
#include "ptx/ir.h"

#include <string.h>

/* Finds what runs, which is what follows a live instruction that does not jump away, and what a
 * live jump leads to; and counts the jumps to each label. One walk is enough: only loops jump up,
 * and their beginning is reached from above first. A jump to the next instruction is left out. */
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

/* Removes code that no path reaches and labels without a jump. Repeated, since a label that goes
 * may have stood between a jump and its label. */
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

/* "add t, a, b; mov v, t" becomes "add v, a, b" where t has no other use and nothing between
 * touches v. What a vector load gives keeps registers of its own. */
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

/* "mov t, v" goes, and v is read in place of t, where all uses of t come before v changes and in
 * the same block. */
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
    registers[variable].uses += registers[value].uses - 1; /* the copy was one */
    registers[value].uses = 0;
    return true;
}

/* What has an effect is needed, and what makes an operand of something needed. A variable that is
 * read for its own next value alone is not, however many instructions make that. ptx_order has
 * passed over what nothing further down needs, as the step of a pointer at the end of a loop. */
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
