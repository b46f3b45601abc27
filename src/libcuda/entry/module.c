/* Modules, libraries (modules without a context), and their functions. */
#include "libcuda/module.h"

#include <string.h>

#include "libcuda/entry/entry.h"

/* Finds a function. Each function has one handle, created by the first call. */
static CUresult find_function(CUfunction *function, CUmodule m, const char *name)
{
    emu_entry_info info;
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_entry(m->module, name, &info))
        return CUDA_ERROR_NOT_FOUND;
    if (!m->functions) {
        emu_module_info all;
        emu_module_describe(m->module, &all);
        size_t bytes = all.entry_count * sizeof *m->functions;
        m->functions = arena_try_alloc(m->handle.arena, bytes);
        if (!m->functions)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memset(m->functions, 0, bytes);
    }
    if (m->functions[info.number]) {
        *function = m->functions[info.number];
        return CUDA_SUCCESS;
    }
    const void **params = arena_try_alloc(m->handle.arena, (info.param_count + 1) * sizeof *params);
    CUfunction f = params ? handle_new(FUNCTION_HANDLE, sizeof *f, m->handle.context) : NULL;
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->module = m;
    f->id = ++driver.counted;
    f->name = emu_entry_name(m->module, info.number);
    f->info = info;
    f->dynamic_shared = SHARED_WITHOUT_OPT_IN - info.shared_bytes;
    f->params = params;
    m->functions[info.number] = *function = f;
    return CUDA_SUCCESS;
}

static CUresult count_functions(unsigned *count, CUmodule m)
{
    emu_module_info info;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    emu_module_describe(m->module, &info);
    *count = (unsigned)info.entry_count;
    return CUDA_SUCCESS;
}

/* Lists at most `room` functions. */
static CUresult list_functions(CUfunction *functions, unsigned room, CUmodule m)
{
    CUresult r = CUDA_SUCCESS;
    const char *name;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; !r && i < room && (name = emu_entry_name(m->module, i)); i++)
        r = find_function(&functions[i], m, name);
    return r;
}

static CUresult find_global(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
{
    uint64_t at;
    size_t bytes;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_variable(driver.memory, m->module, name, &at, &bytes))
        return CUDA_ERROR_NOT_FOUND;
    GIVE(address, at);
    GIVE(size, bytes);
    return CUDA_SUCCESS;
}

/* Returns an attribute. The number of registers is an estimate: see function_blocks. */
static CUresult get_function_attribute(int *value, CUfunction_attribute which, CUfunction f)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(f, FUNCTION_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    emu_module_info info;
    emu_module_describe(f->module->module, &info);
    const int values[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE + 1] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = (int)function_threads(f),
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)f->info.shared_bytes,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)info.constant_bytes,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)f->info.local_bytes,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = (int)f->info.live_registers,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = (int)info.target,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = (int)driver.target->sm,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = (int)f->dynamic_shared,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1, /* the driver's default */
    };
    if (which >= sizeof values / sizeof *values)
        return CUDA_ERROR_INVALID_VALUE;
    *value = values[which];
    return CUDA_SUCCESS;
}

static CUresult set_function_attribute(CUfunction f, CUfunction_attribute which, int value)
{
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (size_t)value + f->info.shared_bytes > driver.target->shared_block)
            return CUDA_ERROR_INVALID_VALUE;
        f->dynamic_shared = (size_t)value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return check_value(value >= -1 && value <= 100);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Returns the offset and size of a parameter in bytes. size may be NULL. */
static CUresult describe_param(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    size_t bytes;
    if (!offset || !emu_param(f->module->module, f->name, index, offset, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    GIVE(size, bytes);
    return CUDA_SUCCESS;
}

/* Checks a function's handle and the pointer for an answer. */
static CUresult check_function(CUfunction f, const void *answer)
{
    CUresult r = check_handle(f, FUNCTION_HANDLE);
    return r ? r : check_value(answer);
}

static CUresult load_library(CUlibrary *library, load_source from, unsigned count,
                             const CUjit_option *options, void **values)
{
    CUmodule m;
    CUresult r = check_value(library);
    r = r ? r : module_load(NULL, from, count, options, values, &m);
    if (!r) {
        m->is_library = true;
        *library = (CUlibrary)(void *)m;
    }
    return r;
}

static CUmodule module_of(CUlibrary library)
{
    return (CUmodule)(void *)library;
}

static CUresult check_library(CUlibrary library)
{
    return handle_is(library, MODULE_HANDLE) && module_of(library)->is_library
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

static CUfunction function_of(CUkernel kernel)
{
    return (CUfunction)(void *)kernel;
}

static CUresult check_kernel(CUkernel kernel)
{
    return handle_is(kernel, FUNCTION_HANDLE) && function_of(kernel)->module->is_library
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

#include "libcuda/entry/module.def"
