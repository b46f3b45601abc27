/* Loading and launching single kernels through a generated header. */
#include "fake_driver.h"

static void assert_launched(const char *entry, unsigned grid, unsigned block, unsigned shared)
{
    assert_int_equal(thread.launches, 1);
    assert_launch(0, entry, grid, block, shared);
}

TEST_WITH(a_fixed_grid_is_launched_with_arguments_in_order, set_up_loaded, NULL)
{
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 0x104, 0x220, 0x330));
    assert_launched("mwv_q4k_gemv_k512_n7_w4", 7, 128, 0);
    assert_arguments(0, 0x104, 0x220, 0x330, 0, 0);
}

TEST_WITH(the_number_of_sms_decides_a_striding_grid, set_up_loaded, NULL)
{
    assert_success(
        engine_mwv_dp4a_q4k_gemv_k256_n5000_w3_launch(*state, STREAM, 0x104, 0x220, 0x334));
    assert_launched("mwv_dp4a_q4k_gemv_k256_n5000_w3", SM_COUNT * 16, 96, 0);
}

TEST_WITH(run_time_sizes_decide_grid_and_shared_memory, set_up_loaded, NULL)
{
    assert_success(engine_tiled_q4k_gemv_o4_dynamic_launch(*state, STREAM, 4, 16, 32, 1024, 9));
    assert_launched("tiled_q4k_gemv_o4_dynamic", 3, 128, 4096);
    assert_arguments(0, 4, 16, 32, 1024, 9);
}

/* The grid has 2 KV heads, m sequences, and chunks for two blocks per SM. */
TEST_WITH(a_grid_divides_by_run_time_sizes_and_is_refused_without_them, set_up_loaded, NULL)
{
    const ptxgen_kernel *kernel = &engine_gqa_flash_decoding_d64_h8_kv2_s4096_c64_dynamic;
    const ptxgen_run whole = { .m = 3, .sm_count = SM_COUNT };
    unsigned grid[3];
    assert_true(ptxgen_grid(kernel, &whole, grid));
    assert_memory_equal(grid, ((unsigned[]){ 2, 3, SM_COUNT * 2 / 6 }), sizeof grid);
    assert_false(ptxgen_grid(kernel, &(ptxgen_run){ .sm_count = SM_COUNT }, grid));
    assert_false(ptxgen_grid(kernel, &(ptxgen_run){ .m = 3 }, grid));
    assert_false(ptxgen_grid(kernel, NULL, grid));

    assert_success(engine_gqa_flash_decoding_d64_h8_kv2_s4096_c64_dynamic_launch(
        *state, STREAM, 16, 32, 48, 64, 80, 96, 4, 8, 3));
    assert_memory_equal(thread.list[0].grid, ((unsigned[]){ 2, 3, SM_COUNT * 2 / 6 }), sizeof grid);
    for (uint32_t m = 0; m <= 65536; m += 65536)
        assert_error(INVALID_VALUE, engine_gqa_flash_decoding_d64_h8_kv2_s4096_c64_dynamic_launch(
                                        *state, STREAM, 16, 32, 48, 64, 80, 96, 4, 8, m));
    assert_int_equal(thread.launches, 1);
}

/* A block takes four rows of X and 24 rows of W. */
TEST_WITH(the_number_of_rows_sets_grid_y, set_up_loaded, NULL)
{
    static const struct {
        uint32_t rows;
        unsigned groups;
    } launches[] = { { 1, 1 }, { 4, 1 }, { 5, 2 }, { 262140, 65535 } };
    for (unsigned i = 0; i < sizeof launches / sizeof *launches; i++) {
        assert_success(engine_stream_gemv_q8_0_k64_n50_m4_rows_w12_r2_launch(
            *state, STREAM, 0x104, 0x220, 0x330, launches[i].rows));
        assert_memory_equal(thread.list[i].grid, ((unsigned[]){ 3, launches[i].groups, 1 }),
                            sizeof thread.list[i].grid);
        assert_arguments(i, 0x104, 0x220, 0x330, launches[i].rows, 0);
    }
    for (uint32_t rows = 0; rows <= 262141; rows += 262141)
        assert_error(INVALID_VALUE, engine_stream_gemv_q8_0_k64_n50_m4_rows_w12_r2_launch(
                                        *state, STREAM, 0x104, 0x220, 0x330, rows));
    assert_int_equal(thread.launches, sizeof launches / sizeof *launches);
}

/* With one warp per block of 32 values, 2^31 blocks are one too many. */
TEST_WITH(a_grid_beyond_cudas_limits_is_refused, set_up_loaded, NULL)
{
    static const struct {
        uint32_t k, m, blocks;
    } cases[] = { { 1 << 30, 63, 63u << 25 },
                  { 1 << 30, 64, 0 },
                  { 1 << 30, 65535, 0 },
                  { 1 << 21, 32768, 0 },
                  { 1 << 20, 65535, 65535u << 15 } };
    const ptxgen_kernel *kernel = &engine_q8_1_quantize_w1_dynamic;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned grid[3];
        const ptxgen_run run = { .k = cases[i].k, .m = cases[i].m };
        assert_int_equal(ptxgen_grid(kernel, &run, grid), cases[i].blocks != 0);
        if (cases[i].blocks)
            assert_int_equal(grid[0], cases[i].blocks);
        thread.launches = 0;
        assert_int_equal(
            engine_q8_1_quantize_w1_dynamic_launch(*state, STREAM, 16, 32, cases[i].k, cases[i].m),
            cases[i].blocks ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(thread.launches, cases[i].blocks != 0);
    }
}

/* ptxgen_grid, called directly, must also refuse sizes that the kernel does not accept. */
TEST_WITH(wrong_sizes_have_no_grid, set_up_loaded, NULL)
{
    static const ptxgen_run wrong[] = { { .k = 33, .m = 1 },
                                        { .k = -32, .m = 1 },
                                        { .k = 32, .m = 65536 },
                                        { .k = INT64_MAX / 32 * 32, .m = 1 },
                                        { .k = INT64_C(1) << 32, .m = 1 } };
    unsigned grid[3];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(ptxgen_grid(&engine_q8_1_quantize_w1_dynamic, &wrong[i], grid));
    const ptxgen_run no_gpu = { .sm_count = INT64_MAX };
    assert_false(ptxgen_grid(&engine_mwv_dp4a_q4k_gemv_k256_n5000_w3, &no_gpu, grid));
}

TEST_WITH(a_sequence_length_is_a_number_or_a_pointer, set_up_loaded, NULL)
{
    assert_success(
        engine_incremental_attention_d64_h8_kv2_s32_launch(*state, STREAM, 16, 32, 48, 64, 0));
    assert_launched("incremental_attention_d64_h8_kv2_s32", 8, 32, 0);
    assert_arguments(0, 16, 32, 48, 64, 0);

    thread.launches = 0;
    uint64_t far = UINT64_C(0x7f0000000004);
    assert_success(engine_incremental_attention_d64_h8_kv2_s32_indirect_launch(*state, STREAM, 16,
                                                                               32, 48, 64, far));
    assert_launched("incremental_attention_d64_h8_kv2_s32_indirect", 8, 32, 0);
    assert_arguments(0, 16, 32, 48, 64, far);
}

TEST_WITH(wrong_sizes_are_refused, set_up_loaded, NULL)
{
    static const struct {
        uint32_t k, n;
    } wrong[] = { { 0, 9 },          { 1000, 9 }, { 255, 9 },           { 0x80000000, 9 },
                  { 0xffffff00, 9 }, { 1024, 0 }, { 1024, 0x80000000 }, { 1024, 0xffffffff } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_error(INVALID_VALUE, engine_mwv_q4k_gemv_w4_dynamic_launch(*state, STREAM, 4, 16, 32,
                                                                          wrong[i].k, wrong[i].n));
    assert_int_equal(thread.launches, 0);
    assert_success(
        engine_mwv_q4k_gemv_w4_dynamic_launch(*state, STREAM, 4, 16, 32, 256, 0x7fffffff));
    assert_launched("mwv_q4k_gemv_w4_dynamic", 0x7fffffff, 128, 0);
}

TEST_WITH(more_shared_memory_than_a_block_can_have_is_refused, set_up_loaded, NULL)
{
    const uint32_t most = SHARED_BLOCK / 4, wraps_to_1024_bytes = 0x40000100;
    assert_error(INVALID_VALUE,
                 engine_tiled_q4k_gemv_o4_dynamic_launch(*state, STREAM, 4, 16, 32, most + 256, 9));
    assert_error(INVALID_VALUE, engine_tiled_q4k_gemv_o4_dynamic_launch(*state, STREAM, 4, 16, 32,
                                                                        wraps_to_1024_bytes, 9));
    assert_int_equal(thread.launches, 0);
    assert_success(engine_tiled_q4k_gemv_o4_dynamic_launch(*state, STREAM, 4, 16, 32, most, 9));
    assert_int_equal(thread.list[0].shared, SHARED_BLOCK);
}

static void keep(void *context, const char *why)
{
    strcpy(context, why);
}

TEST_WITH(missing_and_misaligned_pointers_are_refused_with_a_message, set_up_loaded, NULL)
{
    static const struct {
        CUdeviceptr y, w, x;
        const char *why;
    } wrong[] = {
        { 0, 16, 32, "y is 0" },
        { 4, 0, 32, "w is 0" },
        { 4, 16, 0, "x is 0" },
        { 2, 16, 32, "y is misaligned: 4 bytes are needed" },
        { 4, 8, 32, "w is misaligned: 16 bytes are needed" },
        { 4, 16, 36, "x is misaligned: 16 bytes are needed" },
    };
    engine_cuda *cuda = *state;
    char why[512];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int told = 0; told < 2; told++) {
            cuda->driver.report = told ? keep : NULL;
            cuda->driver.report_context = why;
            assert_error(INVALID_VALUE, engine_mwv_q4k_gemv_k512_n7_w4_launch(
                                            cuda, STREAM, wrong[i].y, wrong[i].w, wrong[i].x));
            if (!told)
                continue;
            assert_memory_equal(why, "mwv_q4k_gemv_k512_n7_w4: ", 25);
            assert_string_equal(why + 25, wrong[i].why);
        }
    assert_int_equal(thread.launches, 0);
}

TEST_WITH(other_errors_have_a_message, set_up_loaded, NULL)
{
    engine_cuda *cuda = *state;
    char why[512];
    CUdeviceptr y = 4;
    void *arguments[] = { &y };
    const ptxgen_loaded_kernel *loaded = engine_loaded(cuda, &engine_mwv_q4k_gemv_k512_n7_w4);
    cuda->driver.report = keep;
    cuda->driver.report_context = why;
    ptxgen_launch(&cuda->driver, loaded, STREAM, arguments, 1);
    assert_string_equal(why,
                        "mwv_q4k_gemv_k512_n7_w4: wrong number of arguments: it has 3 parameters");
    engine_mwv_q4k_gemv_w4_dynamic_launch(cuda, STREAM, 4, 16, 32, 1000, 9);
    assert_string_equal(
        why,
        "mwv_q4k_gemv_w4_dynamic: k_dim is 1000; use a multiple of 256 from 256 to 2147483647");
    engine_mwv_q4k_gemv_w4_dynamic_launch(cuda, STREAM, 4, 16, 32, 1024, 0);
    assert_string_equal(why, "mwv_q4k_gemv_w4_dynamic: n_dim is 0");
    engine_tiled_q4k_gemv_o4_dynamic_launch(cuda, STREAM, 4, 16, 32, SHARED_BLOCK / 4 + 256, 9);
    assert_string_equal(why, "tiled_q4k_gemv_o4_dynamic: a block cannot have 66560 bytes of "
                             "dynamic shared memory");
}

TEST_WITH(a_node_is_a_launch_with_its_arguments, set_up_loaded, NULL)
{
    ptxgen_node node;
    uint64_t pointers[2];
    uint32_t k;
    assert_success(engine_mwv_q4k_gemv_w4_dynamic_node(*state, &node, 4, 16, 32, 512, 9));
    assert_int_equal(thread.launches, 0);
    assert_ptr_equal(node.params.func,
                     engine_loaded(*state, &engine_mwv_q4k_gemv_w4_dynamic)->function);
    assert_int_equal(node.params.gridDimX, 9);
    assert_int_equal(node.params.gridDimY * node.params.gridDimZ, 1);
    assert_int_equal(node.params.blockDimX, 128);
    assert_null(node.params.extra);
    memcpy(&pointers[0], node.params.kernelParams[0], sizeof pointers[0]);
    memcpy(&pointers[1], node.params.kernelParams[2], sizeof pointers[1]);
    memcpy(&k, node.params.kernelParams[3], sizeof k);
    assert_int_equal(pointers[0], 4);
    assert_int_equal(pointers[1], 32);
    assert_int_equal(k, 512);
    assert_error(INVALID_VALUE,
                 engine_mwv_q4k_gemv_w4_dynamic_node(*state, &node, 4, 16, 32, 511, 9));
}

TEST_WITH(a_kernel_that_is_not_loaded_is_refused, set_up, NULL)
{
    assert_error(INVALID_HANDLE, engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
    assert_int_equal(thread.launches, 0);
}

TEST_WITH(one_kernel_is_loaded_once, set_up, NULL)
{
    assert_success(engine_load(*state, &engine_mwv_q4k_gemv_k512_n7_w4, NULL));
    assert_success(engine_load(*state, &engine_mwv_q4k_gemv_k512_n7_w4, NULL));
    assert_int_equal(fake.loads, 1);
    assert_int_equal(fake.attributes, 0);
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
}

TEST_WITH(above_48_kib_of_shared_memory_is_allowed_while_loading, set_up, NULL)
{
    assert_success(engine_load(*state, &engine_tiled_q4k_gemv_k256_n9_o4, NULL));
    assert_int_equal(fake.attributes, 0);
    assert_success(engine_load(*state, &engine_tiled_q4k_gemv_k14336_n64_o4, NULL));
    assert_int_equal(fake.attributes, 1);
    assert_string_equal(fake.allowed, "tiled_q4k_gemv_k14336_n64_o4");
    assert_int_equal(fake.allowed_shared, 14336 * 4);
    assert_success(engine_load(*state, &engine_tiled_q4k_gemv_o4_dynamic, NULL));
    assert_int_equal(fake.attributes, 2);
    assert_string_equal(fake.allowed, "tiled_q4k_gemv_o4_dynamic");
    assert_int_equal(fake.allowed_shared, SHARED_BLOCK);

    assert_success(engine_tiled_q4k_gemv_k14336_n64_o4_launch(*state, STREAM, 4, 16, 32));
    assert_launched("tiled_q4k_gemv_k14336_n64_o4", 16, 128, 14336 * 4);
    assert_int_equal(fake.attributes, 2);
}

TEST_WITH(shared_memory_that_is_not_granted_leaves_nothing_loaded, set_up, NULL)
{
    fake.set_attribute = CUDA_ERROR_INVALID_VALUE;
    assert_error(INVALID_VALUE, engine_load(*state, &engine_tiled_q4k_gemv_k14336_n64_o4, NULL));
    assert_int_equal(fake.unloads, 1);
    assert_error(INVALID_HANDLE,
                 engine_tiled_q4k_gemv_k14336_n64_o4_launch(*state, STREAM, 4, 16, 32));
}

TEST_WITH(a_jit_failure_names_the_kernel_and_gives_its_log, set_up, NULL)
{
    ptxgen_load_error error;
    fake.wrong_ptx = "mwv_dp4a_q4k_gemv_k256_n5000_w3";
    assert_error(INVALID_PTX, engine_load(*state, &engine_mwv_dp4a_q4k_gemv_k256_n5000_w3, &error));
    assert_ptr_equal(error.kernel, &engine_mwv_dp4a_q4k_gemv_k256_n5000_w3);
    assert_string_equal(error.log, "line 7");
    assert_error(INVALID_PTX, engine_mwv_dp4a_q4k_gemv_k256_n5000_w3_load(*state, NULL));
}

TEST_WITH(a_kernel_whose_ptx_was_changed_is_not_loaded, set_up, NULL)
{
    engine_cuda *cuda = *state;
    ptxgen_load_error error;
    ptxgen_kernel kernel = engine_tiled_q4k_gemv_k256_n9_o4;
    const ptxgen_kernel *kernels[] = { &kernel };
    ptxgen_loaded_kernel loaded = { 0 };
    char text[1 << 16];
    assert_in_range(kernel.ptx_length, 1000, sizeof text - 2);
    for (int more = -1; more <= 1; more++) {
        memset(text, '\n', sizeof text);
        memcpy(text, kernels[0]->ptx, kernel.ptx_length);
        text[100] = (char)(text[100] ^ (more == 0));
        text[kernel.ptx_length + (size_t)more] = '\0';
        ptxgen_kernel changed = kernel;
        const ptxgen_kernel *one = &changed;
        changed.ptx = text;
        assert_error(INVALID_IMAGE,
                     ptxgen_load_in(&cuda->driver, &loaded, &one, 1, &changed, &error));
        assert_non_null(strstr(error.log, "was changed"));
        assert_error(INVALID_IMAGE,
                     ptxgen_load_in(&cuda->driver, &loaded, &one, 1, &changed, NULL));
    }
    assert_int_equal(fake.loads, 0);
    assert_success(ptxgen_load_in(&cuda->driver, &loaded, kernels, 1, &kernel, NULL));
}

TEST_WITH(a_failed_load_all_keeps_only_earlier_kernels, set_up, NULL)
{
    ptxgen_load_error error;
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_load(*state, NULL));
    fake.wrong_ptx = "tiled_q4k_gemv_k256_n9_o4";
    assert_error(INVALID_PTX, engine_load_all(*state, &error));
    assert_ptr_equal(error.kernel, &engine_tiled_q4k_gemv_k256_n9_o4);
    assert_string_equal(error.log, "line 7");
    assert_int_equal(fake.loads, 4); /* the first kernel, two more, then the wrong one */
    assert_int_equal(fake.unloads, 2);
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
    assert_error(INVALID_HANDLE, engine_mwv_dp4a_q4k_gemv_k256_n5000_w3_launch(
                                     *state, STREAM, 0x104, 0x220, 0x334));
    assert_success(engine_unload(*state));
    assert_int_equal(fake.unloads, 3);
}

TEST_WITH(parts_have_each_kernel_once, set_up, NULL)
{
    enum { COUNT = sizeof((engine_cuda *)0)->kernels / sizeof(ptxgen_loaded_kernel) };
    for (size_t parts = 1; parts < COUNT + 3; parts++) {
        fake.loads = 0;
        for (size_t part = 0; part < parts; part++)
            assert_success(engine_load_part(*state, part, parts, NULL));
        assert_int_equal(fake.loads, COUNT);
        assert_success(engine_unload(*state));
        assert_error(INVALID_VALUE, engine_load_part(*state, parts, parts, NULL));
    }
    assert_error(INVALID_VALUE, engine_load_part(*state, 0, 0, NULL));
}

/* Kernels of one name, for several targets, belong to one part: the newest is loaded. */
TEST_WITH(parts_do_not_divide_a_name, set_up, NULL)
{
    ptxgen_kernel older = engine_mwv_q4k_gemv_k512_n7_w4, newer = older;
    const ptxgen_kernel *kernels[] = { &engine_tiled_q4k_gemv_k256_n9_o4, &older, &newer };
    engine_cuda *cuda = *state;
    newer.sm = cuda->driver.sm;
    for (size_t parts = 1; parts < 5; parts++) {
        ptxgen_loaded_kernel loaded[3] = { { 0 } };
        for (size_t part = 0; part < parts; part++)
            assert_success(
                ptxgen_load_part_in(&cuda->driver, loaded, kernels, 3, part, parts, NULL));
        assert_ptr_equal(loaded[0].kernel, kernels[0]);
        assert_ptr_equal(loaded[1].kernel, &newer);
        assert_null(loaded[2].kernel);
    }
}

TEST_WITH(a_failed_part_keeps_the_others, set_up, NULL)
{
    enum { PARTS = 3 };
    ptxgen_load_error error;
    engine_cuda *cuda = *state;
    size_t count = sizeof cuda->kernels / sizeof *cuda->kernels, there = 0;
    fake.wrong_ptx = "tiled_q4k_gemv_k256_n9_o4";
    unsigned failed = 0;
    for (size_t part = 0; part < PARTS; part++)
        failed += engine_load_part(cuda, part, PARTS, &error) != CUDA_SUCCESS;
    assert_int_equal(failed, 1);
    for (size_t i = 0; i < count; i++)
        there += cuda->kernels[i].kernel != NULL;
    assert_in_range(there, count - count / PARTS - 1, count - 1);
}

/* A thread that loads every second part, from `first` on. */
typedef struct loader {
    engine_cuda *cuda;
    size_t first;
    unsigned failed;
} loader;

static void *load_parts(void *context)
{
    enum { PARTS = 6 };
    loader *l = context;
    thread.device = DEVICE;
    for (size_t part = l->first; part < PARTS; part += 2)
        l->failed += engine_load_part(l->cuda, part, PARTS, NULL) != CUDA_SUCCESS;
    return NULL;
}

TEST_WITH(threads_load_different_parts, set_up, NULL)
{
    engine_cuda *cuda = *state;
    loader loaders[2] = { { cuda, 0, 0 }, { cuda, 1, 0 } };
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_parts, &loaders[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(loaders[i].failed, 0);
    }
    for (size_t i = 0; i < sizeof cuda->kernels / sizeof *cuda->kernels; i++)
        assert_non_null(cuda->kernels[i].kernel);
}

TEST_WITH(a_kernel_that_is_named_loads_itself, set_up, NULL)
{
    ptxgen_load_error error;
    assert_success(engine_tiled_q4k_gemv_o4_dynamic_load(*state, &error));
    assert_success(engine_tiled_q4k_gemv_o4_dynamic_load(*state, NULL));
    assert_int_equal(fake.loads, 1);
    assert_success(engine_tiled_q4k_gemv_o4_dynamic_launch(*state, STREAM, 4, 16, 32, 1024, 9));
    assert_launched("tiled_q4k_gemv_o4_dynamic", 3, 128, 4096);
}

TEST_WITH(launching_an_unloaded_kernel_fails_an_assertion, set_up, NULL)
{
    assert_error(INVALID_HANDLE, engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
    assert_int_equal(fake.stops, 1);
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_load(*state, NULL));
    assert_success(engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
    assert_int_equal(fake.stops, 1);
}

TEST_WITH(entry_points_may_be_filled_in_by_hand, set_up, NULL)
{
    engine_cuda *cuda = *state, own = { .driver = { .ctx_get_device = ctx_get_device } };
    assert_error(NOT_FOUND, ptxgen_driver_ask(&own.driver));
    own.driver = cuda->driver;
    own.driver.sm = own.driver.sm_count = 0;
    assert_success(ptxgen_driver_ask(&own.driver));
    assert_int_equal(own.driver.sm, 90);
    assert_int_equal(own.driver.sm_count, SM_COUNT);
}

TEST_WITH(unloading_empties_the_table, set_up_loaded, NULL)
{
    assert_success(engine_unload(*state));
    assert_int_equal(fake.unloads, engine_kernel_count);
    assert_error(INVALID_HANDLE, engine_mwv_q4k_gemv_k512_n7_w4_launch(*state, STREAM, 4, 16, 32));
    assert_success(engine_unload(*state));
    assert_int_equal(fake.unloads, engine_kernel_count);
}

TEST_WITH(a_missing_kernel_is_not_loaded, set_up, NULL)
{
    static const ptxgen_query never = { .op = PTXGEN_GEMV, .k = 999 };
    ptxgen_load_error error;
    assert_error(NOT_FOUND, engine_load(*state, engine_find(&never), &error));
    assert_null(error.kernel);
    assert_string_equal(error.log, "");
    assert_null(engine_loaded(*state, engine_find(&never)));
    assert_error(INVALID_HANDLE,
                 ptxgen_launch(&((engine_cuda *)*state)->driver, NULL, STREAM, NULL, 0));
}

TEST_WITH(a_kernel_that_was_looked_up_is_launched_by_its_descriptor, set_up_loaded, NULL)
{
    engine_cuda *cuda = *state;
    static const ptxgen_query query = {
        .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 512, .n = 7, .family = "mwv_q4k_gemv"
    };
    CUdeviceptr y = 4, w = 16, x = 32;
    const ptxgen_loaded_kernel *loaded = engine_loaded(cuda, engine_find(&query));
    assert_success(ptxgen_launch(&cuda->driver, loaded, STREAM, (void *[]){ &y, &w, &x }, 3));
    assert_launched("mwv_q4k_gemv_k512_n7_w4", 7, 128, 0);
    assert_arguments(0, 4, 16, 32, 0, 0);
    for (size_t count = 0; count < 5; count += 2)
        assert_error(INVALID_VALUE, ptxgen_launch(&cuda->driver, loaded, STREAM,
                                                  (void *[]){ &y, &w, &x, &x }, count));
    assert_int_equal(thread.launches, 1);
}

TEST_WITH(of_several_targets_the_newest_that_the_device_runs_is_loaded, set_up, NULL)
{
    ptxgen_kernel turing = engine_mwv_q4k_gemv_k512_n7_w4, hopper = turing, blackwell = turing;
    const ptxgen_kernel *kernels[] = { &turing, &hopper, &blackwell };
    ptxgen_loaded_kernel loaded[3] = { { 0 } };
    engine_cuda *cuda = *state;
    hopper.sm = 90, blackwell.sm = 100;
    assert_success(ptxgen_load_in(&cuda->driver, loaded, kernels, 3, &blackwell, NULL));
    assert_ptr_equal(loaded[0].kernel, &hopper);

    memset(loaded, 0, sizeof loaded);
    cuda->driver.sm = 70;
    assert_error(NO_BINARY_FOR_GPU,
                 ptxgen_load_in(&cuda->driver, loaded, kernels, 3, &turing, NULL));
    assert_null(loaded[0].kernel);
}

TEST_WITH(load_all_skips_kernels_for_newer_devices, set_up, NULL)
{
    ptxgen_kernel newer = engine_tiled_q4k_gemv_k256_n9_o4;
    const ptxgen_kernel *kernels[] = { &newer, &engine_mwv_q4k_gemv_k512_n7_w4 };
    ptxgen_loaded_kernel loaded[2] = { { 0 } };
    engine_cuda *cuda = *state;
    newer.sm = 100;
    assert_success(ptxgen_load_all_in(&cuda->driver, loaded, kernels, 2, NULL));
    assert_null(loaded[0].kernel);
    assert_ptr_equal(loaded[1].kernel, &engine_mwv_q4k_gemv_k512_n7_w4);
}

TEST_WITH(a_driver_without_an_entry_point_is_not_used, set_up, NULL)
{
    static const char *const names[] = { "cuCtxGetDevice",     "cuDeviceGetAttribute",
                                         "cuModuleLoadDataEx", "cuModuleGetFunction",
                                         "cuModuleUnload",     "cuFuncSetAttribute",
                                         "cuLaunchKernel" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fake.missing = names[i];
        assert_error(NOT_FOUND, init(*state));
        assert_error(NOT_INITIALIZED, engine_load_all(*state, NULL));
        assert_error(NOT_INITIALIZED, engine_load(*state, &engine_mwv_q4k_gemv_k512_n7_w4, NULL));
    }
    fake.missing = NULL;
    fake.context = CUDA_ERROR_INVALID_CONTEXT;
    assert_error(INVALID_CONTEXT, init(*state));
    assert_error(NOT_INITIALIZED, engine_load_all(*state, NULL));
}
