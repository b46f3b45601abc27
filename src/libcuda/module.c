#include "libcuda/module.h"

#include <string.h>

enum { MOST_THREADS = 1024 };

void module_destroy(CUmodule m)
{
    CUfunction next;
    for (CUfunction f = handle_next(FUNCTION_HANDLE, NULL); f; f = next) {
        next = handle_next(FUNCTION_HANDLE, f);
        if (f->module == m)
            handle_free(f);
    }
    if (m->module)
        emu_module_forget(device_memory(), m->module);
    arena_free(m->arena);
    handle_free(m);
}

/* A line of the PTX without leading white space; *length is 0 where there is none. */
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
        say("%7u | %.*s", line, (int)length, text);
}

unsigned function_threads(CUfunction f)
{
    const unsigned *n = f->info.reqntid[0] ? f->info.reqntid : f->info.maxntid;
    return n[0] ? n[0] * n[1] * n[2] : MOST_THREADS;
}
