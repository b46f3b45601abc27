#include "emu/check/shared_race.h"

#include <string.h>

#include "emu/types.h"

enum {
    WORD = 4,
    OTHERS = WORD - 1,
    LANES = 32,
    MANY_READERS = UINT16_MAX,
    TIME_LIMIT = INT32_MAX, /* times start anew well before they wrap */
};

void shared_start(shared_memory *s, arena *a, size_t size, unsigned warps, bool race_check)
{
    size_t words = size / WORD + 1;
    *s = (shared_memory){
        .size = size, .arena = a, .warps = warps, .race_check = race_check, .now = 1
    };
    s->bytes = arena_zalloc(a, words * WORD);
    s->records = arena_zalloc(a, words * sizeof *s->records);
    s->split = arena_zalloc(a, words);
}

/* Returns the record of a word, or of a byte of a split word. */
static shared_record *record_at(const shared_memory *s, size_t at)
{
    size_t word = at / WORD, byte = at % WORD;
    return byte ? &s->others[word * OTHERS + byte - 1] : &s->records[word];
}

void shared_begin_block(shared_memory *s)
{
    if (s->now > TIME_LIMIT) {
        size_t words = s->size / WORD + 1;
        memset(s->records, 0, words * sizeof *s->records);
        if (s->others)
            memset(s->others, 0, words * OTHERS * sizeof *s->others);
        s->now = 1;
    }
    s->began = ++s->now;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++) {
        s->warp_time[w] = s->sync_time[w] = s->seen_of_all[w] = s->now;
        for (unsigned other = 0; other < SHARED_MAX_WARPS; other++)
            s->seen[w][other] = s->now;
        if (s->seen_lanes[w])
            memset(s->seen_lanes[w], 0, sizeof *s->seen_lanes[w]);
    }
    if (s->pending)
        memset(s->pending, 0, s->size * sizeof *s->pending);
    if (s->readers)
        memset(s->readers, 0, s->size * sizeof *s->readers);
    if (s->copiers)
        memset(s->copiers, 0, sizeof *s->copiers);
}

/* Updates seen_of_all after a warp has seen more. */
static void settle_earliest(shared_memory *s, unsigned warp)
{
    uint32_t earliest = UINT32_MAX;
    for (unsigned other = 0; other < s->warps; other++)
        earliest = s->seen[warp][other] < earliest ? s->seen[warp][other] : earliest;
    s->seen_of_all[warp] = earliest;
}

static void raise_times(uint32_t *times, const uint32_t *to, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        times[i] = to[i] > times[i] ? to[i] : times[i];
}

void shared_warp_sync(shared_memory *s, unsigned warp, uint32_t lanes, bool all)
{
    s->warp_time[warp] = s->sync_time[warp] = ++s->now;
    if (all) {
        s->seen[warp][warp] = s->now;
        settle_earliest(s, warp);
        return;
    }
    if (!s->seen_lanes[warp])
        s->seen_lanes[warp] = arena_zalloc(s->arena, sizeof *s->seen_lanes[warp]);
    uint32_t(*seen)[LANES] = *s->seen_lanes[warp], newest[LANES] = { 0 };
    for (unsigned i = 0; i < LANES; i++)
        if (lanes >> i & 1)
            raise_times(newest, seen[i], LANES);
    for (unsigned i = 0; i < LANES; i++)
        for (unsigned other = 0; lanes >> i & 1 && other < LANES; other++)
            seen[i][other] = lanes >> other & 1 ? s->now : newest[other];
}

void shared_mark(shared_memory *s, size_t offset, size_t size, uint16_t mark)
{
    if (!s->pending)
        s->pending = arena_zalloc(s->arena, (s->size + 1) * sizeof *s->pending);
    for (size_t i = offset; i < offset + size; i++)
        s->pending[i] = mark;
}

void shared_begin_copy(shared_memory *s, size_t offset, size_t size, unsigned thread)
{
    shared_mark(s, offset, size, (uint16_t)(thread + 1));
}

void shared_end_copy(shared_memory *s, size_t offset, size_t size)
{
    memset(s->pending + offset, 0, size * sizeof *s->pending);
}

void shared_begin_read(shared_memory *s, size_t offset, size_t size, unsigned thread)
{
    if (!s->readers)
        s->readers = arena_zalloc(s->arena, (s->size + 1) * sizeof *s->readers);
    for (size_t i = offset; i < offset + size; i++)
        s->readers[i]++;
    shared_mark(s, offset, size, (uint16_t)((thread + 1) | PENDING_READ));
}

void shared_end_read(shared_memory *s, size_t offset, size_t size)
{
    for (size_t i = offset; i < offset + size; i++)
        if (--s->readers[i] == 0)
            s->pending[i] = 0;
}

void shared_use_copiers(shared_memory *s)
{
    if (!s->copiers)
        s->copiers = arena_zalloc(s->arena, sizeof *s->copiers);
}

void shared_view_join(shared_view *to, const shared_view *from)
{
    raise_times(to->seen, from->seen, SHARED_MAX_WARPS);
    raise_times(to->copiers, from->copiers, SHARED_COPIERS);
    raise_times(to->fenced, from->fenced, SHARED_MAX_WARPS);
}

void shared_release(shared_memory *s, unsigned warp, shared_view *to)
{
    raise_times(to->seen, s->seen[warp], SHARED_MAX_WARPS);
    raise_times(to->copiers, s->copiers->seen[warp], SHARED_COPIERS);
    raise_times(to->fenced, s->copiers->fenced[warp], SHARED_MAX_WARPS);
    to->seen[warp] = s->warp_time[warp] = s->sync_time[warp] = ++s->now;
}

void shared_acquire(shared_memory *s, unsigned warp, const shared_view *from, bool whole)
{
    uint32_t own = s->seen[warp][warp];
    raise_times(s->seen[warp], from->seen, SHARED_MAX_WARPS);
    raise_times(s->copiers->seen[warp], from->copiers, SHARED_COPIERS);
    raise_times(s->copiers->fenced[warp], from->fenced, SHARED_MAX_WARPS);
    if (!whole)
        s->seen[warp][warp] = own;
    settle_earliest(s, warp);
}

void shared_fence_proxy(shared_memory *s, unsigned warp)
{
    shared_use_copiers(s);
    raise_times(s->copiers->fenced[warp], s->seen[warp], SHARED_MAX_WARPS);
    s->warp_time[warp] = s->sync_time[warp] = ++s->now;
    s->copiers->fenced[warp][warp] = s->now;
}

bool shared_is_fenced(const shared_memory *s, size_t offset, size_t size, unsigned thread,
                      unsigned *other)
{
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD) {
        const shared_record *r = record_at(s, at);
        uint32_t fenced = 0;
        if (r->written < s->began || r->writer >= FIRST_COPIER ||
            !shared_has_seen(s, thread, r->writer, r->written))
            continue;
        *other = r->writer;
        if (s->copiers)
            fenced = s->copiers->fenced[thread / LANES][r->writer / LANES];
        if (r->written >= fenced)
            return false;
    }
    return true;
}

/* What any warp of the set has seen, and knows of copiers and fences, all of them do now. */
void shared_barrier(shared_memory *s, uint32_t warps)
{
    shared_view all = { { 0 }, { 0 }, { 0 } };
    shared_copiers *c = s->copiers;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++) {
        if (!(warps >> w & 1))
            continue;
        raise_times(all.seen, s->seen[w], SHARED_MAX_WARPS);
        if (c) {
            raise_times(all.copiers, c->seen[w], SHARED_COPIERS);
            raise_times(all.fenced, c->fenced[w], SHARED_MAX_WARPS);
        }
    }
    s->now++;
    for (unsigned w = 0; w < SHARED_MAX_WARPS; w++) {
        if (!(warps >> w & 1))
            continue;
        for (unsigned other = 0; other < SHARED_MAX_WARPS; other++)
            s->seen[w][other] = warps >> other & 1 ? s->now : all.seen[other];
        settle_earliest(s, w);
        s->warp_time[w] = s->sync_time[w] = s->now;
        if (c) {
            memcpy(c->seen[w], all.copiers, sizeof c->seen[w]);
            memcpy(c->fenced[w], all.fenced, sizeof c->fenced[w]);
        }
    }
}

static inline bool has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time)
{
    unsigned warp = thread / LANES;
    if (other >= FIRST_COPIER)
        return time < s->copiers->seen[warp][other - FIRST_COPIER];
    if (thread == other || time < s->seen[warp][other / LANES])
        return true;
    return s->seen_lanes[warp] && other / LANES == warp &&
           time < (*s->seen_lanes[warp])[thread % LANES][other % LANES];
}

bool shared_has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time)
{
    return has_seen(s, thread, other, time);
}

void shared_tick(shared_memory *s, unsigned warp)
{
    s->warp_time[warp] = ++s->now;
}

uint32_t shared_seen(const shared_memory *s, unsigned thread, unsigned warp, uint32_t lanes,
                     uint32_t time)
{
    uint32_t seen = 0;
    if (time < s->seen[thread / LANES][warp])
        return lanes;
    for (unsigned lane = 0; warp == thread / LANES && lane < LANES; lane++)
        if (lanes >> lane & 1 && has_seen(s, thread, warp * LANES + lane, time))
            seen |= UINT32_C(1) << lane;
    return seen;
}

/* Returns true if a thread has seen the reads of all other lanes of its warp. */
static bool lanes_have_met(const shared_memory *s, unsigned thread, const shared_record *r)
{
    for (lane_mask left = r->reader_lanes; left; left &= left - 1)
        if (!has_seen(s, thread, thread / LANES * LANES + (unsigned)lowest_lane(left), r->read))
            return false;
    return true;
}

/* Returns true if a thread has seen all reads of a record but its own. */
static inline bool has_seen_reads(const shared_memory *s, unsigned thread, const shared_record *r)
{
    if (r->read < s->seen_of_all[thread / LANES] || r->reader == thread)
        return true;
    for (uint32_t left = r->readers; left; left &= left - 1) {
        unsigned w = (unsigned)lowest_lane(left);
        if (r->read >= s->seen[thread / LANES][w])
            return w == thread / LANES && r->readers == UINT32_C(1) << w &&
                   lanes_have_met(s, thread, r);
    }
    return true;
}

static inline void note_read(shared_memory *s, shared_record *r, unsigned thread)
{
    uint32_t now = s->sync_time[thread / LANES];
    if (has_seen_reads(s, thread, r)) {
        r->readers = UINT32_C(1) << thread / LANES;
        r->reader_lanes = UINT32_C(1) << thread % LANES;
        r->reader = (uint16_t)thread;
    } else {
        r->readers |= UINT32_C(1) << thread / LANES;
        r->reader_lanes |= UINT32_C(1) << thread % LANES;
        r->reader = MANY_READERS;
    }
    r->read = now > r->read ? now : r->read;
}

static bool is_atomic(shared_access access)
{
    return access == SHARED_ATOMIC || access == SHARED_ATOMIC_WRITE;
}

static inline shared_problem find_problem(const shared_memory *s, const shared_record *r,
                                          unsigned thread, shared_access access, unsigned *other)
{
    bool unwritten = r->written < s->began;
    if (unwritten && (access == SHARED_READ || access == SHARED_ATOMIC))
        return SHARED_UNWRITTEN;
    if (!s->race_check)
        return SHARED_FINE;
    *other = r->writer;
    bool both_atomic = is_atomic(access) && r->atomic;
    if (!unwritten && !both_atomic && !has_seen(s, thread, r->writer, r->written))
        return access == SHARED_READ ? SHARED_READ_AFTER_WRITE : SHARED_WRITE_AFTER_WRITE;
    *other = r->reader;
    return access != SHARED_READ && !has_seen_reads(s, thread, r) ? SHARED_WRITE_AFTER_READ
                                                                  : SHARED_FINE;
}

static inline void note_in_record(shared_memory *s, shared_record *r, unsigned thread,
                                  shared_access access)
{
    if (access != SHARED_READ) {
        r->written = s->sync_time[thread / LANES];
        r->writer = (uint16_t)thread;
        r->atomic = is_atomic(access);
    } else if (s->race_check) {
        note_read(s, r, thread);
    }
}

static void split_word(shared_memory *s, size_t word)
{
    if (s->split[word])
        return;
    if (!s->others)
        s->others = arena_zalloc(s->arena, (s->size / WORD + 1) * OTHERS * sizeof *s->others);
    for (size_t i = 0; i < OTHERS; i++)
        s->others[word * OTHERS + i] = s->records[word];
    s->split[word] = 1;
}

static bool is_pending(const uint16_t *marks, unsigned size)
{
    uint64_t of_word, any = 0;
    if (size < WORD)
        return marks[0] || marks[size - 1];
    for (unsigned i = 0; i < size; i += WORD) {
        memcpy(&of_word, marks + i, sizeof of_word);
        any |= of_word;
    }
    return any;
}

static shared_problem find_pending(const shared_memory *s, size_t offset, unsigned size,
                                   shared_access access, unsigned *other)
{
    for (size_t at = offset; at < offset + size; at++) {
        uint16_t mark = s->pending[at];
        if (!mark || (mark & PENDING_READ && access == SHARED_READ))
            continue;
        *other = (mark & ~(unsigned)PENDING_READ) - 1u;
        return mark == PENDING_MBARRIER ? SHARED_MBARRIER
               : mark & PENDING_READ    ? SHARED_PENDING_READ
                                        : SHARED_PENDING;
    }
    return SHARED_FINE;
}

static inline shared_problem note_bytes(shared_memory *s, size_t offset, unsigned size,
                                        unsigned thread, shared_access access, unsigned *other)
{
    if (s->pending && is_pending(s->pending + offset, size)) {
        shared_problem problem = find_pending(s, offset, size, access, other);
        if (problem != SHARED_FINE)
            return problem;
    }
    if (size < WORD)
        split_word(s, offset / WORD);
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD) {
        shared_record *r = record_at(s, at);
        shared_problem problem = find_problem(s, r, thread, access, other);
        if (problem != SHARED_FINE)
            return problem;
        note_in_record(s, r, thread, access);
    }
    return SHARED_FINE;
}

shared_problem shared_note(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                           shared_access access, unsigned *other)
{
    return note_bytes(s, offset, size, thread, access, other);
}

/* Notes whole words. Inlined for each common kind of access, so that the compiler drops the rest.
 * Returns false also if something is pending. */
static inline bool note_words(shared_memory *s, size_t offset, const uint64_t at[32],
                              uint64_t lowest, uint32_t lanes, unsigned size, unsigned warp,
                              shared_access access)
{
    unsigned other;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)lowest_lane(left), thread = warp * LANES + lane;
        size_t from = offset + (at[lane] - lowest);
        if (s->pending && is_pending(s->pending + from, size))
            return false;
        for (size_t word = from / WORD; word < (from + size) / WORD; word++) {
            shared_record *r = &s->records[word];
            if (s->split[word]
                    ? shared_note(s, word * WORD, WORD, thread, access, &other) != SHARED_FINE
                    : find_problem(s, r, thread, access, &other) != SHARED_FINE)
                return false;
            if (!s->split[word])
                note_in_record(s, r, thread, access);
        }
    }
    return true;
}

/* The same for any size. */
static inline bool note_parts(shared_memory *s, size_t offset, const uint64_t at[32],
                              uint64_t lowest, uint32_t lanes, unsigned size, unsigned warp,
                              shared_access access)
{
    unsigned other, part = size < 2 * WORD ? size : 2 * WORD;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)lowest_lane(left), thread = warp * LANES + lane;
        size_t from = offset + (at[lane] - lowest);
        for (unsigned done = 0; done < size; done += part)
            if (note_bytes(s, from + done, part, thread, access, &other) != SHARED_FINE)
                return false;
    }
    return true;
}

bool shared_note_lanes(shared_memory *s, size_t offset, const uint64_t at[32], uint64_t lowest,
                       uint32_t lanes, unsigned size, unsigned warp, shared_access access)
{
    bool reads = access == SHARED_READ;
    if (size >= WORD && offset % WORD == 0) {
        bool fine = reads ? note_words(s, offset, at, lowest, lanes, size, warp, SHARED_READ)
                          : note_words(s, offset, at, lowest, lanes, size, warp, access);
        if (fine || !s->pending)
            return fine;
    }
    return reads ? note_parts(s, offset, at, lowest, lanes, size, warp, SHARED_READ)
                 : note_parts(s, offset, at, lowest, lanes, size, warp, access);
}

bool shared_note_matrix_row(shared_memory *s, size_t offset, unsigned first, unsigned step,
                            unsigned readers)
{
    enum { ROW_WORDS = 4, APART = 4 };
    unsigned other;
    if (s->pending && is_pending(s->pending + offset, ROW_WORDS * WORD))
        return false;
    for (unsigned i = 0; i < ROW_WORDS; i++, first += step) {
        shared_record *r = &s->records[offset / WORD + i];
        if (s->split[offset / WORD + i])
            return false;
        for (unsigned thread = first; thread < first + readers * APART; thread += APART) {
            if (find_problem(s, r, thread, SHARED_READ, &other) != SHARED_FINE)
                return false;
            note_in_record(s, r, thread, SHARED_READ);
        }
    }
    return true;
}

uint32_t shared_copier_write(shared_memory *s, size_t offset, size_t size, unsigned copier)
{
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD) {
        shared_record *r = record_at(s, at);
        r->written = s->now;
        r->writer = (uint16_t)(FIRST_COPIER + copier);
        r->atomic = false;
    }
    return ++s->now;
}

void shared_note_anyway(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                        shared_access access)
{
    if (size < WORD)
        split_word(s, offset / WORD);
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD)
        note_in_record(s, record_at(s, at), thread, access);
}
