/* A batch of sequences for attention. Each has its own length and its own f16 cache. */
#ifndef DECODE_BATCH_H
#define DECODE_BATCH_H

#include <stdint.h>

#include "attention.h"

enum { SEQUENCES = 4, ROOM = LONGEST_SEQUENCE, CACHE = KV_HEADS * ROOM * HEAD_DIM };

typedef struct batch {
    uint32_t seq_lens[SEQUENCES];
    float q[SEQUENCES][HIDDEN];
    uint16_t keys[SEQUENCES][CACHE], values[SEQUENCES][CACHE];
    float wide_keys[SEQUENCES][CACHE], wide_values[SEQUENCES][CACHE]; /* the caches as floats */
} batch;

/* Makes pseudo-random queries and full caches, always the same. All lengths are 0. */
void batch_make(batch *b);

void batch_attend(const batch *b, float out[SEQUENCES][HIDDEN]);

#endif
