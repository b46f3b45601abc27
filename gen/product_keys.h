/* Keys and parameters of products with weights of any format. */
#ifndef PTXGEN_GEN_PRODUCT_KEYS_H
#define PTXGEN_GEN_PRODUCT_KEYS_H

#include "family/family.h"

#define KEY_OPTION(id, said)                                                                  \
    {                                                                                         \
        .name = #id, .summary = said, .field = KEY_FIELD(options.id), .choices = id##_choices \
    }
#define KEYS_NORM                                                                             \
    KEY_OPTION(norm, "rms: x is RMS-normed first"),                                           \
    {                                                                                         \
        .name = "epsilon", .summary = "of the RMS norm", .field = KEY_FIELD(options.epsilon), \
        .only_with = KEY_FIELD(options.norm), .tag = "eps", .real = &epsilon_range            \
    }
#define KEY_ACTIVATION KEY_OPTION(activation, "of the gate")

/* What a product may have ahead of it and behind it. */
#define KEYS_AROUND_PRODUCT                                                                       \
    KEY_OPTION(bias, "a vector [n] added to y"), KEY_OPTION(residual, "values [m,n] added to y"), \
        KEYS_NORM

/* Their parameters, behind x. */
#define PARAMS_AROUND_PRODUCT                                               \
    IN_WHERE(norm, F32, gamma, "k", 16), IN_WHERE(bias, F32, bias, "n", 4), \
        IN_WHERE(residual, F32, residual, "m*n", 4)

#endif
