#include "emu/shared.h"

#include <string.h>

enum {
    WORD = 4,
    LANES = 32,
    MANY_READERS = UINT16_MAX,
    TIME_LIMIT = INT32_MAX, /* times start anew well before they wrap */
};

void shared_start(shared_memory *s, arena *a, size_t size, bool race_check)
{
    size_t words = size / WORD + 1;
    *s = (shared_memory){ .size = size, .race_check = race_check, .now = 1 };
    s->bytes = arena_zalloc(a, words * WORD);
    s->records = arena_zalloc(a, words * WORD * sizeof *s->records);
    s->split = arena_zalloc(a, words);
}

void shared_begin_block(shared_memory *s)
{
    if (s->now > TIME_LIMIT) {
        memset(s->records, 0, (s->size / WORD + 1) * WORD * sizeof *s->records);
        s->now = 1;
    }
    s->began = ++s->now;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++) {
        s->warp_time[w] = s->now;
        for (unsigned other = 0; other < SHARED_MAX_WARPS; other++)
            s->seen[w][other] = s->now;
    }
}

void shared_warp_sync(shared_memory *s, unsigned warp)
{
    s->warp_time[warp] = s->seen[warp][warp] = ++s->now;
}

void shared_barrier(shared_memory *s, uint32_t warps)
{
    uint32_t newest[SHARED_MAX_WARPS] = { 0 };
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++)
        for (unsigned other = 0; warps >> w & 1 && other < SHARED_MAX_WARPS; other++)
            if (s->seen[w][other] > newest[other])
                newest[other] = s->seen[w][other];
    s->now++;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++) {
        if (!(warps >> w & 1))
            continue;
        for (unsigned other = 0; other < SHARED_MAX_WARPS; other++)
            s->seen[w][other] = warps >> other & 1 ? s->now : newest[other];
        s->warp_time[w] = s->now;
    }
}

static bool has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time)
{
    return thread == other || time < s->seen[thread / LANES][other / LANES];
}

/* Whether a thread has seen all reads of a record but its own. */
static bool has_seen_reads(const shared_memory *s, unsigned thread, const shared_record *r)
{
    if (r->read < s->began || r->reader == thread)
        return true;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++)
        if (r->readers >> w & 1 && r->read >= s->seen[thread / LANES][w])
            return false;
    return true;
}

static void note_read(shared_memory *s, shared_record *r, unsigned thread)
{
    uint32_t now = s->warp_time[thread / LANES];
    if (has_seen_reads(s, thread, r)) {
        r->readers = UINT32_C(1) << thread / LANES;
        r->reader = (uint16_t)thread;
    } else {
        r->readers |= UINT32_C(1) << thread / LANES;
        r->reader = MANY_READERS;
    }
    r->read = now > r->read ? now : r->read;
}

static shared_problem note(shared_memory *s, shared_record *r, unsigned thread,
                           shared_access access, unsigned *other)
{
    bool unwritten = r->written < s->began;
    if (unwritten && access != SHARED_WRITE)
        return SHARED_UNWRITTEN;
    if (s->race_check) {
        *other = r->writer;
        bool both_atomic = access == SHARED_ATOMIC && r->atomic;
        if (!unwritten && !both_atomic && !has_seen(s, thread, r->writer, r->written))
            return access == SHARED_READ ? SHARED_READ_AFTER_WRITE : SHARED_WRITE_AFTER_WRITE;
        if (access != SHARED_READ && !has_seen_reads(s, thread, r)) {
            *other = r->reader;
            return SHARED_WRITE_AFTER_READ;
        }
        if (access == SHARED_READ)
            note_read(s, r, thread);
    }
    if (access != SHARED_READ) {
        r->written = s->warp_time[thread / LANES];
        r->writer = (uint16_t)thread;
        r->atomic = access == SHARED_ATOMIC;
    }
    return SHARED_FINE;
}

static void split_word(shared_memory *s, size_t word)
{
    shared_record *r = &s->records[word * WORD];
    if (!s->split[word])
        r[1] = r[2] = r[3] = r[0];
    s->split[word] = 1;
}

shared_problem shared_note(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                           shared_access access, unsigned *other)
{
    shared_problem problem = SHARED_FINE;
    if (size < WORD)
        split_word(s, offset / WORD);
    for (size_t at = offset; at < offset + size && problem == SHARED_FINE;) {
        bool whole = !s->split[at / WORD];
        problem = note(s, &s->records[at], thread, access, other);
        at += whole ? WORD : 1;
    }
    return problem;
}
