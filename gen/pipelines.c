/* The pipelines: sequences of kernels, and the buffers between them. */
#include "kernel/pipeline.h"
#include "gen/attention/attention.h"
#include "gen/products/gemv.h"
#include "gen/products/product_keys.h"

#define K_QUANTS UINT64_C(1) << WEIGHTS_Q4_K | UINT64_C(1) << WEIGHTS_Q6_K
#define KEY_DP4A_WEIGHTS                                                              \
    KEY_WORD("weights", "format of W", weights, weights_choices, .def = WEIGHTS_Q4_K, \
             .allowed = K_QUANTS)
#define KEY_DP4A_WEIGHTS_OF(id, number) KEY_WEIGHTS_OF_FORMATS(id, number, K_QUANTS)
#define KEY_STEP_WARPS                                                                    \
    KEY_NUMBER("num_warps", "warps per block; 0 = each step's default", num_warps, 1, 32, \
               .zero_is_none = true, .tag = "w")
#define KEY_ACTIVATIONS                                                                \
    KEY_WORD("activations", "type of x; q8_1: without a quantization step", quantized, \
             activations_choices)
enum { GIVEN_F32, GIVEN_Q8_1 };
static const choice activations_choices[] =
    CHOICES([GIVEN_F32] = { "f32", "" }, [GIVEN_Q8_1] = { "q8_1", "_q8" });

#define STEPS(...) ((const pipeline_step[]){ __VA_ARGS__, { .n = NULL } })
#define BIND(...)  .bind = { __VA_ARGS__ }
#define QUANTIZE                                                                                \
    {                                                                                           \
        .family = "q8_1_quantize", .when = { { "activations", GIVEN_F32 } }, .for_later = true, \
        BIND({ "q8", "x_q8_1" }, { "x", "x" })                                                  \
    }
/* A GEMV step for one format of a matrix, with x as its family needs it. */
#define GEMV(id, rows, output, matrix, key, type, vector)             \
    {                                                                 \
        .family = id, .n = rows, .when = { { key, WEIGHTS_##type } }, \
        BIND({ "y", output }, { "w", matrix }, { "x", vector })       \
    }
#define DP4A_GEMVS(rows, output, matrix, key)                            \
    GEMV("hw_dp4a_q4k_gemv", rows, output, matrix, key, Q4_K, "x_q8_1"), \
        GEMV("hw_dp4a_q6k_gemv", rows, output, matrix, key, Q6_K, "x_q8_1")
/* No family multiplies Q6_K by several q8_1 vectors: Q6_K gets f32 x. */
#define BATCHED_GEMVS(rows, output, matrix, key)                                 \
    GEMV("batched_hw_dp4a_q4k_gemv", rows, output, matrix, key, Q4_K, "x_q8_1"), \
        GEMV("batched_q6k_gemv", rows, output, matrix, key, Q6_K, "x")

static const family dp4a = {
    .name = "dp4a",
    .summary = "pipeline: quantize f32 x to q8_1, then W x with dp4a",
    .computes = "y[n] = W[n,k] q8_1(x[k])",
    .op = OP_GEMV,
    .keys = KEYS(KEY_K(Q4_K_VALUES), KEY_N, KEY_DP4A_WEIGHTS, KEY_STEP_WARPS, KEY_ACTIVATIONS),
    .steps = STEPS(QUANTIZE, DP4A_GEMVS("n", "y", "w", "weights")),
};

static const family qkv = {
    .name = "qkv",
    .summary = "pipeline: quantize f32 x to q8_1 once, then Q, and K with V",
    .computes = "q[n] = Wq[n,k] x[k], k[n_kv] = Wk[n_kv,k] x[k], v[n_kv] = Wv[n_kv,k] x[k]",
    .op = OP_QKV,
    .keys =
        KEYS(KEY_K(Q4_K_VALUES), KEY_N, KEY_N_KV, KEY_DP4A_WEIGHTS, KEY_DP4A_WEIGHTS_OF(q, 0),
             KEY_DP4A_WEIGHTS_OF(k, 1), KEY_DP4A_WEIGHTS_OF(v, 2),
             KEY_WORD("kv", "fused: K and V in one kernel, if both are q4_k", apart, kv_choices),
             KEY_STEP_WARPS, KEY_ACTIVATIONS),
    .steps = STEPS(QUANTIZE, DP4A_GEMVS("n", "q", "wq", "weights_q"),
                   { .family = "fused_kv_hw_dp4a_q4k_gemv",
                     .n = "n_kv",
                     .when = { { "kv", KV_FUSED },
                               { "weights_k", WEIGHTS_Q4_K },
                               { "weights_v", WEIGHTS_Q4_K } },
                     BIND({ "keys", "k" }, { "values", "v" }, { "wk", "wk" }, { "wv", "wv" },
                          { "x", "x_q8_1" }) },
                   DP4A_GEMVS("n_kv", "k", "wk", "weights_k"),
                   DP4A_GEMVS("n_kv", "v", "wv", "weights_v")),
};

static const family batched_gate_up = {
    .name = "batched_gate_up",
    .summary = "pipeline: quantize m vectors to q8_1 once, then gate and up",
    .computes = "G[m,n] = X[m,k] Wg[n,k]^T, U[m,n] = X[m,k] Wu[n,k]^T",
    .op = OP_GATE_UP,
    .keys =
        KEYS(KEY_K(Q4_K_VALUES), KEY_N, KEY_ANY_M, KEY_ROWS, KEY_DP4A_WEIGHTS,
             KEY_DP4A_WEIGHTS_OF(g, 0), KEY_DP4A_WEIGHTS_OF(u, 1), KEY_STEP_WARPS, KEY_ACTIVATIONS),
    .steps = STEPS(QUANTIZE, BATCHED_GEMVS("n", "g", "wg", "weights_g"),
                   BATCHED_GEMVS("n", "u", "wu", "weights_u")),
    .check = check_any_rows,
};

static const family batched_qkv = {
    .name = "batched_qkv",
    .summary = "pipeline: quantize m vectors to q8_1 once, then Q, K and V",
    .computes = "Q[m,n] = X[m,k] Wq[n,k]^T, K[m,n_kv] = X[m,k] Wk[n_kv,k]^T, V likewise",
    .op = OP_QKV,
    .keys = KEYS(KEY_K(Q4_K_VALUES), KEY_N, KEY_N_KV, KEY_ANY_M, KEY_ROWS, KEY_DP4A_WEIGHTS,
                 KEY_DP4A_WEIGHTS_OF(q, 0), KEY_DP4A_WEIGHTS_OF(k, 1), KEY_DP4A_WEIGHTS_OF(v, 2),
                 KEY_STEP_WARPS, KEY_ACTIVATIONS),
    .steps = STEPS(QUANTIZE, BATCHED_GEMVS("n", "q", "wq", "weights_q"),
                   BATCHED_GEMVS("n_kv", "k", "wk", "weights_k"),
                   BATCHED_GEMVS("n_kv", "v", "wv", "weights_v")),
    .check = check_any_rows,
};

/* The down-projection of SwiGLU's output: n columns, k rows. */
#define DOWN(id, type, vector)                                                         \
    {                                                                                  \
        .family = id, .n = "k", .k = "n", .when = { { "weights_d", WEIGHTS_##type } }, \
        BIND({ "y", "y" }, { "w", "wd" }, { "x", vector })                             \
    }
#define SWIGLU(type, kind, output)                                \
    {                                                             \
        .family = "swiglu", .k = "n", .set = { { "out", kind } }, \
        .when = { { "weights_d", WEIGHTS_##type } },              \
        BIND({ "y", output }, { "g", "g" }, { "u", "u" })         \
    }

static const family ffn = {
    .name = "ffn",
    .summary = "pipeline: gate and up of m vectors, SwiGLU to q8_1, then down",
    .computes = "Y[m,k] = (activation(X[m,k] Wg[n,k]^T) * (X[m,k] Wu[n,k]^T)) Wd[k,n]^T",
    .op = OP_FFN,
    .keys = KEYS(KEY_K(Q4_K_VALUES),
                 KEY_NUMBER("n", "rows of Wg and Wu, columns of Wd", shape.n, Q4_K_VALUES, 1 << 24,
                            .multiple_of = Q4_K_VALUES, .required = true, .tag = "n"),
                 KEY_ANY_M, KEY_ROWS, KEY_DP4A_WEIGHTS, KEY_DP4A_WEIGHTS_OF(g, 0),
                 KEY_DP4A_WEIGHTS_OF(u, 1), KEY_DP4A_WEIGHTS_OF(d, 2), KEY_ACTIVATION,
                 KEY_STEP_WARPS, KEY_ACTIVATIONS),
    .steps = STEPS(QUANTIZE, BATCHED_GEMVS("n", "g", "wg", "weights_g"),
                   BATCHED_GEMVS("n", "u", "wu", "weights_u"), SWIGLU(Q4_K, TYPE_Q8_1, "h_q8_1"),
                   DOWN("batched_hw_dp4a_q4k_gemv", Q4_K, "h_q8_1"), SWIGLU(Q6_K, TYPE_F32, "h"),
                   DOWN("batched_q6k_gemv", Q6_K, "h")),
    .check = check_any_rows,
};

static const family flash_decoding = {
    .name = "flash_decoding",
    .summary = "pipeline: decode attention of m sequences by chunks, then a merge of the chunks",
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]",
    .op = OP_BATCHED_ATTENTION,
    .keys = KEYS(ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_OPTIONS, KEY_PAGE,
                 KEY_SINKS),
    .steps = STEPS(
        { .family = "flash_decoding_chunk",
          BIND({ "partials", "partials" }, { "q", "q" }, { "k", "k" }, { "v", "v" },
               { "seq_lens", "seq_lens" }, { "sequences", "sequences" }, { "pages", "pages" }) },
        { .family = "flash_decoding_reduce",
          BIND({ "o", "o" }, { "partials", "partials" }, { "sinks", "sinks" },
               { "seq_lens", "seq_lens" }) }),
    .check = check_flash_decoding,
};

const family *const pipelines[] = { &dp4a,           &qkv, &batched_gate_up, &batched_qkv, &ffn,
                                    &flash_decoding, NULL };
