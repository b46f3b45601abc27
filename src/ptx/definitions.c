/* Every register is defined on every path before it is read: the part of the verifier that catches
 * a value made inside a condition and used behind it.
 *
 * A register that is defined in a block before it is read there needs no more. The other reads are
 * collected; their registers get a bit each, and data flow over the blocks (a forward "must"
 * problem: entry = intersection of the exits of all predecessors) tells which are defined wherever
 * a block begins.
 */
#include "ptx/ir.h"

#include <string.h>

typedef struct read_from_outside {
    const inst *inst;
    uint32_t block, id;
} read_from_outside;

typedef struct block_definition {
    uint32_t block, bit;
} block_definition;

typedef struct definitions {
    ptx *p;
    const ptx_flow *flow;
    uint32_t *block_of; /* by register: the block of its latest definition, plus one; 0: none */
    uint32_t
        *bit_of; /* by register, plus one; 0: none, it is defined once and read in that block */
    uint32_t bits;
    size_t words; /* of a set of bits */
    VEC(read_from_outside) reads;
    VEC(block_definition) made; /* of registers that have a bit */
    uint64_t *at_entry; /* a set for each block: what is defined wherever it was entered from */
} definitions;

static void note_definition(definitions *d, uint32_t id, uint32_t block_plus_one)
{
    if (block_plus_one)
        *VEC_PUSH(d->p->arena, &d->made) =
            (block_definition){ block_plus_one - 1, d->bit_of[id] - 1 };
}

static void give_bit(definitions *d, uint32_t id)
{
    if (d->bit_of[id])
        return;
    d->bit_of[id] = ++d->bits;
    note_definition(d, id, d->block_of[id]);
}

static void collect(definitions *d, const inst *i, uint32_t block)
{
    FOR_EACH_USE (i, id) {
        if (d->block_of[*id] == block + 1)
            continue;
        give_bit(d, *id);
        *VEC_PUSH(d->p->arena, &d->reads) = (read_from_outside){ i, block, *id };
    }
    if (i->guard) /* defines nothing for sure */
        return;
    for (unsigned r = 0; r < i->results; r++) {
        uint32_t id = i->result[r], before = d->block_of[id];
        if (before == block + 1)
            continue;
        if (before)
            give_bit(d, id);
        d->block_of[id] = block + 1;
        if (d->bit_of[id])
            note_definition(d, id, block + 1);
    }
}

/* Takes from the entry of a block what is not defined on the way from another; true where that is
 * something. */
static bool meet(uint64_t *entry, const uint64_t *out, size_t words)
{
    bool changed = false;
    for (size_t w = 0; w < words; w++) {
        changed = changed || (entry[w] & ~out[w]);
        entry[w] &= out[w];
    }
    return changed;
}

static void solve(definitions *d)
{
    size_t words = d->words = d->bits / 64 + 1, size = d->flow->count * words * sizeof(uint64_t);
    d->at_entry = arena_alloc(d->p->arena, size);
    uint64_t *made = arena_zalloc(d->p->arena, size);
    uint64_t *out = arena_alloc(d->p->arena, words * sizeof *out);
    memset(d->at_entry, 0xff, size);
    memset(d->at_entry, 0, words * sizeof *d->at_entry);
    for (size_t n = 0; n < d->made.count; n++) {
        block_definition m = d->made.items[n];
        made[m.block * words + m.bit / 64] |= UINT64_C(1) << m.bit % 64;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = 0; b < d->flow->count; b++) {
            for (size_t w = 0; w < words; w++)
                out[w] = d->at_entry[b * words + w] | made[b * words + w];
            for (int s = 0; s < 2; s++) {
                int next = d->flow->blocks[b].successor[s];
                if (next >= 0)
                    changed = meet(d->at_entry + (size_t)next * words, out, words) || changed;
            }
        }
    }
}

bool ptx_check_definitions(ptx *p, const ptx_flow *flow)
{
    definitions d = {
        .p = p,
        .flow = flow,
        .block_of = arena_zalloc(p->arena, p->registers.count * sizeof *d.block_of),
        .bit_of = arena_zalloc(p->arena, p->registers.count * sizeof *d.bit_of),
    };
    for (uint32_t b = 0; b < flow->count; b++)
        for (uint32_t n = flow->blocks[b].first; n < flow->blocks[b].end; n++)
            collect(&d, p->list[n], b);
    solve(&d);
    for (size_t n = 0; n < d.reads.count && !p->error; n++) {
        const read_from_outside *r = &d.reads.items[n];
        uint32_t bit = d.bit_of[r->id] - 1;
        if (d.at_entry[r->block * d.words + bit / 64] >> bit % 64 & 1)
            continue;
        const type_info *t = &type_table[p->registers.items[r->id].type];
        ptx_fail(p, "%s reads %s%u, which is not defined on every path to it",
                 ptx_describe(p, r->inst), class_table[t->reg_class].prefix, r->id);
    }
    return !p->error;
}
