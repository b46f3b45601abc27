/* atom and red: one lane after another, in the order of the lanes. */
#include "emu/access.h"
#include "emu/halves.h"

static u64 add_floats(ptx_type type, u64 a, u64 b)
{
    u64 sum = 0;
    if (type == TYPE_f16) {
        sum = add_half((f16)a, (f16)b, 0);
    } else if (type == TYPE_f16x2) {
        sum = both2(add_half, (u32)a, (u32)b, 0);
    } else if (type == TYPE_bf16) {
        sum = add_bfloat((bf16)a, (bf16)b, 0);
    } else if (type == TYPE_bf16x2) {
        sum = both2(add_bfloat, (u32)a, (u32)b, 0);
    } else if (type == TYPE_f32) {
        float x, y;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        x = canonical(x + y);
        memcpy(&sum, &x, sizeof x);
    } else {
        double x, y;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        x = canonical_double(x + y);
        memcpy(&sum, &x, sizeof x);
    }
    return sum;
}

static bool less(ptx_type type, u64 a, u64 b)
{
    if (type == TYPE_s32)
        return (s32)a < (s32)b;
    return type == TYPE_s64 ? (s64)a < (s64)b : a < b;
}

/* What the operation leaves in memory where it found old. */
static u64 apply(ptx_combine how, ptx_type type, u64 old, u64 b, u64 c)
{
    switch (how) {
    case COMBINE_ADD:
        return emu_type_kind(type) == KIND_FLOAT ? add_floats(type, old, b) : old + b;
    case COMBINE_MIN:
        return less(type, b, old) ? b : old;
    case COMBINE_MAX:
        return less(type, old, b) ? b : old;
    case COMBINE_INC:
        return old >= b ? 0 : old + 1;
    case COMBINE_DEC:
        return old == 0 || old > b ? b : old - 1;
    case COMBINE_EXCH:
        return b;
    case COMBINE_CAS:
        return old == b ? c : old;
    case COMBINE_AND:
        return old & b;
    case COMBINE_OR:
        return old | b;
    default:
        return old ^ b;
    }
}

static u64 operand_of(const warp *w, const op *o, int which, int lane)
{
    return emu_type_bits((ptx_type)o->type) == 64 ? get_u64(source(w, o, which), lane)
                                                  : get_u32(source(w, o, which), lane);
}

/* One lane's operation; false after a fault. */
static bool atom(warp *w, const op *o, int lane, ptx_space space, u64 address, u64 *old)
{
    unsigned size = emu_type_bytes((ptx_type)o->type);
    allocation *a = NULL;
    uint8_t *bytes = NULL;
    *old = 0;
    if (space == SPACE_GLOBAL) {
        a = access_global(w, o, lane, address, size, ACCESS_ATOMIC);
        if (!a || !grid_race_load(w, o, lane, a, address, size))
            return false;
        allocation_read(a, address, old, size);
    } else {
        bytes = access_array(w, o, lane, space, address, size, ACCESS_ATOMIC);
        if (!bytes)
            return false;
        memcpy(old, bytes, size);
    }
    u64 c = o->combine == COMBINE_CAS ? operand_of(w, o, 2, lane) : 0;
    u64 new = apply((ptx_combine)o->combine, (ptx_type)o->type, *old, operand_of(w, o, 1, lane), c);
    if (!a)
        memcpy(bytes, &new, size);
    else if (o->combine == COMBINE_CAS && *old != operand_of(w, o, 1, lane))
        return true;
    else if (!grid_race_store(w, o, lane, a, address, &new, size))
        return false;
    else
        allocation_write(a, address, &new, size);
    return true;
}

void exec_atom(warp *w, const op *o, lane_mask mask)
{
    static const ptx_space spaces[] = { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL };
    addresses all;
    lanes32 narrow;
    lanes64 wide;
    memset(&narrow, 0, sizeof narrow);
    memset(&wide, 0, sizeof wide);
    access_gather(w, o, mask, &all);
    for (int s = 0; s < 3; s++) {
        addresses a = all;
        lane_mask lanes = o->space == SPACE_GENERIC ? access_split(&a, spaces[s], mask)
                          : o->space == spaces[s]   ? mask
                                                    : 0;
        for (int i = 0; i < WARP_LANES; i++) {
            if (!(lanes >> i & 1))
                continue;
            if (!atom(w, o, i, spaces[s], a.at[i], &wide.u64[i]))
                return;
            narrow.u32[i] = (u32)wide.u64[i];
        }
    }
    grid_race_stored(w, o);
    if (emu_type_bits((ptx_type)o->type) == 64)
        write_lanes64(w->file + o->dst[0], &wide, mask);
    else
        write_lanes32(w->file + o->dst[0], &narrow, mask);
}
