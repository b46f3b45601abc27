#include "libcuda/link.h"

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *made)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    if (!r && (!made || (count && (!options || !values))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return leave(r);
    jit_log log = jit_log_of(count, options, values);
    CUlinkState l = link_new(c, &log);
    if (l)
        *made = l;
    return leave(l ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *made)
{
    return cuLinkCreate_v2(count, options, values, made);
}

/* A linker that can still be added to, and what is added. */
static CUresult check(CUlinkState l, const void *what)
{
    return !handle_is(l, LINK_HANDLE) ? CUDA_ERROR_INVALID_HANDLE
           : what && !l->linked       ? CUDA_SUCCESS
                                      : CUDA_ERROR_INVALID_VALUE;
}

/* The options are about code that would be made of one image. */
CUresult cuLinkAddData_v2(CUlinkState l, CUjitInputType type, void *image, size_t size,
                          const char *name, unsigned count, CUjit_option *options, void **values)
{
    (void)name, (void)count, (void)options, (void)values;
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(l, image);
    return leave(r ? r : link_add(l, type, image, size));
}

CUresult cuLinkAddData(CUlinkState l, CUjitInputType type, void *image, size_t size,
                       const char *name, unsigned count, CUjit_option *options, void **values)
{
    return cuLinkAddData_v2(l, type, image, size, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState l, CUjitInputType type, const char *path, unsigned count,
                          CUjit_option *options, void **values)
{
    (void)count, (void)options, (void)values;
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(l, path);
    return leave(r ? r : link_add_file(l, type, path));
}

CUresult cuLinkAddFile(CUlinkState l, CUjitInputType type, const char *path, unsigned count,
                       CUjit_option *options, void **values)
{
    return cuLinkAddFile_v2(l, type, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState l, void **image, size_t *size)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(l, image);
    r = r ? r : link_finish(l);
    if (!r)
        *image = l->linked;
    if (!r && size)
        *size = l->linked_bytes;
    return leave(r);
}

CUresult cuLinkDestroy(CUlinkState l)
{
    CUcontext c;
    CUresult r = enter_context(&c);
    r = r ? r : check(l, l) == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (!r)
        link_free(l);
    return leave(r);
}
