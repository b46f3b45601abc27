/* ld and st. Accesses to global memory are done for a whole warp at once if all lanes hit one
 * allocation, and lane by lane if one may be at fault. */
#include "emu/check/grid_order.h"
#include "emu/check/overlap_order.h"
#include "emu/check/undefined.h"
#include "emu/run/access.h"

typedef struct common_memory {
    allocation *of;        /* NULL: different allocations, or some lane needs a closer look */
    uint64_t lowest, size; /* address and size of the range */
    const uint8_t *bytes;  /* its contents */
} common_memory;

static common_memory find_common(const warp *w, const op *o, const addresses *a, unsigned size,
                                 access_kind kind)
{
    enum { MOST_BYTES = 2048 }; /* checked for initialisation at once */
    const address_span span = span_of(a->at);
    uint64_t lowest = span.lowest, bytes = span.highest - lowest + size;
    allocation *found = memory_find(w->machine->memory, lowest);
    if (span.any & (size - 1) || o->space == SPACE_CONST || !found || found->freed ||
        !allocation_holds(found, lowest, bytes))
        return (common_memory){ .of = NULL };
    if (kind != ACCESS_LOAD
            ? found->read_only || found->rights
            : found->initialised &&
                  (bytes > MOST_BYTES || !allocation_is_initialised(found, lowest, bytes)))
        return (common_memory){ .of = NULL };
    const uint8_t *from = allocation_piece(found, lowest, bytes);
    return (common_memory){ from ? found : NULL, lowest, bytes, from };
}

static uint64_t load_value(const uint8_t *from, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, from, size);
    return value;
}

#define LOAD_LANES(T)                                            \
    for (int i = 0; i < WARP_LANES; i++) {                       \
        T value;                                                 \
        memcpy(&value, bytes + (a->at[i] - base), sizeof value); \
        to[i] = value;                                           \
    }                                                            \
    break

static void load_lanes(const uint8_t *bytes, const addresses *a, uint64_t base, unsigned size,
                       uint64_t *to)
{
    switch (size) {
    case 1:
        LOAD_LANES(uint8_t);
    case 2:
        LOAD_LANES(uint16_t);
    case 4:
        LOAD_LANES(uint32_t);
    default:
        LOAD_LANES(uint64_t);
    }
}

typedef uint64_t elements[MAX_VECTOR][WARP_LANES];

const uint8_t *access_read(const access *x, uint8_t *room)
{
    if (space_has_arrays(x->space))
        return access_array(x);
    return global_read(x, room) ? room : NULL;
}

/* Writes loaded values to registers. Wider registers get signed types sign-extended. */
static void store_results(warp *w, const op *o, elements from, lane_mask mask)
{
    unsigned bits = emu_type_bits(o->type);
    bool extend = emu_type_kind(o->type) == KIND_SIGNED && bits < o->dst_bits;
    uint64_t sign = extend ? UINT64_C(1) << (bits - 1) : 0;
    uint64_t all = o->dst_bits < 64 ? (UINT64_C(1) << o->dst_bits) - 1 : UINT64_MAX;
    for (unsigned e = 0; e < o->vector; e++) {
        if (o->dst_bits == 64) {
            lanes64 wide;
            for (int i = 0; i < WARP_LANES; i++)
                wide.u64[i] = (from[e][i] ^ sign) - sign;
            write_lanes64(w->file + o->dst[e], &wide, mask);
        } else {
            lanes32 narrow;
            for (int i = 0; i < WARP_LANES; i++)
                narrow.u32[i] = (uint32_t)(((from[e][i] ^ sign) - sign) & all);
            write_lanes32(w->file + o->dst[e], &narrow, mask);
        }
    }
}

/* Notes a load of a speculative block. Returns false if the block is abandoned. Clears memory->of
 * if the block has stored there. */
static bool load_speculatively(warp *w, const op *o, const addresses *a, lane_mask mask,
                               unsigned size, common_memory *memory)
{
    speculation *s = w->machine->speculation;
    if (o->order) {
        speculation_abandon(w);
        return false;
    }
    if (memory->of && !speculation_sees_memory(s, memory->of, memory->lowest, memory->size))
        memory->of = NULL;
    if (memory->of)
        speculation_load_lanes(s, memory->of, a->at, mask, size);
    return true;
}

static void load_warp(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask)
{
    elements loaded;
    unsigned size = emu_type_bytes(o->type), total = size * o->vector;
    common_memory memory = { .of = NULL };
    if (!space_has_arrays(space))
        memory = find_common(w, o, a, total, ACCESS_LOAD);
    bool carries = space_has_arrays(space) && undefined_carries(w, o);
    if (w->machine->speculation && !space_has_arrays(space) &&
        !load_speculatively(w, o, a, mask, total, &memory))
        return;
    const allocation *common = memory.of;
    access_count(w, o, space, a, mask, ACCESS_LOAD);
    access x = { w, o, 0, ACCESS_LOAD, space, 0, total };
    if (common && !overlap_lanes(&x, a, mask, common))
        return;
    const uint8_t *bytes_of_all = common ? memory.bytes : NULL;
    if (space == SPACE_SHARED && !carries)
        bytes_of_all = access_shared_lanes(w, o, a, mask, total, ACCESS_LOAD, &memory.lowest);
    for (unsigned e = 0; bytes_of_all && e < o->vector; e++)
        load_lanes(bytes_of_all + e * size, a, memory.lowest, size, loaded[e]);
    for (x.lane = 0; common && common->shadow && x.lane < WARP_LANES; x.lane++) {
        x.address = a->at[x.lane];
        if (mask >> x.lane & 1 && !grid_race_load(&x, common))
            return;
    }
    for (int i = 0; !bytes_of_all && i < WARP_LANES; i++) {
        uint8_t room[64] = { 0 };
        const uint8_t *bytes = room;
        x.lane = i;
        x.address = a->at[i];
        if (mask >> i & 1 && !(bytes = access_read(&x, room)))
            return;
        if (carries && mask >> i & 1)
            undefined_load(w, o, i, space, bytes);
        for (unsigned e = 0; e < o->vector; e++)
            loaded[e][i] = load_value(bytes + e * size, size);
    }
    store_results(w, o, loaded, mask);
}

static void store_warp(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask)
{
    unsigned size = emu_type_bytes(o->type), total = size * o->vector;
    allocation *common =
        space_has_arrays(space) ? NULL : find_common(w, o, a, total, ACCESS_STORE).of;
    bool carries = undefined_carries(w, o);
    access_count(w, o, space, a, mask, ACCESS_STORE);
    access x = { w, o, 0, ACCESS_STORE, space, 0, total };
    if (carries && !space_has_arrays(space) && !undefined_output(w, o, mask))
        return;
    if (common && !overlap_lanes(&x, a, mask, common))
        return;
    uint64_t lowest;
    uint8_t *shared = space == SPACE_SHARED && !carries
                          ? access_shared_lanes(w, o, a, mask, total, ACCESS_STORE, &lowest)
                          : NULL;
    EACH_LANE (i, mask) {
        x.lane = i;
        x.address = a->at[i];
        uint8_t room[64], *bytes = shared                    ? shared + (a->at[i] - lowest)
                                   : space_has_arrays(space) ? access_array(&x)
                                                             : room;
        for (unsigned e = 0; bytes && e < o->vector; e++) {
            uint64_t value = get_bits(source(w, o, (int)e + 1), i, o->src_bits == 64);
            memcpy(bytes + e * size, &value, size);
        }
        if (bytes && carries && space_has_arrays(space))
            undefined_store(w, o, i, space, bytes);
        if (!bytes || (bytes == room && !access_write(&x, common, bytes)))
            return;
    }
    if (!space_has_arrays(space))
        grid_race_stored(w, o);
}

static void load_param(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    unsigned size = emu_type_bytes(o->type), total = size * o->vector;
    elements loaded;
    addresses a;
    access_gather(w, o, mask, &a);
    uint64_t others = 0;
    for (int i = 0; i < WARP_LANES; i++)
        others |= a.at[i] ^ a.at[0];
    int lanes = others ? WARP_LANES : 1; /* mostly all lanes load the same */
    for (int i = 0; i < lanes; i++) {
        uint64_t index = (a.at[i] >> PARAM_STRIDE_LOG2) - 1;
        uint64_t offset = a.at[i] & ((UINT64_C(1) << PARAM_STRIDE_LOG2) - 1);
        int lane = mask >> i & 1 ? i : lowest_lane(mask);
        access x = { w, o, lane, ACCESS_LOAD, SPACE_PARAM, offset, total };
        if (!access_is_aligned(&x))
            return;
        const param *p = index < m->entry->params.count ? &m->entry->params.items[index] : NULL;
        if (!p || offset + total > p->size) {
            ACCESS_FAULT(&x, EMU_OUT_OF_BOUNDS,
                         "out of bounds: %u-byte parameter load at byte %llu of '%s' of %llu bytes",
                         total, (ull)offset, p ? p->name : "no parameter", p ? (ull)p->size : 0);
            return;
        }
        for (unsigned e = 0; e < o->vector; e++)
            loaded[e][i] = load_value(m->params + p->offset + offset + e * size, size);
    }
    for (unsigned e = 0; e < o->vector; e++)
        for (int i = lanes; i < WARP_LANES; i++)
            loaded[e][i] = loaded[e][0];
    store_results(w, o, loaded, mask);
}

void exec_ld(warp *w, const op *o, lane_mask mask)
{
    w->polls += o->strong;
    if (o->space == SPACE_PARAM)
        load_param(w, o, mask);
    else
        access_by_space(w, o, mask, load_warp);
    warp_suspend_cooperative(w, o);
}

void exec_st(warp *w, const op *o, lane_mask mask)
{
    if (o->space == SPACE_PARAM || o->space == SPACE_CONST)
        warp_fault(w, o, lowest_lane(mask), EMU_READ_ONLY, 0,
                   "store to %s memory, which is read-only",
                   o->space == SPACE_PARAM ? "parameter" : "constant");
    else
        access_by_space(w, o, mask, store_warp);
}

/* Checks prefetched addresses: a device ignores an invalid one, but it is a bug of the kernel. */
void exec_prefetch(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    access_gather(w, o, mask, &a);
    if (o->space == SPACE_GLOBAL)
        access_count(w, o, SPACE_GLOBAL, &a, mask, ACCESS_PREFETCH);
    for (int i = 0; i < WARP_LANES && o->space == SPACE_GLOBAL && !has_fault(w->machine); i++)
        if (mask >> i & 1)
            access_global(&(access){ w, o, i, ACCESS_PREFETCH, SPACE_GLOBAL, a.at[i], 1 });
}
