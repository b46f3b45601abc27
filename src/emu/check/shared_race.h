/* Detection of races on the shared memory of a block.
 *
 * Time is counted in synchronisations: every barrier, of a block or of a warp's lanes, starts a new
 * time for the warps that take part. Every warp knows up to which time it has seen the accesses of
 * each other warp, and where only some lanes of it have met, every lane knows that of each other
 * lane; an access that it has not seen and did not make itself is concurrent with it. Every byte
 * remembers who wrote it last and who read it last, and when. One record serves the four bytes of
 * an aligned word until something touches only a part of it.
 *
 * A warp may also tick: what it does from then on has a time of its own, which grid_order.h tells
 * apart. Records of shared memory have the times of synchronisations only, as a time between them
 * that some other warp has not seen would say nothing of what it has seen.
 *
 * Asynchronous copies write as copiers, one for each mbarrier that copies complete at, so that who
 * has waited at one has not seen what another one's copies wrote. They use a proxy of their own:
 * what threads have written with ordinary stores, a bulk copy may touch only where a proxy fence
 * comes between, of the writer or of whoever follows it in order. So every warp also knows up to
 * which time the writes of each other one are behind such a fence.
 *
 * Reads are remembered of one time only, the latest: where warps synchronise in groups smaller than
 * the block, a read may be forgotten and a race with it missed, or be taken for as late as another
 * warp's.
 */
#ifndef PTXGEN_EMU_CHECK_SHARED_RACE_H
#define PTXGEN_EMU_CHECK_SHARED_RACE_H

#include "emu/machine.h"

typedef enum shared_access {
    SHARED_READ,
    SHARED_WRITE,
    SHARED_ATOMIC,       /* reads and writes */
    SHARED_ATOMIC_WRITE, /* a strong store, which reads nothing */
} shared_access;

typedef enum shared_problem {
    SHARED_FINE,
    SHARED_UNWRITTEN,
    SHARED_WRITE_AFTER_WRITE,
    SHARED_WRITE_AFTER_READ,
    SHARED_READ_AFTER_WRITE,
    SHARED_PENDING,      /* an asynchronous copy to these bytes has not been waited for */
    SHARED_PENDING_READ, /* something asynchronous that reads them has not */
    SHARED_MBARRIER,     /* they are an mbarrier's */
} shared_problem;

/* Of pending: something asynchronous reads the byte, or it is an mbarrier's. */
enum { PENDING_READ = 0x8000, PENDING_MBARRIER = 0x7fff };

void shared_start(shared_memory *s, arena *a, size_t size, unsigned warps, bool race_check);
void shared_begin_block(shared_memory *s);

/* Notes an access to size bytes (a power of two up to 8, aligned), unless there is a problem. other
 * is set to the thread it races with, or beyond all threads if there are several. */
shared_problem shared_note(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                           shared_access how, unsigned *other);

/* Notes an access of size bytes (a power of two) by each lane, lane i at offset + at[i] - lowest.
 * Returns false at the first problem; noting the lanes before it again changes nothing. */
bool shared_note_lanes(shared_memory *s, size_t offset, const uint64_t at[32], uint64_t lowest,
                       uint32_t lanes, unsigned size, unsigned w, shared_access how);

/* Notes a load of a matrix's row, four words: word i by thread first + step i, or by two, four
 * threads apart. Returns false at a problem, or if a word is split. */
bool shared_note_matrix_row(shared_memory *s, size_t offset, unsigned first, unsigned step,
                            unsigned readers);

/* Notes an access whatever the problem. */
void shared_note_anyway(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                        shared_access how);

/* Between these two, no thread may touch the bytes. */
void shared_begin_copy(shared_memory *s, size_t offset, size_t size, unsigned thread);
void shared_end_copy(shared_memory *s, size_t offset, size_t size);

/* Between these two, no thread may change the bytes. Several may read the same ones. */
void shared_begin_read(shared_memory *s, size_t offset, size_t size, unsigned thread);
void shared_end_read(shared_memory *s, size_t offset, size_t size);

/* Sets what pending says of bytes; 0: nothing. */
void shared_mark(shared_memory *s, size_t offset, size_t size, uint16_t mark);

/* A copier writes bytes, at a time of its own, which is returned. */
uint32_t shared_copier_write(shared_memory *s, size_t offset, size_t size, unsigned copier);

/* Adds what a warp has done and seen to a view, and the other way round. whole: all lanes of the
 * warp are in the view. */
void shared_release(shared_memory *s, unsigned w, shared_view *to);
void shared_acquire(shared_memory *s, unsigned w, const shared_view *from, bool whole);
void shared_view_join(shared_view *to, const shared_view *from);

/* Room for what warps have seen of copiers. */
void shared_use_copiers(shared_memory *s);

/* Notes a proxy fence of a warp, and returns true if the last writes to bytes that a thread has
 * seen are before one; other: whose is not. */
void shared_fence_proxy(shared_memory *s, unsigned w);
bool shared_is_fenced(const shared_memory *s, size_t offset, size_t size, unsigned thread,
                      unsigned *other);

/* Returns true if a thread has seen what another one did at a time. */
bool shared_has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time);

/* Some lanes of a warp, or all warps of a set, meet. all: these lanes are all of the warp's. */
void shared_warp_sync(shared_memory *s, unsigned w, uint32_t lanes, bool all);
void shared_barrier(shared_memory *s, uint32_t warps);

/* Starts a new time for what a warp does from now on. */
void shared_tick(shared_memory *s, unsigned w);

/* Returns the lanes of a warp whose accesses up to a time a thread has seen, or made itself. */
uint32_t shared_seen(const shared_memory *s, unsigned thread, unsigned w, uint32_t lanes,
                     uint32_t time);

#endif
