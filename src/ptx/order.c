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

/* A register keeps its note and its stretch as long as it waits to be placed. */
typedef struct ordering {
    ptx *p;
    ptx_register *registers;
    uint32_t *needed; /* by stretch, of which the prologue is the first: the latest use, plus one */
    VEC(later_use) later;
    inst **placed; /* the stretch being ordered */
    size_t placed_count;
} ordering;

void ptx_note_places(ptx *p)
{
    for (size_t n = 1; n < p->registers.count; n++)
        if (p->registers.items[n].note > AHEAD_LIMIT)
            p->registers.items[n].note = p->registers.items[n].place = 0;
    p->code.count = p->anchors.count = 0;
    for (size_t n = p->prologue.count; n < p->count; n++) {
        const inst *i = *VEC_PUSH(p->arena, &p->code) = p->list[n];
        ptx_register *made = i->results ? &p->registers.items[i->result[0]] : NULL;
        if (!made || made->variable || op_table[i->op].flags & EFFECT) {
            *VEC_PUSH(p->arena, &p->anchors) = (uint32_t)p->code.count - 1;
            continue;
        }
        for (unsigned r = 0; r < i->results; r++) {
            p->registers.items[i->result[r]].note = AHEAD_LIMIT + (uint32_t)p->code.count;
            p->registers.items[i->result[r]].place = (uint32_t)p->anchors.count + 1;
        }
    }
}

static void place(ordering *o, uint32_t note, uint32_t first);

/* Places what an instruction needs of the stretch whose values have notes from first on. */
static inline void place_operands(ordering *o, const inst *i, uint32_t first)
{
    FOR_EACH_USE (i, used) {
        uint32_t note = o->registers[used->id].note;
        if (note >= first)
            place(o, note, first);
    }
}

static void place(ordering *o, uint32_t note, uint32_t first)
{
    const ptx *p = o->p;
    inst *i =
        note > AHEAD_LIMIT ? p->code.items[note - AHEAD_LIMIT - 1] : p->prologue.items[note - 1];
    place_operands(o, i, first);
    for (unsigned r = 0; r < i->results; r++) {
        ptx_register *made = &o->registers[i->result[r]];
        made->note = made->place = 0;
    }
    o->placed[o->placed_count++] = i;
}

static void place_register(ordering *o, uint32_t id, uint32_t first)
{
    if (o->registers[id].note)
        place(o, o->registers[id].note, first);
}

/* Places the values of a stretch that later ones need, in the order of their first use. */
static void place_needed(ordering *o, uint32_t stretch, uint32_t first)
{
    for (uint32_t u = o->needed[stretch]; u;) {
        later_use use = o->later.items[u - 1];
        place_register(o, use.id, first);
        u = use.next;
    }
}

/* Puts an instruction in front of those that have their place, and notes what it reads. Called from
 * the last to the first: the latest use noted of a value is its first, and what reads a value has
 * been asked whether it is needed itself, unless a loop goes back to it. */
static inline void settle(ordering *o, inst *i, inst **at)
{
    ptx *p = o->p;
    bool needed = op_table[i->op].flags & EFFECT;
    for (unsigned r = 0; r < i->results; r++)
        needed |= o->registers[i->result[r]].needed;
    if (!needed)
        *VEC_PUSH(p->arena, &p->passed_over) = at;
    for (unsigned n = i->operands; n-- > 0;) {
        uint32_t id = i->operand[n].id;
        ptx_register *r = &o->registers[id];
        r->uses++;
        r->needed |= needed;
        if (!r->note)
            continue;
        uint32_t *latest = &o->needed[r->place];
        *VEC_PUSH(p->arena, &o->later) = (later_use){ id, *latest };
        *latest = (uint32_t)o->later.count;
    }
    for (unsigned r = 0; op_table[i->op].flags & ADDS && r < i->results; r++)
        o->registers[i->result[r]].needed = true;
    if (i->op == INST_MOV && i->operand[0].id)
        *VEC_PUSH(p->arena, &p->copies) = at;
    *at = i;
}

void ptx_order(ptx *p)
{
    uint32_t anchors = (uint32_t)p->anchors.count;
    ordering o = {
        .p = p,
        .registers = p->registers.items,
        .needed = arena_zalloc(p->arena, (anchors + 1) * sizeof *o.needed),
        .placed = arena_alloc(p->arena, p->count * sizeof *o.placed),
    };
    inst **ordered = arena_alloc(p->arena, p->count * sizeof *ordered), **to = ordered + p->count;
    for (uint32_t n = anchors + 1; n-- > 0;) {
        if (n == 0) {
            /* The prologue, which has no anchor: parameters first, as they are declared. */
            for (size_t v = 0; p->param_values && v < p->params.count; v++)
                if (o.registers[p->param_values[v].id].uses)
                    place_register(&o, p->param_values[v].id, 1);
            place_needed(&o, 0, 1);
        } else {
            inst *anchor = p->code.items[p->anchors.items[n - 1]];
            uint32_t ahead = n > 1 ? p->anchors.items[n - 2] + 1 : 0; /* of it, in the code */
            uint32_t first = AHEAD_LIMIT + ahead + 1;
            place_needed(&o, n, first);
            place_operands(&o, anchor, first);
            o.placed[o.placed_count++] = anchor;
        }
        while (o.placed_count > 0)
            settle(&o, o.placed[--o.placed_count], --to);
    }
    p->count = (size_t)(ordered + p->count - to);
    p->list = to;
}
