/* Instruction counts of a kernel's PTX by class, in total and in its hot loops.
 *
 * The counts are of PTX, not machine code: ptxas folds and adds instructions. They still compare
 * kernels that do the same work. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum ptx_class {
    PTX_GLOBAL, /* loads, stores and atomics of device memory */
    PTX_SHARED, /* loads, stores and atomics of shared memory; parameters */
    PTX_FLOAT,
    PTX_DOT,     /* four-byte dot products and tile products */
    PTX_INTEGER, /* add, shift, permute: addresses and unpacking */
    PTX_CONVERT, /* conversions and moves */
    PTX_WARP,    /* shuffles, votes, barriers */
    PTX_CONTROL, /* compare, select, branch */
    PTX_CLASS_COUNT
} ptx_class;
extern const char *const ptx_class_names[PTX_CLASS_COUNT];

typedef struct ptx_counts {
    unsigned instructions, by_class[PTX_CLASS_COUNT];
    unsigned loads, load_bytes; /* loads of device memory; bytes per lane */
} ptx_counts;

enum { PTX_MOST_LOOPS = 64 };

/* The hot loops: of the innermost loops that are marked with the work per iteration ("// 32 weights
 * a lane"), those with the most work. Counts are the sums of one iteration of each. */
typedef struct ptx_hot_loops {
    unsigned work; /* sum of their work per iteration; 0: no loop is marked */
    char unit[16]; /* unit of the work, e.g. "weights" */
    ptx_counts counts;
    size_t
        numbers[PTX_MOST_LOOPS]; /* indices among the innermost loops, in the order of the text */
    size_t count;
} ptx_hot_loops;

typedef struct ptx_stats {
    ptx_counts all;
    ptx_hot_loops hot;
    bool has_seldom; /* true: a loop is marked as rarely run */
} ptx_stats;

ptx_stats ptx_stats_of(const char *ptx);
