/* Libraries: modules that belong to no context, and their kernels, which are functions in each. */
#include "libcuda/load.h"

static CUresult load(CUlibrary *library, load_source from, unsigned count,
                     const CUjit_option *options, void **values)
{
    CUmodule m;
    CUresult r = enter();
    if (!r && (!library || (count && (!options || !values))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    jit_log log = jit_log_of(count, options, values);
    r = load_module(NULL, from, &log, &m);
    if (!r) {
        m->is_library = true;
        *library = (CUlibrary)(void *)m;
    }
    return leave(r);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count; /* all are hints */
    return load(library, (load_source){ .image = image }, count, options, values);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                               void **values, unsigned count, CUlibraryOption *library_options,
                               void **library_values, unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count;
    return load(library, (load_source){ .path = path }, count, options, values);
}

/* The module that a library is. */
static CUresult open_library(CUlibrary library, CUmodule *m)
{
    *m = (CUmodule)(void *)library;
    return handle_is(library, MODULE_HANDLE) && (*m)->is_library ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_HANDLE;
}

/* The function that a kernel is. */
static CUresult open_kernel(CUkernel kernel, CUfunction *f)
{
    *f = (CUfunction)(void *)kernel;
    return handle_is(kernel, FUNCTION_HANDLE) && (*f)->module->is_library
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    CUmodule m;
    CUresult r = enter();
    r = r ? r : open_library(library, &m);
    if (!r)
        module_destroy(m);
    return leave(r);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUmodule m;
    CUresult r = enter_to_ask();
    r = r ? r : open_library(library, &m);
    return leave(r ? r : module_function((CUfunction *)(void *)kernel, m, name));
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
    CUmodule m;
    CUresult r = enter_to_ask();
    r = r ? r : open_library(library, &m);
    return leave(r ? r : module_function_count(count, m));
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned room, CUlibrary library)
{
    CUmodule m;
    CUresult r = enter_to_ask();
    r = r ? r : open_library(library, &m);
    return leave(r ? r : module_functions((CUfunction *)(void *)kernels, room, m));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUmodule m;
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    if (!r && !module)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : open_library(library, &m);
    if (!r)
        *module = m;
    return leave(r);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
    CUmodule m;
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    r = r ? r : open_library(library, &m);
    return leave(r ? r : module_global(address, size, m, name));
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUfunction f;
    CUcontext c;
    CUresult r = enter_context_to_ask(&c);
    if (!r && !function)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : open_kernel(kernel, &f);
    if (!r)
        *function = f;
    return leave(r);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    if (!r && !library)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : open_kernel(kernel, &f);
    if (!r)
        *library = (CUlibrary)(void *)f->module;
    return leave(r);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    if (!r && !name)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : open_kernel(kernel, &f);
    if (!r)
        *name = f->name;
    return leave(r);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    r = r ? r : open_kernel(kernel, &f);
    return leave(r ? r : function_param(f, index, offset, size));
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel kernel,
                              CUdevice device)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    if (!r && device)
        r = CUDA_ERROR_INVALID_DEVICE;
    r = r ? r : open_kernel(kernel, &f);
    return leave(r ? r : function_attribute(value, which, f));
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel,
                              CUdevice device)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    if (!r && device)
        r = CUDA_ERROR_INVALID_DEVICE;
    r = r ? r : open_kernel(kernel, &f);
    return leave(r ? r : function_set_attribute(f, which, value));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    CUfunction f;
    CUresult r = enter_to_ask();
    (void)config; /* a preference, and there are no caches */
    if (!r && device)
        r = CUDA_ERROR_INVALID_DEVICE;
    return leave(r ? r : open_kernel(kernel, &f));
}
