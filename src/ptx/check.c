/* The verifier's walk over all instructions. Checks each one against ops.def, checks accesses to
 * shared memory against the array sizes, and records reads and definitions. */
#include "ptx/ir.h"

#include <string.h>

/* A register value known as a shared address plus a constant, by single definitions. */
typedef struct shared_address {
    uint32_t array;  /* index plus 1; 0 = unknown address */
    uint32_t offset; /* modulo 2^32, like addresses */
} shared_address;

enum { LETTER_MASK = 31, LETTERS = 32, NO_CLASS = CLASS_COUNT + 1 };

typedef struct checker {
    ptx *p;
    ptx_flow flow;
    ptx_definitions definitions;
    unsigned sm;               /* of the target */
    unsigned flags;            /* union over all instructions */
    bool changed;              /* see ptx_check_uniform */
    shared_address *addresses; /* by register; NULL if there are no arrays */
    /* Register class required by each letter of ops.def; NO_CLASS: see check_mismatch. */
    uint8_t classes[LETTERS];
} checker;

static inline void want(checker *c, char letter, unsigned class)
{
    c->classes[letter & LETTER_MASK] = (uint8_t) class;
}

/* Returns true if a type's register class matches a letter; types of a class are equivalent. */
static inline bool has_class(const checker *c, type t, char letter)
{
    return register_classes[t] == c->classes[letter & LETTER_MASK];
}

/* Writes one letter per operand or result: the letter v is repeated for all values but the address.
 * Writes at most count + 1 letters, so that missing values are detected. */
static const char *expand_letters(const char *letters, unsigned count, char room[MAX_SUMS + 2])
{
    unsigned n = 0;
    for (; *letters && n <= count; letters++) {
        unsigned width = *letters == 'v' ? count - (letters[1] != '\0') : is_value_letter(*letters);
        for (; width > 0 && n <= count; width--)
            room[n++] = *letters;
    }
    room[n] = '\0';
    return room;
}

static bool fail_count(ptx *p, const inst *i)
{
    ptx_fail(p, "%s has the wrong number of operands", ptx_describe(p, i));
    return false;
}

/* Checks an operand whose class does not match its letter. Returns false after an error. */
static bool check_mismatch(const checker *c, const inst *i, unsigned n, char letter)
{
    ptx *p = c->p;
    val v = i->operand[n];
    if (!letter)
        return fail_count(p, i);
    if (letter == 'i' && v.kind == VAL_IMM)
        return true;
    if (v.id >= p->registers.count)
        ptx_fail(p, "%s reads a register that does not exist", ptx_describe(p, i));
    else if (letter == 'i')
        ptx_fail(p, "%s: operand %u must be an immediate", ptx_describe(p, i), n + 1);
    else
        ptx_fail(p, "%s: operand %u has the wrong type %s", ptx_describe(p, i), n + 1,
                 type_table[v.id ? p->registers.items[v.id].type : v.type].name);
    return false;
}

/* Checks all operands and adds their spread to *s. */
static inline bool check_operands(checker *c, const inst *i, const char *letters, uint32_t block,
                                  uint8_t *s)
{
    const ptx_register *registers = c->p->registers.items;
    size_t register_count = c->p->registers.count;
    unsigned n = 0;
    FOR_EACH_USE (i, v) {
        if (v->id >= register_count)
            return check_mismatch(c, i, n, letters[n]);
        const ptx_register *r = &registers[v->id];
        if (!has_class(c, v->id ? r->type : v->type, letters[n]) &&
            !check_mismatch(c, i, n, letters[n]))
            return false;
        if (r->place != block + 1)
            ptx_note_outside_read(&c->definitions, i, v->id, block);
        *s |= r->spread;
        n++;
    }
    return !letters[n] || letters[n] == 'c' || fail_count(c->p, i);
}

static inline bool check_results(checker *c, const inst *i, const char *letters, uint32_t block,
                                 uint8_t s)
{
    ptx_register *registers = c->p->registers.items;
    for (unsigned n = 0; n < i->results; n++) {
        ptx_register *r = &registers[i->result[n]];
        if (!letters[n])
            return fail_count(c->p, i);
        if (!has_class(c, r->type, letters[n])) {
            ptx_fail(c->p, "%s: its result has the wrong type %s", ptx_describe(c->p, i),
                     type_table[r->type].name);
            return false;
        }
        if (op_table[i->op].flags & ADDS && r->place != block + 1)
            ptx_note_outside_read(&c->definitions, i, i->result[n], block);
        ptx_note_definition(&c->definitions, r, block);
        r->spread |= s;
    }
    return !letters[i->results] || fail_count(c->p, i);
}

static shared_address address_of(const checker *c, val v)
{
    if (v.kind == VAL_SHARED)
        return (shared_address){ (uint32_t)v.bits + 1, 0 };
    return c->addresses[v.id];
}

static void follow_address(checker *c, const inst *i)
{
    if (i->op != INST_MOV_ADDR && i->op != INST_MOV && i->op != INST_ADD)
        return;
    shared_address from = address_of(c, i->operand[0]);
    bool added = i->op == INST_ADD;
    if (c->p->registers.items[i->result[0]].variable || (added && i->operand[1].kind != VAL_IMM))
        return;
    if (added)
        from.offset += (uint32_t)i->operand[1].bits;
    c->addresses[i->result[0]] = from;
}

/* Checks the vector width, and constant addresses: inside the shared array, and aligned. */
static void check_access(const checker *c, const inst *i)
{
    ptx *p = c->p;
    unsigned values = is_copy(i->op) ? (unsigned)i->operand[1].bits
                      : i->results   ? i->results
                                     : i->operands - 1u;
    if (!is_copy(i->op) && values != 1 && values != 2 && values != 4)
        fail_count(p, i);
    if (!(op_table[i->op].flags & SHARED) || !c->addresses)
        return;
    shared_address at = address_of(c, i->operand[i->operands - 1]);
    if (!at.array)
        return;
    const ptx_shared *array = &p->shared.items[at.array - 1];
    int64_t size = access_bytes(i->op, i->type, values);
    int64_t first = (int32_t)(at.offset + (uint32_t)i->offset);
    int64_t bytes = (int64_t)array->count * type_table[array->type].bytes;
    if (first < 0 || (array->count != PTX_DYNAMIC && first + size > bytes))
        ptx_fail(p, "%s accesses bytes %lld to %lld of shared array %s, which has %lld",
                 ptx_describe(p, i), (long long)first, (long long)(first + size - 1), array->name,
                 (long long)bytes);
    else if (first % size)
        ptx_fail(p, "%s: byte %lld of shared array %s is not aligned to %lld", ptx_describe(p, i),
                 (long long)first, array->name, (long long)size);
}

static void check_instruction(checker *c, const inst *i, uint32_t block)
{
    ptx *p = c->p;
    const op_info *info = &op_table[i->op];
    char operand_room[MAX_SUMS + 2], result_room[MAX_SUMS + 2];
    const char *operands = info->operands, *results = info->results;
    c->flags |= info->flags;
    if (!(info->types & BIT(i->type)))
        ptx_fail(p, "%s does not support its type", ptx_describe(p, i));
    if (info->sm > c->sm)
        ptx_fail(p, "%s needs sm_%u; the target is %s", ptx_describe(p, i), info->sm,
                 p->target->name);
    if (info->flags & SPECIFIC && !(p->target->specific && p->target->sm == info->sm))
        ptx_fail(p, "%s needs sm_%ua; the target is %s", ptx_describe(p, i), info->sm,
                 p->target->name);
    want(c, 't', register_classes[i->type]);
    want(c, 's', register_classes[i->second]);
    if (info->flags & (GLOBAL | SHARED | GROUPS)) {
        want(c, 'v', register_classes[i->type]);
        want(c, 'a', info->flags & SHARED ? CLASS_32 : CLASS_64);
        operands = expand_letters(operands, i->operands, operand_room);
        results = expand_letters(results, i->results, result_room);
    }
    uint8_t s = BLOCK_UNIFORM;
    if (!check_operands(c, i, operands, block, &s))
        return;
    if (info->flags & SPREAD_RULE)
        s = ptx_spread_by_rule(p, i, s);
    if (!check_results(c, i, results, block, s | c->flow.blocks[block].spread))
        return;
    if (info->flags & (GLOBAL | SHARED) && !is_prefetch(i->op))
        check_access(c, i);
    if (i->op == INST_LD_PARAM && i->target >= p->params.count)
        ptx_fail(p, "%s reads a parameter that does not exist", ptx_describe(p, i));
    if (c->addresses)
        follow_address(c, i);
    if (info->flags & BRANCH && s)
        c->changed |= ptx_raise_region(&c->flow, (int)block, s);
}

bool ptx_verify(ptx *p)
{
    checker c = { .p = p, .sm = p->target->sm };
    if (!ptx_flow_build(p, &c.flow))
        return false;
    c.definitions.p = p;
    c.definitions.flow = &c.flow;
    if (p->shared.count)
        c.addresses = arena_zalloc(p->arena, p->registers.count * sizeof *c.addresses);
    memset(c.classes, NO_CLASS, sizeof c.classes);
    for (const char *letter = "wdpcuxgl"; *letter; letter++)
        want(&c, *letter, register_classes[letter_type(*letter, INST_ADD, S32, S32)]);
    for (uint32_t b = 0; b < c.flow.count && !p->error; b++) {
        p->registers.items[0].place = b + 1; /* number 0 is always defined */
        inst **end = p->list + c.flow.blocks[b].end;
        for (inst **i = p->list + c.flow.blocks[b].first; i < end; i++)
            check_instruction(&c, *i, b);
    }
    return !p->error && ptx_check_definitions(&c.definitions) &&
           (!p->overlaps || ptx_check_overlap(p, &c.flow)) &&
           (!(c.flags & (WARP_SYNC | CTA_SYNC)) ||
            ptx_check_uniform(p, &c.flow, &c.definitions, c.changed));
}
