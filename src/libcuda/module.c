#include "libcuda/module.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "base/strbuf.h"
#include "libcuda/fatbin.h"

enum { NEWEST_ISA = 90, MAGIC_BYTES = 4, MOST_THREADS = 1024 };

void module_destroy(CUmodule m)
{
    for (size_t i = 0; m->functions && emu_entry_name(m->module, i); i++)
        if (m->functions[i])
            handle_free(m->functions[i]);
    if (m->module)
        emu_module_forget(driver.memory, m->module);
    handle_free(m);
}

void module_say_line(CUmodule m, unsigned line)
{
    enum { MOST_SHOWN = 120 };
    const char *text = line ? m->text : NULL;
    for (unsigned i = 1; text && i < line; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (!text)
        return;
    text += strspn(text, " \t");
    size_t length = strcspn(text, "\r\n");
    if (length)
        say("%7u | %.*s%s", line, (int)(length < MOST_SHOWN ? length : MOST_SHOWN), text,
            length > MOST_SHOWN ? " ..." : "");
}

unsigned function_threads(CUfunction f)
{
    const unsigned *n = f->info.reqntid[0] ? f->info.reqntid : f->info.maxntid;
    return n[0] ? n[0] * n[1] * n[2] : MOST_THREADS;
}

unsigned function_blocks(CUfunction f, unsigned threads, size_t dynamic)
{
    return target_blocks_per_sm(driver.target, threads, f->info.live_registers,
                                f->info.shared_bytes + dynamic);
}

CUresult jit_log_read(jit_log *log, unsigned count, const CUjit_option *options, void **values)
{
    *log = (jit_log){ 0 };
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) {
            log->text[options[i] == CU_JIT_ERROR_LOG_BUFFER] = values[i];
        } else if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
                   options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            bool of_errors = options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
            log->size[of_errors] = (unsigned)(uintptr_t)values[i];
            log->filled[of_errors] = &values[i];
        }
    return CUDA_SUCCESS;
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

void jit_log_write(const jit_log *log, const char *info, const char *error)
{
    write_log(log, JIT_INFO_LOG, log->text[JIT_INFO_LOG] ? info : "");
    write_log(log, JIT_ERROR_LOG, error);
}

CUresult source_read(arena *a, load_source *from)
{
    const char *error;
    char *bytes;
    if (!from->path)
        return CUDA_SUCCESS;
    if (!os_read_file(a, from->path, &bytes, &from->size, &error))
        return CUDA_ERROR_FILE_NOT_FOUND;
    from->image = bytes;
    return CUDA_SUCCESS;
}

CUresult source_ptx(arena *a, load_source from, const char **ptx, const char **message)
{
    bool is_text = from.size && from.size < MAGIC_BYTES;
    if (!is_text && fatbin_is(from.image))
        return fatbin_ptx(a, from.image, from.size, driver.target->sm, ptx, message);
    if (!is_text && strncmp(from.image, "\177ELF", MAGIC_BYTES) == 0) {
        *message = "the image is machine code; this device runs only PTX";
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    const char *text = from.image, *end = from.size ? memchr(text, 0, from.size) : NULL;
    *ptx = arena_copy(a, text, end ? (size_t)(end - text) : from.size ? from.size : strlen(text));
    return CUDA_SUCCESS;
}

/* Refuses PTX that the JIT compiler for this device would refuse. */
static CUresult check_target(CUmodule m, const char **message)
{
    const target *t = driver.target;
    emu_module_info info;
    emu_entry_info entry;
    const char *name;
    emu_module_describe(m->module, &info);
    if (info.isa > NEWEST_ISA) {
        *message = arena_format(m->handle.arena,
                                ".version %u.%u is not supported; this driver supports up to %d.%d",
                                info.isa / 10, info.isa % 10, NEWEST_ISA / 10, NEWEST_ISA % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (info.target > t->sm) {
        *message = arena_format(m->handle.arena,
                                ".target sm_%u is newer than the device; the device is %s",
                                info.target, t->name);
        return CUDA_ERROR_INVALID_PTX;
    }
    if (info.specific && info.target != t->sm) {
        *message = arena_format(m->handle.arena,
                                ".target sm_%ua runs on no other version; the device is %s",
                                info.target, t->name);
        return CUDA_ERROR_INVALID_PTX;
    }
    for (size_t i = 0; (name = emu_entry_name(m->module, i)); i++) {
        emu_entry(m->module, name, &entry);
        if (entry.triggers || entry.waits)
            driver.overlaps = true;
        if (entry.shared_bytes > t->shared_static) {
            *message = arena_format(m->handle.arena,
                                    "%s declares %zu bytes of shared memory; the limit is %u", name,
                                    entry.shared_bytes, t->shared_static);
            return CUDA_ERROR_INVALID_PTX;
        }
    }
    return CUDA_SUCCESS;
}

/* A module being loaded, its source, and messages about it. */
typedef struct loading {
    CUmodule module;
    load_source from;
    const char *message; /* error of the PTX */
    strbuf unknown;      /* a line for each construct that the emulator does not know */
} loading;

static CUresult parse_module(void *context)
{
    loading *l = context;
    CUmodule m = l->module;
    emu_report report;
    arena *a = m->handle.arena;
    CUresult r = source_read(a, &l->from);
    r = r ? r : source_ptx(a, l->from, &m->text, &l->message);
    if (r)
        return r;
    m->module = emu_load_any(a, m->text, strlen(m->text), &report);
    if (!m->module) {
        l->message = arena_format(a, "line %u: %s", report.line, report.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    l->unknown = strbuf_new(a);
    for (size_t i = 0; emu_unknown(m->module, i, &report); i++)
        strbuf_format(&l->unknown, "line %u: %s\n", report.line, report.message);
    r = check_target(m, &l->message);
    if (!r)
        emu_module_place(driver.memory, m->module);
    return r;
}

CUresult module_load(CUcontext c, load_source from, unsigned count, const CUjit_option *options,
                     void **values, CUmodule *module)
{
    jit_log log;
    if (jit_log_read(&log, count, options, values) || !module || (!from.image && !from.path))
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m = handle_new_with_arena(MODULE_HANDLE, sizeof *m, c);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    loading l = { .module = m, .from = from, .message = "" };
    CUresult r = driver_try(parse_module, &l);
    jit_log_write(&log, l.unknown.text ? l.unknown.text : "", l.message);
    if (r)
        module_destroy(m);
    else
        *module = m;
    return r;
}
