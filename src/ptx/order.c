/* One order of instructions, whatever the compiler of the generator.
 *
 * C leaves open which argument of add(p, f(p), g(p)) is evaluated first, and compilers differ. What
 * that can swap are instructions that only make values: assignments, stores, barriers and jumps
 * return nothing, so they stand in statements of their own, in the order of the source (as what an
 * atomic operation returns has to be taken in one of its own). Between two
 * of these, called anchors here, all values may be computed in any order that has operands ahead of
 * uses, and this pass picks the one that follows from the uses alone: from the end of the kernel to
 * its beginning, each stretch between anchors first computes what is needed later, in the order of
 * the first use, then what its own anchor needs; each value right behind its operands. What is not
 * needed is left out.
 */
#include "ptx/ir.h"

/* A use of a value by a later stretch. */
typedef struct later_use {
    uint32_t id;   /* register */
    uint32_t next; /* the use of the same stretch's values noted before, plus one */
} later_use;

typedef struct ordering {
    ptx *p;
    uint32_t *definition; /* by register: the index of its instruction, plus one, as long as that
                             waits to be placed; variables have none */
    uint32_t *stretch;    /* by instruction: the first of its stretch */
    uint32_t *needed;     /* by first instruction of a stretch: the latest noted use, plus one */
    VEC(later_use) later;
    uint32_t *placed; /* the stretch being ordered */
    size_t placed_count;
} ordering;

static bool makes_values(const ptx *p, const inst *i)
{
    return i->results && !(op_table[i->op].flags & EFFECT) &&
           !p->registers.items[i->result[0]].variable;
}

static void place(ordering *o, uint32_t n, uint32_t first);

/* Places what an instruction needs of the stretch that begins at first. */
static void place_operands(ordering *o, const inst *i, uint32_t first)
{
    FOR_EACH_USE (i, id) {
        uint32_t d = o->definition[*id];
        if (d > first)
            place(o, d - 1, first);
    }
}

static void place(ordering *o, uint32_t n, uint32_t first)
{
    const inst *i = o->p->list[n];
    place_operands(o, i, first);
    for (unsigned r = 0; r < i->results; r++)
        o->definition[i->result[r]] = 0;
    o->placed[o->placed_count++] = n;
}

/* Called from the last instruction to the first, so that the latest use noted of a value is its
 * first. */
static void note_uses(ordering *o, const inst *i)
{
    for (unsigned n = i->uses; n-- > 0;) {
        uint32_t id = i->use[n], d = o->definition[id];
        o->p->uses[id]++;
        if (!d)
            continue;
        uint32_t *latest = &o->needed[o->stretch[d - 1]];
        *VEC_PUSH(o->p->arena, &o->later) = (later_use){ id, *latest };
        *latest = (uint32_t)o->later.count;
    }
}

static void place_register(ordering *o, uint32_t id, uint32_t first)
{
    if (o->definition[id])
        place(o, o->definition[id] - 1, first);
}

/* Places the values of a stretch that later ones need, in the order of their first use. */
static void place_needed(ordering *o, uint32_t first)
{
    for (uint32_t u = o->needed[first]; u;) {
        later_use use = o->later.items[u - 1];
        place_register(o, use.id, first);
        u = use.next;
    }
}

/* The prologue is a stretch of its own, without an anchor. Parameters are read first, in the order
 * of their declaration. */
static void place_prologue(ordering *o)
{
    ptx *p = o->p;
    for (size_t n = 0; p->param_values && n < p->params.count; n++)
        if (p->uses[p->param_values[n].id])
            place_register(o, p->param_values[n].id, 0);
    place_needed(o, 0);
}

/* Finds where values are made and which stretch each instruction belongs to. */
static void survey(ordering *o)
{
    const ptx *p = o->p;
    uint32_t first = 0;
    for (uint32_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        if (n == p->prologue.count)
            first = n;
        o->stretch[n] = first;
        if (!makes_values(p, i))
            first = n + 1;
        else
            for (unsigned r = 0; r < i->results; r++)
                o->definition[i->result[r]] = n + 1;
    }
}

void ptx_order(ptx *p)
{
    uint32_t count = (uint32_t)p->count, registers = (uint32_t)p->registers.count;
    p->uses = arena_zalloc(p->arena, registers * sizeof *p->uses);
    ordering o = {
        .p = p,
        .definition = arena_zalloc(p->arena, registers * sizeof *o.definition),
        .stretch = arena_alloc(p->arena, count * sizeof *o.stretch),
        .needed = arena_zalloc(p->arena, count * sizeof *o.needed),
        .placed = arena_alloc(p->arena, count * sizeof *o.placed),
    };
    survey(&o);

    inst **ordered = arena_alloc(p->arena, count * sizeof *ordered);
    uint32_t to = count;
    for (uint32_t end = count; end > 0;) {
        inst *last = p->list[end - 1];
        uint32_t first = o.stretch[end - 1];
        o.placed_count = 0;
        if (end == p->prologue.count)
            place_prologue(&o);
        else
            place_needed(&o, first);
        if (!makes_values(p, last)) {
            place_operands(&o, last, first);
            ordered[--to] = last;
            note_uses(&o, last);
        }
        while (o.placed_count > 0) {
            ordered[--to] = p->list[o.placed[--o.placed_count]];
            note_uses(&o, ordered[to]);
        }
        end = first;
    }
    p->list = ordered + to;
    p->count = count - to;
}
