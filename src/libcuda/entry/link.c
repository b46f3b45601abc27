/* The linker concatenates the PTX of several images and returns it as a fat binary.
 *
 * Only text is linked, not machine code. So a name that several images define is an error even if
 * it is not exported. Variables of other images are not accessible; functions are. */
#include "libcuda/entry/entry.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "libcuda/fatbin.h"
#include "libcuda/module.h"

struct CUlinkState_st {
    handle handle;
    jit_log log;
    VEC(const char *) texts; /* PTX, one per image */
    void *linked;            /* NULL until linked */
    size_t linked_bytes;
};

static CUresult create_linker(CUcontext c, unsigned count, CUjit_option *options, void **values,
                              CUlinkState *made)
{
    jit_log log;
    CUresult r = made ? jit_log_read(&log, count, options, values) : CUDA_ERROR_INVALID_VALUE;
    CUlinkState l = r ? NULL : handle_new_with_arena(LINK_HANDLE, sizeof *l, c);
    if (!l)
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    l->log = log;
    *made = l;
    return CUDA_SUCCESS;
}

/* Checks a linker that is not finished, and a pointer argument of the call. */
static CUresult check_linker(CUlinkState l, const void *what)
{
    CUresult r = check_handle(l, LINK_HANDLE);
    return r ? r : check_value(what && !l->linked);
}

/* The arguments of add_image and link_texts, for driver_try. */
typedef struct linking {
    CUlinkState of;
    load_source from;
    arena *scratch;
    const char *message;
} linking;

static CUresult add_image(void *context)
{
    linking *k = context;
    arena *a = k->of->handle.arena;
    const char *text;
    CUresult r = source_read(a, &k->from);
    r = r ? r : check_value(k->from.size);
    r = r ? r : source_ptx(a, k->from, &text, &k->message);
    if (!r)
        *VEC_PUSH(a, &k->of->texts) = text;
    return r;
}

/* Adds an image of a type CU_JIT_INPUT_…. Messages go to the log. */
static CUresult link_image(CUlinkState l, CUjitInputType type, load_source from)
{
    linking k = { .of = l, .from = from, .message = "" };
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;
    if (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_FATBINARY)
        r = driver_try(add_image, &k);
    else
        k.message = "only PTX and fat binaries with PTX can be linked";
    jit_log_write(&l->log, "", k.message);
    return r;
}

/* Returns the text after white space and comments. */
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

/* The head of a PTX text: .version, .target and .address_size, each on its own line. */
typedef struct ptx_head {
    unsigned isa; /* 63 for 6.3 */
    unsigned target;
    const char *target_name; /* extends to the end of its line */
    const char *body;        /* text after the head */
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

/* Joins the bodies under one head with the newest version and target. */
static CUresult link_texts(void *context)
{
    linking *k = context;
    CUlinkState l = k->of;
    strbuf text = strbuf_new(k->scratch);
    ptx_head newest = { 0 };
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
    const char *linked = l->texts.count == 1 ? l->texts.items[0] : text.text;
    emu_report report;
    const emu_module *m = emu_load_any(k->scratch, linked, strlen(linked), &report);
    if (!m) {
        k->message = arena_format(l->handle.arena, "line %u: %s", report.line, report.message);
        return CUDA_ERROR_INVALID_PTX;
    }
    emu_module_info info;
    emu_module_describe(m, &info);
    l->linked = fatbin_write(l->handle.arena, linked, info.target, &l->linked_bytes);
    return CUDA_SUCCESS;
}

/* Links the image, which lives as long as the linker. */
static CUresult finish_linking(CUlinkState l, void **image, size_t *size)
{
    linking k = { .of = l, .scratch = driver_arena(), .message = "" };
    if (!l->texts.count)
        k.message = "there is nothing to link; add an image first";
    CUresult r = !l->texts.count ? CUDA_ERROR_INVALID_VALUE
                 : k.scratch     ? driver_try(link_texts, &k)
                                 : CUDA_ERROR_OUT_OF_MEMORY;
    jit_log_write(&l->log, "", k.message);
    arena_free(k.scratch);
    if (!r) {
        *image = l->linked;
        GIVE(size, l->linked_bytes);
    }
    return r;
}

#include "libcuda/entry/link.def"
