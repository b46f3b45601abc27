#include "emu/check/shared_race.h"

enum {
    WORD = 4,
    OTHERS = WORD - 1,
    MANY_READERS = UINT16_MAX,
    TIME_LIMIT = INT32_MAX, /* times restart well before they overflow */
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
    for (unsigned w = 0; w < MAX_WARPS; w++) {
        s->warp_time[w] = s->sync_time[w] = s->seen_of_all[w] = s->now;
        for (unsigned other = 0; other < MAX_WARPS; other++)
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

static void update_seen_of_all(shared_memory *s, unsigned w)
{
    uint32_t earliest = UINT32_MAX;
    for (unsigned other = 0; other < s->warps; other++)
        earliest = s->seen[w][other] < earliest ? s->seen[w][other] : earliest;
    s->seen_of_all[w] = earliest;
}

static void raise_times(uint32_t *times, const uint32_t *to, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        times[i] = to[i] > times[i] ? to[i] : times[i];
}

void shared_warp_sync(shared_memory *s, unsigned w, uint32_t lanes, bool all)
{
    s->warp_time[w] = s->sync_time[w] = ++s->now;
    if (all) {
        s->seen[w][w] = s->now;
        update_seen_of_all(s, w);
        return;
    }
    if (!s->seen_lanes[w])
        s->seen_lanes[w] = arena_zalloc(s->arena, sizeof *s->seen_lanes[w]);
    uint32_t(*seen)[WARP_LANES] = *s->seen_lanes[w], newest[WARP_LANES] = { 0 };
    for (unsigned i = 0; i < WARP_LANES; i++)
        if (lanes >> i & 1)
            raise_times(newest, seen[i], WARP_LANES);
    for (unsigned i = 0; i < WARP_LANES; i++)
        for (unsigned other = 0; lanes >> i & 1 && other < WARP_LANES; other++)
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
    raise_times(to->seen, from->seen, MAX_WARPS);
    raise_times(to->copiers, from->copiers, SHARED_COPIERS);
    raise_times(to->fenced, from->fenced, MAX_WARPS);
}

void shared_release(shared_memory *s, unsigned w, shared_view *to)
{
    raise_times(to->seen, s->seen[w], MAX_WARPS);
    raise_times(to->copiers, s->copiers->seen[w], SHARED_COPIERS);
    raise_times(to->fenced, s->copiers->fenced[w], MAX_WARPS);
    to->seen[w] = s->warp_time[w] = s->sync_time[w] = ++s->now;
}

void shared_acquire(shared_memory *s, unsigned w, const shared_view *from, bool whole)
{
    uint32_t own = s->seen[w][w];
    raise_times(s->seen[w], from->seen, MAX_WARPS);
    raise_times(s->copiers->seen[w], from->copiers, SHARED_COPIERS);
    raise_times(s->copiers->fenced[w], from->fenced, MAX_WARPS);
    if (!whole)
        s->seen[w][w] = own;
    update_seen_of_all(s, w);
}

void shared_fence_proxy(shared_memory *s, unsigned w)
{
    shared_use_copiers(s);
    raise_times(s->copiers->fenced[w], s->seen[w], MAX_WARPS);
    s->warp_time[w] = s->sync_time[w] = ++s->now;
    s->copiers->fenced[w][w] = s->now;
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
            fenced = s->copiers->fenced[thread / WARP_LANES][r->writer / WARP_LANES];
        if (r->written >= fenced)
            return false;
    }
    return true;
}

/* Joins the views of all warps of the set, and gives the result to each of them. */
void shared_barrier(shared_memory *s, uint32_t warps)
{
    shared_view all = { { 0 }, { 0 }, { 0 } };
    shared_copiers *c = s->copiers;
    for (unsigned w = 0; w < MAX_WARPS; w++) {
        if (!(warps >> w & 1))
            continue;
        raise_times(all.seen, s->seen[w], MAX_WARPS);
        if (c) {
            raise_times(all.copiers, c->seen[w], SHARED_COPIERS);
            raise_times(all.fenced, c->fenced[w], MAX_WARPS);
        }
    }
    s->now++;
    for (unsigned w = 0; w < MAX_WARPS; w++) {
        if (!(warps >> w & 1))
            continue;
        for (unsigned other = 0; other < MAX_WARPS; other++)
            s->seen[w][other] = warps >> other & 1 ? s->now : all.seen[other];
        update_seen_of_all(s, w);
        s->warp_time[w] = s->sync_time[w] = s->now;
        if (c) {
            memcpy(c->seen[w], all.copiers, sizeof c->seen[w]);
            memcpy(c->fenced[w], all.fenced, sizeof c->fenced[w]);
        }
    }
}

static inline bool has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time)
{
    unsigned w = thread / WARP_LANES;
    if (other >= FIRST_COPIER)
        return time < s->copiers->seen[w][other - FIRST_COPIER];
    if (thread == other || time < s->seen[w][other / WARP_LANES])
        return true;
    return s->seen_lanes[w] && other / WARP_LANES == w &&
           time < (*s->seen_lanes[w])[thread % WARP_LANES][other % WARP_LANES];
}

bool shared_has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time)
{
    return has_seen(s, thread, other, time);
}

void shared_tick(shared_memory *s, unsigned w)
{
    s->warp_time[w] = ++s->now;
}

uint32_t shared_seen(const shared_memory *s, unsigned thread, unsigned w, uint32_t lanes,
                     uint32_t time)
{
    uint32_t seen = 0;
    if (time < s->seen[thread / WARP_LANES][w])
        return lanes;
    for (unsigned lane = 0; w == thread / WARP_LANES && lane < WARP_LANES; lane++)
        if (lanes >> lane & 1 && has_seen(s, thread, w * WARP_LANES + lane, time))
            seen |= UINT32_C(1) << lane;
    return seen;
}

/* Returns true if the reads of all other lanes of its warp are visible to a thread. */
static bool lanes_have_seen_reads(const shared_memory *s, unsigned thread, const shared_record *r)
{
    for (lane_mask left = r->reader_lanes; left; left &= left - 1)
        if (!has_seen(s, thread, thread / WARP_LANES * WARP_LANES + (unsigned)lowest_lane(left),
                      r->read))
            return false;
    return true;
}

/* Returns true if all reads of a record except its own are visible to a thread. */
static inline bool has_seen_reads(const shared_memory *s, unsigned thread, const shared_record *r)
{
    if (r->read < s->seen_of_all[thread / WARP_LANES] || r->reader == thread)
        return true;
    for (uint32_t left = r->readers; left; left &= left - 1) {
        unsigned w = (unsigned)lowest_lane(left);
        if (r->read >= s->seen[thread / WARP_LANES][w])
            return w == thread / WARP_LANES && r->readers == UINT32_C(1) << w &&
                   lanes_have_seen_reads(s, thread, r);
    }
    return true;
}

static bool is_atomic(shared_access how)
{
    return how == SHARED_ATOMIC || how == SHARED_ATOMIC_WRITE;
}

static inline shared_problem find_problem(const shared_memory *s, const shared_record *r,
                                          unsigned thread, shared_access how, unsigned *other)
{
    bool unwritten = r->written < s->began;
    if (unwritten && (how == SHARED_READ || how == SHARED_ATOMIC))
        return SHARED_UNWRITTEN;
    if (!s->race_check)
        return SHARED_FINE;
    *other = r->writer;
    bool both_atomic = is_atomic(how) && r->atomic;
    if (!unwritten && !both_atomic && !has_seen(s, thread, r->writer, r->written))
        return how == SHARED_READ ? SHARED_READ_AFTER_WRITE : SHARED_WRITE_AFTER_WRITE;
    *other = r->reader;
    return how != SHARED_READ && !has_seen_reads(s, thread, r) ? SHARED_WRITE_AFTER_READ
                                                               : SHARED_FINE;
}

static inline void note_in_record(shared_memory *s, shared_record *r, unsigned thread,
                                  shared_access how)
{
    uint32_t now = s->sync_time[thread / WARP_LANES];
    if (how != SHARED_READ) {
        r->written = now;
        r->writer = (uint16_t)thread;
        r->atomic = is_atomic(how);
    } else if (s->race_check) {
        bool alone = has_seen_reads(s, thread, r);
        r->readers = (alone ? 0 : r->readers) | UINT32_C(1) << thread / WARP_LANES;
        r->reader_lanes = (alone ? 0 : r->reader_lanes) | UINT32_C(1) << thread % WARP_LANES;
        r->reader = (uint16_t)(alone ? thread : MANY_READERS);
        r->read = now > r->read ? now : r->read;
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

static inline shared_problem note_bytes(shared_memory *s, size_t offset, unsigned size,
                                        unsigned thread, shared_access how, unsigned *other)
{
    bool pending = s->pending && is_pending(s->pending + offset, size);
    for (size_t at = offset; pending && at < offset + size; at++) {
        uint16_t mark = s->pending[at];
        if (!mark || (mark & PENDING_READ && how == SHARED_READ))
            continue;
        *other = (mark & ~(unsigned)PENDING_READ) - 1u;
        return mark == PENDING_MBARRIER ? SHARED_MBARRIER
               : mark & PENDING_READ    ? SHARED_PENDING_READ
                                        : SHARED_PENDING;
    }
    if (size < WORD)
        split_word(s, offset / WORD);
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD) {
        shared_record *r = record_at(s, at);
        shared_problem problem = find_problem(s, r, thread, how, other);
        if (problem != SHARED_FINE)
            return problem;
        note_in_record(s, r, thread, how);
    }
    return SHARED_FINE;
}

shared_problem shared_note(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                           shared_access how, unsigned *other)
{
    return note_bytes(s, offset, size, thread, how, other);
}

/* Notes accesses of whole words. Returns false on a problem, or if something is pending. */
static inline bool note_words(shared_memory *s, size_t offset, const uint64_t at[32],
                              uint64_t lowest, uint32_t lanes, unsigned size, unsigned w,
                              shared_access how)
{
    unsigned other;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)lowest_lane(left), thread = w * WARP_LANES + lane;
        size_t from = offset + (at[lane] - lowest);
        if (s->pending && is_pending(s->pending + from, size))
            return false;
        for (size_t word = from / WORD; word < (from + size) / WORD; word++) {
            shared_record *r = &s->records[word];
            if (s->split[word]
                    ? shared_note(s, word * WORD, WORD, thread, how, &other) != SHARED_FINE
                    : find_problem(s, r, thread, how, &other) != SHARED_FINE)
                return false;
            if (!s->split[word])
                note_in_record(s, r, thread, how);
        }
    }
    return true;
}

/* Notes accesses of any size, like note_words. */
static inline bool note_parts(shared_memory *s, size_t offset, const uint64_t at[32],
                              uint64_t lowest, uint32_t lanes, unsigned size, unsigned w,
                              shared_access how)
{
    unsigned other, part = size < 2 * WORD ? size : 2 * WORD;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)lowest_lane(left), thread = w * WARP_LANES + lane;
        size_t from = offset + (at[lane] - lowest);
        for (unsigned done = 0; done < size; done += part)
            if (note_bytes(s, from + done, part, thread, how, &other) != SHARED_FINE)
                return false;
    }
    return true;
}

bool shared_note_lanes(shared_memory *s, size_t offset, const uint64_t at[32], uint64_t lowest,
                       uint32_t lanes, unsigned size, unsigned w, shared_access how)
{
    bool reads = how == SHARED_READ;
    if (size >= WORD && offset % WORD == 0) {
        bool fine = reads ? note_words(s, offset, at, lowest, lanes, size, w, SHARED_READ)
                          : note_words(s, offset, at, lowest, lanes, size, w, how);
        if (fine || !s->pending)
            return fine;
    }
    return reads ? note_parts(s, offset, at, lowest, lanes, size, w, SHARED_READ)
                 : note_parts(s, offset, at, lowest, lanes, size, w, how);
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
                        shared_access how)
{
    if (size < WORD)
        split_word(s, offset / WORD);
    for (size_t at = offset; at < offset + size; at += s->split[at / WORD] ? 1 : WORD)
        note_in_record(s, record_at(s, at), thread, how);
}
