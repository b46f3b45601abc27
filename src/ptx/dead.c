/* Removing what is not needed: code that no path reaches, results that nobody uses, copies that an
 * assignment made of a value used nowhere else.
 */
#include "ptx/ir.h"

#include <string.h>

static void keep(ptx *p, const bool *kept)
{
    size_t count = 0;
    for (size_t n = 0; n < p->count; n++)
        if (kept[n])
            p->list[count++] = p->list[n];
    p->count = count;
}

static bool jumps_to_next(const ptx *p, size_t n)
{
    const inst *i = p->list[n], *next = n + 1 < p->count ? p->list[n + 1] : NULL;
    return i->op == OP_BRA && next && next->op == OP_LABEL && next->target == i->target;
}

/* Finds what runs, which is what follows a live instruction that does not jump away, and what a
 * live jump leads to; and counts the jumps to each label. One walk is enough: only loops jump up,
 * and their beginning is reached from above first. A jump to what follows anyway is left out. True
 * where nothing is. */
static bool mark_reachable(const ptx *p, bool *live, uint32_t *jumps)
{
    bool reached = true, all = true;
    for (size_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        if (i->op == OP_LABEL && jumps[i->target])
            reached = true;
        live[n] = reached;
        if (reached && op_table[i->op].flags & BRANCH) {
            live[n] = !jumps_to_next(p, n);
            reached = i->guard || !live[n];
            if (live[n] && i->op == OP_BRA)
                jumps[i->target]++;
        }
        all = all && live[n];
    }
    return all;
}

static bool all_jumped_to(const ptx *p, const uint32_t *jumps)
{
    for (size_t l = 0; l < p->labels.count; l++)
        if (!jumps[l])
            return false;
    return true;
}

/* Repeated, since a label that goes may have stood between a jump and its label. */
void ptx_remove_unreachable(ptx *p)
{
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept);
    uint32_t *jumps = arena_alloc(p->arena, p->labels.count * sizeof *jumps);
    for (size_t before = 0; before != p->count;) {
        before = p->count;
        memset(jumps, 0, p->labels.count * sizeof *jumps);
        if (mark_reachable(p, kept, jumps) && all_jumped_to(p, jumps))
            return;
        for (size_t n = 0; n < p->count; n++)
            if (p->list[n]->op == OP_LABEL && !jumps[p->list[n]->target])
                kept[n] = false;
        keep(p, kept);
    }
}

static unsigned reads(const inst *i, uint32_t id)
{
    unsigned count = 0;
    FOR_EACH_USE (i, used)
        count += *used == id;
    return count;
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

/* "add t, a, b; mov v, t" becomes "add v, a, b" where t has no other use and nothing between
 * touches v. */
static bool write_directly(ptx *p, const bool *kept, size_t at)
{
    const inst *copy = p->list[at];
    uint32_t value = copy->operand[0].id, variable = copy->result[0];
    if (p->uses[value] != 1)
        return false;
    for (size_t n = at; n-- > 0;) {
        inst *i = p->list[n];
        if (!kept[n])
            continue;
        if (ends_block(i))
            return false;
        if (i->results == 1 && i->result[0] == value) {
            i->result[0] = variable;
            p->uses[value] = 0;
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
static bool read_directly(ptx *p, size_t at)
{
    const inst *copy = p->list[at];
    uint32_t variable = copy->operand[0].id, value = copy->result[0];
    uint32_t left = p->uses[value];
    size_t n = at + 1;
    for (; n < p->count && left; n++) {
        const inst *i = p->list[n];
        left -= reads(i, value);
        if (left && (ends_block(i) || writes(i, variable)))
            return false;
    }
    for (size_t m = at + 1; m < n; m++)
        rename_uses(p->list[m], value, variable);
    p->uses[variable] += p->uses[value] - 1; /* the copy was one */
    p->uses[value] = 0;
    return true;
}

static void join_copies(ptx *p, bool *kept)
{
    const ptx_register *registers = p->registers.items;
    for (size_t n = 0; n < p->count; n++) {
        const inst *copy = p->list[n];
        if (copy->op != OP_MOV || !copy->uses)
            continue;
        const ptx_register *from = &registers[copy->use[0]], *to = &registers[copy->result[0]];
        if (from->type != to->type || from->variable == to->variable)
            continue;
        kept[n] = !(to->variable ? write_directly(p, kept, n) : read_directly(p, n));
    }
}

typedef enum register_use { UNKNOWN, PASSED_OVER, NEEDED } register_use;

static bool is_needed(const inst *i, const uint8_t *use)
{
    if (op_table[i->op].flags & EFFECT)
        return true;
    for (unsigned r = 0; r < i->results; r++)
        if (use[i->result[r]] == NEEDED)
            return true;
    return false;
}

/* What has an effect is needed, and what makes an operand of something needed. A variable that is
 * read for its own next value alone is not, however many instructions make that. From the end to
 * the beginning, once more where a variable turned out to be needed that an instruction further
 * down assigns: that was passed over, as the step of a pointer at the end of a loop is. */
static void mark_needed(const ptx *p, const bool *kept, bool *needed)
{
    uint8_t *use = arena_zalloc(p->arena, p->registers.count);
    for (bool again = true; again;) {
        again = false;
        for (size_t n = p->count; n-- > 0;) {
            const inst *i = p->list[n];
            if (needed[n] || !kept[n])
                continue;
            needed[n] = is_needed(i, use);
            for (unsigned r = 0; r < i->results && !needed[n]; r++)
                use[i->result[r]] = PASSED_OVER;
            for (unsigned u = 0; u < i->uses && needed[n]; u++) {
                again = again || use[i->use[u]] == PASSED_OVER;
                use[i->use[u]] = NEEDED;
            }
        }
    }
}

void ptx_remove_unused(ptx *p)
{
    bool *kept = arena_alloc(p->arena, p->count * sizeof *kept);
    bool *needed = arena_zalloc(p->arena, p->count * sizeof *needed);
    memset(kept, true, p->count * sizeof *kept);
    join_copies(p, kept);
    mark_needed(p, kept, needed);
    keep(p, needed);
}
