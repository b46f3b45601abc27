#include "libcuda/load.h"

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && count && (!options || !values))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    jit_log log = jit_log_of(count, options, values);
    return leave(load_module(c, (load_source){ .image = image }, &log, module));
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : load_module(c, (load_source){ .path = path }, &(jit_log){ 0 }, module));
}

static CUresult unload(CUmodule m)
{
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (m->is_library)
        return CUDA_ERROR_NOT_PERMITTED;
    module_destroy(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : unload(m));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : module_function(function, m, name));
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule m)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : module_function_count(count, m));
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned room, CUmodule m)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : module_functions(functions, room, m));
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
{
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    return leave(r ? r : module_global(address, size, m, name));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult r = enter_to_ask();
    if (!r && !mode)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *mode = CU_MODULE_EAGER_LOADING;
    return leave(r);
}
