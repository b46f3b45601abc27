#include "emu/access.h"

static const char *const space_names[] = { "generic", "global",    "shared",
                                           "local",   "parameter", "constant" };
static const char *const kind_names[] = { "load", "store", "atomic operation" };

typedef unsigned long long ull;

void access_gather(const warp *w, const op *o, lane_mask mask, addresses *a)
{
    const void *from = source(w, o, 0);
    if (o->address64)
        for (int i = 0; i < WARP_LANES; i++)
            a->at[i] = get_u64(from, i) + (u64)o->offset;
    else
        for (int i = 0; i < WARP_LANES; i++)
            a->at[i] = get_u32(from, i) + (u64)o->offset;
    if (mask == ALL_LANES)
        return;
    uint64_t first = a->at[lowest_lane(mask)];
    for (int i = 0; i < WARP_LANES; i++)
        a->at[i] = mask >> i & 1 ? a->at[i] : first;
}

lane_mask access_split(addresses *a, ptx_space space, lane_mask mask)
{
    lane_mask in = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        bool shared = a->at[i] - SHARED_WINDOW < WINDOW_BYTES;
        bool local = a->at[i] - LOCAL_WINDOW < WINDOW_BYTES;
        if (space == (shared ? SPACE_SHARED : local ? SPACE_LOCAL : SPACE_GLOBAL))
            in |= (lane_mask)1 << i;
    }
    in &= mask;
    uint64_t window = space == SPACE_SHARED  ? SHARED_WINDOW
                      : space == SPACE_LOCAL ? LOCAL_WINDOW
                                             : 0;
    for (int i = 0; in && i < WARP_LANES; i++)
        a->at[i] = a->at[in >> i & 1 ? i : lowest_lane(in)] - window;
    return in;
}

bool access_is_aligned(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                       unsigned size, access_kind kind)
{
    if (address % size == 0)
        return true;
    warp_fault(w, o, lane, EMU_MISALIGNED, address,
               "%u-byte %s %s at 0x%llx is not aligned to %u bytes", size, space_names[space],
               kind_names[kind], (ull)address, size);
    return false;
}

/* In words, how far an access misses something of so many bytes. */
static void report_miss(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                        unsigned size, access_kind kind, const char *of, uint64_t start,
                        uint64_t length)
{
    const char *what = kind_names[kind], *in = space_names[space];
    if (address < start)
        warp_fault(
            w, o, lane, EMU_OUT_OF_BOUNDS, address,
            "out of bounds: %u-byte %s %s at 0x%llx is %llu bytes before the start of %s of %llu "
            "bytes",
            size, in, what, (ull)address, (ull)(start - address), of, (ull)length);
    else if (address - start < length)
        warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, address,
                   "out of bounds: %u-byte %s %s at 0x%llx crosses the end of %s of %llu bytes",
                   size, in, what, (ull)address, of, (ull)length);
    else
        warp_fault(
            w, o, lane, EMU_OUT_OF_BOUNDS, address,
            "out of bounds: %u-byte %s %s at 0x%llx is %llu bytes past the end of %s of %llu "
            "bytes",
            size, in, what, (ull)address, (ull)(address - start - length), of, (ull)length);
}

allocation *access_global(warp *w, const op *o, int lane, uint64_t address, unsigned size,
                          access_kind kind)
{
    if (!access_is_aligned(w, o, lane, SPACE_GLOBAL, address, size, kind))
        return NULL;
    allocation *a = memory_find(w->machine->memory, address);
    if (!a) {
        warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, address,
                   "out of bounds: %u-byte global %s at 0x%llx is in no allocation", size,
                   kind_names[kind], (ull)address);
    } else if (!allocation_holds(a, address, size)) {
        report_miss(w, o, lane, SPACE_GLOBAL, address, size, kind,
                    a->freed ? "a freed allocation" : "an allocation", a->address, a->size);
    } else if (a->freed) {
        warp_fault(
            w, o, lane, EMU_OUT_OF_BOUNDS, address,
            "use after free: %u-byte global %s at 0x%llx in a freed allocation of %llu bytes", size,
            kind_names[kind], (ull)address, (ull)a->size);
    } else if (o->space == SPACE_CONST && !(a->variable && a->read_only)) {
        warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, address,
                   "out of bounds: %u-byte constant %s at 0x%llx is in no .const variable", size,
                   kind_names[kind], (ull)address);
    } else if (a->read_only && kind != ACCESS_LOAD) {
        warp_fault(w, o, lane, EMU_READ_ONLY, address,
                   "%u-byte global %s at 0x%llx in memory that is read-only", size,
                   kind_names[kind], (ull)address);
    } else if (kind != ACCESS_STORE && !allocation_is_initialised(a, address, size)) {
        warp_fault(w, o, lane, EMU_UNINITIALISED, address,
                   "uninitialised: %u-byte global %s at 0x%llx, byte %llu of an allocation of %llu "
                   "bytes, reads what nothing has written",
                   size, kind_names[kind], (ull)address, (ull)(address - a->address), (ull)a->size);
    } else {
        return a;
    }
    return NULL;
}

static uint64_t array_size(const machine *m, const variable *v)
{
    return v->dynamic ? m->config->dynamic_shared : v->size;
}

/* The array an access is inside of, or NULL and a fault that names the nearest one before it. */
static const variable *find_array(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                                  unsigned size, access_kind kind)
{
    const machine *m = w->machine;
    const variables *all = space == SPACE_SHARED ? &m->entry->shared : &m->entry->local;
    const variable *nearest = NULL;
    for (size_t i = 0; i < all->list.count; i++) {
        const variable *v = all->list.items[i];
        uint64_t length = array_size(m, v);
        if (address - v->offset <= length && size <= length - (address - v->offset))
            return v;
        if (!nearest || (v->offset <= address && v->offset > nearest->offset))
            nearest = v;
    }
    if (nearest)
        report_miss(w, o, lane, space, address, size, kind,
                    arena_format(memory_arena(m->memory), "'%s'", nearest->name), nearest->offset,
                    array_size(m, nearest));
    else
        warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, address,
                   "out of bounds: %u-byte %s %s at 0x%llx and the kernel has no array there", size,
                   space_names[space], kind_names[kind], (ull)address);
    return NULL;
}

/* Lanes that write the same value to the same place in one instruction do not race. */
static bool same_store(const warp *w, const op *o, int lane, unsigned other)
{
    int other_lane = (int)(other % WARP_LANES);
    if (o->exec != exec_st || other / WARP_LANES != w->index || other_lane >= lane)
        return false;
    addresses a;
    access_gather(w, o, ALL_LANES, &a);
    if (a.at[lane] != a.at[other_lane])
        return false;
    for (unsigned e = 1; e <= o->vector; e++)
        if (o->src_bits == 64
                ? get_u64(source(w, o, (int)e), lane) != get_u64(source(w, o, (int)e), other_lane)
                : get_u32(source(w, o, (int)e), lane) != get_u32(source(w, o, (int)e), other_lane))
            return false;
    return true;
}

static bool check_shared(warp *w, const op *o, int lane, uint64_t address, size_t offset,
                         unsigned size, access_kind kind, const variable *v)
{
    static const char *const earlier[] = { [SHARED_WRITE_AFTER_WRITE] = "written",
                                           [SHARED_WRITE_AFTER_READ] = "read",
                                           [SHARED_READ_AFTER_WRITE] = "written" };
    unsigned other = 0, thread = thread_of(w, lane);
    shared_access how = kind == ACCESS_ATOMIC || (o->strong && kind == ACCESS_STORE) ? SHARED_ATOMIC
                        : kind == ACCESS_STORE                                       ? SHARED_WRITE
                                                                                     : SHARED_READ;
    shared_problem problem = shared_note(&w->machine->shared, offset, size, thread, how, &other);
    if (problem == SHARED_FINE)
        return true;
    uint64_t within = address - v->offset;
    if (problem == SHARED_UNWRITTEN) {
        warp_fault(
            w, o, lane, EMU_UNINITIALISED, address,
            "uninitialised: %u-byte shared %s at byte %llu of '%s' reads what nothing has written",
            size, kind_names[kind], (ull)within, v->name);
        return false;
    }
    if (problem == SHARED_PENDING) {
        warp_fault(w, o, lane, EMU_RACE, address,
                   "race: %u-byte shared %s at byte %llu of '%s', where a cp.async of thread %u of "
                   "the block is under way",
                   size, kind_names[kind], (ull)within, v->name, other);
        return false;
    }
    if (problem == SHARED_WRITE_AFTER_WRITE && same_store(w, o, lane, other))
        return true;
    if (other < MAX_WARPS * WARP_LANES)
        warp_fault(
            w, o, lane, EMU_RACE, address,
            "race: %u-byte shared %s at byte %llu of '%s' was %s by thread %u of the block with "
            "no barrier between",
            size, kind_names[kind], (ull)within, v->name, earlier[problem], other);
    else
        warp_fault(w, o, lane, EMU_RACE, address,
                   "race: %u-byte shared %s at byte %llu of '%s' was %s by several threads with no "
                   "barrier between",
                   size, kind_names[kind], (ull)within, v->name, earlier[problem]);
    return false;
}

static uint8_t *local_bytes(warp *w, const op *o, int lane, uint64_t address, unsigned size,
                            access_kind kind)
{
    machine *m = w->machine;
    size_t at = thread_of(w, lane) * m->local_bytes + (size_t)(address - LOCAL_BASE);
    for (unsigned i = 0; i < size; i++) {
        if (kind == ACCESS_LOAD && !m->local_written[at + i]) {
            warp_fault(w, o, lane, EMU_UNINITIALISED, address,
                       "uninitialised: %u-byte local load at 0x%llx reads what nothing has written",
                       size, (ull)address);
            return NULL;
        }
        m->local_written[at + i] = 1;
    }
    return m->local + at;
}

uint8_t *access_array(warp *w, const op *o, int lane, ptx_space space, uint64_t address,
                      unsigned size, access_kind kind)
{
    if (!access_is_aligned(w, o, lane, space, address, size, kind))
        return NULL;
    const variable *v = find_array(w, o, lane, space, address, size, kind);
    if (!v)
        return NULL;
    if (space == SPACE_LOCAL)
        return local_bytes(w, o, lane, address, size, kind);
    machine *m = w->machine;
    size_t offset = (size_t)(v->dynamic ? address - SHARED_DYNAMIC_BASE +
                                              (m->entry->shared.end - SHARED_STATIC_BASE)
                                        : address - SHARED_STATIC_BASE);
    for (unsigned done = 0; done < size; done += 8)
        if (!check_shared(w, o, lane, address + done, offset + done, size < 8 ? size : 8, kind, v))
            return NULL;
    return m->shared.bytes + offset;
}

/* The single allocation that all lanes' accesses lie in, if they do and no lane needs a closer
 * look. */
static allocation *common_allocation(const warp *w, const op *o, const addresses *a, unsigned size,
                                     access_kind kind)
{
    uint64_t lowest = UINT64_MAX, highest = 0, any = 0;
    for (int i = 0; i < WARP_LANES; i++) {
        lowest = a->at[i] < lowest ? a->at[i] : lowest;
        highest = a->at[i] > highest ? a->at[i] : highest;
        any |= a->at[i];
    }
    allocation *found = memory_find(w->machine->memory, lowest);
    if (any & (size - 1) || o->space == SPACE_CONST || !found || found->freed || !found->bytes ||
        (kind == ACCESS_LOAD ? found->initialised != NULL : found->read_only) ||
        !allocation_holds(found, lowest, highest - lowest + size))
        return NULL;
    return found;
}

/* Bytes of a little-endian value. */
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

static void load_global(warp *w, const op *o, const addresses *a, lane_mask mask, elements to)
{
    unsigned size = emu_type_bytes((ptx_type)o->type), total = size * o->vector;
    const allocation *common = common_allocation(w, o, a, total, ACCESS_LOAD);
    for (unsigned e = 0; common && e < o->vector; e++)
        load_lanes(common->bytes + e * size, a, common->address, size, to[e]);
    for (int i = 0; common && common->shadow && i < WARP_LANES; i++)
        if (mask >> i & 1 && !grid_race_load(w, o, i, common, a->at[i], total))
            return;
    if (common)
        return;
    for (int i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        const allocation *found = access_global(w, o, i, a->at[i], total, ACCESS_LOAD);
        if (!found || !grid_race_load(w, o, i, found, a->at[i], total))
            return;
        uint8_t bytes[64];
        allocation_read(found, a->at[i], bytes, total);
        for (unsigned e = 0; e < o->vector; e++)
            to[e][i] = load_value(bytes + e * size, size);
    }
}

static void load_array(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                       elements to)
{
    unsigned size = emu_type_bytes((ptx_type)o->type);
    for (int i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        const uint8_t *bytes =
            access_array(w, o, i, space, a->at[i], size * o->vector, ACCESS_LOAD);
        if (!bytes)
            return;
        for (unsigned e = 0; e < o->vector; e++)
            to[e][i] = load_value(bytes + e * size, size);
    }
}

/* Registers may be wider than what is loaded: signed types are extended by their sign. */
static void store_results(warp *w, const op *o, elements from, lane_mask mask)
{
    unsigned bits = emu_type_bits((ptx_type)o->type);
    bool extend = emu_type_kind((ptx_type)o->type) == KIND_SIGNED && bits < o->dst_bits;
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

static void load_from(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask)
{
    elements loaded;
    access_count(w, o, space, a, mask, ACCESS_LOAD);
    if (space == SPACE_SHARED || space == SPACE_LOCAL) {
        memset(loaded, 0, o->vector * sizeof *loaded);
        load_array(w, o, space, a, mask, loaded);
    } else {
        load_global(w, o, a, mask, loaded);
    }
    if (!has_fault(w->machine))
        store_results(w, o, loaded, mask);
}

static void note_watched(const machine *m, const op *o, uint64_t address, unsigned size)
{
    uint64_t watch = m->config->watch;
    if (watch && m->stats && address <= watch && watch - address < size)
        m->stats->watched_line = o->line;
}

static void store_global(warp *w, const op *o, const addresses *a, lane_mask mask, elements from)
{
    unsigned size = emu_type_bytes((ptx_type)o->type), total = size * o->vector;
    allocation *common = common_allocation(w, o, a, total, ACCESS_STORE);
    for (int i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        allocation *to = common;
        if (!to && !(to = access_global(w, o, i, a->at[i], total, ACCESS_STORE)))
            return;
        uint8_t bytes[64];
        for (unsigned e = 0; e < o->vector; e++)
            memcpy(bytes + e * size, &from[e][i], size);
        if (!grid_race_store(w, o, i, to, a->at[i], bytes, total))
            return;
        allocation_write(to, a->at[i], bytes, total);
        note_watched(w->machine, o, a->at[i], total);
    }
    grid_race_stored(w, o);
}

static void store_array(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                        elements from)
{
    unsigned size = emu_type_bytes((ptx_type)o->type);
    for (int i = 0; i < WARP_LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        uint8_t *bytes = access_array(w, o, i, space, a->at[i], size * o->vector, ACCESS_STORE);
        if (!bytes)
            return;
        for (unsigned e = 0; e < o->vector; e++)
            memcpy(bytes + e * size, &from[e][i], size);
    }
}

static void store_to(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask)
{
    elements values;
    for (unsigned e = 0; e < o->vector; e++)
        for (int i = 0; i < WARP_LANES; i++)
            values[e][i] = o->src_bits == 64 ? get_u64(source(w, o, (int)e + 1), i)
                                             : get_u32(source(w, o, (int)e + 1), i);
    access_count(w, o, space, a, mask, ACCESS_STORE);
    if (space == SPACE_SHARED || space == SPACE_LOCAL)
        store_array(w, o, space, a, mask, values);
    else
        store_global(w, o, a, mask, values);
}

static void access(warp *w, const op *o, lane_mask mask,
                   void (*each)(warp *, const op *, ptx_space, const addresses *, lane_mask))
{
    static const ptx_space spaces[] = { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL };
    addresses a;
    access_gather(w, o, mask, &a);
    if (o->space != SPACE_GENERIC) {
        each(w, o, (ptx_space)o->space, &a, mask);
        return;
    }
    for (int i = 0; i < 3; i++) {
        addresses part = a;
        lane_mask lanes = access_split(&part, spaces[i], mask);
        if (lanes && !has_fault(w->machine))
            each(w, o, spaces[i], &part, lanes);
    }
}

void exec_ld(warp *w, const op *o, lane_mask mask)
{
    access(w, o, mask, load_from);
}

void exec_st(warp *w, const op *o, lane_mask mask)
{
    if (o->space == SPACE_PARAM || o->space == SPACE_CONST)
        warp_fault(w, o, lowest_lane(mask), EMU_READ_ONLY, 0,
                   "store to %s memory, which is read-only", space_names[o->space]);
    else
        access(w, o, mask, store_to);
}

void exec_ld_param(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    unsigned size = emu_type_bytes((ptx_type)o->type), total = size * o->vector;
    elements loaded;
    addresses a;
    access_gather(w, o, mask, &a);
    for (int i = 0; i < WARP_LANES; i++) {
        uint64_t index = (a.at[i] >> PARAM_STRIDE_LOG2) - 1;
        uint64_t offset = a.at[i] & ((UINT64_C(1) << PARAM_STRIDE_LOG2) - 1);
        int lane = mask >> i & 1 ? i : lowest_lane(mask);
        if (!access_is_aligned(w, o, lane, SPACE_PARAM, offset, total, ACCESS_LOAD))
            return;
        const param *p = index < m->entry->params.count ? &m->entry->params.items[index] : NULL;
        if (!p || offset + total > p->size) {
            warp_fault(w, o, lane, EMU_OUT_OF_BOUNDS, offset,
                       "out of bounds: %u-byte parameter load at byte %llu of '%s' of %llu bytes",
                       total, (ull)offset, p ? p->name : "no parameter", p ? (ull)p->size : 0);
            return;
        }
        for (unsigned e = 0; e < o->vector; e++)
            loaded[e][i] = load_value(m->params + p->offset + offset + e * size, size);
    }
    store_results(w, o, loaded, mask);
}
