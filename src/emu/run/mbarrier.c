/* mbarrier: objects in shared memory at which threads arrive and copies complete, in phases. The
 * bytes of an object are opaque; here they have no contents.
 *
 * An arrival releases the accesses visible to its warp, and a thread that observes the completed
 * phase acquires them. This works by warps: towards other warps, an arrival of one lane counts for
 * its whole warp. Lanes of one warp are ordered only if all of them have arrived. */
#include "emu/run/async.h"
#include "emu/check/shared_race.h"

enum {
    OBJECT_BYTES = 8,
    MOST_COUNT = (1 << 20) - 1, /* limit of the pending count and of the tx-count */
    MOST_FAILED_LOOKS = 100000, /* consecutive failed tests until the kernel counts as hanging */
    PENDING_BITS = 20,
};

static mbarrier *find_mbarrier(const async_state *s, size_t offset)
{
    for (size_t i = 0; i < s->barriers.count; i++)
        if (s->barriers.items[i].live && s->barriers.items[i].offset == offset)
            return &s->barriers.items[i];
    return NULL;
}

/* Makes an access to the object. Generic addresses are in the window of shared memory. */
static access access_object(warp *w, const op *o, int lane, access_kind kind, u64 address)
{
    u64 window = o->space == SPACE_GENERIC ? space_window(SPACE_SHARED) : 0;
    return (access){ w, o, lane, kind, SPACE_SHARED, address - window, OBJECT_BYTES };
}

mbarrier *mbarrier_at(warp *w, const op *o, int lane, u64 address)
{
    const machine *m = w->machine;
    size_t offset;
    access x = access_object(w, o, lane, ACCESS_ATOMIC, address);
    if (!access_shared_place(&x, &offset))
        return NULL;
    mbarrier *b = m->async ? find_mbarrier(m->async, offset) : NULL;
    if (!b) {
        warp_fault(w, o, lane, EMU_BARRIER, address,
                   "there is no initialised mbarrier at shared address 0x%llx", (ull)address);
        return NULL;
    }
    bool passes =
        shared_has_seen(&m->shared, thread_of(w, lane), b->maker, b->made) ||
        WARP_CHECK(
            w, o, lane, EMU_CHECK_RACE, address,
            "race: thread %u of the block initialised this mbarrier, with no barrier in between",
            b->maker);
    return passes ? b : NULL;
}

void exec_mbarrier_init(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    async_state *s = async_state_of(m);
    addresses a;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        u32 count = get_u32(source(w, o, 1), i);
        access x = access_object(w, o, i, ACCESS_STORE, a.at[i]);
        size_t offset;
        if (!access_shared_place(&x, &offset))
            return;
        if (find_mbarrier(s, offset))
            warp_fault(w, o, i, EMU_BARRIER, a.at[i],
                       "mbarrier.init of an initialised mbarrier; mbarrier.inval must come first");
        else if (!count || count > MOST_COUNT)
            warp_fault(w, o, i, EMU_BARRIER, a.at[i],
                       "an mbarrier expects 1 to %d arrivals, not %u", MOST_COUNT, count);
        if (has_fault(m) || !access_array(&x))
            return;
        shared_use_copiers(&m->shared);
        shared_mark(&m->shared, offset, OBJECT_BYTES, PENDING_MBARRIER);
        mbarrier *b = NULL;
        for (size_t j = 0; j < s->barriers.count && !b; j++)
            b = s->barriers.items[j].live ? NULL : &s->barriers.items[j];
        b = b ? b : VEC_PUSH(m->arena, &s->barriers);
        *b = (mbarrier){ .offset = offset,
                         .live = true,
                         .copier = (unsigned)(b - s->barriers.items) % SHARED_COPIERS,
                         .expected = count,
                         .pending = count,
                         .maker = thread_of(w, i),
                         .made = m->shared.sync_time[w->index] };
    }
}

void exec_mbarrier_inval(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        if (b) {
            b->live = false;
            shared_end_copy(&w->machine->shared, b->offset, OBJECT_BYTES);
        }
    }
}

static void complete_phase(async_state *s, mbarrier *b)
{
    s->failed_looks = 0; /* progress */
    if (b->pending || b->bytes)
        return;
    b->phase++;
    b->pending = b->expected;
    shared_view_join(&b->complete, &b->arrived);
    memcpy(b->lanes_before, b->lanes, sizeof b->lanes);
    memset(b->lanes, 0, sizeof b->lanes);
}

/* Counts bytes that have arrived or, if negative, that are expected. */
static void count_bytes(warp *w, const op *o, int lane, mbarrier *b, int64_t come)
{
    int64_t left = b->bytes - come;
    if (left > MOST_COUNT || left < -MOST_COUNT) {
        warp_fault(w, o, lane, EMU_BARRIER, 0,
                   "the tx-count of an mbarrier has at most %d bytes; this would make it %lld",
                   MOST_COUNT, (long long)left);
        return;
    }
    b->bytes = (int32_t)left;
    complete_phase(w->machine->async, b);
}

static bool count_arrivals(warp *w, const op *o, int lane, mbarrier *b, u32 count)
{
    if (count > b->pending)
        return warp_fault(
            w, o, lane, EMU_BARRIER, 0,
            "%u arrivals at an mbarrier that expects only %u more of %u in this phase", count,
            b->pending, b->expected);
    if (o->uniform && count == b->pending && !b->bytes)
        return warp_fault(w, o, lane, EMU_BARRIER, 0,
                          "an arrival with .noComplete completes the phase");
    b->pending -= count;
    complete_phase(w->machine->async, b);
    return true;
}

/* Arrivals. op.variant: meaning of the last operand; compare: drop; order: releases. */
void exec_mbarrier_arrive(warp *w, const op *o, lane_mask mask)
{
    u64 states[WARP_LANES] = { 0 };
    addresses a;
    shared_view released = { 0 };
    bool has_released = false;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        u32 operand = get_u32(source(w, o, 1), i);
        u32 count = o->variant == ARRIVE_BYTES || !operand ? 1 : operand;
        if (!b)
            return;
        if (o->order && !has_released)
            shared_release(&w->machine->shared, w->index, &released);
        has_released = true;
        states[i] = (u64)b->phase << PENDING_BITS | b->pending;
        b->lanes[w->index] |= UINT32_C(1) << i;
        shared_view_join(&b->arrived, &released);
        if (o->compare && b->expected > count)
            b->expected -= count;
        if (o->variant == ARRIVE_BYTES)
            count_bytes(w, o, i, b, -(int64_t)operand);
        if (has_fault(w->machine) || !count_arrivals(w, o, i, b, count))
            return;
    }
    write_lanes(w->file + o->dst[0], states, true, mask);
}

/* mbarrier.expect_tx and complete_tx, by op.variant. */
void exec_mbarrier_bytes(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        int64_t bytes = get_u32(source(w, o, 1), i);
        if (b)
            count_bytes(w, o, i, b, o->variant == TX_COMES ? bytes : -bytes);
    }
}

/* Arrives after the lane's copies. .noinc: the arrival is already in the pending count. */
void exec_async_arrive(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        if (!b)
            continue;
        async_state *s = w->machine->async;
        late_arrival *l;
        if (!s->spare_late)
            s->spare_late = arena_zalloc(w->machine->arena, sizeof *l);
        LIST_MOVE(l, &s->spare_late, s->late);
        b->pending += !o->uniform;
        l->warp = w;
        l->lane = i;
        l->number = w->machine->copies;
        l->barrier = (unsigned)(b - s->barriers.items);
    }
}

/* Completes all pending operations of an mbarrier. */
static void complete_late(warp *w, const op *o, int lane, mbarrier *b)
{
    machine *m = w->machine;
    async_state *s = m->async;
    unsigned index = (unsigned)(b - s->barriers.items);
    for (bulk_copy **at = &s->bulk; *at && !has_fault(m);) {
        bulk_copy *c = *at;
        if (!c->loads || c->barrier != index) {
            at = &c->next;
            continue;
        }
        b->arrived.copiers[b->copier] = async_write(m, c->offset, c->bytes, c->size, b->copier);
        count_bytes(c->warp, c->op, c->lane, b, (int64_t)c->size);
        LIST_MOVE(c, at, s->spare_bulk);
    }
    for (late_arrival **at = &s->late; *at && !has_fault(m);) {
        late_arrival *l = *at;
        if (l->barrier != index) {
            at = &l->next;
            continue;
        }
        LIST_MOVE(l, at, s->spare_late);
        async_finish_at(l->warp, l->lane, l->number, b->copier, &b->arrived);
        count_arrivals(w, o, lane, b, 1);
    }
}

/* test_wait and try_wait. op.variant: parity or state; op.order: acquires. */
void exec_mbarrier_test(warp *w, const op *o, lane_mask mask)
{
    addresses a;
    lane_mask complete = 0;
    access_gather(w, o, mask, &a);
    EACH_LANE (i, mask) {
        const mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        if (!b)
            continue;
        bool done = o->variant == WAIT_PARITY
                        ? (b->phase & 1) != (get_u32(source(w, o, 1), i) & 1)
                        : (u32)(get_u64(source(w, o, 1), i) >> PENDING_BITS) != b->phase;
        complete |= (lane_mask)done << i;
        if (done && o->order)
            shared_acquire(&w->machine->shared, w->index, &b->complete,
                           b->lanes_before[w->index] == w->present);
    }
    write_predicate(w, o->dst[0], complete, mask);
    EACH_LANE (i, mask & ~complete) {
        if (has_fault(w->machine))
            break;
        mbarrier *b = mbarrier_at(w, o, i, a.at[i]);
        complete_late(w, o, i, b);
        if (++w->machine->async->failed_looks > MOST_FAILED_LOOKS)
            warp_fault(w, o, i, EMU_BARRIER, 0,
                       "this mbarrier waits for %u of %u arrivals and for %d bytes, but nothing "
                       "makes progress",
                       b->pending, b->expected, b->bytes);
    }
    if (mask & ~complete)
        warp_yield(w, true);
}

/* Makes the mbarriers that are visible to a thread visible to copies. */
void exec_fence_mbarrier(warp *w, const op *o, lane_mask mask)
{
    async_state *s = w->machine->async;
    const shared_memory *shared = &w->machine->shared;
    (void)o;
    for (size_t i = 0; s && i < s->barriers.count; i++) {
        mbarrier *b = &s->barriers.items[i];
        b->fenced |= shared_has_seen(shared, thread_of(w, lowest_lane(mask)), b->maker, b->made);
    }
}

void exec_fence_proxy(warp *w, const op *o, lane_mask mask)
{
    exec_fence_mbarrier(w, o, mask);
    shared_fence_proxy(&w->machine->shared, w->index);
}
