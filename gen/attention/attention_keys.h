/* The keys that all decode attention families have. */
#ifndef PTXGEN_GEN_ATTENTION_ATTENTION_KEYS_H
#define PTXGEN_GEN_ATTENTION_ATTENTION_KEYS_H

#include "gen/rows/rope_keys.h"

#define ATTENTION_SHAPE            ATTENTION_SHAPE_OF(4)
#define ATTENTION_SHAPE_OF(values) KEY_HEAD_DIM(values), KEY_NUM_HEADS, KEYS_OF_CACHE
#define KEYS_OF_CACHE                                                                        \
    { .name = "num_kv_heads",                                                                \
      .summary = "key and value heads",                                                      \
      .field = KEY_FIELD(shape.num_kv_heads),                                                \
      .min = 1,                                                                              \
      .max = 65535,                                                                          \
      .required = true,                                                                      \
      .tag = "kv" },                                                                         \
    {                                                                                        \
        .name = "max_seq_len", .summary = "positions the cache has room for",                \
        .field = KEY_FIELD(shape.max_seq_len), .min = 1, .max = INT32_MAX, .required = true, \
        .tag = "s"                                                                           \
    }

#define ATTENTION_OPTIONS                  \
    { .name = "kv_type",                   \
      .summary = "elements of the cache; " \
                 "q8_0: head_dim in 32s",  \
      .field = KEY_FIELD(kv_type),         \
      .choices = kv_type_choices },        \
        ATTENTION_SCORES

#define ATTENTION_SCORES                       \
    { .name = "scale",                         \
      .summary = "of q.k; d: head_dim",        \
      .field = KEY_FIELD(options.scale),       \
      .tag = "scale",                          \
      .real = &scale_range },                  \
        { .name = "softcap",                   \
          .summary = "c of c tanh(score/c)",   \
          .field = KEY_FIELD(options.softcap), \
          .tag = "cap",                        \
          .real = &softcap_range },            \
        ATTENTION_WINDOW

#define ATTENTION_WINDOW                                                                         \
    {                                                                                            \
        .name = "window", .summary = "last positions that count",                                \
        .field = KEY_FIELD(options.window), .max = INT32_MAX, .zero_is_none = true, .tag = "win" \
    }

/* One more logit of each head's softmax, without a value. */
#define KEY_SINKS                                                     \
    {                                                                 \
        .name = "sinks", .summary = "logits of heads, without value", \
        .field = KEY_FIELD(options.sinks), .choices = sinks_choices   \
    }
#define SINKS IN_WHERE(sinks, F32, sinks, "num_heads", 4)

/* Caches whose rows are used again: position t stands in row t % ring. */
#define KEY_RING                                                                                \
    {                                                                                           \
        .name = "ring", .summary = "rows of a cache: position t in row t % ring",               \
        .field = KEY_FIELD(options.ring), .max = INT32_MAX, .zero_is_none = true, .tag = "ring" \
    }

/* A factor of each value of the result. */
#define KEY_GATE                                                                         \
    {                                                                                    \
        .name = "gate", .summary = "o by its sigmoid", .field = KEY_FIELD(options.gate), \
        .choices = gate_choices                                                          \
    }
#define GATES                                                                                     \
    {                                                                                             \
        .name = "gate", .kind = PARAM_IN, .format = FORMAT_F32, .values = "m*num_heads*head_dim", \
        .align = 16, .only_with = KEY_FIELD(options.gate), .fitted = true                         \
    }

#define KEY_SEQ_LEN                                                           \
    {                                                                         \
        .name = "seq_len", .summary = "a number, or read from device memory", \
        .field = KEY_FIELD(seq_len_mode), .choices = seq_len_choices          \
    }

/* Sequences of a batch. No kernel reads their number, but what launches it takes the grid from it.
 */
#define KEY_SEQUENCES                                                                             \
    {                                                                                             \
        .name = "m", .summary = "sequences", .field = KEY_FIELD(shape.m), .min = 1, .max = 65535, \
        .required = true, .at_run_time = true, .tag = "m"                                         \
    }

#define KEY_CHUNKS                                                                             \
    {                                                                                          \
        .name = "chunks", .summary = "chunks a sequence, at most", .field = KEY_FIELD(chunks), \
        .min = 1, .max = 1024, .def = 64, .tag = "c"                                           \
    }

#define KEY_CHUNK_SIZE                                                                       \
    {                                                                                        \
        .name = "chunk_size", .summary = "positions a chunk",                                \
        .field = KEY_FIELD(shape.chunk_size), .min = 32, .max = 1024, .def = 128, .tag = "c" \
    }

extern const choice sinks_choices[], gate_choices[];
extern const real_range scale_range, softcap_range;

/* num_heads is a multiple of num_kv_heads; head_dim fits kv_type. */
const char *check_heads(const instance *in, arena *a, const char **blamed);

/* The same, and a ring has room for the window. */
const char *check_ring(const instance *in, arena *a, const char **blamed);

/* The same as of heads, and the chunks fit a grid. */
const char *check_flash_decoding(const instance *in, arena *a, const char **blamed);

#endif
