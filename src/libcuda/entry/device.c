/* The one device there is: an emulator that says so in its name, with the limits of the target that
 * PTXGEN_CUDA_TARGET names (sm_90 where it is not set), few SMs, and clocks that nobody should
 * compute a bandwidth from. */
#include "libcuda/entry/entry.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_THREADS = 1024,
    MOST_BLOCK_Z = 64,
    MOST_GRID_YZ = 65535,
    CONSTANT_BYTES = 64 * 1024,
    CLOCK_KHZ = 1000,
    ALIGNMENT = 512,
    SHARED_RESERVED = 1024, /* of each block, from sm_80 on */
};

/* Gives the name or the text of a result code, which needs neither cuInit nor the lock. */
static CUresult describe_result(CUresult code, bool by_name, const char **answer)
{
    static const struct {
        CUresult code;
        const char *name, *text;
    } results[] = {
#define RESULT(name, number, text) { name, #name, text },
#include "libcuda/results.def"
#undef RESULT
    };
    if (!answer)
        return CUDA_ERROR_INVALID_VALUE;
    *answer = NULL;
    for (size_t i = 0; !*answer && i < sizeof results / sizeof *results; i++)
        if (results[i].code == code)
            *answer = by_name ? results[i].name : results[i].text;
    return check_value(*answer);
}

static CUresult initialize(unsigned flags)
{
    const char *name = setting("PTXGEN_CUDA_TARGET");
    const target *t = target_find(name ? name : "sm_90");
    CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : driver_start(t);
    if (r == CUDA_ERROR_NO_DEVICE)
        say("PTXGEN_CUDA_TARGET is '%s'; targets are %s to %s", name, targets[0].name,
            targets[target_count - 1].name);
    return r;
}

static CUresult driver_version(int *version)
{
    if (version)
        *version = CUDA_VERSION;
    return check_value(version);
}

/* Checks a call that asks something of a device and has a place for the answer. */
static CUresult check_device(CUdevice device, const void *answer)
{
    return !answer ? CUDA_ERROR_INVALID_VALUE : device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* Finds a device by hexadecimal domain:bus:device.function, of which the domain or the function may
 * be missing. */
static CUresult find_on_bus(CUdevice *device, const char *id)
{
    unsigned part[4] = { 0 };
    if (!device || !id ||
        (sscanf(id, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) < 3 &&
         sscanf(id, "%x:%x.%x", &part[1], &part[2], &part[3]) < 3))
        return CUDA_ERROR_INVALID_VALUE;
    if (part[0] || part[1] || part[2] || part[3])
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
}

/* Returns 0 for what the device does not have, such as textures, tensor maps, one address space for
 * host and device. */
static int device_attribute(const target *t, CUdevice_attribute which)
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

static CUdevprop device_properties(const target *t)
{
    return (CUdevprop){
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
}

#include "libcuda/entry/device.def"
