/* Managed memory, pools, virtual memory management, and pointer attributes. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

enum { GRANULE = 2 << 20, WORDS = GRANULE / 4 };

TEST_IN_CONTEXT(managed_memory_is_shared_by_host_and_device)
{
    CUdeviceptr p;
    unsigned managed = 0;
    uint32_t copy[2];
    size_t before = available();
    assert_success(cuMemAllocManaged(&p, NUMBERS * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(before - available(), NUMBERS * sizeof(uint32_t));
    uint32_t *host = (uint32_t *)(uintptr_t)p;
    for (uint32_t i = 0; i < NUMBERS; i++)
        host[i] = i;
    assert_success(add(load(ADD, "add"), NULL, p, 100));
    for (uint32_t i = 0; i < NUMBERS; i++)
        assert_int_equal(host[i], 100 + i);
    assert_success(cuMemcpyDtoH_v2(copy, p + 4, sizeof copy));
    assert_true(copy[0] == 101 && copy[1] == 102);
    assert_success(cuMemsetD32_v2(p, 7, 1));
    assert_int_equal(host[0], 7);
    assert_success(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    assert_true(managed);
    assert_success(cuMemAdvise(p, 8, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    assert_error(INVALID_DEVICE, cuMemAdvise(p, 8, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 3));
    assert_error(INVALID_VALUE, cuMemAdvise(p, 8, 7, 0));
    assert_success(cuMemPrefetchAsync(p, NUMBERS * sizeof(uint32_t), 0, NULL));
    assert_error(INVALID_VALUE, cuMemPrefetchAsync(p, NUMBERS * sizeof(uint32_t) + 1, 0, NULL));
    assert_error(INVALID_VALUE, cuMemPrefetchAsync(zeros(), 4, 0, NULL));
    assert_success(
        cuMemPrefetchAsync_v2(p, 4, (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST, 0 }, 0, NULL));
    assert_success(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_SINGLE));
    assert_error(INVALID_VALUE, cuMemFreeHost(host));
    assert_success(cuMemFree_v2(p));
    assert_error(INVALID_VALUE, cuMemFree_v2(p));
    assert_error(INVALID_VALUE, cuMemAllocManaged(&p, 8, 0));
}

TEST_IN_CONTEXT(a_kernel_access_outside_of_managed_memory_is_a_fault)
{
    CUdeviceptr p;
    assert_success(cuMemAllocManaged(&p, NUMBERS * sizeof(uint32_t), CU_MEM_ATTACH_GLOBAL));
    assert_error(ILLEGAL_ADDRESS, add(load(ADD, "add"), NULL, p + 4, 1));
}

static uint64_t pool_figure(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;
    assert_success(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

TEST_IN_CONTEXT(pools_count_their_allocations)
{
    CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                  .maxSize = 1000 };
    CUmemoryPool usual, pool, now, of;
    CUdeviceptr p, q;
    cuuint64_t value = 5;
    int on = 0;
    assert_success(cuDeviceGetDefaultMemPool(&usual, 0));
    assert_success(
        cuMemGetDefaultMemPool(&now, &properties.location, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(now, usual);
    assert_error(NOT_SUPPORTED,
                 cuMemGetMemPool(&now, &(CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST, 0 },
                                 CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_success(cuMemPoolCreate(&pool, &properties));
    assert_success(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, usual);
    assert_success(cuMemAllocFromPoolAsync(&p, 600, pool, NULL));
    assert_error(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 600, pool, NULL));
    assert_success(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(of, pool);
    assert_int_equal(pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 600);
    assert_success(cuDeviceSetMemPool(0, pool));
    assert_success(cuMemAllocAsync(&q, 300, NULL));
    assert_int_equal(pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 900);
    assert_success(cuMemFreeAsync(p, NULL));
    assert_int_equal(pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 300);
    assert_int_equal(pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 900);
    assert_error(INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    value = 0;
    assert_success(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    assert_int_equal(pool_figure(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 300);
    value = UINT64_MAX;
    assert_success(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    assert_true(pool_figure(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    assert_success(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
    assert_int_equal(on, 1);
    assert_success(cuMemPoolTrimTo(pool, 0));

    assert_success(cuMemPoolDestroy(pool));
    assert_error(INVALID_VALUE, cuMemPoolDestroy(pool));
    assert_error(INVALID_VALUE, cuMemPoolDestroy(usual));
    assert_success(cuDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, usual);
    assert_success(cuMemsetD8_v2(q, 1, 300));
    assert_success(cuMemFreeAsync(q, NULL));
    properties.handleTypes = 1;
    assert_error(NOT_SUPPORTED, cuMemPoolCreate(&pool, &properties));
}

static const CUmemAllocationProp on_device = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUmemAccessDesc read_write = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
static const CUmemAccessDesc read_only = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                           CU_MEM_ACCESS_FLAGS_PROT_READ };

static CUdeviceptr reserve(size_t granules)
{
    CUdeviceptr p;
    assert_success(cuMemAddressReserve(&p, granules * GRANULE, 0, 0, 0));
    return p;
}

static CUmemGenericAllocationHandle create(size_t granules)
{
    CUmemGenericAllocationHandle memory;
    assert_success(cuMemCreate(&memory, granules * GRANULE, &on_device, 0));
    return memory;
}

TEST_IN_CONTEXT(memory_is_mapped_piece_by_piece)
{
    size_t granularity;
    assert_success(cuMemGetAllocationGranularity(&granularity, &on_device,
                                                 CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    assert_int_equal(granularity, GRANULE);
    CUdeviceptr p = reserve(8);
    size_t before = available();
    CUmemGenericAllocationHandle first = create(1), second = create(2);
    assert_int_equal(before - available(), 3 * GRANULE);
    assert_success(cuMemMap(p, GRANULE, 0, first, 0));
    assert_error(INVALID_VALUE, cuMemMap(p, GRANULE, 0, second, 0));
    assert_success(cuMemMap(p + GRANULE, 2 * GRANULE, 0, second, 0));
    assert_error(INVALID_VALUE, cuMemsetD32_v2(p, 1, 1)); /* no access yet */
    assert_success(cuMemSetAccess(p, 3 * GRANULE, &read_write, 1));
    assert_success(cuMemRelease(first));
    assert_error(INVALID_VALUE, cuMemRelease(first));
    assert_int_equal(before - available(), 3 * GRANULE); /* remains allocated while it is mapped */

    /* Crosses the border between the two mappings. */
    CUdeviceptr across = p + GRANULE - 64;
    assert_success(cuMemsetD32_v2(across, 1, NUMBERS));
    assert_success(add(load(ADD, "add"), NULL, across, 41));
    assert_int_equal(number(across, 0), 42);
    assert_int_equal(number(across, NUMBERS - 1), 42);
    assert_error(INVALID_VALUE, cuMemsetD32_v2(p, 1, 3 * WORDS + 1));

    CUdeviceptr base;
    size_t size;
    assert_success(cuMemGetAddressRange_v2(&base, &size, p + GRANULE + 5));
    assert_true(base == p + GRANULE && size == 2 * GRANULE);
    assert_error(INVALID_VALUE, cuMemUnmap(p + 2 * GRANULE, GRANULE));
    assert_error(INVALID_VALUE, cuMemAddressFree(p, 8 * GRANULE));
    assert_success(cuMemUnmap(p, 3 * GRANULE));
    assert_error(INVALID_VALUE, cuMemsetD32_v2(p, 1, 1));
    assert_success(cuMemRelease(second));
    assert_int_equal(available(), before);
    assert_success(cuMemAddressFree(p, 8 * GRANULE));
    assert_error(INVALID_VALUE, cuMemAddressFree(p, 8 * GRANULE));
}

TEST_IN_CONTEXT(memory_can_be_at_two_addresses)
{
    CUdeviceptr p = reserve(1), q = reserve(1);
    CUmemGenericAllocationHandle memory = create(2), again;
    unsigned long long flags;
    assert_success(cuMemMap(p, GRANULE, GRANULE, memory, 0));
    assert_success(cuMemMap(q, GRANULE, GRANULE, memory, 0));
    assert_success(cuMemSetAccess(p, GRANULE, &read_write, 1));
    assert_success(cuMemSetAccess(q, GRANULE, &read_only, 1));
    assert_success(cuMemGetAccess(&flags, &read_only.location, q));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_success(cuMemsetD32_v2(p, 5, NUMBERS));
    assert_int_equal(number(q, 3), 5);
    assert_success(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)q));
    assert_true(again == memory);
    assert_success(cuMemUnmap(p, GRANULE));
    assert_success(cuMemRelease(memory));
    assert_success(cuMemRelease(memory));
    assert_int_equal(number(q, 3), 5);
    assert_error(ILLEGAL_ADDRESS, add(load(ADD, "add"), NULL, q, 1));
}

TEST_IN_CONTEXT(reserved_addresses_are_not_accessible)
{
    CUdeviceptr p = reserve(2);
    CUmemGenericAllocationHandle memory = create(1);
    assert_error(INVALID_VALUE, cuMemMap(p + GRANULE, 2 * GRANULE, 0, memory, 0));
    assert_error(INVALID_VALUE, cuMemMap(p, GRANULE, GRANULE, memory, 0));
    assert_error(INVALID_VALUE, cuMemAddressReserve(&p, GRANULE + 1, 0, 0, 0));
    assert_error(OUT_OF_MEMORY, cuMemCreate(&memory, (size_t)1 << 40, &on_device, 0));
    assert_error(ILLEGAL_ADDRESS, add(load(ADD, "add"), NULL, p, 1));
}

TEST_IN_CONTEXT(several_pointer_attributes_are_read_at_once)
{
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                    CU_POINTER_ATTRIBUTE_RANGE_SIZE };
    unsigned type = 9, sync = 1;
    void *host = which;
    size_t size = 9;
    void *answers[] = { &type, &host, &size };
    CUdeviceptr p = zeros();
    assert_success(cuPointerGetAttributes(3, which, answers, p));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_null(host);
    assert_int_equal(size, NUMBERS * sizeof(uint32_t));
    assert_success(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    assert_success(cuMemFree_v2(p));
    assert_success(cuPointerGetAttributes(3, which, answers, p));
    assert_true(type == 0 && size == 0);
    which[1] = 99;
    assert_error(INVALID_VALUE, cuPointerGetAttributes(3, which, answers, p));
}

static void leave_managed_memory(void)
{
    CUdeviceptr p;
    setenv("PTXGEN_CUDA_LEAKS", "1", 1);
    cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL);
}

TEST(leaks_of_managed_memory_are_reported)
{
    assert_says(report_of(leave_managed_memory), "not freed: 100 bytes of device memory in 1 ");
}
