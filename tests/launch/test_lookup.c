/* Look-ups of kernels in a generated header, and the messages for misses. */
#include <string.h>

#define ENGINE_KERNELS_IMPLEMENTATION
#include "test.h"
#include "engine_kernels.h"

static void assert_says(const ptxgen_query *query, const char *expected)
{
    char text[400];
    size_t length = engine_explain_miss(query, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(text));
}

TEST(a_miss_names_the_nearest_kernel_and_its_differences)
{
    assert_says(
        &(ptxgen_query){ .op = PTXGEN_GEMV, .activations = PTXGEN_Q8_1, .k = 256, .n = 6000 },
        "no gemv with activations q8_1, k 256, n 6000 was generated; nearest: "
        "mwv_dp4a_q4k_gemv_k256_n5000_w3 (n is 5000)");
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .weights = PTXGEN_Q6_K, .k = 512, .n = 7 },
                "no gemv with weights q6_k, k 512, n 7 was generated; nearest: "
                "mwv_q4k_gemv_k512_n7_w4 (weights are q4_k)");
    assert_says(&(ptxgen_query){ .op = PTXGEN_RMSNORM_GEMV, .epsilon = 1e-6 },
                "no rmsnorm_gemv with that epsilon was generated; nearest: "
                "mwv_q4k_gemv_k512_n7_w4 (computes gemv, epsilon differs)");
}

TEST(a_miss_states_that_the_device_is_too_old)
{
    assert_says(&(ptxgen_query){ .op = PTXGEN_ATTENTION, .head_dim = 64, .sm = 70 },
                "no attention with head_dim 64 for sm_70 was generated; nearest: "
                "incremental_attention_d64_h8_kv2_s32 (needs sm_75)");
}

TEST(a_miss_states_the_sizes_that_a_dynamic_kernel_accepts)
{
    assert_says(&(ptxgen_query){ .family = "tiled_q4k_gemv", .k = 1000, .n = 9, .m = 2 },
                "no kernel of family tiled_q4k_gemv with k 1000, n 9, m 2 was generated; nearest: "
                "tiled_q4k_gemv_o4_dynamic (k is a multiple of 256 from 256 to 2147483647, "
                "m is 1)");
}

TEST(invalid_operations_and_formats_are_called_unknown)
{
    static const int numbers[] = { 1000, -1, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_says(&(ptxgen_query){ .op = (ptxgen_operation)numbers[i], .k = 512 },
                    "no unknown operation with k 512 was generated; nearest: "
                    "mwv_q4k_gemv_k512_n7_w4 (computes gemv)");
        assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV,
                                     .weights = (ptxgen_format)numbers[i],
                                     .activations = PTXGEN_F32,
                                     .precision = (ptxgen_format)numbers[i],
                                     .k = 512 },
                    "no gemv with weights of an unknown format, activations f32, precision of an "
                    "unknown format, k 512 was generated; nearest: mwv_q4k_gemv_k512_n7_w4 "
                    "(weights are q4_k, precision is f32)");
    }
}

TEST(a_fitting_kernel_is_not_a_miss)
{
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .k = 512, .n = 7 },
                "mwv_q4k_gemv_k512_n7_w4 fits");
}

TEST(a_text_is_cut_at_the_end_of_its_buffer)
{
    const ptxgen_query query = { .op = PTXGEN_GEMV, .k = 512, .n = 7 };
    const size_t length = strlen("mwv_q4k_gemv_k512_n7_w4 fits");
    char text[] = "________";
    assert_int_equal(engine_explain_miss(&query, text, 5), length);
    assert_memory_equal(text, "mwv_\0___", sizeof text);
    assert_int_equal(engine_explain_miss(&query, text, 1), length);
    assert_memory_equal(text, "\0wv_\0___", sizeof text);
    assert_int_equal(engine_explain_miss(&query, NULL, 0), length);
}

/* An exact number of rows is preferred, then the kernel that reads the weights least often. */
TEST(any_number_of_rows_finds_a_kernel)
{
    static const struct {
        int64_t rows;
        const ptxgen_kernel *found;
    } queries[] = {
        { 0, &engine_gemv_q8_0_k64_n8_m4 },           { 1, &engine_gemv_q8_0_k64_n8_m1_rows },
        { 2, &engine_gemv_q8_0_k64_n8_m4_rows },      { 4, &engine_gemv_q8_0_k64_n8_m4 },
        { 5, &engine_gemv_q8_0_k64_n8_m4_rows },      { 65536, &engine_gemv_q8_0_k64_n8_m4_rows },
        { 262140, &engine_gemv_q8_0_k64_n8_m4_rows }, { 262141, NULL },
    };
    unsigned grid[3];
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        const ptxgen_query query = { .family = "gemv", .k = 64, .n = 8, .m = queries[i].rows };
        assert_ptr_equal(engine_find(&query), queries[i].found);
    }
    assert_true(ptxgen_grid(&engine_gemv_q8_0_k64_n8_m4_rows, &(ptxgen_run){ .m = 9 }, grid));
    assert_memory_equal(grid, ((unsigned[]){ 8, 3, 1 }), sizeof grid);
    assert_false(ptxgen_grid(&engine_gemv_q8_0_k64_n8_m4_rows, &(ptxgen_run){ 0 }, grid));
    assert_says(&(ptxgen_query){ .family = "gemv", .k = 64, .n = 8, .m = 262141 },
                "no kernel of family gemv with k 64, n 8, m 262141 was generated; nearest: "
                "gemv_q8_0_k64_n8_m1_rows (m is a multiple of 1 from 1 to 65535)");
}

TEST(every_kernel_is_found_by_its_name_and_its_query)
{
    for (size_t i = 0; i < engine_kernel_count; i++) {
        const ptxgen_kernel *k = engine_kernels[i];
        const ptxgen_query query = { .op = k->operation,
                                     .family = k->family,
                                     .k = k->k,
                                     .n = k->n,
                                     .seq_len_indirect = k->seq_len_indirect };
        assert_ptr_equal(engine_named(k->name, 0), k);
        assert_non_null(engine_find(&query));
    }
    assert_null(engine_named(NULL, 0));
}
