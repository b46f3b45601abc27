/* The one device there is: an emulator that says so in its name, with the limits of the target that
 * PTXGEN_CUDA_TARGET names (sm_90 where it is not set), few SMs, and clocks that nobody should
 * compute a bandwidth from. */
#include "libcuda/driver.h"

#include <stdio.h>
#include <string.h>

enum {
    DRIVER_VERSION = CUDA_VERSION,
    MOST_THREADS = 1024,
    MOST_BLOCK_Z = 64,
    MOST_GRID_YZ = 65535,
    CONSTANT_BYTES = 64 * 1024,
    CLOCK_KHZ = 1000,
    ALIGNMENT = 512,
    SHARED_RESERVED = 1024, /* of each block, from sm_80 on */
};

CUresult cuInit(unsigned flags)
{
    const char *name = setting("PTXGEN_CUDA_TARGET");
    const target *t = target_find(name ? name : "sm_90");
    CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : driver_start(t);
    if (r == CUDA_ERROR_NO_DEVICE)
        say("PTXGEN_CUDA_TARGET is '%s'; targets are %s to %s", name, targets[0].name,
            targets[target_count - 1].name);
    return r;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = enter_to_ask();
    if (!r && !count)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *count = 1;
    return leave(r);
}

/* Of a call that asks something of a device and has a place for the answer. */
static CUresult check(CUdevice device, const void *answer)
{
    return !answer ? CUDA_ERROR_INVALID_VALUE : device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(ordinal, device);
    if (!r)
        *device = 0;
    return leave(r);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, size > 0 ? name : NULL);
    if (!r)
        snprintf(name, (size_t)size, "ptxgen emulator (%s)", device_target()->name);
    return leave(r);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, uuid);
    if (!r)
        memcpy(uuid->bytes, "ptxgen emulator", sizeof uuid->bytes);
    return leave(r);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, size > 0 ? id : NULL);
    if (!r)
        snprintf(id, (size_t)size, "0000:00:00.0");
    return leave(r);
}

/* Hexadecimal domain:bus:device.function, of which the domain or the function may be missing. */
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned part[4] = { 0 };
    CUresult r = enter_to_ask();
    if (!r && (!device || !id))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && sscanf(id, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) < 3 &&
        sscanf(id, "%x:%x.%x", &part[1], &part[2], &part[3]) < 3)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && (part[0] || part[1] || part[2] || part[3]))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *device = 0;
    return leave(r);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, bytes);
    if (!r)
        *bytes = DEVICE_MEMORY_BYTES;
    return leave(r);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, can);
    r = r ? r : check(peer, can);
    if (!r)
        *can = 0;
    return leave(r);
}

/* What is not named here, such as textures, tensor maps, one address space for host and device, is
 * not there: 0. */
static int attribute(const target *t, CUdevice_attribute which)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return MOST_THREADS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return MOST_BLOCK_Z;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return MOST_GRID_YZ;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return (int)t->shared_static;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return (int)t->shared_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return (int)t->shared_sm;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        return t->sm >= 80 ? SHARED_RESERVED : 0;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        return CONSTANT_BYTES;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return WARP_THREADS;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        return TARGET_REGISTERS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return (int)t->warps_sm * WARP_THREADS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        return (int)t->blocks_sm;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return SM_COUNT;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return (int)t->sm / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return (int)t->sm % 10;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return CLOCK_KHZ;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return 64;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        return ALIGNMENT;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        return 1;
    default:
        return 0;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, value);
    if (!r && (which < CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
               which > CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *value = attribute(device_target(), which);
    return leave(r);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, major);
    r = r ? r : check(device, minor);
    if (!r) {
        *major = attribute(device_target(), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        *minor = attribute(device_target(), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    }
    return leave(r);
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device)
{
    CUresult r = enter_to_ask();
    r = r ? r : check(device, properties);
    const target *t = device_target();
    if (!r)
        *properties = (CUdevprop){
            .maxThreadsPerBlock = MOST_THREADS,
            .maxThreadsDim = { MOST_THREADS, MOST_THREADS, MOST_BLOCK_Z },
            .maxGridSize = { INT32_MAX, MOST_GRID_YZ, MOST_GRID_YZ },
            .sharedMemPerBlock = (int)t->shared_static,
            .totalConstantMemory = CONSTANT_BYTES,
            .SIMDWidth = WARP_THREADS,
            .memPitch = INT32_MAX,
            .regsPerBlock = TARGET_REGISTERS,
            .clockRate = CLOCK_KHZ,
            .textureAlign = ALIGNMENT,
        };
    return leave(r);
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device)
{
    CUresult r = enter_to_ask();
    (void)type;
    r = r ? r : check(device, supported);
    if (!r)
        *supported = 0;
    return leave(r);
}

/* There are no two devices to ask about. */
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice from,
                                 CUdevice to)
{
    CUresult r = enter_to_ask();
    (void)which, (void)from, (void)to;
    return leave(r ? r : value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuProfilerStart(void)
{
    return leave(enter());
}

CUresult cuProfilerStop(void)
{
    return leave(enter());
}
