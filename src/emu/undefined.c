#include "emu/undefined.h"
#include "emu/exec.h"

/* What becomes of an op's undefined sources. */
enum {
    CARRY_ON,       /* its results are undefined */
    CARRY_CHOSEN,   /* selp: the one that is chosen */
    CARRY_LOGIC,    /* of predicates: unless the other one decides */
    CARRY_COMPARED, /* the same for setp with a predicate */
    CARRY_TOGETHER, /* the results of all lanes are undefined */
    CARRY_SHUFFLED,
    CARRY_LOADED,
    CARRY_STORED,
    CARRY_DECIDES,
};

static const struct {
    op_exec *exec;
    uint8_t carry;
} kinds[] = {
    { exec_selp32, CARRY_CHOSEN },
    { exec_selp64, CARRY_CHOSEN },
    { exec_predicate_logic, CARRY_LOGIC },
    { exec_setp, CARRY_COMPARED },
    { exec_vote, CARRY_TOGETHER },
    { exec_ballot, CARRY_TOGETHER },
    { exec_match_any, CARRY_TOGETHER },
    { exec_match_all, CARRY_TOGETHER },
    { exec_redux, CARRY_TOGETHER },
    { exec_mma_f16, CARRY_TOGETHER },
    { exec_mma_bf16, CARRY_TOGETHER },
    { exec_shfl, CARRY_SHUFFLED },
    { exec_ld, CARRY_LOADED },
    { exec_st, CARRY_STORED },
    { exec_atom, CARRY_DECIDES },
    { exec_async_copy, CARRY_DECIDES },
    { exec_prefetch, CARRY_DECIDES },
    { exec_bar, CARRY_DECIDES },
    { exec_bar_arrive, CARRY_DECIDES },
    { exec_bar_warp, CARRY_DECIDES },
    { exec_table_miss, CARRY_DECIDES },
};

static uint8_t carry_of(const op *o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].exec == o->exec)
            return kinds[i].carry;
    return CARRY_ON;
}

/* The first of the registers read that is no guard. */
static unsigned first_source(const op *o)
{
    return o->guard != PREDICATE_TRUE;
}

static bool is_array(ptx_space space)
{
    return space == SPACE_SHARED || space == SPACE_LOCAL;
}

static bool accesses_arrays(const op *o)
{
    return (o->exec == exec_ld || o->exec == exec_st) &&
           (is_array((ptx_space)o->space) || o->space == SPACE_GENERIC);
}

static reg *used(const entry *e, const op *o, unsigned index)
{
    return &e->regs.items[e->uses.items[o->uses + index]];
}

/* Whether what an op leaves is to be carried further than is known so far, and now is. */
static bool spread(entry *e, const op *o)
{
    bool undefined = o->exec == exec_ld && accesses_arrays(o) && e->undefined_memory;
    bool changed = false;
    for (unsigned i = first_source(o); o->exec != exec_ld && i < o->reads; i++)
        undefined |= used(e, o, i)->carried != 0;
    if (!undefined)
        return false;
    if (o->exec == exec_st && accesses_arrays(o)) {
        changed = !e->undefined_memory;
        e->undefined_memory = true;
    }
    for (unsigned i = 0; i < o->writes; i++) {
        reg *r = used(e, o, o->reads + i);
        changed |= !r->carried;
        if (!r->carried)
            r->carried = ++e->carried_count;
    }
    return changed;
}

void undefined_analyse(entry *e)
{
    for (size_t i = 0; i < e->regs.count; i++)
        if (e->regs.items[i].tracked)
            e->regs.items[i].carried = ++e->carried_count;
    for (bool changed = e->carried_count; changed;) {
        changed = false;
        for (size_t i = 0; i < e->ops.count; i++)
            changed |= spread(e, &e->ops.items[i]);
    }
    for (size_t i = 0; i < e->ops.count && e->carried_count; i++) {
        op *o = &e->ops.items[i];
        bool carries = e->undefined_memory && accesses_arrays(o);
        for (unsigned j = 0; j < o->reads + o->writes; j++)
            carries |= used(e, o, j)->carried != 0;
        o->watch |= carries ? WATCH_CARRIES : 0;
        o->carry = carry_of(o);
    }
}

/* The lanes in which a register that an op uses is undefined. */
static lane_mask undefined_lanes(const warp *w, const reg *r)
{
    return r->carried ? ~w->defined[r->carried - 1] : 0;
}

static lane_mask undefined_sources(const warp *w, const op *o)
{
    lane_mask lanes = 0;
    for (unsigned i = first_source(o); i < o->reads; i++)
        lanes |= undefined_lanes(w, used(w->machine->entry, o, i));
    return lanes;
}

/* The same of one source, which may be no register. */
static lane_mask undefined_source(const warp *w, const op *o, int which, bool predicate)
{
    for (unsigned i = first_source(o); i < o->reads; i++) {
        const reg *r = used(w->machine->entry, o, i);
        if ((r->type == TYPE_pred) == predicate && r->place == o->src[which])
            return undefined_lanes(w, r);
    }
    return 0;
}

static void set_undefined(warp *w, const reg *r, lane_mask lanes, lane_mask mask)
{
    if (r->carried) {
        lane_mask *defined = &w->defined[r->carried - 1];
        *defined = (*defined & ~mask) | (mask & ~lanes);
    }
}

static void set_results(warp *w, const op *o, lane_mask lanes, lane_mask mask)
{
    for (unsigned i = 0; i < o->writes; i++)
        set_undefined(w, used(w->machine->entry, o, o->reads + i), lanes, mask);
}

/* A register's value decides something in some lanes. */
static bool decides(warp *w, const op *o, const reg *r, lane_mask mask, const char *what)
{
    lane_mask lanes = undefined_lanes(w, r) & mask;
    return !lanes || WARP_CHECK(w, o, lowest_lane(lanes), EMU_CHECK_UNDEFINED, 0,
                                "undefined: register %s holds what was never written in this "
                                "thread, and %s",
                                r->name, what);
}

/* The sources from one on, except for one place, decide something. */
static bool all_decide(warp *w, const op *o, lane_mask mask, uint32_t except, const char *what)
{
    for (unsigned i = first_source(o); i < o->reads; i++) {
        const reg *r = used(w->machine->entry, o, i);
        if (r->place != except && !decides(w, o, r, mask, what))
            return false;
    }
    return true;
}

static bool address_decides(warp *w, const op *o, lane_mask mask)
{
    for (unsigned i = first_source(o); i < o->reads; i++) {
        const reg *r = used(w->machine->entry, o, i);
        if (r->type != TYPE_pred && r->place == o->src[0])
            return decides(w, o, r, mask, "it is an address");
    }
    return true;
}

static lane_mask undefined_choice(const warp *w, const op *o)
{
    lane_mask first = predicate(w, o->src[2], o->pred_not);
    return (undefined_source(w, o, 0, false) & first) |
           (undefined_source(w, o, 1, false) & ~first) | undefined_source(w, o, 2, true);
}

/* Of two predicates, one undefined: the lanes in which the other one does not decide. value: the
 * other one's, where it is defined. */
static lane_mask undecided(const op *o, lane_mask value)
{
    return o->combine == COMBINE_AND ? value : o->combine == COMBINE_OR ? ~value : ALL_LANES;
}

static lane_mask undefined_logic(const warp *w, const op *o)
{
    lane_mask a = undefined_source(w, o, 0, true), b = undefined_source(w, o, 1, true);
    return (a & b) | (a & ~b & undecided(o, predicate(w, o->src[1], o->pred_not))) |
           (b & ~a & undecided(o, predicate(w, o->src[0], false)));
}

static lane_mask undefined_comparison(const warp *w, const op *o)
{
    lane_mask compared = undefined_source(w, o, 0, false) | undefined_source(w, o, 1, false);
    lane_mask other = undefined_source(w, o, 2, true);
    if (o->combine == COMBINE_NONE)
        return compared;
    return other | (compared & undecided(o, predicate(w, o->src[2], o->pred_not)));
}

bool undefined_step(warp *w, const op *o, lane_mask mask)
{
    if (first_source(o) && !decides(w, o, used(w->machine->entry, o, 0), w->active,
                                    "it decides whether the thread does this"))
        return false;
    switch (o->carry) {
    case CARRY_CHOSEN:
        set_results(w, o, undefined_choice(w, o), mask);
        return true;
    case CARRY_LOGIC:
        set_results(w, o, undefined_logic(w, o), mask);
        return true;
    case CARRY_COMPARED:
        set_results(w, o, undefined_comparison(w, o), mask);
        return true;
    case CARRY_TOGETHER:
        set_results(w, o, undefined_sources(w, o) & mask ? ALL_LANES : 0, mask);
        return true;
    case CARRY_LOADED:
        set_results(w, o, 0, mask);
        return address_decides(w, o, mask);
    case CARRY_STORED:
        return address_decides(w, o, mask);
    case CARRY_DECIDES:
        set_results(w, o, 0, mask);
        return all_decide(w, o, mask, UINT32_MAX, "it decides what this does");
    case CARRY_SHUFFLED:
        return true;
    default:
        set_results(w, o, undefined_sources(w, o), mask);
        return true;
    }
}

void undefined_shuffle(warp *w, const op *o, lane_mask mask, const uint8_t *from)
{
    lane_mask value = undefined_source(w, o, 0, false), taken = 0;
    for (int i = 0; i < WARP_LANES; i++)
        taken |= (value >> from[i] & 1) << i;
    for (unsigned i = 0; i < o->writes; i++) {
        const reg *r = used(w->machine->entry, o, o->reads + i);
        set_undefined(w, r, r->type == TYPE_pred ? 0 : taken, mask);
    }
}

bool undefined_output(warp *w, const op *o, lane_mask mask)
{
    return all_decide(w, o, mask, o->src[0], "it is stored to global memory");
}

static uint8_t *shadow_of(machine *m, ptx_space space, const uint8_t *bytes)
{
    return space == SPACE_SHARED ? m->shared_undefined + (bytes - m->shared.bytes)
                                 : m->local_undefined + (bytes - m->local);
}

void undefined_store(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes)
{
    unsigned size = emu_type_bytes((ptx_type)o->type);
    if (!w->machine->shared_undefined)
        return;
    uint8_t *shadow = shadow_of(w->machine, space, bytes);
    for (int e = 0; e < o->vector; e++, shadow += size)
        memset(shadow, undefined_source(w, o, e + 1, false) >> lane & 1, size);
}

void undefined_load(warp *w, const op *o, int lane, ptx_space space, const uint8_t *bytes)
{
    unsigned size = emu_type_bytes((ptx_type)o->type);
    const entry *of = w->machine->entry;
    if (!w->machine->shared_undefined)
        return;
    const uint8_t *shadow = shadow_of(w->machine, space, bytes);
    for (unsigned e = 0; e < o->vector; e++, shadow += size)
        for (unsigned i = 0; memchr(shadow, 1, size) && i < o->writes; i++)
            if (used(of, o, o->reads + i)->place == o->dst[e])
                set_undefined(w, used(of, o, o->reads + i), ALL_LANES, UINT32_C(1) << lane);
}

void undefined_forget(machine *m, ptx_space space, const uint8_t *bytes, size_t size)
{
    if (m->shared_undefined)
        memset(shadow_of(m, space, bytes), 0, size);
}
