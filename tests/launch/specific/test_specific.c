/* A kernel for one architecture must be found and loaded there. Other devices must get an older
 * kernel. */
#include "../fake_driver.h"

static const char of_both[] = "mma_gemm_f16_q4k_k512_n128_m64_rows_s3";
static const char of_one[] = "mma_gemm_f16_q4k_k512_n128_m256_rows_s3";

static const struct {
    unsigned device, sm; /* the device's and the expected kernel's */
    int specific;
} found[] = { { 80, 80, 0 }, { 89, 80, 0 }, { 90, 90, 1 }, { 100, 80, 0 }, { 120, 80, 0 } };
enum { FOUND = sizeof found / sizeof *found };

TEST(a_kernel_for_one_architecture_is_found_only_there)
{
    for (int i = 0; i < FOUND; i++) {
        const ptxgen_kernel *named = engine_named(of_both, found[i].device);
        assert_int_equal(named->sm, found[i].sm);
        assert_int_equal(named->specific, found[i].specific);
        const ptxgen_query query = {
            .op = PTXGEN_GEMV, .activations = PTXGEN_F16, .m = 64, .sm = found[i].device
        };
        assert_ptr_equal(engine_find(&query), named);
        assert_int_equal(engine_named(of_one, found[i].device) != NULL, found[i].specific);
    }
}

TEST(a_kernel_without_specific_instructions_runs_on_newer_devices)
{
    const char *gemv = "gemv_q4k_k512_n128_m1";
    assert_int_equal(engine_named(gemv, 80)->sm, 80);
    for (unsigned sm = 90; sm <= 120; sm += 10) {
        assert_int_equal(engine_named(gemv, sm)->sm, 90);
        assert_non_null(strstr(engine_named(gemv, sm)->ptx, ".target sm_90\n"));
    }
    assert_non_null(strstr(engine_named(of_one, 90)->ptx, ".target sm_90a\n"));
}

TEST(a_miss_names_the_architecture)
{
    char text[400];
    engine_explain_miss(
        &(ptxgen_query){
            .op = PTXGEN_GEMV, .activations = PTXGEN_F16, .k = 512, .n = 128, .m = 256, .sm = 75 },
        text, sizeof text);
    assert_non_null(strstr(text, "needs sm_"));
}

TEST_WITH(kernels_for_other_devices_are_not_loaded, set_up, NULL)
{
    engine_cuda *cuda = *state;
    for (int i = 0; i < FOUND; i++) {
        fake.sm = (int)found[i].device;
        fake.shared_block = (int)ptxgen_shared_limit(found[i].device);
        fake.loads = 0;
        assert_int_equal(init(cuda), CUDA_SUCCESS);
        assert_int_equal(engine_load_all(cuda, NULL), CUDA_SUCCESS);
        assert_int_equal(fake.loads, found[i].specific ? 3 : 2);
        engine_unload(cuda);
    }
}
