/* The emulated device. Its name says that it is an emulator. Its limits are those of the target
 * that PTXGEN_CUDA_TARGET names, by default sm_90. It has few SMs; clock rates are placeholders. */
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
    SHARED_RESERVED = 1024, /* bytes per block, from sm_80 on */
};

/* Returns the name or the text of a result code. Needs neither cuInit nor the lock. */
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
        say("PTXGEN_CUDA_TARGET: '%s' is not a target; targets are %s to %s", name, targets[0].name,
            targets[target_count - 1].name);
    return r;
}

/* Checks the device of a query and the pointer for its answer. */
static CUresult check_device(CUdevice device, const void *answer)
{
    return !answer ? CUDA_ERROR_INVALID_VALUE : device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* Finds a device by PCI address, domain:bus:device.function, also without domain or function. */
static CUresult find_by_pci_id(CUdevice *device, const char *id)
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

/* Returns an attribute, or 0 for features that the device lacks, e.g. textures. */
static int device_attribute(const target *t, CUdevice_attribute which)
{
    const int values[] = {
        [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = MOST_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = MOST_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = MOST_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = MOST_BLOCK_Z,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = INT32_MAX,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = MOST_GRID_YZ,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = MOST_GRID_YZ,
        [CU_DEVICE_ATTRIBUTE_MAX_PITCH] = INT32_MAX,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = (int)t->shared_static,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = (int)t->shared_block,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = (int)t->shared_sm,
        [CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = t->sm >= 80 ? SHARED_RESERVED : 0,
        [CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = CONSTANT_BYTES,
        [CU_DEVICE_ATTRIBUTE_WARP_SIZE] = WARP_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = TARGET_REGISTERS,
        [CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = TARGET_REGISTERS,
        [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = (int)t->warps_sm * WARP_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = (int)t->blocks_sm,
        [CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = SM_COUNT,
        [CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = (int)t->sm / 10,
        [CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = (int)t->sm % 10,
        [CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = CLOCK_KHZ,
        [CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = CLOCK_KHZ,
        [CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 64,
        [CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = ALIGNMENT,
        [CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
        [CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1,
        [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
        [CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
    };
    return which < sizeof values / sizeof *values ? values[which] : 0;
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
