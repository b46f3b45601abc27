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

#define KEY_MLA_HEADS                                                                     \
    KEY_NUMBER("num_heads", "query heads", shape.num_heads, 1, PROBLEM_MOST_LATENT_HEADS, \
               .required = true, .tag = "h")
#define KEY_MLA_LATENT                                                               \
    KEY_NUMBER("latent", "values of a cache row that do not turn", shape.latent, 32, \
               MLA_MOST_LATENT, .multiple_of = 32, .required = true, .tag = "l")
#define KEY_MLA_ROPE                                                                    \
    KEY_NUMBER("n_rope", "values behind them that do", shape.n_rope, 32, MLA_MOST_ROPE, \
               .multiple_of = 32, .required = true, .tag = "r")
#define KEY_MLA_KV_TYPE KEY_WORD("kv_type", "elements of the cache", kv_type, kv_type_choices)
#define KEY_MLA_MAX_SEQ_LEN                                                                        \
    KEY_NUMBER("max_seq_len", "positions the cache has room for", shape.max_seq_len, 1, INT32_MAX, \
               .required = true, .tag = "s")
/* Rows, of which a block has up to 8 at once. */
#define KEY_MLA_ROWS KEY_NUMBER("m", "rows", shape.m, 1, PROBLEM_MOST_ROWS, .def = 1, .tag = "m")

/* The address of each row's cache [max_seq_len, latent + n_rope]. */
#define MLA_CACHES(how)                                                                      \
    {                                                                                        \
        .name = "c", .kind = how, .format = FORMAT_ADDRESS, .values = "m", .align = 8,       \
        .cache = true, .target = FORMAT_F32, .target_values = "max_seq_len*(latent+n_rope)", \
        .unit = "latent+n_rope", .settled = true                                             \
    }

#endif
