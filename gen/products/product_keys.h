/* Keys and parameters of products with weights of any format. */
#ifndef PTXGEN_GEN_PRODUCTS_PRODUCT_KEYS_H
#define PTXGEN_GEN_PRODUCTS_PRODUCT_KEYS_H

#include "kernel/family.h"

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

/* The format of one matrix of several, by its number among them. */
#define KEY_WEIGHTS_OF_FORMATS(id, number, formats)                                              \
    {                                                                                            \
        .name = "weights_" #id, .summary = "format of W" #id,                                    \
        .field = KEY_FIELD(weights_of[number]), .choices = weights_choices, .def = WEIGHTS_Q4_K, \
        .like = KEY_FIELD(weights), .allowed = formats, .tag = #id                               \
    }
#define KEY_WEIGHTS_OF(id, number) KEY_WEIGHTS_OF_FORMATS(id, number, 0)
#define KEY_ROWS_OF_K(said)                                                                        \
    {                                                                                              \
        .name = "n_kv", .summary = said, .field = KEY_FIELD(shape.n_kv), .min = 1, .max = 1 << 28, \
        .required = true, .tag = "kv"                                                              \
    }
#define KEY_N_KV KEY_ROWS_OF_K("rows of Wk and of Wv")
/* Without V its format means nothing. */
#define KEY_N_V                                                                   \
    {                                                                             \
        .name = "n_v", .summary = "rows of Wv; 0: there is none", .max = 1 << 28, \
        .field = KEY_FIELD(shape.n_v), .like = KEY_FIELD(shape.n_kv), .tag = "nv" \
    }
#define KEY_WEIGHTS_OF_V KEY_WEIGHTS_OF_V_FORMATS(0)
#define KEY_WEIGHTS_OF_V_FORMATS(formats)                                                  \
    {                                                                                      \
        .name = "weights_v", .summary = "format of Wv", .field = KEY_FIELD(weights_of[2]), \
        .choices = weights_choices, .def = WEIGHTS_Q4_K, .like = KEY_FIELD(weights),       \
        .allowed = formats, .only_with = KEY_FIELD(shape.n_v), .tag = "v"                  \
    }
/* Such a matrix. */
#define WEIGHTS_OF(id, number, count)                                               \
    {                                                                               \
        .name = "w" #id, .kind = PARAM_IN, .weights = true, .matrix = (number) + 1, \
        .values = count, .align = 16                                                \
    }

/* What a product may have ahead of it and behind it: y = cap(scale (W x + bias) + residual). */
#define KEY_SCALED KEY_OPTION(scaled, "tensor: products by a factor in memory")
#define KEYS_OF_SUMS                                           \
    KEY_SCALED, KEY_OPTION(bias, "a vector [n] added to W x"), \
        { .name = "scale",                                     \
          .summary = "of W x + bias",                          \
          .field = KEY_FIELD(options.scale),                   \
          .tag = "scale",                                      \
          .real = &product_scale_range },                      \
        KEY_OPTION(residual, "values [m,n] added to that")
#define KEY_PRODUCT_SOFTCAP                                                                    \
    {                                                                                          \
        .name = "softcap", .summary = "c of c tanh(y/c)", .field = KEY_FIELD(options.softcap), \
        .tag = "cap", .real = &product_softcap_range                                           \
    }
#define KEYS_AROUND_PRODUCT KEYS_OF_SUMS, KEYS_NORM, KEY_PRODUCT_SOFTCAP
#define KEYS_BEHIND_PRODUCT KEYS_OF_SUMS, KEY_PRODUCT_SOFTCAP
/* Refuses a softcap that f32 can't divide by. */
const char *check_product(const instance *in, arena *a, const char **blamed);
extern const real_range product_scale_range, product_softcap_range;

/* Their parameters, behind x. */
#define PARAMS_BEHIND_PRODUCT                                                  \
    IN_WHERE(scaled, F32, w_scale, "1", 4), IN_WHERE(bias, F32, bias, "n", 4), \
        IN_WHERE(residual, F32, residual, "m*n", 4)
#define PARAMS_AROUND_PRODUCT IN_WHERE(norm, F32, gamma, "k", 16), PARAMS_BEHIND_PRODUCT

/* Q, K and V of one X: rows of Y are those of Q, of K, of V. */
#define QKV_COMPUTES "y[m,n+n_kv+n_v] = x[m,k] (Wq[n,k], Wk[n_kv,k], Wv[n_v,k])^T"
#define KEYS_OF_QKV                                                                              \
    KEY_WEIGHTS, KEY_WEIGHTS_OF(q, 0), KEY_WEIGHTS_OF(k, 1), KEY_WEIGHTS_OF_V, KEY_K_OF_WEIGHTS, \
        KEY_N, KEY_ROWS_OF_K("rows of Wk"), KEY_N_V, KEY_M(1), KEY_ROWS
#define KEY_QKV_BIASES  KEY_SCALED, KEY_OPTION(bias, "vectors [n], [n_kv], [n_v] added")
#define KEYS_AROUND_QKV KEY_QKV_BIASES, KEYS_NORM
#define PARAMS_OF_QKV   PARAMS_OF_QKV_FROM(IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16))
#define PARAMS_OF_QKV_FROM(...)                                                            \
    OUT(F32, y, "m*(n+n_kv+n_v)", 4), WEIGHTS_OF(q, 0, "n*k"), WEIGHTS_OF(k, 1, "n_kv*k"), \
        { .name = "wv",                                                                    \
          .kind = PARAM_IN,                                                                \
          .weights = true,                                                                 \
          .matrix = 3,                                                                     \
          .values = "n_v*k",                                                               \
          .align = 16,                                                                     \
          .only_with = KEY_FIELD(shape.n_v) },                                             \
        __VA_ARGS__, IN_WHERE(scaled, F32, q_scale, "1", 4),                               \
        IN_WHERE(scaled, F32, k_scale, "1", 4),                                            \
        { .name = "v_scale",                                                               \
          .kind = PARAM_IN,                                                                \
          .format = FORMAT_F32,                                                            \
          .values = "1",                                                                   \
          .align = 4,                                                                      \
          .only_with = KEY_FIELD(options.scaled),                                          \
          .also_with = KEY_FIELD(shape.n_v) },                                             \
        IN_WHERE(bias, F32, bq, "n", 4), IN_WHERE(bias, F32, bk, "n_kv", 4),               \
    {                                                                                      \
        .name = "bv", .kind = PARAM_IN, .format = FORMAT_F32, .values = "n_v", .align = 4, \
        .only_with = KEY_FIELD(options.bias), .also_with = KEY_FIELD(shape.n_v)            \
    }

/* Gate and up. Wg and Wu may be the halves of one tensor of 2 n rows, where n rows are a multiple
 * of 16 bytes: of every format they are if n is a multiple of 16. */
#define GATE_UP_COMPUTES "y[m,n] = activation(x[m,k] Wg[n,k]^T) * (x[m,k] Wu[n,k]^T)"
#define KEYS_OF_GATE_UP                                                                         \
    KEY_WEIGHTS, KEY_WEIGHTS_OF(g, 0), KEY_WEIGHTS_OF(u, 1), KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), \
        KEY_ROWS
#define KEY_GATE_BIASES KEY_SCALED, KEY_OPTION(bias, "vectors [n] added to both")
#define PARAMS_OF_GATE_BIASES                                                       \
    IN_WHERE(scaled, F32, g_scale, "1", 4), IN_WHERE(scaled, F32, u_scale, "1", 4), \
        IN_WHERE(bias, F32, bg, "n", 4), IN_WHERE(bias, F32, bu, "n", 4)
#define KEYS_AROUND_GATE_UP KEY_GATE_BIASES, KEY_ACTIVATION, KEYS_NORM
#define PARAMS_OF_GATE_UP                                                    \
    OUT(F32, y, "m*n", 4), WEIGHTS_OF(g, 0, "n*k"), WEIGHTS_OF(u, 1, "n*k"), \
        IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16), PARAMS_OF_GATE_BIASES

#endif
