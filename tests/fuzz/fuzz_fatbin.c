/* Any bytes as a fat binary: the result must be PTX or a message with the problem. */
#include <assert.h>
#include <string.h>

#include "libcuda/fatbin.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAGIC_BYTES = 4, SM = 86 };
    arena *a = arena_new();
    const char *ptx = NULL, *message = NULL;
    if (size >= MAGIC_BYTES && fatbin_is(data)) {
        CUresult r = fatbin_ptx(a, data, size, SM, &ptx, &message);
        assert(r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_IMAGE ||
               r == CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert(r ? message && *message : ptx && strlen(ptx) < SIZE_MAX);
    }
    arena_free(a);
    return 0;
}
