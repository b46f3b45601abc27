/* The keys that all decode attention families have. */
#ifndef PTXGEN_GEN_ATTENTION_ATTENTION_KEYS_H
#define PTXGEN_GEN_ATTENTION_ATTENTION_KEYS_H

#include "gen/rows/rope.h"

#define ATTENTION_SHAPE            ATTENTION_SHAPE_OF(4)
#define ATTENTION_SHAPE_OF(values) KEY_HEAD_DIM(values), KEY_NUM_HEADS, KEYS_OF_CACHE
#define KEYS_OF_CACHE                                                                       \
    KEY_NUMBER("num_kv_heads", "key and value heads", shape.num_kv_heads, 1, 65535,         \
               .required = true, .tag = "kv"),                                              \
        KEY_NUMBER("max_seq_len", "positions the cache has room for", shape.max_seq_len, 1, \
                   INT32_MAX, .required = true, .tag = "s")

#define ATTENTION_OPTIONS               \
    KEY_WORD("kv_type",                 \
             "elements of the cache; "  \
             "q8_0: head_dim in 32s",   \
             kv_type, kv_type_choices), \
        ATTENTION_SCORES

#define ATTENTION_SCORES                                                    \
    KEY_REAL("scale", "of q.k; d: head_dim", options.scale, "scale",        \
             RANGE(.max = 1e6, .def_text = "1/sqrt(d)")),                   \
        KEY_REAL("softcap", "c of c tanh(score/c)", options.softcap, "cap", \
                 RANGE(.max = 1e6, .def_text = "none")),                    \
        ATTENTION_WINDOW

#define ATTENTION_WINDOW                                                            \
    KEY_NUMBER("window", "last positions that count", options.window, 0, INT32_MAX, \
               .zero_is_none = true, .tag = "win")

/* One more logit of each head's softmax, without a value. */
#define KEY_SINKS KEY_WORD("sinks", "logits of heads, without value", options.sinks, sinks_choices)
#define SINKS     IN_WHERE(sinks, F32, sinks, "num_heads", 4)

/* Caches whose rows are used again: position t stands in row t % ring. */
#define KEY_RING                                                                                  \
    KEY_NUMBER("ring", "rows of a cache: position t in row t % ring", options.ring, 0, INT32_MAX, \
               .zero_is_none = true, .tag = "ring")

/* A factor of each value of the result. */
#define KEY_GATE KEY_WORD("gate", "o by its sigmoid", options.gate, gate_choices)
#define GATES                                                                       \
    IN(F32, gate, "m*num_heads*head_dim", 16, .only_with = KEY_FIELD(options.gate), \
       .random = RANDOM_FITTED)

#define KEY_SEQ_LEN \
    KEY_WORD("seq_len", "a number, or read from device memory", seq_len_mode, seq_len_choices)

/* Sequences of a batch. No kernel reads their number, but what launches it takes the grid from it.
 */
#define KEY_SEQUENCES                                                                      \
    KEY_NUMBER("m", "sequences", shape.m, 1, 65535, .required = true, .at_run_time = true, \
               .tag = "m")

#define KEY_CHUNKS \
    KEY_NUMBER("chunks", "chunks a sequence, at most", chunks, 1, 1024, .def = 64, .tag = "c")

#define KEY_CHUNK_SIZE                                                                    \
    KEY_NUMBER("chunk_size", "positions a chunk", shape.chunk_size, 32, 1024, .def = 128, \
               .tag = "c")

extern const choice sinks_choices[], gate_choices[];

/* num_heads is a multiple of num_kv_heads; head_dim fits kv_type. */
const char *check_heads(const instance *in, arena *a, const char **blamed);

/* The same, and a ring has room for the window. */
const char *check_ring(const instance *in, arena *a, const char **blamed);

/* Checks what check_heads does, and that the chunks fit a grid. */
const char *check_flash_decoding(const instance *in, arena *a, const char **blamed);

#endif
