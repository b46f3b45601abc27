/* The shared memory of a block, and who has touched it when: see check/shared_race.h. */
#ifndef PTXGEN_EMU_SHARED_H
#define PTXGEN_EMU_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Copiers write as threads that a block does not have. */
enum { SHARED_MAX_WARPS = 32, SHARED_COPIERS = 64, FIRST_COPIER = SHARED_MAX_WARPS * 32 };

typedef struct shared_record {
    uint32_t written, read;  /* times; 0: not since the launch began */
    uint32_t readers;        /* warps that read at that time, a bit each */
    uint32_t reader_lanes;   /* the lanes of all of them together */
    uint16_t writer, reader; /* threads; MANY_READERS where there is no single one */
    uint16_t atomic;         /* the last write was atomic */
} shared_record;

/* [lane][other] of one warp: accesses before this. */
typedef uint32_t lanes_seen[32][32];

/* What somebody has seen: what each warp, and each copier, did before these times, and what each
 * warp wrote before one is covered by a proxy fence. */
typedef struct shared_view {
    uint32_t seen[SHARED_MAX_WARPS], copiers[SHARED_COPIERS], fenced[SHARED_MAX_WARPS];
} shared_view;

/* [warp]: as above, of its lanes. */
typedef struct shared_copiers {
    uint32_t seen[SHARED_MAX_WARPS][SHARED_COPIERS];
    uint32_t fenced[SHARED_MAX_WARPS][SHARED_MAX_WARPS];
} shared_copiers;

typedef struct shared_memory {
    uint8_t *bytes;
    size_t size;
    arena *arena;
    shared_record *records; /* of words, or of their first bytes where they are split */
    shared_record *others;  /* of the other three bytes; NULL before a word is split */
    uint8_t *split;         /* a byte a word */
    uint32_t now, began;    /* times: the current one, and that of the block's start */
    uint32_t warp_time[SHARED_MAX_WARPS];
    uint32_t sync_time[SHARED_MAX_WARPS]; /* of the last synchronisation; warp_time has ticked on */
    uint32_t seen[SHARED_MAX_WARPS][SHARED_MAX_WARPS]; /* [warp][other]: accesses before this */
    uint32_t
        seen_of_all[SHARED_MAX_WARPS]; /* the earliest of these, of other warps that there are */
    lanes_seen *seen_lanes[SHARED_MAX_WARPS]; /* what some lanes have seen beyond it, or NULL */
    /* a byte: 1 + the thread that copies to it, or one of these; NULL before the first copy */
    uint16_t *pending;
    uint16_t *readers;       /* of each byte, asynchronous ones; NULL before the first */
    shared_copiers *copiers; /* NULL before the first mbarrier or proxy fence */
    unsigned warps;          /* of the block */
    bool race_check;
} shared_memory;

#endif
