#include "check/ptxas.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"

enum { DECIMAL = 10 };

const char *ptxas_parse_version(arena *a, const char *text)
{
    const char *mark = ", V", *at = strstr(text, mark);
    if (!at)
        return NULL;
    at += strlen(mark);
    size_t length = strspn(at, "0123456789.");
    return length ? arena_copy(a, at, length) : NULL;
}

target_set ptxas_parse_targets(const char *help)
{
    target_set known = 0;
    for (size_t i = 0; i < target_count; i++) {
        size_t length = strlen(targets[i].name);
        for (const char *at = help; (at = strstr(at, targets[i].name)); at++)
            if (at > help && at[-1] == '\'' && at[length] == '\'') /* e.g. 'sm_75', 'sm_80' */
                known |= target_bit(&targets[i]);
    }
    return known;
}

/* Returns the number that precedes words, or 0 if text does not contain them. */
static unsigned number_before(const char *text, const char *words)
{
    const char *end = strstr(text, words);
    if (!end)
        return 0;
    const char *start = end;
    while (start > text && start[-1] >= '0' && start[-1] <= '9')
        start--;
    return (unsigned)strtoul(start, NULL, DECIMAL);
}

/* Parses these lines; order and the rest of the second line differ between versions:
 *
 *     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 * ptxas info    : Used 8 registers, used 0 barriers, 64 bytes smem
 */
void ptxas_parse_report(const char *text, ptxas_result *result)
{
    unsigned stores = number_before(text, " bytes spill stores");
    unsigned loads = number_before(text, " bytes spill loads");
    result->spill_bytes = stores > loads ? stores : loads;
    result->stack_bytes = number_before(text, " bytes stack frame");
    result->registers = number_before(text, " registers");
    result->shared_bytes = number_before(text, " bytes smem");
}

static const char *search(arena *a)
{
    const char *const folders[] = {
        getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
        "/opt/cuda",         "/usr/lib/cuda",     "/usr/lib/nvidia-cuda-toolkit",
    };
    const char *path = os_find_program(a, "ptxas");
    for (size_t i = 0; !path && i < sizeof folders / sizeof *folders; i++)
        if (folders[i] && *folders[i])
            path = os_find_program(a, arena_format(a, "%s/bin/ptxas", folders[i]));
    return path;
}

/* Returns the output of ptxas for one option, or NULL with an error. */
static const char *ask(arena *a, const char *path, const char *option, const char **error)
{
    char *output;
    int status;
    if (!os_run(a, (const char *const[]){ path, option, NULL }, &output, &status, error)) {
        *error = arena_format(a, "cannot run %s: %s", path, *error);
        return NULL;
    }
    if (status != 0) {
        *error = arena_format(a, "%s %s exited with status %d", path, option, status);
        return NULL;
    }
    return output;
}

bool ptxas_find(arena *a, const char *given, ptxas *out, const char **error)
{
    *out = (ptxas){ .path = given ? os_find_program(a, given) : search(a) };
    if (!out->path) {
        *error = given ? arena_format(a, "%s is not an executable program", given)
                       : "no ptxas on PATH, in CUDA_HOME or CUDA_PATH, or in the toolkit's usual "
                         "folders; install the CUDA toolkit, or give --validate=PTXAS";
        return false;
    }
    const char *version = ask(a, out->path, "--version", error);
    const char *help = version ? ask(a, out->path, "--help", error) : NULL;
    if (!help)
        return false;
    out->version = ptxas_parse_version(a, version);
    out->known = ptxas_parse_targets(help);
    out->oldest = targets;
    while (out->known && !(out->known & target_bit(out->oldest)))
        out->oldest++;
    if (out->version && out->known)
        return true;
    *error =
        arena_format(a, "%s is not ptxas: its --version or --help is not as expected", out->path);
    return false;
}

/* Runs ptxas in a new temporary folder, so that calls from several threads are independent. */
static bool run(arena *a, const ptxas *assembler, const char *ptx, size_t length, const target *t,
                ptxas_result *result, char **output, int *status, const char **error)
{
    os_lock scratch;
    if (!os_open_scratch(a, &scratch, error)) {
        result->unwritable = os_scratch_parent();
        return false;
    }
    const char *file = arena_format(a, "%s/kernel.ptx", scratch.folder);
    const char *cubin = arena_format(a, "%s/kernel.cubin", scratch.folder);
    const char *const argv[] = {
        assembler->path, arena_format(a, "-arch=%s", t->name), "-v", file, "-o", cubin, NULL,
    };
    bool written = os_write_file(a, file, ptx, length, error);
    if (!written)
        result->unwritable = file;
    bool ran = written && os_run(a, argv, output, status, error) &&
               (*status != 0 || os_read_file(a, cubin, &result->cubin, &result->cubin_size, error));
    os_close_scratch(a, &scratch);
    return ran;
}

bool ptxas_is_lean(const ptxas_result *r, const char *ptx, const target *t)
{
    enum { SLOW_BYTES = 103 };
    return (!r->spill_bytes && !r->stack_bytes) || (t->sm == SLOW_BYTES && strstr(ptx, ".s8.s32 "));
}

bool ptxas_run(arena *a, const ptxas *assembler, const char *ptx, size_t length, const target *t,
               ptxas_result *result, const char **error)
{
    char *output;
    int status;
    *result = (ptxas_result){ 0 };
    if (t->sm < assembler->oldest->sm)
        t = assembler->oldest;
    if (!run(a, assembler, ptx, length, t, result, &output, &status, error))
        return false;
    if (status != 0 && strstr(output, "for option 'gpu-name'")) {
        *error = arena_format(a, "ptxas %s does not support %s; install a newer CUDA toolkit",
                              assembler->version, t->name);
        return false;
    }
    result->accepted = status == 0;
    if (result->accepted)
        ptxas_parse_report(output, result);
    else
        result->message = output;
    return true;
}
