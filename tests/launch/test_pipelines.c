/* Pipelines and threads through a generated header. */
#include "fake_driver.h"

#include <pthread.h>
#include <stdlib.h>

enum { Q = 0x1000, K = 0x2000, V = 0x3000, WQ = 0x4000, WK = 0x5000, WV = 0x6000, X = 0x7000 };
enum { WORKSPACE = 0x8000, QKV_STEPS = 3 };

static void keep(void *context, const char *why)
{
    strcpy(context, why);
}

static CUresult launch_qkv(const engine_cuda *cuda, CUdeviceptr workspace)
{
    return engine_qkv_k512_n256_kv64_launch(cuda, STREAM, Q, K, V, WQ, WK, WV, X, workspace,
                                            ENGINE_QKV_K512_N256_KV64_WORKSPACE);
}

static void assert_qkv_launched(void)
{
    assert_int_equal(thread.launches, QKV_STEPS);
    assert_launch(0, "q8_1_quantize_k512_m1_w4", 4, 128, 0);
    assert_arguments(0, WORKSPACE, X, 0, 0, 0);
    assert_launch(1, "hw_dp4a_q4k_gemv_k512_n256_w4", 256, 128, 0);
    assert_arguments(1, Q, WQ, WORKSPACE, 0, 0);
    assert_launch(2, "fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4", 64, 128, 0);
    assert_arguments(2, K, V, WK, WV, WORKSPACE);
}

TEST_WITH(a_pipeline_loads_its_own_kernels, set_up, NULL)
{
    assert_success(engine_qkv_k512_n256_kv64_load(*state, NULL));
    assert_int_equal(fake.loads, QKV_STEPS);
    assert_success(launch_qkv(*state, WORKSPACE));
    assert_qkv_launched();
}

TEST_WITH(one_call_launches_all_steps_in_order_with_their_buffers, set_up_loaded, NULL)
{
    assert_success(launch_qkv(*state, WORKSPACE));
    assert_qkv_launched();
}

TEST_WITH(a_pipeline_that_was_looked_up_is_launched_by_its_descriptor, set_up_loaded, NULL)
{
    static const ptxgen_query query = { .family = "qkv", .k = 512, .n = 256, .n_kv = 64 };
    static const ptxgen_query wrong[] = { { .family = "qkv", .k = 512, .n = 256, .n_kv = 65 },
                                          { .family = "qkv", .k = 256 },
                                          { .family = "dp4a", .k = 512 } };
    CUdeviceptr buffers[] = { Q, K, V, WQ, WK, WV, X };
    const ptxgen_pipeline *pipeline = engine_find_pipeline(&query);
    void *arguments[sizeof buffers / sizeof *buffers];
    assert_ptr_equal(pipeline, &engine_qkv_k512_n256_kv64);
    assert_int_equal(pipeline->buffer_count, sizeof buffers / sizeof *buffers);
    for (size_t i = 0; i < pipeline->buffer_count; i++)
        arguments[i] = &buffers[i];
    assert_success(engine_launch_pipeline(*state, pipeline, STREAM, arguments, 7, WORKSPACE,
                                          pipeline->workspace));
    assert_qkv_launched();
    assert_error(INVALID_VALUE, engine_launch_pipeline(*state, pipeline, STREAM, arguments, 6,
                                                       WORKSPACE, pipeline->workspace));
    assert_qkv_launched();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(engine_find_pipeline(&wrong[i]));
}

TEST_WITH(the_size_of_the_workspace_is_a_constant, set_up, NULL)
{
    static char bytes[ENGINE_QKV_K512_N256_KV64_WORKSPACE];
    assert_int_equal(sizeof bytes, 512 / 32 * 36);
    assert_int_equal(engine_qkv_k512_n256_kv64.workspace, sizeof bytes);
}

TEST_WITH(a_pipeline_is_refused_before_its_first_launch, set_up_loaded, NULL)
{
    engine_cuda *cuda = *state;
    char why[512];
    cuda->driver.report = keep;
    cuda->driver.report_context = why;
    assert_error(INVALID_VALUE, launch_qkv(cuda, 0));
    assert_string_equal(why, "qkv_k512_n256_kv64: workspace is 0");
    assert_error(INVALID_VALUE, launch_qkv(cuda, WORKSPACE + 8));
    assert_string_equal(why, "qkv_k512_n256_kv64: workspace is misaligned: 16 bytes are needed");
    assert_error(INVALID_VALUE, engine_qkv_k512_n256_kv64_launch(cuda, STREAM, Q, K, V, WQ, WK, WV,
                                                                 X, WORKSPACE, 575));
    assert_string_equal(why,
                        "qkv_k512_n256_kv64: the workspace is too small: 576 bytes are needed");
    assert_error(INVALID_VALUE, engine_qkv_k512_n256_kv64_launch(cuda, STREAM, Q, K, V, WQ, WK, 0,
                                                                 X, WORKSPACE, 576));
    assert_string_equal(why, "qkv_k512_n256_kv64: wv is 0");
    assert_error(INVALID_VALUE, engine_qkv_k512_n256_kv64_launch(cuda, STREAM, Q, K, V, WQ, WK,
                                                                 WV + 8, X, WORKSPACE, 576));
    assert_string_equal(why, "qkv_k512_n256_kv64: wv is misaligned: 16 bytes are needed");
    engine_loaded(cuda, &engine_fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4);
    cuda->kernels[engine_qkv_k512_n256_kv64.steps[2].place].kernel = NULL;
    assert_error(INVALID_HANDLE, launch_qkv(cuda, WORKSPACE));
    assert_int_equal(thread.launches, 0);
    assert_int_equal(fake.stops, 1);
}

/* Nodes must keep copies of all arguments: they are launched after the caller's are gone. */
TEST_WITH(the_nodes_of_a_pipeline_hold_the_arguments_of_a_launch, set_up_loaded, NULL)
{
    ptxgen_node nodes[QKV_STEPS];
    ptxgen_driver *d = &((engine_cuda *)*state)->driver;
    assert_success(
        engine_qkv_k512_n256_kv64_node(*state, nodes, Q, K, V, WQ, WK, WV, X, WORKSPACE, 576));
    assert_int_equal(thread.launches, 0);
    for (int i = 0; i < QKV_STEPS; i++) {
        const ptxgen_node_params *p = &nodes[i].params;
        assert_success(d->launch_kernel(p->func, p->gridDimX, p->gridDimY, p->gridDimZ,
                                        p->blockDimX, p->blockDimY, p->blockDimZ, p->sharedMemBytes,
                                        STREAM, p->kernelParams, p->extra));
    }
    assert_qkv_launched();
    assert_error(INVALID_VALUE, engine_qkv_k512_n256_kv64_node(*state, nodes, Q, K, V, WQ, 0, WV, X,
                                                               WORKSPACE, 576));
}

TEST_WITH(a_pipeline_stops_at_the_step_that_fails, set_up_loaded, NULL)
{
    fake.failing_launch = 2;
    assert_error(INVALID_CONTEXT, launch_qkv(*state, WORKSPACE));
    assert_int_equal(thread.launches, 2);
}

/* Only cuLaunchKernel may be called, since a capturing stream allows nothing else. */
TEST_WITH(launching_calls_only_the_launch_function, set_up_loaded, NULL)
{
    engine_cuda *cuda = *state;
    ptxgen_driver *d = &cuda->driver;
    d->ctx_get_device = NULL;
    d->device_get_attribute = NULL;
    d->module_load_data_ex = NULL;
    d->module_get_function = NULL;
    d->module_unload = NULL;
    d->func_set_attribute = NULL;
    assert_success(launch_qkv(cuda, WORKSPACE));
    assert_qkv_launched();
}

enum { THREADS = 4, ROUNDS = 1000 };

/* A thread with its device and its number of wrong launches. */
typedef struct user {
    const engine_cuda *cuda;
    CUdevice device;
    unsigned wrong;
} user;

static void *launch_often(void *argument)
{
    user *u = argument;
    thread.device = u->device;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        const launched *l = &thread.list[0];
        CUdeviceptr y = 4 * (CUdeviceptr)i;
        thread.launches = 0;
        if (engine_mwv_dp4a_q4k_gemv_k256_n5000_w3_launch(u->cuda, STREAM, y, 16, 32) !=
                CUDA_SUCCESS ||
            thread.launches != 1 || l->grid[0] != (unsigned)sm_count(u->device) * 16 ||
            l->arguments[0] != y)
            u->wrong++;
    }
    return NULL;
}

TEST_WITH(threads_launch_at_once_on_two_devices, set_up_loaded, NULL)
{
    static engine_cuda other;
    user users[THREADS];
    pthread_t threads[THREADS];
    thread.device = DEVICE + 1;
    assert_success(init(&other));
    assert_success(engine_mwv_dp4a_q4k_gemv_k256_n5000_w3_load(&other, NULL));
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){ .cuda = i % 2 ? &other : *state, .device = DEVICE + i % 2 };
        if (pthread_create(&threads[i], NULL, launch_often, &users[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].wrong, 0);
    }
}
