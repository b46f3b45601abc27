#include "emu/run/access.h"
#include "emu/check/grid_order.h"
#include "emu/check/overlap_order.h"

static const char *const space_names[] = { "generic", "global",    "shared",
                                           "local",   "parameter", "constant" };
static const char *const kind_names[] = { "load", "store", "atomic operation", "prefetch" };

/* Describes an access: "4-byte global load at 0x1000". */
static const char *describe_access(const access *x)
{
    return arena_format(x->warp->machine->messages, "%u-byte %s %s at 0x%llx", x->size,
                        space_names[x->space], kind_names[x->kind], (ull)x->address);
}

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

void access_gather_second(const warp *w, const op *o, lane_mask mask, addresses *a)
{
    op second = *o;
    second.src[0] = o->src[1];
    second.offset = o->offset2;
    second.address64 = o->variant;
    access_gather(w, &second, mask, a);
}

void access_by_space(warp *w, const op *o, lane_mask mask, access_lanes *each)
{
    static const ptx_space spaces[] = { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL };
    addresses a;
    access_gather(w, o, mask, &a);
    if (o->space != SPACE_GENERIC) {
        each(w, o, (ptx_space)o->space, &a, mask);
        return;
    }
    for (int s = 0; s < 3; s++) {
        addresses part;
        lane_mask in = 0;
        for (int i = 0; i < WARP_LANES; i++)
            in |= (lane_mask)(space_at(a.at[i]) == spaces[s]) << i;
        in &= mask;
        for (int i = 0; in && i < WARP_LANES; i++)
            part.at[i] = a.at[in >> i & 1 ? i : lowest_lane(in)] - space_window(spaces[s]);
        if (in && !has_fault(w->machine))
            each(w, o, spaces[s], &part, in);
    }
}

bool access_is_aligned(const access *x)
{
    bool power_of_2 = !(x->size & (x->size - 1)); /* the usual case, without a slow division */
    if (power_of_2 ? !(x->address & (x->size - 1)) : x->address % x->size == 0)
        return true;
    return ACCESS_FAULT(x, EMU_MISALIGNED, "%s is not aligned to %u bytes", describe_access(x),
                        x->size);
}

/* Reports the distance by which an access misses an array or allocation. */
static void report_miss(const access *x, const char *of, uint64_t start, uint64_t length)
{
    arena *a = x->warp->machine->messages;
    const char *where = "crosses the end";
    if (x->address < start)
        where = arena_format(a, "is %llu bytes before the start", (ull)(start - x->address));
    else if (x->address - start >= length)
        where = arena_format(a, "is %llu bytes past the end", (ull)(x->address - start - length));
    ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS, "out of bounds: %s %s of %s of %llu bytes",
                 describe_access(x), where, of, (ull)length);
}

/* Returns true if all bytes except padding are initialised, in memory or by the running block. */
static bool is_initialised(const access *x, const allocation *a)
{
    const speculation *s = x->warp->machine->speculation;
    bool good = allocation_is_initialised(a, x->address, x->size);
    for (unsigned i = 0; !good && i < x->size; i++) {
        uint64_t at = x->address + i;
        if (!(x->op->unused >> i & 1) && !allocation_is_initialised(a, at, 1) &&
            !(s && speculation_is_initialised(s, a, at, 1)))
            return false;
    }
    return true;
}

allocation *access_global(const access *x)
{
    if (!access_is_aligned(x))
        return NULL;
    allocation *a = memory_find(x->warp->machine->memory, x->address);
    if (!a)
        ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS, "out of bounds: %s is in no allocation",
                     describe_access(x));
    else if (a->rights && x->address - a->address < a->size &&
             !allocation_permits(a, x->address, x->size, false))
        ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS,
                     "out of bounds: %s in a reserved range without access rights",
                     describe_access(x));
    else if (!allocation_holds(a, x->address, x->size))
        report_miss(x, a->freed ? "a freed allocation" : "an allocation", a->address, a->size);
    else if (a->freed)
        ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS, "use after free: %s in a freed allocation of %llu bytes",
                     describe_access(x), (ull)a->size);
    else if (x->op->space == SPACE_CONST && !(a->variable && a->read_only))
        ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS, "out of bounds: %s is in no .const variable",
                     describe_access(x));
    else if (x->kind == ACCESS_PREFETCH)
        return a;
    else if (x->kind != ACCESS_LOAD &&
             (a->read_only || (a->rights && !allocation_permits(a, x->address, x->size, true))))
        ACCESS_FAULT(x, EMU_READ_ONLY, "%s in read-only memory", describe_access(x));
    else if (x->kind == ACCESS_STORE || is_initialised(x, a))
        return a;
    else if (ACCESS_CHECK(x, EMU_CHECK_UNINIT,
                          "uninitialised: %s, byte %llu of an allocation of %llu bytes, reads "
                          "bytes that were never written",
                          describe_access(x), (ull)(x->address - a->address), (ull)a->size) ||
             overlap_excuses(x->warp, x->lane))
        return a;
    return NULL;
}

static uint64_t array_size(const machine *m, const variable *v)
{
    return !v->dynamic               ? v->size
           : v->space == SPACE_LOCAL ? m->stack_size
                                     : m->config->dynamic_shared;
}

/* Returns the array that contains size bytes at an address, or NULL. */
static const variable *array_of(const machine *m, const variables *all, uint64_t address,
                                uint64_t size)
{
    for (size_t i = 0; i < all->list.count; i++) {
        const variable *v = all->list.items[i];
        uint64_t length = array_size(m, v), at = address - v->offset;
        if (at <= length && size <= length - at)
            return v;
    }
    return NULL;
}

/* Returns the array that contains an access, or NULL and a fault that names the nearest array. */
static const variable *find_array(const access *x)
{
    if (!access_is_aligned(x))
        return NULL;
    const machine *m = x->warp->machine;
    const variables *all = x->space == SPACE_SHARED ? &m->entry->shared : &m->entry->local;
    const variable *found = array_of(m, all, x->address, x->size), *nearest = NULL;
    if (found)
        return found;
    for (size_t i = 0; i < all->list.count; i++) {
        const variable *v = all->list.items[i];
        if (!nearest || (v->offset <= x->address &&
                         (v->offset > nearest->offset || nearest->offset > x->address)))
            nearest = v;
    }
    if (nearest)
        report_miss(x, arena_format(m->messages, "'%s'", nearest->name), nearest->offset,
                    array_size(m, nearest));
    else
        ACCESS_FAULT(x, EMU_OUT_OF_BOUNDS,
                     "out of bounds: %s; the kernel has no array in that memory",
                     describe_access(x));
    return NULL;
}

/* Returns true if two lanes of an instruction store the same value to the same address: no race. */
static bool is_same_store(const access *x, unsigned other)
{
    const warp *w = x->warp;
    const op *o = x->op;
    int lane = (int)(other % WARP_LANES);
    if (!o->store || other / WARP_LANES != w->index || lane >= x->lane)
        return false;
    addresses a;
    access_gather(w, o, ALL_LANES, &a);
    if (a.at[x->lane] != a.at[lane])
        return false;
    for (int e = 1; e <= o->vector; e++)
        if (get_bits(source(w, o, e), x->lane, o->src_bits == 64) !=
            get_bits(source(w, o, e), lane, o->src_bits == 64))
            return false;
    return true;
}

/* Reports a problem. Returns false after a fault. */
static bool passes_shared(const access *x, const variable *v, shared_problem problem,
                          unsigned other)
{
    emu_check check = problem == SHARED_UNWRITTEN ? EMU_CHECK_UNINIT : EMU_CHECK_RACE;
    if (warp_passes(x->warp, x->op, check))
        return true;
    arena *a = x->warp->machine->messages;
    const char *what = arena_format(a, "%u-byte shared %s at byte %llu of '%s'", x->size,
                                    kind_names[x->kind], (ull)(x->address - v->offset), v->name);
    const char *who = other < MAX_WARPS * WARP_LANES
                          ? arena_format(a, "thread %u of the block", other)
                          : "several threads";
    const char *why = " reads bytes that were never written";
    if (problem == SHARED_PENDING)
        why = arena_format(a, ", to which a cp.async of %s is in flight", who);
    else if (problem == SHARED_PENDING_READ)
        why = arena_format(a, ", which an asynchronous copy or wgmma of %s may still read", who);
    else if (problem == SHARED_MBARRIER)
        why = " accesses an mbarrier; only mbarrier instructions may do that";
    else if (problem != SHARED_UNWRITTEN && other >= FIRST_COPIER &&
             other < FIRST_COPIER + SHARED_COPIERS)
        why = ", which an asynchronous copy wrote; this thread has not waited at its mbarrier";
    else if (problem != SHARED_UNWRITTEN)
        why = arena_format(a, ", which %s %s with no barrier in between", who,
                           problem == SHARED_WRITE_AFTER_READ ? "read" : "wrote");
    return ACCESS_CHECK(x, check, "%s: %s%s",
                        problem == SHARED_UNWRITTEN ? "uninitialised" : "race", what, why);
}

/* Notes an access to shared memory, 8 bytes at a time. Returns its bytes, or NULL after a fault. */
static uint8_t *shared_bytes(const access *x, size_t offset, const variable *v)
{
    shared_memory *s = &x->warp->machine->shared;
    bool stores = x->kind == ACCESS_STORE;
    shared_access how = x->kind == ACCESS_ATOMIC ? SHARED_ATOMIC
                        : !stores                ? SHARED_READ
                        : x->op->strong          ? SHARED_ATOMIC_WRITE
                                                 : SHARED_WRITE;
    unsigned size = x->size < 8 ? x->size : 8, other = 0, thread = thread_of(x->warp, x->lane);
    for (unsigned done = 0; done < x->size; done += size) {
        shared_problem problem = shared_note(s, offset + done, size, thread, how, &other);
        bool partly = problem == SHARED_UNWRITTEN && x->op->unused;
        problem = partly ? SHARED_FINE : problem;
        for (unsigned i = done; partly && i < done + size && problem == SHARED_FINE; i++)
            if (!(x->op->unused >> i & 1))
                problem = shared_note(s, offset + i, 1, thread, how, &other);
        if (problem == SHARED_FINE ||
            (problem == SHARED_WRITE_AFTER_WRITE && is_same_store(x, other)))
            continue;
        access part = *x;
        part.address += done;
        part.size = size;
        if (!passes_shared(&part, v, problem, other))
            return NULL;
        shared_note_anyway(s, offset + done, size, thread, how);
    }
    return s->bytes + offset;
}

static uint8_t *local_bytes(const access *x)
{
    machine *m = x->warp->machine;
    size_t at = thread_of(x->warp, x->lane) * m->local_bytes + (size_t)(x->address - LOCAL_BASE);
    for (unsigned i = 0; i < x->size; i++) {
        if (x->kind == ACCESS_LOAD && !m->local_written[at + i] && !(x->op->unused >> i & 1) &&
            !ACCESS_CHECK(x, EMU_CHECK_UNINIT,
                          "uninitialised: %s reads bytes that were never written",
                          describe_access(x)))
            return NULL;
        m->local_written[at + i] |= x->kind != ACCESS_LOAD;
    }
    return m->local + at;
}

/* Returns the offset in shared_memory.bytes, where dynamic arrays follow static ones. */
static size_t shared_offset(const access *x, const variable *v)
{
    const variables *all = &x->warp->machine->entry->shared;
    return (size_t)(x->address - SHARED_STATIC_BASE -
                    (v->dynamic ? SHARED_DYNAMIC_BASE - all->end : 0));
}

uint8_t *access_array(const access *x)
{
    const variable *v = find_array(x);
    return !v                        ? NULL
           : x->space == SPACE_LOCAL ? local_bytes(x)
                                     : shared_bytes(x, shared_offset(x, v), v);
}

uint8_t *access_shared_lanes(const warp *w, const op *o, const addresses *a, lane_mask mask,
                             unsigned size, access_kind kind, uint64_t *lowest)
{
    const address_span span = span_of(a->at);
    const variable *v = array_of(w->machine, &w->machine->entry->shared, span.lowest,
                                 span.highest - span.lowest + size);
    if (span.any & (size - 1) || !v || (kind == ACCESS_STORE && o->strong))
        return NULL;
    *lowest = span.lowest;
    shared_memory *s = &w->machine->shared;
    access x = { .warp = (warp *)w, .op = o, .address = *lowest };
    size_t offset = shared_offset(&x, v);
    bool fine = shared_note_lanes(s, offset, a->at, *lowest, mask, size, w->index,
                                  kind == ACCESS_STORE ? SHARED_WRITE : SHARED_READ);
    return fine ? s->bytes + offset : NULL;
}

bool access_shared_place(const access *x, size_t *offset)
{
    const variable *v = find_array(x);
    if (v)
        *offset = shared_offset(x, v);
    return v;
}

static bool note_part(const access *x, size_t offset, const variable *v, unsigned lane, unsigned at,
                      unsigned size)
{
    unsigned other;
    if (x->kind == ACCESS_LOAD &&
        shared_note(&x->warp->machine->shared, offset + at, size, thread_of(x->warp, (int)lane),
                    SHARED_READ, &other) == SHARED_FINE)
        return true;
    access part = *x;
    part.lane = (int)lane;
    part.address += at;
    part.size = size;
    return shared_bytes(&part, offset + at, v);
}

/* Transposed, lane 4 c + i / 2 owns the element of row i and column c. If the bytes of a word have
 * one history, the race check notes the whole word for both of its lanes. */
uint8_t *access_matrix_row(const access *x, unsigned row, bool transposed)
{
    enum { WORDS = 4, WORD = 4, HALF = 2 };
    shared_memory *s = &x->warp->machine->shared;
    const variable *v = find_array(x);
    if (!v)
        return NULL;
    size_t offset = shared_offset(x, v);
    unsigned first = thread_of(x->warp, (int)(transposed ? row / 2 : row * WORDS));
    if (x->kind == ACCESS_LOAD && offset % WORD == 0 &&
        shared_note_matrix_row(s, offset, first, transposed ? 2 * WORDS : 1, transposed ? 2 : 1))
        return s->bytes + offset;
    bool good = true;
    for (unsigned word = 0; good && word < WORDS; word++) {
        unsigned at = word * WORD;
        bool apart = x->kind != ACCESS_LOAD || s->split[(offset + at) / WORD];
        if (!transposed)
            good = note_part(x, offset, v, row * WORDS + word, at, WORD);
        for (unsigned half = 0; transposed && good && half < 2; half++)
            good = note_part(x, offset, v, (2 * word + half) * WORDS + row / 2,
                             apart ? at + half * HALF : at, apart ? HALF : WORD);
    }
    return good ? s->bytes + offset : NULL;
}

bool global_read(const access *x, void *bytes)
{
    machine *m = x->warp->machine;
    speculation *s = m->speculation;
    allocation *a = access_global(x);
    if (!a || !grid_race_load(x, a) || !overlap_lane(x, a))
        return false;
    allocation_read(a, x->address, bytes, x->size);
    if (s)
        speculation_load(s, a, x->address, x->size);
    if (!s || speculation_sees_memory(s, a, x->address, x->size))
        return true;
    speculation_overlay(s, a, x->address, bytes, x->size);
    if ((x->op->non_coherent && m->grid->enabled) || speculation_updates(s, a, x->address, x->size))
        speculation_end_block(m);
    return !has_fault(m);
}

/* Notes the stores in a page's records. Returns false after a race within the block. */
static bool note_stores(const access *x, const allocation *a, const void *bytes, page_stores *t,
                        unsigned at)
{
    const machine *m = x->warp->machine;
    grid_store new = { .block = m->grid->order.block,
                       .time = m->shared.warp_time[x->warp->index],
                       .line = x->op->line,
                       .thread = (uint16_t)thread_of(x->warp, x->lane) };
    for (unsigned i = at >> t->shift; i < (at + x->size) >> t->shift; i++) {
        const grid_store *s = &t->records[i];
        bool changes = s->block && !grid_race_has_seen(x, s);
        if (changes) {
            uint8_t there[64];
            allocation_read(a, x->address, there, x->size);
            speculation_overlay(x->warp->machine->speculation, a, x->address, there, x->size);
            changes = memcmp(there, bytes, x->size) != 0;
        }
        if (changes && !grid_race_passes_overwriting(x, s))
            return false;
        t->records[i] = new;
    }
    return true;
}

/* Stores to the block's log. Returns false if the block is abandoned. */
static bool store_speculatively(const access *x, allocation *a, const void *bytes)
{
    speculation *s = x->warp->machine->speculation;
    uint64_t offset = x->address - a->address;
    unsigned at = (unsigned)(offset % BLOCK_PAGE_BYTES);
    bool may_be_elsewhere = a->rights || a->aliased; /* under other addresses */
    if (x->op->order || may_be_elsewhere || at + x->size > BLOCK_PAGE_BYTES) {
        speculation_abandon(x->warp);
        return false;
    }
    if (speculation_updates(s, a, x->address, x->size)) {
        speculation_end_block(x->warp->machine);
        return false;
    }
    page_stores *t = speculation_stores(s, a, offset, x->size, x->warp->machine->grid->enabled);
    if (t->records && !note_stores(x, a, bytes, t, at))
        return false;
    for (unsigned i = 0; byte_set_has_some(&t->bytes, at, x->size) && i < x->size; i++)
        t->changed |=
            byte_set_has(&t->bytes, at + i) && t->values[at + i] != ((const uint8_t *)bytes)[i];
    byte_set_add(&t->bytes, at, x->size);
    memcpy(t->values + at, bytes, x->size);
    return true;
}

bool access_write(const access *x, allocation *to, const uint8_t *bytes)
{
    const machine *m = x->warp->machine;
    uint64_t watch = m->config->watch;
    if (!to && (!(to = access_global(x)) || !overlap_lane(x, to)))
        return false;
    if (m->speculation ? !store_speculatively(x, to, bytes) : !grid_race_store(x, to, bytes))
        return false;
    if (!m->speculation)
        allocation_write(to, x->address, bytes, x->size);
    if (watch && m->stats && x->address <= watch && watch - x->address < x->size)
        m->stats->watched_line = x->op->line;
    return true;
}
