#include "batch.h"

#include <string.h>

#include "values.h"

/* Fills a cache with halves from 1/2 to 8, so that some positions weigh far more than others. */
static void fill(uint64_t *random, uint16_t halves[CACHE], float wide[CACHE])
{
    for (int i = 0; i < CACHE; i++) {
        uint32_t bits = random_bits(random);
        halves[i] = (uint16_t)((bits & 0x83ff) | (14 + (bits >> 16) % 4) << 10);
        wide[i] = half_value(halves[i]);
    }
}

void batch_make(batch *b)
{
    uint64_t random = 2;
    memset(b, 0, sizeof *b);
    for (int s = 0; s < SEQUENCES; s++) {
        for (int i = 0; i < HIDDEN; i++)
            b->q[s][i] = random_value(&random);
        fill(&random, b->keys[s], b->wide_keys[s]);
        fill(&random, b->values[s], b->wide_values[s]);
    }
}

void batch_attend(const batch *b, float out[SEQUENCES][HIDDEN])
{
    for (int s = 0; s < SEQUENCES; s++)
        attend(b->q[s], b->wide_keys[s], b->wide_values[s], ROOM, b->seq_lens[s], out[s]);
}
