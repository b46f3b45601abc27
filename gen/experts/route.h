/* Shared declarations of the router of a mixture of experts. The logits of all rows of W are in
 * scratch memory, [m, rows]. The last block to finish derives the choice and the list from them.
 * More than 8 rows of X form groups of 8: the last block of each group chooses, and the last of
 * these blocks writes the list. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"
#include "kernel/problem.h"

enum {
    ROUTE_WORD = 4,                            /* bytes */
    ROUTE_EXPERTS = PROBLEM_MOST_EXPERTS,      /* limit of experts: 16 per lane */
    ROUTE_USED = PROBLEM_MOST_EXPERTS_USED,    /* limit of chosen experts: one per lane */
    ROUTE_GROUPS = PROBLEM_MOST_EXPERT_GROUPS, /* limit of groups */
    ROUTE_LINE_IDS = 4,                        /* ids of a row that are loaded at once */
};
#define ROUTE_NO_ID UINT32_MAX

typedef struct route {
    const instance *in;
    unsigned k, m, experts, used, rows; /* rows of W, including w_shared */
    unsigned group;                     /* rows of X per block */
    unsigned threads, warps;
    unsigned room; /* words per row of ids */
    val scratch;
    val scores; /* shared memory, [warps, experts]; only with groups */
    val ids;    /* [m, room] or [group, room], padded with ROUTE_NO_ID */
    val firsts; /* copy of ids without ids that an earlier row has */
} route;

/* Loads an expert's value of an input [experts]. */
val route_of_expert(ptx *p, const char *name, val expert);

/* Chooses the experts of a row of X and computes their weights, with one warp. Stores ids and
 * weights to global memory, and the ids to shared memory. */
void route_choose(ptx *p, const route *r, val row);

/* Stores the list of the experts in use. All threads of the block must call it. It reads the ids of
 * all rows from shared memory, or from global memory if there are several groups. */
void route_make_list(ptx *p, const route *r);

/* Returns the bytes of static shared memory that the list needs if there are several groups. */
int64_t route_bytes_of_many(const instance *in);
