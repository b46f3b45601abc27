/* Looking kernels up in a generated header, and what it says where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ENGINE_KERNELS_IMPLEMENTATION
#include "engine_kernels.h"

static void assert_says(const ptxgen_query *query, const char *expected)
{
    char text[400];
    size_t length = engine_explain_miss(query, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(text));
}

static void a_miss_names_the_nearest_kernel_and_what_is_different(void **state)
{
    (void)state;
    assert_says(
        &(ptxgen_query){ .op = PTXGEN_GEMV, .activations = PTXGEN_Q8_1, .k = 256, .n = 6000 },
        "no gemv with activations q8_1, k 256, n 6000 was generated; nearest: "
        "mwv_dp4a_q4k_gemv_k256_n5000_w3 (n is 5000)");
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .weights = PTXGEN_Q6_K, .k = 512, .n = 7 },
                "no gemv with weights q6_k, k 512, n 7 was generated; nearest: "
                "mwv_q4k_gemv_k512_n7_w4 (weights are q4_k)");
    assert_says(&(ptxgen_query){ .op = PTXGEN_RMSNORM_GEMV, .epsilon = 1e-5 },
                "no rmsnorm_gemv with that epsilon was generated; nearest: "
                "mwv_q4k_gemv_k512_n7_w4 (computes gemv, epsilon is another)");
}

static void a_miss_says_that_the_device_is_too_old(void **state)
{
    (void)state;
    assert_says(&(ptxgen_query){ .op = PTXGEN_ATTENTION, .head_dim = 64, .sm = 70 },
                "no attention with head_dim 64 for sm_70 was generated; nearest: "
                "incremental_attention_d64_h8_kv2_s32 (needs sm_75)");
}

static void a_miss_says_which_sizes_a_dynamic_kernel_takes(void **state)
{
    (void)state;
    assert_says(&(ptxgen_query){ .family = "tiled_q4k_gemv", .k = 1000, .n = 9, .m = 2 },
                "no kernel of family tiled_q4k_gemv with k 1000, n 9, m 2 was generated; nearest: "
                "tiled_q4k_gemv_o4_dynamic (k is a multiple of 256 from 256 to 2147483647, "
                "m is 1)");
}

static void what_is_no_operation_or_format_is_called_unknown(void **state)
{
    static const int numbers[] = { 1000, -1, INT32_MAX, INT32_MIN };
    (void)state;
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

static void what_fits_is_no_miss(void **state)
{
    (void)state;
    assert_says(&(ptxgen_query){ .op = PTXGEN_GEMV, .k = 512, .n = 7 },
                "mwv_q4k_gemv_k512_n7_w4 fits");
}

static void a_text_is_cut_at_the_end_of_its_buffer(void **state)
{
    (void)state;
    const ptxgen_query query = { .op = PTXGEN_GEMV, .k = 512, .n = 7 };
    const size_t length = strlen("mwv_q4k_gemv_k512_n7_w4 fits");
    char text[] = "________";
    assert_int_equal(engine_explain_miss(&query, text, 5), length);
    assert_memory_equal(text, "mwv_\0___", sizeof text);
    assert_int_equal(engine_explain_miss(&query, text, 1), length);
    assert_memory_equal(text, "\0wv_\0___", sizeof text);
    assert_int_equal(engine_explain_miss(&query, NULL, 0), length);
}

static void every_kernel_is_found_by_its_name_and_its_query(void **state)
{
    (void)state;
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_miss_names_the_nearest_kernel_and_what_is_different),
        cmocka_unit_test(a_miss_says_that_the_device_is_too_old),
        cmocka_unit_test(a_miss_says_which_sizes_a_dynamic_kernel_takes),
        cmocka_unit_test(what_is_no_operation_or_format_is_called_unknown),
        cmocka_unit_test(what_fits_is_no_miss),
        cmocka_unit_test(a_text_is_cut_at_the_end_of_its_buffer),
        cmocka_unit_test(every_kernel_is_found_by_its_name_and_its_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
