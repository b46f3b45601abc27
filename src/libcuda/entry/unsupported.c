/* What the library has not: each function says so on standard error the first time it is called,
 * so that who wonders why a program gives up learns which one it missed. */
#include "libcuda/unsupported.h"

#include <stdatomic.h>

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
