/* The keys and parameters of down-projections of experts. */
#ifndef PTXGEN_GEN_EXPERTS_EXPERT_DOWN_KEYS_H
#define PTXGEN_GEN_EXPERTS_EXPERT_DOWN_KEYS_H

#include "gen/experts/expert_down.h"
#include "gen/products/product_keys.h"

#define EXPERT_DOWN_COMPUTES                                                                      \
    "y[m,n] = residual + scale sum over experts e of row m, weights[m,e] (x[m,e,k] W[e,n,k]^T + " \
    "bd[e,n])"
#define KEYS_OF_EXPERT_DOWN                                                               \
    KEY_WEIGHTS,                                                                          \
        { .name = "weights_s",                                                            \
          .summary = "format of Ws, of the expert that all rows use",                     \
          .field = KEY_FIELD(weights_of[EXPERT_DOWN_SHARED]),                             \
          .choices = weights_choices,                                                     \
          .def = WEIGHTS_Q4_K,                                                            \
          .like = KEY_FIELD(weights),                                                     \
          .only_with = KEY_FIELD(shape.n_shared),                                         \
          .tag = "s" },                                                                   \
        { .name = "k",                                                                    \
          .summary = "columns of an expert's W",                                          \
          .field = KEY_FIELD(shape.k),                                                    \
          .min = 1,                                                                       \
          .max = 1 << 20,                                                                 \
          .of_weights = true,                                                             \
          .of_weights_in = KEY_FIELD(weights),                                            \
          .required = true,                                                               \
          .tag = "k" },                                                                   \
        KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                                             \
        { .name = "n_shared",                                                             \
          .summary = "columns of Ws; 0: there is none",                                   \
          .field = KEY_FIELD(shape.n_shared),                                             \
          .max = 1 << 20,                                                                 \
          .of_weights = true,                                                             \
          .of_weights_in = KEY_FIELD(weights_of[EXPERT_DOWN_SHARED]),                     \
          .zero_is_none = true,                                                           \
          .tag = "shared" },                                                              \
    {                                                                                     \
        .name = "m", .summary = "rows of X and Y", .field = KEY_FIELD(shape.m), .min = 1, \
        .max = MAX_VECTORS, .def = 1, .tag = "m"                                          \
    }
#define KEYS_AROUND_EXPERT_DOWN                           \
    KEY_OPTION(bias, "vectors [experts,n] added to W x"), \
        KEY_OPTION(residual, "values [m,n] added"), KEY_SCALE("of the sum")
#define PARAMS_OF_EXPERT_DOWN                                            \
    OUT(F32, y, "m*n", 4), EXPERTS_WEIGHTS(w, 0, "experts*n*k"),         \
        { .name = "ws",                                                  \
          .kind = PARAM_IN,                                              \
          .weights = true,                                               \
          .matrix = EXPERT_DOWN_SHARED + 1,                              \
          .values = "n*n_shared",                                        \
          .align = 16,                                                   \
          .only_with = KEY_FIELD(shape.n_shared) },                      \
        IN(F32, x, "m*(experts_used*k+n_shared)", 16), EXPERTS_BIAS(bd), \
        IN_WHERE(residual, F32, residual, "m*n", 4),                     \
        IN(F32, weights, "m*(experts_used+min(1, n_shared))", 4), EXPERTS_LIST

#endif
