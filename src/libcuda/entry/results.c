/* Names and texts of result codes; they need neither cuInit nor the lock. */
#include "libcuda/api.h"

static const struct {
    CUresult code;
    const char *name, *text;
} results[] = {
#define RESULT(name, number, text) { name, #name, text },
#include "libcuda/results.def"
#undef RESULT
};

static CUresult find(CUresult code, const char **name, const char **text)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].code == code) {
            *name = results[i].name;
            *text = results[i].text;
            return CUDA_SUCCESS;
        }
    *name = *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult code, const char **name)
{
    const char *text;
    return name ? find(code, name, &text) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
    const char *name;
    return text ? find(code, &name, text) : CUDA_ERROR_INVALID_VALUE;
}
