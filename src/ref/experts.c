/* Which experts rows use: random ones, as a router might have chosen them. */
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

/* Rows choose among so few experts that they share some. */
void ref_fit_experts(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FEW = 3 };
    (void)input;
    uint64_t rows = (uint64_t)p->shape.m, used = (uint64_t)p->shape.experts_used;
    uint64_t experts = (uint64_t)p->shape.experts, entry_words = EXPERT_FIRST_ROW + rows;
    uint64_t among = FEW * used < experts ? FEW * used : experts;
    uint32_t *list = bytes, chosen[EXPERTS_USED_AT_MOST];
    random_source r = { (uint64_t)list[0] << 32 | list[values - 1] };
    uint64_t first = random_below(&r, experts - among + 1);
    memset(list, 0, EXPERT_LIST_HEAD * sizeof *list);
    memset(list + EXPERT_LIST_HEAD, 0xff, (values - EXPERT_LIST_HEAD) * sizeof *list);
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t slot = 0; slot < used; slot++) {
            chosen[slot] = another(chosen, slot, among, &r);
            note(list, entry_words, (uint32_t)first + chosen[slot], (uint32_t)(row * used + slot));
        }
    uint32_t *last = list + EXPERT_LIST_HEAD + (list[0] - 1) * entry_words;
    if (rows >= FEW && last[EXPERT_ROWS] < rows)
        last[EXPERT_ID] = (uint32_t)experts;
}
