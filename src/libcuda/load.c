#include "libcuda/load.h"

#include <string.h>

#include "base/os.h"
#include "base/strbuf.h"
#include "libcuda/fatbin.h"

enum { NEWEST_ISA = 90, MAGIC_BYTES = 4 };

CUresult load_ptx(arena *a, const void *image, size_t size, const char **ptx, const char **message)
{
    bool is_text = size && size < MAGIC_BYTES;
    if (!is_text && fatbin_is(image))
        return fatbin_ptx(a, image, size, device_target()->sm, ptx, message);
    if (!is_text && strncmp(image, "\177ELF", MAGIC_BYTES) == 0) {
        *message = "the image is machine code, and this device runs only PTX";
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    const char *end = size ? memchr(image, 0, size) : NULL;
    size_t length = end ? (size_t)(end - (const char *)image) : size ? size : strlen(image);
    char *text = arena_alloc(a, length + 1);
    memcpy(text, image, length);
    text[length] = '\0';
    *ptx = text;
    return CUDA_SUCCESS;
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
    if (info.specific && info.target != t->sm) {
        *message = arena_format(m->arena, ".target sm_%ua runs there alone, and the device is %s",
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
    load_source from;
    const char *message; /* of the PTX */
    strbuf unknown;      /* a line for each thing that the emulator does not know */
} loading;

static CUresult read_text(loading *l)
{
    arena *a = l->module->arena;
    const void *image = l->from.image;
    size_t size = 0;
    const char *error;
    char *bytes;
    if (l->from.path) {
        if (!os_read_file(a, l->from.path, &bytes, &size, &error))
            return CUDA_ERROR_FILE_NOT_FOUND;
        image = bytes;
    }
    return load_ptx(a, image, size, &l->module->text, &l->message);
}

static CUresult parse(void *context)
{
    loading *l = context;
    CUmodule m = l->module;
    emu_report report;
    CUresult r = read_text(l);
    if (r)
        return r;
    m->module = emu_load_any(m->arena, m->text, strlen(m->text), &report);
    if (!m->module) {
        l->message = arena_format(m->arena, "line %u: %s", report.line, report.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    l->unknown = strbuf_new(m->arena);
    for (size_t i = 0; emu_unknown(m->module, i, &report); i++)
        strbuf_format(&l->unknown, "line %u: %s\n", report.line, report.message);
    r = check_target(m, &l->message);
    if (!r)
        emu_module_place(device_memory(), m->module);
    return r;
}

CUresult load_module(CUcontext c, load_source from, const jit_log *log, CUmodule *module)
{
    if (!module || (!from.image && !from.path))
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m = handle_new(MODULE_HANDLE, sizeof *m, c);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    loading l = { .module = m, .from = from, .message = "" };
    m->arena = driver_arena();
    CUresult r = m->arena ? driver_try(parse, &l) : CUDA_ERROR_OUT_OF_MEMORY;
    jit_log_write(log, l.unknown.text ? l.unknown.text : "", l.message);
    if (r)
        module_destroy(m);
    else
        *module = m;
    return r;
}
