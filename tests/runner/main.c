/* ptxgen-test runs unit and kernel tests (see test.h), or everything about one family: `ptxgen-test
 * rms_norm`. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "base/os.h"
#include "kernel/family.h"

static char *read_text(arena *a, const char *path)
{
    const char *error;
    char *text;
    size_t size;
    if (os_read_file(a, path, &text, &size, &error))
        return text;
    fprintf(stderr, "%s: %s\n", path, error);
    exit(1);
}

/* Returns true if a text contains a family's name as "NAME", [NAME] or [NAME:. */
static bool names_family(const char *text, const char *end, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) && at < end; at++)
        if (at > text && ((at[-1] == '"' && at[size] == '"') ||
                          (at[-1] == '[' && (at[size] == ']' || at[size] == ':'))))
            return true;
    return false;
}

/* Returns the first TEST(NAME) or similar macro at the start of a line after `from`, NULL if there
 * is none. */
static const char *next_test(const char *from)
{
    static const char *const starts[] = { "\nTEST", "\nARENA_TEST(", "\nEMULATOR_TEST(" };
    const char *first = NULL;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *test = strstr(from, starts[i]);
        first = test && (!first || test < first) ? test : first;
    }
    return first;
}

typedef struct selection {
    const char *family;
    arena *arena;
    unsigned *count; /* number of selected tests */
} selection;

/* Returns true if a test concerns the family: its name begins with the family's name, or its source
 * names the family. Text outside of all tests counts for every test of the file. Slow tests of
 * whole steps are excluded. */
static bool concerns_family(const test_case *t, const void *context)
{
    const selection *s = context;
    size_t length = strlen(s->family);
    bool taken = strncmp(t->test.name, s->family, length) == 0 && t->test.name[length] == '_';
    bool of_steps = strncmp(t->group, "unit/", strlen("unit/")) == 0 && test_is_slow(t->group);
    if (!taken && !of_steps && !t->test.initial_state) { /* not another family's row */
        const char *at = read_text(
            s->arena, arena_format(s->arena, "%s/%s", SOURCE_ROOT, strstr(t->file, "tests/")));
        const char *test = next_test(at);
        for (; test && !taken; test = next_test(at)) {
            const char *name = strchr(test, '(') + 1, *end = strstr(test, "\n}");
            end = end ? end : strchr(test, '\0');
            bool own = strncmp(name, t->test.name, strcspn(name, "),")) == 0;
            taken =
                names_family(at, test, s->family) || (own && names_family(test, end, s->family));
            at = end;
        }
        taken |= names_family(at, strchr(at, '\0'), s->family);
    }
    *s->count += taken;
    return taken;
}

/* Runs a family's tests, and family.sh, which runs the tool on the family's instances. */
static int test_family(const char *name)
{
    arena *a = arena_new();
    unsigned count = 0;
    char line[512];
    setenv("PTXGEN_TEST_DEVICE", "emulator", 1);
    setenv("PTXGEN_TEST_FAMILY", name, 1);
    fflush(stdout);
    FILE *checks = popen(arena_format(a, "sh '%s/tests/runner/family.sh' '%s' '%s' '%s'",
                                      SOURCE_ROOT, name, BUILD_ROOT, SOURCE_ROOT),
                         "r");
    int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    FILE *said = tmpfile();
    if (!checks || !said || dup2(fileno(said), STDOUT_FILENO) < 0 ||
        dup2(fileno(said), STDERR_FILENO) < 0)
        abort();
    test_list_all();
    int failures = test_run(concerns_family, &(selection){ name, a, &count });
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    rewind(said);
    while (fgets(line, sizeof line, said)) /* the failed tests with their messages */
        if (strncmp(line, "[  ERROR", 8) == 0 || strncmp(line, "ERROR", 5) == 0 ||
            strncmp(line, "[  FAILED", 9) == 0)
            fputs(line, stdout);
    printf("tests           %u of %u passed\n", count - (unsigned)failures, count);
    while (fgets(line, sizeof line, checks))
        fputs(line, stdout);
    int status = pclose(checks);
    fclose(said);
    close(out);
    close(error);
    arena_free(a);
    return failures || status;
}

int main(int argc, char **argv)
{
    setenv("PTXGEN_GOLDEN", BUILD_ROOT "/tests/golden", 0);
    setenv("PTXGEN_MODELS", SOURCE_ROOT "/../shared/models", 0);
    setenv("PTXGEN_REAL_HEADERS", BUILD_ROOT "/tests", 0);
    setenv("PTXGEN_NVCC_DATA", BUILD_ROOT "/tests/nvcc", 0);
    setenv("PTXGEN_TEST_CACHE", BUILD_ROOT "/test-cache", 0);
    if (argc == 2 && family_find(families, argv[1]))
        return test_family(argv[1]);
    return test_main(argc, argv);
}
