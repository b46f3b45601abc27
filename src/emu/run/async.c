/* cp.async: copies from global to shared memory that a thread starts and waits for later.
 *
 * The source is read when the copy starts. The destination is written when the thread waits for the
 * copy's group or, after cp.async.mbarrier.arrive, when some thread tests the mbarrier without
 * success. Until then any access to the destination is a race: the thread has not waited, or
 * another thread has neither met it at a barrier since nor waited at the mbarrier. */
#include "emu/run/async.h"
#include "emu/check/shared_race.h"
#include "emu/check/undefined.h"
#include "emu/run/access.h"

async_state *async_state_of(machine *m)
{
    if (!m->async)
        m->async = arena_zalloc(m->arena, sizeof *m->async);
    return m->async;
}

void async_begin_block(machine *m, warp *w)
{
    async_state *s = m->async;
    async_copy *copy;
    late_arrival *late;
    bulk_copy *bulk;
    while (w->copies)
        LIST_MOVE(copy, &w->copies, m->spare_copies);
    memset(w->groups, 0, sizeof w->groups);
    if (!s || w->index)
        return;
    s->barriers.count = 0;
    s->failed_looks = 0;
    memset(s->groups, 0, sizeof s->groups);
    while (s->late)
        LIST_MOVE(late, &s->late, s->spare_late);
    while (s->bulk)
        LIST_MOVE(bulk, &s->bulk, s->spare_bulk);
}

/* Reads the wanted leading bytes of a copy from global memory; the others are 0. */
static bool read_source(access x, unsigned wanted, uint8_t *bytes)
{
    memset(bytes, 0, x.size);
    if (!access_is_aligned(&x))
        return false;
    x.size = wanted == x.size ? wanted : 1;
    for (unsigned at = 0; at < wanted; at += x.size, x.address += x.size)
        if (!global_read(&x, bytes + at))
            return false;
    return true;
}

void exec_async_copy(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    addresses to, from;
    access_gather(w, o, mask, &to);
    access_gather_second(w, o, mask, &from);
    access_count(w, o, SPACE_GLOBAL, &from, mask, ACCESS_LOAD);
    async_copy **end = &w->copies;
    while (*end)
        end = &(*end)->next;
    unsigned size = o->vector * 4u;
    lane_mask ignores = o->combine == ASYNC_IGNORE ? predicate(w, o->src[2], o->pred_not) : 0;
    EACH_LANE (i, mask) {
        unsigned wanted = o->combine == ASYNC_IGNORE ? size : get_u32(source(w, o, 2), i);
        wanted = ignores >> i & 1 ? 0 : wanted < size ? wanted : size;
        async_copy *c = m->spare_copies;
        if (c)
            m->spare_copies = c->next;
        else
            c = arena_zalloc(m->arena, sizeof *c);
        *c = (async_copy){
            .lane = (uint8_t)i, .size = (uint8_t)size, .group = w->groups[i], .number = ++m->copies
        };
        access load = { w, o, i, ACCESS_LOAD, SPACE_GLOBAL, from.at[i], size };
        access store = { w, o, i, ACCESS_STORE, SPACE_SHARED, to.at[i], size };
        const uint8_t *bytes = NULL;
        if (read_source(load, wanted, c->bytes))
            bytes = access_array(&store);
        if (!bytes)
            return;
        c->offset = (size_t)(bytes - m->shared.bytes);
        shared_begin_copy(&m->shared, c->offset, size, thread_of(w, i));
        *end = c;
        end = &c->next;
    }
}

uint32_t async_write(machine *m, size_t offset, const uint8_t *bytes, size_t size, unsigned copier)
{
    shared_memory *s = &m->shared;
    shared_end_copy(s, offset, size);
    uint32_t time = shared_copier_write(s, offset, size, copier);
    memcpy(s->bytes + offset, bytes, size);
    undefined_mark(m, SPACE_SHARED, s->bytes + offset, size, false);
    return time;
}

void async_finish_at(warp *w, int lane, uint32_t number, unsigned copier, shared_view *view)
{
    for (async_copy **at = &w->copies; *at;) {
        async_copy *c = *at;
        if (c->lane != lane || c->number > number) {
            at = &(*at)->next;
            continue;
        }
        view->copiers[copier] = async_write(w->machine, c->offset, c->bytes, c->size, copier);
        LIST_MOVE(c, at, w->machine->spare_copies);
    }
}

void exec_async_commit(warp *w, const op *o, lane_mask mask)
{
    (void)o;
    for (int i = 0; i < WARP_LANES; i++)
        w->groups[i] += mask >> i & 1;
}

/* Completes the copies of all groups except the newest ones that each lane leaves pending. */
static void finish_copies(warp *w, lane_mask mask, const lanes32 *open)
{
    shared_memory *s = &w->machine->shared;
    unsigned other;
    for (async_copy **at = &w->copies; *at;) {
        async_copy *c = *at;
        bool waits = !open || (u64)c->group + open->u32[c->lane] < w->groups[c->lane];
        if (!waits || !(mask >> c->lane & 1)) {
            at = &c->next;
            continue;
        }
        shared_end_copy(s, c->offset, c->size);
        for (unsigned done = 0; done < c->size; done += 8)
            shared_note(s, c->offset + done, c->size < 8 ? c->size : 8, thread_of(w, c->lane),
                        SHARED_WRITE, &other);
        memcpy(s->bytes + c->offset, c->bytes, c->size);
        undefined_mark(w->machine, SPACE_SHARED, s->bytes + c->offset, c->size, false);
        LIST_MOVE(c, at, w->machine->spare_copies);
    }
}

void exec_async_wait(warp *w, const op *o, lane_mask mask)
{
    finish_copies(w, mask, source(w, o, 0));
}

void exec_async_wait_all(warp *w, const op *o, lane_mask mask)
{
    (void)o;
    finish_copies(w, mask, NULL);
}
