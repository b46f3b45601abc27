#include "kernel/memory_plan.h"

#include <stdbool.h>
#include <stdlib.h>

/* Which of the parts are placed, by where they start. */
typedef struct placed_parts {
    const memory_part **items;
    size_t count;
} placed_parts;

/* Larger ones first; where they are equal, as they stand in the caller's array. */
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

/* Returns the offset of the lowest gap that is large enough, among the parts that live at the same
 * time. */
static int64_t lowest_gap(const placed_parts *placed, const memory_part *part)
{
    int64_t offset = 0;
    for (size_t i = 0; i < placed->count; i++) {
        const memory_part *other = placed->items[i];
        if (part->first > other->last || other->first > part->last)
            continue; /* they never live at once */
        if (other->offset - offset >= part->bytes)
            break;
        int64_t behind = memory_aligned(end_of(other));
        offset = behind > offset ? behind : offset;
    }
    return offset;
}

int64_t memory_plan(arena *a, memory_part *parts, size_t count)
{
    memory_part **order = arena_alloc(a, (count + 1) * sizeof *order);
    placed_parts placed = { .items = arena_alloc(a, (count + 1) * sizeof *placed.items) };
    for (size_t i = 0; i < count; i++)
        order[i] = &parts[i];
    qsort(order, count, sizeof *order, by_size);
    int64_t needed = 0;
    for (size_t i = 0; i < count; i++) {
        order[i]->offset = lowest_gap(&placed, order[i]);
        size_t at = placed.count++;
        for (; at && placed.items[at - 1]->offset > order[i]->offset; at--)
            placed.items[at] = placed.items[at - 1];
        placed.items[at] = order[i];
        int64_t end = end_of(order[i]);
        needed = end > needed ? end : needed;
    }
    return needed;
}
