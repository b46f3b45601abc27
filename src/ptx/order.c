/* Sorts instructions independently of the C compiler that built the generator.
 *
 * C does not specify the order in which the arguments of add(p, f(p), g(p)) are evaluated. This
 * affects only instructions that compute values. Assignments, stores, barriers and jumps return
 * nothing and are separate statements in source order. They are called anchors; atomic operations,
 * which must be separate statements, are anchors, too.
 *
 * Between two anchors, any order with definitions before uses is valid. This pass derives one from
 * the uses alone. It walks backward over the stretches between anchors. Each stretch first computes
 * the values that later stretches need, in the order of their first use, then those of its own
 * anchor. Operands directly precede their users. Unneeded values are dropped. */
#include "ptx/ir.h"

/* A use of a value in a later stretch. */
typedef struct later_use {
    uint32_t id;   /* register */
    uint32_t next; /* index plus 1 of the previously recorded use of the same stretch; 0 = none */
} later_use;

/* State of the pass. A register keeps its note and its stretch until its definition is placed. */
typedef struct ordering {
    ptx *p;
    ptx_register *registers;
    uint32_t *needed; /* by stretch, 0 = prologue: index plus 1 of the latest later_use */
    VEC(later_use) later;
    inst **placed; /* instructions of the current stretch */
    size_t placed_count;
} ordering;

void ptx_note_places(ptx *p)
{
    for (size_t n = 1; n < p->registers.count; n++)
        if (p->registers.items[n].note > PROLOGUE_LIMIT)
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
            p->registers.items[i->result[r]].note = PROLOGUE_LIMIT + (uint32_t)p->code.count;
            p->registers.items[i->result[r]].place = (uint32_t)p->anchors.count + 1;
        }
    }
}

static void place(ordering *o, uint32_t note, uint32_t first);

/* Places definitions of operands that belong to the stretch: their notes are at least first. */
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
    inst *i = note > PROLOGUE_LIMIT ? p->code.items[note - PROLOGUE_LIMIT - 1]
                                    : p->prologue.items[note - 1];
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

/* Places the values of a stretch that later stretches use, in the order of their first use. */
static void place_needed(ordering *o, uint32_t stretch, uint32_t first)
{
    for (uint32_t u = o->needed[stretch]; u;) {
        later_use use = o->later.items[u - 1];
        place_register(o, use.id, first);
        u = use.next;
    }
}

/* Prepends an instruction to the sorted list and records its uses. Since it runs from last to
 * first, the last recorded use of a value is its first use. An instruction's users are processed
 * before it, except across a loop's back edge. */
static inline void prepend(ordering *o, inst *i, inst **at)
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
    ordering o = { .p = p,
                   .registers = p->registers.items,
                   .needed = arena_zalloc(p->arena, (anchors + 1) * sizeof *o.needed),
                   .placed = arena_alloc(p->arena, p->count * sizeof *o.placed) };
    inst **ordered = arena_alloc(p->arena, p->count * sizeof *ordered), **to = ordered + p->count;
    for (uint32_t n = anchors + 1; n-- > 0;) {
        if (n == 0) {
            /* The prologue has no anchor. Parameters come first, in declaration order. */
            for (size_t v = 0; p->param_values && v < p->params.count; v++)
                if (o.registers[p->param_values[v].id].uses)
                    place_register(&o, p->param_values[v].id, 1);
            place_needed(&o, 0, 1);
        } else {
            inst *anchor = p->code.items[p->anchors.items[n - 1]];
            uint32_t ahead =
                n > 1 ? p->anchors.items[n - 2] + 1 : 0; /* code index of the stretch */
            uint32_t first = PROLOGUE_LIMIT + ahead + 1;
            place_needed(&o, n, first);
            place_operands(&o, anchor, first);
            o.placed[o.placed_count++] = anchor;
        }
        while (o.placed_count > 0)
            prepend(&o, o.placed[--o.placed_count], --to);
    }
    p->count = (size_t)(ordered + p->count - to);
    p->list = to;
}
