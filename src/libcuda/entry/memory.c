/* Allocations, managed memory and pools. Device addresses and host pointers differ
 * (CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING is 0). Kernels access page-locked host memory at the
 * address from cuMemHostGetDevicePointer. New device memory counts as uninitialized; see
 * PTXGEN_CUDA_CHECKS.
 *
 * Managed memory has the same address on host and device. It never migrates, so advice about its
 * location is checked and ignored. */
#include "libcuda/memory.h"

#include <stdlib.h>
#include <string.h>

#include "libcuda/graph.h"
#include "libcuda/entry/entry.h"

enum { PITCH_UNIT = 512 };

/* Allocates device memory from a pool; pool may be NULL. */
static CUresult allocate_memory(CUcontext c, CUdeviceptr *address, size_t size, CUmemoryPool pool)
{
    CUresult r = capture_refuses(c, UNSAFE_CALL);
    if (r)
        return r;
    if (!address || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > DEVICE_MEMORY_BYTES - memory_used() || (pool && size > pool->max_size - pool->used))
        return CUDA_ERROR_OUT_OF_MEMORY;
    buffer *b = buffer_new(c, NULL, size, false);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->pool = pool;
    if (pool)
        pool->used += size;
    if (pool && pool->used > pool->most_used)
        pool->most_used = pool->used;
    *address = b->span.address;
    return CUDA_SUCCESS;
}

static CUresult allocate_rows(CUcontext c, CUdeviceptr *address, size_t *pitch, size_t width,
                              size_t height, unsigned element_size)
{
    bool known = element_size == 4 || element_size == 8 || element_size == 16;
    size_t bytes = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
    if (!pitch || !known || width > SIZE_MAX - PITCH_UNIT || (bytes && height > SIZE_MAX / bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = allocate_memory(c, address, bytes * height, NULL);
    if (!r)
        *pitch = bytes;
    return r;
}

static CUresult release_memory(CUcontext c, CUdeviceptr address)
{
    CUresult r = capture_refuses(c, UNSAFE_CALL);
    if (r || !address)
        return r;
    buffer *b = span_at(BUFFER_HANDLE, address);
    if (!b || b->span.address != address || (b->host && !b->managed)) {
        say("cuMemFree: 0x%llx is not the start of an allocation, or is freed already",
            (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    buffer_destroy(b);
    return CUDA_SUCCESS;
}

/* Maps host memory at a new device address. */
static CUresult map_host(CUcontext c, void *host, size_t size, unsigned flags, bool registered)
{
    buffer *b = host ? buffer_new(c, host, size, false) : NULL;
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->flags = flags;
    b->registered = registered;
    return CUDA_SUCCESS;
}

static CUresult allocate_host(CUcontext c, void **host, size_t size, unsigned flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!host || !size || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    void *bytes = calloc(size, 1);
    CUresult r = map_host(c, bytes, size, flags, false);
    if (r)
        free(bytes);
    else
        *host = bytes;
    return r;
}

static CUresult register_host(CUcontext c, void *host, size_t size, unsigned flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (!host || !size || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if (buffer_of_host(host) || buffer_of_host((char *)host + size - 1))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return map_host(c, host, size, flags, true);
}

static CUresult release_host(void *host, bool registered)
{
    buffer *b = buffer_of_host(host);
    if (!b || b->host != host || b->registered != registered || b->managed)
        return registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    buffer_destroy(b);
    return CUDA_SUCCESS;
}

/* Returns the device address of a pointer into a buffer's host memory. */
static CUdeviceptr device_pointer(const buffer *b, uint64_t host)
{
    return b->span.address + (host - (uintptr_t)b->host);
}

/* Returns the buffer or mapping that contains a device address, or NULL. */
static const span *find_span(CUdeviceptr p)
{
    const span *found = span_at(BUFFER_HANDLE, p);
    return found ? found : span_at(MAPPING_HANDLE, p);
}

static CUresult describe_range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    const span *at = find_span(address);
    if (!at)
        return CUDA_ERROR_NOT_FOUND;
    GIVE(base, at->address);
    GIVE(size, at->size);
    return CUDA_SUCCESS;
}

/* Returns a device address's buffer or mapping, or NULL. Replaces host pointers. */
static const span *find_pointer(CUdeviceptr *p)
{
    const span *found = find_span(*p);
    const buffer *b = found ? NULL : buffer_of_host((const void *)(uintptr_t)*p);
    if (b)
        *p = device_pointer(b, *p);
    return b ? &b->span : found;
}

/* Value of a pointer attribute and its size in bytes; 0 bytes: the attribute is unknown. */
typedef struct pointer_answer {
    unsigned char bytes;
    uint64_t value;
} pointer_answer;

/* Returns an attribute of address p in a buffer or a mapping. */
static pointer_answer answer_for(CUpointer_attribute which, CUdeviceptr p, const span *in)
{
    const buffer *b = in->handle.kind == BUFFER_HANDLE ? (const buffer *)in : NULL;
    const mapping *m = in->handle.kind == MAPPING_HANDLE ? (const mapping *)in : NULL;
    bool on_host = b && b->host && !b->managed;
    uint64_t access = m ? m->access : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const pointer_answer answers[] = {
        [CU_POINTER_ATTRIBUTE_CONTEXT] = { 8, b ? (uintptr_t)b->span.handle.context : 0 },
        [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = { 4, on_host ? CU_MEMORYTYPE_HOST
                                                          : CU_MEMORYTYPE_DEVICE },
        [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = { 8, p },
        [CU_POINTER_ATTRIBUTE_HOST_POINTER] = { 8, b ? (uintptr_t)b->host + (p - b->span.address)
                                                     : 0 },
        [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = { 4, 0 },
        [CU_POINTER_ATTRIBUTE_BUFFER_ID] = { 8, in->address >> 32 }, /* unique per allocation */
        [CU_POINTER_ATTRIBUTE_IS_MANAGED] = { 4, b && b->managed },
        [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = { 4, 0 },
        [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = { 4, 0 },
        [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = { 8, in->address },
        [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = { 8, in->size },
        [CU_POINTER_ATTRIBUTE_MAPPED] = { 4, 1 },
        [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = { 8, 0 },
        [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = { 4, 0 },
        [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = { 4, access },
        [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = { 8, b ? (uintptr_t)b->pool : 0 },
    };
    return which < sizeof answers / sizeof *answers ? answers[which] : (pointer_answer){ 0 };
}

static CUresult pointer_attribute(void *data, CUpointer_attribute which, CUdeviceptr p)
{
    const span *in = find_pointer(&p);
    if (!data || !in)
        return CUDA_ERROR_INVALID_VALUE;
    pointer_answer answer = answer_for(which, p, in);
    if (!answer.bytes)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (which == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
        (in->handle.kind != BUFFER_HANDLE || !((const buffer *)in)->host))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(data, &answer.value, answer.bytes); /* the host is little-endian */
    return CUDA_SUCCESS;
}

/* Returns several attributes; zero for those that the pointer lacks. */
static CUresult pointer_attributes(unsigned count, CUpointer_attribute *which, void **data,
                                   CUdeviceptr p)
{
    const span none = { 0 };
    if (!which || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!data[i] || !answer_for(which[i], 0, &none).bytes)
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (pointer_attribute(data[i], which[i], p))
            memset(data[i], 0, answer_for(which[i], 0, &none).bytes);
    return CUDA_SUCCESS;
}

static CUresult allocate_managed(CUcontext c, CUdeviceptr *address, size_t size, unsigned flags)
{
    CUresult r = capture_refuses(c, UNSAFE_CALL);
    if (r)
        return r;
    if (!address || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *host = size <= DEVICE_MEMORY_BYTES - memory_used() ? pages_new(size, true) : NULL;
    const buffer *b = host ? buffer_new(c, host, size, true) : NULL;
    if (!b) {
        pages_free(host, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = b->span.address;
    return CUDA_SUCCESS;
}

static CUresult check_managed(CUdeviceptr address, size_t size)
{
    const buffer *b = span_at(BUFFER_HANDLE, address);
    return check_value(b && b->managed && size &&
                       size <= b->span.size - (address - b->span.address));
}

static CUresult check_managed_location(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_NONE ||
                   location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
               ? CUDA_ERROR_INVALID_VALUE
           : location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id ? CUDA_ERROR_INVALID_DEVICE
                                                                         : CUDA_SUCCESS;
}

/* Returns the location that the first versions of calls express as a device number. */
static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){ device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                                    : CU_MEM_LOCATION_TYPE_DEVICE,
                            device == CU_DEVICE_CPU ? 0 : device };
}

static CUresult check_advice(CUdeviceptr address, size_t size, CUmem_advise advice,
                             CUmemLocation location)
{
    bool places = advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                  advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
    CUresult r = check_value(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
                             advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    r = r ? r : check_managed(address, size);
    return r || !places ? r : check_managed_location(location);
}

static CUresult attach_memory(CUcontext c, CUstream stream, CUdeviceptr address, size_t size,
                              unsigned flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = stream_find(c, stream, &stream);
    const buffer *b = r ? NULL : span_at(BUFFER_HANDLE, address);
    bool whole = b && b->managed && b->span.address == address && (!size || size == b->span.size);
    return r ? r : check_value(whole);
}

/* Accepts only pools that are not destroyed. */
static CUresult check_pool(CUmemoryPool pool)
{
    return check_value(handle_is(pool, POOL_HANDLE) && !pool->destroyed);
}

static CUmemoryPool new_pool(uint64_t max_size)
{
    CUmemoryPool pool = handle_new(POOL_HANDLE, sizeof *pool, NULL);
    if (!pool)
        return NULL;
    for (size_t i = 0; i < POOL_REUSES; i++)
        pool->reuse[i] = 1;
    pool->max_size = max_size ? max_size : DEVICE_MEMORY_BYTES;
    return pool;
}

/* Finds the default or current pool, or creates it. Returns NULL if memory runs out. */
static CUmemoryPool find_pool(bool is_default)
{
    CUmemoryPool pool = NULL;
    while ((pool = handle_next(POOL_HANDLE, pool)))
        if (is_default ? pool->is_default : pool->is_current)
            return pool;
    pool = new_pool(0);
    if (pool)
        pool->is_default = pool->is_current = true;
    return pool;
}

static void make_pool_current(CUmemoryPool pool)
{
    for (CUmemoryPool p = NULL; (p = handle_next(POOL_HANDLE, p));)
        p->is_current = p == pool;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device, bool is_default)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUmemoryPool found = find_pool(is_default);
    if (!found)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pool = found;
    return CUDA_SUCCESS;
}

static CUresult create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUresult r = memory_check(properties->allocType, properties->handleTypes, properties->location);
    CUmemoryPool made = r ? NULL : new_pool(properties->maxSize);
    if (!made)
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    *pool = made;
    return CUDA_SUCCESS;
}

static void destroy_pool(CUmemoryPool pool)
{
    if (pool->is_current)
        make_pool_current(find_pool(true));
    pool->destroyed = true;
    pool_free_unused(pool);
}

/* Gets or sets an attribute. Of the counters, only high-water marks can be set, to 0. */
static CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute which, void *value, bool sets)
{
    unsigned reuse = which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
    uint64_t *const fields[] = {
        [CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = &pool->threshold,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] = &pool->used,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = &pool->most_used,
        [CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = &pool->used,
        [CU_MEMPOOL_ATTR_USED_MEM_HIGH] = &pool->most_used,
    };
    uint64_t *bytes = which < sizeof fields / sizeof *fields ? fields[which] : NULL;
    if (!value || (!bytes && reuse >= POOL_REUSES) || (sets && bytes == &pool->used))
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes && sets)
        pool->reuse[reuse] = *(const int *)value != 0;
    else if (!bytes)
        *(int *)value = pool->reuse[reuse];
    else if (!sets)
        *(cuuint64_t *)value = *bytes;
    else if (bytes == &pool->threshold)
        pool->threshold = *(const cuuint64_t *)value;
    else if (*(const cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    else
        pool->most_used = pool->used;
    return CUDA_SUCCESS;
}

static CUresult check_pool_access(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && !location->id
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
}

/* Accepts only read and write access by the pool's device, which is always granted. */
static CUresult set_pool_access(const CUmemAccessDesc *access, size_t count)
{
    CUresult r = check_value(access);
    for (size_t i = 0; !r && i < count; i++) {
        r = check_pool_access(&access[i].location);
        r = r ? r : check_value(access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    return r;
}

#include "libcuda/entry/memory.def"
