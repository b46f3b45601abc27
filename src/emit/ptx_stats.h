/* What stands in a kernel's PTX: instructions by kind, in all and in its hot loop.
 *
 * Static counts of PTX, not of machine code: ptxas folds some instructions and adds others, but the
 * cost of one kernel against another of the same work shows.
 */
#ifndef PTXGEN_EMIT_PTX_STATS_H
#define PTXGEN_EMIT_PTX_STATS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ptx_class {
    PTX_GLOBAL, /* loads, stores and atomics of device memory */
    PTX_SHARED, /* the same of shared memory; parameters */
    PTX_FLOAT,
    PTX_DOT,     /* products of four bytes at once, and of tiles */
    PTX_INTEGER, /* addresses and unpacking: add, shift, permute */
    PTX_CONVERT, /* between types, and moves */
    PTX_WARP,    /* shuffles, votes, barriers */
    PTX_CONTROL, /* compare, select, branch */
    PTX_CLASS_COUNT
} ptx_class;
extern const char *const ptx_class_names[PTX_CLASS_COUNT];

typedef struct ptx_counts {
    unsigned instructions, by_class[PTX_CLASS_COUNT];
    unsigned loads, load_bytes; /* of device memory; bytes a lane */
} ptx_counts;

enum { PTX_MOST_LOOPS = 64 };

/* The loops that the PTX marks with what a lane does in one turn ("// 32 weights a lane"): of those
 * that hold no other loop the one with the most work, or all with as much as that, such as the pass
 * over K and the one over V of an attention. Figures are of one turn of each, together. */
typedef struct ptx_hot_loops {
    unsigned work; /* 0: there are none */
    char unit[16]; /* "weights" */
    ptx_counts counts;
    size_t
        numbers[PTX_MOST_LOOPS]; /* among the loops that hold no other, in the order of the text */
    size_t count;
} ptx_hot_loops;

typedef struct ptx_stats {
    ptx_counts all;
    ptx_hot_loops hot;
    bool has_seldom; /* it marks a loop that few launches come to */
} ptx_stats;

ptx_stats ptx_stats_of(const char *ptx);

#endif
