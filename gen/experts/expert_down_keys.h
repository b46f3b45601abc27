/* The keys and parameters of down-projections of experts. */
#ifndef PTXGEN_GEN_EXPERTS_EXPERT_DOWN_KEYS_H
#define PTXGEN_GEN_EXPERTS_EXPERT_DOWN_KEYS_H

#include "gen/experts/expert_down.h"
#include "gen/products/product_keys.h"

#define EXPERT_DOWN_COMPUTES                                                                      \
    "y[m,n] = residual + scale sum over experts e of row m, weights[m,e] (x[m,e,k] W[e,n,k]^T + " \
    "bd[e,n])"
#define KEYS_OF_EXPERT_DOWN                                                                        \
    KEY_WEIGHTS,                                                                                   \
        KEY_WORD("weights_s", "format of Ws, of the expert that all rows use",                     \
                 weights_of[EXPERT_DOWN_SHARED], weights_choices, .def = WEIGHTS_Q4_K,             \
                 .like = KEY_FIELD(weights), .only_with = KEY_FIELD(shape.n_shared), .tag = "s"),  \
        KEY_NUMBER("k", "columns of an expert's W", shape.k, 1, 1 << 20, .of_weights = true,       \
                   .of_weights_in = KEY_FIELD(weights), .required = true, .tag = "k"),             \
        KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                                                      \
        KEY_NUMBER("n_shared", "columns of Ws; 0: there is none", shape.n_shared, 0, 1 << 20,      \
                   .of_weights = true, .of_weights_in = KEY_FIELD(weights_of[EXPERT_DOWN_SHARED]), \
                   .zero_is_none = true, .tag = "shared"),                                         \
        KEY_NUMBER("m", "rows of X and Y", shape.m, 1, MAX_VECTORS, .def = 1, .tag = "m")
#define KEYS_AROUND_EXPERT_DOWN                           \
    KEY_OPTION(bias, "vectors [experts,n] added to W x"), \
        KEY_OPTION(residual, "values [m,n] added"), KEY_SCALE("of the sum")
#define PARAMS_OF_EXPERT_DOWN                                            \
    OUT(F32, y, "m*n", 4), EXPERTS_WEIGHTS(w, 0, "experts*n*k"),         \
        WEIGHTS(ws, "n*n_shared", .matrix = EXPERT_DOWN_SHARED + 1,      \
                .only_with = KEY_FIELD(shape.n_shared)),                 \
        IN(F32, x, "m*(experts_used*k+n_shared)", 16), EXPERTS_BIAS(bd), \
        IN_WHERE(residual, F32, residual, "m*n", 4),                     \
        IN(F32, weights, "m*(experts_used+min(1, n_shared))", 4), EXPERTS_LIST

#endif
