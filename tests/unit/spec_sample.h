/* Made-up families for tests of the spec language, which cover every feature of a family. */
#ifndef PTXGEN_TESTS_SPEC_SAMPLE_H
#define PTXGEN_TESTS_SPEC_SAMPLE_H

#include <string.h>

#include "kernel/family.h"
#include "input/spec.h"

static const family sample_gemv = {
    .name = "gemv",
    .summary = "y = W x",
    .computes = "y[n] = W[n,k] x[k]",
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_NUM_WARPS(4), KEY_DIMS, KEY_END },
    .params = (const param[]){ OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                               PARAM_END },
    .launch = { .block = "32*num_warps", .grid = { "n" }, .shared = "4*num_warps" },
};

static const param sample_f32_params[] = { OUT(F32, y, "n", 4), IN(F32, w, "n*k", 16),
                                           IN(F32, x, "k", 16), PARAM_END };

/* A family that keeps x in shared memory. */
static const family sample_tiled = {
    .name = "tiled_gemv",
    .summary = "y = W x, x in shared memory",
    .computes = "y[n] = W[n,k] x[k]",
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_DIMS, KEY_EPSILON, KEY_END },
    .params = sample_f32_params,
    .launch = { .block = "32", .grid = { "n" }, .dynamic_shared = "4*k", .roomier = "gemv" },
};

/* A family whose sizes are always constants in the kernel. */
static const family sample_fixed = {
    .name = "fixed_gemv",
    .summary = "y = W x",
    .computes = "y[n] = W[n,k] x[k]",
    .keys = (const key[]){ KEY_K(256), KEY_N, KEY_END },
    .params = sample_f32_params,
    .launch = { .block = "32", .grid = { "n" } },
};

/* A family with a size that may be a constant or a run-time argument. */
static const family sample_quantize = {
    .name = "quantize",
    .summary = "q = Q(x)",
    .op = OP_QUANTIZE,
    .computes = "q[m,k] = Q(x[m,k])",
    .keys = (const key[]){ KEY_K(32),
                           KEY_NUMBER("m", NULL, shape.m, 1, 8, .def = 1, .at_run_time = true,
                                      .tag = "m"),
                           KEY_DIMS, KEY_END },
    .params = (const param[]){ OUT(Q8_1, q, "k*m", 4), IN(F32, x, "k*m", 16), PARAM_END },
    .launch = { .block = "32", .grid = { "k/32", "m" } },
};

static const char *sample_check_heads(const instance *in, arena *a, const char **blamed)
{
    if (in->shape.num_heads % in->shape.num_kv_heads == 0)
        return NULL;
    *blamed = "num_kv_heads";
    return arena_format(a, "num_heads = %lld is not a multiple of num_kv_heads = %lld",
                        (long long)in->shape.num_heads, (long long)in->shape.num_kv_heads);
}

#define SAMPLE_NUMBER(id, letter, least, most, unit)                                           \
    KEY_NUMBER(#id, "of a test", shape.id, least, most, .multiple_of = unit, .required = true, \
               .tag = letter)

static const family sample_attention = {
    .name = "attention",
    .summary = "o = softmax(q K) V",
    .op = OP_ATTENTION,
    .computes = "o = softmax(q K) V",
    .keys =
        (const key[]){
            SAMPLE_NUMBER(head_dim, "d", 8, 256, 8), SAMPLE_NUMBER(num_heads, "h", 1, 1024, 1),
            KEY_NUMBER("num_kv_heads", NULL, shape.num_kv_heads, 1, 1024, .def = 8, .tag = "kv"),
            KEY_WORD("seq_len", NULL, seq_len_mode, seq_len_choices), KEY_END },
    .params = (const param[]){ OUT(F32, o, "num_heads*head_dim", 4),
                               IN(F32, q, "num_heads*head_dim", 16),
                               { .name = "seq_len", .kind = PARAM_SEQ_LEN },
                               PARAM_END },
    .launch = { .block = "32", .grid = { "num_heads" } },
    .check = sample_check_heads,
};

static const family *const sample_families[] = { &sample_gemv,     &sample_tiled, &sample_attention,
                                                 &sample_quantize, &sample_fixed, NULL };

#endif
