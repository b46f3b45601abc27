/* Contexts: what owns all other objects, and what each thread has as its current one. */
#ifndef PTXGEN_LIBCUDA_CONTEXT_H
#define PTXGEN_LIBCUDA_CONTEXT_H

#include "libcuda/driver.h"

enum { CONTEXT_LIMITS = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1 };

struct CUctx_st {
    handle handle;
    CUresult failure; /* of the first kernel that failed: every later call returns it */
    unsigned flags;
    uint64_t id;
    unsigned attached; /* times that cuCtxAttach has been called */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    size_t limits[CONTEXT_LIMITS]; /* by CU_LIMIT_…: kept, and none but the stack is ever reached */
    unsigned retained;             /* of the primary context: 0 otherwise */
    bool primary;
    CUstream null_stream;   /* NULL and CU_STREAM_LEGACY */
    CUstream thread_stream; /* CU_STREAM_PER_THREAD, of all threads */
};

/* The calling thread's, NULL where it has none or where it was destroyed. */
CUcontext context_current(void);

/* enter, and finds the thread's current context: CUDA_ERROR_INVALID_CONTEXT where there is none,
 * and where a kernel of it failed what that kernel's launch returned. */
CUresult enter_context(CUcontext *context);

/* The same with enter_to_add, and with enter_to_ask. */
CUresult enter_context_to_add(CUcontext *context);
CUresult enter_context_to_ask(CUcontext *context);

#endif
