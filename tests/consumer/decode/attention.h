/* Attention of one sequence, computed on the CPU: softmax(q K' / sqrt(head_dim)) V. */
#ifndef DECODE_ATTENTION_H
#define DECODE_ATTENTION_H

enum {
    HEAD_DIM = 64,
    HEADS = 4,
    KV_HEADS = 2,
    HIDDEN = HEADS * HEAD_DIM,
    LONGEST_SEQUENCE = 320,
};

/* Computes attention over the first seq_len positions of caches [kv_head][room][head_dim]. Writes
 * zeros if seq_len is 0. */
void attend(const float q[HIDDEN], const float *keys, const float *values, unsigned room,
            unsigned seq_len, float out[HIDDEN]);

#endif
