/* Groups of up to 8 rows that a block multiplies. All groups have as many; the last group of many
 * rows has the last ones, and does not store those that the previous group has too. Of 17 rows,
 * groups have 0 to 7, 8 to 15 and 9 to 16. */
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

/* Return the step's row with a number in the group; true if the group stores such a row; the
 * address of an array's first row of the group, with rows row_bytes apart. */
val row_of_group(ptx *p, const row_group *g, val number);
val row_is_own(ptx *p, const row_group *g, val row);
val row_group_start(ptx *p, const row_group *g, val array, unsigned row_bytes);

#endif
