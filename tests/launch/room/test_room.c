/* A device must find and load the newest kernel of a name whose shared memory it can provide. */
#include <stdio.h>

#include "../fake_driver.h"

static const char name[] = "stream_gemv_q8_q4k_k14336_n64_m8_w12_r2";

static const struct {
    unsigned device, sm; /* the device's and the expected kernel's */
} taken[] = { { 80, 80 },  { 86, 86 },  { 87, 86 },  { 89, 86 },  { 90, 90 },
              { 100, 90 }, { 103, 90 }, { 110, 90 }, { 120, 86 }, { 121, 86 } };
enum { TAKEN = sizeof taken / sizeof *taken };

static unsigned need(const ptxgen_kernel *kernel)
{
    return kernel->shared_static + kernel->shared_dynamic;
}

TEST(limits_are_those_of_the_newest_known_architecture_up_to_the_device)
{
    assert_int_equal(ptxgen_shared_limit(75), 64 * 1024);
    assert_int_equal(ptxgen_shared_limit(80), 163 * 1024);
    assert_int_equal(ptxgen_shared_limit(86), 99 * 1024);
    assert_int_equal(ptxgen_shared_limit(87), 163 * 1024);
    assert_int_equal(ptxgen_shared_limit(89), 99 * 1024);
    assert_int_equal(ptxgen_shared_limit(100), 227 * 1024);
    assert_int_equal(ptxgen_shared_limit(121), 99 * 1024);
    assert_int_equal(ptxgen_shared_limit(70), 0);
}

TEST(a_look_up_finds_the_newest_kernel_that_fits)
{
    for (int i = 0; i < TAKEN; i++) {
        const ptxgen_query query = { .family = "stream_gemv_q8", .m = 8, .sm = taken[i].device };
        const ptxgen_kernel *found = engine_find(&query);
        assert_ptr_equal(found, engine_named(name, taken[i].device));
        assert_int_equal(found->sm, taken[i].sm);
        assert_true(need(found) <= ptxgen_shared_limit(taken[i].device));
    }
    assert_null(engine_named(name, 75));
}

TEST_WITH(a_device_loads_the_newest_kernel_that_fits, set_up, NULL)
{
    engine_cuda *cuda = *state;
    for (int i = 0; i < TAKEN; i++) {
        fake.sm = (int)taken[i].device;
        fake.shared_block = (int)ptxgen_shared_limit(taken[i].device);
        fake.loads = 0;
        assert_int_equal(init(cuda), CUDA_SUCCESS);
        assert_int_equal(engine_load_all(cuda, NULL), CUDA_SUCCESS);
        const ptxgen_kernel *named = engine_named(name, taken[i].device);
        assert_ptr_equal(engine_loaded(cuda, named)->kernel, named);
        ptxgen_query chosen = {
            .op = PTXGEN_GEMV, .k = 14336, .n = 4096, .m = 8, .sm = taken[i].device
        };
        const ptxgen_kernel *found = engine_find(&chosen);
        assert_non_null(found);
        assert_non_null(found->chosen_by);
        assert_ptr_equal(engine_loaded(cuda, found)->kernel, found);
        assert_int_equal(engine_gemv_q4k_k14336_n4096_m8_auto_load(cuda, NULL), CUDA_SUCCESS);
        engine_unload(cuda);
    }
}

/* The device's own limit decides, not the limit of its architecture. */
TEST_WITH(errors_state_the_needed_and_the_allowed_shared_memory, set_up, NULL)
{
    engine_cuda *cuda = *state;
    static ptxgen_load_error error;
    fake.sm = 90;
    fake.shared_block = 99 * 1024;
    assert_int_equal(init(cuda), CUDA_SUCCESS);
    assert_int_equal(engine_load(cuda, engine_named(name, 90), &error), CUDA_SUCCESS);
    assert_int_equal(engine_loaded(cuda, engine_named(name, 90))->kernel->sm, 86);
    engine_unload(cuda);

    fake.shared_block = 48 * 1024;
    fake.loads = 0;
    assert_int_equal(init(cuda), CUDA_SUCCESS);
    assert_int_equal(engine_load(cuda, engine_named(name, 90), &error),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(fake.loads, 0);
    char said[200];
    snprintf(said, sizeof said,
             "the kernel needs %u bytes of shared memory per block; the device allows %u",
             need(engine_named(name, 86)), 48 * 1024);
    assert_string_equal(error.log, said);

    fake.sm = 75;
    assert_int_equal(init(cuda), CUDA_SUCCESS);
    assert_int_equal(engine_load(cuda, engine_named(name, 0), &error),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_string_equal(error.log, "the kernel needs sm_80 or newer; the device is sm_75");
}

TEST(a_miss_states_the_needed_and_the_allowed_shared_memory)
{
    char text[400];
    const ptxgen_query query = { .family = "tiled_q4k_gemv", .k = 32768, .n = 64, .sm = 120 };
    assert_null(engine_find(&query));
    engine_explain_miss(&query, text, sizeof text);
    assert_non_null(
        strstr(text, "needs 131072 bytes of shared memory per block, sm_120 allows 101376"));
    ptxgen_query wide = query;
    wide.sm = 90;
    assert_non_null(engine_find(&wide));
}
