/* cuGetProcAddress finds entry points by name and CUDA version. Entry points of unsupported.def are
 * refused. The first call of each is reported on standard error, so that users learn what a program
 * misses. */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "libcuda/driver.h"

static CUresult refuse(atomic_flag *said, const char *symbol)
{
    if (!atomic_flag_test_and_set(said))
        say("%s is not supported", symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define MISSING(name, version, since)                     \
    CUresult refuse_##name##version(void)                 \
    {                                                     \
        static atomic_flag said = ATOMIC_FLAG_INIT;       \
        return refuse(&said, SYMBOL_TEXT(name##version)); \
    }
#define MISSING_PER_THREAD(name, version, since, ending) \
    MISSING(name, version, since)                        \
    CUresult refuse_##name##version##ending(void)        \
    {                                                    \
        return refuse_##name##version();                 \
    }
#include "libcuda/unsupported.def"

typedef void function(void);
typedef struct entry_point {
    const char *name;
    int since;
    function *function;
} entry_point;

static const entry_point entry_points[] = {
#define ENTRY(name, version, since, enters, parameters, ...) \
    { #name, since, (function *)(name##version) },
#include "libcuda/entry_points.def"
    { "cuGraphInstantiate", 12000, (function *)cuGraphInstantiateWithFlags },
#define MISSING(name, version, since) { #name, since, (function *)(refuse_##name##version) },
#include "libcuda/unsupported.def"
};

/* Finds an entry point. Default streams are not distinguished, so flags, which select the legacy or
 * the per-thread default stream, have no effect. Unsupported functions are found, too: programs
 * that look up all functions at start-up run until they call one. */
static CUresult find_entry_point(const char *name, void **address, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int newest = 0;
    bool known = flags == CU_GET_PROC_ADDRESS_DEFAULT ||
                 flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ||
                 flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!name || !address || !known)
        return CUDA_ERROR_INVALID_VALUE;
    *address = NULL;
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
        const entry_point *e = &entry_points[i];
        if (strcmp(e->name, name) != 0)
            continue;
        if (e->since <= version && e->since > newest) {
            newest = e->since;
            memcpy(address, &e->function, sizeof *address);
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (!newest) {
            found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    if (status)
        *status = found;
    return status || *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#include "libcuda/entry/entry.h" /* the ENTRY macros that table.def needs */
#include "libcuda/entry/table.def"
