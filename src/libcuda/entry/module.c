/* Loading PTX. What the emulator cannot parse is CUDA_ERROR_INVALID_PTX, with its line and message
 * in the JIT's error log, and, where the program gave none, on standard error. */
#include "libcuda/module.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

enum { NEWEST_ISA = 90, FAT_BINARY_MAGIC_BYTES = 4 };

/* The JIT options that mean something here; the others are about optimisation. */
typedef struct jit_log {
    char *text[2]; /* of information and of errors */
    size_t size[2];
    void **filled[2]; /* where the driver says how much of the log it used */
} jit_log;

enum { INFO_LOG, ERROR_LOG };

static jit_log read_options(unsigned count, const CUjit_option *options, void **values)
{
    jit_log log = { 0 };
    for (unsigned i = 0; i < count; i++)
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log.text[INFO_LOG] = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log.text[ERROR_LOG] = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log.size[INFO_LOG] = (unsigned)(uintptr_t)values[i];
            log.filled[INFO_LOG] = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log.size[ERROR_LOG] = (unsigned)(uintptr_t)values[i];
            log.filled[ERROR_LOG] = &values[i];
            break;
        default:
            break;
        }
    return log;
}

static void write_log(const jit_log *log, int which, const char *message)
{
    size_t used = 0;
    if (log->text[which] && log->size[which]) {
        int length = snprintf(log->text[which], log->size[which], "%s", message);
        used = length <= 0                         ? 0
               : (size_t)length < log->size[which] ? (size_t)length + 1
                                                   : log->size[which];
    } else if (*message) {
        say("%s", message);
    }
    if (log->filled[which])
        *log->filled[which] = (void *)(uintptr_t)used;
}

static bool is_machine_code(const void *image)
{
    static const unsigned char magics[][FAT_BINARY_MAGIC_BYTES] = {
        { 0x7f, 'E', 'L', 'F' },
        { 0x50, 0xed, 0x55, 0xba },
        { 0xb1, 0x43, 0x62, 0x46 },
    };
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (strncmp(image, (const char *)magics[i], FAT_BINARY_MAGIC_BYTES) == 0)
            return true;
    return false;
}

/* What the JIT compiler for this device would refuse. */
static CUresult check_target(CUmodule m, const char **message)
{
    const target *t = device_target();
    emu_module_info info;
    emu_entry_info entry;
    const char *name;
    emu_module_describe(m->module, &info);
    if (info.isa > NEWEST_ISA) {
        *message =
            arena_format(m->arena, ".version %u.%u is newer than this driver, which knows %d.%d",
                         info.isa / 10, info.isa % 10, NEWEST_ISA / 10, NEWEST_ISA % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (info.target > t->sm) {
        *message = arena_format(m->arena, ".target sm_%u is newer than the device, which is %s",
                                info.target, t->name);
        return CUDA_ERROR_INVALID_PTX;
    }
    for (size_t i = 0; (name = emu_entry_name(m->module, i)); i++) {
        emu_entry(m->module, name, &entry);
        if (entry.triggers || entry.waits)
            driver_overlap();
        if (entry.shared_bytes > t->shared_static) {
            *message = arena_format(m->arena, "%s declares %zu bytes of shared memory; at most %u",
                                    name, entry.shared_bytes, t->shared_static);
            return CUDA_ERROR_INVALID_PTX;
        }
    }
    return CUDA_SUCCESS;
}

/* What is loaded, and what comes of it. */
typedef struct loading {
    CUmodule module;
    const char *text, *path;       /* one of the two */
    const char *message, *unknown; /* of the PTX */
} loading;

static bool read_text(loading *l)
{
    char *text;
    size_t size;
    const char *error;
    bool there = os_read_file(l->module->arena, l->path, &text, &size, &error);
    if (there)
        l->module->text = text;
    return there;
}

static CUresult parse(void *context)
{
    loading *l = context;
    CUmodule m = l->module;
    emu_report report;
    if (l->path && !read_text(l))
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (l->text)
        m->text = arena_strdup(m->arena, l->text);
    if (is_machine_code(m->text)) {
        l->message = "the image is machine code, and this device runs only PTX";
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    m->module = emu_load_any(m->arena, m->text, strlen(m->text), &report);
    if (!m->module) {
        l->message = arena_format(m->arena, "line %u: %s", report.line, report.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    for (size_t i = 0; emu_unknown(m->module, i, &report); i++)
        l->unknown =
            arena_format(m->arena, "%sline %u: %s\n", l->unknown, report.line, report.message);
    CUresult r = check_target(m, &l->message);
    if (!r)
        emu_module_place(device_memory(), m->module);
    return r;
}

static CUresult load(CUcontext c, CUmodule *module, loading *l, const jit_log *log)
{
    if (!module || (!l->text && !l->path))
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m = handle_new(MODULE_HANDLE, sizeof *m, c);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->module = m;
    l->message = l->unknown = "";
    m->arena = driver_arena();
    CUresult r = m->arena ? driver_try(parse, l) : CUDA_ERROR_OUT_OF_MEMORY;
    write_log(log, INFO_LOG, log->text[INFO_LOG] ? l->unknown : "");
    write_log(log, ERROR_LOG, l->message);
    if (r)
        module_destroy(m);
    else
        *module = m;
    return r;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && count && (!options || !values))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    jit_log log = read_options(count, options, values);
    return leave(load(c, module, &(loading){ .text = image }, &log));
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
    return leave(r ? r : load(c, module, &(loading){ .path = path }, &(jit_log){ 0 }));
}

static CUresult unload(CUmodule m)
{
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    module_destroy(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : unload(m));
}

/* A function has one handle, however often it is asked for. */
static CUresult get_function(CUfunction *function, CUmodule m, const char *name)
{
    emu_entry_info info;
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, MODULE_HANDLE))
        return CUDA_ERROR_INVALID_HANDLE;
    for (CUfunction f = NULL; (f = handle_next(FUNCTION_HANDLE, f));)
        if (f->module == m && strcmp(f->name, name) == 0) {
            *function = f;
            return CUDA_SUCCESS;
        }
    if (!emu_entry(m->module, name, &info))
        return CUDA_ERROR_NOT_FOUND;
    const void **params = arena_try_alloc(m->arena, (info.param_count + 1) * sizeof *params);
    CUfunction f = params ? handle_new(FUNCTION_HANDLE, sizeof *f, m->handle.context) : NULL;
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->module = m;
    for (size_t i = 0; !f->name || strcmp(f->name, name) != 0; i++)
        f->name = emu_entry_name(m->module, i);
    f->info = info;
    f->dynamic_shared = SHARED_WITHOUT_ASKING - info.shared_bytes;
    f->params = params;
    *function = f;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : get_function(function, m, name));
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule m)
{
    emu_module_info info;
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !count)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !handle_is(m, MODULE_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (r)
        return leave(r);
    emu_module_describe(m->module, &info);
    *count = (unsigned)info.entry_count;
    return leave(CUDA_SUCCESS);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned room, CUmodule m)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !functions)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !handle_is(m, MODULE_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    const char *name;
    for (unsigned i = 0; !r && i < room && (name = emu_entry_name(m->module, i)); i++)
        r = get_function(&functions[i], m, name);
    return leave(r);
}

static CUresult get_global(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
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

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    return leave(r ? r : get_global(address, size, m, name));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult r = enter();
    if (!r && !mode)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *mode = CU_MODULE_EAGER_LOADING;
    return leave(r);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count; /* all are hints */
    return cuModuleLoadDataEx((CUmodule *)(void *)library, image, count, options, values);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload((CUmodule)(void *)library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction((CUfunction *)(void *)kernel, (CUmodule)(void *)library, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !module)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !handle_is(library, MODULE_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        *module = (CUmodule)(void *)library;
    return leave(r);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && !function)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !handle_is(kernel, FUNCTION_HANDLE))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        *function = (CUfunction)(void *)kernel;
    return leave(r);
}
