/* Structured control flow: conditions, loops and the end of a thread.
 *
 * A condition branches over its body; a loop tests at its end, and before its beginning where it
 * may not run at all. Labels take the loop's name; a second loop of that name gets a number.
 */
#include "ptx/ir.h"

#define NO_LABEL UINT32_MAX

static uint32_t new_label(ptx *p, const char *name, const char *suffix)
{
    *VEC_PUSH(p->arena, &p->labels) = (ptx_label){ ptx_name(p, name), suffix };
    return (uint32_t)(p->labels.count - 1);
}

static inst *control(ptx *p, op o, uint32_t label)
{
    inst *i = ptx_append(p, o, NO_TYPE);
    i->target = label;
    return i;
}

static void guard(ptx *p, inst *i, val condition, bool negated)
{
    if (condition.type != PRED || (condition.kind != VAL_REG && condition.kind != VAL_VAR))
        ptx_fail(p, "%s: the condition is no predicate", op_name(i->op));
    i->guard = condition.id;
    ptx_note_use(i, condition);
    i->guard_not = negated;
}

static void branch_unless(ptx *p, val condition, uint32_t label)
{
    if (condition.kind == VAL_IMM)
        p->has_unreachable = true;
    if (condition.kind == VAL_IMM && condition.bits)
        return;
    inst *i = control(p, OP_BRA, label);
    if (condition.kind != VAL_IMM)
        guard(p, i, condition, true);
}

ptx_scope ptx_if_begin(ptx *p, val condition)
{
    ptx_scope s = { .open = true, .condition = condition, .end_label = new_label(p, "skip", "") };
    branch_unless(p, condition, s.end_label);
    return s;
}

void ptx_if_end(ptx *p, ptx_scope *s)
{
    if (p->code.items[p->code.count - 1].op == OP_BRA) /* an empty body: a jump to what follows */
        p->has_unreachable = true;
    control(p, OP_LABEL, s->end_label);
    s->open = false;
}

ptx_scope ptx_else_begin(ptx *p)
{
    ptx_scope s = { .open = true, .end_label = new_label(p, "joined", "") };
    size_t last = p->code.count;
    if (last == 0 || p->code.items[last - 1].op != OP_LABEL) {
        ptx_fail(p, "an else does not follow its if");
        return s;
    }
    /* The label that ended the if becomes the beginning of the else, with a jump over it in front.
     */
    uint32_t begin = p->code.items[last - 1].target;
    p->code.count--;
    control(p, OP_BRA, s.end_label);
    p->labels.items[begin].name = "else";
    control(p, OP_LABEL, begin);
    return s;
}

void ptx_loop_work(ptx *p, unsigned amount, const char *unit)
{
    p->loop_note = arena_format(p->arena, "%u %s a lane", amount, unit);
}

ptx_scope ptx_for_begin(ptx *p, const char *name, val first, val end, val step)
{
    type t = first.kind != VAL_NUMBER ? first.type : end.kind != VAL_NUMBER ? end.type : U32;
    bool constant = (first.kind == VAL_NUMBER || first.kind == VAL_IMM) &&
                    (end.kind == VAL_NUMBER || end.kind == VAL_IMM);
    if (end.kind == VAL_VAR || step.kind == VAL_VAR)
        ptx_fail(p, "loop %s: its end and step may not change: take a copy with get", name);

    const char *note = p->loop_note;
    p->loop_note = NULL;
    ptx_scope s = { .open = !constant || first.bits < end.bits };
    if (!s.open)
        return s;
    if (constant && step.kind != VAL_REG && end.bits - first.bits <= step.bits) {
        s.counter = imm(t, (long long)first.bits); /* runs once: no loop */
        return s;
    }
    var counter = ptx_var(p, t, first);
    p->code.items[p->code.count - 1].comment = name;
    s.counter = counter.storage;
    s.counter.kind = VAL_REG;
    s.end = end;
    s.step = step;
    s.begin_label = new_label(p, name, "_loop");
    s.end_label = NO_LABEL;
    if (!constant) {
        s.end_label = new_label(p, name, "_done");
        branch_unless(p, ptx_lt(p, s.counter, end), s.end_label);
    }
    control(p, OP_LABEL, s.begin_label)->comment = note;
    control(p, OP_NOUNROLL, 0);
    return s;
}

void ptx_for_end(ptx *p, ptx_scope *s)
{
    s->open = false;
    if (s->counter.kind == VAL_IMM)
        return;
    var counter = { .storage = s->counter };
    ptx_assign(p, counter, ptx_add(p, s->counter, s->step));
    val again = ptx_lt(p, s->counter, s->end);
    guard(p, control(p, OP_BRA, s->begin_label), again, false);
    if (s->end_label != NO_LABEL)
        control(p, OP_LABEL, s->end_label);
}

void ret(ptx *p)
{
    p->has_unreachable = true; /* what follows */
    control(p, OP_RET, 0);
}

void ret_if(ptx *p, val condition)
{
    if (condition.kind == VAL_IMM) {
        if (condition.bits)
            ret(p);
        return;
    }
    guard(p, control(p, OP_RET, 0), condition, false);
}
