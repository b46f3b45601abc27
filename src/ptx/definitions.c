/* Checks that every register is defined on all paths before it is read, e.g. that a value defined
 * inside a condition is not used after it.
 *
 * Reads after a definition in the same block need no check. For all other reads, forward data flow
 * over the blocks ("must" problem: entry = intersection of the predecessors' exits) finds the
 * registers defined at each block's entry. Only registers with such reads are in the sets. */
#include "ptx/ir.h"

#include <string.h>

static void note_made(ptx_definitions *d, const ptx_register *r, uint32_t block)
{
    *VEC_PUSH(d->p->arena, &d->made) = (ptx_block_definition){ block, r->note - 1 };
}

static void give_bit(ptx_definitions *d, ptx_register *r)
{
    if (r->note)
        return;
    r->note = ++d->bits;
    if (r->place)
        note_made(d, r, r->place - 1);
}

void ptx_note_outside_read(ptx_definitions *d, const inst *i, uint32_t id, uint32_t block)
{
    give_bit(d, &d->p->registers.items[id]);
    *VEC_PUSH(d->p->arena, &d->reads) = (ptx_outside_read){ i, block, id };
}

void ptx_note_definition_again(ptx_definitions *d, ptx_register *r, uint32_t block)
{
    if (r->place == block + 1)
        return;
    if (r->place) /* defined in several blocks: data flow decides */
        give_bit(d, r);
    note_made(d, r, block);
}

static void solve(ptx_definitions *d)
{
    size_t words = d->words = d->bits / 64 + 1, size = d->flow->count * words * sizeof(uint64_t);
    d->at_entry = arena_alloc(d->p->arena, size);
    uint64_t *made = arena_zalloc(d->p->arena, size);
    uint64_t *out = arena_alloc(d->p->arena, words * sizeof *out);
    memset(d->at_entry, 0xff, size);
    memset(d->at_entry, 0, words * sizeof *d->at_entry);
    for (size_t n = 0; n < d->made.count; n++) {
        ptx_block_definition m = d->made.items[n];
        made[m.block * words + m.bit / 64] |= UINT64_C(1) << m.bit % 64;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = 0; b < d->flow->count; b++) {
            for (size_t w = 0; w < words; w++)
                out[w] = d->at_entry[b * words + w] | made[b * words + w];
            for (int s = 0; s < 2; s++) {
                int next = d->flow->blocks[b].successor[s];
                for (size_t w = 0; next >= 0 && w < words; w++) {
                    uint64_t *entry = &d->at_entry[(size_t)next * words + w];
                    changed = changed || (*entry & ~out[w]);
                    *entry &= out[w];
                }
            }
        }
    }
}

bool ptx_check_definitions(ptx_definitions *d)
{
    ptx *p = d->p;
    solve(d);
    for (size_t n = 0; n < d->reads.count && !p->error; n++) {
        const ptx_outside_read *r = &d->reads.items[n];
        uint32_t bit = p->registers.items[r->id].note - 1;
        if (d->at_entry[r->block * d->words + bit / 64] >> bit % 64 & 1)
            continue;
        uint8_t class = register_classes[p->registers.items[r->id].type];
        ptx_fail(p, "%s reads %s%u, which is not defined on every path to it",
                 ptx_describe(p, r->inst), class_table[class].prefix, r->id);
    }
    return !p->error;
}
