#include "libcuda/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/strbuf.h"
#include "libcuda/fatbin.h"
#include "libcuda/load.h"

CUlinkState link_new(CUcontext c, const jit_log *log)
{
    arena *a = driver_arena();
    CUlinkState l = a ? handle_new(LINK_HANDLE, sizeof *l, c) : NULL;
    if (!l) {
        arena_free(a);
        return NULL;
    }
    l->arena = a;
    l->log = *log;
    return l;
}

void link_free(CUlinkState l)
{
    arena_free(l->arena);
    handle_free(l);
}

/* An image on its way into the linker. */
typedef struct addition {
    CUlinkState to;
    CUjitInputType type;
    const void *image;
    size_t size;
    const char *path; /* that it is read from, or NULL */
    const char *message;
} addition;

static CUresult add(void *context)
{
    addition *a = context;
    arena *memory = a->to->arena;
    const char *text, *error;
    char *bytes;
    if (a->type != CU_JIT_INPUT_PTX && a->type != CU_JIT_INPUT_CUBIN &&
        a->type != CU_JIT_INPUT_FATBINARY) {
        a->message = "only PTX, and fat binaries with PTX, can be linked";
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (a->path) {
        if (!os_read_file(memory, a->path, &bytes, &a->size, &error))
            return CUDA_ERROR_FILE_NOT_FOUND;
        a->image = bytes;
    }
    if (!a->size)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = load_ptx(memory, a->image, a->size, &text, &a->message);
    if (!r)
        *VEC_PUSH(memory, &a->to->texts) = text;
    return r;
}

static CUresult try_to_add(addition *a)
{
    a->message = "";
    CUresult r = driver_try(add, a);
    jit_log_write(&a->to->log, "", a->message);
    return r;
}

CUresult link_add(CUlinkState l, CUjitInputType type, const void *image, size_t size)
{
    return try_to_add(&(addition){ .to = l, .type = type, .image = image, .size = size });
}

CUresult link_add_file(CUlinkState l, CUjitInputType type, const char *path)
{
    return try_to_add(&(addition){ .to = l, .type = type, .path = path });
}

/* Past white space and comments. */
static const char *skip_blank(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (strncmp(at, "//", 2) == 0)
            at += strcspn(at, "\n");
        else if (strncmp(at, "/*", 2) == 0 && strstr(at + 2, "*/"))
            at = strstr(at + 2, "*/") + 2;
        else
            return at;
    }
}

/* What the head of PTX says: .version, .target and .address_size, each on a line. */
typedef struct ptx_head {
    unsigned isa; /* 63 for 6.3 */
    unsigned target;
    const char *target_name; /* up to the end of its line */
    const char *body;        /* all that is behind the head */
} ptx_head;

static ptx_head read_head(const char *text)
{
    ptx_head h = { 0 };
    for (h.body = skip_blank(text);; h.body = skip_blank(h.body + strcspn(h.body, "\n"))) {
        unsigned major, minor;
        if (sscanf(h.body, ".version %u.%u", &major, &minor) == 2) {
            h.isa = 10 * major + minor;
        } else if (strncmp(h.body, ".target", strlen(".target")) == 0) {
            h.target_name = skip_blank(h.body + strlen(".target"));
            sscanf(h.target_name, "sm_%u", &h.target);
        } else if (strncmp(h.body, ".address_size", strlen(".address_size")) != 0) {
            return h;
        }
    }
}

/* One head, of the newest version and target, and the bodies. */
static const char *join(arena *a, CUlinkState l)
{
    strbuf text = strbuf_new(a);
    ptx_head newest = { 0 };
    if (l->texts.count == 1)
        return l->texts.items[0];
    for (size_t i = 0; i < l->texts.count; i++) {
        ptx_head h = read_head(l->texts.items[i]);
        newest.isa = h.isa > newest.isa ? h.isa : newest.isa;
        if (!newest.target_name || h.target > newest.target) {
            newest.target = h.target;
            newest.target_name = h.target_name;
        }
    }
    strbuf_format(&text, ".version %u.%u\n.target ", newest.isa / 10, newest.isa % 10);
    if (newest.target_name)
        strbuf_bytes(&text, newest.target_name, strcspn(newest.target_name, "\n"));
    strbuf_put(&text, "\n.address_size 64\n");
    for (size_t i = 0; i < l->texts.count; i++) {
        strbuf_put(&text, read_head(l->texts.items[i]).body);
        strbuf_char(&text, '\n');
    }
    return text.text;
}

typedef struct linking {
    CUlinkState of;
    arena *scratch;
    const char *message;
} linking;

static CUresult run(void *context)
{
    linking *k = context;
    CUlinkState l = k->of;
    emu_module_info info;
    emu_report report;
    const char *text = join(k->scratch, l);
    const emu_module *m = emu_load_any(k->scratch, text, strlen(text), &report);
    if (!m) {
        k->message = arena_format(l->arena, "line %u: %s", report.line, report.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    emu_module_describe(m, &info);
    l->linked = fatbin_write(l->arena, text, info.target, &l->linked_bytes);
    return CUDA_SUCCESS;
}

CUresult link_finish(CUlinkState l)
{
    linking k = { .of = l, .scratch = driver_arena(), .message = "" };
    if (!l->texts.count)
        k.message = "there is nothing to link";
    CUresult r = !l->texts.count ? CUDA_ERROR_INVALID_VALUE
                 : k.scratch     ? driver_try(run, &k)
                                 : CUDA_ERROR_OUT_OF_MEMORY;
    jit_log_write(&l->log, "", k.message);
    arena_free(k.scratch);
    return r;
}
