/* The core of the builder: registers, variables, and ptx_emit. ptx_emit types the numbers, checks
 * the operands against ops.def, folds, and appends the instruction. The calls of kernel files are
 * in arithmetic.c, memory.c and scope.c. */
#include "ptx/ir.h"

#include <stdarg.h>
#include <string.h>

/* Initial capacity, enough for most kernels. */
enum { USUAL_INSTRUCTIONS = 1024 };

ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block)
{
    ptx *p = arena_zalloc(a, sizeof *p);
    p->arena = a;
    p->name = name;
    p->target = t;
    p->block = block;
    p->code.capacity = USUAL_INSTRUCTIONS;
    p->code.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->code.items);
    p->registers.capacity = USUAL_INSTRUCTIONS;
    p->registers.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->registers.items);
    *VEC_PUSH(a, &p->registers) = (ptx_register){ 0 };
    return p;
}

const target *ptx_target(const ptx *p)
{
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
    ptx_steady_param(p, t, name, CHANGES_ANY);
}

void ptx_steady_param(ptx *p, type t, const char *name, ptx_changes changes)
{
    *VEC_PUSH(p->arena, &p->params) = (ptx_parameter){ ptx_name(p, name), t, changes };
}

void ptx_max_registers(ptx *p, unsigned registers)
{
    unsigned fitting = target_registers_for((p->block + WARP - 1) / WARP);
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

const char *ptx_describe(ptx *p, const inst *i)
{
    const char *type_name = type_table[i->type].name;
    const char *about = i->commented        ? ptx_comment_of(p, i)
                        : i->op == INST_BRA ? p->labels.items[i->target].name
                                            : "";
    size_t n = 0;
    while (n < p->count && p->list[n] != i)
        n++;
    return arena_format(p->arena, "instruction %zu (%s%s%s%s%s)", n, op_name(i->op),
                        *type_name ? " " : "", type_name, *about ? " " : "", about);
}

const char *ptx_name(ptx *p, const char *name)
{
    if (strlen(name) <= LONGEST_NAME)
        return name;
    ptx_fail(p, "the name '%s' has more than %d characters", name, LONGEST_NAME);
    return "";
}

static uint32_t new_register(ptx *p, ptx_register r)
{
    *VEC_PUSH(p->arena, &p->registers) = r;
    return (uint32_t)(p->registers.count - 1);
}

static inline inst *new_instruction(ptx *p, ptx_op o, type t, const val *operands, unsigned count)
{
    size_t size = sizeof(inst) + count * sizeof *operands;
    inst *i = arena_alloc(p->arena, size + MAX_RESULTS * sizeof *i->result);
    *i = (inst){ .op = (uint8_t)o,
                 .type = (uint8_t)t,
                 .operands = (uint8_t)count,
                 .result = (uint32_t *)((char *)i + size) };
    for (unsigned n = 0; n < count; n++)
        i->operand[n] = operands[n];
    return i;
}

/* Ends a stretch at the latest instruction. */
static void note_anchor(ptx *p)
{
    p->latest_note = 0;
    *VEC_PUSH(p->arena, &p->anchors) = (uint32_t)(p->code.count - 1);
}

inst *ptx_append(ptx *p, ptx_op o, type t, const val *operands, unsigned count)
{
    inst *i = *VEC_PUSH(p->arena, &p->code) = new_instruction(p, o, t, operands, count);
    p->latest_note = PROLOGUE_LIMIT + (uint32_t)p->code.count;
    if (op_table[o].flags & EFFECT)
        note_anchor(p);
    return i;
}

inst *ptx_append_prologue(ptx *p, ptx_op o, type t, const val *operands, unsigned count)
{
    inst *i = *VEC_PUSH(p->arena, &p->prologue) = new_instruction(p, o, t, operands, count);
    p->latest_note = (uint32_t)p->prologue.count;
    return i;
}

val ptx_add_result(ptx *p, inst *i, type t)
{
    uint32_t stretch = p->latest_note > PROLOGUE_LIMIT ? (uint32_t)p->anchors.count + 1 : 0;
    uint32_t id = new_register(
        p, (ptx_register){ .type = (uint8_t)t, .note = p->latest_note, .place = stretch });
    i->result[i->results++] = id;
    return (val){ .kind = VAL_REG, .type = (uint8_t)t, .id = id };
}

/* Converts an operand that does not have the wanted type yet. */
static val convert_operand(ptx *p, ptx_op o, char letter, type wanted, val v)
{
    if (v.kind == VAL_NUMBER) {
        int64_t number = (int64_t)v.bits;
        bool fits = wanted == U32   ? number >= 0 && number <= UINT32_MAX
                    : wanted == S32 ? number >= INT32_MIN && number <= INT32_MAX
                    : wanted == U64 ? number >= 0
                                    : wanted == S64;
        if (wanted == F32)
            return val_of_f32((float)number);
        if (!fits)
            ptx_fail(p, "%s: %lld is out of range for %s", op_name(o), (long long)number,
                     type_table[wanted].name);
        return imm(wanted, number);
    }
    if (v.kind == VAL_SHARED) { /* the address needs a register */
        inst *i = ptx_append(p, INST_MOV_ADDR, U32, &v, 1);
        ptx_set_comment(p, i, p->shared.items[v.bits].name);
        v = ptx_add_result(p, i, U32);
    }
    bool any_sign = letter == 'x' || letter == 'u'; /* signed and unsigned are both accepted */
    if (v.kind != VAL_NONE && (v.type == wanted || (any_sign && (v.type == U32 || v.type == S32))))
        return v;
    ptx_fail(p, "%s: an operand is %s, expected %s", op_name(o),
             v.kind == VAL_NONE ? "nothing" : type_table[v.type].name,
             letter == 'x' ? "a 32-bit integer" : type_table[wanted].name);
    return imm(wanted, 0);
}

static inline bool has_type(const val *v, type wanted)
{
    return v->type == wanted && v->kind >= VAL_REG && v->kind <= VAL_IMM;
}

val ptx_fit(ptx *p, ptx_op o, type t, val v)
{
    return has_type(&v, t) ? v : convert_operand(p, o, 't', t, v);
}

val ptx_copy(ptx *p, val v)
{
    return ptx_add_result(p, ptx_append(p, INST_MOV, v.type, &v, 1), v.type);
}

/* Converts operands by ops.def. Returns their count, or 0 if it folds to *folded. */
static inline unsigned fit_operands(ptx *p, ptx_op o, type t, type second, val *operands,
                                    val *folded)
{
    const op_info *info = &op_table[o];
    if (!(info->types & BIT(t)))
        ptx_fail(p, "%s does not support type %s", op_name(o), type_table[t].name);
    unsigned count = 0;
    bool any_known = false; /* folding needs a constant */
    for (const char *letter = info->operands; *letter; letter++) {
        if (!is_value_letter(*letter))
            continue;
        type wanted = *letter == 't' ? t : letter_type(*letter, o, t, second);
        val *v = &operands[count++];
        if (!has_type(v, wanted))
            *v = convert_operand(p, o, *letter, wanted, *v);
        any_known |= v->kind == VAL_IMM;
    }
    if (!any_known)
        return count;
    /* Most instructions accept an immediate only as the right operand. */
    if (info->flags & COMMUTES && operands[1].kind != VAL_IMM) {
        val first = operands[0];
        operands[0] = operands[1];
        operands[1] = first;
    }
    return info->flags & FOLDS && ptx_fold(o, t, operands, count, folded) ? 0 : count;
}

val ptx_emit(ptx *p, ptx_op o, type t, type second, val *operands)
{
    val folded;
    unsigned count = fit_operands(p, o, t, second, operands, &folded);
    if (!count)
        return folded.kind == VAL_VAR ? ptx_copy(p, folded) : folded;
    inst *i = ptx_append(p, o, t, operands, count);
    i->second = (uint8_t)second;
    return ptx_add_result(p, i, letter_type(*op_table[o].results, o, t, second));
}

void ptx_emit_group(ptx *p, ptx_op o, type t, type second, val *operands, val *results)
{
    val unused;
    unsigned count = fit_operands(p, o, t, second, operands, &unused);
    inst *i = ptx_append(p, o, t, operands, count);
    i->second = (uint8_t)second;
    for (const char *letter = op_table[o].results; *letter; letter++)
        *results++ = ptx_add_result(p, i, letter_type(*letter, o, t, second));
}

void ptx_set_comment(ptx *p, inst *i, const char *text)
{
    if (!text)
        return;
    i->commented = true;
    *VEC_PUSH(p->arena, &p->comments) = (ptx_comment){ i, text };
}

const char *ptx_comment_of(const ptx *p, const inst *i)
{
    size_t n = i->commented ? p->comments.count : 0;
    while (n-- > 0)
        if (p->comments.items[n].inst == i)
            return p->comments.items[n].text;
    return NULL;
}

static void comment_on(ptx *p, inst *const *items, size_t count, val v, const char *name)
{
    if (count && items[count - 1]->results == 1 && items[count - 1]->result[0] == v.id)
        ptx_set_comment(p, items[count - 1], name);
}

val named(ptx *p, const char *name, val v)
{
    if (v.kind == VAL_REG) {
        name = ptx_name(p, name);
        comment_on(p, p->code.items, p->code.count, v, name);
        comment_on(p, p->prologue.items, p->prologue.count, v, name);
    }
    return v;
}

var ptx_var(ptx *p, type t, val initial)
{
    ptx_register r = { .type = (uint8_t)t, .variable = true };
    var v = { .storage = { .kind = VAL_VAR, .type = (uint8_t)t, .id = new_register(p, r) } };
    ptx_assign(p, v, initial);
    return v;
}

var var_like(ptx *p, val initial)
{
    return ptx_var(p, initial.type, initial);
}

void ptx_assign(ptx *p, var v, val value)
{
    value = ptx_fit(p, INST_MOV, v.storage.type, value);
    inst *i = ptx_append(p, INST_MOV, v.storage.type, &value, 1);
    i->result[i->results++] = v.storage.id;
    note_anchor(p);
}

val get(ptx *p, var v)
{
    return ptx_copy(p, val_of_var(v));
}

void ptx_list_instructions(ptx *p)
{
    p->count = p->prologue.count + p->code.count;
    p->list = arena_alloc(p->arena, p->count * sizeof *p->list);
    memcpy(p->list, p->prologue.items, p->prologue.count * sizeof *p->list);
    memcpy(p->list + p->prologue.count, p->code.items, p->code.count * sizeof *p->list);
}
