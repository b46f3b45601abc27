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

/* A loop that the PTX marks with what a lane does in one turn: "// 32 weights a lane". */
typedef struct ptx_loop {
    unsigned work; /* 0: there is none */
    char unit[16]; /* "weights" */
    size_t number; /* among the loops that hold no other, in the order of the text */
    ptx_counts counts;
} ptx_loop;

typedef struct ptx_stats {
    ptx_counts all;
    ptx_loop hot; /* of the marked loops that hold no other, the one with the most work */
} ptx_stats;

ptx_stats ptx_stats_of(const char *ptx);

#endif
