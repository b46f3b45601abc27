/* The alias of variant = auto must load and launch, on every device, the kernel that a look-up
 * finds. */
#include "../fake_driver.h"

typedef struct called {
    ptxgen_query query;
    ptxgen_result (*load)(engine_cuda *cuda, ptxgen_load_error *error);
    ptxgen_result (*launch)(const engine_cuda *cuda, ptxgen_stream stream, ptxgen_deviceptr y,
                            ptxgen_const_deviceptr w, ptxgen_const_deviceptr x);
} called;

static const called aliases[] = {
    { { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 4096, .n = 4096 },
      engine_gemv_q4k_k4096_n4096_m1_auto_load,
      engine_gemv_q4k_k4096_n4096_m1_auto_launch },
    { { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 4096, .n = 4096, .precision = PTXGEN_F32 },
      engine_gemv_q4k_k4096_n4096_m1_auto_f32_load,
      engine_gemv_q4k_k4096_n4096_m1_auto_f32_launch },
    { { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 4096, .n = 2048 },
      engine_q4k_gemv_k4096_n2048_auto_load,
      engine_q4k_gemv_k4096_n2048_auto_launch },
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

static const int devices[] = { 75, 80, 86, 90, 120 };
enum { DEVICES = sizeof devices / sizeof *devices };

TEST_WITH(an_alias_runs_the_kernel_chosen_for_the_device, set_up, NULL)
{
    engine_cuda *cuda = *state;
    for (size_t d = 0; d < DEVICES; d++)
        for (size_t i = 0; i < ALIASES; i++) {
            fake.sm = devices[d];
            fake.loads = 0;
            thread.launches = 0;
            assert_int_equal(init(cuda), CUDA_SUCCESS);
            ptxgen_query query = aliases[i].query;
            query.sm = (unsigned)fake.sm;
            const ptxgen_kernel *found = engine_find(&query);
            assert_non_null(found);
            assert_int_equal(aliases[i].launch(cuda, STREAM, 16, 32, 48),
                             CUDA_ERROR_INVALID_HANDLE);
            assert_int_equal(aliases[i].load(cuda, NULL), CUDA_SUCCESS);
            assert_int_equal(fake.loads, 1);
            assert_ptr_equal(engine_loaded(cuda, found)->kernel, found);
            assert_int_equal(aliases[i].launch(cuda, STREAM, 16, 32, 48), CUDA_SUCCESS);
            assert_int_equal(thread.launches, 1);
            assert_string_equal(thread.list[0].entry, found->entry);
            assert_arguments(0, 16, 32, 48, 0, 0);
        }
}

/* The devices must get different kernels; otherwise the test above proves nothing. */
TEST(the_choices_differ)
{
    ptxgen_query query = aliases[0].query, exact = aliases[1].query;
    query.sm = 75;
    const ptxgen_kernel *old = engine_find(&query);
    query.sm = exact.sm = 90;
    const ptxgen_kernel *new = engine_find(&query);
    assert_string_not_equal(old->name, new->name);
    assert_string_not_equal(new->name, engine_find(&exact)->name);
}

TEST_WITH(a_device_that_is_too_old_is_refused, set_up, NULL)
{
    engine_cuda *cuda = *state;
    fake.sm = 70;
    assert_int_equal(init(cuda), CUDA_SUCCESS);
    for (size_t i = 0; i < ALIASES; i++)
        assert_int_equal(aliases[i].load(cuda, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake.loads, 0);
}
