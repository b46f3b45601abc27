/* The emulated driver stands in a folder of its own, which LD_LIBRARY_PATH makes the loader's
 * first: in a build folder below this program, and installed beside it, wherever that was moved. */
#include "cli/emulated.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "version.h"

#define LIBRARY "libcuda.so.1"

/* NULL where there is none. */
static const char *find_library(arena *a)
{
    const char *own = os_program_folder(a);
    const char *places[] = {
        own ? arena_format(a, "%s/src/libcuda", own) : NULL,
        own ? arena_format(a, "%s/%s", own, PTXGEN_LIBCUDA_FROM_BINDIR) : NULL,
        PTXGEN_LIBCUDA_DIR,
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i] && os_exists(arena_format(a, "%s/" LIBRARY, places[i])))
            return places[i];
    return NULL;
}

status run_emulated(arena *a, char *const *argv)
{
    const char *name = argv[0];
    if (name && strcmp(name, "--") == 0)
        name = *++argv;
    else if (name && name[0] == '-')
        return wrong_usage("run takes no option of its own: '%s'", name);
    if (!name || !*name)
        return wrong_usage("run needs a program: ptxgen run PROGRAM [ARGUMENT]...");

    const char *path = os_find_program(a, name);
    const char *here = arena_format(a, "./%s", name);
    if (!path && !strchr(name, '/') && os_find_program(a, here))
        return wrong_usage("there is no program '%s' on PATH; did you mean '%s'?", name, here);
    if (!path)
        return wrong_usage("there is no program '%s' that can be run", name);
    const char *folder = find_library(a);
    if (!folder)
        return wrong_usage("there is no emulated driver: no " LIBRARY " beside ptxgen, nor in %s",
                           PTXGEN_LIBCUDA_DIR);

    const char *error, *others = getenv("LD_LIBRARY_PATH");
    if (others && *others)
        folder = arena_format(a, "%s:%s", folder, others);
    os_become(a, path, argv, "LD_LIBRARY_PATH", folder, &error);
    return wrong_usage("%s cannot be run: %s", path, error);
}
