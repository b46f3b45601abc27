/* Devices, contexts, memory, modules and launches of the emulated driver, and the error codes for
 * wrong calls. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

#include <threads.h>

TEST(calls_before_cuInit_are_refused)
{
    int count;
    assert_error(NOT_INITIALIZED, cuDeviceGetCount(&count));
    assert_error(NOT_INITIALIZED, cuCtxSynchronize());
    assert_error(NOT_INITIALIZED, cuMemcpy2D_v2(NULL));
}

TEST(an_unknown_target_gives_no_device)
{
    setenv("PTXGEN_CUDA_TARGET", "sm_1", 1);
    assert_error(NO_DEVICE, cuInit(0));
    unsetenv("PTXGEN_CUDA_TARGET");
    assert_success(cuInit(0));
}

TEST(calls_without_a_context_are_refused)
{
    CUdeviceptr p;
    assert_error(INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
    assert_error(INVALID_CONTEXT, cuGraphAddHostNode(NULL, NULL, NULL, 0, NULL));
}

static int attribute(CUdevice_attribute which)
{
    int value = -1;
    assert_success(cuDeviceGetAttribute(&value, which, 0));
    return value;
}

TEST(the_device_has_a_name_and_attributes)
{
    char name[64];
    CUdevice device;
    size_t bytes;
    assert_success(cuDeviceGet(&device, 0));
    assert_error(INVALID_DEVICE, cuDeviceGet(&device, 1));
    assert_success(cuDeviceGetName(name, sizeof name, device));
    assert_string_equal(name, "ptxgen emulator (sm_90)");
    assert_success(cuDeviceTotalMem_v2(&bytes, device));
    assert_true(bytes >= (size_t)1 << 33);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 227 * 1024);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 2048);
}

TEST(the_device_is_found_by_its_bus)
{
    char id[20];
    CUdevice device = 7;
    CUdevprop properties;
    assert_success(cuDeviceGetPCIBusId(id, sizeof id, 0));
    assert_success(cuDeviceGetByPCIBusId(&device, id));
    assert_int_equal(device, 0);
    assert_success(cuDeviceGetByPCIBusId(&device, "00:00.0"));
    assert_error(INVALID_DEVICE, cuDeviceGetByPCIBusId(&device, "0000:01:00.0"));
    assert_error(INVALID_VALUE, cuDeviceGetByPCIBusId(&device, "first"));
    assert_success(cuDeviceGetProperties(&properties, 0));
    assert_int_equal(properties.maxThreadsDim[2], 64);
    assert_int_equal(properties.sharedMemPerBlock,
                     attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
}

TEST(errors_have_names_and_descriptions)
{
    const char *text;
    assert_success(cuGetErrorName(CUDA_ERROR_MISALIGNED_ADDRESS, &text));
    assert_string_equal(text, "CUDA_ERROR_MISALIGNED_ADDRESS");
    assert_success(cuGetErrorString(CUDA_ERROR_MISALIGNED_ADDRESS, &text));
    assert_string_equal(text, "misaligned address");
    assert_error(INVALID_VALUE, cuGetErrorName(12345, &text));
    assert_null(text);
}

TEST(entry_points_are_found_by_version)
{
    union {
        void *address;
        CUresult (*create)(CUcontext *, unsigned, CUdevice);
    } found;
    CUdriverProcAddressQueryResult status;
    assert_success(cuGetProcAddress_v2("cuCtxCreate", &found.address, 11000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_true(found.create == cuCtxCreate_v2);
    assert_success(cuGetProcAddress_v2("cuLaunchKernelEx", &found.address, 11000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_null(found.address);
    assert_success(cuGetProcAddress_v2("cuNothing", &found.address, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_IN_CONTEXT(destroying_a_context_destroys_its_objects)
{
    CUcontext inner, popped;
    assert_success(cuCtxCreate_v4(&inner, NULL, 0, 0));
    CUdeviceptr p = allocated(16);
    CUevent event = new_event(0);
    assert_success(cuCtxPopCurrent_v2(&popped));
    assert_ptr_equal(popped, inner);
    assert_success(cuCtxGetCurrent(&popped));
    assert_ptr_equal(popped, context);
    assert_success(cuCtxDestroy_v2(inner));
    assert_error(INVALID_HANDLE, cuEventQuery(event));
    assert_error(INVALID_VALUE, cuMemsetD8_v2(p, 0, 16));
    assert_error(INVALID_CONTEXT, cuCtxSetCurrent(inner));
}

TEST_IN_CONTEXT(the_stack_of_contexts_is_limited)
{
    enum { MORE_THAN_FIT = 40 };
    CUcontext made[MORE_THAN_FIT];
    CUresult r = CUDA_SUCCESS;
    size_t count = 0;
    for (; !r; count += !r)
        r = cuCtxCreate_v2(&made[count], 0, 0);
    assert_error(ILLEGAL_STATE, r);
    assert_true(count > 20);
    while (count)
        assert_success(cuCtxDestroy_v2(made[--count]));
    assert_success(cuCtxSynchronize());
}

TEST_IN_CONTEXT(contexts_keep_their_settings)
{
    CUcontext inner, attached;
    size_t value, before;
    CUfunc_cache cache;
    CUsharedconfig shared;
    unsigned flags;
    unsigned long long id, inner_id;
    assert_success(cuCtxGetLimit(&before, CU_LIMIT_STACK_SIZE));
    assert_success(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_success(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 4096);
    assert_error(UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1, 0));
    assert_success(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
    assert_success(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_EQUAL);
    assert_error(INVALID_VALUE, cuCtxSetCacheConfig(4));
    assert_success(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    assert_success(cuCtxGetSharedMemConfig(&shared));
    assert_int_equal(shared, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    assert_success(cuCtxSetFlags(4));
    assert_success(cuCtxGetFlags(&flags));
    assert_int_equal(flags, 4);
    assert_success(cuCtxGetId(NULL, &id));

    assert_success(cuCtxCreate_v2(&inner, 0, 0));
    assert_success(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, before);
    assert_success(cuCtxGetId(inner, &inner_id));
    assert_true(inner_id != id);
    assert_success(cuCtxAttach(&attached, 0));
    assert_ptr_equal(attached, inner);
    assert_success(cuCtxDetach(inner));
    assert_success(cuCtxSynchronize());
    assert_success(cuCtxDetach(inner));
    assert_error(INVALID_CONTEXT, cuCtxDetach(inner));
    assert_error(INVALID_CONTEXT, cuCtxEnablePeerAccess(inner, 0));
    assert_error(PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(context, 0));
}

TEST_IN_CONTEXT(the_primary_context_lives_while_it_is_retained)
{
    CUcontext primary, again;
    unsigned flags;
    int active;
    assert_success(cuDevicePrimaryCtxRetain(&primary, 0));
    assert_success(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(primary, again);
    assert_success(cuDevicePrimaryCtxRelease_v2(0));
    assert_success(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_true(active);
    assert_success(cuCtxPushCurrent_v2(primary));
    assert_success(cuCtxSynchronize());
    assert_success(cuDevicePrimaryCtxRelease_v2(0));
    assert_error(CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    assert_success(cuCtxPopCurrent_v2(NULL));
    assert_error(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

TEST_IN_CONTEXT(memory_is_freed_once_and_counted)
{
    CUdeviceptr p, base;
    size_t before, total, size;
    assert_success(cuMemGetInfo_v2(&before, &total));
    assert_success(cuMemAlloc_v2(&p, 1000));
    assert_int_equal(before - available(), 1000);
    assert_success(cuMemGetAddressRange_v2(&base, &size, p + 999));
    assert_true(base == p && size == 1000);
    assert_error(INVALID_VALUE, cuMemFree_v2(p + 4));
    assert_success(cuMemFree_v2(p));
    assert_error(INVALID_VALUE, cuMemFree_v2(p));
    assert_success(cuMemFree_v2(0));
    assert_error(INVALID_VALUE, cuMemAlloc_v2(&p, 0));
    assert_error(OUT_OF_MEMORY, cuMemAlloc_v2(&p, total + 1));
}

TEST_IN_CONTEXT(copies_out_of_bounds_are_refused)
{
    unsigned char bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    CUdeviceptr p = allocated(8), q = allocated(8);
    assert_success(cuMemcpyHtoD_v2(p, bytes, 8));
    assert_success(cuMemcpyDtoD_v2(q, p + 2, 6));
    assert_success(cuMemcpyDtoH_v2(bytes, q, 6));
    assert_memory_equal(bytes, "\3\4\5\6\7\10\7\10", 8);
    assert_success(cuMemcpy((CUdeviceptr)(uintptr_t)bytes, p, 8));
    assert_memory_equal(bytes, "\1\2\3\4\5\6\7\10", 8);
    assert_error(INVALID_VALUE, cuMemcpyHtoD_v2(p + 1, bytes, 8));
    assert_error(INVALID_VALUE, cuMemcpyDtoH_v2(bytes, p + 1, 8));
    assert_error(INVALID_VALUE, cuMemcpyDtoD_v2(q, p, 9));
    assert_error(INVALID_VALUE, cuMemcpy(p, (CUdeviceptr)-8, 8));
}

TEST_IN_CONTEXT(a_rectangle_is_copied)
{
    unsigned char from[4][8], to[2][4];
    CUdeviceptr p;
    size_t pitch;
    for (int i = 0; i < 32; i++)
        from[i / 8][i % 8] = (unsigned char)i;
    assert_success(cuMemAllocPitch_v2(&p, &pitch, 8, 4, 4));
    assert_true(pitch >= 8 && pitch % 256 == 0);
    CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = 8,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = p,
                           .dstPitch = pitch,
                           .WidthInBytes = 8,
                           .Height = 4 };
    assert_success(cuMemcpy2D_v2(&copy));
    copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = p,
                            .srcPitch = pitch,
                            .srcXInBytes = 2,
                            .srcY = 1,
                            .dstMemoryType = CU_MEMORYTYPE_HOST,
                            .dstHost = to,
                            .dstPitch = 4,
                            .WidthInBytes = 3,
                            .Height = 2 };
    memset(to, 0, sizeof to);
    assert_success(cuMemcpy2D_v2(&copy));
    assert_memory_equal(to, "\12\13\14\0\22\23\24\0", 8);
    copy.dstPitch = 2;
    assert_error(INVALID_VALUE, cuMemcpy2D_v2(&copy));
}

TEST_IN_CONTEXT(a_rectangle_is_set)
{
    CUdeviceptr p = zeros();
    assert_success(cuMemsetD2D8_v2(p, 8, 0xab, 4, 2));
    assert_success(cuMemsetD2D16_v2(p + 16, 8, 0x1234, 2, 2));
    assert_success(cuMemsetD2D32Async(p + 32, 8, 0xcafef00d, 1, 2, NULL));
    for (size_t i = 0; i < 4; i += 2) {
        assert_int_equal(number(p, i), 0xabababab);
        assert_int_equal(number(p, 4 + i), 0x12341234);
        assert_int_equal(number(p, 8 + i), 0xcafef00d);
        assert_int_equal(number(p, 1 + i) + number(p, 5 + i) + number(p, 9 + i), 0);
    }
    assert_error(INVALID_VALUE, cuMemsetD2D32_v2(p, 4, 0, 2, 2));
    assert_success(cuMemcpyPeer(p, context, p + 32, context, 4));
    assert_int_equal(number(p, 0), 0xcafef00d);
}

TEST_IN_CONTEXT(sets_write_elements_of_their_size)
{
    CUdeviceptr p = zeros();
    assert_success(cuMemsetD8_v2(p, 0xab, 4));
    assert_success(cuMemsetD16_v2(p + 4, 0x1234, 2));
    assert_success(cuMemsetD32_v2(p + 8, 0xcafef00d, 1));
    assert_int_equal(number(p, 0), 0xabababab);
    assert_int_equal(number(p, 1), 0x12341234);
    assert_int_equal(number(p, 2), 0xcafef00d);
    assert_int_equal(number(p, 3), 0);
    assert_error(INVALID_VALUE, cuMemsetD32_v2(p + 2, 0, 1));
    assert_error(INVALID_VALUE, cuMemsetD32_v2(p, 0, NUMBERS + 1));
}

TEST_IN_CONTEXT(kernels_reach_host_memory_by_its_device_address)
{
    uint32_t *host;
    CUdeviceptr p;
    unsigned type;
    assert_success(cuMemHostAlloc((void **)&host, NUMBERS * sizeof *host, 0));
    assert_success(cuMemHostGetDevicePointer_v2(&p, host, 0));
    assert_success(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    host[31] = 1;
    assert_success(add(load(ADD, "add"), NULL, p, 41));
    assert_int_equal(host[31], 42);
    assert_success(cuMemFreeHost(host));
    assert_error(INVALID_VALUE, cuMemFreeHost(host));
}

TEST_IN_CONTEXT(wrong_ptx_is_refused_with_its_line)
{
    static const char wrong[] =
        PTX_HEAD ".visible .entry f()\n{\n    add.u32 %frobnicate, 1, 1;\n}\n";
    char log[200] = "";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    CUmodule module;
    assert_error(INVALID_PTX, cuModuleLoadDataEx(&module, wrong, 2, options, values));
    assert_non_null(strstr(log, "line 6"));
    assert_non_null(strstr(log, "frobnicate"));
    assert_int_equal((uintptr_t)values[1], strlen(log) + 1);
}

TEST_IN_CONTEXT(unknown_instructions_and_functions_are_in_the_log)
{
    static const char text[] =
        PTX_HEAD ".visible .entry f()\n{\n    tcgen05.fence::before_thread_sync;\n}\n"
                 ".visible .entry g()\n{\n    call nobody;\n}\n"
                 ".visible .entry h()\n{\n    ret;\n}\n";
    char log[200] = "";
    CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    CUmodule module;
    CUfunction f, h;
    assert_success(cuModuleLoadDataEx(&module, text, 2, options, values));
    assert_string_equal(log, "line 6: unknown instruction 'tcgen05.fence::before_thread_sync'\n"
                             "line 10: the function 'nobody' has no body in this module\n");
    assert_success(cuModuleGetFunction(&h, module, "h"));
    assert_success(cuModuleGetFunction(&f, module, "f"));
    assert_success(launch(h, 1, 1, NULL));
    assert_success(cuCtxSynchronize());
    launch(f, 1, 1, NULL);
    assert_error(ILLEGAL_INSTRUCTION, cuCtxSynchronize());
}

TEST_IN_CONTEXT(ptx_for_newer_devices_is_refused)
{
    CUmodule module;
    assert_error(INVALID_PTX,
                 cuModuleLoadData(&module, ".version 8.7\n.target sm_120\n.address_size 64\n"));
    assert_error(UNSUPPORTED_PTX_VERSION,
                 cuModuleLoadData(&module, ".version 9.9\n.target sm_80\n.address_size 64\n"));
    assert_error(NO_BINARY_FOR_GPU, cuModuleLoadData(&module, "\177ELF"));
    assert_error(FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere/at/all.ptx"));
}

TEST_IN_CONTEXT(modules_have_functions_and_variables)
{
    static const char text[] = PTX_HEAD ".visible .global .align 4 .u32 table[3] = {7, 8, 9};\n"
                                        ".visible .entry f()\n{\n    ret;\n}\n";
    CUmodule module;
    CUfunction f, again;
    CUdeviceptr p;
    size_t size;
    assert_success(cuModuleLoadData(&module, text));
    assert_success(cuModuleGetFunction(&f, module, "f"));
    assert_success(cuModuleGetFunction(&again, module, "f"));
    assert_ptr_equal(f, again);
    assert_error(NOT_FOUND, cuModuleGetFunction(&again, module, "g"));
    assert_success(cuModuleGetGlobal_v2(&p, &size, module, "table"));
    assert_int_equal(size, 12);
    assert_int_equal(number(p, 2), 9);
    assert_error(NOT_FOUND, cuModuleGetGlobal_v2(&p, &size, module, "chair"));
    assert_success(cuModuleUnload(module));
    assert_error(INVALID_HANDLE, cuModuleUnload(module));
    assert_error(INVALID_HANDLE, launch(f, 1, 1, NULL));
}

TEST_IN_CONTEXT(functions_have_attributes)
{
    CUfunction f = load(ADD, "add");
    size_t offset, size;
    int value;
    assert_int_equal(function_attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 32);
    assert_int_equal(function_attribute(f, CU_FUNC_ATTRIBUTE_PTX_VERSION), 75);
    assert_int_equal(function_attribute(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
    assert_success(cuFuncGetParamInfo(f, 1, &offset, &size));
    assert_true(offset == 8 && size == 4);
    assert_error(INVALID_VALUE, cuFuncGetParamInfo(f, 2, &offset, &size));
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 32, 0));
    assert_int_equal(value, 32);
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, f, 64, 0));
    assert_int_equal(value, 0);
}

static size_t four_bytes_a_thread(int threads)
{
    return 4 * (size_t)threads;
}

TEST_IN_CONTEXT(the_best_block_fills_an_sm)
{
    static const char free_block[] = PTX_HEAD ".visible .entry f()\n{\n    ret;\n}\n";
    CUfunction f = load(free_block, "f");
    int grid, block, blocks, sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    assert_success(
        cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, four_bytes_a_thread, 0, 0, 0));
    assert_true(block >= 32 && block <= 1024);
    assert_success(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, f, block, four_bytes_a_thread(block), 0));
    assert_int_equal(blocks * block, 2048);
    assert_int_equal(grid, blocks * sms);
    assert_success(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 100));
    assert_true(block <= 100);
}

TEST_IN_CONTEXT(launches_of_a_wrong_shape_are_refused)
{
    CUfunction f = load(ADD, "add");
    CUdeviceptr p = zeros();
    uint32_t value = 1;
    void *params[] = { &p, &value };
    assert_error(INVALID_VALUE, launch(f, 1, 64, params));
    assert_error(INVALID_VALUE, cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    assert_error(INVALID_VALUE, cuLaunchKernel(f, 1, 70000, 1, 32, 1, 1, 0, NULL, params, NULL));
    assert_error(INVALID_VALUE, launch(f, 1, 32, NULL));
    assert_int_equal(number(p, 0), 0);
    assert_success(cuCtxSynchronize());
}

TEST_IN_CONTEXT(shared_memory_above_48_kib_must_be_requested)
{
    CUfunction f = load(ADD, "add");
    CUdeviceptr p = zeros();
    uint32_t value = 1;
    void *params[] = { &p, &value };
    assert_error(INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 50000, NULL, params, NULL));
    assert_error(
        INVALID_VALUE,
        cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 * 1024));
    assert_success(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    assert_success(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 50000, NULL, params, NULL));
    assert_int_equal(number(p, 31), 1);
}

TEST_IN_CONTEXT(parameters_may_come_in_one_buffer)
{
    struct {
        CUdeviceptr p;
        uint32_t value;
    } params = { zeros(), 5 };
    size_t size = 12;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    CUfunction f = load(ADD, "add");
    assert_success(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    assert_int_equal(number(params.p, 7), 5);
    size = 8;
    assert_error(INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
}

TEST_IN_CONTEXT(a_fault_stays_until_its_context_is_destroyed)
{
    CUfunction f = load(ADD, "add");
    CUdeviceptr p = zeros();
    CUcontext other;
    assert_error(ILLEGAL_ADDRESS, add(f, NULL, p + 4, 1));
    assert_error(ILLEGAL_ADDRESS, add(f, NULL, p, 1));
    assert_error(ILLEGAL_ADDRESS, cuCtxSynchronize());
    assert_error(ILLEGAL_ADDRESS, cuMemFree_v2(p));
    assert_success(cuCtxCreate_v4(&other, NULL, 0, 0));
    assert_success(add(load(ADD, "add"), NULL, zeros(), 1));
    assert_success(cuCtxDestroy_v2(other));
}

TEST_IN_CONTEXT(a_misaligned_access_has_its_own_code)
{
    assert_error(MISALIGNED_ADDRESS, add(load(ADD, "add"), NULL, zeros() + 2, 1));
}

TEST_IN_CONTEXT(a_read_of_uninitialized_memory_fails)
{
    CUdeviceptr p = allocated(NUMBERS * sizeof(uint32_t));
    assert_error(LAUNCH_FAILED, add(load(ADD, "add"), NULL, p, 1));
}

enum { ADDITIONS = 50, THREADS = 4 };

typedef struct adder {
    CUfunction add;
    CUdeviceptr shared; /* used by all threads */
    bool failed;
} adder;

/* Adds to its own numbers and to shared ones. Other threads must not affect the own numbers. */
static int add_many_times(void *data)
{
    adder *a = data;
    CUdeviceptr own;
    uint32_t value = 0;
    CUresult r = cuCtxSetCurrent(context);
    r = r ? r : cuMemAlloc_v2(&own, NUMBERS * sizeof value);
    r = r ? r : cuMemsetD32_v2(own, 0, NUMBERS);
    for (int i = 0; !r && i < ADDITIONS; i++)
        r = add(a->add, NULL, own, 1) | add(a->add, NULL, a->shared, 1);
    r = r ? r : cuMemcpyDtoH_v2(&value, own, sizeof value);
    a->failed = r || value != ADDITIONS || cuMemFree_v2(own);
    return 0;
}

/* Creates, uses and destroys most kinds of objects. Other threads do the same with theirs. */
static CUresult make_use_and_destroy(adder *a)
{
    CUmodule module;
    CUfunction own;
    CUlibrary library;
    CUstream stream;
    CUgraph graph, copy;
    CUgraphExec exec;
    CUdeviceptr managed, pooled;
    CUresult r = cuModuleLoadData(&module, ADD);
    r = r ? r : cuModuleGetFunction(&own, module, "add");
    r = r ? r : cuLibraryLoadData(&library, ADD, NULL, NULL, 0, NULL, NULL, 0);
    r = r ? r : cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    r = r ? r : cuMemAllocManaged(&managed, NUMBERS * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL);
    r = r ? r : cuMemAllocAsync(&pooled, NUMBERS * sizeof(uint32_t), stream);
    r = r ? r : cuMemsetD32Async(pooled, 1, NUMBERS, stream);
    r = r ? r : cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    r = r ? r : add(own, stream, managed, 1) | add(a->add, stream, pooled, 1);
    r = r ? r : cuStreamEndCapture(stream, &graph);
    r = r ? r : cuGraphClone(&copy, graph) | cuGraphDestroy(graph);
    r = r ? r : cuGraphInstantiateWithFlags(&exec, copy, 0) | cuGraphDestroy(copy);
    r = r ? r : cuGraphLaunch(exec, stream) | cuStreamSynchronize(stream);
    if (!r && *(uint32_t *)(uintptr_t)managed != 1)
        return CUDA_ERROR_UNKNOWN;
    r = r ? r : cuGraphExecDestroy(exec) | cuMemFreeAsync(pooled, stream) | cuMemFree_v2(managed);
    return r ? r : cuStreamDestroy_v2(stream) | cuLibraryUnload(library) | cuModuleUnload(module);
}

static int make_and_destroy(void *data)
{
    adder *a = data;
    CUresult r = cuCtxSetCurrent(context);
    for (int i = 0; !r && i < ADDITIONS; i++)
        r = make_use_and_destroy(a);
    a->failed = r;
    return 0;
}

static void run_threads(int (*work)(void *data), CUdeviceptr shared)
{
    thrd_t threads[THREADS];
    adder adders[THREADS];
    CUfunction f = load(ADD, "add");
    for (int i = 0; i < THREADS; i++) {
        adders[i] = (adder){ f, shared, true };
        assert_int_equal(thrd_create(&threads[i], work, &adders[i]), thrd_success);
    }
    for (int i = 0; i < THREADS; i++) {
        thrd_join(threads[i], NULL);
        assert_false(adders[i].failed);
    }
}

TEST_IN_CONTEXT(threads_may_create_and_destroy_objects_concurrently)
{
    run_threads(make_and_destroy, 0);
}

TEST_IN_CONTEXT(threads_may_launch_concurrently)
{
    CUdeviceptr shared = zeros();
    run_threads(add_many_times, shared);
    assert_int_equal(number(shared, 0), THREADS * ADDITIONS);
}

/* sum(p, n) calls a function that recurses n times. */
static const char SUM[] = PTX_HEAD ".func (.param .b32 r) sum_up(.param .b32 n)\n"
                                   "{\n"
                                   "    .reg .pred %p; .reg .b32 %r<4>;\n"
                                   "    ld.param.u32 %r1, [n];\n"
                                   "    mov.b32 %r2, 0;\n"
                                   "    setp.eq.u32 %p, %r1, 0;\n"
                                   "    @%p bra $done;\n"
                                   "    sub.u32 %r3, %r1, 1;\n"
                                   "    { .param .b32 less, sum;\n"
                                   "      st.param.b32 [less], %r3;\n"
                                   "      call.uni (sum), sum_up, (less);\n"
                                   "      ld.param.b32 %r2, [sum]; }\n"
                                   "    add.u32 %r2, %r2, %r1;\n"
                                   "$done:\n"
                                   "    st.param.b32 [r], %r2;\n"
                                   "    ret;\n"
                                   "}\n"
                                   ".visible .entry sum(.param .u64 p, .param .u32 n)\n"
                                   "{\n"
                                   "    .reg .b32 %r<3>; .reg .b64 %rd1;\n"
                                   "    ld.param.u64 %rd1, [p];\n"
                                   "    ld.param.u32 %r1, [n];\n"
                                   "    { .param .b32 given, got;\n"
                                   "      st.param.b32 [given], %r1;\n"
                                   "      call.uni (got), sum_up, (given);\n"
                                   "      ld.param.b32 %r2, [got]; }\n"
                                   "    st.global.u32 [%rd1], %r2;\n"
                                   "    ret;\n"
                                   "}\n";

TEST_IN_CONTEXT(the_stack_limit_of_the_context_applies_to_calls)
{
    CUfunction function = load(SUM, "sum");
    CUdeviceptr p = zeros();
    uint32_t n = 100;
    void *params[] = { &p, &n };
    assert_success(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_success(launch(function, 1, 1, params));
    assert_int_equal(number(p, 0), 5050);
    assert_success(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    assert_error(ILLEGAL_ADDRESS, launch(function, 1, 1, params));
}
