/* Groups of up to 8 rows that a block multiplies. All groups have the same number of rows: the last
 * group starts early enough to be full, and does not store the rows that the previous group also
 * has. For 17 rows the groups are rows 0 to 7, 8 to 15 and 9 to 16. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

typedef struct row_group {
    unsigned count;
    bool several; /* there is more than one group */
    bool ragged;  /* the last group overlaps the previous one */
    val first;    /* the group's first row */
    val own;      /* the first row that the group stores */
} row_group;
row_group row_group_new(ptx *p, const instance *in, val number);

int64_t row_group_count(const instance *in);
unsigned row_group_rows(const instance *in);

/* Returns the row of the step for a row of the group. */
val row_of_group(ptx *p, const row_group *g, val number);
/* Returns true if the group stores this row of the step. */
val row_is_own(ptx *p, const row_group *g, val row);
/* Returns the address of the group's first row in an array of rows of row_bytes bytes. */
val row_group_start(ptx *p, const row_group *g, val array, unsigned row_bytes);
