/* Look-ups of kernels and pipelines that differ in their options: each must be found for its own
 * options, and for no others. */
#include <string.h>

#define OPTIONS_KERNELS_IMPLEMENTATION
#include "test.h"
#include "options_kernels.h"

static void assert_says(const ptxgen_query *query, const char *expected)
{
    char text[400];
    size_t length = options_explain_miss(query, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(text));
}

TEST(a_gemv_is_found_by_its_bias_and_residual)
{
    static const char *const names[] = { "stream_gemv_q4k_k1024_n16_m1_w2_r2",
                                         "stream_gemv_q4k_k1024_n16_m1_w2_r2_bias",
                                         "stream_gemv_q4k_k1024_n16_m1_w2_r2_residual",
                                         "stream_gemv_q4k_k1024_n16_m1_w2_r2_bias_residual" };
    for (int i = 0; i < 4; i++) {
        const ptxgen_query query = {
            .op = PTXGEN_GEMV, .k = 1024, .n = 16, .bias = i & 1, .residual = i >> 1
        };
        assert_non_null(options_find(&query));
        assert_string_equal(options_find(&query)->name, names[i]);
    }
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .k = 512, .n = 7, .bias = 1 },
                "no gemv with k 512, n 7, that bias was generated; nearest: "
                "stream_gemv_q4k_k1024_n16_m1_w2_r2_bias (k is 1024, n is 16)");
}

TEST(attention_is_found_by_its_options)
{
    for (int i = 0; i < 16; i++) {
        const ptxgen_query query = { .op = PTXGEN_ATTENTION,
                                     .head_dim = 128,
                                     .max_seq_len = i & 1 ? 32 : 64,
                                     .window = i & 2 ? 16 : 0,
                                     .softcap = i & 4 ? 30 : 0,
                                     .scale = i & 8 ? 0.1 : 0 };
        const ptxgen_kernel *k = options_find(&query);
        assert_non_null(k);
        assert_int_equal(k->max_seq_len, query.max_seq_len);
        assert_int_equal(strstr(k->name, "_win16") != NULL, query.window != 0);
        assert_int_equal(strstr(k->name, "_cap30") != NULL, query.softcap > 0);
        assert_int_equal(strstr(k->name, "_scale0p1") != NULL, query.scale > 0);
    }
    assert_says(&(ptxgen_query){ .op = PTXGEN_ATTENTION, .head_dim = 128, .window = 17 },
                "no attention with head_dim 128, that window was generated; nearest: "
                "multi_warp_attention_d128_h8_kv2_s64_w4_f16 (window is not set)");
    assert_null(options_find(
        &(ptxgen_query){ .op = PTXGEN_ATTENTION, .head_dim = 128, .seq_len_indirect = 1 }));
}

/* 1 / sqrt(128), computed in double and in float. */
TEST(the_default_scale_may_be_given_or_left_out)
{
    static const double usual[] = { 0, 0.08838834764831845, 0.088388346, 0.08838835 };
    ptxgen_query query = { .op = PTXGEN_ATTENTION, .head_dim = 128 };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        query.scale = usual[i];
        assert_non_null(options_find(&query));
        assert_string_equal(options_find(&query)->name,
                            "multi_warp_attention_d128_h8_kv2_s64_w4_f16");
    }
    query.scale = 0.0883;
    assert_null(options_find(&query));
}

TEST(lengths_of_several_sequences_are_always_in_device_memory)
{
    for (int indirect = 0; indirect < 2; indirect++)
        assert_non_null(options_find(&(ptxgen_query){
            .op = PTXGEN_BATCHED_ATTENTION, .m = 2, .seq_len_indirect = indirect }));
}

TEST(kernels_with_scratch_memory_are_found_only_on_request)
{
    ptxgen_query query = { .op = PTXGEN_BATCHED_ATTENTION, .m = 2 };
    assert_string_equal(options_find(&query)->family, "batched_incremental_attention");
    query.scratch = 1;
    assert_string_equal(options_find(&query)->family, "gqa_flash_decoding");
    query.scratch = 0;
    query.family = "gqa_flash_decoding";
    assert_non_null(options_find(&query));
}

TEST(a_vector_is_f32_unless_the_query_says_otherwise)
{
    ptxgen_query query = { .op = PTXGEN_GEMV, .weights = PTXGEN_Q6_K, .k = 256, .n = 8 };
    assert_string_equal(options_find(&query)->family, "q6k_gemv");
    query.activations = PTXGEN_Q8_1;
    assert_string_equal(options_find(&query)->family, "hw_dp4a_q6k_gemv");
    query.activations = PTXGEN_NONE;
    query.family = "hw_dp4a_q6k_gemv";
    assert_non_null(options_find(&query));
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .weights = PTXGEN_Q6_K, .k = 257, .n = 8 },
                "no gemv with weights q6_k, k 257, n 8 was generated; nearest: "
                "q6k_gemv_k256_n8 (k is 256)");
}

TEST(a_pipeline_is_found_by_its_weights_and_options)
{
    static const struct {
        ptxgen_query query;
        const char *name;
    } cases[] = {
        { { .family = "dp4a", .weights = PTXGEN_Q4_K }, "dp4a_k512_n8" },
        { { .family = "dp4a", .weights = PTXGEN_Q6_K }, "dp4a_k512_n8_q6k" },
        { { .family = "flash_decoding", .weights = PTXGEN_F16 },
          "flash_decoding_d64_h4_kv2_s256_m2_c128_f16" },
        { { .family = "flash_decoding", .weights = PTXGEN_BF16, .window = 100 },
          "flash_decoding_d64_h4_kv2_s256_m2_c128_bf16_win100" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_non_null(options_find_pipeline(&cases[i].query));
        assert_string_equal(options_find_pipeline(&cases[i].query)->name, cases[i].name);
    }
    assert_null(options_find_pipeline(&(ptxgen_query){ .family = "dp4a", .weights = PTXGEN_F16 }));
    assert_null(options_find_pipeline(&(ptxgen_query){ .family = "flash_decoding", .window = 99 }));
}

/* Returns the query that describes a pipeline completely. */
static ptxgen_query query_of(const ptxgen_pipeline *p)
{
    const ptxgen_config *kv = ptxgen_key(p->config, p->config_count, "kv");
    const ptxgen_config *window = ptxgen_key(p->config, p->config_count, "window");
    ptxgen_query query = { .family = p->pipeline,
                           .op = p->operation,
                           .weights = p->weights,
                           .activations = p->activations,
                           .precision = p->precision,
                           .sm = 75,
                           .k = p->k,
                           .n = p->n,
                           .n_kv = p->n_kv,
                           .m = p->m,
                           .kv = kv ? (ptxgen_kv)(kv->value + 1) : 0,
                           .window = window ? window->value : 0 };
    struct {
        const char *name;
        ptxgen_format *wanted;
    } matrices[] = { { "wq", &query.weights_q },
                     { "wk", &query.weights_k },
                     { "wv", &query.weights_v } };
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        for (size_t j = 0; j < p->buffer_count; j++)
            if (strcmp(p->buffers[j].name, matrices[i].name) == 0)
                *matrices[i].wanted = p->buffers[j].format;
    return query;
}

TEST(every_pipeline_is_found_by_its_query)
{
    assert_int_equal(options_pipeline_count, 4 + 4 + 8);
    for (size_t i = 0; i < options_pipeline_count; i++) {
        ptxgen_query query = query_of(options_pipelines[i]);
        assert_ptr_equal(options_find_pipeline(&query), options_pipelines[i]);
    }
}

/* Returns a query with one member changed to a value that no pipeline has, or NULL after the last
 * member. seq_len_indirect is left out, since it applies only to attention of one sequence. */
static const ptxgen_query *changed(const ptxgen_query *query, size_t member)
{
    static ptxgen_query other;
    size_t at = 0;
    other = *query;
#define CHANGE(name, value) \
    if (member == at++) {   \
        other.name = value; \
        return &other;      \
    }
    CHANGE(family, "batched_qkv")
    CHANGE(op, PTXGEN_QUANTIZE)
    CHANGE(weights, PTXGEN_Q5_K)
    CHANGE(activations, PTXGEN_F16)
    CHANGE(precision, PTXGEN_F16)
    CHANGE(sm, 70)
    CHANGE(epsilon, 1e-5)
    CHANGE(k, 768)
    CHANGE(n, 65)
    CHANGE(m, 3)
    CHANGE(n_kv, 33)
    CHANGE(n_v, 32)
    CHANGE(experts, 4)
    CHANGE(experts_used, 2)
    CHANGE(n_shared, 2)
    CHANGE(plane_rows, 2)
    CHANGE(head_dim, 65)
    CHANGE(num_heads, 5)
    CHANGE(num_kv_heads, 3)
    CHANGE(max_seq_len, 255)
    CHANGE(chunk_size, 64)
    CHANGE(latent, 2)
    CHANGE(n_rope, 2)
    CHANGE(nope, 2)
    CHANGE(value_dim, 2)
    CHANGE(q_rank, 2)
    CHANGE(num_warps, 7)
    CHANGE(kv, (ptxgen_kv)3)
    CHANGE(weights_q, PTXGEN_Q5_K)
    CHANGE(weights_k, PTXGEN_Q5_K)
    CHANGE(weights_v, PTXGEN_Q5_K)
    CHANGE(weights_g, PTXGEN_Q4_K)
    CHANGE(weights_u, PTXGEN_Q4_K)
    CHANGE(weights_d, PTXGEN_Q4_K)
    CHANGE(weights_s, PTXGEN_Q4_K)
    CHANGE(weights_sg, PTXGEN_Q4_K)
    CHANGE(weights_su, PTXGEN_Q4_K)
    CHANGE(bias, 1)
    CHANGE(residual, 1)
    CHANGE(norm, PTXGEN_NORM_RMS)
    CHANGE(activation, PTXGEN_ACTIVATION_GELU)
    CHANGE(window, 99)
    CHANGE(sinks, 1)
    CHANGE(gate, 1)
    CHANGE(ring, 8)
    CHANGE(gated, 1)
    CHANGE(scale, 0.3)
    CHANGE(softcap, 3)
    CHANGE(layout, PTXGEN_LAYOUT_TILED)
    CHANGE(apart, 1)
    CHANGE(state, PTXGEN_STATE_SETTLED)
    CHANGE(next, 128)
    CHANGE(epilogue, PTXGEN_EPILOGUE_GELU)
    CHANGE(times, 1)
    CHANGE(limit, 7)
#undef CHANGE
    return NULL;
}

TEST(a_pipeline_that_differs_in_any_member_of_a_query_is_not_found)
{
    for (size_t i = 0; i < options_pipeline_count; i++) {
        const ptxgen_query query = query_of(options_pipelines[i]), *other;
        for (size_t member = 0; (other = changed(&query, member)); member++) {
            bool of_matrices =
                query.n_kv && other->weights == PTXGEN_Q5_K; /* each matrix has its own format
                                                                               in the query */
            const ptxgen_pipeline *found = options_find_pipeline(other);
            if (found != (of_matrices ? options_pipelines[i] : NULL))
                fail_msg("%s: wrong result of a query with member %zu changed",
                         options_pipelines[i]->name, member);
        }
    }
}

static void assert_pipeline_says(const ptxgen_query *query, const char *expected)
{
    char text[400];
    size_t length = options_explain_pipeline_miss(query, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(text));
}

TEST(a_miss_names_the_nearest_pipeline_and_its_differences)
{
    assert_pipeline_says(
        &(ptxgen_query){ .family = "dp4a", .weights = PTXGEN_Q4_K, .k = 512, .n = 9 },
        "no pipeline of family dp4a with weights q4_k, activations f32, k 512, n 9 was generated; "
        "nearest: dp4a_k512_n8 (n is 8)");
    assert_pipeline_says(&(ptxgen_query){ .op = PTXGEN_QKV,
                                          .weights = PTXGEN_Q4_K,
                                          .weights_q = PTXGEN_Q6_K,
                                          .precision = PTXGEN_F32 },
                         "no qkv with weights q4_k, wq q6_k, activations f32, precision f32 was "
                         "generated; nearest: qkv_k512_n64_kv32 (wq is q4_k, precision is q8_1)");
    assert_pipeline_says(&(ptxgen_query){ .family = "dp4a", .sm = 70 },
                         "no pipeline of family dp4a with activations f32 for sm_70 was generated; "
                         "nearest: dp4a_k512_n8 (its kernels do not run on that device)");
    assert_pipeline_says(&(ptxgen_query){ .family = "dp4a", .weights = PTXGEN_Q6_K },
                         "dp4a_k512_n8_q6k fits");
}

TEST(a_pipeline_reads_f32_unless_the_query_says_otherwise)
{
    ptxgen_query query = { .family = "dp4a", .weights = PTXGEN_Q6_K, .k = 512, .n = 8 };
    assert_string_equal(options_find_pipeline(&query)->name, "dp4a_k512_n8_q6k");
    query.activations = PTXGEN_Q8_1;
    assert_string_equal(options_find_pipeline(&query)->name, "dp4a_k512_n8_q6k_q8");
    query.precision = PTXGEN_F32;
    assert_null(options_find_pipeline(&query));
}

/* weights is the format of all matrices that the query does not name. */
TEST(matrices_have_the_formats_that_a_query_says)
{
    ptxgen_query query = { .family = "stream_qkv", .weights = PTXGEN_Q4_K, .k = 512 };
    assert_non_null(options_find(&query));
    assert_null(strstr(options_find(&query)->name, "q6k"));
    query.weights_v = PTXGEN_Q6_K;
    assert_non_null(strstr(options_find(&query)->name, "_vq6k"));
    query.family = "qkv";
    assert_non_null(strstr(options_find_pipeline(&query)->name, "_vq6k"));
    query = (ptxgen_query){ .op = PTXGEN_QKV, .weights = PTXGEN_Q6_K };
    assert_null(options_find(&query));
    assert_null(options_find_pipeline(&query));
    assert_says(&(ptxgen_query){ .family = "stream_qkv",
                                 .weights = PTXGEN_Q4_K,
                                 .weights_k = PTXGEN_Q6_K,
                                 .weights_g = PTXGEN_Q4_K },
                "no kernel of family stream_qkv with weights q4_k, wk q6_k, wg q4_k was generated; "
                "nearest: stream_qkv_q4k_k512_n64_kv32_m1_w12_r2 (wk is q4_k, has no wg)");
}

static const ptxgen_config *key_of(const ptxgen_kernel *k, const char *name)
{
    static const ptxgen_config none = { .name = "" };
    const ptxgen_config *key = ptxgen_key(k->config, k->config_count, name);
    return key ? key : &none;
}

TEST(every_kernel_is_found_by_its_query)
{
    for (size_t i = 0; i < options_kernel_count; i++) {
        const ptxgen_kernel *k = options_kernels[i];
        const ptxgen_param *v = ptxgen_param_named(k->params, k->param_count, "wv");
        const ptxgen_query query = { .op = k->operation,
                                     .family = k->family,
                                     .k = k->k,
                                     .n = k->n,
                                     .weights = k->weights,
                                     .weights_v = v ? v->format : PTXGEN_NONE,
                                     .max_seq_len = k->max_seq_len,
                                     .bias = (int)key_of(k, "bias")->value,
                                     .residual = (int)key_of(k, "residual")->value,
                                     .norm = (ptxgen_norm)key_of(k, "norm")->value,
                                     .activation =
                                         (ptxgen_activation)key_of(k, "activation")->value,
                                     .num_warps = key_of(k, "num_warps")->value,
                                     .window = key_of(k, "window")->value,
                                     .scale = key_of(k, "scale")->real,
                                     .softcap = key_of(k, "softcap")->real };
        assert_ptr_equal(options_find(&query), k);
    }
}
