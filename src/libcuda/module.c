#include "libcuda/module.h"

#include <string.h>

enum { MOST_THREADS = 1024 };

void module_destroy(CUmodule m)
{
    for (size_t i = 0; m->functions && emu_entry_name(m->module, i); i++)
        if (m->functions[i])
            handle_free(m->functions[i]);
    if (m->module)
        emu_module_forget(device_memory(), m->module);
    arena_free(m->arena);
    handle_free(m);
}

/* The characters that are shown of a line of PTX. */
enum { MOST_SHOWN = 120 };

/* Returns a line of the PTX without leading white space; *length is 0 where there is none. */
static const char *module_line(CUmodule m, unsigned line, size_t *length)
{
    const char *at = m->text;
    for (unsigned i = 1; at && i < line; i++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    at = at && line ? at + strspn(at, " \t") : "";
    *length = strcspn(at, "\r\n");
    return at;
}

void module_say_line(CUmodule m, unsigned line)
{
    size_t length;
    const char *text = module_line(m, line, &length);
    if (length)
        say("%7u | %.*s%s", line, (int)(length < MOST_SHOWN ? length : MOST_SHOWN), text,
            length > MOST_SHOWN ? " ..." : "");
}

unsigned function_threads(CUfunction f)
{
    const unsigned *n = f->info.reqntid[0] ? f->info.reqntid : f->info.maxntid;
    return n[0] ? n[0] * n[1] * n[2] : MOST_THREADS;
}

/* Makes room for a handle of each entry. Returns false if there is no memory. */
static bool make_functions(CUmodule m)
{
    emu_module_info info;
    emu_module_describe(m->module, &info);
    m->functions = arena_try_alloc(m->arena, info.entry_count * sizeof *m->functions);
    if (m->functions)
        memset(m->functions, 0, info.entry_count * sizeof *m->functions);
    return m->functions;
}

CUresult module_function(CUfunction *function, CUmodule m, const char *name)
{
    emu_entry_info info;
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_entry(m->module, name, &info))
        return CUDA_ERROR_NOT_FOUND;
    if (!m->functions && !make_functions(m))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (m->functions[info.number]) {
        *function = m->functions[info.number];
        return CUDA_SUCCESS;
    }
    const void **params = arena_try_alloc(m->arena, (info.param_count + 1) * sizeof *params);
    CUfunction f = params ? handle_new(FUNCTION_HANDLE, sizeof *f, m->handle.context) : NULL;
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->module = m;
    f->id = driver_count();
    f->name = emu_entry_name(m->module, info.number);
    f->info = info;
    f->dynamic_shared = SHARED_WITHOUT_ASKING - info.shared_bytes;
    f->params = params;
    m->functions[info.number] = *function = f;
    return CUDA_SUCCESS;
}

CUresult module_function_count(unsigned *count, CUmodule m)
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

CUresult module_functions(CUfunction *functions, unsigned room, CUmodule m)
{
    CUresult r = CUDA_SUCCESS;
    const char *name;
    if (!functions)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; !r && i < room && (name = emu_entry_name(m->module, i)); i++)
        r = module_function(&functions[i], m, name);
    return r;
}

CUresult module_global(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
{
    uint64_t at;
    size_t bytes;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_variable(device_memory(), m->module, name, &at, &bytes))
        return CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = at;
    if (size)
        *size = bytes;
    return CUDA_SUCCESS;
}

CUresult function_attribute(int *value, CUfunction_attribute which, CUfunction f)
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

CUresult function_set_attribute(CUfunction f, CUfunction_attribute which, int value)
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

CUresult function_param(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    size_t bytes;
    if (!handle_is(f, FUNCTION_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || !emu_param(f->module->module, f->name, index, offset, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (size)
        *size = bytes;
    return CUDA_SUCCESS;
}

unsigned function_blocks(CUfunction f, unsigned threads, size_t dynamic)
{
    return target_blocks_per_sm(device_target(), threads, f->info.live_registers,
                                f->info.shared_bytes + dynamic);
}
