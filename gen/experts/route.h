/* The router of a mixture of experts: what its parts know of each other. The logits of all rows of
 * W are in scratch memory, [m, rows]; the last block to finish makes of them the choice and the
 * list. More than 8 rows of X come in groups of 8, of which each has a last block that chooses; the
 * last of these makes the list.
 */
#ifndef PTXGEN_GEN_EXPERTS_ROUTE_H
#define PTXGEN_GEN_EXPERTS_ROUTE_H

#include "kernel/family.h"
#include "ptx/ptx.h"
#include "kernel/problem.h"

enum {
    ROUTE_WORD = 4,                            /* bytes */
    ROUTE_EXPERTS = PROBLEM_MOST_EXPERTS,      /* at most: 16 a lane, */
    ROUTE_USED = PROBLEM_MOST_EXPERTS_USED,    /* chosen ones: one a lane, */
    ROUTE_GROUPS = PROBLEM_MOST_EXPERT_GROUPS, /* and groups */
    ROUTE_LINE_IDS = 4,                        /* of a row's ids that are loaded at once */
};
#define ROUTE_NO_ID UINT32_MAX

typedef struct route {
    const instance *in;
    unsigned k, m, experts, used, rows; /* rows of W, w_shared among them */
    unsigned group;                     /* rows of X that a block has at once */
    unsigned threads, warps;
    unsigned room; /* of a row's ids, in words */
    val scratch;
    val scores; /* shared memory: [warps, experts], where there are groups; */
    val ids;    /* [m, room], behind the slots ROUTE_NO_ID: of many rows those of the group; */
    val firsts; /* and the same of those that no row ahead has, else ROUTE_NO_ID */
} route;

/* Chooses the experts of a row of X and weighs them, by one warp. Stores ids and weights, and the
 * ids in shared memory as well. */
void route_choose(ptx *p, const route *r, val row);

/* Stores the list of the experts in use, by all threads of the block, from the ids of all rows: in
 * shared memory, or of more rows than a group's those that route_choose has stored. */
void route_make_list(ptx *p, const route *r);

/* Static shared memory that the list of more rows than a group's needs, in bytes. */
int64_t route_bytes_of_many(const instance *in);

#endif
