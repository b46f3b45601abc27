#include "kernel/memory_plan.h"

#include <stdlib.h>

/* Compares parts for qsort: larger first, equal ones in the order of the caller's array. */
static int by_size(const void *left, const void *right)
{
    const memory_part *a = *(memory_part *const *)left, *b = *(memory_part *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int64_t end_of(const memory_part *part)
{
    int64_t end;
    return __builtin_add_overflow(part->offset, part->bytes, &end) ? INT64_MAX : end;
}

int64_t memory_aligned(int64_t offset)
{
    if (offset > INT64_MAX - MEMORY_ALIGNMENT)
        return INT64_MAX / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
    return (offset + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
}

int64_t memory_plan(arena *a, memory_part *parts, size_t count)
{
    memory_part **order = arena_alloc(a, (count + 1) * sizeof *order);
    const memory_part **placed = arena_alloc(a, (count + 1) * sizeof *placed); /* by offset */
    for (size_t i = 0; i < count; i++)
        order[i] = &parts[i];
    qsort(order, count, sizeof *order, by_size);
    int64_t needed = 0;
    for (size_t i = 0, at; i < count; i++) {
        memory_part *part = order[i];
        part->offset = 0; /* lowest gap among parts with a common step */
        for (at = 0; at < i; at++) {
            const memory_part *other = placed[at];
            if (part->first > other->last || other->first > part->last)
                continue;
            if (other->offset - part->offset >= part->bytes)
                break;
            int64_t behind = memory_aligned(end_of(other));
            part->offset = behind > part->offset ? behind : part->offset;
        }
        for (at = i; at && placed[at - 1]->offset > part->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = part;
        int64_t end = end_of(part);
        needed = end > needed ? end : needed;
    }
    return needed;
}
