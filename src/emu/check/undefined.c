#include "emu/check/undefined.h"

lane_mask undefined_register(const warp *w, const reg *r)
{
    return r->carried ? ~w->defined[r->carried - 1] : 0;
}

static lane_mask undefined_sources(const warp *w, const op *o)
{
    lane_mask lanes = 0;
    for (unsigned i = op_first_source(o); i < o->reads; i++)
        lanes |= undefined_register(w, op_register(w->machine->entry, o, i));
    return lanes;
}

lane_mask undefined_source(const warp *w, const op *o, int which, bool predicate)
{
    for (unsigned i = op_first_source(o); i < o->reads; i++) {
        const reg *r = op_register(w->machine->entry, o, i);
        if ((r->type == TYPE_pred) == predicate && r->place == o->src[which])
            return undefined_register(w, r);
    }
    return 0;
}

void undefined_set_register(warp *w, const reg *r, lane_mask lanes, lane_mask mask)
{
    if (r->carried) {
        lane_mask *defined = &w->defined[r->carried - 1];
        *defined = (*defined & ~mask) | (mask & ~lanes);
    }
}

/* Checks a register whose value has an effect in some lanes. */
static bool check_use(warp *w, const op *o, const reg *r, lane_mask mask, const char *what)
{
    lane_mask lanes = undefined_register(w, r) & mask;
    return !lanes ||
           WARP_CHECK(
               w, o, lowest_lane(lanes), EMU_CHECK_UNDEFINED, 0,
               "undefined: register %s holds a value that this thread never initialised, and %s",
               r->name, what);
}

/* Checks all sources except the one at a place. */
static bool check_uses(warp *w, const op *o, lane_mask mask, uint32_t except, const char *what)
{
    for (unsigned i = op_first_source(o); i < o->reads; i++) {
        const reg *r = op_register(w->machine->entry, o, i);
        if (r->place != except && !check_use(w, o, r, mask, what))
            return false;
    }
    return true;
}

/* Returns the lanes in which one predicate's value does not determine the result. */
static lane_mask undecided(const op *o, lane_mask value)
{
    return o->combine == COMBINE_AND ? value : o->combine == COMBINE_OR ? ~value : ALL_LANES;
}

bool undefined_step(warp *w, const op *o, lane_mask mask)
{
    if (op_first_source(o) && !check_use(w, o, op_register(w->machine->entry, o, 0), w->active,
                                         "it guards this instruction"))
        return false;
    lane_mask results = 0, a, b;
    switch (o->carry) {
    case CARRY_SPECIAL:
        return true;
    case CARRY_SELECTED:
        a = predicate(w, o->src[2], o->pred_not); /* lanes that select the first source */
        results = (undefined_source(w, o, 0, false) & a) | (undefined_source(w, o, 1, false) & ~a) |
                  undefined_source(w, o, 2, true);
        break;
    case CARRY_LOGIC:
        a = undefined_source(w, o, 0, true);
        b = undefined_source(w, o, 1, true);
        results = (a & b) | (a & ~b & undecided(o, predicate(w, o->src[1], o->pred_not))) |
                  (b & ~a & undecided(o, predicate(w, o->src[0], false)));
        break;
    case CARRY_COMPARED:
        results = undefined_source(w, o, 0, false) | undefined_source(w, o, 1, false);
        if (o->combine != COMBINE_NONE)
            results = undefined_source(w, o, 2, true) |
                      (results & undecided(o, predicate(w, o->src[2], o->pred_not)));
        break;
    case CARRY_ALL_LANES:
        results = undefined_sources(w, o) & mask ? ALL_LANES : 0;
        break;
    case CARRY_ON:
        results = undefined_sources(w, o);
        break;
    }
    for (unsigned i = 0; i < o->writes; i++)
        undefined_set_register(w, op_register(w->machine->entry, o, o->reads + i), results, mask);
    for (unsigned i = op_first_source(o);
         (o->carry == CARRY_LOADED || o->carry == CARRY_STORED) && i < o->reads; i++) {
        const reg *r = op_register(w->machine->entry, o, i);
        if (r->type != TYPE_pred && r->place == o->src[0])
            return check_use(w, o, r, mask, "it is used as an address");
    }
    return o->carry != CARRY_USED ||
           check_uses(w, o, mask, UINT32_MAX, "this instruction depends on it");
}

void undefined_result(warp *w, const op *o, int which, lane_mask lanes)
{
    for (unsigned i = 0; i < o->writes; i++) {
        const reg *r = op_register(w->machine->entry, o, o->reads + i);
        if (r->type != TYPE_pred && r->place == o->dst[which])
            undefined_set_register(w, r, lanes, ALL_LANES);
    }
}

void undefined_shuffle(warp *w, const op *o, lane_mask mask, const uint8_t *from)
{
    lane_mask value = undefined_source(w, o, 0, false), taken = 0;
    for (int i = 0; i < WARP_LANES; i++)
        taken |= (value >> from[i] & 1) << i;
    for (unsigned i = 0; i < o->writes; i++) {
        const reg *r = op_register(w->machine->entry, o, o->reads + i);
        undefined_set_register(w, r, r->type == TYPE_pred ? 0 : taken, mask);
    }
}

bool undefined_output(warp *w, const op *o, lane_mask mask)
{
    return check_uses(w, o, mask, o->src[0], "it is stored to global memory");
}

static uint8_t *shadow_of(machine *m, ptx_space space, const uint8_t *bytes)
{
    return space == SPACE_SHARED ? m->shared_undefined + (bytes - m->shared.bytes)
                                 : m->local_undefined + (bytes - m->local);
}

void undefined_store(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes)
{
    unsigned size = emu_type_bytes(o->type);
    if (!w->machine->shared_undefined)
        return;
    uint8_t *shadow = shadow_of(w->machine, space, bytes);
    for (int e = 0; e < o->vector; e++, shadow += size)
        memset(shadow, undefined_source(w, o, e + 1, false) >> lane & 1, size);
}

void undefined_load(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes)
{
    unsigned size = emu_type_bytes(o->type);
    const entry *of = w->machine->entry;
    if (!w->machine->shared_undefined)
        return;
    const uint8_t *shadow = shadow_of(w->machine, space, bytes);
    for (unsigned e = 0; e < o->vector; e++, shadow += size)
        for (unsigned i = 0; memchr(shadow, 1, size) && i < o->writes; i++)
            if (op_register(of, o, o->reads + i)->place == o->dst[e])
                undefined_set_register(w, op_register(of, o, o->reads + i), ALL_LANES,
                                       UINT32_C(1) << lane);
}

void undefined_mark(machine *m, ptx_space space, const uint8_t *bytes, size_t size, bool undefined)
{
    if (m->shared_undefined)
        memset(shadow_of(m, space, bytes), undefined, size);
}

bool undefined_bytes(machine *m, ptx_space space, const uint8_t *bytes, size_t size)
{
    return m->shared_undefined && memchr(shadow_of(m, space, bytes), 1, size);
}
