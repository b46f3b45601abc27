/* What every call of a kernel file comes down to: registers, variables, and emit, which gives
 * numbers the type of the operands beside them, checks the types against ops.def, folds, and
 * appends the instruction. The calls themselves are in arithmetic.c, memory.c and scope.c.
 */
#include "ptx/ir.h"

#include <stdarg.h>
#include <string.h>

/* Room for most kernels, so that the lists need not grow. */
enum { USUAL_INSTRUCTIONS = 1024, USUAL_PROLOGUE = 16 };

ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block)
{
    ptx *p = arena_zalloc(a, sizeof *p);
    p->arena = a;
    p->name = name;
    p->target = t;
    p->block = block;
    p->code.capacity = USUAL_INSTRUCTIONS;
    p->code.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->code.items);
    p->prologue.capacity = USUAL_PROLOGUE;
    p->prologue.items = arena_alloc(a, USUAL_PROLOGUE * sizeof *p->prologue.items);
    p->registers.capacity = USUAL_INSTRUCTIONS;
    p->registers.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->registers.items);
    *VEC_PUSH(a, &p->registers) = (ptx_register){ 0 };
    return p;
}

const target *ptx_target(ptx *p)
{
    p->asked_target = true;
    return p->target;
}

unsigned ptx_block(const ptx *p)
{
    return p->block;
}

void ptx_heading(ptx *p, const char *line)
{
    *VEC_PUSH(p->arena, &p->headings) = line;
}

void ptx_param(ptx *p, type t, const char *name)
{
    *VEC_PUSH(p->arena, &p->params) = (ptx_parameter){ ptx_name(p, name), t };
}

void ptx_min_blocks(ptx *p, unsigned blocks)
{
    p->min_blocks = blocks;
}

/* What a block of any GPU can have, and what threads get them in steps of. */
enum { REGISTERS_A_BLOCK = 65536, REGISTER_UNIT = 8 };

void ptx_max_registers(ptx *p, unsigned registers)
{
    unsigned fitting = REGISTERS_A_BLOCK / p->block / REGISTER_UNIT * REGISTER_UNIT;
    p->max_registers = registers < fitting ? registers : fitting;
}

void ptx_fail(ptx *p, const char *format, ...)
{
    if (p->error)
        return;
    va_list args;
    va_start(args, format);
    p->error = arena_vformat(p->arena, format, args);
    va_end(args);
}

const char *ptx_name(ptx *p, const char *name)
{
    if (strlen(name) <= LONGEST_NAME)
        return name;
    ptx_fail(p, "the name '%s' has more than %d characters", name, LONGEST_NAME);
    return "";
}

val val_of_var(var v)
{
    v.storage.kind = VAL_VAR;
    return v.storage;
}

val val_of_int(long long number)
{
    return (val){ .kind = VAL_NUMBER, .bits = (uint64_t)number };
}

val val_of_f32(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (val){ .kind = VAL_IMM, .type = F32, .bits = bits };
}

val imm(type t, long long number)
{
    uint64_t mask = type_table[t].bytes == 8 ? UINT64_MAX : UINT32_MAX;
    return (val){ .kind = VAL_IMM, .type = (uint8_t)t, .bits = (uint64_t)number & mask };
}

/* What an operand is when the same instruction fails on it: a value that harms nobody. */
val ptx_nothing(type t)
{
    return (val){ .kind = VAL_IMM, .type = (uint8_t)t };
}

static uint32_t new_register(ptx *p, type t, bool variable)
{
    *VEC_PUSH(p->arena, &p->registers) = (ptx_register){ (uint8_t)t, variable };
    return (uint32_t)(p->registers.count - 1);
}

/* Leaves the arrays alone, of which most instructions use a part only. */
static inst *begin(inst *i, op o, type t)
{
    i->op = (uint8_t)o;
    i->type = (uint8_t)t;
    i->second = NO_TYPE;
    i->results = i->operands = i->uses = 0;
    i->guard_not = false;
    i->guard = i->target = 0;
    i->comment = NULL;
    i->base.kind = VAL_NONE;
    i->offset = 0;
    return i;
}

inst *ptx_append(ptx *p, op o, type t)
{
    return begin(VEC_PUSH(p->arena, &p->code), o, t);
}

inst *ptx_append_ahead(ptx *p, op o, type t)
{
    return begin(VEC_PUSH(p->arena, &p->prologue), o, t);
}

val ptx_add_result(ptx *p, inst *i, type t)
{
    uint32_t id = new_register(p, t, false);
    i->result[i->results++] = id;
    return (val){ .kind = VAL_REG, .type = (uint8_t)t, .id = id };
}

static type widened(type t)
{
    return t == U32 ? U64 : t == S32 ? S64 : NO_TYPE;
}

/* What an operand or result has to be by its letter in ops.def; NO_TYPE where any 32-bit integer
 * does. */
static type signature_type(char letter, type t, type second)
{
    if (letter == 't') /* most are */
        return t;
    switch (letter) {
    case 's':
        return second;
    case 'w':
        return widened(t);
    case 'p':
        return PRED;
    case 'u':
    case 'i':
        return U32;
    default:
        return NO_TYPE;
    }
}

/* A C number as an immediate of a type, if the type can hold it. */
static val number_as(ptx *p, op o, type t, val v)
{
    int64_t number = (int64_t)v.bits;
    bool fits = t == U32   ? number >= 0 && number <= UINT32_MAX
                : t == S32 ? number >= INT32_MIN && number <= INT32_MAX
                : t == U64 ? number >= 0
                           : t == S64;
    if (t == F32)
        return val_of_f32((float)number);
    if (!fits)
        ptx_fail(p, "%s: the number %lld is no %s", op_name(o), (long long)number,
                 type_table[t].name);
    return imm(t, number);
}

static val address_in_register(ptx *p, val array)
{
    inst *i = ptx_append(p, OP_MOV_ADDR, U32);
    ptx_set_operands(i, &array, 1);
    i->comment = p->shared.items[array.id].name;
    return ptx_add_result(p, i, U32);
}

/* The same for an operand that is not of the wanted type, or has none yet. */
static val make_fit(ptx *p, op o, char letter, type wanted, val v)
{
    if (v.kind == VAL_NUMBER)
        return number_as(p, o, wanted ? wanted : S32, v);
    if (v.kind == VAL_SHARED)
        v = address_in_register(p, v);
    bool right = wanted ? v.type == wanted : v.type == U32 || v.type == S32;
    if (letter == 'u' && v.type == S32) /* a count or selector: its sign does not matter */
        right = true;
    if (v.kind == VAL_NONE || !right) {
        ptx_fail(p, "%s: an operand is %s where %s is needed", op_name(o),
                 v.kind == VAL_NONE ? "nothing" : type_table[v.type].name,
                 wanted ? type_table[wanted].name : "a 32-bit integer");
        return ptx_nothing(wanted ? wanted : U32);
    }
    return v;
}

static inline val fit(ptx *p, op o, char letter, type t, type second, val v)
{
    type wanted = signature_type(letter, t, second);
    bool ready = v.kind == VAL_REG || v.kind == VAL_VAR || v.kind == VAL_IMM;
    return ready && v.type == wanted ? v : make_fit(p, o, letter, wanted, v);
}

val ptx_fit(ptx *p, op o, type t, val v)
{
    return fit(p, o, 't', t, NO_TYPE, v);
}

val ptx_copy(ptx *p, val v)
{
    inst *i = ptx_append(p, OP_MOV, v.type);
    ptx_set_operands(i, &v, 1);
    return ptx_add_result(p, i, v.type);
}

/* The operands with the addresses of shared arrays in registers. */
static const val *address_operands(ptx *p, const val *given, unsigned count, val *operands)
{
    unsigned n = 0;
    while (n < count && given[n].kind != VAL_SHARED)
        n++;
    if (n == count)
        return given;
    for (n = 0; n < count; n++)
        operands[n] = given[n].kind == VAL_SHARED ? address_in_register(p, given[n]) : given[n];
    return operands;
}

val ptx_emit(ptx *p, op o, type t, type second, const val *given)
{
    const op_info *info = &op_table[o];
    if (!(info->types & BIT(t)))
        ptx_fail(p, "%s: does not take %s", info->text, type_table[t].name);

    unsigned count = info->operand_count;
    val operands[MAX_VECTOR];
    given = address_operands(p, given, count, operands);
    inst *i = ptx_append(p, o, t); /* taken back where it folds */
    bool any_known = false;        /* nothing folds without */
    for (unsigned n = 0; n < count; n++) {
        i->operand[n] = fit(p, o, info->operands[n], t, second, given[n]);
        any_known = any_known || i->operand[n].kind == VAL_IMM;
    }
    /* The right operand may be an immediate, the left one of most instructions may not stand alone.
     */
    if (info->flags & COMMUTES && i->operand[0].kind == VAL_IMM && i->operand[1].kind != VAL_IMM) {
        val first = i->operand[0];
        i->operand[0] = i->operand[1];
        i->operand[1] = first;
    }
    val folded;
    if (any_known && ptx_fold(o, t, i->operand, &folded)) {
        p->code.count--;
        return folded.kind == VAL_VAR ? ptx_copy(p, folded) : folded;
    }
    i->second = (uint8_t)second;
    i->operands = (uint8_t)count;
    for (unsigned n = 0; n < count; n++)
        ptx_note_use(i, i->operand[n]);
    type result = signature_type(info->results[0], t, second);
    if (info->results[0] == 'x') /* dp4a: signed as soon as one factor is */
        result = t == U32 && second == U32 ? U32 : S32;
    return ptx_add_result(p, i, result);
}

static void comment_on(inst *items, size_t count, val v, const char *name)
{
    if (count && items[count - 1].results == 1 && items[count - 1].result[0] == v.id)
        items[count - 1].comment = name;
}

val named(ptx *p, const char *name, val v)
{
    if (v.kind == VAL_REG) {
        name = ptx_name(p, name);
        comment_on(p->code.items, p->code.count, v, name);
        comment_on(p->prologue.items, p->prologue.count, v, name);
    }
    return v;
}

var ptx_var(ptx *p, type t, val initial)
{
    var v = { .storage = { .kind = VAL_VAR, .type = (uint8_t)t, .id = new_register(p, t, true) } };
    ptx_assign(p, v, initial);
    return v;
}

var var_like(ptx *p, val initial)
{
    return ptx_var(p, initial.type, initial);
}

void ptx_assign(ptx *p, var v, val value)
{
    value = ptx_fit(p, OP_MOV, v.storage.type, value);
    inst *i = ptx_append(p, OP_MOV, v.storage.type);
    ptx_set_operands(i, &value, 1);
    i->result[i->results++] = v.storage.id;
}

val get(ptx *p, var v)
{
    return ptx_copy(p, val_of_var(v));
}

static void list(ptx *p, inst *items, size_t count)
{
    for (size_t n = 0; n < count; n++)
        p->list[p->count++] = &items[n];
}

void ptx_list_instructions(ptx *p)
{
    p->list = arena_alloc(p->arena, (p->prologue.count + p->code.count) * sizeof *p->list);
    list(p, p->prologue.items, p->prologue.count);
    list(p, p->code.items, p->code.count);
}
