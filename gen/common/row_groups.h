/* Rows that blocks multiply up to 8 at a time: a group each. All groups have as
 * many; the last one of many rows has the last ones, of which the group ahead may have some, too,
 * and these are that one's to store. Of 17 rows, groups have 0 to 7, 8 to 15 and 9 to 16. */
#ifndef PTXGEN_GEN_COMMON_ROW_GROUPS_H
#define PTXGEN_GEN_COMMON_ROW_GROUPS_H

#include "kernel/family.h"
#include "ptx/ptx.h"

typedef struct row_group {
    unsigned count;
    bool several; /* groups */
    bool ragged;  /* the last has rows of the one ahead */
    val first;    /* its first row, */
    val own;      /* and the first that is its own */
} row_group;
row_group row_group_new(ptx *p, const instance *in, val number);

/* Groups of an instance's rows, and rows of each. */
int64_t row_group_count(const instance *in);
unsigned row_group_rows(const instance *in);

/* The row of a step that a number of the group stands for, and whether such a row is the group's to
 * store. */
val row_of_group(ptx *p, const row_group *g, val number);
val row_is_own(ptx *p, const row_group *g, val row);

/* Where an array starts for the group, of which rows are so many bytes apart. */
val row_group_start(ptx *p, const row_group *g, val array, unsigned row_bytes);

#endif
