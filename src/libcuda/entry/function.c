/* What programs ask of functions, and how many of its blocks an SM holds. */
#include "libcuda/module.h"

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : function_attribute(value, which, f));
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : function_set_attribute(f, which, value));
}

/* A live function and a place for what is asked of it. */
static CUresult find(CUfunction f, const void *answer)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return r                                ? r
           : !handle_is(f, FUNCTION_HANDLE) ? CUDA_ERROR_INVALID_HANDLE
           : answer                         ? CUDA_SUCCESS
                                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    (void)config; /* a preference, and there are no caches */
    return leave(find(f, f));
}

/* All modules are there when they are loaded. */
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction f)
{
    CUresult r = find(f, state);
    if (!r)
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return leave(r);
}

CUresult cuFuncLoad(CUfunction f)
{
    return leave(find(f, f));
}

CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
    (void)config; /* about the width of banks, which all devices have one of */
    return leave(find(f, f));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    CUresult r = find(f, module);
    if (!r)
        *module = f->module;
    return leave(r);
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    CUresult r = find(f, name);
    if (!r)
        *name = f->name;
    return leave(r);
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : function_param(f, index, offset, size));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
                                                     size_t dynamic)
{
    CUresult r = find(f, blocks);
    if (!r && threads <= 0)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *blocks = (unsigned)threads > function_threads(f) || dynamic > f->dynamic_shared
                      ? 0
                      : (int)function_blocks(f, (unsigned)threads, dynamic);
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
    CUresult r = find(f, grid);
    if (!r && (!block || limit < 0))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    unsigned most = function_threads(f);
    if (limit && (unsigned)limit < most)
        most = (unsigned)limit;
    for (unsigned threads = most; threads; threads = (threads - 1) / WARP_THREADS * WARP_THREADS) {
        size_t shared = dynamic_of ? dynamic_of((int)threads) : dynamic;
        unsigned blocks = function_blocks(f, threads, shared);
        if (blocks * threads > most_resident) {
            most_resident = blocks * threads;
            *block = (int)threads;
            *grid = (int)(blocks * SM_COUNT);
        }
    }
    return leave(most_resident ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                   CUoccupancyB2DSize dynamic_of, size_t dynamic,
                                                   int limit, unsigned flags)
{
    (void)flags;
    return cuOccupancyMaxPotentialBlockSize(grid, block, f, dynamic_of, dynamic, limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction f, int blocks,
                                                 int threads)
{
    enum { STEP = 128 };
    CUresult r = find(f, bytes);
    if (!r && (blocks <= 0 || threads <= 0))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    size_t most = device_target()->shared_block - f->info.shared_bytes;
    while (most && function_blocks(f, (unsigned)threads, most) < (unsigned)blocks)
        most -= most < STEP ? most : STEP;
    *bytes = most;
    return leave(CUDA_SUCCESS);
}
