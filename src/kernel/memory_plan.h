/* Shares memory among buffers that are not all needed at once: each is given a place in one piece
 * of memory, and those whose lives have no step in common may get the same one.
 */
#ifndef PTXGEN_KERNEL_MEMORY_PLAN_H
#define PTXGEN_KERNEL_MEMORY_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { MEMORY_ALIGNMENT = 256 };

/* A buffer that lives from the first step that uses it to the last, both included. */
typedef struct memory_part {
    int64_t bytes;
    size_t first, last;
    int64_t offset; /* the plan's: a multiple of MEMORY_ALIGNMENT */
} memory_part;

/* The first multiple of MEMORY_ALIGNMENT from an offset on, or the last one that there is. */
int64_t memory_aligned(int64_t offset);

/* Fills in the offsets and returns the bytes that are needed in all, from the start of the memory
 * to the end of its highest part; INT64_MAX where there is no such number.
 *
 * The largest part is placed first and each as low as it fits among those that it meets, of equal
 * ones the first in the list first: the same parts give the same plan. That is not always the least
 * memory (to find it is hard), but never more than that of all parts side by side. */
int64_t memory_plan(arena *a, memory_part *parts, size_t count);

#endif
