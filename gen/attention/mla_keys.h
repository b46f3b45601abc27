/* The keys of latent attention: its query, attention and values. */
#ifndef PTXGEN_GEN_ATTENTION_MLA_KEYS_H
#define PTXGEN_GEN_ATTENTION_MLA_KEYS_H

#include "gen/common/row_groups.h"
#include "kernel/problem.h"

enum {
    MLA_MOST_LATENT = PROBLEM_MOST_LATENT,
    MLA_MOST_ROPE = PROBLEM_MOST_LATENT_ROPE,
    MLA_MOST_HALVES = 576, /* values of a row with products = f16 */
};

#define KEY_MLA_HEADS                                                                       \
    {                                                                                       \
        .name = "num_heads", .summary = "query heads", .field = KEY_FIELD(shape.num_heads), \
        .min = 1, .max = PROBLEM_MOST_LATENT_HEADS, .required = true, .tag = "h"            \
    }
#define KEY_MLA_LATENT                                                                          \
    {                                                                                           \
        .name = "latent", .summary = "values of a cache row that do not turn",                  \
        .field = KEY_FIELD(shape.latent), .min = 32, .max = MLA_MOST_LATENT, .multiple_of = 32, \
        .required = true, .tag = "l"                                                            \
    }
#define KEY_MLA_ROPE                                                                          \
    {                                                                                         \
        .name = "n_rope", .summary = "values behind them that do",                            \
        .field = KEY_FIELD(shape.n_rope), .min = 32, .max = MLA_MOST_ROPE, .multiple_of = 32, \
        .required = true, .tag = "r"                                                          \
    }
#define KEY_MLA_KV_TYPE                                                                     \
    {                                                                                       \
        .name = "kv_type", .summary = "elements of the cache", .field = KEY_FIELD(kv_type), \
        .choices = kv_type_choices                                                          \
    }
#define KEY_MLA_MAX_SEQ_LEN                                                                  \
    {                                                                                        \
        .name = "max_seq_len", .summary = "positions the cache has room for",                \
        .field = KEY_FIELD(shape.max_seq_len), .min = 1, .max = INT32_MAX, .required = true, \
        .tag = "s"                                                                           \
    }
/* Rows, of which a block has up to 8 at once. */
#define KEY_MLA_ROWS                                                           \
    {                                                                          \
        .name = "m", .summary = "rows", .field = KEY_FIELD(shape.m), .min = 1, \
        .max = PROBLEM_MOST_ROWS, .def = 1, .tag = "m"                         \
    }

/* The address of each row's cache [max_seq_len, latent + n_rope]. */
#define MLA_CACHES(how)                                                                      \
    {                                                                                        \
        .name = "c", .kind = how, .format = FORMAT_ADDRESS, .values = "m", .align = 8,       \
        .cache = true, .target = FORMAT_F32, .target_values = "max_seq_len*(latent+n_rope)", \
        .unit = "latent+n_rope", .settled = true                                             \
    }

#endif
