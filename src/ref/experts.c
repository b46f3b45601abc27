/* Which experts rows use: random ones, as a router might have chosen them. */
#include <stdbool.h>
#include <string.h>

#include "ref/random.h"
#include "ref/reference.h"

/* A number below limit that is not among those chosen so far. */
static uint32_t another(const uint32_t *chosen, uint64_t count, uint64_t limit, random_source *r)
{
    for (;;) {
        uint32_t number = (uint32_t)random_below(r, limit);
        uint64_t i = 0;
        while (i < count && chosen[i] != number)
            i++;
        if (i == count)
            return number;
    }
}

/* Adds a row's word to the entry of an expert, which is made where there is none yet. */
static void note(uint32_t *list, uint64_t entry_words, uint32_t id, uint32_t word)
{
    uint32_t *entry = list + EXPERT_LIST_HEAD, *end = entry + list[0] * entry_words;
    while (entry < end && entry[EXPERT_ID] < id)
        entry += entry_words;
    if (entry == end || entry[EXPERT_ID] != id) {
        memmove(entry + entry_words, entry, (size_t)(end - entry) * sizeof *entry);
        memset(entry, 0xff, entry_words * sizeof *entry);
        entry[EXPERT_ID] = id;
        entry[EXPERT_ROWS] = 0;
        list[0]++;
    }
    entry[EXPERT_FIRST_ROW + entry[EXPERT_ROWS]++] = word;
}

/* The rows that use an expert, as many of those with slots left as are wanted, from one on; and
 * those that need all the experts that are left. Returns whether there is one. */
static bool take_rows(const problem *p, const uint64_t *free, uint64_t experts_left,
                      uint64_t wanted, uint64_t first, bool *takes)
{
    uint64_t rows = (uint64_t)p->shape.m, count = 0;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t row = (first + i) % rows;
        takes[row] = free[row] && (count < wanted || free[row] == experts_left);
        count += takes[row];
    }
    return count > 0;
}

/* The expert that most rows use becomes the last one. */
static void move_fullest_behind(uint32_t *list, uint64_t entry_words)
{
    uint32_t *first = list + EXPERT_LIST_HEAD, *end = first + list[0] * entry_words, *most = first;
    uint32_t moved[EXPERT_FIRST_ROW + EXPERT_MOST_ROWS];
    for (uint32_t *entry = first; entry < end; entry += entry_words)
        if (entry[EXPERT_ROWS] > most[EXPERT_ROWS])
            most = entry;
    memcpy(moved, most, entry_words * sizeof *moved);
    memmove(most, most + entry_words,
            (size_t)(end - most) * sizeof *most - entry_words * sizeof *most);
    memcpy(end - entry_words, moved, entry_words * sizeof *moved);
}

/* Kernels have code for experts of all rows, of some and of one: numbers of rows take turns, from
 * one on that the seed says; of some lists each expert has one alone, so that these are many.
 * Callers must not, but may, name an expert that there is not. */
void ref_fit_experts(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FEW = 3, SIZES = 5, LONG_LISTS = 3 };
    (void)input;
    uint64_t rows = (uint64_t)p->shape.m, used = (uint64_t)p->shape.experts_used;
    uint64_t experts = (uint64_t)p->shape.experts, entry_words = EXPERT_FIRST_ROW + rows;
    uint64_t free[EXPERT_MOST_ROWS], count = 0;
    uint32_t *list = bytes, chosen[EXPERTS_USED_AT_MOST * EXPERT_MOST_ROWS];
    bool takes[EXPERT_MOST_ROWS];
    random_source r = { (uint64_t)list[0] << 32 | list[values - 1] };
    uint64_t turn = random_below(&r, SIZES);
    bool alone = random_below(&r, LONG_LISTS) == 0;
    memset(list, 0, EXPERT_LIST_HEAD * sizeof *list);
    memset(list + EXPERT_LIST_HEAD, 0xff, (values - EXPERT_LIST_HEAD) * sizeof *list);
    for (uint64_t row = 0; row < rows; row++)
        free[row] = used;
    for (;; count++) {
        const uint64_t sizes[SIZES] = { rows, 1, (rows + 1) / 2, 2, 1 + random_below(&r, rows) };
        uint64_t wanted = alone ? 1 : sizes[(turn + count) % SIZES];
        if (!take_rows(p, free, experts - count, wanted, random_below(&r, rows), takes))
            break;
        chosen[count] = another(chosen, count, experts, &r);
        for (uint64_t row = 0; row < rows; row++)
            if (takes[row])
                note(list, entry_words, chosen[count], (uint32_t)(row * used + used - free[row]--));
    }
    uint32_t *last = list + EXPERT_LIST_HEAD + (list[0] - 1) * entry_words;
    if (p->strange)
        move_fullest_behind(list, entry_words);
    if (p->strange)
        last[EXPERT_ID] = random_below(&r, 2) ? UINT32_MAX : (uint32_t)experts;
    else if (rows >= FEW && last[EXPERT_ROWS] < rows)
        last[EXPERT_ID] = (uint32_t)experts;
}

uint32_t ref_expert_of(const problem *p, unsigned input, uint64_t choice)
{
    const uint32_t *list = p->inputs[input], *entry = list + EXPERT_LIST_HEAD;
    for (uint32_t i = 0; i < list[0]; i++, entry += EXPERT_FIRST_ROW + p->shape.m)
        for (uint32_t row = 0; row < entry[EXPERT_ROWS]; row++)
            if (entry[EXPERT_FIRST_ROW + row] == choice)
                return entry[EXPERT_ID];
    return UINT32_MAX;
}
