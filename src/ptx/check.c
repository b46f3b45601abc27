/* The verifier's first half: every instruction as ops.def has it, every memory access inside what
 * is declared, every register defined on every path before it is read.
 */
#include "ptx/ir.h"

#include <string.h>

const char *ptx_describe(ptx *p, const inst *i)
{
    const char *type_name = type_table[i->type].name;
    const char *about = i->comment        ? i->comment
                        : i->op == OP_BRA ? p->labels.items[i->target].name
                                          : "";
    size_t n = 0;
    while (n < p->count && p->list[n] != i)
        n++;
    return arena_format(p->arena, "instruction %zu (%s %s%s%s)", n, op_name(i->op), type_name,
                        *about ? " " : "", about);
}

static bool same_class(type a, type b)
{
    return type_table[a].reg_class == type_table[b].reg_class;
}

static void check_register(ptx *p, const inst *i, val v)
{
    if (v.kind != VAL_REG && v.kind != VAL_VAR)
        return;
    if (v.id == 0 || v.id >= p->registers.count)
        ptx_fail(p, "%s reads a register that does not exist", ptx_describe(p, i));
    else if (!same_class(v.type, p->registers.items[v.id].type))
        ptx_fail(p, "%s reads a %s register as %s", ptx_describe(p, i),
                 type_table[p->registers.items[v.id].type].name, type_table[v.type].name);
}

static type memory_register(type t)
{
    return t == U8 || t == U16 ? U32 : t == S8 || t == S16 ? S32 : t;
}

static type expected(const inst *i, char letter)
{
    switch (letter) {
    case 't':
        return memory_register(i->type);
    case 's':
        return i->second;
    case 'w':
        return i->type == U32 ? U64 : S64;
    case 'p':
        return PRED;
    default:
        return U32;
    }
}

static void check_operand(ptx *p, const inst *i, unsigned n, char letter)
{
    val v = i->operand[n];
    check_register(p, i, v);
    if (letter == 'i' && v.kind != VAL_IMM)
        ptx_fail(p, "%s: operand %u has to be a number", ptx_describe(p, i), n + 1);
    if (!same_class(expected(i, letter), v.type))
        ptx_fail(p, "%s: operand %u is %s", ptx_describe(p, i), n + 1, type_table[v.type].name);
}

static void check_result(ptx *p, const inst *i, unsigned n, char letter)
{
    type t = p->registers.items[i->result[n]].type;
    if (!same_class(expected(i, letter), t))
        ptx_fail(p, "%s: its result is %s", ptx_describe(p, i), type_table[t].name);
}

static void check_types(ptx *p, const inst *i)
{
    const op_info *info = &op_table[i->op];
    if (i->type != NO_TYPE && !(info->types & BIT(i->type)))
        ptx_fail(p, "%s: the type does not exist", ptx_describe(p, i));
    if (info->sm > p->target->sm)
        ptx_fail(p, "%s needs sm_%u, the target is %s", ptx_describe(p, i), info->sm,
                 p->target->name);
    if (info->flags & (LOAD | STORE)) { /* as many values as the vector has */
        check_register(p, i, i->base);
        for (unsigned n = 0; n < i->operands; n++)
            check_operand(p, i, n, info->operands[0]);
        for (unsigned n = 0; n < i->results; n++)
            check_result(p, i, n, info->results[0]);
    } else if (i->operands != info->operand_count || i->results != info->result_count) {
        ptx_fail(p, "%s has the wrong number of operands", ptx_describe(p, i));
    } else {
        for (unsigned n = 0; n < i->operands; n++)
            check_operand(p, i, n, info->operands[n]);
        for (unsigned n = 0; n < i->results; n++)
            check_result(p, i, n, info->results[n]);
    }
    if (i->guard && p->registers.items[i->guard].type != PRED)
        ptx_fail(p, "%s: its guard is no predicate", ptx_describe(p, i));
}

/* Where a register holds the address of a shared array plus a constant: found along single
 * definitions. */
typedef struct shared_address {
    bool known;
    uint32_t array;
    int64_t offset;
} shared_address;

static shared_address address_of(const shared_address *of_register, val v)
{
    if (v.kind == VAL_SHARED)
        return (shared_address){ true, v.id, 0 };
    if (v.kind == VAL_REG)
        return of_register[v.id];
    return (shared_address){ 0 };
}

static void follow_address(ptx *p, const inst *i, shared_address *of_register)
{
    if (i->results != 1 || p->registers.items[i->result[0]].variable)
        return;
    shared_address from =
        i->operands ? address_of(of_register, i->operand[0]) : (shared_address){ 0 };
    bool moved = i->op == OP_MOV_ADDR || i->op == OP_MOV;
    bool added = i->op == OP_ADD && i->operand[1].kind == VAL_IMM;
    if (!from.known || (!moved && !added))
        return;
    if (added)
        from.offset += (int32_t)i->operand[1].bits;
    of_register[i->result[0]] = from;
}

static void check_shared_access(ptx *p, const inst *i, const shared_address *of_register)
{
    shared_address at = address_of(of_register, i->base);
    if (!at.known)
        return;
    const ptx_shared *array = &p->shared.items[at.array];
    unsigned values = i->results ? i->results : i->operands;
    int64_t size = type_table[i->type].bytes * (int64_t)values;
    int64_t first = at.offset + i->offset;
    int64_t bytes = (int64_t)array->count * type_table[array->type].bytes;
    if (first < 0 || (array->count != PTX_DYNAMIC && first + size > bytes))
        ptx_fail(p, "%s touches bytes %lld to %lld of shared array %s, which has %lld",
                 ptx_describe(p, i), (long long)first, (long long)(first + size - 1), array->name,
                 (long long)bytes);
    else if (first % size)
        ptx_fail(p, "%s: byte %lld of shared array %s is not aligned to %lld", ptx_describe(p, i),
                 (long long)first, array->name, (long long)size);
}

bool ptx_check_instructions(ptx *p)
{
    shared_address *of_register =
        p->shared.count ? arena_zalloc(p->arena, p->registers.count * sizeof *of_register) : NULL;
    for (size_t n = 0; n < p->count && !p->error; n++) {
        const inst *i = p->list[n];
        check_types(p, i);
        if (i->op == OP_LD_PARAM && i->target >= p->params.count)
            ptx_fail(p, "%s reads a parameter that does not exist", ptx_describe(p, i));
        if (!of_register || p->error)
            continue;
        if (i->op == OP_LD_SHARED || i->op == OP_ST_SHARED)
            check_shared_access(p, i, of_register);
        follow_address(p, i, of_register);
    }
    return !p->error;
}

/* Registers that are defined once and read in that block alone need no data flow, only order; the
 * others get a bit each. */
typedef struct definitions {
    uint32_t *block_of; /* of the only definition, plus one */
    uint32_t *bit_of;   /* plus one; 0: no bit */
    size_t bits, words;
} definitions;

static void give_bit(definitions *d, uint32_t id)
{
    if (!d->bit_of[id])
        d->bit_of[id] = (uint32_t)++d->bits;
}

static void find_wide_registers(ptx *p, const ptx_flow *flow, definitions *d)
{
    d->block_of = arena_zalloc(p->arena, p->registers.count * sizeof *d->block_of);
    d->bit_of = arena_zalloc(p->arena, p->registers.count * sizeof *d->bit_of);
    for (uint32_t b = 0; b < flow->count; b++)
        for (size_t n = flow->blocks[b].first; n < flow->blocks[b].end; n++)
            for (unsigned r = 0; r < p->list[n]->results; r++) {
                uint32_t id = p->list[n]->result[r];
                if (d->block_of[id])
                    give_bit(d, id);
                d->block_of[id] = b + 1;
            }
    for (uint32_t b = 0; b < flow->count; b++)
        for (size_t n = flow->blocks[b].first; n < flow->blocks[b].end; n++)
            FOR_EACH_USE (p->list[n], id)
                if (d->block_of[id] != b + 1)
                    give_bit(d, id);
    d->words = d->bits / 64 + 1;
}

static void define(const definitions *d, uint64_t *set, const inst *i)
{
    for (unsigned r = 0; r < i->results && !i->guard; r++) {
        uint32_t bit = d->bit_of[i->result[r]];
        set[bit / 64] |= bit ? UINT64_C(1) << bit % 64 : 0;
    }
}

/* What is defined at the beginning of every block, whatever way led there. */
static uint64_t *defined_at_entry(ptx *p, const ptx_flow *flow, const definitions *d)
{
    size_t words = d->words, size = words * sizeof(uint64_t);
    uint64_t *entry = arena_alloc(p->arena, (flow->count + 1) * size);
    uint64_t *out = arena_alloc(p->arena, size);
    memset(entry, 0xff, flow->count * size);
    memset(entry, 0, size);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = 0; b < flow->count; b++) {
            const ptx_basic_block *block = &flow->blocks[b];
            memcpy(out, entry + b * words, size);
            for (size_t n = block->first; n < block->end; n++)
                define(d, out, p->list[n]);
            for (int s = 0; s < 2; s++) {
                uint64_t *next = entry + (size_t)block->successor[s] * words;
                for (size_t w = 0; block->successor[s] >= 0 && w < words; w++) {
                    changed = changed || (next[w] & ~out[w]);
                    next[w] &= out[w];
                }
            }
        }
    }
    return entry;
}

bool ptx_check_definitions(ptx *p, const ptx_flow *flow)
{
    definitions d = { 0 };
    find_wide_registers(p, flow, &d);
    uint64_t *entry = defined_at_entry(p, flow, &d);
    bool *seen = arena_zalloc(p->arena, p->registers.count * sizeof *seen);
    for (size_t b = 0; b < flow->count && !p->error; b++) {
        uint64_t *defined = entry + b * d.words;
        for (size_t n = flow->blocks[b].first; n < flow->blocks[b].end; n++) {
            const inst *i = p->list[n];
            FOR_EACH_USE (i, id) {
                uint32_t bit = d.bit_of[id];
                if (bit ? !(defined[bit / 64] >> bit % 64 & 1) : !seen[id])
                    ptx_fail(p, "%s reads %s%u, which is not defined on every path to it",
                             ptx_describe(p, i), type_table[p->registers.items[id].type].prefix,
                             id);
            }
            define(&d, defined, i);
            for (unsigned r = 0; r < i->results && !i->guard; r++)
                seen[i->result[r]] = true;
        }
    }
    return !p->error;
}
