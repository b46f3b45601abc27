/* Helpers for tests of a generated header on the emulated driver: a context, a stream, and the last
 * message of the header. */
#ifndef PTXGEN_TESTS_EMULATED_H
#define PTXGEN_TESTS_EMULATED_H

#include <dlfcn.h>
#include <string.h>

#include "test.h"
#include "libcuda/api.h"

#define assert_success(call) assert_int_equal(call, CUDA_SUCCESS)

static CUcontext context;
static CUstream stream;
static char why[8192];

static void keep(void *to, const char *said)
{
    (void)to;
    strncpy(why, said, sizeof why - 1);
}

/* Opens a context with a stream. Returns 0 on success. */
static int open_driver(void)
{
    memset(why, 0, sizeof why);
    return cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0) ||
           cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

#endif
