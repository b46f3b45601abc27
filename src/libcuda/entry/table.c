/* The binary interface: layouts and numbers are checked while compiling, and cuGetProcAddress finds
 * entry points by name and CUDA version. */
#include <stdbool.h>
#include <string.h>

#include "libcuda/unsupported.h"

#define LAYOUT(type, size)          _Static_assert(sizeof(type) == (size), #type);
#define FIELD(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type);
#include "libcuda/layouts.def"

#define CONSTANT(name, value) _Static_assert(name == (value), #name);
#include "libcuda/constants.def"
#undef CONSTANT

typedef void function(void);

static const struct {
    const char *name;
    int since;
    function *function;
} entry_points[] = {
#define ENTRY(name, symbol, since, parameters) { #name, since, (function *)(symbol) },
#include "libcuda/entry_points.def"
#undef ENTRY
#define MISSING_PER_THREAD(name, version, since, ending) MISSING(name, version, since)

#define MISSING(name, version, since)                    { #name, since, (function *)(refuse_##name##version) },
#include "libcuda/unsupported.def"
#undef MISSING
#undef MISSING_PER_THREAD
};

static bool is_search(cuuint64_t flags)
{
    return flags == CU_GET_PROC_ADDRESS_DEFAULT || flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ||
           flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

/* All streams are one to the library, so that flags, which choose between the legacy and the
 * per-thread default stream, make no difference. What is not supported is found as well: programs
 * that look all functions up when they start run until they call one. */
CUresult cuGetProcAddress_v2(const char *name, void **address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int newest = 0;
    if (!name || !address || !is_search(flags))
        return CUDA_ERROR_INVALID_VALUE;
    *address = NULL;
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
        if (strcmp(entry_points[i].name, name) != 0)
            continue;
        if (entry_points[i].since <= version && entry_points[i].since > newest) {
            newest = entry_points[i].since;
            memcpy(address, &entry_points[i].function, sizeof *address);
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (!newest) {
            found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    if (status)
        *status = found;
    return status || *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **address, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, address, version, flags, NULL);
}

PER_THREAD_ALIAS(cuGetProcAddress_v2, _ptsz);
