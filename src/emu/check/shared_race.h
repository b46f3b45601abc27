/* Detects races on the shared memory of a block, with vector clocks.
 *
 * Time counts synchronisations: each barrier, of the block or of a warp's lanes, starts a new time
 * for the participating warps. Each warp knows up to which time the accesses of each other warp are
 * visible to it. After a synchronisation of some lanes, each lane knows the same of each other
 * lane. An access that is not visible to a thread, and not its own, is concurrent with it. Each
 * byte remembers its last writer, its last reader, and their times. One record serves the four
 * bytes of an aligned word until an access touches only part of it.
 *
 * shared_tick starts a new time for a warp without a synchronisation, so that grid_order.h can tell
 * apart what came before a fence and after it. Records of shared memory have times of
 * synchronisations only: a tick says nothing about what other warps see.
 *
 * Asynchronous copies write as copiers. Each mbarrier has a copier, so that a wait at one mbarrier
 * does not make copies of another one visible. Copies use the async proxy: a bulk copy may touch
 * bytes stored by threads through the generic proxy only after a proxy fence, by the writer or by a
 * thread that follows it in order. So each warp also knows up to which time such a fence covers the
 * writes of each other warp.
 *
 * Only the latest time of reads is remembered. If warps synchronise in groups smaller than the
 * block, a read may be forgotten and a race missed, or a read may count as later than it was. */
#pragma once

#include "emu/machine.h"

typedef enum shared_access {
    SHARED_READ,
    SHARED_WRITE,
    SHARED_ATOMIC,       /* read and write */
    SHARED_ATOMIC_WRITE, /* a strong store */
} shared_access;

typedef enum shared_problem {
    SHARED_FINE,
    SHARED_UNWRITTEN,
    SHARED_WRITE_AFTER_WRITE,
    SHARED_WRITE_AFTER_READ,
    SHARED_READ_AFTER_WRITE,
    SHARED_PENDING,      /* destination of an asynchronous copy that is not yet waited for */
    SHARED_PENDING_READ, /* source of an asynchronous operation that is not yet waited for */
    SHARED_MBARRIER,     /* bytes of an mbarrier */
} shared_problem;

/* Marks of shared_memory.pending: the byte has an asynchronous reader, or is an mbarrier's. */
enum { PENDING_READ = 0x8000, PENDING_MBARRIER = 0x7fff };

void shared_start(shared_memory *s, arena *a, size_t size, unsigned warps, bool race_check);
void shared_begin_block(shared_memory *s);

/* Notes an access of size bytes, an aligned power of two up to 8, unless there is a problem. Sets
 * other to the conflicting thread, or to a number past all threads if there are several. */
shared_problem shared_note(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                           shared_access how, unsigned *other);

/* Notes an access of size bytes, a power of two, by each lane i at offset + at[i] - lowest. Returns
 * false at the first problem. Noting the lanes before it again has no effect. */
bool shared_note_lanes(shared_memory *s, size_t offset, const uint64_t at[32], uint64_t lowest,
                       uint32_t lanes, unsigned size, unsigned w, shared_access how);

/* Notes the load of a matrix row of four words: word i by thread first + step * i and, if readers
 * is 2, also by the thread four further. Returns false on a problem, or if a word is split. */
bool shared_note_matrix_row(shared_memory *s, size_t offset, unsigned first, unsigned step,
                            unsigned readers);

/* Notes an access in spite of a problem. */
void shared_note_anyway(shared_memory *s, size_t offset, unsigned size, unsigned thread,
                        shared_access how);

/* Begin and end a copy to bytes, during which no thread may access them. */
void shared_begin_copy(shared_memory *s, size_t offset, size_t size, unsigned thread);
void shared_end_copy(shared_memory *s, size_t offset, size_t size);

/* Begin and end an asynchronous read of bytes, which no thread may write. Reads may overlap. */
void shared_begin_read(shared_memory *s, size_t offset, size_t size, unsigned thread);
void shared_end_read(shared_memory *s, size_t offset, size_t size);

/* Sets the pending mark of bytes; 0 clears it. */
void shared_mark(shared_memory *s, size_t offset, size_t size, uint16_t mark);

/* Notes a write by a copier and returns its time. */
uint32_t shared_copier_write(shared_memory *s, size_t offset, size_t size, unsigned copier);

/* Adds a warp's accesses, and all that it sees, to a view. */
void shared_release(shared_memory *s, unsigned w, shared_view *to);

/* Adds a view to what a warp sees. whole: the view includes all lanes of the warp. */
void shared_acquire(shared_memory *s, unsigned w, const shared_view *from, bool whole);
void shared_view_join(shared_view *to, const shared_view *from);

/* Allocates the visibility of copiers. */
void shared_use_copiers(shared_memory *s);

void shared_fence_proxy(shared_memory *s, unsigned w);

/* Returns true if a proxy fence covers a thread's last writes. other: who lacks one. */
bool shared_is_fenced(const shared_memory *s, size_t offset, size_t size, unsigned thread,
                      unsigned *other);

/* Returns true if an access by another thread at a time is visible to a thread. */
bool shared_has_seen(const shared_memory *s, unsigned thread, unsigned other, uint32_t time);

/* Synchronises lanes of a warp. all: they are all lanes of the warp. */
void shared_warp_sync(shared_memory *s, unsigned w, uint32_t lanes, bool all);

/* Synchronises all threads of a set of warps. */
void shared_barrier(shared_memory *s, uint32_t warps);

/* Starts a new time for a warp. */
void shared_tick(shared_memory *s, unsigned w);

/* Returns the lanes of a warp whose accesses at a time are visible to a thread, or its own. */
uint32_t shared_seen(const shared_memory *s, unsigned thread, unsigned w, uint32_t lanes,
                     uint32_t time);
