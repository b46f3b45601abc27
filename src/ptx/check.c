/* The part of the verifier that looks at instructions one by one: each as ops.def has it, each
 * access to shared memory inside what is declared.
 */
#include "ptx/ir.h"

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

static bool is_register(val v)
{
    return v.kind == VAL_REG || v.kind == VAL_VAR;
}

static void check_register(ptx *p, const inst *i, val v)
{
    if (!is_register(v))
        return;
    if (v.id == 0 || v.id >= p->registers.count)
        ptx_fail(p, "%s reads a register that does not exist", ptx_describe(p, i));
    else if (!same_class(v.type, p->registers.items[v.id].type))
        ptx_fail(p, "%s reads a %s register as %s", ptx_describe(p, i),
                 type_table[p->registers.items[v.id].type].name, type_table[v.type].name);
}

/* What the operands and results of an instruction have to be, kept by operation, since most come
 * again with the same types. */
typedef struct signature {
    bool known;
    uint8_t type, second, operands, results;         /* of the instruction */
    uint8_t operand[MAX_VECTOR], result[MAX_VECTOR]; /* types */
} signature;

/* The type of an operand or result by its letter in ops.def. */
static type expected(const inst *i, char letter)
{
    switch (letter) {
    case 't':
        return type_table[i->type].in_register;
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

static void learn_signature(ptx *p, const inst *i, signature *s)
{
    const op_info *info = &op_table[i->op];
    if (i->type != NO_TYPE && !(info->types & BIT(i->type)))
        ptx_fail(p, "%s: the type does not exist", ptx_describe(p, i));
    if (info->sm > p->target->sm)
        ptx_fail(p, "%s needs sm_%u, the target is %s", ptx_describe(p, i), info->sm,
                 p->target->name);
    bool vector = info->flags & (LOAD | STORE);
    if (vector ? i->operands > info->operand_count || i->results > info->result_count
               : i->operands != info->operand_count || i->results != info->result_count)
        ptx_fail(p, "%s has the wrong number of operands", ptx_describe(p, i));
    *s = (signature){ true, i->type, i->second, i->operands, i->results, { 0 }, { 0 } };
    for (unsigned n = 0; n < info->operand_count; n++)
        if (info->operands[n] != 'i') /* looked at each time */
            s->operand[n] = (uint8_t)expected(i, info->operands[n]);
    for (unsigned n = 0; n < info->result_count; n++)
        s->result[n] = (uint8_t)expected(i, info->results[n]);
}

/* Registers of one class may stand for each other, but nearly all are of the very type, and need no
 * closer look. */
static inline bool is_of_type(const ptx *p, const val *v, type t)
{
    if (v->type != t || v->kind == VAL_IMM)
        return v->type == t;
    return is_register(*v) && v->id < p->registers.count && p->registers.items[v->id].type == t;
}

static void check_operand(ptx *p, const inst *i, unsigned n)
{
    val v = i->operand[n];
    char letter = op_table[i->op].operands[n];
    check_register(p, i, v);
    if (letter == 'i' && v.kind != VAL_IMM)
        ptx_fail(p, "%s: operand %u has to be a number", ptx_describe(p, i), n + 1);
    if (!same_class(expected(i, letter), v.type))
        ptx_fail(p, "%s: operand %u is %s", ptx_describe(p, i), n + 1, type_table[v.type].name);
}

static void check_result(ptx *p, const inst *i, unsigned n)
{
    type t = p->registers.items[i->result[n]].type;
    if (!same_class(expected(i, op_table[i->op].results[n]), t))
        ptx_fail(p, "%s: its result is %s", ptx_describe(p, i), type_table[t].name);
}

static void check_types(ptx *p, const inst *i, signature *s)
{
    if (s->type != i->type || s->second != i->second || s->operands != i->operands ||
        s->results != i->results || !s->known)
        learn_signature(p, i, s);
    if (p->error)
        return;
    for (unsigned n = 0; n < s->operands; n++)
        if (!is_of_type(p, &i->operand[n], s->operand[n]))
            check_operand(p, i, n);
    for (unsigned n = 0; n < s->results; n++)
        if (p->registers.items[i->result[n]].type != s->result[n])
            check_result(p, i, n);
    if (i->base.kind != VAL_NONE)
        check_register(p, i, i->base);
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
    signature signatures[OP_KINDS] = { { 0 } };
    shared_address *of_register =
        p->shared.count ? arena_zalloc(p->arena, p->registers.count * sizeof *of_register) : NULL;
    for (size_t n = 0; n < p->count && !p->error; n++) {
        const inst *i = p->list[n];
        check_types(p, i, &signatures[i->op]);
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
