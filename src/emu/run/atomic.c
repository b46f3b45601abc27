/* atom and red: one lane after another, in lane order. */
#include "emu/check/grid_order.h"
#include "emu/check/overlap_order.h"
#include "emu/check/undefined.h"
#include "emu/memory/speculation.h"
#include "emu/run/access.h"
#include "emu/run/arith.h"

static u64 updated_value(ptx_combine how, ptx_type type, u64 old, u64 b, u64 c)
{
    if (how == COMBINE_CAS)
        return old == b ? c : old;
    if (how != COMBINE_ADD || emu_type_kind(type) != KIND_FLOAT)
        return combine_integers(how, type, old, b);
    return type == TYPE_f16      ? add_half((f16)old, (f16)b, 0)
           : type == TYPE_f16x2  ? both2(add_half, (u32)old, (u32)b, 0)
           : type == TYPE_bf16   ? add_bfloat((bf16)old, (bf16)b, 0)
           : type == TYPE_bf16x2 ? both2(add_bfloat, (u32)old, (u32)b, 0)
           : type == TYPE_f32
               ? bits_of_float(canonical(float_of_bits((u32)old) + float_of_bits((u32)b)))
               : bits_of_double(canonical_double(double_of_bits(old) + double_of_bits(b)));
}

void atomic_commit(const atomic_update *u)
{
    const op *o = u->op;
    u64 old = 0;
    unsigned size = emu_type_bytes(o->type);
    allocation_read(u->of, u->address, &old, size);
    if (o->combine == COMBINE_CAS && old != u->b)
        return;
    u64 new = updated_value((ptx_combine)o->combine, (ptx_type)o->type, old, u->b, u->c);
    allocation_write(u->of, u->address, &new, size);
}

/* Defers a relaxed operation with an unread result. Returns false if the block is abandoned. */
static bool defer_atom(const access *x, u64 b, u64 c)
{
    const op *o = x->op;
    const machine *m = x->warp->machine;
    allocation *a = access_global(x);
    if (!a)
        return false;
    if (!op_may_wait(o) || a->rights || a->aliased) {
        speculation_abandon(x->warp);
        return false;
    }
    atomic_update u = { .op = o,
                        .of = a,
                        .address = x->address,
                        .b = b,
                        .c = c,
                        .store = { .block = m->grid->order.block,
                                   .time = m->shared.warp_time[x->warp->index],
                                   .line = o->line,
                                   .thread = (uint16_t)thread_of(x->warp, x->lane),
                                   .strong = true } };
    speculation_update(m->speculation, &u, x->size);
    return true;
}

/* Performs a lane's operation on a vector element. Returns false after a fault. */
static bool update_word(const access *x, int element, u64 *old)
{
    const op *o = x->op;
    bool wide = x->size == 8;
    u64 b = get_bits(source(x->warp, o, 1 + element), x->lane, wide), c = 0;
    allocation *a = NULL;
    uint8_t *bytes = NULL;
    if (o->combine == COMBINE_CAS)
        c = get_bits(source(x->warp, o, 2), x->lane, wide);
    if (x->space == SPACE_GLOBAL && x->warp->machine->speculation)
        return defer_atom(x, b, c);
    if (x->space == SPACE_GLOBAL) {
        a = access_global(x);
        if (!a || !grid_race_load(x, a) || !overlap_lane(x, a))
            return false;
        allocation_read(a, x->address, old, x->size);
    } else {
        bytes = access_array(x);
        if (!bytes)
            return false;
        memcpy(old, bytes, x->size);
        undefined_mark(x->warp->machine, x->space, bytes, x->size, false);
    }
    u64 new = updated_value((ptx_combine)o->combine, (ptx_type)o->type, *old, b, c);
    if (!a)
        memcpy(bytes, &new, x->size);
    else if (o->combine == COMBINE_CAS && *old != b)
        return true;
    else if (!grid_race_store(x, a, &new))
        return false;
    else
        allocation_write(a, x->address, &new, x->size);
    return true;
}

static void atom_lanes(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask)
{
    u64 found[MAX_VECTOR][WARP_LANES] = { { 0 } };
    unsigned size = emu_type_bytes(o->type);
    EACH_LANE (i, mask) {
        access x = { w, o, i, ACCESS_ATOMIC, space, a->at[i], size * o->vector };
        if (!access_is_aligned(&x)) /* alignment of the whole vector */
            return;
        x.size = size;
        for (int e = 0; e < o->vector; e++, x.address += size)
            if (!update_word(&x, e, &found[e][i]))
                return;
    }
    grid_race_stored(w, o);
    for (int e = 0; e < o->vector; e++)
        write_lanes(w->file + o->dst[e], found[e], size == 8, mask);
}

void exec_atom(warp *w, const op *o, lane_mask mask)
{
    w->polls++;
    access_by_space(w, o, mask, atom_lanes);
    warp_suspend_cooperative(w, o);
}
