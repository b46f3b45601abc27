/* What a function declares, what it may be allowed, and how many of its blocks an SM holds.
 *
 * PTX has no registers of the machine: CU_FUNC_ATTRIBUTE_NUM_REGS, and the occupancy that follows
 * from it, take the emulator's count of registers that are live together, which is about what ptxas
 * allocates.
 */
#include "libcuda/module.h"

static CUresult get_attribute(int *value, CUfunction_attribute which, CUfunction f)
{
    emu_module_info info;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(f, FUNCTION_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    emu_module_describe(f->module->module, &info);
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)function_threads(f);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)f->info.shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = (int)info.constant_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)f->info.local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)f->info.live_registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = (int)info.target;
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)device_target()->sm;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)f->dynamic_shared;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1; /* the driver's choice */
        break;
    default:
        if (which > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : get_attribute(value, which, f));
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute which, int value)
{
    if (!handle_is(f, FUNCTION_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (size_t)value + f->info.shared_bytes > device_target()->shared_block)
            return CUDA_ERROR_INVALID_VALUE;
        f->dynamic_shared = (size_t)value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : set_attribute(f, which, value));
}

/* A live function and a place for the answer. */
static CUresult check(CUfunction f, const void *answer)
{
    return !handle_is(f, FUNCTION_HANDLE) ? CUDA_ERROR_INVALID_HANDLE
           : answer                       ? CUDA_SUCCESS
                                          : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    (void)config; /* a preference, and there are no caches */
    return leave(r ? r : check(f, f));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, module);
    if (!r)
        *module = f->module;
    return leave(r);
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, name);
    if (!r)
        *name = f->name;
    return leave(r);
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    size_t bytes;
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, offset);
    if (!r && !emu_param(f->module->module, f->name, index, offset, &bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && size)
        *size = bytes;
    return leave(r);
}

static unsigned blocks_per_sm(CUfunction f, unsigned threads, size_t dynamic)
{
    return target_blocks_per_sm(device_target(), threads, f->info.live_registers,
                                f->info.shared_bytes + dynamic);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                     size_t dynamic)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, blocks);
    if (!r && threads <= 0)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *blocks = (unsigned)threads > function_threads(f) || dynamic > f->dynamic_shared
                      ? 0
                      : (int)blocks_per_sm(f, (unsigned)threads, dynamic);
    return leave(r);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
                                                              int threads, size_t dynamic,
                                                              unsigned flags)
{
    (void)flags; /* about caching of global loads */
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, dynamic);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                          CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
    unsigned most_resident = 0;
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, grid);
    if (!r && (!block || limit < 0))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    unsigned most = function_threads(f);
    if (limit && (unsigned)limit < most)
        most = (unsigned)limit;
    for (unsigned threads = most; threads; threads = (threads - 1) / WARP_THREADS * WARP_THREADS) {
        size_t shared = dynamic_of ? dynamic_of((int)threads) : dynamic;
        unsigned blocks = blocks_per_sm(f, threads, shared);
        if (blocks * threads > most_resident) {
            most_resident = blocks * threads;
            *block = (int)threads;
            *grid = (int)(blocks * SM_COUNT);
        }
    }
    return leave(most_resident ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction f, int blocks,
                                                 int threads)
{
    enum { STEP = 128 };
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(f, bytes);
    if (!r && (blocks <= 0 || threads <= 0))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    size_t most = device_target()->shared_block - f->info.shared_bytes;
    while (most && blocks_per_sm(f, (unsigned)threads, most) < (unsigned)blocks)
        most -= most < STEP ? most : STEP;
    *bytes = most;
    return leave(CUDA_SUCCESS);
}
