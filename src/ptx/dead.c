/* Removing what is not needed: code that no path reaches, results that nobody uses, copies that an
 * assignment made of a value used nowhere else.
 */
#include "ptx/ir.h"

#include <string.h>

static bool ends_path(const inst *i)
{
    return op_table[i->op].flags & BRANCH && !i->guard;
}

static void keep(ptx *p, const bool *kept)
{
    size_t count = 0;
    for (size_t n = 0; n < p->count; n++)
        if (kept[n])
            p->list[count++] = p->list[n];
    p->count = count;
}

/* Marks what runs: what follows a live instruction that does not jump away, and labels that a live
 * jump names. */
static void mark_reachable(const ptx *p, bool *live, bool *jumped_to)
{
    memset(live, false, p->count * sizeof *live);
    memset(jumped_to, false, p->labels.count * sizeof *jumped_to);
    for (bool changed = true; changed;) {
        changed = false;
        bool reached = true;
        for (size_t n = 0; n < p->count; n++) {
            const inst *i = p->list[n];
            reached = reached || (i->op == OP_LABEL && jumped_to[i->target]);
            live[n] = reached;
            if (reached && i->op == OP_BRA && !jumped_to[i->target]) {
                jumped_to[i->target] = true;
                changed = true;
            }
            reached = reached && !ends_path(i);
        }
    }
}

/* Code that nothing reaches, jumps to the label right behind them, labels that nothing jumps to.
 * Repeated, since a jump that goes makes its label superfluous. */
void ptx_remove_unreachable(ptx *p)
{
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept + 1);
    bool *jumped_to = arena_alloc(p->arena, p->labels.count * sizeof *jumped_to + 1);
    for (size_t before = 0; before != p->count;) {
        before = p->count;
        mark_reachable(p, kept, jumped_to);
        for (size_t n = 0; n < before; n++) {
            const inst *i = p->list[n];
            if (i->op == OP_LABEL && !jumped_to[i->target])
                kept[n] = false;
            const inst *next = n + 1 < before ? p->list[n + 1] : NULL;
            if (i->op == OP_BRA && next && next->op == OP_LABEL && next->target == i->target)
                kept[n] = false;
        }
        keep(p, kept);
    }
}

static uint32_t *count_uses(const ptx *p)
{
    uint32_t *uses = arena_zalloc(p->arena, p->registers.count * sizeof *uses);
    for (size_t n = 0; n < p->count; n++)
        FOR_EACH_USE (p->list[n], id)
            uses[id]++;
    return uses;
}

void ptx_remove_unused(ptx *p)
{
    uint32_t *uses = count_uses(p);
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept + 1);
    memset(kept, true, p->count);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = p->count; n-- > 0;) {
            const inst *i = p->list[n];
            if (!kept[n] || op_table[i->op].flags & EFFECT)
                continue;
            /* A variable that is only read to make its own next value is not used. */
            uint32_t used = 0;
            for (unsigned r = 0; r < i->results; r++) {
                used += uses[i->result[r]];
                FOR_EACH_USE (i, id)
                    used -= id == i->result[r];
            }
            if (used)
                continue;
            kept[n] = false;
            FOR_EACH_USE (i, id) {
                uses[id]--;
                /* Values are made further up, where this walk still comes by. */
                changed = changed || p->registers.items[id].variable;
            }
        }
    }
    keep(p, kept);
}

static bool ends_block(const inst *i)
{
    return i->op == OP_LABEL || op_table[i->op].flags & BRANCH;
}

static bool writes(const inst *i, uint32_t id)
{
    for (unsigned r = 0; r < i->results; r++)
        if (i->result[r] == id)
            return true;
    return false;
}

static unsigned reads(const inst *i, uint32_t id)
{
    unsigned count = 0;
    FOR_EACH_USE (i, used)
        count += used == id;
    return count;
}

/* "add t, a, b; mov v, t" becomes "add v, a, b" where t has no other use and nothing between
 * touches v. */
static bool write_directly(ptx *p, const bool *kept, const uint32_t *uses, size_t at)
{
    const inst *copy = p->list[at];
    uint32_t value = copy->operand[0].id, variable = copy->result[0];
    if (uses[value] != 1)
        return false;
    for (size_t n = at; n-- > 0;) {
        inst *i = p->list[n];
        if (!kept[n])
            continue;
        if (ends_block(i))
            return false;
        if (i->results == 1 && i->result[0] == value) {
            i->result[0] = variable;
            return true;
        }
        if (writes(i, variable) || reads(i, variable))
            return false;
    }
    return false;
}

static void rename_uses(inst *i, uint32_t from, uint32_t to)
{
    for (unsigned n = 0; n < i->uses; n++)
        if (i->use[n] == from)
            i->use[n] = to;
    for (unsigned n = 0; n < i->operands; n++)
        if (val_register(i->operand[n]) == from)
            i->operand[n].id = to;
    if (val_register(i->base) == from)
        i->base.id = to;
    if (i->guard == from)
        i->guard = to;
}

/* "mov t, v" goes, and v is read in place of t, where all uses of t come before v changes and in
 * the same block. */
static bool read_directly(ptx *p, const uint32_t *uses, size_t at)
{
    const inst *copy = p->list[at];
    uint32_t variable = copy->operand[0].id, value = copy->result[0];
    uint32_t left = uses[value];
    size_t n = at + 1;
    for (; n < p->count && left; n++) {
        const inst *i = p->list[n];
        left -= reads(i, value);
        if (left && (ends_block(i) || writes(i, variable)))
            return false;
    }
    for (size_t m = at + 1; m < n; m++)
        rename_uses(p->list[m], value, variable);
    return true;
}

void ptx_join_copies(ptx *p)
{
    const uint32_t *uses = count_uses(p);
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept + 1);
    memset(kept, true, p->count);
    for (size_t n = 0; n < p->count; n++) {
        const inst *copy = p->list[n];
        uint32_t from = copy->operands == 1 ? val_register(copy->operand[0]) : 0;
        if (copy->op != OP_MOV || copy->guard || !from ||
            p->registers.items[from].type != p->registers.items[copy->result[0]].type)
            continue;
        bool to_variable = p->registers.items[copy->result[0]].variable;
        if (!p->registers.items[from].variable && to_variable)
            kept[n] = !write_directly(p, kept, uses, n);
        else if (p->registers.items[from].variable && !to_variable)
            kept[n] = !read_directly(p, uses, n);
    }
    keep(p, kept);
}
