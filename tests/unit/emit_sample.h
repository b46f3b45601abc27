/* A kernel set for tests of the written files. Its made-up families have every kind of key,
 * parameter and launch shape. */
#ifndef PTXGEN_TESTS_EMIT_SAMPLE_H
#define PTXGEN_TESTS_EMIT_SAMPLE_H

#include "kernel/kernel.h"

#define SAMPLE_GEMV                                                                 \
    .computes = "y[n] = W[n,k] x[k]", .op = OP_GEMV, .weights = FORMAT_Q4_K,        \
    .activations = FORMAT_F32, .params = (const param[])                            \
    {                                                                               \
        OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16), PARAM_END \
    }

static const family plain_gemv = {
    SAMPLE_GEMV,
    .name = "plain_gemv",
    .summary = "fixed grid",
    .preference = 1,
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS, KEY_END },
    .launch = { .block = "32*num_warps", .grid = { "n" }, .shared = "4*num_warps" },
};

static const family striding_gemv = {
    SAMPLE_GEMV,
    .name = "striding_gemv",
    .summary = "grid by the number of SMs",
    .preference = 2,
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_NUM_WARPS(3), KEY_END },
    .launch = { .block = "32*num_warps", .grid = { "min(n, sm_count*16)" } },
};

#define KEY_SIZE(member, initial) \
    KEY_NUMBER(#member, "", shape.member, 1, 1 << 20, .required = true, .tag = initial)

static const family attention = {
    .name = "attention",
    .summary = "two grid dimensions, words",
    .computes = "o[num_heads,head_dim] = softmax(q K^T / head_dim) V",
    .op = OP_ATTENTION,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = (const key[]){ KEY_SIZE(head_dim, "d"), KEY_SIZE(num_heads, "h"),
                           KEY_SIZE(num_kv_heads, "g"), KEY_SIZE(max_seq_len, "s"),
                           KEY_WORD("seq_len", "", seq_len_mode, seq_len_choices), KEY_END },
    .params = (const param[]){ OUT(F32, o, "num_heads*head_dim", 4),
                               IN(F32, q, "num_heads*head_dim", 16),
                               { .name = "seq_len",
                                 .kind = PARAM_SEQ_LEN,
                                 .size = "seq_len",
                                 .values = "1",
                                 .format = FORMAT_U32,
                                 .align = 4 },
                               PARAM_END },
    .launch = { .block = "32", .grid = { "num_heads", "2" }, .dynamic_shared = "head_dim*4" },
};

static const instance sample_instances[] = {
    { .family = &plain_gemv,
      .name = "plain_gemv_k4096_n14336_w4",
      .shape = { .k = 4096, .n = 14336 },
      .num_warps = 4 },
    { .family = &plain_gemv, .name = "plain_gemv_dynamic", .dims = DIMS_DYNAMIC, .num_warps = 4 },
    { .family = &plain_gemv,
      .name = "plain_gemv_k4096_n4096_w4",
      .shape = { .k = 4096, .n = 4096 },
      .num_warps = 4 },
    { .family = &striding_gemv,
      .name = "striding_gemv_k4096_n4096_w3",
      .shape = { .k = 4096, .n = 4096 },
      .num_warps = 3 },
    { .family = &attention,
      .name = "attention_d64_h32_g8_s4096_indirect",
      .shape = { .head_dim = 64, .num_heads = 32, .num_kv_heads = 8, .max_seq_len = 4096 },
      .seq_len_mode = SEQ_LEN_INDIRECT },
};

enum { SAMPLE_KERNELS = 6 };

static const char sample_ptx[] = "// \303\251 \"quoted\" \\ back?\?=slash\n.version 6.3\n\tret;\n";

/* Returns a set whose first instance has kernels for sm_75 and sm_80. The first kernel has figures
 * from ptxas. */
static inline kernel_set sample_set(const char *prefix, kernel kernels[SAMPLE_KERNELS],
                                    const target *found[2])
{
    static const size_t which[SAMPLE_KERNELS] = { 0, 0, 1, 2, 3, 4 };
    found[0] = target_find("sm_75");
    found[1] = target_find("sm_80");
    for (size_t i = 0; i < SAMPLE_KERNELS; i++)
        kernels[i] = (kernel){ .instance = &sample_instances[which[i]],
                               .target = found[i == 1],
                               .isa = i == 1 ? 70 : 63,
                               .file = i == 1 ? "llama.newer.sm_80.ptx" : "llama.older.sm_75.ptx",
                               .ptx = sample_ptx,
                               .ptx_length = sizeof sample_ptx - 1 };
    kernels[0].shared_bytes = 16;
    kernels[0].resources = (resources){ .known = true, .registers = 40, .spill_bytes = 8 };
    return (kernel_set){ .prefix = prefix,
                         .targets = found,
                         .target_count = 2,
                         .kernels = kernels,
                         .kernel_count = SAMPLE_KERNELS };
}

#endif
