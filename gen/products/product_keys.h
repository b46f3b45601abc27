/* Keys and parameters of products with weights of any format. */
#pragma once

#include "kernel/family.h"

#define KEY_OPTION(id, said) KEY_WORD(#id, said, options.id, id##_choices)
#define KEYS_NORM                                                                           \
    KEY_OPTION(norm, "rms: RMS-norm x before the product"),                                 \
        KEY_REAL("epsilon", "added to the mean square of the norm", options.epsilon, "eps", \
                 epsilon_range, .only_with = KEY_FIELD(options.norm))
#define KEY_ACTIVATION                                                                       \
    KEY_WORD("activation", "activation of the gate", options.activation, activation_choices, \
             .allowed = ~(UINT64_C(1) << ACTIVATION_XIELU))
#define KEY_LIMIT                                                                             \
    KEY_REAL("limit", "c: silu(gate) is at most c, up is in [-c, c]", options.limit, "limit", \
             product_softcap_range)
#define KEYS_OF_GATE KEY_ACTIVATION, KEY_LIMIT

/* Format of the only matrix, or of matrix `number`. formats: a bit per allowed format; 0: all. */
#define KEY_FORMATS(formats)                                                       \
    KEY_WORD("weights", "format of W", weights, weights_choices, .required = true, \
             .allowed = formats)
#define KEY_WEIGHTS_OF_FORMATS(id, number, formats)                                  \
    KEY_WORD("weights_" #id, "format of W" #id, weights_of[number], weights_choices, \
             .like = KEY_FIELD(weights), .allowed = formats, .tag = #id)
#define KEY_ROWS_OF_K(said) \
    KEY_NUMBER("n_kv", said, shape.n_kv, 1, 1 << 28, .required = true, .tag = "kv")
#define KEY_N_KV KEY_ROWS_OF_K("rows of Wk, and of Wv")
/* Without V its format has no meaning. */
#define KEY_N_V                                                       \
    KEY_NUMBER("n_v", "rows of Wv; 0 = no Wv", shape.n_v, 0, 1 << 28, \
               .like = KEY_FIELD(shape.n_kv), .tag = "nv")
#define KEY_WEIGHTS_OF_V(formats)                                                               \
    KEY_WORD("weights_v", "format of Wv", weights_of[2], weights_choices,                       \
             .like = KEY_FIELD(weights), .allowed = formats, .only_with = KEY_FIELD(shape.n_v), \
             .tag = "v")
/* Parameter of the matrix with the key weights_ID. */
#define WEIGHTS_OF(id, number, ...) WEIGHTS(w##id, __VA_ARGS__, .matrix = (number) + 1)

/* Prologue and epilogue of a product: y = cap(scale (W x + bias) + residual), or activation(W x +
 * bias) times. */
#define KEY_SCALED KEY_OPTION(scaled, "tensor: multiply each product by a factor in memory")
#define KEYS_OF_SUMS                                                                  \
    KEY_SCALED, KEY_OPTION(bias, "add: bias[n] is added to W x"),                     \
        KEY_REAL("scale", "factor of W x + bias, e.g. 0.125", options.scale, "scale", \
                 product_scale_range),                                                \
        KEY_OPTION(residual, "add: residual[m,n] is added after scaling")
#define KEY_PRODUCT_SOFTCAP \
    KEY_REAL("softcap", "c in c tanh(y/c), e.g. 30", options.softcap, "cap", product_softcap_range)
#define KEYS_EPILOGUE                                                                    \
    KEY_WORD("epilogue", "activation of W x + bias", options.epilogue, epilogue_choices, \
             .allowed = ~(UINT64_C(2) << ACTIVATION_SWIGLU_OAI)),                        \
        KEY_OPTION(times, "rows: times[m,n] multiplies the activated result")
#define KEYS_AROUND_PRODUCT KEYS_OF_SUMS, KEYS_NORM, KEY_PRODUCT_SOFTCAP, KEYS_EPILOGUE
#define KEYS_BEHIND_PRODUCT KEYS_OF_SUMS, KEY_PRODUCT_SOFTCAP, KEYS_EPILOGUE
/* Last parameters of a product. */
#define XIELU_OF(id, said) NUMBER_WHERE(epilogue, 1 + ACTIVATION_XIELU, xielu_##id, said)
#define NUMBERS_OF_EPILOGUE                                                    \
    XIELU_OF(p, "ln(1 + e^alpha_p)"), XIELU_OF(n, "beta + ln(1 + e^alpha_n)"), \
        XIELU_OF(beta, "factor of x"), XIELU_OF(eps, "largest argument of expm1")
/* Refuses a softcap so small that f32 cannot divide by it, a limit of a gate other than silu, and
 * what an epilogue excludes. */
const char *check_product(const instance *in, arena *a, const char **blamed);
extern const real_range product_scale_range, product_softcap_range;

/* f32 X, which the kernel may normalize. */
#define F32_ROWS IN(F32, x, "m*k", 16), IN_WHERE(norm, F32, gamma, "k", 16)

/* Formats of W that 8-bit X can have: all but floats. X from q8_rows: `rows` rows of k values, and a
 * factor per row. */
#define INTEGER_FORMATS                                                                       \
    ~(UINT64_C(1) << WEIGHTS_F32 | UINT64_C(1) << WEIGHTS_F16 | UINT64_C(1) << WEIGHTS_BF16 | \
      UINT64_C(1) << WEIGHTS_E4M3 | UINT64_C(1) << WEIGHTS_E5M2)
#define Q8_ROWS(rows) IN(Q8_F32, x, rows "*k", 4), IN(F32, factors, rows, 4)

/* One matrix; the macro's arguments are the parameters of X. */
#define KEYS_OF_PRODUCT(formats) KEY_FORMATS(formats), KEY_K_OF_WEIGHTS, KEY_N
#define PARAMS_OF_PRODUCT(...)                                                                     \
    OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), __VA_ARGS__, IN_WHERE(scaled, F32, w_scale, "1", 4), \
        IN_WHERE(bias, F32, bias, "n", 4), IN_WHERE(residual, F32, residual, "m*n", 4),            \
        IN_WHERE(times, F32, times, "m*n", 4)

/* Q, K and V of one X. A row of Y holds Q, then K, then V. */
#define QKV_COMPUTES "y[m,n+n_kv+n_v] = x[m,k] (Wq[n,k], Wk[n_kv,k], Wv[n_v,k])^T"
#define KEYS_OF_QKV(formats)                                                                       \
    KEY_FORMATS(formats), KEY_WEIGHTS_OF_FORMATS(q, 0, formats),                                   \
        KEY_WEIGHTS_OF_FORMATS(k, 1, formats), KEY_WEIGHTS_OF_V(formats), KEY_K_OF_WEIGHTS, KEY_N, \
        KEY_ROWS_OF_K("rows of Wk"), KEY_N_V
#define KEY_QKV_BIASES  KEY_SCALED, KEY_OPTION(bias, "add: bq[n], bk[n_kv] and bv[n_v] are added")
#define KEYS_AROUND_QKV KEY_QKV_BIASES, KEYS_NORM
#define PARAMS_OF_QKV(...)                                                                 \
    OUT(F32, y, "m*(n+n_kv+n_v)", 4), WEIGHTS_OF(q, 0, "n*k"), WEIGHTS_OF(k, 1, "n_kv*k"), \
        WEIGHTS_OF(v, 2, "n_v*k", .only_with = KEY_FIELD(shape.n_v)), __VA_ARGS__,         \
        IN_WHERE(scaled, F32, q_scale, "1", 4), IN_WHERE(scaled, F32, k_scale, "1", 4),    \
        IN_WHERE(scaled, F32, v_scale, "1", 4, .also_with = KEY_FIELD(shape.n_v)),         \
        IN_WHERE(bias, F32, bq, "n", 4), IN_WHERE(bias, F32, bk, "n_kv", 4),               \
        IN_WHERE(bias, F32, bv, "n_v", 4, .also_with = KEY_FIELD(shape.n_v))

/* Gate and up. Wg and Wu may be the halves of one tensor of 2 n rows, if n rows are a multiple of
 * 16 bytes; in every format they are if n is a multiple of 16. */
#define GATE_UP_COMPUTES "y[m,n] = activation(x[m,k] Wg[n,k]^T) * (x[m,k] Wu[n,k]^T)"
#define KEYS_OF_GATE_UP(formats)                                 \
    KEY_FORMATS(formats), KEY_WEIGHTS_OF_FORMATS(g, 0, formats), \
        KEY_WEIGHTS_OF_FORMATS(u, 1, formats), KEY_K_OF_WEIGHTS, KEY_N
#define KEY_GATE_BIASES              KEY_SCALED, KEY_OPTION(bias, "add: bg[n] and bu[n] are added")
#define KEYS_AROUND_GATE_UP          KEY_GATE_BIASES, KEYS_OF_GATE, KEYS_NORM
#define PARAMS_OF_GATE_UP(...)       PARAMS_OF_PAIR(1, 2, __VA_ARGS__)
#define PARAMS_OF_GATE_UP_ALIKE(...) PARAMS_OF_PAIR(0, 0, __VA_ARGS__) /* both of the key weights */
#define PARAMS_OF_PAIR(gate, up, ...)                                                            \
    OUT(F32, y, "m*n", 4), WEIGHTS(wg, "n*k", .matrix = gate), WEIGHTS(wu, "n*k", .matrix = up), \
        __VA_ARGS__, IN_WHERE(scaled, F32, g_scale, "1", 4),                                     \
        IN_WHERE(scaled, F32, u_scale, "1", 4), IN_WHERE(bias, F32, bg, "n", 4),                 \
        IN_WHERE(bias, F32, bu, "n", 4)
