/* cp.async.bulk: copies of a multiple of 16 bytes that one thread starts.
 *
 * A load from global to shared memory completes at an mbarrier, which counts its bytes. The thread
 * of a store waits for it in groups. The source is read when the copy starts; the destination is
 * written when it completes. In between, no thread may access the destination of a load or write
 * the source of a store. A proxy fence must separate ordinary stores from a copy. */
#include "emu/run/async.h"
#include "emu/check/shared_race.h"
#include "emu/check/undefined.h"

enum { PIECE = 16 };

/* Addresses of a copy, per lane. */
typedef struct places {
    addresses to, from, at; /* at: address of the mbarrier */
} places;

static bool check_size(warp *w, const op *o, int lane, u32 size)
{
    if (size % PIECE == 0)
        return true;
    return warp_fault(w, o, lane, EMU_MISALIGNED, 0,
                      "a bulk copy of %u bytes; the size must be a multiple of %d", size, PIECE);
}

static bulk_copy *new_bulk_copy(warp *w, const op *o, int lane, u32 size)
{
    async_state *s = async_state_of(w->machine);
    bulk_copy *c = s->spare_bulk, **end = &s->bulk;
    uint8_t *bytes = c && c->room >= size ? c->bytes : NULL;
    size_t room = bytes ? c->room : size;
    if (c)
        s->spare_bulk = c->next;
    else
        c = arena_zalloc(w->machine->arena, sizeof *c);
    if (!bytes)
        bytes = arena_alloc(w->machine->arena, size + 1);
    *c =
        (bulk_copy){ .warp = w, .op = o, .lane = lane, .size = size, .room = room, .bytes = bytes };
    while (*end)
        end = &(*end)->next;
    return *end = c;
}

/* Checks or transfers of each piece of a copy. */
typedef enum piece_access {
    IS_IN_SHARED,
    TOUCHES_SHARED, /* with the race check of an access by the thread */
    IS_IN_GLOBAL,
    READS_GLOBAL,
    WRITES_GLOBAL,
} piece_access;

static bool access_pieces(access x, size_t size, uint8_t *bytes, piece_access how)
{
    size_t offset;
    x.size = PIECE;
    for (size_t done = 0; done < size; done += PIECE, x.address += PIECE) {
        bool good = how == IS_IN_SHARED     ? access_shared_place(&x, &offset)
                    : how == TOUCHES_SHARED ? access_array(&x) != NULL
                    : how == IS_IN_GLOBAL   ? access_global(&x) != NULL
                    : how == READS_GLOBAL   ? access_read(&x, bytes + done) != NULL
                                            : access_write(&x, NULL, bytes + done);
        if (!good)
            return false;
    }
    return true;
}

static bool find_shared(const access *x, u32 size, size_t *offset)
{
    return access_pieces(*x, size, NULL, IS_IN_SHARED) && (!size || access_shared_place(x, offset));
}

static bool check_fenced(const access *x, size_t offset, u32 size)
{
    const machine *m = x->warp->machine;
    unsigned other = 0;
    return shared_is_fenced(&m->shared, offset, size, thread_of(x->warp, x->lane), &other) ||
           ACCESS_CHECK(x, EMU_CHECK_RACE,
                        "race: a bulk copy accesses bytes that thread %u of the block stored, with "
                        "no fence.proxy.async in between",
                        other);
}

static void begin_load(warp *w, const op *o, int lane, const places *p)
{
    machine *m = w->machine;
    u32 size = get_u32(source(w, o, 2), lane);
    access to = { w, o, lane, ACCESS_STORE, SPACE_SHARED, p->to.at[lane], PIECE };
    access from = { w, o, lane, ACCESS_LOAD, SPACE_GLOBAL, p->from.at[lane], PIECE };
    size_t offset = 0;
    mbarrier *b = mbarrier_at(w, o, lane, p->at.at[lane]);
    if (!b || !check_size(w, o, lane, size) || !find_shared(&to, size, &offset) ||
        !check_fenced(&to, offset, size))
        return;
    if (!b->fenced &&
        !ACCESS_CHECK(&to, EMU_CHECK_RACE,
                      "race: a bulk copy completes at an mbarrier with no fence.mbarrier_init or "
                      "fence.proxy.async since its mbarrier.init"))
        return;
    bulk_copy *c = new_bulk_copy(w, o, lane, size);
    c->loads = true;
    c->barrier = (unsigned)(b - m->async->barriers.items);
    c->offset = offset;
    access_count_bulk(w, from.address, size, ACCESS_LOAD);
    if (access_pieces(from, size, c->bytes, READS_GLOBAL) &&
        access_pieces(to, size, NULL, TOUCHES_SHARED))
        shared_begin_copy(&m->shared, offset, size, thread_of(w, lane));
}

static void begin_store(warp *w, const op *o, int lane, const places *p)
{
    machine *m = w->machine;
    u32 size = get_u32(source(w, o, 2), lane);
    access from = { w, o, lane, ACCESS_LOAD, SPACE_SHARED, p->from.at[lane], PIECE };
    access to = { w, o, lane, ACCESS_STORE, SPACE_GLOBAL, p->to.at[lane], PIECE };
    size_t offset = 0;
    if (!check_size(w, o, lane, size) || !find_shared(&from, size, &offset) ||
        !access_pieces(to, size, NULL, IS_IN_GLOBAL) ||
        !access_pieces(from, size, NULL, TOUCHES_SHARED) || !check_fenced(&from, offset, size))
        return;
    if (undefined_bytes(m, SPACE_SHARED, m->shared.bytes + offset, size) &&
        !ACCESS_CHECK(
            &from, EMU_CHECK_UNDEFINED,
            "undefined: a bulk copy to global memory stores values that were never initialised"))
        return;
    bulk_copy *c = new_bulk_copy(w, o, lane, size);
    c->group = m->async->groups[w->index][lane];
    c->offset = offset;
    c->address = to.address;
    memcpy(c->bytes, m->shared.bytes + offset, size);
    access_count_bulk(w, to.address, size, ACCESS_STORE);
    shared_begin_read(&m->shared, offset, size, thread_of(w, lane));
}

/* Sources: to, from, size, mbarrier. dst has the mbarrier's address offset and address64. */
void exec_bulk_copy(warp *w, const op *o, lane_mask mask)
{
    bool loads = o->space == SPACE_SHARED;
    places p;
    op at = *o;
    at.src[0] = o->src[3];
    at.offset = (int32_t)o->dst[0];
    at.address64 = o->dst[1];
    access_gather(w, o, mask, &p.to);
    access_gather_second(w, o, mask, &p.from);
    if (loads)
        access_gather(w, &at, mask, &p.at);
    EACH_LANE (i, mask)
        if (!has_fault(w->machine))
            (loads ? begin_load : begin_store)(w, o, i, &p);
}

void exec_bulk_prefetch(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    access_gather(w, o, mask, &a);
    for (int i = 0; i < WARP_LANES && !has_fault(w->machine); i++) {
        access x = { w, o, i, ACCESS_PREFETCH, SPACE_GLOBAL, a.at[i], PIECE };
        u32 size = get_u32(source(w, o, 1), i);
        if (!(mask >> i & 1) || !check_size(w, o, i, size))
            continue;
        access_count_bulk(w, a.at[i], size, ACCESS_PREFETCH);
        access_pieces(x, size, NULL, IS_IN_GLOBAL);
    }
}

void exec_bulk_commit(warp *w, const op *o, lane_mask mask)
{
    async_state *s = async_state_of(w->machine);
    (void)o;
    for (int i = 0; i < WARP_LANES; i++)
        s->groups[w->index][i] += mask >> i & 1;
}

/* Completes the stores of all groups except the newest ones that each lane leaves pending. */
static void finish_stores(warp *w, lane_mask mask, const lanes32 *open, bool only_reads)
{
    machine *m = w->machine;
    async_state *s = async_state_of(m);
    for (bulk_copy **at = &s->bulk; *at && !has_fault(m);) {
        bulk_copy *c = *at;
        bool own = !c->loads && c->warp == w && mask >> c->lane & 1;
        u64 newest = s->groups[w->index][c->lane];
        if (!own || (open && (u64)c->group + open->u32[c->lane] >= newest)) {
            at = &c->next;
            continue;
        }
        if (!c->has_read) /* from now on a barrier lets others write the source */
            shared_end_read(&m->shared, c->offset, c->size);
        c->has_read = true;
        access x = { w, c->op, c->lane, ACCESS_STORE, SPACE_GLOBAL, c->address, PIECE };
        if (only_reads)
            at = &c->next;
        else if (access_pieces(x, c->size, c->bytes, WRITES_GLOBAL) && !has_fault(m))
            LIST_MOVE(c, at, s->spare_bulk);
    }
}

void exec_bulk_wait(warp *w, const op *o, lane_mask mask)
{
    finish_stores(w, mask, source(w, o, 0), o->variant);
}

void bulk_exit(warp *w, const op *o, lane_mask mask)
{
    for (const bulk_copy *c = w->machine->async->bulk; c; c = c->next)
        if (!c->loads && !c->has_read && c->warp == w && mask >> c->lane & 1 &&
            !WARP_CHECK(w, o, c->lane, EMU_CHECK_RACE, 0,
                        "race: the thread ends while its bulk copy of line %u may still read "
                        "shared memory; wait with cp.async.bulk.wait_group",
                        c->op->line))
            return;
    finish_stores(w, mask, NULL, false);
}
