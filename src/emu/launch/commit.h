/* Makes good, in the order of blocks, what blocks have done early: see speculation.h. */
#ifndef PTXGEN_EMU_LAUNCH_COMMIT_H
#define PTXGEN_EMU_LAUNCH_COMMIT_H

#include "emu/check/grid_race.h"
#include "emu/memory/speculation.h"

/* Of the machine that runs the blocks of a launch whose turn it is. */
typedef struct commit {
    machine *machine;
    uint32_t launch;   /* see allocation.tracked */
    page_table stored; /* by blocks of this round, of what is tracked: their loaded sets */
} commit;

/* A thread's share of a round's pages, which no other thread touches. */
typedef struct commit_share {
    const commit *of;
    grid_race *grid;   /* for what it notes of stores */
    page_table stored; /* by the blocks so far: their loaded sets */
    VEC(struct committed_page {
        uint64_t block;
        const block_page *page;
    })
    pages; /* with stores, in the order of blocks */
    uint64_t good;
} commit_share;

/* Prepares what blocks of a round have stored to for several threads. */
void commit_prepare(const commit *c, const speculation *s);

/* Checks one of several shares of a round's pages without changing memory. share->good is set to
 * how many leading blocks are independent there. */
void commit_check_share(commit_share *share, unsigned number, unsigned shares,
                        const block_log *logs, uint64_t count);

/* Stores the share's pages of the first count blocks, which are good in all shares. */
void commit_store_share(commit_share *share, uint64_t count);

/* Commits everything else of a block whose pages have been stored. */
void commit_others(const commit *c, const block_log *log);

/* Notes what such a block has stored, for later blocks. */
void commit_note(commit *c, const block_log *log);

/* Commits a block after all blocks before it. Returns false, and does nothing, if it has to run
 * again. */
bool commit_block(commit *c, const block_log *log);

#endif
