/* Structured control flow: conditions, loops and the end of a thread.
 *
 * A condition branches over its body. A loop tests at its end, and before its head if it may run
 * zero times. Labels have the loop's name, with a number from the second loop of that name on. */
#include "ptx/ir.h"

#define NO_LABEL UINT32_MAX

static uint32_t new_label(ptx *p, const char *name, const char *suffix)
{
    *VEC_PUSH(p->arena, &p->labels) = (ptx_label){ ptx_name(p, name), suffix };
    return (uint32_t)(p->labels.count - 1);
}

static inst *append_control(ptx *p, ptx_op o, uint32_t label)
{
    inst *i = ptx_append(p, o, NO_TYPE, NULL, 0);
    i->target = label;
    return i;
}

void phase(ptx *p, const char *what)
{
    ptx_set_comment(p, append_control(p, INST_PHASE, 0), ptx_name(p, what));
}

static void append_guarded(ptx *p, ptx_op o, uint32_t label, val condition, bool negated)
{
    if (condition.type != PRED || !condition.id)
        ptx_fail(p, "%s: the condition is not a predicate", op_name(o));
    inst *i = ptx_append(p, o, NO_TYPE, &condition, 1);
    i->target = label;
    i->guard_not = negated;
}

static uint32_t branch_unless(ptx *p, val condition, const char *name, const char *suffix)
{
    uint32_t label = new_label(p, name, suffix);
    append_guarded(p, INST_BRA, label, condition, true);
    return label;
}

/* Records a constant condition for its PTX_ELSE. */
static void note_constant_if(ptx *p, bool held)
{
    p->constant_if = p->code.count + 1;
    p->constant_if_held = held;
}

ptx_scope ptx_if_begin(ptx *p, val condition)
{
    if (condition.kind == VAL_IMM) {
        note_constant_if(p, condition.bits);
        return (ptx_scope){ .open = condition.bits, .end_label = NO_LABEL };
    }
    return (ptx_scope){ .open = true, .end_label = branch_unless(p, condition, "skip", "") };
}

void ptx_if_end(ptx *p, ptx_scope *s)
{
    s->open = false;
    if (s->end_label == NO_LABEL) {
        note_constant_if(p, true);
        return;
    }
    const inst *last = p->code.items[p->code.count - 1];
    if (last->op == INST_BRA && last->target == s->end_label) /* empty body */
        p->has_unreachable = true;
    append_control(p, INST_LABEL, s->end_label);
}

ptx_scope ptx_else_begin(ptx *p)
{
    ptx_scope s = { .end_label = NO_LABEL };
    size_t last = p->code.count;
    if (p->constant_if == last + 1) {
        s.open = !p->constant_if_held;
        return s;
    }
    if (last == 0 || p->code.items[last - 1]->op != INST_LABEL) {
        ptx_fail(p, "PTX_ELSE does not follow a PTX_IF");
        return s;
    }
    /* The label that ended the if starts the else; a jump over the else precedes it. */
    uint32_t begin = p->code.items[last - 1]->target;
    s = (ptx_scope){ .open = true, .end_label = new_label(p, "joined", "") };
    p->code.count--;
    p->anchors.count--;
    append_control(p, INST_BRA, s.end_label);
    p->labels.items[begin].name = "else";
    append_control(p, INST_LABEL, begin);
    return s;
}

void ptx_loop_work(ptx *p, unsigned amount, const char *unit)
{
    p->loop_note = arena_format(p->arena, "%u %s a lane", amount, unit);
}

void ptx_loop_seldom(ptx *p)
{
    p->loop_note = "seldom";
}

ptx_scope ptx_for_begin(ptx *p, const char *name, val first, val end, val step)
{
    type t = first.kind != VAL_NUMBER ? first.type : end.kind != VAL_NUMBER ? end.type : U32;
    bool constant = (first.kind == VAL_NUMBER || first.kind == VAL_IMM) &&
                    (end.kind == VAL_NUMBER || end.kind == VAL_IMM);
    if (end.kind == VAL_VAR || step.kind == VAL_VAR)
        ptx_fail(p, "loop %s: end and step must not be variables; copy them with get", name);

    const char *note = p->loop_note;
    p->loop_note = NULL;
    ptx_scope s = { .open = !constant || first.bits < end.bits };
    if (!s.open)
        return s;
    if (constant && step.kind != VAL_REG && end.bits - first.bits <= step.bits) {
        s.counter = imm(t, (long long)first.bits); /* a single iteration needs no loop */
        return s;
    }
    var counter = ptx_var(p, t, first);
    ptx_set_comment(p, p->code.items[p->code.count - 1], name);
    s.counter = counter.storage;
    s.counter.kind = VAL_REG;
    s.end = end;
    s.step = step;
    s.begin_label = new_label(p, name, "_loop");
    s.end_label = NO_LABEL;
    if (!constant)
        s.end_label = branch_unless(p, lt(p, s.counter, end), name, "_done");
    ptx_set_comment(p, append_control(p, INST_LABEL, s.begin_label), note);
    append_control(p, INST_NOUNROLL, 0);
    return s;
}

void ptx_for_end(ptx *p, ptx_scope *s)
{
    s->open = false;
    if (s->counter.kind == VAL_IMM)
        return;
    var counter = { .storage = s->counter };
    ptx_assign(p, counter, add(p, s->counter, s->step));
    val again = lt(p, s->counter, s->end);
    append_guarded(p, INST_BRA, s->begin_label, again, false);
    if (s->end_label != NO_LABEL)
        append_control(p, INST_LABEL, s->end_label);
}

void ret(ptx *p)
{
    p->has_unreachable = true; /* code after it */
    append_control(p, INST_RET, 0);
}

void ret_if(ptx *p, val condition)
{
    if (condition.kind == VAL_IMM) {
        if (condition.bits)
            ret(p);
        return;
    }
    append_guarded(p, INST_RET, 0, condition, false);
}
