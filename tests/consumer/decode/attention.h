/* What attention gives for one sequence, computed on the CPU: softmax(q K' / sqrt(head_dim)) V. */
#ifndef DECODE_ATTENTION_H
#define DECODE_ATTENTION_H

enum {
    HEAD_DIM = 64,
    HEADS = 4,
    KV_HEADS = 2,
    HIDDEN = HEADS * HEAD_DIM,
    LONGEST_SEQUENCE = 320,
};

/* A cache is [kv_head][room][head_dim]; its first seq_len positions count. Zeros for none. */
void attend(const float q[HIDDEN], const float *keys, const float *values, unsigned room,
            unsigned seq_len, float out[HIDDEN]);

#endif
