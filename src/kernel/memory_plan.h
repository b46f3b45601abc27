/* Places buffers in one piece of memory. Buffers whose lifetimes have no common step may share
 * memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { MEMORY_ALIGNMENT = 256 };

/* A buffer that is live from step first to step last, inclusive. */
typedef struct memory_part {
    int64_t bytes;
    size_t first, last;
    int64_t offset; /* result of the plan, a multiple of MEMORY_ALIGNMENT */
} memory_part;

/* Rounds an offset up to a multiple of MEMORY_ALIGNMENT; saturates at the largest multiple. */
int64_t memory_aligned(int64_t offset);

/* Sets the offsets and returns the bytes of memory needed, saturated at INT64_MAX.
 *
 * Places the largest part first, each as low as it fits among the parts with a common step; equal
 * ones in the order of the list. So the same parts always give the same plan. It need not be the
 * minimum, which is hard to find, but never exceeds all parts side by side. */
int64_t memory_plan(arena *a, memory_part *parts, size_t count);
