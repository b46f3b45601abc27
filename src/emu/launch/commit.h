/* Makes good, in the order of blocks, what blocks have done ahead of turn: see speculation.h. */
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

/* What a thread has for its share of a round's pages, which no other one touches. */
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

/* Makes shared what blocks of a round have stored to, for threads to make it good. */
void commit_prepare(const commit *c, const speculation *s);

/* Looks through one of so many shares of a round's pages, without a change to memory. share->good
 * is set to how many blocks have nothing in the way there, so that neither their order nor that of
 * their pages matters. */
void commit_check_share(commit_share *share, unsigned number, unsigned shares,
                        const block_log *logs, uint64_t count);

/* Stores the share's pages of so many blocks, which are good in all shares. */
void commit_store_share(commit_share *share, uint64_t count);

/* All else of a block whose pages have been stored. */
void commit_others(const commit *c, const block_log *log);

/* Notes for blocks to come what such a block has stored. */
void commit_note(commit *c, const block_log *log);

/* Makes a block's log good, all blocks before it being done. False, and nothing done, where it has
 * to run again, as what it has seen or stored may not be what it would at its turn. */
bool commit_block(commit *c, const block_log *log);

#endif
