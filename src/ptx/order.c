/* One order of instructions, whatever the compiler of the generator.
 *
 * C leaves open which argument of add(p, f(p), g(p)) is evaluated first, and compilers differ. What
 * that can swap are instructions that only make values: assignments, stores, barriers and jumps
 * return nothing, so they stand in statements of their own, in the order of the source. Between two
 * of these, called anchors here, all values may be computed in any order that has operands ahead of
 * uses, and this pass picks the one that follows from the uses alone: from the end of the kernel to
 * its beginning, each stretch between anchors first computes what is needed later, in the order of
 * the first use, then what its own anchor needs; each value right behind its operands.
 */
#include <stdlib.h>

#include "ptx/ir.h"

typedef struct value {
    uint64_t first_use; /* stretch, place in it, operand: as one number */
    uint32_t inst;
} value;

typedef struct ordering {
    ptx *p;
    uint32_t
        *definition; /* by register: the index of its instruction, plus one; variables have none */
    uint64_t *first_use; /* by instruction; 0: no use so far */
    bool *placed;
    uint32_t *order; /* of the stretch being ordered */
    size_t order_count;
} ordering;

static bool makes_values(const ptx *p, const inst *i)
{
    return i->results && !i->guard && !(op_table[i->op].flags & EFFECT) &&
           !p->registers.items[i->result[0]].variable;
}

static void place(ordering *o, uint32_t n, uint32_t first)
{
    const inst *i = o->p->list[n];
    o->placed[n] = true;
    FOR_EACH_USE (i, id) {
        uint32_t d = o->definition[id];
        if (d > first && !o->placed[d - 1])
            place(o, d - 1, first);
    }
    o->order[o->order_count++] = n;
}

/* Notes the uses that an instruction makes of values, as seen from further up. */
static void note_uses(ordering *o, const inst *i, uint64_t position)
{
    FOR_EACH_USE (i, id) {
        uint64_t use = position * (MAX_VECTOR + 2) + use_number + 1;
        uint32_t d = o->definition[id];
        if (d && (!o->first_use[d - 1] || use < o->first_use[d - 1]))
            o->first_use[d - 1] = use;
    }
}

static int by_first_use(const void *left, const void *right)
{
    const value *a = left, *b = right;
    return a->first_use < b->first_use ? -1 : a->first_use > b->first_use;
}

/* Orders the values [first, anchor). */
static void order_stretch(ordering *o, uint32_t first, uint32_t anchor, bool has_anchor,
                          value *roots)
{
    enum { POSITION_BITS = 24 }; /* more than any stretch has instructions */
    inst *const *items = o->p->list;
    uint64_t start = (uint64_t)first << POSITION_BITS;
    size_t count = 0;
    for (uint32_t n = first; n < anchor; n++)
        if (items[n]->op == OP_LD_PARAM)
            roots[count++] = (value){ items[n]->target, n }; /* read in the order of declaration */
        else if (o->first_use[n])
            roots[count++] = (value){ o->first_use[n], n };
    qsort(roots, count, sizeof *roots, by_first_use);

    o->order_count = 0;
    for (size_t r = 0; r < count; r++)
        if (!o->placed[roots[r].inst])
            place(o, roots[r].inst, first);
    if (has_anchor)
        FOR_EACH_USE (items[anchor], id) {
            uint32_t d = o->definition[id];
            if (d > first && !o->placed[d - 1])
                place(o, d - 1, first);
        }
    for (size_t n = 0; n < o->order_count; n++)
        note_uses(o, items[o->order[n]], start + n);
    if (has_anchor)
        note_uses(o, items[anchor], start + o->order_count);
}

void ptx_order(ptx *p)
{
    size_t count = p->count;
    ordering o = {
        .p = p,
        .definition = arena_zalloc(p->arena, p->registers.count * sizeof *o.definition),
        .first_use = arena_zalloc(p->arena, (count + 1) * sizeof *o.first_use),
        .placed = arena_zalloc(p->arena, (count + 1) * sizeof *o.placed),
        .order = arena_alloc(p->arena, (count + 1) * sizeof *o.order),
    };
    for (uint32_t n = 0; n < count; n++)
        for (unsigned r = 0; r < p->list[n]->results; r++)
            if (makes_values(p, p->list[n]))
                o.definition[p->list[n]->result[r]] = n + 1;

    value *roots = arena_alloc(p->arena, (count + 1) * sizeof *roots);
    inst **ordered = arena_alloc(p->arena, (count + 1) * sizeof *ordered);
    size_t split = 0; /* the prologue is a stretch of its own, without an anchor */
    while (split < count && p->list[split]->ahead)
        split++;
    size_t end = count, to = count;
    while (end > 0) {
        bool has_anchor = end > split && !makes_values(p, p->list[end - 1]);
        size_t floor = end > split ? split : 0;
        uint32_t anchor = (uint32_t)(has_anchor ? end - 1 : end), first = anchor;
        while (first > floor && makes_values(p, p->list[first - 1]))
            first--;
        order_stretch(&o, first, anchor, has_anchor, roots);
        if (has_anchor)
            ordered[--to] = p->list[anchor];
        for (size_t n = o.order_count; n-- > 0;)
            ordered[--to] = p->list[o.order[n]];
        end = first;
    }
    p->list = ordered + to;
    p->count = count - to;
}
